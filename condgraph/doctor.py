"""Check which parts of condgraph can be used in this environment: the packages that each part needs, which of them
are installed, and how to install the others.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Final, Literal

from condgraph import __version__
from condgraph.engine.errors import OptionError

#: The purpose of each extra, in the order of display.
PARTS: Final[Mapping[str, str]] = {
    "": "graphs in memory and in folders, with all languages and SPARQL",
    "serve": "`condgraph serve`: the studio, the API, SPARQL and Bolt",
    "mcp": "`condgraph mcp`: a graph for agents",
    "neo4j": "graphs on Neo4j, and existing Neo4j databases",
    "sql": "tables in SQL databases, together with the extra of the database",
    "duckdb": "DuckDB files and tables",
    "postgres": "PostgreSQL",
    "spark": "Spark: exports to Parquet, and tables of its catalogue",
    "mysql": "MySQL and MariaDB",
    "excel": "Excel and OpenDocument workbooks",
    "arrow": "Parquet and Arrow files, data frames, s3:// addresses, answers as Arrow, files for Neo4j's import tool",
    "pandas": "data frames of pandas",
    "polars": "data frames of polars",
    "networkx": "evidence as a graph of NetworkX",
    "igraph": "evidence as a graph of igraph",
    "notebook": "graphs that one explores in a notebook",
    "rdflib": "a graph as a store of rdflib",
    "sparql": "SPARQLWrapper",
    "units": "units that are not in condgraph's table",
    "openai": "language models with the API of OpenAI, local servers among them",
    "local-llm": "language models in this process",
    "langchain": "LangChain",
    "llama-index": "LlamaIndex",
    "neo4j-graphrag": "neo4j-graphrag",
    "embeddings": "encoders of sentence-transformers",
    "faiss": "the approximate index of names",
    "torch": "training of link models",
    "pykeen": "link models of PyKEEN",
}

State = Literal["installed", "missing", "wrong version"]
_REQUIREMENT: Final = re.compile(
    r"""(?P<name>[\w.-]+)(?:\[[\w, -]*\])?\s*(?P<wanted>[^;]*?)\s*(?:;.*?(?:extra\s*==\s*["'](?P<extra>[\w.-]+)["'].*)?)?$"""
)
_BOUND: Final = re.compile(r"(>=|<=|==|!=|~=|<|>)\s*([\w.!+]+)")


@dataclass(frozen=True, slots=True)
class Package:
    """A package that a part needs, with the versions that suffice and the installed one."""

    name: str
    wanted: str
    version: str | None

    @property
    def state(self) -> State:
        """Whether the package is installed in a sufficient version."""
        if self.version is None:
            return "missing"
        return "installed" if all(_is_satisfied(self.version, *bound) for bound in _BOUND.findall(self.wanted)) else "wrong version"

    def __str__(self) -> str:
        if self.version is None:
            return f"{self.name} is missing"
        return f"{self.name} {self.version}" + ("" if self.state == "installed" else f", and {self.wanted} is needed")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of condgraph with its packages. `extra` is empty for the part that is always installed."""

    extra: str
    purpose: str
    packages: tuple[Package, ...]

    @property
    def ready(self) -> bool:
        """Whether all packages are installed in sufficient versions."""
        return all(package.state == "installed" for package in self.packages)

    @property
    def hint(self) -> str:
        """The command that installs the part; empty if nothing is missing."""
        name = f"'condgraph[{self.extra}]'" if self.extra else "condgraph"
        return "" if self.ready else f"pip install {name}"


@dataclass(frozen=True, slots=True)
class Report:
    """The versions of condgraph and Python, and the parts."""

    version: str
    python: str
    parts: tuple[Part, ...]

    @property
    def healthy(self) -> bool:
        """Whether all required packages are installed, and no package of a part has a wrong version."""
        packages = [package for part in self.parts for package in part.packages if not part.extra or package.version]
        return all(package.state == "installed" for package in packages)


def examine() -> Report:
    """Examine the environment by the metadata of the installed packages, without importing them.

    Raises `OptionError` if condgraph runs from files that were not installed.
    """
    try:
        requirements = metadata.requires("condgraph") or ()
    except metadata.PackageNotFoundError:
        raise OptionError("condgraph is not installed here, so its requirements are not known", hint="pip install -e .") from None
    needed: dict[str, list[Package]] = {extra: [] for extra in PARTS}
    for match in filter(None, map(_REQUIREMENT.match, requirements)):
        if (extra := match["extra"] or "") in needed:
            needed[extra].append(Package(match["name"], match["wanted"].strip("() "), _version(match["name"])))
    parts = tuple(Part(extra, PARTS[extra], tuple(packages)) for extra, packages in needed.items() if packages)
    return Report(__version__, platform.python_version(), parts)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _is_satisfied(version: str, operator: str, bound: str) -> bool:
    """Return whether a version satisfies a bound. Only release numbers are compared, which is enough for the bounds
    of condgraph.
    """
    release, limit = _numbers(version), _numbers(bound)
    size = max(len(release), len(limit))
    a, b = release + (0,) * (size - len(release)), limit + (0,) * (size - len(limit))
    match operator:
        case ">=":
            return a >= b
        case "<=":
            return a <= b
        case "<":
            return a < b
        case ">":
            return a > b
        case "!=":
            return a != b
        case "~=":
            return a >= b and release[: len(limit) - 1] == limit[:-1]
        case _:
            return a == b


def _numbers(version: str) -> tuple[int, ...]:
    """Return the release numbers of a version: (6, 3) for 6.3rc1, (2, 4) for 2.4+cpu."""
    result = []
    for piece in version.split("+")[0].split("."):
        digits = re.match(r"\d+", piece)
        if digits is None:
            break
        result.append(int(digits[0]))
        if digits[0] != piece:
            break
    return tuple(result)

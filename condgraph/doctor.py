"""What of condgraph can be used in an environment: the packages that each part needs, which of them are
there, and how to get the others.
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

#: What each extra is for, in the order in which it is shown.
PARTS: Final[Mapping[str, str]] = {
    "": "graphs in memory and in folders, with all languages and SPARQL",
    "serve": "`condgraph serve`: the studio, the API, SPARQL and Bolt",
    "mcp": "`condgraph mcp`: a graph for agents",
    "neo4j": "graphs on Neo4j, and databases of others",
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
    """One package that a part needs: the versions that will do, and the one that is there."""

    name: str
    wanted: str
    version: str | None

    @property
    def state(self) -> State:
        """Whether it is there, in a version that will do."""
        if self.version is None:
            return "missing"
        return "installed" if all(_holds(self.version, *bound) for bound in _BOUND.findall(self.wanted)) else "wrong version"

    def __str__(self) -> str:
        if self.version is None:
            return f"{self.name} is missing"
        return f"{self.name} {self.version}" + ("" if self.state == "installed" else f", and {self.wanted} is needed")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of condgraph with what it needs. `extra` is empty for what is always there."""

    extra: str
    purpose: str
    packages: tuple[Package, ...]

    @property
    def ready(self) -> bool:
        """Whether all that it needs is there."""
        return all(package.state == "installed" for package in self.packages)

    @property
    def hint(self) -> str:
        """The command that installs it; empty where nothing is missing."""
        name = f"'condgraph[{self.extra}]'" if self.extra else "condgraph"
        return "" if self.ready else f"pip install {name}"


@dataclass(frozen=True, slots=True)
class Report:
    """What there is: versions of condgraph and Python, and the parts."""

    version: str
    python: str
    parts: tuple[Part, ...]

    @property
    def healthy(self) -> bool:
        """Whether what is always needed is there, and no package of a part has a wrong version."""
        packages = [package for part in self.parts for package in part.packages if not part.extra or package.version]
        return all(package.state == "installed" for package in packages)


def examine() -> Report:
    """What of condgraph can be used here, by the metadata of the installed packages; nothing is imported.

    Raises `OptionError` where condgraph runs from files that were not installed.
    """
    try:
        texts = metadata.requires("condgraph") or ()
    except metadata.PackageNotFoundError:
        raise OptionError("condgraph is not installed here, so nothing says what it needs", hint="pip install -e .") from None
    needed: dict[str, list[Package]] = {extra: [] for extra in PARTS}
    for match in filter(None, map(_REQUIREMENT.match, texts)):
        if (extra := match["extra"] or "") in needed:
            needed[extra].append(Package(match["name"], match["wanted"].strip("() "), _version(match["name"])))
    parts = tuple(Part(extra, PARTS[extra], tuple(packages)) for extra, packages in needed.items() if packages)
    return Report(__version__, platform.python_version(), parts)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _holds(version: str, operator: str, bound: str) -> bool:
    """Whether a version is within a bound; by the numbers of releases, as all bounds here are."""
    have, limit = _numbers(version), _numbers(bound)
    size = max(len(have), len(limit))
    a, b = have + (0,) * (size - len(have)), limit + (0,) * (size - len(limit))
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
            return a >= b and have[: len(limit) - 1] == limit[:-1]
        case _:
            return a == b


def _numbers(version: str) -> tuple[int, ...]:
    """The release numbers of a version: 6.3 of 6.3rc1, 2.4 of 2.4+cpu."""
    result = []
    for piece in version.split("+")[0].split("."):
        digits = re.match(r"\d+", piece)
        if digits is None:
            break
        result.append(int(digits[0]))
        if digits[0] != piece:
            break
    return tuple(result)

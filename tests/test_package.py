"""The package as others meet it: what importing it costs, what it ships, and that its parts depend
in one direction.
"""

from __future__ import annotations

import csv
import inspect
import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from inspect import signature
from itertools import pairwise
from pathlib import Path
from pkgutil import walk_packages

import pytest

import condgraph
from condgraph import samples
from condgraph.engine.values import Time

ROOT = Path(condgraph.__file__).parent


def loaded_after(statement: str) -> set[str]:
    """Top-level names of the modules that a fresh interpreter has loaded after a statement."""
    code = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_the_engine_needs_only_numpy() -> None:
    names = [module.name for module in walk_packages([str(ROOT / "engine")], "condgraph.engine.")]
    loaded = loaded_after("import " + ", ".join(["condgraph.engine", *names]))
    foreign = loaded & {"pyarrow", "rdflib", "pyoxigraph", "pandas", "polars", "pint", "typer", "rich", "click"}
    assert not foreign


def test_importing_the_package_is_cheap() -> None:
    assert not loaded_after("import condgraph") & {"numpy", "http", "ssl", "logging"}
    opened = loaded_after("import condgraph; condgraph.open('memory:')")
    assert not opened & {"pyarrow", "rdflib", "pyoxigraph", "pandas", "polars", "pint", "typer", "rich", "http", "ssl"}


def test_the_public_names_are_these() -> None:
    assert set(condgraph.__all__) == {
        "UNKNOWN",
        "Answer",
        "AsyncGraph",
        "Checked",
        "CondgraphError",
        "Entity",
        "EntityKind",
        "Evidence",
        "FunctionArgument",
        "FunctionCall",
        "FunctionRow",
        "Graph",
        "GraphSchema",
        "LoadReport",
        "Matches",
        "Member",
        "Pattern",
        "Point",
        "Quantity",
        "Ref",
        "Searched",
        "Solution",
        "Source",
        "Statement",
        "Status",
        "Step",
        "Subclass",
        "Time",
        "open",
        "open_async",
    }
    assert all(hasattr(condgraph, name) for name in condgraph.__all__)


def test_all_that_users_call_is_described() -> None:
    public = {name: getattr(condgraph, name) for name in condgraph.__all__}
    classes = {name: value for name, value in public.items() if inspect.isclass(value)}
    public.update({f"{name}.{call}": value for name, kind in classes.items() for call, value in vars(kind).items()})
    called = {name: value for name, value in public.items() if inspect.isroutine(value) or isinstance(value, property)}
    assert "Graph.ask" in called
    assert [name for name, value in called.items() if "._" not in name and not inspect.getdoc(value)] == []


def test_the_version_is_the_one_that_is_installed() -> None:
    assert metadata.version("condgraph") == condgraph.__version__


def test_the_package_is_typed() -> None:
    assert (ROOT / "py.typed").read_bytes() == b""


def test_the_changelog_knows_the_version() -> None:
    changelog = ROOT.parent / "CHANGELOG.md"
    if not changelog.exists():
        pytest.skip("the package is not in its repository")
    assert f"## [{condgraph.__version__}]" in changelog.read_text(encoding="utf-8")


def test_every_sample_has_its_sources() -> None:
    listed = (samples.FOLDER / "SOURCES.md").read_text(encoding="utf-8")
    data = {path.name for path in samples.FOLDER.iterdir() if path.suffix not in (".py", ".md") and path.is_file()}
    assert data == {sample.file for sample in samples.SAMPLES}
    assert all(f"`{name}`" in listed for name in data)


def test_the_samples_fit_together() -> None:
    with (samples.FOLDER / "mountains.csv").open(encoding="utf-8", newline="") as file:
        mountains = list(csv.DictReader(file))
    entities = json.loads((samples.FOLDER / "countries.json").read_text(encoding="utf-8"))["entities"]
    with (samples.FOLDER / "governments.tsv").open(encoding="utf-8", newline="") as file:
        terms = list(csv.DictReader(file, delimiter="\t"))
    countries = {name for name, entity in entities.items() if entity["instanceOf"] == ["country"]}
    assert {row["country"] for row in mountains} == countries
    assert {row["head"] for row in terms} <= countries
    people = {name for name, entity in entities.items() if entity["instanceOf"] == ["politician"]}
    assert people <= {row["tail"] for row in terms}
    assert len({row["mountain"] for row in mountains}) == len(mountains)
    for entity in entities.values():
        for relation in entity["relations"]:
            assert relation["object"] in entities


def test_terms_of_office_follow_each_other() -> None:
    with (samples.FOLDER / "governments.tsv").open(encoding="utf-8", newline="") as file:
        terms = list(csv.DictReader(file, delimiter="\t"))
    for before, after in pairwise(terms):
        assert Time.parse(before["start"]) <= Time.parse(before["end"])
        if before["head"] == after["head"]:
            assert Time.parse(before["end"]) <= Time.parse(after["start"])


def test_samples_are_copied_and_never_overwrite(tmp_path: Path) -> None:
    written = samples.copy_to(tmp_path / "new" / "folder")
    assert {path.name for path in written} == {"mountains.csv", "countries.json", "governments.tsv", "SOURCES.md"}
    assert samples.copy_to(tmp_path / "new" / "folder") == written
    written[-1].write_text("mine", encoding="utf-8")
    written[0].unlink()
    with pytest.raises(FileExistsError, match=r"SOURCES\.md"):
        samples.copy_to(tmp_path / "new" / "folder")
    assert not written[0].exists()
    assert written[-1].read_text(encoding="utf-8") == "mine"


def test_what_few_need_is_loaded_when_it_is_asked_for() -> None:
    code = (
        "import sys, condgraph\n"
        "early = {name for name in ('condgraph.aio', 'condgraph.patterns.matches', 'condgraph.overview.schema', "
        "'condgraph.vectors.stored', 'condgraph.languages.table.builder', 'condgraph.questions') if name in sys.modules}\n"
        "assert not early, early\n"
        "assert set(condgraph.__all__) <= set(dir(condgraph))\n"
        "assert condgraph.Matches is sys.modules['condgraph.patterns.matches'].Matches\n"
        "from condgraph import AsyncGraph\n"
        "assert AsyncGraph is sys.modules['condgraph.aio'].AsyncGraph\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        condgraph.Nothing  # noqa: B018


def test_the_readme_on_pypi_has_no_link_within_the_repository() -> None:
    """What the build makes of the README: every link is absolute, and leads to a file that is there."""
    project = ROOT.parent / "pyproject.toml"
    if not project.exists():
        pytest.skip("the package is not in its repository")
    hook = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = (ROOT.parent / "README.md").read_text(encoding="utf-8")
    for put in hook["substitutions"]:
        text = re.sub(put["pattern"], put["replacement"], text)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(links) > 20
    for link in links:
        assert link.startswith(("https://", "#")), link
        _, own, path = link.partition("/condgraph/condgraph/")
        name = path.removeprefix("blob/").removeprefix("main/").partition("#")[0]
        assert not own or (ROOT.parent / name).exists(), link
    assert "](https://raw.githubusercontent.com/condgraph/condgraph/main/docs/assets/evidence.svg)" in text


def test_results_of_packages_that_ship_no_types_are_annotated() -> None:
    """What ships types is checked in `tests/typing`."""
    from condgraph.engine.evidence import EvidenceList

    annotated = {
        condgraph.Answer.to_pandas: "pandas.DataFrame",
        condgraph.Answer.to_arrow: "pyarrow.Table",
        EvidenceList.to_networkx: "networkx.MultiDiGraph",
        EvidenceList.to_igraph: "igraph.Graph",
    }
    assert {call: signature(call).return_annotation for call in annotated} == annotated

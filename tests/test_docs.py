"""The documentation runs: every Python block of the README and of docs/, in order, page by page,
and every command line.

A page runs in a folder of its own, which holds the sample data in `samples/` and a store `world`
with all of it loaded. Where the prints of a Python block have a comment behind them, those
comments, in order, are all that the block prints; in a tutorial, a `text` block below it is. In a block marked `console`, a line
`$ condgraph ...` is run, and the lines below it are what it writes; a line `...` stands for any
number of lines. Other lines that begin with `$` are not run. A block below the comment
`<!-- not run: reason -->` is left out; one below `<!-- needs: neo4j -->` runs where the page is run
with a server, by a test of its own. Tables between `<!-- printed: NAME -->` and `<!-- end -->`
are what `docs/assets/tables.py` prints from the code.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import condgraph
from condgraph.samples import copy_to
from tests.support import commands
from tests.support.samples import load_samples

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")])
#: Pages whose examples are not run: they are not about the use of the package.
OTHERS = [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"]
TUTORIAL = ROOT / "docs" / "tutorial" / "from-a-csv-to-an-answer.md"
ARCHITECTURE = ROOT / "docs" / "explanation" / "architecture.md"

_BLOCK = re.compile(
    r"(?:<!-- (?P<mark>not run|needs): (?P<what>[^\n]+) -->\n\s*)?"
    r"^(?P<indent>[ ]*)```(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```",
    re.S | re.M,
)

_SHOWN = re.compile(r"\s*```text\n(?P<text>.*?)^```", re.S | re.M)


@dataclass
class Block:
    kind: str
    text: str
    line: int
    #: The text of a `text` block right below it.
    shown: str | None = None


def blocks_of(text: str, *, with_neo4j: bool = False) -> Iterator[Block]:
    """The fenced blocks of a page that are run, in order."""
    for found in _BLOCK.finditer(text):
        if found["mark"] == "needs":
            assert found["what"] == "neo4j"
        runs = found["mark"] is None or (found["mark"] == "needs" and with_neo4j)
        if runs and found["kind"] in ("python", "console"):
            body = re.sub(rf"^{found['indent']}", "", found["text"], flags=re.M)
            below = _SHOWN.match(text, found.end())
            yield Block(found["kind"], body, text.count("\n", 0, found.start("text")) + 1, below and below["text"])


def commands_of(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output shown below it."""
    command, shown = None, list[str]()
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("$ "):
            if command is not None:
                yield command, "\n".join(shown)
            command, shown = line[2:], []
            while command.endswith("\\"):
                command = command[:-1] + next(lines).strip()
        else:
            shown.append(line)
    if command is not None:
        yield command, "\n".join(shown)


def matches(shown: str, written: str) -> bool:
    """Whether output is what a page shows; a line `...` stands for any lines, trailing space does
    not count.
    """
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + "\n" for line in shown.splitlines())
    return re.fullmatch(pattern, "".join(line.rstrip() + "\n" for line in written.splitlines())) is not None


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample data and a store of all of it."""
    folder = tmp_path_factory.mktemp("world")
    copy_to(folder / "samples")
    with condgraph.open(folder / "world") as graph:
        load_samples(graph)
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_runs(page: Path, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(world, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_the_tutorial_runs_with_neo4j(neo4j_uri: str, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(world, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEO4J_URI", neo4j_uri)
    monkeypatch.delenv("NEO4J_URL", raising=False)
    condgraph.open(neo4j_uri, graph="tutorial").delete()
    run_page(TUTORIAL, with_neo4j=True)


def run_page(page: Path, *, with_neo4j: bool = False) -> None:
    """Run the blocks of a page in the current folder, with one set of names."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(page.read_text(encoding="utf-8"), with_neo4j=with_neo4j):
        place = f"{page.relative_to(ROOT)}:{block.line}"
        if block.kind == "python":
            written = io.StringIO()
            with contextlib.redirect_stdout(written):
                # As many empty lines before it as the page has, so that a traceback names the
                # page's line.
                exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
            promised = [line.split("# ", 1)[1] for line in block.text.splitlines() if re.match(r"\s*print\(.*\)\s+# ", line)]
            if promised:
                assert [line.rstrip() for line in written.getvalue().splitlines()] == promised, place
            elif block.shown is not None and page.parent.name == "tutorial":
                assert matches(block.shown, written.getvalue()), f"{place}\n{written.getvalue()}"
        else:
            for command, shown in commands_of(block.text):
                if command.startswith("condgraph "):
                    run_command(command, shown, place)


def run_command(command: str, shown: str, place: str) -> None:
    """Run a command line of a page, and compare what it writes with what the page shows, if it
    shows anything.
    """
    ran = commands.run(*shlex.split(command)[1:])
    written = ran.stdout + ran.stderr
    assert "Traceback" not in written, f"{place}: {command}\n{written}"
    if shown.strip():
        assert matches(shown.strip("\n"), written.strip("\n")), f"{place}: {command}\n{written}"
    else:
        assert ran.returncode == 0, f"{place}: {command}\n{written}"


def prose_of(text: str) -> list[str]:
    """The lines of a page with those of its fenced blocks empty."""
    lines, fenced = [], False
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        lines.append("" if fence or fenced else line)
        fenced ^= fence
    return lines


def anchors_of(page: Path) -> set[str]:
    """What a link may name behind `#`: the headings of a page, as GitHub writes them."""
    headings = [line.lstrip("#") for line in prose_of(page.read_text(encoding="utf-8")) if re.match(r"#+ ", line)]
    return {re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere() -> None:
    dead = []
    for page in [*PAGES, *OTHERS]:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", "\n".join(prose_of(page.read_text(encoding="utf-8")))):
            there = page.parent / target if target else page
            if "://" in target or target.startswith("mailto:"):
                continue
            if not there.exists() or (anchor and anchor not in anchors_of(there)):
                dead.append(f"{page.relative_to(ROOT)}: {target}#{anchor}")
    assert not dead


def test_pages_that_code_names_are_there() -> None:
    """In docstrings, comments and messages of the whole repository."""
    missing = []
    for folder in ("condgraph", "tests", "benchmarks", "tools", "docker", ".ci", ".github"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".yaml", ".yml", ".sh", "") and path.is_file():
                for name in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text(encoding="utf-8")):
                    if not (ROOT / name).exists():
                        missing.append(f"{path.relative_to(ROOT)}: {name}")
    assert not missing


def test_prose_is_wrapped() -> None:
    """At 100 columns; tables, headings, pictures and what has no space to break at are as long as they are."""
    long = []
    for page in [*PAGES, *OTHERS]:
        for at, line in enumerate(prose_of(page.read_text(encoding="utf-8")), 1):
            breaks = " " in line.strip().removeprefix("- ")
            if len(line) > 100 and breaks and not line.startswith(("|", "#", "!", "    ")):
                long.append(f"{page.relative_to(ROOT)}:{at}")
    assert not long


def test_the_way_of_a_program_is_as_the_page_says() -> None:
    """Each step of the page on architecture names a function that its file has, in fewer than eight
    files.
    """
    steps = re.findall(r"^\| \d+ \| \[[^]]+\]\(([^)]+)\) \| `(\w+)` \|", ARCHITECTURE.read_text(encoding="utf-8"), re.M)
    assert 4 < len(steps) < 8
    for path, function in steps:
        text = (ARCHITECTURE.parent / path).read_text(encoding="utf-8")
        assert re.search(rf"^ *(?:def|class) {function}\b", text, re.M), f"{path} has no {function}"


def script(path: Path) -> ModuleType:
    """A script of the repository as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up while they are made.
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[path.stem]
    return module


def test_printed_parts_are_up_to_date() -> None:
    tables = script(ROOT / "docs" / "assets" / "tables.py")
    printed = {name for path in (ROOT / "docs").glob("**/*.md") for name in tables.parts_of(path.read_text(encoding="utf-8"))}
    assert printed == set(tables.TABLES)
    stale = [path.name for path, text, fresh in tables.pages() if text != fresh]
    assert not stale, f"python docs/assets/tables.py writes these pages anew: {', '.join(stale)}"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").glob("*/*.md")}
    assert pages == set(re.findall(r"\]\(([\w-]+/[\w-]+\.md)\)", index))


def test_results_become_a_page(tmp_path: Path) -> None:
    results = script(ROOT / "benchmarks" / "results.py")
    both = {
        "machine": {"cpu": "x", "host": "secret"},
        "results": [
            {"name": "scale", "title": "Size", "columns": ["n", "ms"], "rows": [[1000000, 0.1234]], "notes": "linear"},
            {"name": "kopl", "title": "KoPL", "columns": ["kind", "ms"], "rows": [{"ms": 2.0, "kind": "a|b"}]},
        ],
    }
    (tmp_path / "all.json").write_text(json.dumps(both), encoding="utf-8")
    page = results.page(list(results.results_of(tmp_path / "all.json")))
    assert page.startswith(results.HEAD)
    assert page.index("## KoPL") < page.index("## Size")
    assert "| a\\|b | 2 |" in page
    assert "| 1,000,000 | 0.123 |" in page
    assert "cpu x." in page
    assert "secret" not in page
    old = results.put_together(["KoPL programs\n\n| all 7 programs, total | 20 | 4 | 5 | 1 | 1 |"])
    assert "- 7 KoPL programs take 4 ms, 5 times faster than the KoPL package (20 ms)." in old
    assert results.kept(page, old).count("## In short") == 1
    (tmp_path / "bad.json").write_text('{"title": "x", "columns": ["a"], "rows": [[1, 2]]}', encoding="utf-8")
    with pytest.raises(results.BadResultError, match=r"bad\.json: a row has 2 cells"):
        list(results.results_of(tmp_path / "bad.json"))


def test_blocks_are_found() -> None:
    skipped = "<!-- not run: needs a server -->\n```python\ny\n```\n<!-- needs: neo4j -->\n```python\nz\n```\n"
    page = f"a\n```python\nx = 1\n```\n{skipped}  ```console\n  $ condgraph x \\\n    y\n  z\n  ```\n"
    assert [(block.kind, block.text, block.line) for block in blocks_of(page)] == [
        ("python", "x = 1\n", 3),
        ("console", "$ condgraph x \\\n  y\nz\n", 14),
    ]
    assert [block.text for block in blocks_of(page, with_neo4j=True)][1] == "z\n"
    assert list(commands_of("$ condgraph x \\\n  y\nz\n$ ls\n")) == [("condgraph x y", "z"), ("ls", "")]


def test_output_is_compared() -> None:
    assert matches("a\n...\nd", "a  \nb\nc\nd\n")
    assert matches("a\n...\nd", "a\nd\n")
    assert not matches("a\n...\nd", "a\nb\n")
    assert not matches("a.c", "abc\n")


def test_every_promise_of_security_has_tests() -> None:
    table = (ROOT / "SECURITY.md").read_text(encoding="utf-8").partition("## What is protected")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 10
    for part, promise, *files in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)`", " ".join(files))
        assert named, (part, promise)
        for name in named:
            assert "\ndef test_" in (ROOT / name).read_text(encoding="utf-8"), name


def test_names_of_the_glossary_are_in_the_code() -> None:
    rows = re.findall(r"^\| ([\w ]+) \| .* \| `([\w.]+)` \|$", (ROOT / "docs/explanation/glossary.md").read_text("utf-8"), re.M)
    assert len(rows) > 40
    for _, name in rows:
        module, _, attribute = name.rpartition(".")
        assert importlib.util.find_spec(module) is not None, name
        assert hasattr(importlib.import_module(module), attribute) or importlib.util.find_spec(name), name

"""Loads in bounded memory: the same bytes as in memory, whatever is spilled; and what is left of one that ended early."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph import spilling
from condgraph.engine.errors import CondgraphError, LoadError, OptionError, StoreError, UnsupportedError
from condgraph.engine.facts import Source
from condgraph.engine.snapshot import spill
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.directory import graph_directory
from condgraph.engine.snapshot.layout import lay_out
from condgraph.loaders.folder import items as folder_items
from condgraph.loaders.table import joins
from condgraph.loaders.table.text import TextTable
from condgraph.samples import SAMPLES
from condgraph.spilling import SpillingBuilder, memory_bound
from tests.snapshot.test_killed import kill_before
from tests.support import graphs
from tests.support.canonical import contents_of
from tests.support.changing import items as changing_items
from tests.support.commands import run
from tests.support.lanes import by_lane
from tests.support.untidy_graphs import dynasty, museum, parts

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

BOUND = "512 MiB"
MOUNTAINS = next(sample.path for sample in SAMPLES if sample.path.name == "mountains.csv")


@pytest.fixture
def spilling_often(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Runs of some kilobytes each; how many there were in each load."""
    runs: list[int] = []
    begin, end = SpillingBuilder.__init__, SpillingBuilder.lay_out

    def small(self: SpillingBuilder, folder: Path, memory: int, run: int | None = None) -> None:
        begin(self, folder, memory, run or 20_000)

    def counted(self: SpillingBuilder) -> Any:
        found = end(self)
        runs.append(len(self.runs))
        return found

    monkeypatch.setattr(SpillingBuilder, "__init__", small)
    monkeypatch.setattr(SpillingBuilder, "lay_out", counted)
    monkeypatch.setattr(spilling, "_ITEMS", 50)
    monkeypatch.setattr(spill, "ROWS", 500)
    monkeypatch.setattr(spill, "ROWS", 500)
    return runs


def bytes_of(store: Path) -> tuple[bytes, dict[str, Any]]:
    """The columns of the only graph, and its manifest without moments."""
    folder = graph_directory(store, "default")
    manifest = json.loads((folder / "manifest.json").read_bytes().partition(b"\n")[2])
    columns = (folder / manifest["generation"] / "columns").read_bytes()
    assert not (folder / "spill").exists()
    return columns, {name: value for name, value in manifest.items() if name not in ("written", "loads")}


def check_same(folder: Path, *sources: str | Path, **options: Any) -> None:
    """Load sources one after the other, with and without a bound."""
    reports = []
    for name, bound in (("whole", None), ("parts", BOUND)):
        graph = condgraph.open(folder / name)
        reports.append([graph.load(source, memory=bound, **options) for source in sources])
        graph.status(verify=True)
    assert bytes_of(folder / "whole") == bytes_of(folder / "parts")
    for whole, part in zip(*reports, strict=True):
        assert (whole.warnings, whole.added, whole.statements) == (part.warnings, part.added, part.statements)


# -- the same bytes ----------------------------------------------------------------------------------


def random_sources(seed: int) -> list[tuple[str, list[Any]]]:
    """Ugly things from some sources, of which two may have one name."""
    dice = random.Random(seed)
    makers = (
        lambda: changing_items(dice),
        lambda: graphs.graph(graphs.Dice(seed)),
        lambda: dice.choice((museum, dynasty, parts))(dice.randrange(10**6)),
    )
    return [(dice.choice("abc"), dice.choice(makers)()) for _ in range(dice.randint(1, 4))]


@pytest.mark.parametrize("seed", range(by_lane(4, 60, 200)))
def test_random_things(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    monkeypatch.setattr(spilling, "_ITEMS", 20)
    rows = dice.choice((7, 100, 100_000))
    for module in (spill,):
        monkeypatch.setattr(module, "ROWS", rows)
    whole, part = Builder(), SpillingBuilder(tmp_path / "spill", 1 << 30, dice.choice((1, 5_000, 40_000)))
    for builder in (whole, part):
        for name, items in random_sources(seed):
            builder.begin(Source(name, "", "api"))
            builder.add(items)
        builder.finish()
    wanted, counts = lay_out(whole)
    found, found_counts = part.lay_out()
    assert list(found) == list(wanted)
    for name, column in wanted.items():
        assert found[name].dtype == column.dtype, name
        np.testing.assert_array_equal(found[name], column, name)
    assert (found_counts, part.warnings) == (counts, whole.warnings)
    part.files.close()
    assert not (tmp_path / "spill").exists()


def test_samples_one_after_the_other(tmp_path: Path, spilling_often: list[int]) -> None:
    """Also a graph that is there already is read in parts, and added to."""
    # The path is one that DuckDB would take for a pattern.
    folder = tmp_path / "it's [a] *strange* place? {ü}"
    read = [sample.path for sample in SAMPLES if sample.path.suffix != ".json"]
    table = tmp_path / "more.csv"
    table.write_text("mountain,height\n" + "".join(f"Peak {i % 90},{i} m\n" for i in range(300)), "utf-8")
    check_same(folder, *read, table)
    for name, bound in (("whole", None), ("parts", BOUND)):
        condgraph.open(folder / name).load(read[0], name="more", append=True, memory=bound)
    assert bytes_of(folder / "whole") == bytes_of(folder / "parts")
    assert min(spilling_often) > 0
    assert max(spilling_often) > 5


def test_a_text_that_a_second_name_alone_has(tmp_path: Path, spilling_often: list[int]) -> None:
    """A name that a source gives second is no text of the graph, though it was spilled with another run."""
    lines = [json.dumps({"condgraph": 1, "graph": "g", "sources": [{"name": "s", "location": "", "format": "api"}]})]
    for number in range(400):
        lines.append(json.dumps({"entity": f"Q{number % 100}", "name": f"name {number}", "kind": "entity", "src": [["s", 0]]}))
    path = tmp_path / "names.jsonl"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    check_same(tmp_path, path)
    assert spilling_often[0] > 3


@pytest.fixture
def keys_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are in files at once, whose hashes say little, and chunks have few rows."""
    monkeypatch.setattr(joins, "_MAX_IN_MEMORY", 7)
    monkeypatch.setattr(joins, "_FEW", 3)
    monkeypatch.setattr(joins, "_SORTED", 100)
    monkeypatch.setattr(joins, "hash", lambda text: len(text) % 3 - 1, raising=False)
    monkeypatch.setattr(folder_items, "_MAX_LOOKED_UP", 20)
    chunks = TextTable.chunks
    monkeypatch.setattr(TextTable, "chunks", lambda self, report, names, most=0: chunks(self, report, names, most or 30))


@pytest.mark.parametrize("seed", range(by_lane(2, 10, 40)))
@pytest.mark.usefixtures("keys_in_files")
def test_keys_of_rows(seed: int, tmp_path: Path, spilling_often: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that come again, are missing, or are only nearly what cells say."""
    dice = random.Random(seed)
    monkeypatch.setattr(joins, "_MAX_IN_MEMORY", dice.choice((1, 7, 60)))
    monkeypatch.setattr(joins, "_SORTED", dice.choice((2, 100)))
    paths = [tmp_path / f"staff-{part}.csv" for part in (1, 2)]
    for path in paths:
        rows = [
            ",".join(
                f'"{cell}"' for cell in (_ugly(dice), _ugly(dice), _ugly(dice), f"{_ugly(dice)};{_ugly(dice)}", dice.randrange(9))
            )
            for _ in range(400)
        ]
        path.write_text("\n".join(["id,boss,friend,peers,size", *rows]) + "\n", "utf-8")
    options = {"key": "id", "refs": ["friend", "peers"], "join": {"boss": "staff.id"}, "on_error": "skip", "name": "staff"}
    reports = []
    for name, bound in (("whole", None), ("parts", BOUND)):
        graph = condgraph.open(tmp_path / name)
        for path, append in zip(paths, (False, True), strict=True):
            reports.append(graph.load(path, memory=bound, append=append, **options))
        graph.status(verify=True)
        reports.append(graph.load(paths[0], memory=bound, **options | {"name": "other", "join": {"boss": "staff.id"}}))
        with pytest.raises(LoadError) as error:
            graph.load(paths[1], memory=bound, **options | {"name": "third", "on_error": "raise", "join": None})
        reports.append(str(error.value))
    half = len(reports) // 2
    for whole, part in zip(reports[:half], reports[half:], strict=True):
        if isinstance(whole, str):
            assert part == whole
        else:
            assert (part.problems, part.warnings, part.skipped) == (whole.problems, whole.warnings, whole.skipped)
            assert part.skipped > 20
    assert bytes_of(tmp_path / "whole") == bytes_of(tmp_path / "parts")


@pytest.mark.parametrize("seed", range(by_lane(1, 10, 60)))
@pytest.mark.usefixtures("keys_in_files")
def test_tables_that_refer_to_each_other(seed: int, tmp_path: Path, spilling_often: list[int]) -> None:
    """A folder of tables, and one of its tables alone before it and after it, whose references are guessed or declared."""
    dice = random.Random(seed)
    ids = [_ugly(dice) for _ in range(80)] if dice.random() < 0.3 else [f"{dice.choice(('K', 'é'))}{at}" for at in range(80)]
    tables: dict[str, list[tuple[Any, ...]]] = {
        "customer_id,name,boss": [(ident, f"name {dice.randrange(60)}", dice.choice(ids)) for ident in ids],
        "order_id,customer_id,amount": [(f"O{at}", dice.choice((*ids, _ugly(dice))), dice.choice("12x")) for at in range(120)],
        "order_id,product_id,amount": [(f"O{dice.randrange(130)}", f"p{dice.randrange(25)}", at % 3) for at in range(100)],
        "product_id,name": [(f"P{at}.0" if at % 2 else f"p{at}", f"product {at}") for at in range(22)],
        "customer_id,product_id": [(dice.choice(ids), f"p{2 * dice.randrange(11)}") for _ in range(90)],
    }
    place = tmp_path / "shop"
    place.mkdir()
    for name, (head, rows) in zip(("customers", "orders", "lines", "products", "likes"), tables.items(), strict=True):
        text = "\n".join([head, *(",".join(f'"{cell}"' for cell in row) for row in rows)])
        (place / f"{name}.csv").write_text(dice.choice(("", "\ufeff")) + text + "\n", "utf-8")
    joins = {"orders.customer_id": "customers.customer_id", "lines.product_id": "products.product_id"}
    said: dict[str, Any] = dice.choice(({}, {"join": joins}, {"relations": {"lines": True}}, {"join": False}))
    early: dict[str, Any] = dice.choice(({"join": {"customer_id": "shop/customers.customer_id"}}, {"refs": ["customer_id"]}))
    orders = place / "orders.csv"
    loads = [
        (orders, early | {"key": "order_id", "name": "early"}),
        (place, said),
        (orders, {"key": "order_id", "name": "late", "join": {"customer_id": "customers"}}),
        (place / "customers.csv", {"key": "customer_id", "name": "more", "refs": ["boss"]}),
        (place / "customers.csv", {"key": "customer_id", "name": "late", "refs": ["boss"], "append": True}),
    ]
    loads = [load for load in loads if load[1] is said or dice.random() < 0.6]
    reports = []
    for name, bound in (("whole", None), ("parts", BOUND)):
        graph = condgraph.open(tmp_path / name)
        for source, options in loads:
            try:
                report = graph.load(source, memory=bound, on_error="skip", **options)
                reports.append((report.problems, report.warnings, report.skipped, report.joins))
            except CondgraphError as error:
                reports.append(str(error))
    assert reports[: len(loads)] == reports[len(loads) :]
    assert bytes_of(tmp_path / "whole") == bytes_of(tmp_path / "parts")


def _ugly(dice: random.Random) -> str:
    """A cell that is a key often, or nearly."""
    text = f"{dice.choice(('k', 'K', 'é', '0', '𝄞 '))}{dice.randrange(90)}"
    return dice.choice((text, text, text, text.upper(), f"  {text} ", "n/a" if dice.random() < 0.1 else text))


@pytest.mark.data
@pytest.mark.slow
def test_whole_graphs(oracle: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle's graph, and statements with qualifiers of Wikidata, each in many runs."""
    begin = SpillingBuilder.__init__
    monkeypatch.setattr(SpillingBuilder, "__init__", lambda self, folder, memory: begin(self, folder, memory, 2 << 20))
    memory = condgraph.open("memory:")
    memory.load(oracle / "kb.json")
    memory.export(tmp_path / "oracle.jsonl")
    for name, path in (("oracle", tmp_path / "oracle.jsonl"), ("wd50k", data / "wd50k" / "derived_labelled_statements.tsv")):
        check_same(tmp_path / name, path)


# -- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "says"),
    [
        ("2 apples", "a size such as '2 GiB'"),
        ("", "a size such as '2 GiB'"),
        ("-2 GiB", "a size such as '2 GiB'"),
        ("1e99 GiB", "a size such as '2 GiB'"),
        (2.5, "a size such as '2 GiB'"),
        (True, "a size such as '2 GiB'"),
        ("1 KB", "512 MiB or more, not '1 KB'"),
        (0, "512 MiB or more, not 0"),
    ],
)
def test_bounds_that_are_none(memory: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=says):
        condgraph.open(tmp_path).load(MOUNTAINS, memory=memory)


def test_sizes() -> None:
    sizes = {"2 GiB": 2 << 30, "800MB": 800_000_000, " 1.5 gib ": 3 << 29, "1073741824": 1 << 30, 1 << 30: 1 << 30}
    assert {text: memory_bound(text) for text in sizes} == sizes  # type: ignore[arg-type]


def test_what_has_no_bound(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"memory:.*does not support: memory="):
        condgraph.open("memory:").load(MOUNTAINS, memory=BOUND)
    with pytest.raises(UnsupportedError, match=r"the dataframe loader.*reads sources whole"):
        condgraph.open(tmp_path / "a").load([{"a": "b"}], memory=BOUND)
    graph = condgraph.open(tmp_path / "b")
    graph.load(MOUNTAINS, name="m")
    with pytest.raises(UnsupportedError, match="replace="):
        graph.load(MOUNTAINS, name="m", replace=True, memory=BOUND)
    graph.add("Eiger", "first ascent", "1858")
    with pytest.raises(UnsupportedError, match="single changes"):
        graph.load(MOUNTAINS, name="n", memory=BOUND)
    assert not (tmp_path / "b" / "default" / "spill").exists()


def test_on_the_command_line(tmp_path: Path) -> None:
    assert run("load", tmp_path / "a", MOUNTAINS, "--memory", "1 GiB", "-q").returncode == 0
    condgraph.open(tmp_path / "b").load(MOUNTAINS)
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")
    refused = run("load", tmp_path / "a", MOUNTAINS, "--memory", "2 apples")
    assert refused.returncode == 2
    assert "2 apples" in refused.stderr


# -- loads that end early ----------------------------------------------------------------------------

forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def load_in_a_fork(store: Path, path: Path, prepare: Any) -> int:
    """Load in another process, after a preparation; its exit status: 0 loaded, 3 a typed error, less than 0 a signal."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            graph = condgraph.open(store)
            prepare()
            graph.load(path, memory=BOUND)
            status = 0
        except StoreError as error:
            status = 3 if "cannot be written" in str(error) and error.hint else 4
        finally:
            os._exit(status)
    _, how = os.waitpid(child, 0)
    return -os.WTERMSIG(how) if os.WIFSIGNALED(how) else os.WEXITSTATUS(how)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of some thousand statements."""
    path = tmp_path / "people.csv"
    rows = (f"p{i},person {i % 300},{i % 50} m,19{i % 90 + 10}-01-0{i % 9 + 1}" for i in range(500))
    path.write_text("id,name,height,born\n" + "\n".join(rows) + "\n", "utf-8")
    return path


@forking
def test_killed_at_any_moment(table: Path, tmp_path: Path, spilling_often: list[int]) -> None:
    """The old graph is there or the new one, and the next load removes what was spilled."""
    old = condgraph.open(tmp_path / "old")
    old.load(MOUNTAINS)
    new = condgraph.open(tmp_path / "new")
    new.load(MOUNTAINS)
    new.load(table)
    states = [contents_of(old), contents_of(new)]
    seen, spilled = set(), 0
    number, step = 1, by_lane(60, 3, 1)
    while True:
        store = tmp_path / str(number)
        condgraph.open(store).load(MOUNTAINS)
        status = load_in_a_fork(store, table, lambda number=number: kill_before(number))
        assert status in (0, -signal.SIGKILL)
        folder = graph_directory(store, "default")
        spilled += (folder / "spill").exists()
        graph = condgraph.open(store)
        graph.status(verify=True)
        seen.add(states.index(contents_of(graph)))
        graph.add([condgraph.Statement("s1", "more", "text")])
        assert sorted(one.name for one in folder.iterdir() if not one.name.startswith("g0")) == ["lock", "manifest.json"]
        if status == 0:
            break
        number += step
    assert spilled > 1
    assert seen == {0, 1}


@forking
@pytest.mark.skipif(sys.platform == "win32", reason="files have no limits there")
def test_a_full_disk(table: Path, tmp_path: Path, spilling_often: list[int]) -> None:
    """The system refuses to write more of a file: a typed error, the old graph stays, and nothing of the spill is left."""
    import resource

    store = tmp_path / "store"
    graph = condgraph.open(store)
    graph.load(MOUNTAINS)
    before = contents_of(graph)

    def limited(size: int) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    for size in (100, 3_000, 15_000):
        assert load_in_a_fork(store, table, lambda size=size: limited(size)) == 3
        assert contents_of(condgraph.open(store)) == before
        assert not (graph_directory(store, "default") / "spill").exists()
    assert load_in_a_fork(store, table, lambda: limited(10_000_000)) == 0
    assert contents_of(condgraph.open(store)) != before


def test_a_source_that_breaks_off(tmp_path: Path, spilling_often: list[int]) -> None:
    path = tmp_path / "facts.nt"
    path.write_text("<http://x/a> <http://x/p> <http://x/b> .\n" * 200 + "<http://x/a> broken\n", "utf-8")
    with pytest.raises(LoadError):
        condgraph.open(tmp_path / "store").load(path, memory=BOUND)
    assert not (graph_directory(tmp_path / "store", "default") / "spill").exists()


def test_what_a_killed_load_left_is_removed_by_name(tmp_path: Path) -> None:
    """The files that DuckDB 1 and 2 leave, too; a file of somebody else stays."""
    condgraph.open(tmp_path).load(MOUNTAINS)
    spill = graph_directory(tmp_path, "default") / "spill"
    for left in (["texts.parquet"], ["duckdb_temp_21202_0_storage_DEFAULT-0.tmp", "run-0.npz", "notes.txt"]):
        spill.mkdir(exist_ok=True)
        for name in ["duckdb_temp_storage_S96K-0.tmp", "duckdb_temp_block-7.block", "tmp_sorted-1.parquet", "ids.column", *left]:
            (spill / name).touch()
        condgraph.open(tmp_path).add([condgraph.Statement("s1", "more", str(left))])
        assert [one.name for one in spill.iterdir()] == ["notes.txt"] if "notes.txt" in left else not spill.exists()

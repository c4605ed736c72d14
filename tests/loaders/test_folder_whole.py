"""Folders of tables are read column by column: what comes of that is, byte for byte, what comes of
reading cell by cell, and of their items taken one by one.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph.engine.bounds import different
from condgraph.engine.errors import CondgraphError
from condgraph.engine.facts import (
    MANY,
    Batch,
    Entity,
    EntityKind,
    Ids,
    Item,
    Member,
    Members,
    Numbers,
    Ref,
    Rows,
    Source,
    Sourced,
    Statement,
    Values,
)
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.loaders.export import one_by_one, write
from condgraph.loaders.folder import items
from condgraph.loaders.table import text
from tests.support.lanes import by_lane

TABLES = ("customers", "orders", "products", "categories", "lines", "people")
_CELLS = {
    "name": lambda r, i: r.choice((f"name {i}", f"{i} Street, 5", "", "NULL", "same")),
    "word": lambda r, i: r.choice(("north", "south", "May 5", "n/a", " a  b ", "été", "5 km", 'say "x"')),
    "whole": lambda r, i: str(r.randrange(-50, 5_000)),
    "decimal": lambda r, i: f"{r.randrange(10**6) / 100:.2f}",
    "mixed": lambda r, i: r.choice(("1", "2.50", "", "-", "three", "1999", "4:30")) if i % 5 == 0 else str(i),
    "comma": lambda r, i: f"{r.randrange(10**4)},{r.randrange(10)}",
    "day": lambda r, i: f"20{r.randrange(10, 24)}-{r.randrange(1, 13):02d}-{r.randrange(1, 29):02d}",
    "odd": lambda r, i: r.choice(("2020-02-30", "2020-01-01", "03/05/2010", "1.234", "007", "1'000")),
    "type": lambda r, i: "likes",
}


def _keys(draw: random.Random, rows: int, ugly: bool) -> list[str]:
    """The cells of a column of keys."""
    way = draw.choice(("number", "code", "text", "long"))
    keys = [{"number": str(at + 1), "code": f"K{at}", "text": f"Key no. {at}", "long": str(10**14 + at)}[way] for at in range(rows)]
    if ugly and rows:
        for _ in range(draw.randrange(3)):
            keys[draw.randrange(rows)] = draw.choice(("", "NULL", keys[0], " K  1 ", "a+b", "K\\1", "ß", "-"))
    return keys


def _pointing(draw: random.Random, keys: list[str], rows: int, ugly: bool) -> list[str]:
    """The cells of a column of references."""
    pointed = ugly and draw.random() < 0.3
    found = []
    for _ in range(rows):
        key = draw.choice(keys) if keys else "1"
        if pointed and key.isdigit():
            key += ".0"
        if ugly and draw.random() < 0.1:
            key = draw.choice(("", "NULL", "lost", "99999", f" {key} ", "n/a"))
        found.append(key)
    return found


def make(folder: Path, seed: int) -> dict[str, Any]:
    """A folder of random tables, ugly ones with odd seeds; the options of its load."""
    draw = random.Random(seed)
    ugly = seed % 2 == 1
    options: dict[str, Any] = {"on_error": "skip"}
    names = draw.sample(TABLES, draw.randrange(2, 7))
    stems = {name: {"people": "person", "categories": "category"}.get(name, name[:-1]) for name in names}
    keys = {name: _keys(draw, draw.choice((0, 1, 7, 260, 1_300) if ugly else (7, 260, 2_300)), ugly) for name in names}
    declared: list[str] = []
    for name in names:
        rows = len(keys[name])
        columns: dict[str, list[str]] = {}
        others = draw.sample([one for one in names if one != name], draw.randrange(0, min(3, len(names))))
        if draw.random() < 0.85:
            columns[draw.choice(("id", f"{stems[name]}ID"))] = keys[name]
        for other in others:
            columns[f"{stems[other]}{draw.choice(('_id', 'ID', ''))}"] = _pointing(draw, keys[other], rows, ugly)
        if draw.random() < 0.3:
            columns["parent"] = _pointing(draw, keys[name], rows, ugly)
            if "id" in columns and draw.random() < 0.7:
                options.setdefault("join", {})[f"{name}.parent"] = f"{name}.id"
        kinds = draw.sample(list(_CELLS), draw.randrange(0, 5))
        if draw.random() < 0.25 and len(others) == 2:
            kinds = draw.choice(([], ["type"], kinds))
            columns.pop("id", None)
            options.get("join", {}).pop(f"{name}.parent", None)
            if draw.random() < 0.5:
                options.setdefault("relations", {})[name] = draw.choice((True, "is with", False))
        for kind in kinds:
            columns[kind if kind == "type" else f"{kind} x"] = [_CELLS[kind](draw, at) for at in range(rows)]
        if not columns:
            columns["only"] = keys[name]
        headers = list(columns)
        if draw.random() < 0.2 and len(headers) > 1:
            options.setdefault("primary", {})[name] = draw.choice(([headers[0]], headers[:2]))
        if draw.random() < 0.2:
            options.setdefault("name_columns", {})[name] = draw.choice(headers)
        if draw.random() < 0.15:
            options.setdefault("types", {})[f"{name}.{headers[-1]}"] = draw.choice(("text", "number", "time"))
        if others and draw.random() < 0.08:
            declared.append(f"{json.dumps(f'{name}.{headers[-1]}')} = {json.dumps(others)}")
        _write(folder / f"{name}.csv", columns, draw, ugly)
    if declared and draw.random() < 0.5:
        (folder / "condgraph.toml").write_text("[joins]\n" + "\n".join(declared) + "\n")
    if draw.random() < 0.1:
        options["missing"] = ["same", "K3", "7"]
    if draw.random() < 0.2:
        options["on_error"] = "raise"
    return options


def _write(path: Path, columns: dict[str, list[str]], draw: random.Random, ugly: bool) -> None:
    how: dict[str, Any] = {"lineterminator": draw.choice(("\n", "\r\n")), "delimiter": draw.choice(",,;\t")}
    how["quoting"] = csv.QUOTE_ALL if draw.random() < 0.2 else csv.QUOTE_MINIMAL
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, **how)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    lines = stream.getvalue().encode().splitlines(keepends=True)
    if ugly and draw.random() < 0.3:
        lines.insert(
            draw.randrange(1, len(lines) + 1), draw.choice((b"too,many;fields\there,x\n", b"\xff\xfe\n", b"\n", b'"open\n'))
        )
    path.write_bytes(b"".join(lines))


def loaded(source: Path, options: dict[str, Any], before: Iterable[Path] = (), **more: Any) -> tuple[Any, ...]:
    """All that a load gives: arrays, the export, problems, counts."""
    with condgraph.open("memory:") as graph:
        for one in before:
            graph.load(one)
        try:
            report = graph.load(source, format="folder", **options, **more)
        except CondgraphError as error:
            return (str(error),)
        out = io.StringIO()
        graph.export(out)
        arrays = graph.current.arrays
        content = {name: (arrays.get(name).dtype.str, arrays.get(name).tobytes()) for name in arrays.names}
        said = [str(problem) for problem in report.problems]
        return content, out.getvalue(), said, report.warnings, report.statements, report.skipped


def _by_cell(patch: pytest.MonkeyPatch) -> None:
    def singles(self: Builder, found: Iterable[Item]) -> None:
        for item in found:
            every = one_by_one(item) if isinstance(item, MANY) else (item,)
            real(self, every)

    real = Builder._add
    patch.setattr(Builder, "_add", singles)
    patch.setattr(text, "columns_of", lambda *rest: None)
    patch.setattr(items, "_CELLS_IN_MEMORY", 0)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_ROWS_A_CHUNK", 1_000)


@pytest.mark.parametrize("seed", range(by_lane(6, 16, 16)))
def test_random_folders(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    options = make(folder, seed)
    before = [folder] if seed % 5 == 4 and options["on_error"] == "skip" else []
    whole = loaded(folder, options, before, **({"replace": True} if before else {}))
    with monkeypatch.context() as patch:
        _by_cell(patch)
        assert loaded(folder, options, before, **({"replace": True} if before else {})) == whole


@pytest.mark.parametrize(
    "before",
    [
        (),
        (Statement("x", "knows", Ref("t/2")), Batch(["t/3", "y"], "knows", Ids(["t/1", "t/3"]), [1, 2])),
        (Entity("t/1", "uno"), Statement("t/2", "says", "x")),
        (Entity("t/2", "t/2", EntityKind.CONCEPT), Rows(("t/3",), ["drei"], [9], "w")),
        (Sourced(Entity("t/3", "tres"), (("u", 4),)), Member("t/2", "t/3", 1), Rows(("t/2", "t/2"), ["a", "b"], [7, 8], "u")),
    ],
)
def test_what_stands_side_by_side_is_what_comes_one_by_one(before: tuple[Item, ...]) -> None:
    many: list[Item] = [
        *before,
        Rows(("t/1", "t/2"), ["one", "t/2"], [1, 2], "t"),
        Members(("t/1", "t/2"), "t", [1, 2], "t"),
        Rows(("t/3", "t/3"), ["three", "drei"], [3, 4]),
        Batch(["t/1", "t/3"], "costs", Numbers(np.array([5, 6])), [1, 3], ["5.0", None], source="t"),
        Batch(["t/1", "t/2"], "says", Values(["a  b", Ref("t/1")]), [1, 2], qualifiers=[("at", [None, "x"])], source="u"),
        Members(["t/3"], "t", [3]),
        Members([], "nothing", [], "v"),
    ]
    single = [one for item in many for one in (one_by_one(item) if isinstance(item, MANY) else (item,))]

    def laid(found: list[Item]) -> Any:
        builder = Builder()
        builder.begin(Source("here"))
        builder.add(found)
        return builder.warnings, builder.statements, {name: column.tolist() for name, column in lay_out(builder)[0].items()}

    assert laid(many) == laid(single)
    lines: list[str] = []
    for found in (many, single):
        stream = io.StringIO()
        assert write(found, stream) == len(single) + 1
        lines.append(stream.getvalue())
    assert lines[0] == lines[1]


def test_different_numbers_are_those_of_numpy() -> None:
    numbers = np.random.default_rng(3).integers(-50, 50, 400)
    assert different(numbers).tolist() == np.unique(numbers).tolist()
    assert different(numbers[:0]).tolist() == []


def test_rows_that_stay_in_memory_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, 2)
    opened: list[Any] = []
    real = text.TextTable.chunks

    def counted(self: Any, *rest: Any) -> Any:
        opened.append(self.path)
        return real(self, *rest)

    monkeypatch.setattr(text.TextTable, "chunks", counted)
    loaded(tmp_path, {})
    once = len(opened)
    assert once == len(set(opened)) > 1
    monkeypatch.setattr(items, "_CELLS_IN_MEMORY", 0)
    loaded(tmp_path, {})
    assert len(opened) >= 3 * once


_DECLARED = """
[tables.lines]
key = ["order", "line"]
[tables.parts]
key = "id"
name = "title"
[tables.people]
key = "id"
[tables.parcels]
key = "note"
[tables.links]
relation = "knows"
type = "how"
[joins]
"parcels.(order, line)" = "lines.(order, line)"
"parcels.thing" = ["parts", "people"]
"parcels.title" = "parts.title"
"people.boss" = "people"
"links.one" = ["people", "parts"]
"links.other" = "people"
"links.third" = ["parts", "people"]
"""


@pytest.mark.parametrize("seed", range(4))
def test_what_is_declared(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    ids = ["", "NULL", " 3 ", "3.0", "x+y", "lost", *map(str, range(1, 40))]
    tables = {
        "lines": ["order,line,price", *(f"{at // 3},{at % 3},{at / 4}" for at in range(60)), ",1,2"],
        "parts": ["id,title,weight", *(f"{at},part {at},{at} kg" for at in range(1, 30)), "x+y,part x,heavy", ",none,1"],
        "people": ["id,boss,born", *(f"{at},{draw.choice(ids)},{1900 + at}" for at in range(20, 60))],
        "parcels": ["order,line,thing,title,note"],
        "links": ["one,other,third,how,since,note"],
    }
    for at in range(300):
        tables["parcels"].append(f"{draw.randrange(22)},{draw.randrange(4)},{draw.choice(ids)},part {draw.randrange(35)},n{at}")
        ends = f"{draw.choice(ids)},{draw.choice(ids[-20:])},{draw.choice(ids)}"
        how, since = draw.choice(("likes", "NULL", "hates")), draw.choice(("2001", "1999-01-02", "once"))
        tables["links"].append(f"{ends},{how},{since},{at % 3}")
    tables["parcels"].insert(20, tables["parcels"][7])
    for name, lines in tables.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "condgraph.toml").write_text(("guess = false\n" if seed % 2 else "") + _DECLARED)
    whole = loaded(tmp_path, {"on_error": "skip"})
    assert len(whole) == 6, whole
    assert whole[5] > 100
    with monkeypatch.context() as patch:
        _by_cell(patch)
        assert loaded(tmp_path, {"on_error": "skip"}) == whole
    said = " ".join(whole[2])
    for message in ("is already in row", "the row has no key", "key of several tables", "nothing to relate", "the cells are kept"):
        assert message in said

"""Real data sets through `load`: as much as the files hold, counted here in a few lines, and equal
after an export and a load.

Whole data sets carry the marker `data`.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.graph import Graph
from condgraph.reports import LoadReport

whole = pytest.mark.data


def lines_of(*paths: Path) -> Iterator[str]:
    """The lines of files, one after the other."""
    for path in paths:
        with path.open(encoding="utf-8", newline="") as file:
            for line in file:
                yield line.rstrip("\r\n")


def loaded(source: Any, **options: Any) -> tuple[Graph, LoadReport]:
    """A graph of one source, nothing left out."""
    graph = condgraph.open("memory:")
    report = graph.load(source, **options)
    assert report.skipped == 0
    return graph, report


def survives(graph: Graph, folder: Path) -> None:
    """An export loads to an equal graph: every item that it reads back to is the same, sources and
    rows included.
    """
    first, second = folder / "first.jsonl", folder / "second.jsonl"
    lines = graph.export(first)
    again, report = loaded(first)
    assert not report.problems
    assert again.export(second) == lines
    assert Counter(lines_of(first)) == Counter(lines_of(second))
    assert again.status().counts == graph.status().counts
    assert again.status().sources == graph.status().sources


def counts(graph: Graph, *names: str) -> tuple[int, ...]:
    """Some of the counts of a graph."""
    found = graph.status().counts
    return tuple(found[name] for name in names)


# -- KQA Pro's format ------------------------------------------------------------------------------


def hashable(value: Any) -> Any:
    """JSON as something that fits in a set."""
    return json.dumps(value, sort_keys=True)


def qualifiers_of(fact: dict[str, Any]) -> frozenset[str]:
    """The qualifiers of a fact, repeats once."""
    return frozenset(hashable([key, value]) for key, values in fact.get("qualifiers", {}).items() for value in values)


@pytest.mark.parametrize(
    "name",
    ["oracle/kb_small.json", "data/kopl_example/example_kb.json", pytest.param("oracle/kb.json", marks=whole)],
)
def test_knowledge_bases(name: str, shared: Path, tmp_path: Path) -> None:
    """Both directions of a relation are one statement."""
    base = json.loads((shared / name).read_text(encoding="utf-8"))
    relations, attributes, members = set(), set(), set()
    for ident, entity in base["entities"].items():
        members.update((ident, concept) for concept in entity["instanceOf"])
        for fact in entity["relations"]:
            ends = (ident, fact["object"]) if fact["direction"] == "forward" else (fact["object"], ident)
            relations.add((*ends, fact.get("relation") or fact.get("predicate"), qualifiers_of(fact)))
        for fact in entity["attributes"]:
            attributes.add((ident, fact["key"], hashable(fact["value"]), qualifiers_of(fact)))
    graph, report = loaded(shared / name)
    assert not report.problems
    wanted = (len(base["entities"]), len(base["concepts"]), len(relations), len(attributes), len(members))
    assert counts(graph, "entities", "concepts", "relations", "attributes", "memberships") == wanted
    survives(graph, tmp_path)


# -- triples ---------------------------------------------------------------------------------------

TRIPLES = {
    "pathquestions": (["2H-kb.txt"], "\t"),
    "metaqa": (["kb.txt"], "|"),
    "nell995_betae": (["train.txt", "valid.txt", "test.txt"], "\t"),
    "fb15k237": (["train.txt", "valid.txt", "test.txt"], "\t"),
}


@pytest.mark.parametrize("name", [name if name == "pathquestions" else pytest.param(name, marks=whole) for name in TRIPLES])
def test_triples(name: str, data: Path, tmp_path: Path) -> None:
    """Every line is a statement, every head and tail an entity."""
    files, mark = TRIPLES[name]
    paths = [data / name / file for file in files]
    triples = {tuple(field.strip() for field in line.split(mark)) for line in lines_of(*paths)}
    assert all(len(triple) == 3 for triple in triples)
    graph, report = loaded(paths)
    assert not report.problems
    entities = {end for head, _, tail in triples for end in (head, tail)}
    predicates = {relation for _, relation, _ in triples}
    assert counts(graph, "relations", "attributes", "entities", "predicates") == (len(triples), 0, len(entities), len(predicates))
    survives(graph, tmp_path)


@whole
def test_freebase_with_names_and_numbers(data: Path, tmp_path: Path) -> None:
    """Names from one file, relations from three, numbers from another, in one graph."""
    folder = data / "fb15k237"
    graph, _ = loaded(folder / "train.txt", names=folder / "entity2text.txt")
    numbers = folder / "FB15K_NumericalTriples.txt"
    report = graph.load(numbers, objects="values")
    rows = {tuple(line.split("\t")) for line in lines_of(numbers)}
    assert report.skipped == 0
    assert counts(graph, "attributes", "relations") == (len(rows), len({*lines_of(folder / "train.txt")}))
    names = dict(line.split("\t") for line in lines_of(folder / "entity2text.txt"))
    found = graph.kopl("Find(Schleswig-Holstein) QueryName()").entities
    assert [entity.id for entity in found] == [ident for ident, name in names.items() if name == "Schleswig-Holstein"]
    survives(graph, tmp_path)


# -- statements with qualifiers, and with time -----------------------------------------------------


@whole
def test_wikidata_statements(data: Path, tmp_path: Path) -> None:
    """A statement that stands twice is one; the order of its qualifiers does not count."""
    path = data / "wd50k" / "derived_labelled_statements.tsv"
    distinct = set()
    for line in lines_of(path):
        subject, _, predicate, _, thing, _, *rest = line.split("\t")
        ids = [tuple(one.split("=")[0] for one in rest[i : i + 2]) for i in range(0, len(rest), 2)]
        distinct.add((subject, predicate, thing, frozenset(ids)))
    graph, report = loaded(path)
    assert not report.problems
    assert report.statements == 115_364
    assert counts(graph, "relations", "attributes") == (len(distinct), 0) == (115_272, 0)
    assert counts(graph, "qualifiers") == (sum(len(one[3]) for one in distinct),)
    assert counts(graph, "memberships")[0] == len({one[:3] for one in distinct if one[1] == "P31"})
    survives(graph, tmp_path)


@whole
def test_temporal_facts(data: Path, tmp_path: Path) -> None:
    """Wikidata12k's three files, with names from its tables; ten facts end before they begin, and
    are told.
    """
    folder = data / "wikidata12k"
    paths = [folder / file for file in ("train.txt", "valid.txt", "test.txt")]
    names, relations = (
        {number: name for name, number in (line.split("\t") for line in lines_of(folder / file))}
        for file in ("entity2id.txt", "relation2id.txt")
    )
    facts = {tuple(line.split("\t")) for line in lines_of(*paths)}
    graph, report = loaded(paths, names=names, relation_names=relations)
    wrong = {fact for fact in facts if fact[3][:4].isdigit() and fact[4][:4].isdigit() and int(fact[3][:4]) > int(fact[4][:4])}
    assert len(wrong) == 10
    assert report.warned >= 10
    # Bounds that cannot be are not known, so that two facts may become one.
    distinct = {(*fact[:3], *(("?", "?") if fact in wrong else (bound.replace("#", "") for bound in fact[3:]))) for fact in facts}
    assert counts(graph, "relations", "entities")[0] == len(distinct)
    assert graph.kopl("FindAll() Count()").texts == [str(len({end for fact in facts for end in (fact[0], fact[2])}))]
    survives(graph, tmp_path)


def test_intervals_of_questions(data: Path, tmp_path: Path) -> None:
    """A header names the columns; a fact with two intervals is two statements."""
    path = data / "cronquestions" / "derived_facts.tsv"
    rows = [line.split("\t") for line in lines_of(path)][1:]
    graph, report = loaded(path)
    assert not report.problems
    assert counts(graph, "relations", "qualifiers") == (len({*map(tuple, rows)}), 2 * len(rows))
    head, relation, _, start, _ = rows[0]
    found = graph.kopl(f"Find({head}) Relate({relation}, forward) QFilterYear(start time, {start}, =) QueryName()").texts
    assert found == sorted(row[2] for row in rows if row[:2] == [head, relation] and row[3] == start)
    survives(graph, tmp_path)


# -- tables ----------------------------------------------------------------------------------------


def tables(paths: Iterable[Path]) -> dict[Path, list[list[str]]]:
    """WikiTableQuestions' tables: quoted, a backslash before quotes, the first row a header."""
    found = {}
    for path in paths:
        with path.open(encoding="utf-8", newline="") as file:
            found[path] = list(csv.reader(file, escapechar="\\", doublequote=False))
    return found


def check_tables(graph: Graph, report: LoadReport, read: dict[Path, list[list[str]]]) -> None:
    """A source a table, a row a row, a statement a cell that is not missing."""
    rows = sum(len(table) - 1 for table in read.values())
    cells = [cell for table in read.values() for row in table[1:] for cell in row if cell.strip()]
    short = sum(len(cell.strip()) <= 7 and not any(c.isdigit() for c in cell) for cell in cells)
    assert len(report.sources) == len({*report.sources}) == len(read)
    assert counts(graph, "rows", "entities", "sources") == (rows, rows, len(read))
    statements = graph.status().statements
    # What stands for a missing cell is short, and is the loader's to say.
    assert len(cells) - short <= statements <= len(cells)


def test_some_tables(data: Path, tmp_path: Path) -> None:
    """Forty tables by a pattern."""
    graph, report = loaded(str(data / "wikitablequestions" / "csv" / "204-csv" / "1*.csv"))
    check_tables(graph, report, tables((data / "wikitablequestions" / "csv" / "204-csv").glob("1*.csv")))
    survives(graph, tmp_path)


@whole
def test_all_tables(data: Path, tmp_path: Path) -> None:
    """All 1,687 of them in one graph, by one load of their folder; every row keeps its table and
    its place.
    """
    folder = data / "wikitablequestions" / "csv"
    graph, report = loaded(folder)
    read = tables(folder.glob("*/*.csv"))
    assert len(read) == 1687
    check_tables(graph, report, read)
    survives(graph, tmp_path)


def test_northwind(data: Path, tmp_path: Path) -> None:
    """A folder of tables with keys between them; two keys have names of their own and are declared."""
    folder = data / "lpg_northwind" / "import"
    keys = {"orders.shipVia": "shippers.shipperID", "employees.reportsTo": "employees.employeeID"}
    graph, _ = loaded(folder, keys=keys)
    sizes = {path.stem: len(list(csv.reader(path.open(encoding="utf-8", newline="")))) - 1 for path in folder.glob("*.csv")}
    assert sum(sizes.values()) == 3308
    # The join table of employees and territories is relations, every other row is an entity.
    assert counts(graph, "entities", "concepts") == (3308 - sizes["employee-territories"], 10)

    assert len(list(relations(graph, "shipVia"))) == sizes["orders"] == 830
    assert len(list(relations(graph, "reportsTo"))) == 8
    assert graph.kopl("Find(Speedy Express) Relate(shipVia, backward) Count()").texts == [
        str(sum(row["shipVia"] == "1" for row in rows(folder / "orders.csv")))
    ]
    survives(graph, tmp_path)


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a table; addresses of orders have commas without quotes, so that only columns
    before them can be relied on.
    """
    with path.open(encoding="utf-8", newline="") as file:
        header, *body = csv.reader(file)
    return [dict(zip(header, row[: len(header)], strict=False)) for row in body]


def relations(graph: Graph, name: str) -> Iterator[Any]:
    """The statements of one relation."""
    from condgraph.engine.facts import Sourced, Statement
    from condgraph.engine.snapshot.readback import items

    for item in items(graph.current):
        if isinstance(item, Sourced) and isinstance(item.item, Statement) and item.item.predicate == name:
            yield item.item

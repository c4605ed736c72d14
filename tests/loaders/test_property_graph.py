"""Property graphs as CSV, in all the ways in which they are written: Movies is one graph in each;
what is bad about such files.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import FormatError, LoadError
from condgraph.graph import Graph
from tests.support.northwind import statements

Node = tuple[str, str, dict[str, Any]]
Edge = tuple[str, str, str, dict[str, Any]]
_NODE = re.compile(r"\((\w+):(\w+) (\{.*?\})\)", re.DOTALL)
_EDGE = re.compile(r"\((\w+)\)-\[:(\w+) ?(\{.*?\})?\]->\((\w+)\)", re.DOTALL)
PROPERTIES = {"name": "string", "born": "int", "title": "string", "released": "int", "tagline": "string"}
EDGE_PROPERTIES = {"roles": "string[]", "summary": "string", "rating": "int"}


def literal(text: str) -> dict[str, Any]:
    """A map of Cypher: texts, numbers and lists of texts."""

    def said(found: re.Match[str]) -> str:
        if found[1] is not None:
            return f'"{found[1]}":'
        return json.dumps(found[0][1:-1].replace("\\'", "'").replace('\\"', '"'))

    text = re.sub(r"""(\w+):|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", said, text)
    return dict(json.loads(text))


@pytest.fixture(scope="module")
def movies(shared: Path) -> tuple[list[Node], list[Edge]]:
    """The nodes and relationships that Neo4j's script creates; texts in double quotes hold no maps."""
    text = (shared / "data" / "lpg_movies" / "scripts" / "movies.cypher").read_text("utf-8")
    nodes = [(name, label, literal(value)) for name, label, value in _NODE.findall(text)]
    edges = [(start, kind, end, literal(value) if value else {}) for start, kind, value, end in _EDGE.findall(text)]
    assert (len(nodes), len(edges)) == (171, 253)
    return nodes, edges


def write(path: Path, rows: Iterable[Iterable[Any]], quoting: int = csv.QUOTE_MINIMAL) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, quoting=quoting).writerows(rows)  # type: ignore[arg-type]


def listed(value: Any) -> Any:
    return ";".join(value) if isinstance(value, list) else value


def as_import(folder: Path, nodes: list[Node], edges: list[Edge]) -> Path:
    """Files of the import tool: one for each label, headers of one in a file of its own."""
    folder.mkdir()
    for label in ("Person", "Movie"):
        mine = [node for node in nodes if node[1] == label]
        keys = sorted({key for _, _, values in mine for key in values})
        header = ["nodeId:ID(Nodes)", *(f"{key}:{PROPERTIES[key]}" for key in keys), ":LABEL"]
        rows = [[name, *(values.get(key, "") for key in keys), label] for name, _, values in mine]
        if label == "Movie":
            write(folder / "movies-header.csv", [header])
            write(folder / "movies-1.csv", rows[:20])
            write(folder / "movies-2.csv", rows[20:])
        else:
            write(folder / "people.csv", [header, *rows])
    header = [":START_ID(Nodes)", ":END_ID(Nodes)", ":TYPE", *(f"{key}:{kind}" for key, kind in EDGE_PROPERTIES.items())]
    rows = [[start, end, kind, *(listed(values.get(key, "")) for key in EDGE_PROPERTIES)] for start, kind, end, values in edges]
    write(folder / "relationships.csv", [header, *rows])
    return folder


def as_neptune(folder: Path, nodes: list[Node], edges: list[Edge]) -> Path:
    """Files of Neptune: nodes, relationships with ids."""
    folder.mkdir()
    kinds = {"string": "String", "int": "Int", "string[]": "String[]"}
    header = ["~id", "~label", *(f"{key}:{kinds[kind]}" for key, kind in PROPERTIES.items())]
    write(
        folder / "nodes.csv",
        [header, *([name, label, *(values.get(key, "") for key in PROPERTIES)] for name, label, values in nodes)],
    )
    header = ["~id", "~from", "~to", "~label", *(f"{key}:{kinds[kind]}" for key, kind in EDGE_PROPERTIES.items())]
    rows = [
        [f"e{at}", start, end, kind, *(listed(values.get(key, "")) for key in EDGE_PROPERTIES)]
        for at, (start, kind, end, values) in enumerate(edges)
    ]
    write(folder / "edges.csv", [header, *rows])
    return folder


def as_apoc(path: Path, nodes: list[Node], edges: list[Edge]) -> Path:
    """One file, as `apoc.export.csv.all` writes it."""
    header = ["_id", "_labels", *PROPERTIES, "_start", "_end", "_type", *EDGE_PROPERTIES]
    rows: list[list[Any]] = [
        [name, f":{label}", *(values.get(key, "") for key in PROPERTIES), "", "", "", *("" for _ in EDGE_PROPERTIES)]
        for name, label, values in nodes
    ]
    rows += [
        ["", "", *("" for _ in PROPERTIES), start, end, kind,
         *(json.dumps(value) if isinstance(value := values.get(key, ""), list) else value for key in EDGE_PROPERTIES)]
        for start, kind, end, values in edges
    ]  # fmt: skip
    write(path, [header, *rows], csv.QUOTE_ALL)
    return path


def contents(graph: Graph) -> Counter[str]:
    """Statements without what the files name in their own way: ids, rows, the properties of ids."""
    found: Counter[str] = Counter()
    for line, times in statements(graph).items():
        one = json.loads(re.sub(r'"[^"/]+/(?:Nodes/)?(\w+)"', r'"\1"', line))
        one.pop("row", None)
        if one.get("p") != "nodeId" and '"nodeId"' not in line:
            found[json.dumps(one, sort_keys=True)] += times
    return found


def loaded(source: Any, **options: Any) -> tuple[Graph, list[str]]:
    graph = condgraph.open("memory:")
    report = graph.load(source, **options)
    assert set(report.formats) == {"property-graph"}
    return graph, [problem.message for problem in report.problems]


def test_movies_in_all_forms_is_one_graph(movies: tuple[list[Node], list[Edge]], tmp_path: Path) -> None:
    first, said = loaded(as_import(tmp_path / "import", *movies))
    assert said == []
    second, said = loaded(as_neptune(tmp_path / "neptune", *movies))
    assert said == ["ids of relationships are not kept (edge_ids=true keeps them as qualifiers)"]
    third, said = loaded(as_apoc(tmp_path / "apoc.csv", *movies))
    assert said == []
    fourth, _ = loaded([tmp_path / "neptune" / "edges.csv", tmp_path / "neptune" / "nodes.csv"])
    assert contents(first) == contents(second) == contents(fourth)
    # An int is a number; without a type, what a header says is a year.
    assert contents(first) == Counter(
        re.sub(r'{"precision": "year", "t": "(\d{4})"}', r'{"n": \1}', line) for line in contents(third).elements()
    )
    for graph in (first, second, third):
        before = "FilterYear" if graph is third else "FilterNum"
        assert graph.status().counts["relations"] == 253
        assert graph.kopl(f"Find(Tom Hanks) Relate(ACTED_IN, forward) {before}(released, 1995, <) QueryName()").texts == [
            "A League of Their Own", "Joe Versus the Volcano", "Sleepless in Seattle",
        ]  # fmt: skip
        assert graph.kopl("Find(Keanu Reeves) Find(The Matrix) QueryRelationQualifier(ACTED_IN, roles)").texts == ["Neo"]
        assert graph.kopl("FindAll() FilterConcept(Person) Count()").texts == ["133"]
        # Every value of the script, by a plain count.
        nodes, edges = movies
        assert graph.status().counts["attributes"] - (171 if graph is first else 0) == sum(len(values) for _, _, values in nodes)
        roles = sum(len(value) if isinstance(value, list) else 1 for *_, values in edges for value in values.values())
        assert graph.status().counts["qualifiers"] == roles


def test_ids_of_relationships_and_lists(tmp_path: Path) -> None:
    path = tmp_path / "g"
    path.mkdir()
    (path / "n.csv").write_text("~id,~label,tags:String[],size:Double(single)\na,A;B,x|y,1.5\nb,,,\n")
    (path / "e.csv").write_text("~id,~from,~to,~label\ne1,a,b,to\ne2,a,b,to\n")
    graph, said = loaded(path)
    assert said == [
        "ids of relationships are not kept (edge_ids=true keeps them as qualifiers)",
        "the relationship repeats another; equal statements count once",
    ]
    graph, said = loaded(path, edge_ids=True, array_delimiter="|")
    assert (said, graph.status().counts["relations"]) == ([], 2)
    assert sorted(graph.kopl("Find(g/a) QueryAttr(tags)").texts) == ["x", "y"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"n.csv": "~id,~label\na,A\na,A\n"}, r"n.csv, row 2, field '~id': the id 'a' is already in row 1"),
        ({"n.csv": "~id,~label\n,A\n"}, "row 1, field '~id': the node has no id"),
        (
            {"n.csv": "~id,~label\na,A\n", "e.csv": "~id,~from,~to,~label\n1,a,b,to\n"},
            "e.csv, row 1, field '~to': there is no node 'b'",
        ),
        ({"n.csv": "~id,~label\na,A\n", "e.csv": "~id,~from,~to,~label\n1,a,a,\n"}, "has no type"),
        ({"n.csv": ":ID,name,:LABEL\na,A,B,C\n"}, "4 fields where the table has 3"),
    ],
)
def test_bad_records_are_said_where_they_are(files: dict[str, str], said: str, tmp_path: Path) -> None:
    folder = tmp_path / "g"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    with pytest.raises(LoadError, match=said):
        loaded(folder)
    report = condgraph.open("memory:").load(folder, on_error="skip")
    assert report.skipped == 1


def test_what_is_no_property_graph(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("~id,~from,~to,~label\n1,a,b,to\n")
    with pytest.raises(LoadError, match="no nodes"):
        loaded(tmp_path / "e.csv")
    (tmp_path / "t.csv").write_text("_id,name\n1,Ann\n2,Bob\n")
    graph = condgraph.open("memory:")
    assert graph.load(tmp_path / "t.csv").formats == ("csv",)
    with pytest.raises(FormatError, match="neither nodes nor relationships"):
        loaded(tmp_path / "t.csv", format="property-graph")


MODELS = {
    "before": {
        "version": "0.1.1-beta.0",
        "graph": {"nodes": [{"id": "n0", "caption": "Movie"}], "relationships": []},
        "dataModel": {
            "fileModel": {"fileSchemas": {"movies.csv": {"fields": [{"name": "title"}]}}},
            "graphModel": {"nodeSchemas": {"n0": {"label": "Movie", "properties": []}}},
            "mappingModel": {"nodeMappings": {"n0": {"fileSchema": {"$ref": "movies.csv"}}}},
        },
    },
    "now": {
        "version": "2.3.1",
        "visualisation": {"nodes": [{"id": "n:1", "position": {"x": 0, "y": 0}}]},
        "dataModel": {
            "graphSchemaRepresentation": {"graphSchema": {"nodeLabels": [{"$id": "nl:1", "token": "Movie"}]}},
            "graphMappingRepresentation": {"dataSourceSchema": {"type": "local"}, "nodeMappings": []},
        },
    },
}


@pytest.mark.parametrize("model", MODELS)
def test_a_model_of_the_importer_names_the_way(model: str, tmp_path: Path) -> None:
    (tmp_path / "movies.csv").write_text("movieId,title\n1,The Matrix\n", encoding="utf-8")
    graph = condgraph.open("memory:")
    for indent in (None, 2):
        path = tmp_path / "neo4j_importer_model_2024-01-01.json"
        path.write_text(json.dumps(MODELS[model], indent=indent), encoding="utf-8")
        for source in (path, tmp_path):
            with pytest.raises(FormatError, match="model of Neo4j's importer") as caught:
                graph.load(source)
            assert "neo4j_importer_model" in str(caught.value.file)
            assert "bolt://" in str(caught.value.hint)
    # Data of that name are data.
    (tmp_path / "data.json").write_text('[{"dataModel": "a", "graphModel": "b"}]', encoding="utf-8")
    assert graph.load(tmp_path / "data.json").statements == 2


def test_a_column_without_a_header_has_a_name(tmp_path: Path) -> None:
    """As in tables: a predicate without a name could be exported, and not read again."""
    file = tmp_path / "people.csv"
    file.write_text("id :ID,born :int,,\n1,1970,x,\n2,1980,,\n")
    graph = condgraph.open()
    report = graph.load(file, format="property-graph")
    assert [str(one.message) for one in report.problems][:2] == [
        f"column {at} has no header and is named 'column {at}'" for at in (3, 4)
    ]
    assert {one.name for one in graph.schema().predicates} == {"id", "born", "column 3"}
    graph.export(tmp_path / "again.jsonl")
    again = condgraph.open()
    again.load(tmp_path / "again.jsonl")
    assert again.status().counts == graph.status().counts


def test_declared_numbers_are_numbers_whatever_they_are_called(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id:ID,name,born:int,:LABEL\n1,Ann,1970,Person\n2,Bob,1980,Person\n")
    (tmp_path / "lives.csv").write_text(":START_ID,:END_ID,since:int,:TYPE\n1,2,1999,KNOWS\n2,1,2005,KNOWS\n")
    graph, said = loaded(tmp_path)
    assert said == []
    assert graph.kopl("Find(Ann) Relate(KNOWS, forward) QFilterNum(since, 2000, <) QueryName()").texts == ["Bob"]
    assert graph.kopl("FindAll() FilterNum(born, 1975, >) QueryName()").texts == ["Bob"]


def test_cells_without_the_type_of_their_column_give_a_warning(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text(
        ":ID,n:int,d:double,day:date,at:datetime,:LABEL\n"
        "1,12,NaN,2015-07-21,2015-07-21T21:40:32.142,A\n2,abc,-Infinity,2015-W30,,A\n3,,1.5,,,A\n"
    )
    (tmp_path / "r.csv").write_text(":START_ID,:END_ID,:TYPE,w:int\n1,2,R,2\n2,3,R,two\n")
    graph, said = loaded(tmp_path)
    assert said == [
        "parts of a second are cut off in 1 cells; a type in the header, as in at:string, decides",
        *(f"{text!r} stays text among numbers" for text in ("NaN", "abc", "-Infinity")),
        "'2015-W30' stays text among times",
        "'two' stays text among numbers",
    ]
    assert graph.kopl(f"Find({tmp_path.name}/1) QueryAttr(d)").texts == ["NaN"]

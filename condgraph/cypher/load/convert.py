"""A graph of the layout before (3) brought into this one, in place: in batches, resumable, and only
what is provably condgraph's.

Labels of that layout were words that anybody may use (`:Entity`, `:Graph`). A node is taken for one
of the graph where its labels, its properties and its place among others are those that a load
wrote; and the graph is converted only where there are exactly as many of these as its node says.
Relationships stay as they are. Where the node of a source, a predicate or the graph has somebody
else's properties or relationships, it is copied and left there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.layout import schema as layout
from condgraph.cypher.layout.indexes import make_indexes, prepare
from condgraph.cypher.layout.schema import FORMAT, index_key, predicate_key
from condgraph.cypher.layout.vectors import index_name
from condgraph.cypher.load.earlier import BEFORE, GRAPHS, older
from condgraph.cypher.load.pull import pull
from condgraph.cypher.load.push import look
from condgraph.cypher.load.write import content_id, earlier_content_id
from condgraph.engine.errors import StoreDamagedError, StoreMissingError, StoreVersionError
from condgraph.overview.survey import packed, survey

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection

_PAGE: Final = 2_000
_BATCH: Final = 5_000
_EXPORT: Final = "export it with the version that wrote it, and load the export under this one"
#: The indexes of that layout: what each is on.
_INDEXES: Final = {
    "condgraph_entity_id": "Entity graph id", "condgraph_graph": "Graph name", "condgraph_load": "Load graph batch",
    "condgraph_source": "Source graph name", "condgraph_predicate": "Predicate graph name",
    "condgraph_entity_key": "Entity graph key", "condgraph_entity_kind": "Entity graph kind",
    "condgraph_row": "Row graph source row", "condgraph_concept_key": "Concept graph key",
    "condgraph_value_key": "Value graph predicate key", "condgraph_value_quantity": "Value graph predicate number unit",
    "condgraph_value_time": "Value graph predicate start end", "condgraph_any_key": "Value graph key",
    "condgraph_any_number": "Value graph number", "condgraph_any_start": "Value graph start",
    "condgraph_statement_sid": "Statement graph sid", "condgraph_embedding": "Embedding graph kind key",
}  # fmt: skip
#: Properties of nodes by their label, and labels of this layout.
_ENTITY: Final = ("graph", "id", "name", "key", "kind", "order", "ranks", "source", "row")
_PLAIN: Final = {
    "Source": (("graph", "name", "number", "location", "format"), layout.SOURCE),
    "Predicate": (("graph", "name", "relations", "attributes", "qualifiers"), layout.PREDICATE),
}
_STATE: Final = ("name", "format", "complete", "content", "counts", "schema", "loading", "owner", "beat", "bulk")
#: An entity (`e`) of the layout before, as a load wrote it.
_IS_ENTITY: Final = (
    f"all(p IN keys(e) WHERE p IN {list(_ENTITY)}) AND e.name IS NOT NULL AND (e.key = e.name OR e.key STARTS WITH 'sha256:') "
    "AND ((e.kind = 0 AND labels(e) = ['Entity']) "
    "OR (e.kind = 1 AND size(labels(e)) = 2 AND e:Concept) OR (e.kind = 2 AND size(labels(e)) = 2 AND e:Row)) "
)
_OURS: Final = f"e.graph = $graph AND ((e:Entity AND {_IS_ENTITY}) OR e:{layout.ENTITY})"
_IS_VALUE: Final = f"v.graph = $graph AND v.sid = f.sid AND (labels(v) = ['Value'] OR v:{layout.VALUE})"
_TURN: Final = f"SET q:{layout.QUALIFIER} REMOVE q:Qualifier"
_QUALIFIERS: Final = (
    f"CALL (x) {{ MATCH (x)-[:QUALIFIER]->(q:Qualifier) WHERE q.graph = $graph AND labels(q) = ['Qualifier'] {_TURN} }} "
)
_SUBJECTS: Final = f"UNWIND $keys AS key MATCH (e:Entity {{graph: $graph, id: key}}) WHERE {_IS_ENTITY}"
_STEPS: Final = (
    f"{_SUBJECTS} MATCH (e)-[f]->(x:Value) WHERE x.graph = $graph AND x.sid = f.sid AND labels(x) = ['Value'] "
    f"WITH x LIMIT {_BATCH} {_QUALIFIERS} SET x:{layout.VALUE} REMOVE x:Value RETURN count(*) AS done",
    f"{_SUBJECTS} MATCH (e)<-[:SUBJECT]-(x:Statement) WHERE x.graph = $graph AND labels(x) = ['Statement'] "
    f"AND EXISTS {{ (e)-[f]->() WHERE f.sid = x.sid }} WITH x LIMIT {_BATCH} "
    f"{_QUALIFIERS} SET x:{layout.STATEMENT} REMOVE x:Statement RETURN count(*) AS done",
)
_TURN_ENTITIES: Final = (
    f"UNWIND $rows AS r MATCH (e:Entity {{graph: $graph, id: r[0]}}) WHERE {_IS_ENTITY}"
    f"FOREACH (c IN CASE WHEN e:Concept THEN [e] ELSE [] END | SET c:{layout.CONCEPT} REMOVE c:Concept) "
    f"FOREACH (c IN CASE WHEN e:Row THEN [e] ELSE [] END | SET c:{layout.ROW} REMOVE c:Row) "
    f"SET e.handle = r[1], e:{layout.ENTITY} REMOVE e:Entity"
)


def convert(connection: Connection, graph: str) -> dict[str, int]:
    """Convert a graph; what it holds. Raises `StoreVersionError` where it is not clear which nodes
    are the graph's.
    """
    about = older(connection, graph)
    if not about:
        now = look(connection, graph)[0]
        if not now.get("complete"):
            raise StoreMissingError(f"there is no graph {graph!r} of an earlier layout")
        # It was converted already; the rest of that is done now.
        _drop_indexes(connection)
        held: dict[str, int] = json.loads(now["counts"])
        return held
    if not about.get("complete"):
        raise StoreVersionError(
            f"graph {graph!r} was not loaded to the end by an earlier version", hint="finish the load with that version"
        )
    counts: dict[str, int] = json.loads(about["counts"])
    _check(connection, graph, counts)
    prepare(connection)
    _nodes(connection, graph)
    _others(connection, graph, about)
    make_indexes(connection)
    snapshot = pull(connection, graph)
    if about["content"] not in (content_id(snapshot), earlier_content_id(snapshot)):
        raise StoreDamagedError(f"graph {graph!r} is not what was loaded", hint=_EXPORT)
    new = {name: about[name] for name in ("content", "counts", "schema")}
    new |= {"complete": True, "format": FORMAT, "survey": packed(survey(snapshot), about["content"])}
    connection.transaction(lambda transaction: _turn_graph(transaction.run, graph, new))
    _drop_indexes(connection)
    return counts


def _check(connection: Connection, graph: str, counts: dict[str, int]) -> None:
    """Raise where there are not as many entities and statements as the graph has."""
    text = f"MATCH (e:Entity|{layout.ENTITY}) WHERE {_OURS} "
    entities = connection.read(f"{text}RETURN count(e) AS n, sum(CASE WHEN e.kind = 1 THEN 1 ELSE 0 END) AS c", {"graph": graph})[0]
    relations = connection.read(
        f"{text}MATCH (e)-[f]->(o:Entity|{layout.ENTITY}) WHERE f.sid IS NOT NULL AND o.graph = $graph RETURN count(f) AS n",
        {"graph": graph},
    )[0]
    attributes = connection.read(
        f"{text}MATCH (e)-[f]->(v:Value|{layout.VALUE}) WHERE {_IS_VALUE} RETURN count(v) AS n", {"graph": graph}
    )[0]
    found = {
        "entities": entities["n"] - entities["c"],
        "concepts": entities["c"],
        "relations": relations["n"],
        "attributes": attributes["n"],
    }
    wrong = [f"{number:,} {what} where {counts[what]:,} were loaded" for what, number in found.items() if number != counts[what]]
    if wrong:
        raise StoreVersionError(
            f"the database holds what looks like {', '.join(wrong)} into graph {graph!r}: which of it is the graph's is not clear",
            hint=_EXPORT,
        )


def _nodes(connection: Connection, graph: str) -> None:
    """Give entities, their values, statements and qualifiers the labels of this layout, a page of
    entities at a time.
    """
    first = (
        f"MATCH (e:Entity) WHERE e.graph = $graph AND e.id IS NOT NULL AND {_IS_ENTITY}RETURN e.id AS id ORDER BY id LIMIT {_PAGE}"
    )
    following = first.replace("e.id IS NOT NULL", "e.id > $after")
    page = [row["id"] for row in connection.read(first, {"graph": graph})]
    while page:
        for text in _STEPS:
            while connection.write(text, {"graph": graph, "keys": page}).rows[0]["done"]:
                pass
        connection.write(_TURN_ENTITIES, {"graph": graph, "rows": [[ident, index_key(ident)] for ident in page]})
        page = [row["id"] for row in connection.read(following, {"graph": graph, "after": page[-1]})]


def _others(connection: Connection, graph: str, about: dict[str, Any]) -> None:
    """Sources, predicates and vectors; nodes that others have put something at are copied."""
    schema = json.loads(about["schema"])
    for label, (names, new) in _PLAIN.items():
        rows = connection.read(f"MATCH (n:{label} {{graph: $graph}}) RETURN properties(n) AS n", {"graph": graph})
        given = []
        for row in rows:
            if all(name in row["n"] for name in names):
                kept = {name: row["n"][name] for name in names}
                given.append(kept if label == "Source" else kept | {"key": predicate_key(kept["name"])})
        if label == "Source":
            wanted = set(schema["sources"])
            given = [one for one in given if one["name"] in wanted]
        key = "name" if label == "Source" else "key"
        connection.write(
            f"UNWIND $rows AS r MERGE (n:{new} {{graph: $graph, {key}: r.{key}}}) SET n += r", {"graph": graph, "rows": given}
        )
        connection.write(
            f"UNWIND $rows AS r MATCH (n:{label} {{graph: $graph, name: r.name}}) WHERE labels(n) = ['{label}'] "
            f"AND size(keys(n)) = {len(names)} AND NOT (n)--() DELETE n",
            {"graph": graph, "rows": given},
        )
        long = [[one["name"], one["key"]] for one in given if one.get("key", one["name"]) != one["name"]]
        if long:
            text = f"UNWIND $rows AS r MATCH (v:{layout.VALUE}) WHERE v.graph = $graph AND v.predicate = r[0] "
            text += "SET v.predicate = r[1]"
            connection.write(text, {"graph": graph, "rows": long})
    vectors = (
        f"MATCH (n:Embedding) WHERE n.graph = $graph AND n.kind IN ['node', 'predicate'] AND n.key IS NOT NULL "
        f"AND all(label IN labels(n) WHERE label IN ['Embedding', $index]) AND NOT (n)--() WITH n LIMIT {_BATCH} "
        f"SET n:{layout.EMBEDDING} REMOVE n:Embedding RETURN count(*) AS done"
    )
    given_names = {"graph": graph, "index": index_name(graph)}
    if connection.read("SHOW INDEXES YIELD name WHERE name = $index RETURN name", given_names):
        connection.schema(layout.VECTOR_KEYS.text)
        while connection.write(vectors, given_names).rows[0]["done"]:
            pass
        connection.write(
            "MATCH (n:VectorIndex {graph: $graph}) WHERE n.encoder IS NOT NULL AND n.spec IS NOT NULL "
            "AND labels(n) = ['VectorIndex'] "
            f"SET n:{layout.VECTORS} REMOVE n:VectorIndex",
            given_names,
        )


def _turn_graph(run: Any, graph: str, new: dict[str, Any]) -> None:
    """Make the node of the graph, and take the one before away; where somebody else uses it, only
    what was condgraph's.
    """
    run(f"MERGE (g:{layout.GRAPH} {{name: $graph}}) SET g += $new", {"graph": graph, "new": new})
    before = "MATCH (g:Graph {name: $graph}) WHERE g.format = $before "
    given = {"graph": graph, "before": BEFORE, "known": list(_STATE)}
    run(f"{before}AND labels(g) = ['Graph'] AND all(p IN keys(g) WHERE p IN $known) AND NOT (g)--() DELETE g", given)
    run(f"{before}REMOVE {', '.join(f'g.{name}' for name in _STATE if name != 'name')}", given)


def _drop_indexes(connection: Connection) -> None:
    """Take the constraints and indexes of the layout before away once no graph has it: they keep
    others from making their nodes.
    """
    if connection.read(f"{GRAPHS}RETURN g.name AS name LIMIT 1", {"before": BEFORE}):
        return
    text = "SHOW INDEXES YIELD name, labelsOrTypes, properties, owningConstraint WHERE name IN $names RETURN *"
    for row in connection.read(text, {"names": list(_INDEXES)}):
        if [*(row["labelsOrTypes"] or ()), *(row["properties"] or ())] == _INDEXES[row["name"]].split():
            connection.schema(f"DROP {'CONSTRAINT' if row['owningConstraint'] else 'INDEX'} {row['name']} IF EXISTS")

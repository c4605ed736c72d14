"""Batches of a load: records of one kind as rows of properties, and the Cypher that writes each kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.layout.schema import (
    CAPTION,
    CONCEPT,
    ENTITY,
    FORMER,
    PREDICATE,
    QUALIFIER,
    ROW,
    SOURCE,
    STATEMENT,
    VALUE,
    index_key,
    inner_ranks,
    text_order,
    time_text,
)
from condgraph.cypher.servers import Engine
from condgraph.engine.snapshot.cells import PARTS
from condgraph.engine.values import NO_UNIT, UNKNOWN, Kind, Quantity, parse_number, tie_break

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- Values as rows have them ------------------------------------------------------------------------


#: The properties of a value, in the order of the rows.
CELL: Final = ("kind", "text", "key", "number", "exact", "unit", "start", "end", "precision", "order", "ranks")
_EMPTY_CELL: Final = (None,) * len(CELL)
_WORDS: Final = tuple(kind.name.lower() for kind in Kind)


def cells(snapshot: Snapshot, family: str, numbers: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the properties of each cell, in the order of `CELL`."""
    get, texts = snapshot.arrays.get, snapshot.texts
    columns = {part: get(f"{family}.{part}")[numbers] for part, _ in PARTS}
    floats = columns["a"].view(np.float64).tolist()
    units: dict[int, str] = {-1: NO_UNIT}
    for x, kind, a, b, ref, unit, precision in zip(floats, *(columns[part].tolist() for part, _ in PARTS), strict=True):
        word = _WORDS[kind]
        if kind == Kind.TEXT:
            text, form = texts[ref], texts[unit] if unit >= 0 else None
            yield word, text, index_key(text), None, None, form, None, None, None, order_of(text), inner_ranks(text)
        elif kind == Kind.QUANTITY:
            unit_name = units.get(unit)
            if unit_name is None:
                unit_name = units[unit] = texts[unit]
            number = x if ref < 0 else parse_number(texts[ref])
            order = None if ref < 0 else tie_break(number)
            exact = str(number) if order not in (None, "1") else None
            yield word, str(Quantity(number, unit_name)), None, x, exact, unit_name, None, None, None, exact and order, None
        elif kind == Kind.TIME:
            yield word, time_text(a, b, precision), None, None, None, None, a, b, precision, None, None
        elif kind == Kind.ENTITY:
            name = snapshot.name(ref)
            yield word, name, index_key(name), *_EMPTY_CELL[3:]
        else:
            yield word, str(UNKNOWN), *_EMPTY_CELL[2:]


def order_of(text: str) -> str | None:
    """Return the sort key of a text, or None if the text itself is one."""
    order = text_order(text)
    return None if order == text else order


def cell_properties(variable: str, first: int) -> str:
    """Return the properties of a value in Cypher, read from a list from position `first` on."""
    return ", ".join(f"{name}: {variable}[{position}]" for position, name in enumerate(CELL, first))


def caption_of(text: str) -> str:
    """Shorten a text to a node's caption in Browser."""
    return text if len(text) <= CAPTION else text[: CAPTION - 1] + "…"


# -- Batches -----------------------------------------------------------------------------------------
# Records of one kind as they travel to the server, one transaction each.


#: Records that a transaction writes. The first ones are small: until the server has warmed up, a large one
#: only delays others. Larger ones are no faster: uncommitted data survives garbage collections, which with
#: 20,000 records take a fifth of the server's time.
BATCH: Final = 5_000
FIRST_BATCH: Final = 2_000

Numbers = NDArray[np.int32]
Rows = list[list[Any]]


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one kind.

    `name` is the same for the same batch. `ids` (as indexed; for labels, the labels) are what `rows` refer to by position.
    `nodes` and `edges` count what the server has to create; None if some may exist already.
    """

    kind: str
    name: str
    ids: list[str]
    rows: Rows
    nodes: int | None = None
    edges: int | None = None


class Ids:
    """The distinct entities of a batch."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._places: dict[int, int] = {}

    def places(self, numbers: NDArray[Any]) -> list[int]:
        """Return the position of each entity in the batch's list."""
        places = self._places
        return [places.setdefault(number, len(places)) for number in numbers.tolist()]

    def texts(self) -> list[str]:
        """Return the lookup keys of the entities, by position."""
        numbers = np.fromiter(self._places, np.int32, len(self._places))
        return list(map(index_key, self._snapshot.texts.take(self._snapshot.entity_id[numbers])))


def cut(kind: str, numbers: Numbers, make: Callable[[str, str, Numbers], Batch], called: str | None = None) -> Iterator[Batch]:
    """Yield batches of records, each built by `make(kind, name, numbers)`; the first ones are smaller.

    Their names begin with `called`, where the kind does not distinguish them from others.
    """
    start, size = 0, FIRST_BATCH
    while start < len(numbers):
        yield make(kind, f"{called or kind} {start}", numbers[start : start + size])
        start, size = start + size, min(size * 2, BATCH)


# -- Texts that write a batch ------------------------------------------------------------------------
# One query for each kind of batch, each idempotent.


def _noted(thing: str, at: str, of: str, *names: str, **more: str) -> str:
    """Record the state of something before this load, once, unless the load itself created it."""
    values = {name: f"{thing}.{name}" for name in names} | more
    return (
        f"FOREACH (_ IN CASE WHEN coalesce({thing}.load, 0) <> $stamp THEN [1] ELSE [] END | "
        f"MERGE (u:{FORMER} {{graph: $graph, load: $stamp, at: {at}}}) "
        f"ON CREATE SET u.of = '{of}', {', '.join(f'u.{name} = {value}' for name, value in values.items())}) "
    )


_ENTITIES: Final = (
    # The hint keeps the plan that suits a large graph, whatever the statistics are while the graph is
    # empty.
    f"UNWIND range(0, size($ids) - 1) AS i MATCH (e:{ENTITY} {{graph: $graph, handle: $ids[i]}}) "
    f"USING INDEX e:{ENTITY}(graph, handle) WITH i, e ORDER BY i WITH collect(e) AS es UNWIND $rows AS r "
)
_PAIR: Final = _ENTITIES + "WITH es, es[r[0]] AS a, es[r[1]] AS b, r "
_QUALIFIERS: Final = (
    f"WITH es, o, q CREATE (o)-[:QUALIFIER]->(x:{QUALIFIER} {{graph: $graph, name: q[0], {cell_properties('q', 1)}, "
    f"id: q[{len(CELL) + 1}]}}) "
    f"WITH x, es[q[{len(CELL) + 2}]] AS e WHERE e IS NOT NULL CREATE (x)-[:IS]->(e)"
)
_RELATION: Final = (
    _PAIR + "CREATE (a)-[f:$(r[2]) {sid: r[3], sources: r[4], rows: r[5], since: r[6], until: r[7], span: r[8], valid: r[9], "
    "load: $stamp}]->(b) "
)
_ATTRIBUTE: Final = (
    _ENTITIES + "WITH es, es[r[0]] AS a, r CREATE (a)-[f:$(r[1]) {sid: r[2], since: r[5], until: r[6], span: r[7], valid: r[8]}]->"
    f"(o:{VALUE} {{graph: $graph, sid: r[2], sources: r[3], rows: r[4], predicate: r[9], name: r[10], raw: r[11], "
    f"raws: r[12], load: $stamp, {cell_properties('r', 13)}}}) "
)
#: The properties of an entity, in the order of the rows; its labels follow.
ENTITY_PROPERTIES: Final = ("id", "name", "key", "kind", "order", "ranks", "source", "row", "declared", "handle")
_LABELS: Final = f"r[{len(ENTITY_PROPERTIES)}]"
_CHANGING: Final = ENTITY_PROPERTIES[1:-1]
#: Kinds of batches that set labels of existing nodes, which every server computes.
_SET: Final = frozenset({"entities that changed", "labels"})
#: How a changed statement or membership is found again.
_ENDS: Final = {"subject": "a.handle", "type": "type(f)"}
#: Updates the name in qualifiers that are the entity.
RENAMED: Final = f"WITH {{entity}} MATCH ({{entity}})<-[:IS]-(q:{QUALIFIER}) SET q.text = {{entity}}.name, q.key = {{entity}}.key"
#: The query for each kind of batch. They are few, as the first run of a query costs the server its
#: planning. `texts_of` adapts them to other servers.
TEXTS: Final[dict[str, str]] = {
    "sources": f"UNWIND $rows AS r MERGE (s:{SOURCE} {{graph: $graph, name: r[0]}}) ON CREATE SET s.load = $stamp "
    + _noted("s", "'source ' + r[0]", "source", "name", "number", "location", "format", "content", "terms")
    + "SET s.number = r[1], s.location = r[2], s.format = r[3], s.content = r[4], s.terms = r[5]",
    "predicates": f"UNWIND $rows AS r MERGE (p:{PREDICATE} {{graph: $graph, key: r[4]}}) ON CREATE SET p.load = $stamp "
    + _noted("p", "'predicate ' + r[4]", "predicate", "key", "relations", "attributes", "qualifiers")
    + "SET p.name = r[0], p.relations = r[1], p.attributes = r[2], p.qualifiers = r[3]",
    "entities": f"UNWIND $rows AS r CREATE (:{ENTITY}:$({_LABELS}) {{graph: $graph, load: $stamp, "
    f"{', '.join(f'{name}: r[{i}]' for i, name in enumerate(ENTITY_PROPERTIES))}}})",
    "entities that changed": f"UNWIND $rows AS r MATCH (e:{ENTITY} {{graph: $graph, handle: r[{len(ENTITY_PROPERTIES) - 1}]}}) "
    + _noted("e", "'entity ' + e.handle", "entity", "handle", *_CHANGING)
    + f"REMOVE e:{CONCEPT}:{ROW} SET e:$({_LABELS}), {', '.join(f'e.{name} = r[{i}]' for i, name in enumerate(_CHANGING, 1))} "
    + RENAMED.format(entity="e"),
    # Labels that users added to an entity stay.
    "labels": f"UNWIND $rows AS r MATCH (e:{ENTITY} {{graph: $graph, handle: r[0]}}) "
    + _noted("e", "'labels ' + e.handle", "labels", "handle", labels="[l IN labels(e) WHERE l IN $ids]")
    + "REMOVE e:$([l IN labels(e) WHERE l IN $ids]) SET e:$([at IN r[1] | $ids[at]])",
    "relations": _RELATION,
    "relations with qualifiers": _RELATION
    + f"CREATE (a)<-[:SUBJECT]-(o:{STATEMENT} {{graph: $graph, sid: r[3], name: r[10], load: $stamp}})-[:OBJECT]->(b) "
    + "WITH es, o, r UNWIND r[11] AS q "
    + _QUALIFIERS,
    "attributes": _ATTRIBUTE + f"WITH es, o, r UNWIND r[{13 + len(CELL)}] AS q " + _QUALIFIERS,
    "sources of relations": _PAIR
    + "MATCH (a)-[f:$(r[2])]->(b) WHERE f.sid = r[3] "
    + _noted("f", "'relation ' + toString(f.sid)", "relation", "sid", "sources", "rows", **_ENDS)
    + "SET f.sources = r[4], f.rows = r[5]",
    "sources of attributes": _ENTITIES
    + f"WITH es[r[0]] AS a, r MATCH (a)-[f:$(r[1])]->(v:{VALUE}) WHERE f.sid = r[2] "
    + _noted("v", "'attribute ' + toString(v.sid)", "attribute", "sid", "sources", "rows", "raw", "raws", "name", **_ENDS)
    + "SET v.sources = r[3], v.rows = r[4], v.raw = r[5], v.raws = r[6], v.name = r[7]",
    "members": _RELATION,
    "members that changed": _PAIR
    + "MATCH (a)-[f:$(r[2])]->(b) WHERE f.sid IS NULL "
    + _noted("f", "'member ' + r[10]", "member", "sources", "rows", **_ENDS, object="b.handle")
    + "SET f.sources = r[4], f.rows = r[5]",
}
#: What a load removes, by kind of batch: the match, and the variable removed.
_REMOVED: Final = {
    "gone relations": (_PAIR + "MATCH (a)-[f:$(r[2])]->(b) WHERE f.sid = r[3]", "f"),
    "gone attributes": (_ENTITIES + f"WITH es[r[0]] AS a, r MATCH (a)-[f:$(r[1])]->(v:{VALUE}) WHERE f.sid = r[2]", "v"),
    "gone statements": (f"UNWIND $rows AS r MATCH (o:{STATEMENT} {{graph: $graph, sid: r[0]}})", "o"),
    "gone members": (_PAIR + "MATCH (a)-[f:$(r[2])]->(b) WHERE f.sid IS NULL", "f"),
    "gone entities": (f"UNWIND $rows AS r MATCH (e:{ENTITY} {{graph: $graph, handle: r[0]}})", "e"),
    "gone predicates": (f"UNWIND $rows AS r MATCH (p:{PREDICATE} {{graph: $graph, key: r[0]}})", "p"),
    "gone sources": (f"UNWIND $rows AS r MATCH (s:{SOURCE} {{graph: $graph, name: r[0]}})", "s"),
}
# A load marks what is to go, and removes it after everything else: until then it can be taken back.
TEXTS.update((kind, f"{found} SET {name}.gone = $stamp") for kind, (found, name) in _REMOVED.items())
#: Queries that remove records within the transaction of a single change.
REMOVALS: Final[dict[str, str]] = {
    kind: f"{found} DELETE f"
    if name == "f"
    else f"{found} OPTIONAL MATCH ({name})-[:QUALIFIER]->(q:{QUALIFIER}) DETACH DELETE q, {name}"
    if name in "vo"
    else f"{found} DETACH DELETE {name}"
    for kind, (found, name) in _REMOVED.items()
}


#: A relationship type, or labels, computed from a column of the rows.
_COMPUTED: Final = re.compile(r":\$\(r\[(\d+)\]\)")
#: Kinds whose rows end with their qualifiers.
_QUALIFIED: Final = frozenset({"relations with qualifiers", "attributes"})


def texts_of(batch: Batch, text: str, engine: Engine) -> Iterator[tuple[str, list[str], Rows]]:
    """Yield the queries that write a batch by `text`, each with its ids and rows.

    A server that does not compute types (or labels) from a row gets one query for each type of the batch.
    """
    computed = _COMPUTED.search(text)
    if computed is None or (engine.computed_labels if batch.kind == "entities" else engine.computed_types or batch.kind in _SET):
        yield text, batch.ids, batch.rows
        return
    # Labels are those of the layout, and are stored as they are.
    stored = str if batch.kind == "entities" else engine.stored_type
    column, groups = int(computed[1]), dict[tuple[str, ...], Rows]()
    for row in batch.rows:
        names = (row[column],) if isinstance(row[column], str) else tuple(row[column])
        groups.setdefault(names, []).append(row)
    ends = 2 if text.startswith(_PAIR) else 1 if text.startswith(_ENTITIES) else 0
    for names, rows in groups.items():
        written = "".join(f":{engine.quote(stored(name))}" for name in names)
        ids, rows = _used_ids(batch, rows, ends)
        before, after = text[: computed.start()], text[computed.end() :]
        yield before + written + after, ids, rows


def _used_ids(batch: Batch, rows: Rows, ends: int) -> tuple[list[str], Rows]:
    """Reduce the ids of a batch to those that some rows use, since a query looks up each of them.

    A row begins with the positions of its `ends` entities.
    """
    places: dict[int, int] = {}

    def renumber(at: int) -> int:
        return places.setdefault(at, len(places))

    result = [[*map(renumber, row[:ends]), *row[ends:]] for row in rows]
    if batch.kind in _QUALIFIED:
        for row in result:
            row[-1] = [[*item[:-1], None if item[-1] is None else renumber(item[-1])] for item in row[-1]]
    return [batch.ids[old] for old in places], result

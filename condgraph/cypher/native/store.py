"""An existing database as a store: asked where it is, with one query a program, its names read, or pulled as a whole.
Nothing is written.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

from condgraph.cypher.answer import Neo4jAnswer
from condgraph.cypher.compile.plan import compile_plan, lowered
from condgraph.cypher.connection import Connection
from condgraph.cypher.layout.base import KINDS, TARGET, value_of
from condgraph.cypher.layout.schema import quote
from condgraph.cypher.native import first_rows
from condgraph.cypher.native.identity import SOURCE, concept_id, foreign, id_of, name_of
from condgraph.cypher.native.layout import NativeLayout
from condgraph.cypher.native.mapping import Mapping, NodeType, Property, RelationshipType
from condgraph.cypher.native.properties import named
from condgraph.cypher.native.refresh import keys_of
from condgraph.cypher.native.schema import NativeSchema
from condgraph.cypher.native.values import sent, values_in
from condgraph.cypher.queries import CypherStore
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.bounds import check
from condgraph.engine.errors import StoreError, UnsupportedError
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Statement
from condgraph.engine.schema import AROUND, MOST_COMPARED, Kinds
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import NO_UNIT, Kind, Value
from condgraph.languages.cypher.lower import lower as lower_cypher
from condgraph.snapshot_store import SnapshotStore

if TYPE_CHECKING:
    from condgraph.cypher.compile.plan import Compiled
    from condgraph.cypher.queries import Query
    from condgraph.engine.answer import Answer
    from condgraph.engine.lowered import Lowered
    from condgraph.engine.store import KnownSchema, Request
    from condgraph.engine.stored_schema import StoredSchema
    from condgraph.patterns.matches import Matches


# -- Names -------------------------------------------------------------------------------------------
# Nodes by the properties that name them, and concepts, which are labels and have no nodes.


#: Nodes of the names of a program that are looked up before its other queries; more are found there.
MOST_FOUND: Final = 10_000


#: Tests of a value `v` that decide how expressions read others (`snapshot.readings`).
_NUMBER: Final = "v.kind = 'quantity' AND v.unit = '1'"
_FRACTION: Final = f"{_NUMBER} AND v.number <> floor(v.number)"
_WHOLE: Final = f"{_NUMBER} AND v.number = floor(v.number)"
_LONG: Final = f"{_NUMBER} AND abs(v.number) >= 2.0 ^ 63"
_TRUTH: Final = "v.kind = 'text' AND v.text IN ['true', 'false']"
_WORD: Final = "v.kind = 'text' AND NOT v.text IN ['true', 'false']"


class NativeNames:
    """The names of one database: what `names.linking.NameReader` asks."""

    def __init__(self, connection: Connection, schema: NativeSchema, layout: NativeLayout) -> None:
        self._connection, self._schema, self._layout = connection, schema, layout

    def _rows(self, text: str, **parameters: Any) -> list[dict[str, Any]]:
        return self._connection.read(text, {**self._layout.parameters(""), **parameters})

    def _relations(self, predicates: tuple[str, ...] | None) -> str | None:
        """A MATCH of the objects `o` of relations; None where there are none."""
        if not self._layout.types_of(predicates):
            return None
        return self._layout.relations_to(predicates, None, table=False)

    def _values(self, predicates: tuple[str, ...] | None) -> str | None:
        """Clauses that leave the values `v` of attributes with their `p`."""
        writing = _Writing(self._schema)
        result = self._layout.holdings.whole(writing, "s", "v", "f", predicates)
        self._given = writing.parameters
        return result

    def shows(self, key: str, qualifier: bool) -> list[list[Any]]:
        """Where the values are by which others of an attribute, or of a qualifier, are read (`Schema.shows`), by subject,
        predicate and value.
        """
        if qualifier:
            types = self._layout.types_of([name for name in self._schema.relations if self._schema.has_qualifier(key, name)])
            (clause,) = self._layout.qualifiers("f", "o", "relation", "v")
            match = f"MATCH (s)-[f:{'|'.join(map(quote, types))}]->(o) WHERE {foreign('s')} AND {foreign('o')} {clause}"
            match, given = f"{match} WITH s, f, v WHERE v.name = $key", {"key": key}
        elif self._has_no_truths(key):
            return []
        else:
            match, given = self._values((key,)) or "", self._given
        if not match:
            return []
        columns = (
            f"min(CASE WHEN {_FRACTION} THEN v.number END) AS fraction, "
            f"min(CASE WHEN {_LONG} THEN v.number END) AS long, max({_WHOLE}) AS whole, "
            f"min(CASE WHEN {_WORD} THEN v.text END) AS word, max({_TRUTH}) AS truth"
        )
        (row,) = self._rows(f"{match} RETURN {columns}", **given)
        tests = []
        if row["whole"] and (row["fraction"] is not None or row["long"] is not None):
            tests.append(f"{_FRACTION if row['fraction'] is not None else _LONG} AND v.number = $value")
        if row["truth"] and row["word"] is not None:
            tests.append(f"{_WORD} AND v.text = $value")
        result = []
        for test in tests:
            value = row["word"] if test.startswith(_WORD) else row["long"] if row["fraction"] is None else row["fraction"]
            predicate = self._layout.type("f") if qualifier else "f[1]"
            first = f"RETURN {self._layout.id('s')} AS id, {predicate} AS p ORDER BY p, {self._layout.name('s')}, id LIMIT 1"
            result += [
                [one["id"], one["p"], value] for one in self._rows(f"{match} WITH * WHERE {test} {first}", value=value, **given)
            ]
        return result

    def _has_no_truths(self, key: str) -> bool:
        """Whether all values of an attribute are texts of which none can be a truth value, as most are: the server tells that
        in a tenth of the time that it takes to read them.
        """
        own = self._schema.properties_of(key)
        texts = all(prop.reading == "itself" and {name for name, _ in prop.types} == {"STRING"} for _, prop in own)
        if not own or not texts or self._schema.mapping.unlabelled:
            return False
        return not any(
            self._rows(f"MATCH (n:{quote(label)}) WHERE {value} CONTAINS 'true' OR {value} CONTAINS 'false' RETURN 1 AS n LIMIT 1")
            for label, value in ((label, f"n.{quote(prop.key)}") for label, prop in own)
        )

    def kinds(self, predicates: tuple[str, ...] | None, source: str | None) -> Kinds:
        """How many objects there are of each type and unit."""
        result: Kinds = {}
        if match := self._relations(predicates):
            for row in self._rows(f"{match}RETURN count(*) AS count"):
                if row["count"]:
                    result[Kind.ENTITY, NO_UNIT] = row["count"]
        if match := self._values(predicates):
            grouped = "v.kind AS kind, CASE v.kind WHEN 'quantity' THEN v.unit END AS unit"
            for row in self._rows(f"{match} RETURN {grouped}, count(*) AS count", **self._given):
                kind = KINDS[row["kind"]]
                key = kind, row["unit"] if kind is Kind.QUANTITY else NO_UNIT
                result[key] = result.get(key, 0) + row["count"]
        return result

    def refers(self, predicates: tuple[str, ...] | None, source: str | None, table: str) -> bool:
        """There are no tables."""
        return False

    def objects(self, predicates: tuple[str, ...] | None, source: str | None) -> Iterator[tuple[str, Value | str, str | None]]:
        """Every distinct object: its predicate, its value (an entity by its name, without a
        predicate), and its raw text.
        """
        if match := self._relations(predicates):
            for row in self._rows(f"{match}RETURN DISTINCT {self._layout.name('o')} AS name"):
                yield "", row["name"], None
        if match := self._values(predicates):
            for row in self._rows(f"{match} RETURN DISTINCT f[1] AS predicate, v AS value", **self._given):
                yield row["predicate"], value_of(row["value"]), row["value"].get("raw")

    def heads(self, predicates: tuple[str, ...]) -> Iterator[str]:
        """The names of subjects."""
        if not predicates:
            return iter(())
        text = f"{self._layout.subjects_of(predicates)} RETURN DISTINCT {self._layout.name('s')} AS name"
        return (row["name"] for row in self._rows(text))

    def names(self) -> Iterable[str]:
        """The names of all nodes and concepts."""
        text = f"MATCH (e) WHERE {foreign('e')} RETURN DISTINCT {self._layout.name('e')} AS name"
        return chain(self._schema.concepts, (row["name"] for row in self._rows(text)))

    def _is_there(self, found: list[str]) -> str:
        return f"{' '.join(found)} RETURN count(e) > 0 AS found"

    def has_name(self, name: str) -> bool:
        """Some node or concept has exactly this name."""
        if self._schema.has_concept(name):
            return True
        return bool(self._rows(self._is_there(self._layout.by_name("e", "= $key")), key=name)[0]["found"])

    def name_of(self, ident: str) -> str | None:
        """The name of the node or concept that has this id; None where none has."""
        concept = next((name for name, known in self._schema.concept_ids().items() if known == ident), None)
        if concept is not None:
            return concept
        result = " ".join(self._layout.by_id("e", "= $key"))
        rows = self._rows(f"{result} RETURN {self._layout.name('e')} AS name LIMIT 1", key=ident)
        return rows[0]["name"] if rows else None

    def has_text(self, text: str) -> bool:
        """Some node has this name or id, or some attribute this text."""
        if self.has_name(text) or self.name_of(text) is not None:
            return True
        writing = _Writing(self._schema)
        queries = "\nUNION ALL\n".join(self._layout.holdings.with_text(writing, "s", "$key"))
        if not queries:
            return False
        return bool(self._rows(f"CALL () {{\n{queries}\n}} RETURN 1 AS found LIMIT 1", key=text, **writing.parameters))

    def without(self, names: Sequence[str]) -> list[str]:
        """Those of the names that no node or concept has: one query."""
        asked = [name for name in names if not self._schema.has_concept(name)]
        if not asked:
            return []
        return [row["k"] for row in self._rows(f"UNWIND $keys AS k {self._layout.absent('k', 'e')} RETURN k", keys=asked)]

    def found(self, names: Sequence[str]) -> dict[str, list[str]] | None:
        """The server's ids of the nodes of some names: one query, whose text is always the same. None
        where they are more than `MOST_FOUND`.
        """
        result: dict[str, list[str]] = {name: [] for name in names}
        nodes = "\n".join(self._layout.by_name("e", "= k"))
        text = f"UNWIND $keys AS k CALL (k) {{\n{nodes}\nRETURN e\n}}\nRETURN k, elementId(e) AS id LIMIT $most"
        rows = self._rows(text, keys=list(result), most=MOST_FOUND + 1)
        for row in rows:
            result[row["k"]].append(row["id"])
        return result if len(rows) <= MOST_FOUND else None

    def described(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Rows of what an answer rests on, with what there is to say of each node in the place of the
        server's id; raises `StoreError` where a node went meanwhile.
        """
        places: list[tuple[Any, Any]] = []
        for record in rows:
            listed = record.get("row")
            parts = [listed, listed.get("m")] if isinstance(listed, dict) else record.get("rows", ())
            for part in parts:
                cells = () if part is None else part.items() if isinstance(part, dict) else enumerate(part)
                places += [(part, at) for at, cell in cells if isinstance(cell, dict) and "node" in cell]
        ids = list(dict.fromkeys(part[key]["node"] for part, key in places))
        text = f"UNWIND $ids AS i MATCH (e) WHERE elementId(e) = i RETURN i, {self._layout.described('e')} AS about"
        about = {row["i"]: row["about"] for row in self._rows(text, ids=ids)} if ids else {}
        for part, key in places:
            if part[key]["node"] not in about:
                raise StoreError("the database changed while it was read", hint="ask again")
            part[key] = about[part[key]["node"]]
        return rows

    names_repeat = False

    def all_names(self, around: Sequence[str]) -> list[str]:
        """The names of all nodes and concepts; of a large database those in order around some texts,
        by the properties that name them.
        """
        if self._schema.mapping.node_count <= MOST_COMPARED:
            return list(dict.fromkeys(chain(self._schema.concepts, self.names())))
        result = list(self._schema.concepts) if around else []
        for pattern, key in self._layout.identity.naming("e"):
            for text in around:
                for side, way in ((">=", ""), ("<", " DESC")):
                    near = f"MATCH {pattern} WHERE {key} {side} $near RETURN DISTINCT {key} AS name ORDER BY name{way} LIMIT $most"
                    result += [row["name"] for row in self._rows(near, near=text, most=AROUND)]
        return list(dict.fromkeys(result))


class _Writing:
    """Fresh variables and parameters of one query."""

    def __init__(self, schema: NativeSchema) -> None:
        self.schema: StoredSchema = schema
        self.parameters: dict[str, Any] = {}
        self._names = 0

    def name(self, prefix: str) -> str:
        """A fresh variable."""
        self._names += 1
        return f"{prefix}{self._names}"

    def parameter(self, value: Any) -> str:
        """A parameter."""
        self.parameters[f"p{len(self.parameters)}"] = value
        return f"$p{len(self.parameters) - 1}"


# -- The whole database as a snapshot ----------------------------------------------------------------
# Streamed, through the mapping that programs go by: the reference that their answers are compared with.
#
# Nodes are entities and members of their labels, properties statements (a list one for each of its
# values), relationships statements with their properties as qualifiers. Relationships that are equal
# in all of these are one statement.


#: Properties as `values_in` takes them, each after its key.
_HELD: Final = f"[k IN keys(%s) WHERE NOT k IN $hidden | head([v IN [%s[k]] | [k] + {sent('v')}])]"
#: Rows between two looks at the deadline.
_ROWS: Final = 1_000


def pull(connection: Connection, mapping: Mapping) -> tuple[Snapshot, int]:
    """The database as a snapshot in memory; and how many relationships it holds that are equal to
    others, which the snapshot has not.
    """
    builder, read = Builder(), 0

    def items() -> Iterator[Item]:
        nonlocal read
        for item in _items(connection, mapping):
            read += isinstance(item, Statement) and isinstance(item.object, Ref)
            yield item

    builder.begin(Source(SOURCE, connection.place, "neo4j"))
    builder.add(items())
    snapshot = Snapshot.of(*lay_out(builder))
    return snapshot, read - snapshot.relations


def _items(connection: Connection, mapping: Mapping) -> Iterator[Item]:
    for node in mapping.nodes:
        if node.label:
            yield Entity(concept_id(node.label), node.concept, EntityKind.CONCEPT)
    yield from _nodes(connection, mapping)
    yield from _relationships(connection, mapping)


def _nodes(connection: Connection, mapping: Mapping) -> Iterator[Item]:
    by_label = {node.label: (place, node, {item.key: item for item in node.properties}) for place, node in enumerate(mapping.nodes)}
    text = f"MATCH (n) WHERE {foreign('n')} RETURN {id_of('n', mapping)}, {name_of('n', mapping)}, labels(n), {_HELD % ('n', 'n')}"
    for number, (ident, name, labels, held) in enumerate(connection.stream(text, {"hidden": _hidden(mapping)})):
        if not number % _ROWS:
            check()
        yield Entity(ident, name)
        for label in labels:
            yield Member(ident, concept_id(label))
        # The first label that has a property says how it is read.
        known = sorted((by_label[label] for label in labels or [""] if label in by_label), key=lambda entry: entry[0])
        for key, *result in held:
            prop = _property(key, known)
            if prop is None:
                continue
            for value, raw in values_in(result, prop):
                yield Statement(ident, prop.predicate, value, raw=raw)


def _hidden(mapping: Mapping) -> list[str]:
    """Keys that are hidden wherever they are: they are not sent at all."""
    shown = {prop.key for node in mapping.nodes for prop in node.properties if prop.key not in node.hidden}
    shown |= {qualifier.key for relationship in mapping.relationships for qualifier in relationship.qualifiers}
    return sorted({key for node in mapping.nodes for key in node.hidden} - shown)


def _property(key: str, known: list[tuple[int, NodeType, dict[str, Property]]]) -> Property | None:
    """How a property of a node is read; None where it is hidden. One that no sample had is read as
    its own type says.
    """
    for _, node, properties in known:
        if key in node.hidden:
            return None
        if key in properties:
            return properties[key]
    return Property(key, key, (), 0)


def _relationships(connection: Connection, mapping: Mapping) -> Iterator[Item]:
    by_type = {
        relationship.type: (relationship, {prop.key: prop for prop in relationship.qualifiers})
        for relationship in mapping.relationships
    }
    text = (
        f"MATCH (a)-[r]->(b) WHERE {foreign('a')} AND {foreign('b')} "
        f"RETURN {id_of('a', mapping)}, type(r), {id_of('b', mapping)}, {_HELD % ('r', 'r')}"
    )
    for number, (subject, name, thing, held) in enumerate(connection.stream(text, {"hidden": _hidden(mapping)})):
        if not number % _ROWS:
            check()
        one, properties = by_type.get(name) or (RelationshipType(name, name, 0), {})
        qualifiers: list[tuple[str, Ref | Value]] = []
        for key, *result in held:
            prop = properties.get(key) or Property(key, key, (), 0)
            called = named(one, prop)
            qualifiers.extend((called, value) for value, _ in values_in(result, prop))
        yield Statement(subject, one.predicate, Ref(thing), tuple(qualifiers))


# -- The store ---------------------------------------------------------------------------------------
# What it is taken for is a `Mapping`. Values are always those of the database; the mapping is read
# again by what made it (`remap`), as its owner sees fit.


T = TypeVar("T")


class NativeStore(CypherStore):
    """A database that condgraph did not write. `remap` gives the mapping of now, the same one as long
    as nothing speaks for another; `closer` the same with some properties counted (`native.refresh`).
    """

    read_only = True

    def __init__(
        self,
        connection: Connection,
        mapping: Mapping,
        *,
        remap: Callable[[], Mapping] | None = None,
        closer: Callable[[Callable[[Mapping], Collection[str]]], Mapping] | None = None,
    ) -> None:
        super().__init__(connection, SOURCE, NativeLayout(mapping, connection.engine))
        self._schema, self._remap, self._look_closer = NativeSchema(mapping, self._shows), remap, closer

    def __repr__(self) -> str:
        return f"<NativeStore at {self.place}>"

    @property
    def mapping(self) -> Mapping:
        """What the database is taken for now."""
        if self._remap is not None:
            result = self._remap()
            if result is not self._schema.mapping:
                self._schema, self._layout = NativeSchema(result, self._shows), NativeLayout(result, self.connection.engine)
        return self._schema.mapping

    def closer(self, keys: Callable[[Mapping], Collection[str]]) -> bool:
        """Have the properties of some keys counted over the whole database; whether that changes anything."""
        before = self.mapping
        return self._look_closer is not None and self._look_closer(keys) is not before

    def answer(self, request: Request) -> Neo4jAnswer:
        """As of other databases; of rows that are cut without an order some of those that there are (`native.first_rows`)."""
        query = self._query(request)
        size = self.mapping.node_count + self.mapping.relationship_count
        if size > first_rows.MOST_WHOLE and request.language in ("cypher", "sparql"):
            some = self._some_rows(request, query.lowered)
            if some is not None:
                return some
        return self._answer(request, lambda: query)

    def _some_rows(self, request: Request, made: Lowered) -> Neo4jAnswer | None:
        """None where no rows are cut, and where all of them are as well asked for."""
        cut = first_rows.CutPlan.of(made.plan)
        if cut is None:
            return None
        layout = self._layout_of(made.plan)
        query = cut.query(self.name, self.schema, layout)
        if query is None:
            return None
        (row,) = self.connection.rows(query.text, query.parameters)
        if len(row["rows"]) <= first_rows.MOST_WHOLE:
            return None
        for tried in cut.attempts(query.names, row["rows"], made):
            compiled = compile_plan(tried.plan, self.name, self.schema, layout=layout)
            answer = Neo4jAnswer(self, request, tried, compiled, self.run(compiled))
            if len(answer.values) >= min(cut.number, request.limit or cut.number):
                return answer
        return None

    def _query(self, request: Request) -> Query:
        """What the properties of a program have is counted first, also beyond the samples."""
        self.closer(lambda mapping: unseen_in(request, mapping))
        while True:
            query = super()._query(request)
            # What an answer asks to explain itself is known from the keys that there are.
            if not request.program or not self.closer(partial(keys_of, query.lowered.plan)):
                return query

    @property
    def schema(self) -> NativeSchema:
        """What lowering knows."""
        assert self.mapping is self._schema.mapping
        return self._schema

    @property
    def content(self) -> str:
        """A name for the counts of the database; edits that keep all counts keep it."""
        return self.mapping.mark

    def _shows(self, key: str, qualifier: bool) -> list[list[Any]]:
        return self.names().shows(key, qualifier)

    def names(self) -> NativeNames:
        """Names read from the database."""
        return NativeNames(self.connection, self._schema, self._layout)  # type: ignore[arg-type]

    def _layout_for(self, plans: Sequence[Node]) -> NativeLayout:
        """Names are looked up first, by one query that is the same for all programs: repeated in each part
        of a query that needs them they are most of what the server plans.
        """
        nodes = [node for plan in plans for node in postorder(plan)]
        names = list(dict.fromkeys(name for node in nodes if isinstance(node, alg.ByName) for name in node.names))
        layout: NativeLayout = self.layout  # type: ignore[assignment]
        result = self.names().found(names) if names else {}
        return layout if result is None else layout.with_found(result)

    def _layout_of(self, plan: Node) -> NativeLayout:
        """Queries of rows, and of the statements that the client works on, are long: names are looked up before them, and nodes
        described after, as for follow-up queries.
        """
        long = id(plan) in lowered(plan) or any(isinstance(node, alg.Solutions) for node in postorder(plan))
        return self._layout_for([plan]) if long else self.layout  # type: ignore[return-value]

    def run(self, compiled: Compiled) -> list[dict[str, Any]]:
        """The rows of a compiled query, which are maps, lists and plain values. Of names that were looked up, nodes are described
        by one more query, which is the same for all programs, too.
        """
        rows = self.connection.rows(compiled.text, compiled.parameters)
        looked_up = isinstance(compiled.layout, NativeLayout) and compiled.layout.found is not None
        return self.names().described(rows) if looked_up and compiled.shape in ("rows", "witness") else rows

    def steady(self, ask: Callable[[], T]) -> T:
        """What `ask` gives: each query is of one state of the database."""
        return ask()

    @property
    def known_sources(self) -> tuple[Source, ...]:
        """The database itself."""
        return (Source(SOURCE, self.place, "neo4j"),)

    def match(self, pattern: Any, *, exact: bool = True, **options: Any) -> Matches:
        """The subgraphs nearest to a pattern: plans fetch the statements that the search reaches."""
        if not exact:
            raise UnsupportedError(TARGET, ["an approximate index of a database that is not condgraph's"], hint="leave `exact` out")
        from condgraph.cypher.native.patterns import NativePatterns
        from condgraph.patterns.remote.planned import planned

        # What texts are read as is counted over all of them.
        self.closer(lambda mapping: {*mapping.unseen, *mapping.keys})
        return planned(self, self.place, self.name, changing=True, kind=NativePatterns).match(pattern, **options)

    # -- looking -----------------------------------------------------------------------------------

    def exists(self) -> bool:
        """A database that answers is there."""
        return True

    def sources(self) -> tuple[Source, ...]:
        """The database itself."""
        return self.known_sources

    def snapshot(self) -> Snapshot:
        """The whole database pulled into process; warns of relationships that are equal to others,
        each of which is one statement there.
        """
        snapshot, equal = self._read()
        if equal:
            many = "1 relationship is" if equal == 1 else f"{equal:,} relationships are"
            warnings.warn(
                f"{many} equal to another in ends, type and properties, and the same statement: "
                "the database itself counts each of them",
                stacklevel=3,
            )
        return snapshot

    def passed_on(self, request: Request) -> Answer:
        """What the database itself answers to a query in Cypher, after its text and the server's plan of it
        were checked: rows of its columns, without evidence, which a warning says.
        """
        rows = self.cypher(str(request.program), {})
        columns = list(rows[0]) if rows else []
        cells = ", ".join(f"row[{at}] AS `{name.replace('`', '``')}`" for at, name in enumerate(columns))
        text = f"UNWIND $rows AS row RETURN {cells}" if rows else "UNWIND [] AS nothing RETURN nothing"
        parameters = {"rows": [[_native(cell) for cell in row.values()] for row in rows]}

        def literal(schema: KnownSchema, program: Any, language: str, options: dict[str, Any]) -> Lowered:
            lowered = lower_cypher(text, schema, parameters=parameters)
            lowered.warnings.append("the database answered this query itself: the answer has no evidence")
            return lowered

        return SnapshotStore(Snapshot.of(*lay_out(Builder()))).answer(replace(request, lower=literal))

    def _read(self) -> tuple[Snapshot, int]:

        # All of it is read: what texts are read as is counted over all of it, too.
        self.closer(lambda mapping: {*mapping.unseen, *mapping.keys})
        return pull(self.connection, self.mapping)


def _native(value: Any) -> Any:
    """A value of the driver as Python has it: dates and times, and what is in lists and maps; texts of others."""
    if isinstance(value, dict):
        return {str(key): _native(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_native(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    native = getattr(value, "to_native", None)
    return native() if native is not None else str(value)


def unseen_in(request: Request, mapping: Mapping) -> list[str]:
    """The keys that no sample has, and that may occur in a program, in whatever spelling."""
    if not mapping.unseen:
        return []
    written = _folded(f"{request.program} {request.options}")
    return [key for key in mapping.unseen if _folded(key) in written]


def _folded(text: str) -> str:
    """A text without what other spellings of a name differ in."""
    return "".join(c for c in text.casefold() if c.isalnum())

"""An existing database as a store: queried in place with one query per program, its names read, or pulled as a whole.

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
from condgraph.engine.schema import MAX_COMPARED, NEARBY, Kinds
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
# Nodes by their name properties; and concepts, which are labels and have no nodes.


#: The most nodes that are looked up by a program's names before its other queries.
MAX_MATCHES: Final = 10_000


#: Tests of a value `v` that decide how expressions read others (`snapshot.readings`).
_NUMBER: Final = "v.kind = 'quantity' AND v.unit = '1'"
_FRACTION: Final = f"{_NUMBER} AND v.number <> floor(v.number)"
_WHOLE: Final = f"{_NUMBER} AND v.number = floor(v.number)"
_LONG: Final = f"{_NUMBER} AND abs(v.number) >= 2.0 ^ 63"
_TRUTH: Final = "v.kind = 'text' AND v.text IN ['true', 'false']"
_WORD: Final = "v.kind = 'text' AND NOT v.text IN ['true', 'false']"


class NativeNames:
    """The names of one database. See `names.linking.NameReader`."""

    def __init__(self, connection: Connection, schema: NativeSchema, layout: NativeLayout) -> None:
        self._connection, self._schema, self._layout = connection, schema, layout

    def _rows(self, text: str, **parameters: Any) -> list[dict[str, Any]]:
        return self._connection.read(text, {**self._layout.parameters(""), **parameters})

    def _relations(self, predicates: tuple[str, ...] | None) -> str | None:
        """Return a MATCH of the objects `o` of relations, or None if there are none."""
        if not self._layout.types_of(predicates):
            return None
        return self._layout.relations_to(predicates, None, table=False)

    def _values(self, predicates: tuple[str, ...] | None) -> str | None:
        """Return clauses that yield the values `v` of attributes."""
        scope = _QueryScope(self._schema)
        result = self._layout.holdings.whole(scope, "s", "v", "f", predicates)
        self._parameters = scope.parameters
        return result

    def shows(self, key: str, qualifier: bool) -> list[list[Any]]:
        """Return the values by which others of an attribute or qualifier are read, with subject and predicate.

        See `Schema.shows`.
        """
        if qualifier:
            types = self._layout.types_of([name for name in self._schema.relations if self._schema.has_qualifier(key, name)])
            (clause,) = self._layout.qualifiers("f", "o", "relation", "v")
            match = f"MATCH (s)-[f:{'|'.join(map(quote, types))}]->(o) WHERE {foreign('s')} AND {foreign('o')} {clause}"
            match, parameters = f"{match} WITH s, f, v WHERE v.name = $key", {"key": key}
        elif self._has_no_truths(key):
            return []
        else:
            match, parameters = self._values((key,)) or "", self._parameters
        if not match:
            return []
        columns = (
            f"min(CASE WHEN {_FRACTION} THEN v.number END) AS fraction, "
            f"min(CASE WHEN {_LONG} THEN v.number END) AS long, max({_WHOLE}) AS whole, "
            f"min(CASE WHEN {_WORD} THEN v.text END) AS word, max({_TRUTH}) AS truth"
        )
        (row,) = self._rows(f"{match} RETURN {columns}", **parameters)
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
                [record["id"], record["p"], value]
                for record in self._rows(f"{match} WITH * WHERE {test} {first}", value=value, **parameters)
            ]
        return result

    def _has_no_truths(self, key: str) -> bool:
        """Tell whether all values of an attribute are texts that cannot be truth values.

        That is true of most attributes, and the server finds it out ten times faster than it reads the values.
        """
        properties = self._schema.properties_of(key)
        texts = all(prop.reading == "itself" and {name for name, _ in prop.types} == {"STRING"} for _, prop in properties)
        if not properties or not texts or self._schema.mapping.unlabelled:
            return False
        return not any(
            self._rows(f"MATCH (n:{quote(label)}) WHERE {value} CONTAINS 'true' OR {value} CONTAINS 'false' RETURN 1 AS n LIMIT 1")
            for label, value in ((label, f"n.{quote(prop.key)}") for label, prop in properties)
        )

    def kinds(self, predicates: tuple[str, ...] | None, source: str | None) -> Kinds:
        """Return how many objects there are of each type and unit."""
        result: Kinds = {}
        if match := self._relations(predicates):
            for row in self._rows(f"{match}RETURN count(*) AS count"):
                if row["count"]:
                    result[Kind.ENTITY, NO_UNIT] = row["count"]
        if match := self._values(predicates):
            grouped = "v.kind AS kind, CASE v.kind WHEN 'quantity' THEN v.unit END AS unit"
            for row in self._rows(f"{match} RETURN {grouped}, count(*) AS count", **self._parameters):
                kind = KINDS[row["kind"]]
                key = kind, row["unit"] if kind is Kind.QUANTITY else NO_UNIT
                result[key] = result.get(key, 0) + row["count"]
        return result

    def refers(self, predicates: tuple[str, ...] | None, source: str | None, table: str) -> bool:
        """Return False: there are no tables."""
        return False

    def objects(self, predicates: tuple[str, ...] | None, source: str | None) -> Iterator[tuple[str, Value | str, str | None]]:
        """Yield each distinct object: its predicate, its value and its raw text.

        An entity is given by its name, without a predicate.
        """
        if match := self._relations(predicates):
            for row in self._rows(f"{match}RETURN DISTINCT {self._layout.name('o')} AS name"):
                yield "", row["name"], None
        if match := self._values(predicates):
            for row in self._rows(f"{match} RETURN DISTINCT f[1] AS predicate, v AS value", **self._parameters):
                yield row["predicate"], value_of(row["value"]), row["value"].get("raw")

    def heads(self, predicates: tuple[str, ...]) -> Iterator[str]:
        """Yield the names of subjects."""
        if not predicates:
            return iter(())
        text = f"{self._layout.subjects_of(predicates)} RETURN DISTINCT {self._layout.name('s')} AS name"
        return (row["name"] for row in self._rows(text))

    def names(self) -> Iterable[str]:
        """Return the names of all nodes and concepts."""
        text = f"MATCH (e) WHERE {foreign('e')} RETURN DISTINCT {self._layout.name('e')} AS name"
        return chain(self._schema.concepts, (row["name"] for row in self._rows(text)))

    def _exists(self, clauses: list[str]) -> str:
        return f"{' '.join(clauses)} RETURN count(e) > 0 AS found"

    def has_name(self, name: str) -> bool:
        """Tell whether some node or concept has exactly this name."""
        if self._schema.has_concept(name):
            return True
        return bool(self._rows(self._exists(self._layout.by_name("e", "= $key")), key=name)[0]["found"])

    def name_of(self, ident: str) -> str | None:
        """Return the name of the node or concept with this id, or None if there is none."""
        concept = next((name for name, concept_ident in self._schema.concept_ids().items() if concept_ident == ident), None)
        if concept is not None:
            return concept
        result = " ".join(self._layout.by_id("e", "= $key"))
        rows = self._rows(f"{result} RETURN {self._layout.name('e')} AS name LIMIT 1", key=ident)
        return rows[0]["name"] if rows else None

    def has_text(self, text: str) -> bool:
        """Tell whether some node has this name or id, or some attribute this text."""
        if self.has_name(text) or self.name_of(text) is not None:
            return True
        scope = _QueryScope(self._schema)
        queries = "\nUNION ALL\n".join(self._layout.holdings.with_text(scope, "s", "$key"))
        if not queries:
            return False
        return bool(self._rows(f"CALL () {{\n{queries}\n}} RETURN 1 AS found LIMIT 1", key=text, **scope.parameters))

    def without(self, names: Sequence[str]) -> list[str]:
        """Return the names that no node or concept has, by one query."""
        candidates = [name for name in names if not self._schema.has_concept(name)]
        if not candidates:
            return []
        return [row["k"] for row in self._rows(f"UNWIND $keys AS k {self._layout.absent('k', 'e')} RETURN k", keys=candidates)]

    def found(self, names: Sequence[str]) -> dict[str, list[str]] | None:
        """Return the server's ids of the nodes of some names, by one query whose text is always the same.

        It is None if there are more than `MAX_MATCHES`.
        """
        result: dict[str, list[str]] = {name: [] for name in names}
        nodes = "\n".join(self._layout.by_name("e", "= k"))
        text = f"UNWIND $keys AS k CALL (k) {{\n{nodes}\nRETURN e\n}}\nRETURN k, elementId(e) AS id LIMIT $most"
        rows = self._rows(text, keys=list(result), most=MAX_MATCHES + 1)
        for row in rows:
            result[row["k"]].append(row["id"])
        return result if len(rows) <= MAX_MATCHES else None

    def described(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return rows of an answer's evidence, with the server's ids replaced by descriptions of the nodes.

        Raise `StoreError` if a node has meanwhile disappeared.
        """
        references: list[tuple[Any, Any]] = []
        for record in rows:
            evidence = record.get("row")
            parts = [evidence, evidence.get("m")] if isinstance(evidence, dict) else record.get("rows", ())
            for part in parts:
                cells = () if part is None else part.items() if isinstance(part, dict) else enumerate(part)
                references += [(part, key) for key, cell in cells if isinstance(cell, dict) and "node" in cell]
        ids = list(dict.fromkeys(part[key]["node"] for part, key in references))
        text = f"UNWIND $ids AS i MATCH (e) WHERE elementId(e) = i RETURN i, {self._layout.described('e')} AS about"
        description_of = {row["i"]: row["about"] for row in self._rows(text, ids=ids)} if ids else {}
        for part, key in references:
            if part[key]["node"] not in description_of:
                raise StoreError("the database changed while it was read", hint="ask again")
            part[key] = description_of[part[key]["node"]]
        return rows

    names_repeat = False

    def all_names(self, around: Sequence[str]) -> list[str]:
        """Return the names of all nodes and concepts; for a large database, those next to some texts in the order of
        name properties.
        """
        if self._schema.mapping.node_count <= MAX_COMPARED:
            return list(dict.fromkeys(chain(self._schema.concepts, self.names())))
        result = list(self._schema.concepts) if around else []
        for pattern, key in self._layout.identity.naming("e"):
            for text in around:
                for side, order in ((">=", ""), ("<", " DESC")):
                    query = (
                        f"MATCH {pattern} WHERE {key} {side} $near RETURN DISTINCT {key} AS name ORDER BY name{order} LIMIT $most"
                    )
                    result += [row["name"] for row in self._rows(query, near=text, most=NEARBY)]
        return list(dict.fromkeys(result))


class _QueryScope:
    """Fresh variables and parameters for one query."""

    def __init__(self, schema: NativeSchema) -> None:
        self.schema: StoredSchema = schema
        self.parameters: dict[str, Any] = {}
        self._names = 0

    def name(self, prefix: str) -> str:
        """Return a fresh variable."""
        self._names += 1
        return f"{prefix}{self._names}"

    def parameter(self, value: Any) -> str:
        """Return a parameter."""
        self.parameters[f"p{len(self.parameters)}"] = value
        return f"$p{len(self.parameters) - 1}"


# -- The whole database as a snapshot ----------------------------------------------------------------
# Streamed through the mapping that programs use: the reference that answers are compared with.
#
# Nodes are entities and members of their labels; properties are statements (one for each value of a list); relationships are
# statements with their properties as qualifiers. Relationships that are equal in all of these are one statement.


#: Properties as `values_in` takes them, each after its key.
_READ: Final = f"[k IN keys(%s) WHERE NOT k IN $hidden | head([v IN [%s[k]] | [k] + {sent('v')}])]"
#: How many rows are read between two checks of the deadline.
_ROWS: Final = 1_000


def pull(connection: Connection, mapping: Mapping) -> tuple[Snapshot, int]:
    """Return the database as a snapshot, and how many relationships it leaves out because they equal others."""
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
    by_label = {
        node.label: (position, node, {item.key: item for item in node.properties}) for position, node in enumerate(mapping.nodes)
    }
    text = f"MATCH (n) WHERE {foreign('n')} RETURN {id_of('n', mapping)}, {name_of('n', mapping)}, labels(n), {_READ % ('n', 'n')}"
    for number, (ident, name, labels, properties) in enumerate(connection.stream(text, {"hidden": _hidden(mapping)})):
        if not number % _ROWS:
            check()
        yield Entity(ident, name)
        for label in labels:
            yield Member(ident, concept_id(label))
        # The first label that has a property tells how it is read.
        node_types = sorted((by_label[label] for label in labels or [""] if label in by_label), key=lambda entry: entry[0])
        for key, *result in properties:
            prop = _property(key, node_types)
            if prop is None:
                continue
            for value, raw in values_in(result, prop):
                yield Statement(ident, prop.predicate, value, raw=raw)


def _hidden(mapping: Mapping) -> list[str]:
    """Return keys that are hidden everywhere, so they are not sent at all."""
    shown = {prop.key for node in mapping.nodes for prop in node.properties if prop.key not in node.hidden}
    shown |= {qualifier.key for relationship in mapping.relationships for qualifier in relationship.qualifiers}
    return sorted({key for node in mapping.nodes for key in node.hidden} - shown)


def _property(key: str, owners: list[tuple[int, NodeType, dict[str, Property]]]) -> Property | None:
    """Return a property of a node with its reading, or None if it is hidden; one that no sample had is read by its own type."""
    for _, node, properties in owners:
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
        f"RETURN {id_of('a', mapping)}, type(r), {id_of('b', mapping)}, {_READ % ('r', 'r')}"
    )
    for number, (subject, name, target, sent_properties) in enumerate(connection.stream(text, {"hidden": _hidden(mapping)})):
        if not number % _ROWS:
            check()
        relationship_type, properties = by_type.get(name) or (RelationshipType(name, name, 0), {})
        qualifiers: list[tuple[str, Ref | Value]] = []
        for key, *result in sent_properties:
            prop = properties.get(key) or Property(key, key, (), 0)
            qualifier_name = named(relationship_type, prop)
            qualifiers.extend((qualifier_name, value) for value, _ in values_in(result, prop))
        yield Statement(subject, relationship_type.predicate, Ref(target), tuple(qualifiers))


# -- The store ---------------------------------------------------------------------------------------
# A `Mapping` describes the database. Values are always current; the mapping is read again by its source (`remap`) when that
# decides to.


T = TypeVar("T")


class NativeStore(CypherStore):
    """An existing database, which condgraph did not write.

    `remap` returns the current mapping, the same object as long as no change is known; `closer` returns it with some properties
    counted (`native.refresh`).
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
        """The current mapping."""
        if self._remap is not None:
            result = self._remap()
            if result is not self._schema.mapping:
                self._schema, self._layout = NativeSchema(result, self._shows), NativeLayout(result, self.connection.engine)
        return self._schema.mapping

    def closer(self, keys: Callable[[Mapping], Collection[str]]) -> bool:
        """Count the properties of some keys over the whole database; tell whether that changes anything."""
        previous = self.mapping
        return self._look_closer is not None and self._look_closer(keys) is not previous

    def answer(self, request: Request) -> Neo4jAnswer:
        """Answer as other stores do; if rows are cut without an order, return some of them. See `native.first_rows`."""
        query = self._query(request)
        size = self.mapping.node_count + self.mapping.relationship_count
        if size > first_rows.MAX_ROWS and request.language in ("cypher", "sparql"):
            partial_answer = self._some_rows(request, query.lowered)
            if partial_answer is not None:
                return partial_answer
        return self._answer(request, lambda: query)

    def _some_rows(self, request: Request, lowered: Lowered) -> Neo4jAnswer | None:
        """Return None if no rows are cut, or if fetching all of them is as good."""
        cut = first_rows.CutPlan.of(lowered.plan)
        if cut is None:
            return None
        layout = self._layout_of(lowered.plan)
        query = cut.query(self.name, self.schema, layout)
        if query is None:
            return None
        (row,) = self.connection.rows(query.text, query.parameters)
        if len(row["rows"]) <= first_rows.MAX_ROWS:
            return None
        for attempt in cut.attempts(query.names, row["rows"], lowered):
            compiled = compile_plan(attempt.plan, self.name, self.schema, layout=layout)
            answer = Neo4jAnswer(self, request, attempt, compiled, self.run(compiled))
            if len(answer.values) >= min(cut.number, request.limit or cut.number):
                return answer
        return None

    def _query(self, request: Request) -> Query:
        """Return a program's query, after counting its properties also outside the samples."""
        self.closer(lambda mapping: unseen_in(request, mapping))
        while True:
            query = super()._query(request)
            # What an answer needs to explain itself follows from the keys found so far.
            if not request.program or not self.closer(partial(keys_of, query.lowered.plan)):
                return query

    @property
    def schema(self) -> NativeSchema:
        """The schema that lowering uses."""
        assert self.mapping is self._schema.mapping
        return self._schema

    @property
    def content(self) -> str:
        """A name for the database's counts; it stays the same when edits change no count."""
        return self.mapping.mark

    def _shows(self, key: str, qualifier: bool) -> list[list[Any]]:
        return self.names().shows(key, qualifier)

    def names(self) -> NativeNames:
        """Return names read from the database."""
        return NativeNames(self.connection, self._schema, self._layout)  # type: ignore[arg-type]

    def _layout_for(self, plans: Sequence[Node]) -> NativeLayout:
        """Return the layout with names looked up first, by one query that is the same for all programs.

        Otherwise the lookup would be repeated in each part of a query that needs it, and take most of the planning time.
        """
        nodes = [node for plan in plans for node in postorder(plan)]
        names = list(dict.fromkeys(name for node in nodes if isinstance(node, alg.ByName) for name in node.names))
        layout: NativeLayout = self.layout  # type: ignore[assignment]
        result = self.names().found(names) if names else {}
        return layout if result is None else layout.with_found(result)

    def _layout_of(self, plan: Node) -> NativeLayout:
        """Return the layout of a plan, with names looked up first if the query is long.

        Queries of rows, and of statements that the client works on, are long; for them nodes are described afterwards.
        """
        long = id(plan) in lowered(plan) or any(isinstance(node, alg.Solutions) for node in postorder(plan))
        return self._layout_for([plan]) if long else self.layout  # type: ignore[return-value]

    def run(self, compiled: Compiled) -> list[dict[str, Any]]:
        """Return the rows of a compiled query: maps, lists and plain values.

        If names were looked up first, one more query describes the nodes; it too is the same for all programs.
        """
        rows = self.connection.rows(compiled.text, compiled.parameters)
        looked_up = isinstance(compiled.layout, NativeLayout) and compiled.layout.found is not None
        return self.names().described(rows) if looked_up and compiled.shape in ("rows", "witness") else rows

    def steady(self, ask: Callable[[], T]) -> T:
        """Return what `ask` gives: each query sees one state of the database."""
        return ask()

    @property
    def known_sources(self) -> tuple[Source, ...]:
        """The database itself."""
        return (Source(SOURCE, self.place, "neo4j"),)

    def match(self, pattern: Any, *, exact: bool = True, **options: Any) -> Matches:
        """Return the subgraphs nearest to a pattern; plans fetch the statements that the search reaches."""
        if not exact:
            raise UnsupportedError(TARGET, ["an approximate index of a database that is not condgraph's"], hint="leave `exact` out")
        from condgraph.cypher.native.patterns import NativePatterns
        from condgraph.patterns.remote.planned import planned

        # How texts are read is decided over all of them.
        self.closer(lambda mapping: {*mapping.unseen, *mapping.keys})
        return planned(self, self.place, self.name, changing=True, kind=NativePatterns).match(pattern, **options)

    # -- looking -----------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Return True: a database that answers exists."""
        return True

    def sources(self) -> tuple[Source, ...]:
        """Return the database itself."""
        return self.known_sources

    def snapshot(self) -> Snapshot:
        """Pull the whole database into process; warn about equal relationships, which become one statement."""
        snapshot, equal = self._read()
        if equal:
            subject = "1 relationship is" if equal == 1 else f"{equal:,} relationships are"
            warnings.warn(
                f"{subject} equal to another in ends, type and properties, and the same statement: "
                "the database itself counts each of them",
                stacklevel=3,
            )
        return snapshot

    def passed_on(self, request: Request) -> Answer:
        """Return what the database itself answers to a Cypher query whose text and plan were checked.

        The answer has the rows of its columns without evidence, and a warning about that.
        """
        rows = self.cypher(str(request.program), {})
        columns = list(rows[0]) if rows else []
        cells = ", ".join(f"row[{index}] AS `{name.replace('`', '``')}`" for index, name in enumerate(columns))
        text = f"UNWIND $rows AS row RETURN {cells}" if rows else "UNWIND [] AS nothing RETURN nothing"
        parameters = {"rows": [[_native(cell) for cell in row.values()] for row in rows]}

        def literal(schema: KnownSchema, program: Any, language: str, options: dict[str, Any]) -> Lowered:
            lowered = lower_cypher(text, schema, parameters=parameters)
            lowered.warnings.append("the database answered this query itself: the answer has no evidence")
            return lowered

        return SnapshotStore(Snapshot.of(*lay_out(Builder()))).answer(replace(request, lower=literal))

    def _read(self) -> tuple[Snapshot, int]:
        # Everything is read, so how texts are read is also decided over everything.
        self.closer(lambda mapping: {*mapping.unseen, *mapping.keys})
        return pull(self.connection, self.mapping)


def _native(value: Any) -> Any:
    """Return a driver's value as Python types, also within lists and maps; other types become text."""
    if isinstance(value, dict):
        return {str(key): _native(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_native(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    native = getattr(value, "to_native", None)
    return native() if native is not None else str(value)


def unseen_in(request: Request, mapping: Mapping) -> list[str]:
    """Return the keys that no sample has and that may occur in a program, in any spelling."""
    if not mapping.unseen:
        return []
    written = _folded(f"{request.program} {request.options}")
    return [key for key in mapping.unseen if _folded(key) in written]


def _folded(text: str) -> str:
    """Return a text without what differs between spellings of a name."""
    return "".join(c for c in text.casefold() if c.isalnum())

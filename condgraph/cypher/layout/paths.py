"""The layout of the graphs that condgraph writes (`cypher.layout.schema`), as the compiler asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from condgraph.cypher.layout.base import Bound, Cell, Layout, Match, Wanted, Writing
from condgraph.cypher.layout.schema import (
    CONCEPT,
    ENTITY,
    QUALIFIER,
    ROW,
    STATEMENT,
    VALUE,
    index_key,
    predicate_key,
    predicate_of,
    quote,
    text_order,
    tie_break,
    type_of,
    value_properties,
)
from condgraph.engine.algebra import Family
from condgraph.engine.values import Kind, Number, Value

#: What is kept of a `Value` or `Qualifier` node.
_KEPT: Final = ("kind", "text", "number", "exact", "unit", "start", "end", "precision", "raw", "id", "held")
_SUFFIX: Final = "' (predicate)'"
#: Edges that may be read in one step where only those of some types are wanted.
MOST_EDGES = ALL_EDGES = 5_000
#: The properties of values that an index has side by side, by kind.
_INDEXED: Final = {Kind.QUANTITY: ("number", "unit"), Kind.TIME: ("start", "end"), Kind.TEXT: ("key",)}


class CondgraphLayout(Layout):
    """The layout of this version's graphs. It has no state: `CONDGRAPH` is the one there is."""

    __slots__ = ()
    complete = True
    floats = True

    def parameters(self, graph: str) -> dict[str, Any]:
        """The graph's name, which leads every index."""
        return {"graph": graph}

    # -- values of a program -----------------------------------------------------------------------

    def key(self, text: str) -> str:
        """A text as it is indexed."""
        return index_key(text)

    def handle(self, ident: str) -> str:
        """An id as it is indexed."""
        return index_key(ident)

    def predicate_key(self, name: str) -> str:
        """A predicate as it is indexed."""
        return predicate_key(name)

    def text_order(self, text: str) -> str:
        """A text that UTF-16 orders by code point."""
        return text_order(text)

    def number_order(self, number: Number) -> str:
        """The property `order` of a number."""
        return tie_break(number)

    def given(self, value: Value) -> dict[str, Any]:
        """The properties of a `Value` node."""
        return value_properties(value)

    # -- entities ----------------------------------------------------------------------------------

    def entity(self, e: str) -> tuple[str, str]:
        """By the label, with the graph, which leads the indexes."""
        return f"({e}:{ENTITY})", f"{e}.graph = $graph"

    def named(self, e: str, test: str) -> str:
        """By the index of names."""
        return f"{e}.graph = $graph AND {e}.key {test}"

    def identified(self, e: str, test: str) -> str:
        """By the index of ids."""
        return f"{e}.graph = $graph AND {e}.handle {test}"

    def has_id(self, e: str, ids: str) -> str:
        """By the id as it is."""
        return f"{e}.id IN {ids}"

    def of_kinds(self, e: str, kinds: str) -> str:
        """By the property."""
        return f"{e}.kind IN {kinds}"

    def is_entity(self, o: str) -> str:
        """By the label."""
        return f"{o}:{ENTITY}"

    def id(self, e: str) -> str:
        """The property."""
        return f"{e}.id"

    def name(self, e: str) -> str:
        """The property."""
        return f"{e}.name"

    def name_key(self, e: str) -> str:
        """The name as it is indexed."""
        return f"{e}.key"

    def kind(self, e: str) -> str:
        """The property."""
        return f"{e}.kind"

    def entity_cell(self, e: str) -> str:
        """The node with fields of a value. `held` tells what an answer lists among its entities."""
        return f"{e} {{kind: 'entity', .key, text: {e}.name, .id, .order, .ranks, held: true}}"

    def name_cell(self, e: str) -> str:
        """The same, as a text."""
        return f"{e} {{kind: 'text', .key, text: {e}.name, .id, .order, .ranks, held: true}}"

    def listed(self, e: str) -> str:
        """Most are neither concepts nor rows, and say no more than their ids and names."""
        return f"CASE {e}.kind WHEN 0 THEN [{e}.id, {e}.name] ELSE [{e}.id, {e}.name, {e}.kind, {e}.row] END"

    def described(self, e: str) -> str:
        """The properties."""
        return f"{e} {{.id, .name, .kind, .source, .row}}"

    # -- concepts ----------------------------------------------------------------------------------

    def members(self, writing: Writing, e: str, names: tuple[str, ...]) -> list[str]:
        """From the nodes of the concepts."""
        c = writing.name("c")
        return [f"MATCH ({c}:{CONCEPT}) WHERE {self.named(c, self.one_of(writing, names))}", *self.members_of(writing, e, c)]

    def members_of(self, writing: Writing, e: str, c: str) -> list[str]:
        """Along the memberships, which are closed under subclass."""
        kept = f" WHERE {e}.kind <> 1" if writing.schema.concept_members else ""
        return [f"MATCH ({e}:{ENTITY})-[:MEMBER_OF]->({c}){kept}", f"WITH DISTINCT {e}"]

    def within(self, writing: Writing, e: str, names: tuple[str, ...]) -> tuple[str, list[str]]:
        """By its memberships. Two concepts of a name could give an entity twice, so that only one is
        joined with.
        """
        c = writing.name("c")
        test = self.named(c, self.one_of(writing, names))
        condition = f"EXISTS {{ MATCH ({e})-[:MEMBER_OF]->({c}:{CONCEPT}) WHERE {test} }}"
        if writing.schema.concept_members:
            return f"{e}.kind <> 1 AND {condition}", []
        if len(names) != 1 or names[0] not in writing.schema.single:
            return condition, []
        return condition, [f"MATCH ({c}:{CONCEPT}) WHERE {test}", f"MATCH ({e})-[:MEMBER_OF]->({c})"]

    # -- tables ------------------------------------------------------------------------------------

    def rows(self, e: str, source: str) -> tuple[str, str]:
        """By the label, in the order of the index."""
        return f"({e}:{ROW})", f"{e}.graph = $graph AND {e}.source = {source} AND {e}.row IS NOT NULL"

    def by_row(self, e: str) -> str:
        """By its statistics the planner may go through all rows of all tables."""
        return f" USING INDEX SEEK {e}:{ROW}(graph, source, row)"

    def row(self, e: str) -> str:
        """The property."""
        return f"{e}.row"

    def source(self, e: str) -> str:
        """The property."""
        return f"{e}.source"

    def row_cell(self, e: str) -> str:
        """A quantity without a unit."""
        return f"{{kind: 'quantity', number: toFloat({e}.row), unit: '1', text: toString({e}.row)}}"

    # -- statements --------------------------------------------------------------------------------

    def attributes(self, writing: Writing, wanted: Wanted) -> Match:
        """Along relationships to `Value` nodes: from what is bound, from the rows of a table, or from
        the values by their index.
        """
        f, anchor, v, predicates = wanted.fact, wanted.anchor, wanted.other, wanted.predicates
        types, cell = self._types_of(writing, wanted), Bound(v)
        if predicates is None or wanted.table is not None:
            label, inside, hint = self._start(wanted)
            pattern = f"({anchor}{label})-[{f}{types}]->({v}:{VALUE})"
            return Match(pattern, [*inside, *wanted.conditions], cell, hint=hint)
        schema, keys = writing.schema, list(map(predicate_key, predicates))
        test = f"= {writing.parameter(keys[0])}" if len(keys) == 1 else f"IN {writing.parameter(keys)}"
        if wanted.bound:
            # A label tells values from entities where a predicate has both.
            end = f":{VALUE}" if any(map(schema.has_relation, predicates)) else ""
            return Match(f"({anchor})-[{f}{types}]->({v}{end})", wanted.conditions, cell)
        kinds = {kind for name in predicates for kind, _ in schema.attribute_kinds(name)}
        if self.indexed(kinds):
            (kind,) = kinds
            whole, hint = [f"{v}.{name} IS NOT NULL" for name in _INDEXED[kind]], self.by_kind(v, kind)
            # A value is that of one statement.
            types = self._given_types(writing, predicates)
        else:
            # By their subjects: no index has values of all kinds.
            whole, hint = [f"{anchor}:{ENTITY}", f"{anchor}.graph = $graph", f"{anchor}.kind IN [0, 1, 2]"], ""
        conditions = [f"{v}.graph = $graph", f"{v}.predicate {test}", *wanted.conditions]
        return Match(f"({anchor})-[{f}{types}]->({v}:{VALUE})", conditions, cell, whole, hint)

    def relations(self, writing: Writing, wanted: Wanted) -> Match:
        """Along relationships."""
        f, anchor, other, predicates = wanted.fact, wanted.anchor, wanted.other, wanted.predicates
        label, inside, hint = self._start(wanted)
        # A label tells entities from values where a predicate has both.
        both = predicates is None or any(map(writing.schema.has_attribute, predicates))
        end = f":{ENTITY}" if wanted.family == "relation" and (not wanted.bound or (both and wanted.outward)) else ""
        first, second = f"({anchor}{label})", f"({other}{end})"
        if not wanted.outward:
            first, second = second, first
        thing = other if wanted.outward else anchor
        types = self._types_of(writing, wanted)
        return Match(f"{first}-[{f}{types}]->{second}", [*inside, *wanted.conditions], Bound(thing), hint=hint)

    def _start(self, wanted: Wanted) -> tuple[str, list[str], str]:
        """The label, conditions and hint of the anchors."""
        if wanted.bound:
            return "", [], ""
        if wanted.table is not None:
            return f":{ROW}", [self.rows(wanted.anchor, wanted.table)[1]], self.by_row(wanted.anchor)
        return f":{ENTITY}", [f"{wanted.anchor}.graph = $graph"], ""

    def _types_of(self, writing: Writing, wanted: Wanted) -> str:
        """The types of a scan: parameters, so that the texts of other predicates are the same text and
        are planned once, where reading all edges of its anchors, as the server does for types that
        it does not know before, is no work to speak of.
        """
        predicates, hubs = wanted.predicates, writing.schema.hubs
        if predicates and wanted.bound and all(name in hubs for name in predicates):
            side = 0 if wanted.outward else 1
            edges, each = (max(hubs[name][at] for name in predicates) for at in (side, 2 + side))
            if edges <= MOST_EDGES and each * wanted.anchors <= ALL_EDGES:
                return self._given_types(writing, predicates)
        return self._types(predicates)

    def _given_types(self, writing: Writing, predicates: Sequence[str]) -> str:
        types = [type_of(name) for name in predicates]
        return f":$({writing.parameter(types[0])})" if len(types) == 1 else f":$any({writing.parameter(types)})"

    def _types(self, predicates: Sequence[str] | None) -> str:
        return "" if predicates is None else ":" + "|".join([quote(type_of(name)) for name in predicates])

    def is_statement(self, f: str) -> str:
        """The edges of the layout have no `sid`."""
        return f"{f}.sid IS NOT NULL"

    def indexed(self, kinds: set[Kind]) -> bool:
        """Indexes have the values of one kind."""
        return len(kinds) == 1 and next(iter(kinds)) in _INDEXED

    def by_kind(self, v: str, kind: Kind) -> str:
        """Without it the planner may take the index of all predicates."""
        return f" USING INDEX SEEK {v}:{VALUE}(graph, predicate, {', '.join(_INDEXED[kind])})"

    def object(self, o: str, family: Family) -> Cell:
        """The node: of an entity it has what a text is compared by."""
        return Bound(o)

    def object_cell(self, o: str, family: Family) -> str:
        """A value's node is one of many."""
        cell = self.entity_cell(o)
        return f"CASE WHEN {o}:{VALUE} THEN properties({o}) ELSE {cell} END" if family == "any" else cell

    def kind_of_object(self, o: str) -> str:
        """By the label."""
        return f"CASE WHEN {o}:{VALUE} THEN {o}.kind ELSE 'entity' END"

    def type(self, f: str) -> str:
        """The type of the relationship."""
        return f"type({f})"

    def predicate(self, f: str) -> str:
        """The type without what tells it from those of the layout."""
        return f"CASE WHEN type({f}) ENDS WITH {_SUFFIX} THEN left(type({f}), size(type({f})) - 12) ELSE type({f}) END"

    def predicate_of(self, type_name: str) -> str:
        """The same, of what was read."""
        return predicate_of(type_name)

    # -- sources -----------------------------------------------------------------------------------

    def in_source(self, source: str, f: str, value: str | None) -> str:
        """By what stands at the relationship, or at its value."""
        return f"{source} IN {f}.sources" if value is None else f"{source} IN coalesce({f}.sources, {value}.sources)"

    def standing_in(self, writing: Writing, e: str, source: str) -> list[str]:
        """Rows, subjects and objects."""
        pattern, inside = self.rows(e, source)
        f, o = writing.name("f"), writing.name("o")
        subject, of_graph = self.entity(e)
        stands = self.in_source(source, f, o)
        return [
            f"MATCH {pattern} WHERE {inside} RETURN {e}",
            f"MATCH {subject}-[{f}]->({o}) WHERE {of_graph} AND {self.is_statement(f)} AND {stands} RETURN {e}",
            f"MATCH ({o}:{ENTITY})-[{f}]->{subject} WHERE {of_graph} AND {self.is_statement(f)} "
            f"AND {source} IN {f}.sources RETURN {e}",
        ]

    def place(self, f: str, value: str | None) -> str:
        """Beside the sources."""
        return f"{f}.rows[0]" if value is None else f"coalesce({f}.rows, {value}.rows)[0]"

    # -- qualifiers and validity -------------------------------------------------------------------

    def qualifiers(self, f: str, o: str, family: Family, q: str) -> list[str]:
        """From the value of an attribute, from the `Statement` of a relation."""
        return [f"MATCH {owner}-[:QUALIFIER]->({q}:{QUALIFIER})" for owner in self._owners(f, o, family)]

    def _owners(self, f: str, o: str, family: Family) -> list[str]:
        """The nodes that qualifiers can hang on."""
        found = [] if family == "relation" else [f"({o})"]
        return found if family == "attribute" else [*found, f"(:{STATEMENT} {{graph: $graph, sid: {f}.sid}})"]

    def qualifier_name(self, q: str) -> str:
        """The property."""
        return f"{q}.name"

    def referred(self, q: str, e: str) -> str:
        """Along the edge of the layout."""
        return f"({q})-[:IS]->({e}:{ENTITY})"

    def validity(self, f: str) -> tuple[str, str]:
        """The properties of the relationship."""
        return f"{f}.since", f"{f}.until"

    def validity_cell(self, f: str) -> str:
        """The same, with precision and text."""
        return f"{{kind: 'time', start: {f}.since, end: {f}.until, precision: {f}.span, text: {f}.valid}}"

    # -- what an answer rests on -------------------------------------------------------------------

    def statement(self, writing: Writing, f: str, s: str, o: str, family: Family) -> str:
        """With its ends, its qualifiers and its sources."""
        q, x = writing.name("q"), writing.name("e")
        value = "null" if family == "relation" else f"{o} {{{_FIELDS}}}"
        thing = "null" if family == "attribute" else self.described(o)
        if family == "any":
            value, thing = f"CASE WHEN {o}:{VALUE} THEN {value} END", f"CASE WHEN {o}:{ENTITY} THEN {thing} END"
        qualifiers = " + ".join(
            f"COLLECT {{ {clause} OPTIONAL MATCH {self.referred(q, x)} RETURN {q} {{{_FIELDS}, .name, ref: {self.described(x)}}} }}"
            for clause in self.qualifiers(f, o, family, q)
        )
        sources, rows = (f"{f}.{one}" if family == "relation" else f"coalesce({f}.{one}, {o}.{one})" for one in ("sources", "rows"))
        return (
            f"{{s: {self.described(s)}, p: type({f}), id: {f}.sid, o: {thing}, v: {value}, sources: {sources}, rows: {rows}, "
            f"q: {qualifiers}}}"
        )

    def memberships(self, writing: Writing, concepts: str, members: str) -> list[list[str]]:
        """Memberships that were stated have sources."""
        e, c, d, p, m = (writing.name(prefix) for prefix in ("e", "c", "c", "c", "m"))
        below = f"UNWIND {concepts} AS {c} MATCH ({d}:{CONCEPT})-[:SUBCLASS_OF*0..]->({c}) WITH DISTINCT {d}"
        places = f"sources: {m}.sources, rows: {m}.rows"
        return [
            [
                below,
                f"MATCH ({e}:{ENTITY})-[{m}:MEMBER_OF]->({d}) WHERE size({m}.sources) > 0 AND {e} IN {members}",
                f"RETURN -1 AS unit, {{m: {{a: {self.described(e)}, b: {self.described(d)}, {places}}}}} AS row",
            ],
            [
                below,
                f"MATCH ({p}:{CONCEPT})-[{m}:SUBCLASS_OF]->({d})",
                f"RETURN -1 AS unit, {{c: {{a: {self.described(p)}, b: {self.described(d)}, {places}}}}} AS row",
            ],
        ]

    def memberships_of(self, writing: Writing, members: str, most: int) -> list[list[str]]:
        """Of members, and of concepts."""
        found = []
        for end in ("e", "c"):
            e, c, m = (writing.name(prefix) for prefix in ("e", "c", "m"))
            given = e if end == "e" else c
            link = f"{{m: {{a: {self.described(e)}, b: {self.described(c)}, sources: {m}.sources, rows: {m}.rows}}}}"
            stated = f"MATCH ({e})-[{m}:MEMBER_OF]->({c}) WHERE size({m}.sources) > 0"
            found.append([f"UNWIND {members} AS {given}", stated, f"RETURN -1 AS unit, {link} AS row LIMIT {int(most)}"])
        return found

    # -- names -------------------------------------------------------------------------------------

    def subjects_of(self, predicates: Sequence[str]) -> str:
        """Whatever the statements lead to."""
        pattern, inside = self.entity("s")
        return f"MATCH {pattern}-[f{self._types(predicates)}]->() WHERE {inside}"

    def relations_to(self, predicates: Sequence[str] | None, source: str | None, *, table: bool) -> str:
        """All predicates are not spelled out: the edges of the layout have no `sid`."""
        subject, inside = self.rows("s", source) if table and source else self.entity("s")
        scope = "" if source is None else f" AND {self.in_source(source, 'f', None)}"
        return f"MATCH {subject}-[f{self._types(predicates)}]->(o:{ENTITY}) WHERE {inside} AND {self.is_statement('f')}{scope} "

    def values_of(self, predicates: Sequence[str] | None, source: str | None, *, table: bool) -> str:
        """By the index of values, without their subjects, or from the rows of a table."""
        scope = "" if source is None else f" AND {self.in_source(source, 'o', None)}"
        if table and source:
            subject, inside = self.rows("s", source)
            return f"MATCH {subject}-[f{self._types(predicates)}]->(o:{VALUE}) WHERE {inside}{scope} "
        return f"MATCH (o:{VALUE}) WHERE o.graph = $graph AND o.predicate IN $attributes{scope} "

    def value_id(self, o: str) -> str:
        """The statement of a value."""
        return f"{o}.sid"


_FIELDS: Final = ", ".join(f".{name}" for name in _KEPT)
#: The one there is.
CONDGRAPH: Final = CondgraphLayout()

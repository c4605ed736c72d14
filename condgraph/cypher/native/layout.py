"""An existing database as the compiler queries it (`cypher.layout.base`).

Nodes are entities, labels concepts, properties attributes, relationships relations, and their properties qualifiers. A
relation's statement is its relationship. An attribute's statement is a list of node, predicate and value, after the
clauses that read the property (`native.properties`). A search of the whole database goes label by label, as the server's
indexes do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import copy
from typing import Any, ClassVar, Final

from condgraph.cypher.dialect import translated
from condgraph.cypher.layout.base import Bound, Cell, Direct, Layout, Match, QueryScope, ScanRequest
from condgraph.cypher.layout.schema import quote
from condgraph.cypher.native.identity import SOURCE, Identity, concept_id, foreign, found_ids, node_of, within_labels
from condgraph.cypher.native.mapping import Mapping
from condgraph.cypher.native.properties import Holdings, NodeCell, ObjectCell, Qualifiers, bounds, disjoint_labels, ranks_of
from condgraph.cypher.native.refresh import keys_of
from condgraph.cypher.servers import NEO4J, Engine
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Family, Node, postorder
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import Number, Quantity, Value, as_float, tie_break

#: A type that no relationship has, for patterns of predicates that are not relations.
NO_TYPE: Final = "no relation of the database"


class NativeLayout(Layout):
    """The layout of one database, by its mapping."""

    __slots__ = ("engine", "found", "holdings", "identity", "labels", "mapping", "qualifying", "types")

    trusted: ClassVar[bool] = False
    parallel: ClassVar[bool] = True
    labelled: ClassVar[bool] = True
    looks_up: ClassVar[bool] = False

    def __init__(self, mapping: Mapping, engine: Engine = NEO4J) -> None:
        self.mapping, self.engine = mapping, engine
        #: The server's ids of the nodes of some names, if they were looked up before.
        self.found: dict[str, list[str]] | None = None
        self.identity = Identity(mapping)
        self.holdings = Holdings(mapping)
        self.qualifying = Qualifiers(mapping)
        self.labels: dict[str, list[str]] = {}
        for node in mapping.nodes:
            if node.label:
                self.labels.setdefault(node.concept, []).append(node.label)
        self.types: dict[str, list[str]] = {}
        for relationship in mapping.relationships:
            self.types.setdefault(relationship.predicate, []).append(relationship.type)

    def written(self, text: str) -> str:
        """Return a query in the server's dialect."""
        return translated(text, self.engine)

    def missing(self, node: Node) -> str | None:
        """Return what the layout lacks for an operator: concepts have no nodes, so computed ones are unsupported."""
        if isinstance(node, alg.Members) and not isinstance(node.concepts, alg.ByName):
            return "members of concepts that are worked out"
        return None

    def remarks(self, plan: Node) -> list[str]:
        """Return warnings about names that are labels; in process a concept is also an entity, but labels have no nodes."""
        nodes = postorder(plan)
        # Rows can also bind concepts.
        inputs = [part for node in nodes for part in node.inputs() if not isinstance(node, alg.Members | alg.Solutions)]
        names = {name for node in (plan, *inputs) if isinstance(node, alg.ByName) for name in node.names}
        uncounted = sorted(keys_of(plan, self.mapping) & self.mapping.unsure) if self.mapping.unsure else []
        return [
            f"{key!r} could not be counted in time: it is what the first nodes and relationships of each kind say"
            for key in uncounted
        ] + [
            f"{name!r} is a label of this database, and no entity: its nodes are the members of that concept"
            for name in sorted(names & self.labels.keys())
        ]

    def parameters(self, graph: str) -> dict[str, Any]:
        """Return parameters for qualifiers, names of types and labels, and the nodes of names looked up before."""
        result = {**self.qualifying.parameters, **self.identity.parameters}
        return result if self.found is None else {**result, "found": self.found}

    def with_found(self, found: dict[str, list[str]]) -> NativeLayout:
        """Return this layout for a follow-up query of an answer.

        Names refer to nodes looked up before, by the server's ids, and nodes are described afterwards. That keeps query texts
        short and fast to plan.
        """
        other = copy(self)
        other.found = found
        return other

    def typed(self, parameter: str, value: Any) -> str:
        """Return a parameter with texts declared as text, since an index of the database may cover only texts."""
        if isinstance(value, str):
            return f"toString({parameter})"
        texts = isinstance(value, list) and value and all(isinstance(item, str) for item in value)
        return f"toStringList({parameter})" if texts else parameter

    def number(self, value: Quantity) -> tuple[Number, bool]:
        """Return a number as it is compared; integers of the server stay integers."""
        if isinstance(value.number, int) and abs(value.number) < 2**63:
            return value.number, True
        return as_float(value)[0], True

    def given(self, value: Value) -> dict[str, Any]:
        """Return the parameters of a value, with numbers as in `number`; what is no number of the server equals nothing."""
        result = super().given(value)
        if isinstance(value, Quantity):
            result["number"] = self.number(value)[0]
            if not isinstance(result["number"], int) and (order := tie_break(value.number)) != "1":
                result["order"] = order
        return result

    def ranks(self, cell: Cell) -> str:
        """Return the ranks of a value, computed from its text."""
        return ranks_of(f"CASE WHEN {cell.kind} IN ['text', 'entity'] THEN {cell.text} END")

    # -- entities ----------------------------------------------------------------------------------

    def entity(self, e: str) -> tuple[str, str]:
        """Return the pattern and test of any node that is not condgraph's own."""
        return f"({e})", foreign(e)

    def by_name(self, e: str, test: str) -> list[str]:
        """Find nodes by the name properties of each label, or among nodes looked up before.

        A test without a parameter is on names that the query itself finds.
        """
        if self.found is not None and "$" in test:
            return [f"MATCH ({e}) WHERE elementId({e}) IN {found_ids(test)}"]
        return self._union(self.identity.named(e, test), self.named(e, test))

    def by_id(self, e: str, test: str) -> list[str]:
        """Find nodes by the unique key of each label, or by the server's id."""
        return self._union(self.identity.identified(e, test), self.identified(e, test))

    def _union(self, queries: Sequence[str], check: str) -> list[str]:
        return ["CALL (*) {\n" + "\nUNION\n".join(queries) + "\n}", f"WITH * WHERE {check}"]

    def absent(self, k: str, e: str) -> str:
        result = "\n".join(self.by_name(e, f"= {k}"))
        return f"CALL ({k}) {{\n{result}\nRETURN count({e}) AS {e}\n}}\nWITH {k}, {e} WHERE {e} = 0"

    def named(self, e: str, test: str) -> str:
        return f"{self.name(e)} {test}"

    def identified(self, e: str, test: str) -> str:
        return f"{self.id(e)} {test}"

    def has_id(self, e: str, ids: str) -> str:
        return f"{self.id(e)} IN {ids}"

    def of_kinds(self, e: str, kinds: str) -> str:
        return f"{int(EntityKind.ENTITY)} IN {kinds}"

    def is_entity(self, o: str) -> str:
        return f"{o} IS :: NODE NOT NULL"

    def is_entity_term(self, o: str) -> str:
        """Return a test for a node, or for a concept's map, whose kind is a number."""
        return f"({self.is_entity(o)} OR {o}.kind IS :: INTEGER NOT NULL)"

    def is_node_term(self, o: str) -> str:
        return self.is_entity(o)

    def term_id(self, o: str) -> str:
        return f"CASE WHEN {self.is_entity(o)} THEN elementId({_untyped(o)}) ELSE {o}.id END"

    def described_term(self, o: str) -> str:
        return f"CASE WHEN {self.is_entity(o)} THEN {self.described(o)} ELSE {o} END"

    def id(self, e: str) -> str:
        """Return the id: label and unique key, or the server's id."""
        return self.identity.id(e)

    def name(self, e: str) -> str:
        return self.identity.name(e)

    def kind(self, e: str) -> str:
        return str(int(EntityKind.ENTITY))

    def _entity(self, e: str, kind: str) -> Cell:
        return NodeCell(self.name(e), self.id(e), kind)

    def entity_cell(self, e: str) -> str:
        return self._entity(e, "entity").whole

    def name_cell(self, e: str) -> str:
        return self._entity(e, "text").whole

    def listed(self, e: str) -> str:
        return f"[{self.id(e)}, {self.name(e)}]"

    def described(self, e: str) -> str:
        """Return the description of a node, null if the node is.

        If names were looked up before, it is only the server's id; another query describes the nodes (`NativeNames.described`).
        """
        if self.found is not None:
            return f"CASE WHEN {e} IS NOT NULL THEN {{node: elementId({e})}} END"
        about = f"{{id: {self.id(e)}, name: {self.name(e)}, kind: {self.kind(e)}, source: null, row: null}}"
        return f"CASE WHEN {e} IS NOT NULL THEN {about} END"

    # -- concepts ----------------------------------------------------------------------------------

    def labels_of(self, names: Collection[str]) -> list[str]:
        """Return the labels of the concepts of some names."""
        return [label for name in names for label in self.labels.get(name, ())]

    def members(self, scope: QueryScope, e: str, names: tuple[str, ...]) -> list[str]:
        queries = [
            f"MATCH {pattern}{f' WHERE {test}' if test else ''} RETURN {e}"
            for _, pattern, test in disjoint_labels(e, self.labels_of(names))
        ]
        return ["CALL (*) {\n" + "\nUNION ALL\n".join(queries) + "\n}"] if queries else [f"UNWIND [] AS {e} WITH {e}"]

    def within(self, scope: QueryScope, e: str, names: tuple[str, ...]) -> tuple[str, list[str]]:
        labels = self.labels_of(names)
        return within_labels(e, labels) if labels else "false", []

    def labels_in(self, entities: alg.Entities) -> list[str]:
        """Return the labels in a set given by names, ids and kinds; other sets have no concepts.

        Raise `UnsupportedError` if only the database can tell.
        """
        if isinstance(entities, alg.ByName):
            return self.labels_of(dict.fromkeys(entities.names))
        if isinstance(entities, alg.ById):
            return [label for label in self._concepts if concept_id(label) in entities.ids]
        if isinstance(entities, alg.AllEntities):
            return list(self._concepts) if EntityKind.CONCEPT in entities.kinds and entities.source is None else []
        if isinstance(entities, alg.Union | alg.Intersect):
            label_lists = list(map(self.labels_in, entities.parts))
            combine = set(label_lists[0]).union if isinstance(entities, alg.Union) else set(label_lists[0]).intersection
            return sorted(combine(*label_lists[1:]))
        if isinstance(entities, alg.Minus):
            return sorted(set(self.labels_in(entities.left)).difference(self.labels_in(entities.right)))
        if isinstance(entities, alg.SameName | alg.Referents | alg.SubjectsOf | alg.EntitiesOf):
            self._lacks("concepts among entities that are worked out")
        return []

    @property
    def _concepts(self) -> dict[str, str]:
        """The names of concepts by their labels."""
        return {label: name for name, labels in self.labels.items() for label in labels}

    def concept_terms(self, labels: Collection[str]) -> list[dict[str, Any]]:
        """Return concepts as in `described`, with the fields of a cell that tests use."""
        names, kind = self._concepts, int(EntityKind.CONCEPT)
        return [
            {"id": concept_id(label), "name": names[label], "kind": kind, "source": None, "row": None, "label": label}
            | {"key": names[label], "text": names[label]}
            for label in labels
        ]

    def in_labels(self, e: str, labels: Sequence[str]) -> str:
        return within_labels(e, labels)

    def in_label(self, e: str, c: str) -> str:
        return f"CASE WHEN {self.is_entity(c)} THEN false ELSE coalesce({c}.label IN labels({e}), false) END"

    # -- statements --------------------------------------------------------------------------------

    def attributes(self, scope: QueryScope, wanted: ScanRequest) -> Match:
        """Return the properties of a predicate, for each label that has them."""
        return self.holdings.match(scope, wanted, self.labels_of)

    def relations(self, scope: QueryScope, wanted: ScanRequest) -> Match:
        """Match relationships. From a mapped node, those of a type lead only to mapped nodes."""
        if wanted.family == "any":
            return self._any(scope, wanted)
        f, anchor, other = wanted.fact, wanted.anchor, wanted.other
        types = self.types_of(wanted.predicates) or [NO_TYPE]
        target = self.object(other if wanted.outward else anchor, "relation")
        first, second = (anchor, other) if wanted.outward else (other, anchor)
        tests = [] if wanted.bound else [foreign(anchor)]
        return Match(f"({first})-[{f}:{'|'.join(map(quote, types))}]->({second})", [*tests, *wanted.conditions], target)

    def _any(self, scope: QueryScope, wanted: ScanRequest) -> Match:
        """Match relationships, then properties."""
        f, e, o = wanted.fact, wanted.anchor, wanted.other
        types = self.types_of(wanted.predicates)
        queries = [f"MATCH ({e})-[{f}:{'|'.join(map(quote, types))}]->({o}) RETURN {f}, {o}"] if types else []
        queries += [f"{text} RETURN {f}, {o}" for text in self.holdings.queries(scope, e, o, f, wanted.predicates)]
        start = [] if wanted.bound else [f"MATCH ({e}) WHERE {foreign(e)}"]
        body = "\nUNION ALL\n".join(queries) or f"UNWIND [] AS {f} RETURN {f}, null AS {o}"
        return Match(None, wanted.conditions, self.object(o, "any"), before=[*start, f"CALL ({e}) {{\n{body}\n}}"])

    def types_of(self, predicates: Sequence[str] | None) -> list[str]:
        """Return the types of some predicates, or of all."""
        names = self.types if predicates is None else predicates
        return list(dict.fromkeys(type_name for name in names for type_name in self.types.get(name, ())))

    def row_statement(self, f: str, o: str, family: Family) -> str:
        """Return a statement to keep; that of a property is followed by its value."""
        return f if family == "relation" else f"CASE WHEN {_is_relation(f)} THEN {f} ELSE {_untyped(f)} + [{o}] END"

    def same_statement(self, f: str) -> str:
        return f"CASE WHEN {_is_relation(f)} THEN {f} ELSE {_untyped(f)}[..3] END"

    def ends(self, f: str) -> tuple[str, str]:
        untyped = _untyped(f)
        return (
            f"CASE WHEN {_is_relation(f)} THEN startNode({untyped}) ELSE {untyped}[0] END",
            f"CASE WHEN {_is_relation(f)} THEN endNode({untyped}) ELSE {untyped}[3] END",
        )

    def reach(
        self, a: str, b: str, predicates: Sequence[str], direction: str, least: int, most: int | None
    ) -> tuple[str, list[str]]:
        """Return a path of relationships of some types."""
        left, right = {"forward": ("-", "->"), "backward": ("<-", "-"), "either": ("-", "-")}[direction]
        types = "|".join(map(quote, self.types_of(predicates) or [NO_TYPE]))
        return f"({a}){left}[:{types}*{least}..{'' if most is None else most}]{right}({b})", [foreign(a), foreign(b)]

    def is_statement(self, f: str) -> str:
        """Return a test that always holds, since types that are not relations are not searched."""
        return "true"

    def object(self, o: str, family: Family) -> Cell:
        if family == "attribute":
            return Bound(o)
        return self._entity(o, "entity") if family == "relation" else ObjectCell(o, self._entity(o, "entity"))

    def object_cell(self, o: str, family: Family) -> str:
        return ObjectCell(o, self._entity(o, "entity")).whole if family == "any" else self.entity_cell(o)

    def type(self, f: str) -> str:
        """Return the predicate of a relationship or of a value."""
        untyped = _untyped(f)
        return f"CASE WHEN {_is_relation(f)} THEN {self.qualifying.predicate(untyped)} ELSE {untyped}[1] END"

    def predicate(self, f: str) -> str:
        return self.type(f)

    def direct(self, e: str, predicate: str, concepts: Sequence[str] = ()) -> Direct | None:
        return self.holdings.direct(e, predicate, self.labels_of(concepts))

    def direct_qualifier(self, f: str, predicates: Sequence[str], key: str) -> Direct | None:
        """Return a property of relationships, if all of them have it with the same type."""
        return self.qualifying.direct(f, predicates, key)

    def hop(self, r: str, a: str, b: str, predicates: Sequence[str], *, outward: bool) -> str | None:
        types = "|".join(map(quote, self.types_of(predicates)))
        if not types:
            return None
        return f"({a})-[{r}:{types}]->({b})" if outward else f"({a})<-[{r}:{types}]-({b})"

    # -- sources -----------------------------------------------------------------------------------

    def in_source(self, source: str, f: str, value: str | None) -> str:
        return f"{source} = '{SOURCE}'"

    def entities_in_source(self, scope: QueryScope, e: str, source: str) -> list[str]:
        return [f"MATCH ({e}) WHERE {foreign(e)} AND {source} = '{SOURCE}' RETURN {e}"]

    # -- qualifiers and validity -------------------------------------------------------------------

    def qualifiers(self, f: str, o: str, family: Family, q: str) -> list[str]:
        """Return the properties of a relationship; each element of a list is a qualifier."""
        return [f"UNWIND [] AS {q} WITH *"] if family == "attribute" else [self.qualifying.clause(f, q)]

    def qualifier_name(self, q: str) -> str:
        return f"{q}.name"

    def refer(self, q: str, e: str) -> str:
        return f"WITH *, null AS {e}"

    def has_times(self, family: Family) -> bool:
        """Tell whether statements have times; properties of nodes have none."""
        return family != "attribute"

    def validity(self, f: str) -> tuple[str, str]:
        return bounds(*self.qualifying.times(f))

    def timed(self, f: str, test: Callable[[tuple[str, str]], str]) -> str:
        """Return a test of times.

        They are read once, since reading takes a long expression and a test uses each up to four times.
        """
        since, until = self.qualifying.times(f)
        v = f"{f}v"
        return f"any({v} IN [[{since}, {until}]] WHERE {test(bounds(f'{v}[0]', f'{v}[1]'))})"

    def validity_cell(self, f: str) -> str:
        since, until = self.validity(f)
        return f"{{kind: 'time', start: {since}, end: {until}, precision: 0}}"

    # -- what an answer rests on -------------------------------------------------------------------

    def statement(self, scope: QueryScope, f: str, s: str, o: str, family: Family) -> str:
        """Return a statement with its ends, its qualifiers and its one source."""
        qualifiers = "[]" if family == "attribute" else self.qualifying.sent(f)
        value = f"CASE WHEN {self.is_entity(o)} THEN null ELSE {o} END"
        target = f"CASE WHEN {self.is_entity(o)} THEN {self.described(o)} END"
        if family == "relation":
            value, target, ident = "null", self.described(o), f"elementId({f})"
        else:
            ident = f"elementId({s}) + ' ' + {_untyped(f)}[1] + ' ' + {o}.kind + ' ' + coalesce({o}.text, '')"
            if family == "any":
                ident = f"CASE WHEN {_is_relation(f)} THEN elementId({_untyped(f)}) ELSE {ident} END"
            else:
                value, target = o, "null"
        return (
            f"{{s: {self.described(s)}, p: {self.type(f)}, id: {ident}, o: {target}, v: {value}, "
            f"sources: ['{SOURCE}'], rows: [0], q: {qualifiers}}}"
        )

    def qualifiers_in(self, sent: Sequence[Any]) -> list[tuple[str, Any]]:
        return self.qualifying.read(sent)

    def concepts_named(self, scope: QueryScope, names: Sequence[str]) -> list[str]:
        """Return concepts, which are spelled out since they have no nodes."""
        return [self._concept(scope, label, name) for name in names for label in self.labels.get(name, ())]

    def _concept(self, scope: QueryScope, label: str, name: str) -> str:
        name_parameter, id_parameter = scope.parameter(name), scope.parameter(concept_id(label))
        return f"{{id: {id_parameter}, name: {name_parameter}, kind: {int(EntityKind.CONCEPT)}, source: null, row: null}}"

    def memberships_in(self, scope: QueryScope, names: Sequence[str], members: str) -> list[list[str]]:
        result = []
        for name in names:
            for label in self.labels.get(name, ()):
                e, about = scope.name("e"), self._concept(scope, label, name)
                link = f"{{m: {{a: {self.described(e)}, b: {about}, sources: ['{SOURCE}'], rows: [0]}}}}"
                result.append(
                    [f"UNWIND {members} AS {e}", f"WITH {e} WHERE {e}:{quote(label)}", f"RETURN -1 AS unit, {link} AS row"]
                )
        return result

    def memberships(self, scope: QueryScope, concepts: str, members: str) -> list[list[str]]:
        """Return the labels of each member, whichever concepts are asked for."""
        return self.memberships_of(scope, members, None)

    def memberships_of(self, scope: QueryScope, members: str, most: int | None) -> list[list[str]]:
        """Return the labels of nodes; no node is a concept."""
        e, label, about = scope.name("e"), scope.name("l"), scope.name("c")
        concepts_by_label = scope.parameter(
            {item: [concept_id(item), name] for name, labels in self.labels.items() for item in labels}
        )
        concept = f"{{id: {about}[0], name: {about}[1], kind: {int(EntityKind.CONCEPT)}, source: null, row: null}}"
        link = f"{{m: {{a: {self.described(e)}, b: {concept}, sources: ['{SOURCE}'], rows: [0]}}}}"
        clauses = [f"UNWIND {members} AS {e} UNWIND labels({e}) AS {label}", f"WITH {e}, {concepts_by_label}[{label}] AS {about}"]
        limit = "" if most is None else f" LIMIT {int(most)}"
        return [[*clauses, f"WITH * WHERE {about} IS NOT NULL", f"RETURN -1 AS unit, {link} AS row{limit}"]]

    # -- names -------------------------------------------------------------------------------------

    def subjects_of(self, predicates: Sequence[str]) -> str:
        """Return the subjects of relations and attributes."""
        types, queries = self.types_of(predicates), list[str]()
        if types:
            queries.append(f"MATCH (s)-[:{'|'.join(map(quote, types))}]->() WHERE {foreign('s')} RETURN DISTINCT s")
        for item in self.holdings.of(predicates):
            for label in item.labels:
                queries.append(f"MATCH {node_of('s', label)} WHERE {item.exists('s')} RETURN s")
        return "CALL () {\n" + ("\nUNION\n".join(queries) or "UNWIND [] AS s RETURN s") + "\n}"

    def relations_to(self, predicates: Sequence[str] | None, source: str | None, *, table: bool) -> str:
        types = "|".join(map(quote, self.types_of(predicates)))
        scope = "" if source is None else f" AND {self.in_source(source, 'f', None)}"
        return f"MATCH (s)-[f:{types}]->(o) WHERE {foreign('s')}{scope} "


def _is_relation(f: str) -> str:
    """Return a test that a statement is a relationship."""
    return f"{f} IS :: RELATIONSHIP NOT NULL"


def _untyped(value: str) -> str:
    """Return a value whose type the planner cannot know, as an element of a mixed list.

    If it knew the type, it would reject the branch that does not apply.
    """
    return f"[{value}, 1][0]"

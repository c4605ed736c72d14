"""Operators over rows that bind several variables, as Cypher clauses.

The rows of an operator are joined with earlier rows by continuing from them, where that is equivalent: its patterns then
start at bound nodes. Otherwise it becomes a subquery, whose rows are compared with the earlier ones.
`engine.row_shapes` tells what each variable is bound to, and which operators do not become clauses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from condgraph.cypher.compile.compiler import Compiler, FactRows, Rows, asks_which
from condgraph.cypher.compile.conditions import condition, span_condition
from condgraph.cypher.compile.sets import branches, family_of, membership, testable
from condgraph.cypher.layout.base import TARGET, Match, ScanRequest
from condgraph.engine import algebra as alg
from condgraph.engine.algebra.tables import SolutionTable, by_type
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.facts import EntityKind
from condgraph.engine.row_shapes import Sort, either
from condgraph.engine.values import NO_UNIT


@dataclass(frozen=True, slots=True)
class Term:
    """A plan's variable in the query: a node, a relationship or a plain value; null only if not `certain`.

    `labels` are those of the concepts that it may be, where concepts have no nodes.
    """

    text: str
    sort: Sort
    certain: bool = True
    labels: tuple[str, ...] = ()


Scope = Mapping[str, Term]


def _false(compiler: Compiler) -> str:
    """Return a false condition; the planner of Neo4j 5.26 fails on a literal one."""
    return compiler.parameter(False)


@dataclass(slots=True)
class Bindings:
    """Clauses that continue from the rows of a scope and leave a row for each solution, and the terms they bind."""

    clauses: list[str] = field(default_factory=list)
    terms: dict[str, Term] = field(default_factory=dict)


def rows(compiler: Compiler, node: alg.Solutions, scope: Scope) -> Bindings:
    """Return the rows of an operator joined with those of a scope, whose terms are all certain."""
    shared = {name: term for name, term in scope.items() if name in node.variables}
    if shared and not _continues(node, shared):
        inner = _BY_TYPE[type(node)](compiler, node, {})
        return _compared(compiler, shared, _subquery(compiler, inner))
    return _BY_TYPE[type(node)](compiler, node, shared)


def _continues(node: alg.Solutions, scope: Scope) -> bool:
    """Tell whether the rows of an operator may start from the terms of a scope."""
    if isinstance(node, alg.Pattern | alg.EntityRows):
        return True
    if isinstance(node, alg.Join | alg.SemiJoin | alg.AntiJoin):
        return _continues(node.left, scope) and (not isinstance(node, alg.Join) or _continues(node.right, scope))
    if isinstance(node, alg.LeftJoin):
        # Variables that only the right side binds would be compared with the scope before the match is
        # optional.
        return scope.keys().isdisjoint(set(node.right.variables) - set(node.left.variables)) and _continues(node.left, scope)
    if isinstance(node, alg.WhereRows | alg.BoundRows | alg.DistinctRows):
        return isinstance(node.of, alg.Pattern | alg.EntityRows)
    return False


# -- Terms -------------------------------------------------------------------------------------------


def identity(compiler: Compiler, term: Term) -> str:
    """Return an expression that is equal exactly for equal terms; null where a term is unbound."""
    if term.sort == "statement":
        return compiler.layout.same_statement(term.text)
    if term.sort in ("entity", "name", "truth", "count"):
        return term.text
    v = term.text
    kind = f"{v}.kind"
    value = (
        f"[{kind}, CASE {kind} WHEN 'quantity' THEN {v}.unit WHEN 'text' THEN {v}.text ELSE '' END, coalesce({v}.number, 0.0), "
        f"CASE {kind} WHEN 'quantity' THEN coalesce({v}.order, '1') ELSE '' END, "
        f"coalesce({v}.start, 0), coalesce({v}.end, 0), coalesce({v}.precision, 0)]"
    )
    if term.sort == "value":
        return value if term.certain else f"CASE WHEN {v} IS NOT NULL THEN {value} END"
    entity = compiler.layout.is_entity_term(v)
    return f"CASE WHEN {v} IS NULL THEN null WHEN {entity} THEN ['entity', {compiler.layout.term_id(v)}] ELSE {value} END"


def _is_node(term: Term) -> bool:
    """Tell whether equal terms may be different nodes."""
    return term.sort in ("value", "any")


def same(compiler: Compiler, one: Term, other: Term) -> str:
    """Return a condition that two bound terms are equal."""
    if one.sort == other.sort and not _is_node(one):
        return f"{identity(compiler, one)} = {identity(compiler, other)}"
    if {one.sort, other.sort} == {"entity", "any"}:
        return f"{one.text} = {other.text}"
    return f"{identity(compiler, one)} = {identity(compiler, other)}"


def compatible(compiler: Compiler, one: Term, other: Term) -> str:
    """Return a condition that two terms are equal, or one of them is unbound."""
    tests = [f"{term.text} IS NULL" for term in (one, other) if not term.certain]
    test = same(compiler, Term(one.text, one.sort), Term(other.text, other.sort))
    return f"({' OR '.join([*tests, test])})" if tests else test


def _subquery(compiler: Compiler, inner: Bindings) -> Bindings:
    """Wrap clauses in a subquery that sees no other rows."""
    names = ", ".join(dict.fromkeys(term.text for term in inner.terms.values())) or f"1 AS {compiler.name('x')}"
    return Bindings([compiler.call("\n".join([*inner.clauses, f"RETURN {names}"]))], inner.terms)


def _compared(compiler: Compiler, left: Scope, right: Bindings) -> Bindings:
    """Join the rows of a subquery with compatible earlier rows."""
    clauses, terms, tests, merged = list(right.clauses), dict(right.terms), [], []
    for name, term in left.items():
        other = right.terms.get(name)
        if other is None:
            terms[name] = term
            continue
        tests.append(compatible(compiler, term, other))
        if term.certain:
            terms[name] = term if term.sort != "any" else other if other.certain else term
        elif other.certain:
            terms[name] = other
        else:
            fresh = compiler.name("m")
            merged.append(f"coalesce({term.text}, {other.text}) AS {fresh}")
            terms[name] = Term(fresh, either(term.sort, other.sort), False, (*term.labels, *other.labels))
    if tests:
        clauses.append(f"WITH * WHERE {' AND '.join(tests)}")
    if merged:
        clauses.append(f"WITH *, {', '.join(merged)}")
    return Bindings(clauses, terms)


# -- Patterns ----------------------------------------------------------------------------------------


class _Patterns:
    """Writes the clauses of one basic pattern."""

    def __init__(self, compiler: Compiler, node: alg.Pattern, scope: Scope) -> None:
        self._compiler, self._layout, self._node = compiler, compiler.layout, node
        self.terms: dict[str, Term] = dict(scope)
        self.clauses: list[str] = []
        #: Variables of the matched statements, in the order of the clauses.
        self._facts: list[str] = []

    def bindings(self) -> Bindings:
        parts: list[alg.StatementPattern | alg.MembershipPattern] = [*self._node.statements, *self._node.memberships]
        if not parts:
            # One row for each earlier row.
            self.clauses.append(f"UNWIND [1] AS {self._compiler.name('x')}")
        while parts:
            part = min(parts, key=self._cost)
            parts.remove(part)
            if isinstance(part, alg.StatementPattern):
                self._statement(part)
            else:
                self._membership(part)
        return Bindings(self.clauses, self.terms)

    def _cost(self, part: alg.StatementPattern | alg.MembershipPattern) -> tuple[int, float]:
        """Rank a part: first those with bound variables, then those with few entities."""
        places = (part.subject, part.object) if isinstance(part, alg.StatementPattern) else (part.member, part.concept)
        if any(isinstance(place, alg.Variable) and place.name in self.terms for place in places):
            return 0, 0.0
        sets = [self._compiler.estimates.rows(place) for place in places if isinstance(place, alg.Entities)]
        if isinstance(part, alg.StatementPattern) and isinstance(part.among, alg.Scan) and part.among.of is not None:
            sets.append(self._compiler.estimates.rows(part.among.of))
        if sets:
            return 1, min(sets)
        return 2 if isinstance(part, alg.StatementPattern) and part.condition is not None else 3, 0.0

    # -- places ------------------------------------------------------------------------------------

    def _place(
        self, place: alg.Place | None, conditions: list[str], prefix: str = "e", among: alg.Entities | None = None
    ) -> tuple[str, bool]:
        """Return the variable of a node, which is also in the set `among`, and whether earlier clauses bind it."""
        compiler = self._compiler
        if among is not None:
            known = isinstance(place, alg.Variable) and place.name in self.terms
            if known or testable(among) or isinstance(place, alg.Entities):
                e, bound = self._place(place, conditions, prefix)
                conditions.append(membership(compiler, among, e))
                return e, bound
            e = compiler.name(prefix)
            self.clauses.append(f"UNWIND {compiler.set_of(among)} AS {e}")
            return e, True
        if isinstance(place, alg.Variable):
            term = self.terms.get(place.name)
            if term is None:
                return compiler.name(prefix), False
            value = term.sort == "value" and not self._layout.complete
            if term.sort == "any" or value:
                # A value starts no match.
                e = compiler.name(prefix)
                node = "null" if value else f"CASE WHEN {self._layout.is_node_term(term.text)} THEN {term.text} END"
                self.clauses.append(f"WITH *, {node} AS {e}")
                self.terms[place.name] = Term(e, "entity")
                return e, True
            return term.text, True
        e = compiler.name(prefix)
        if isinstance(place, alg.Entities):
            looked_up = isinstance(place, alg.ByName | alg.ById) and not self._layout.looks_up
            if looked_up or not testable(place):
                self.clauses.append(f"UNWIND {compiler.set_of(place)} AS {e}")
                return e, True
            conditions.append(membership(compiler, place, e))
        return e, False

    def _bind(self, place: object, term: Term) -> None:
        """Bind a variable, or compare it with its earlier binding."""
        if not isinstance(place, alg.Variable):
            return
        before = self.terms.get(place.name)
        if before is None:
            self.terms[place.name] = term
            return
        if before.text != term.text:
            self.clauses.append(f"WITH * WHERE {same(self._compiler, before, term)}")
        if before.sort == "any":
            self.terms[place.name] = term

    # -- statements --------------------------------------------------------------------------------

    def _statement(self, part: alg.StatementPattern) -> None:
        compiler, layout = self._compiler, self._layout
        f, conditions = compiler.name("f"), list[str]()
        family = "relation" if part.undirected else _family(compiler, part)
        predicates = None if isinstance(part.predicate, alg.Variable) else part.predicate
        during = part.during
        among, ends = part.among if during is None else None, dict[alg.End, alg.Entities]()
        if isinstance(among, alg.Scan) and among.source is None and not part.undirected and family_of(among) in (family, "any"):
            # A condition on one end, from which the match can start.
            if among.predicates is not None:
                predicates = tuple(name for name in among.predicates if predicates is None or name in predicates)
            if among.of is not None:
                ends[among.anchor] = among.of
            among = None
        if predicates == ():
            conditions.append(_false(compiler))
            predicates = None
        subject, subject_bound = self._place(part.subject, conditions, among=ends.get("subject"))
        loop = isinstance(part.object, alg.Variable) and part.object == part.subject
        object_before = self.terms.get(part.object.name) if isinstance(part.object, alg.Variable) else None
        reuse = object_before is not None and object_before.sort == "entity" and family == "relation"
        if reuse:
            assert object_before is not None
            thing, object_bound = object_before.text, True
        elif loop and family == "relation":
            thing, object_bound = subject, subject_bound
        else:
            thing = compiler.name("v" if family == "attribute" else "e")
            object_bound = False
            if "object" in ends and family == "relation" and not testable(ends["object"]) and not subject_bound:
                self.clauses.append(f"UNWIND {compiler.set_of(ends.pop('object'))} AS {thing}")
                object_bound = True
            sets = [part.object] if isinstance(part.object, alg.Entities) else []
            sets += [ends["object"]] if "object" in ends else []
            if sets and family == "attribute":
                conditions.append(_false(compiler))
            elif sets:
                inside = " AND ".join(membership(compiler, entities, thing) for entities in sets)
                # The test fails on a value that is not a node.
                conditions.append(inside if family == "relation" else f"CASE WHEN {layout.is_entity(thing)} THEN {inside} END")
        if predicates is None:
            conditions.append(layout.is_statement(f))
        outward = subject_bound or not object_bound
        anchor, other = (subject, thing) if outward else (thing, subject)
        bound = subject_bound or object_bound
        wanted = ScanRequest(f, anchor, other, predicates, family, outward, bound, None, conditions)
        match = layout.attributes(compiler, wanted) if family == "attribute" else layout.relations(compiler, wanted)
        tests = list(match.conditions)
        if family == "relation" and not object_bound:
            # A predicate may have values as well.
            tests.append(layout.is_entity(thing))
        if part.condition is not None:
            tested = condition(compiler, part.condition, match.cell, None if family == "attribute" else thing)
            tests.append(f"({tested})")
        # Tests of the statement itself, which clauses after the match may bind.
        late_tests = list[str]()
        if during is not None:
            low, high = compiler.parameter(during.interval.start), compiler.parameter(during.interval.end)
            late_tests.append(layout.timed(f, partial(span_condition, compiler, during.relation, low=low, high=high)))
        if among is not None:
            facts = compiler.facts(among)
            late_tests.append(f"{f} IN {compiler.let(facts.render(), f'collect({facts.fact})')}")
        if self._node.different:
            late_tests += [f"{f} <> {before}" for before in self._facts]
        for qualifier in part.qualifiers:
            if not qualifier.variables:
                late_tests.append(self._has_qualifier(qualifier, f, thing, family))
        tests += [] if bound else match.whole
        self.clauses += self._matched(match, tests, late_tests, undirected=part.undirected)
        self._facts.append(f)
        self._bind(part.subject, Term(subject, "entity"))
        sort: Sort = "any" if family == "any" else "entity" if family == "relation" else "value"
        if loop and family != "relation":
            self.clauses.append(f"WITH * WHERE {subject} = {thing}")
        else:
            self._bind(part.object, Term(thing, sort))
        if isinstance(part.predicate, alg.Variable):
            self._computed(part.predicate, layout.predicate(f), "name")
        kept = f if part.statement is None else layout.row_statement(f, thing, family)
        if kept != f and part.statement is not None:
            self._computed(part.statement, kept, "statement")
        else:
            self._bind(part.statement, Term(f, "statement"))
        for qualifier in part.qualifiers:
            if qualifier.variables:
                self._qualifier(qualifier, f, thing, family)

    def _matched(self, match: Match, tests: list[str], later: list[str], *, undirected: bool) -> list[str]:
        """Return the clauses of a match under tests; those in `later` need what is bound last."""
        pattern, clauses = match.pattern, list(match.before)
        if pattern is not None and not match.after:
            tests, later = [*tests, *later], []
        where = " AND ".join(dict.fromkeys(tests))
        if match.branches is not None:
            clauses.append(branches(self._compiler, match)(None, tests))
        elif pattern is None:
            clauses += [f"WITH * WHERE {where}"] if where else []
        else:
            if undirected:
                first, _, last = pattern.rpartition("]->(")
                pattern = f"{first}]-({last}"
            clauses.append(f"MATCH {pattern}{f' WHERE {where}' if where else ''}")
        return [*clauses, *match.after, *([f"WITH * WHERE {' AND '.join(later)}"] if later else [])]

    def _computed(self, place: alg.Variable, expression: str, sort: Sort) -> None:
        name = self._compiler.name("t")
        self.clauses.append(f"WITH *, {expression} AS {name}")
        self._bind(place, Term(name, sort))

    # -- qualifiers --------------------------------------------------------------------------------

    def _qualifier_tests(self, qualifier: alg.QualifierPattern, q: str, e: str | None) -> str:
        compiler, layout = self._compiler, self._layout
        tests = []
        if isinstance(qualifier.key, str):
            tests.append(f"{layout.qualifier_name(q)} = {compiler.parameter(qualifier.key)}")
        if qualifier.condition is not None:
            tests.append(f"({condition(compiler, qualifier.condition, layout.qualifier(q), e)})")
        if isinstance(qualifier.value, alg.Entities):
            assert e is not None
            tests.append(f"{e} IS NOT NULL AND {membership(compiler, qualifier.value, e)}")
        return " AND ".join(tests) or "true"

    def _refers(self, qualifier: alg.QualifierPattern) -> bool:
        return isinstance(qualifier.value, alg.Entities) or (qualifier.condition is not None and asks_which(qualifier.condition))

    def _has_qualifier(self, qualifier: alg.QualifierPattern, f: str, o: str, family: alg.Family) -> str:
        """Return a condition that some qualifier of a statement passes a test."""
        q = self._compiler.name("q")
        e = self._compiler.name("e") if self._refers(qualifier) else None
        refer = "" if e is None else f" {self._layout.refer(q, e)} WITH {q}, {e}"
        ending = f"{refer} WHERE {self._qualifier_tests(qualifier, q, e)} RETURN {q}"
        parts = [f"EXISTS {{ {clause}{ending} }}" for clause in self._layout.qualifiers(f, o, family, q)]
        return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"

    def _qualifier(self, qualifier: alg.QualifierPattern, f: str, o: str, family: alg.Family) -> None:
        """Add a row for each qualifier that passes a test."""
        compiler, layout = self._compiler, self._layout
        q, e = compiler.name("q"), compiler.name("e")
        clauses = layout.qualifiers(f, o, family, q)
        body = "\nUNION ALL\n".join(f"{clause} RETURN {q}" for clause in clauses)
        self.clauses.append(compiler.call(body, f, o))
        self.clauses.append(layout.refer(q, e))
        self.clauses.append(f"WITH * WHERE {self._qualifier_tests(qualifier, q, e)}")
        if isinstance(qualifier.key, alg.Variable):
            self._computed(qualifier.key, layout.qualifier_name(q), "name")
        if isinstance(qualifier.value, alg.Variable):
            self._computed(qualifier.value, f"coalesce({e}, {q})", "any")

    # -- memberships -------------------------------------------------------------------------------

    def _membership(self, part: alg.MembershipPattern) -> None:
        compiler, outer, conditions = self._compiler, self.clauses, list[str]()
        known = set(self.terms)
        self.clauses = []
        before = {term.text for term in self.terms.values()}
        e, bound = self._place(part.member, conditions)
        if self._layout.labelled:
            self._labelled(part, e, conditions, bound=bound)
        else:
            c = e if part.concept is not None and part.concept == part.member else self._place(part.concept, conditions, "c")[0]
            pattern, inside = self._layout.membership_pattern(e, c, direct=part.direct)
            tests = dict.fromkeys([*inside, *conditions])
            self.clauses.append(f"MATCH {pattern} WHERE {' AND '.join(tests)}")
            self._bind(part.member, Term(e, "entity"))
            self._bind(part.concept, Term(c, "entity"))
        inner, self.clauses = self.clauses, outer
        if isinstance(part.member, alg.Variable) and isinstance(part.concept, alg.Variable):
            self.clauses += inner
            return
        # Each unbound member, or concept, once.
        fresh = [term.text for name, term in self.terms.items() if name not in known or term.text not in before]
        ending = f"RETURN DISTINCT {', '.join(dict.fromkeys(fresh))}"
        if not fresh:
            ending = f"WITH 1 AS one LIMIT 1 RETURN one AS {compiler.name('x')}"
        self.clauses += ["CALL (*) {", *inner, ending, "}"]

    def _labelled(self, part: alg.MembershipPattern, e: str, conditions: list[str], *, bound: bool) -> None:
        """Match memberships in concepts that are labels."""
        layout, concept, known = self._layout, part.concept, None
        labels = layout.labels_in(
            alg.AllEntities(tuple(EntityKind)) if concept is None or isinstance(concept, alg.Variable) else concept
        )
        if isinstance(concept, alg.Variable):
            known = self.terms.get(concept.name)
            if concept == part.member or (known is not None and known.sort == "entity"):
                labels, known = [], None
            elif known is not None:
                labels = list(known.labels or labels)
                conditions.append(layout.in_label(e, known.text))
        inside = " AND ".join([layout.in_labels(e, labels) if labels else _false(self._compiler), *conditions])
        self.clauses.append(f"WITH * WHERE {inside}" if bound else f"MATCH ({e}) WHERE {inside}")
        self._bind(part.member, Term(e, "entity"))
        if isinstance(concept, alg.Variable) and known is None and concept != part.member:
            by_label = {term["label"]: term for term in layout.concept_terms(labels)}
            c, x = self._compiler.name("c"), self._compiler.name("x")
            self.clauses.append(f"UNWIND labels({e}) AS {x} WITH *, {self._compiler.parameter(by_label)}[{x}] AS {c}")
            self.clauses.append(f"WITH * WHERE {c} IS NOT NULL")
            self._bind(concept, Term(c, "any", labels=tuple(labels)))


def _family(compiler: Compiler, part: alg.StatementPattern) -> alg.Family:
    """Return the family of a pattern's statements, narrowed by the schema of its predicates."""
    if part.family != "any" or not isinstance(part.predicate, tuple):
        return part.family
    relations = any(map(compiler.schema.has_relation, part.predicate))
    attributes = any(map(compiler.schema.has_attribute, part.predicate))
    return "any" if relations == attributes else "relation" if relations else "attribute"


def _pattern(compiler: Compiler, node: alg.Pattern, scope: Scope) -> Bindings:
    return _Patterns(compiler, node, scope).bindings()


def _path(compiler: Compiler, node: alg.Path, scope: Scope) -> Bindings:
    before = Bindings() if node.of is None else rows(compiler, node.of, {})
    layout, tests, ends = compiler.layout, list[str](), list[str]()
    terms = dict(before.terms)
    names = {term.text for term in before.terms.values()}
    for place in (node.subject, node.object):
        e = compiler.name("e")
        if isinstance(place, alg.Variable):
            known = terms.get(place.name)
            if known is not None:
                if known.sort == "any":
                    _check_start(node, compiler.layout.labelled)
                    before.clauses.append(f"WITH *, CASE WHEN {layout.is_node_term(known.text)} THEN {known.text} END AS {e}")
                    names.add(e)
                else:
                    e = known.text
            terms[place.name] = Term(e, "entity")
        elif isinstance(place, alg.Entities):
            _check_start(node, bool(layout.labels_in(place)))
            tests.append(membership(compiler, place, e))
        ends.append(e)
    a, b = ends
    types = dict.fromkeys(name for hop in node.hops for name in hop.predicates or ())
    pattern, inside = layout.reach(a, b, tuple(types), node.hops[0].direction, node.least, node.most)
    matched = f"MATCH {pattern} WHERE {' AND '.join([*inside, *tests])}"
    fresh = [name for name in dict.fromkeys(term.text for term in terms.values()) if name not in names]
    ending = f"RETURN DISTINCT {', '.join(fresh)}" if fresh else f"WITH 1 AS one LIMIT 1 RETURN one AS {compiler.name('x')}"
    if node.of is None:
        return Bindings([compiler.call(f"{matched}\n{ending}")], terms)
    return Bindings([*before.clauses, f"CALL (*) {{\n{matched}\n{ending}\n}}"], terms)


def _check_start(node: alg.Path, concepts: bool) -> None:
    """Refuse paths of no steps that start at concepts without nodes; no other path can start there."""
    if concepts and node.least == 0:
        raise UnsupportedError(TARGET, ["paths of no steps from labels, which have no nodes"], hint="begin with one step (+)")


def _entity_rows(compiler: Compiler, node: alg.EntityRows, scope: Scope) -> Bindings:
    known, layout = scope.get(node.variable), compiler.layout
    labels = layout.labels_in(node.entities)
    if known is not None:
        test, sort = membership(compiler, node.entities, known.text), known.sort
        if sort == "any":
            ids = compiler.parameter([term["id"] for term in layout.concept_terms(labels)]) if labels else ""
            concept = f"{layout.is_entity_term(known.text)} AND {known.text}.id IN {ids}" if labels else "false"
            test = f"CASE WHEN {layout.is_node_term(known.text)} THEN {test} ELSE {concept} END"
        kept = Term(known.text, sort if labels else "entity", labels=tuple(labels))
        return Bindings([f"WITH * WHERE {test}"], {node.variable: kept})
    of = compiler.entities(node.entities)
    texts = ["\n".join([*of.clauses, f"RETURN {of.variable}"])]
    if labels:
        texts.append(f"UNWIND {compiler.parameter(layout.concept_terms(labels))} AS {of.variable} RETURN {of.variable}")
    term = Term(of.variable, "any" if labels else "entity", labels=tuple(labels))
    return Bindings([compiler.call("\nUNION ALL\n".join(texts))], {node.variable: term})


def _literal(compiler: Compiler, node: alg.Rows, scope: Scope) -> Bindings:
    cells = [[None if term is None else compiler.cell_of(term) for term in row] for row in node.rows]  # type: ignore[arg-type]
    x = compiler.name("x")
    terms, bound = {}, []
    for column, name in enumerate(node.names):
        v = compiler.name("v")
        bound.append(f"{x}[{column}] AS {v}")
        terms[name] = Term(v, "value", all(row[column] is not None for row in node.rows))
    clauses = [f"UNWIND {compiler.parameter(cells)} AS {x}"]
    return Bindings([*clauses, *([f"WITH *, {', '.join(bound)}"] if bound else [])], terms)


# -- Two inputs --------------------------------------------------------------------------------------


def _followed(compiler: Compiler, left: Bindings, node: alg.Solutions) -> Bindings:
    """Join an operator's rows with compatible earlier rows, by continuing from these where possible."""
    shared = {name: term for name, term in left.terms.items() if name in node.variables}
    if all(term.certain for term in shared.values()):
        return rows(compiler, node, shared)
    inner = _subquery(compiler, rows(compiler, node, {}))
    return _compared(compiler, shared, inner)


def _join(compiler: Compiler, node: alg.Join, scope: Scope) -> Bindings:
    left = rows(compiler, node.left, scope)
    left.terms = {**scope, **left.terms}
    right = _followed(compiler, left, node.right)
    return Bindings([*left.clauses, *right.clauses], {**left.terms, **right.terms})


def _optional_rows(compiler: Compiler, node: alg.LeftJoin, scope: Scope) -> Bindings:
    left = rows(compiler, node.left, scope)
    right = _followed(compiler, left, node.right)
    before = {term.text for term in left.terms.values()}
    fresh = {name: term for name, term in right.terms.items() if term.text not in before}
    returned = ", ".join(dict.fromkeys(term.text for term in fresh.values())) or f"1 AS {compiler.name('x')}"
    clauses = [*left.clauses, "OPTIONAL CALL (*) {", *right.clauses, f"RETURN {returned}", "}"]
    terms = dict(left.terms)
    merged = []
    for name, term in fresh.items():
        own = left.terms.get(name)
        if own is None:
            terms[name] = replace(term, certain=False)
        elif not own.certain:
            m = compiler.name("m")
            merged.append(f"coalesce({own.text}, {term.text}) AS {m}")
            terms[name] = Term(m, either(own.sort, term.sort), False, (*own.labels, *term.labels))
    if merged:
        clauses.append(f"WITH *, {', '.join(merged)}")
    return Bindings(clauses, terms)


def _marked(compiler: Compiler, left: Bindings, node: alg.Solutions) -> tuple[list[str], str]:
    """Return clauses that bind whether a row has a compatible row of an operator, and the variable."""
    right = _followed(compiler, left, node)
    b = compiler.name("b")
    inner = [*right.clauses, "WITH 1 AS one LIMIT 1", f"RETURN count(one) > 0 AS {b}"]
    return [*left.clauses, "CALL (*) {", *inner, "}"], b


def _semi_join(compiler: Compiler, node: alg.SemiJoin | alg.AntiJoin | alg.MinusRows, scope: Scope) -> Bindings:
    left = rows(compiler, node.left, scope)
    if isinstance(node, alg.MinusRows) and set(node.left.variables).isdisjoint(node.right.variables):
        return left
    clauses, b = _marked(compiler, left, node.right)
    return Bindings([*clauses, f"WITH * WHERE {'' if isinstance(node, alg.SemiJoin) else 'NOT '}{b}"], left.terms)


def _mark_join(compiler: Compiler, node: alg.MarkJoin, scope: Scope) -> Bindings:
    left = rows(compiler, node.left, scope)
    clauses, b = _marked(compiler, left, node.right)
    return Bindings(clauses, {**left.terms, node.variable: Term(b, "truth")})


def _union(compiler: Compiler, node: alg.UnionAll, scope: Scope) -> Bindings:
    parts = [rows(compiler, part, {}) for part in node.parts]
    terms: dict[str, Term] = {}
    for name in node.variables:
        bound = [part.terms[name] for part in parts if name in part.terms]
        sort = bound[0].sort
        for term in bound[1:]:
            sort = either(sort, term.sort)
        certain = len(bound) == len(parts) and all(term.certain for term in bound)
        labels = dict.fromkeys(label for term in bound for label in term.labels)
        terms[name] = Term(compiler.name("u"), sort, certain, tuple(labels))
    texts = []
    for part in parts:
        cells = [f"{part.terms[name].text if name in part.terms else 'null'} AS {term.text}" for name, term in terms.items()]
        texts.append("\n".join([*part.clauses, f"RETURN {', '.join(cells) or '1 AS one'}"]))
    if not terms:
        x = compiler.name("x")
        texts = [text.removesuffix("1 AS one") + f"1 AS {x}" for text in texts]
    return Bindings([compiler.call("\nUNION ALL\n".join(texts))], terms)


# -- One input ---------------------------------------------------------------------------------------


def _where_rows(compiler: Compiler, node: alg.WhereRows, scope: Scope) -> Bindings:
    of = rows(compiler, node.of, scope)
    term = of.terms[node.variable]
    if term.labels and asks_which(node.condition):
        missing = ["tests of which concepts a row binds, where these are labels"]
        raise UnsupportedError(TARGET, missing, hint="compare their names, or ask graph.snapshot()")
    families: dict[Sort, alg.Family] = {"entity": "relation", "value": "attribute"}
    cell = compiler.layout.object(term.text, families.get(term.sort, "any"))
    test = condition(compiler, node.condition, cell, None if term.sort == "value" else term.text)
    kept = replace(term, certain=True)
    there = "" if term.certain else f"{term.text} IS NOT NULL AND "
    return Bindings([*of.clauses, f"WITH * WHERE {there}({test})"], {**of.terms, node.variable: kept})


def _bound_rows(compiler: Compiler, node: alg.BoundRows, scope: Scope) -> Bindings:
    of = rows(compiler, node.of, scope)
    tests = [f"{of.terms[name].text} IS NOT NULL" for name in node.names if not of.terms[name].certain]
    terms = {name: replace(term, certain=term.certain or name in node.names) for name, term in of.terms.items()}
    return Bindings([*of.clauses, *([f"WITH * WHERE {' AND '.join(tests)}"] if tests else [])], terms)


def _project(compiler: Compiler, node: alg.Project, scope: Scope) -> Bindings:
    of = rows(compiler, node.of, {})
    terms, clauses = {}, list(of.clauses)
    for new, old in node.names:
        term = of.terms.get(old)
        if term is None:
            x = compiler.name("x")
            clauses.append(f"UNWIND [null] AS {x}")
            term = Term(x, "any", False)
        terms[new] = term
    return Bindings(clauses, terms)


def _packed(compiler: Compiler, terms: Iterable[Term]) -> tuple[list[str], dict[str, str]]:
    """Return expressions that group equal terms, and the new name of each term by its text.

    Where equal terms may be different nodes, one of the nodes is taken.
    """
    bound, names = [], {}
    for term in terms:
        if term.text in names:
            continue
        fresh = names[term.text] = compiler.name("g")
        if _is_node(term):
            bound.append(f"{identity(compiler, term)} AS {compiler.name('k')}, head(collect({term.text})) AS {fresh}")
        else:
            bound.append(f"{term.text} AS {fresh}")
    return bound, names


def _distinct(compiler: Compiler, node: alg.DistinctRows, scope: Scope) -> Bindings:
    of = rows(compiler, node.of, scope)
    terms = {name: term for name, term in of.terms.items() if name in node.variables}
    bound, names = _packed(compiler, terms.values())
    renamed = {name: replace(term, text=names[term.text]) for name, term in terms.items()}
    if not bound:
        inner = [*of.clauses, "WITH 1 AS one LIMIT 1"]
        returned = f"RETURN one AS {compiler.name('x')}"
    else:
        # A second aggregate, so that rows are grouped even where no term is a node.
        inner = [*of.clauses, f"WITH {', '.join(bound)}, count(*) AS {compiler.name('n')}"]
        returned = f"RETURN {', '.join(names.values())}"
    if not scope:
        return Bindings([compiler.call("\n".join([*inner, returned]))], renamed)
    tests = {name: term for name, term in scope.items() if name in renamed}
    return Bindings(["CALL (*) {", *inner, returned, "}"], {**renamed, **tests})


def _group(compiler: Compiler, node: alg.GroupRows, scope: Scope) -> Bindings:
    of = rows(compiler, node.of, {})
    bound, names = _packed(compiler, [of.terms[name] for name in node.keys])
    terms = {name: replace(of.terms[name], text=names[of.terms[name].text]) for name in node.keys}
    for aggregate in node.aggregates:
        n = compiler.name("n")
        if aggregate.of is None:
            cells = ", ".join(_non_null(compiler, term) for term in of.terms.values())
            counted = f"DISTINCT [{cells}]" if aggregate.distinct else "*"
        else:
            term = of.terms.get(aggregate.of)
            counted = "null" if term is None else f"DISTINCT {identity(compiler, term)}" if aggregate.distinct else term.text
        bound.append(f"count({counted}) AS {n}")
        terms[aggregate.name] = Term(n, "count")
    if not node.aggregates:
        bound.append(f"count(*) AS {compiler.name('n')}")
    returned = ", ".join(dict.fromkeys(term.text for term in terms.values())) or f"1 AS {compiler.name('x')}"
    inner = [*of.clauses, f"WITH {', '.join(bound)}", f"RETURN {returned}"]
    return Bindings([compiler.call("\n".join(inner))], terms)


def _non_null(compiler: Compiler, term: Term) -> str:
    key = identity(compiler, term)
    return key if term.certain else f"CASE WHEN {term.text} IS NULL THEN ['unbound'] ELSE {key} END"


# -- Other sorts -------------------------------------------------------------------------------------


def entities_of(compiler: Compiler, node: alg.EntitiesOf, *, concepts: bool = False) -> Rows:
    """The distinct entities that a variable is bound to.

    Without `concepts`, a variable that may be a concept without a node is refused.
    """
    of = rows(compiler, node.of, {})
    e, term = compiler.name("e"), of.terms.get(node.variable)
    if term is None or term.sort not in ("entity", "any"):
        return Rows([f"UNWIND [] AS {e} WITH {e}"], e)
    if term.sort == "any" and term.labels and not concepts:
        raise UnsupportedError(TARGET, ["sets of the concepts that rows bind"], hint="labels have no nodes: ask for the rows")
    test = f" AND {compiler.layout.is_entity_term(e)}" if term.sort == "any" else ""
    clauses = [*of.clauses, f"WITH DISTINCT {term.text} AS {e} WHERE {e} IS NOT NULL{test}"]
    return Rows(clauses, e)


def facts_of(compiler: Compiler, node: alg.FactsOf, variables: Sequence[str] = ()) -> FactRows:
    """The distinct statements that a variable is bound to; with `variables`, that any of these is bound to."""
    of = rows(compiler, node.of, {})
    f, s, o = (compiler.name(prefix) for prefix in "fso")
    terms = [of.terms.get(name) for name in variables or (node.variable,)]
    texts = [term.text for term in terms if term is not None and term.sort == "statement"]
    if not texts:
        clauses = [f"UNWIND [] AS {f} WITH {f}, null AS {s}, null AS {o}"]
    else:
        subject, thing = compiler.layout.ends(f)
        clauses = [
            *of.clauses,
            *(
                [f"WITH DISTINCT {texts[0]} AS {f}"]
                if len(texts) == 1
                else [f"UNWIND [{', '.join(texts)}] AS {f} WITH DISTINCT {f}"]
            ),
            f"WITH {f}, {subject} AS {s}, {thing} AS {o} WHERE {f} IS NOT NULL",
        ]
    return FactRows(clauses, None, [], f, s, o, "any", node.reach, compiler.layout.object(o, "any"))


SOLUTIONS: Final[SolutionTable[Compiler, [Scope], Bindings]] = {
    "Pattern": _pattern,
    "Path": _path,
    "EntityRows": _entity_rows,
    "Rows": _literal,
    "Join": _join,
    "LeftJoin": _optional_rows,
    "SemiJoin": _semi_join,
    "AntiJoin": _semi_join,
    "MarkJoin": _mark_join,
    "MinusRows": _semi_join,
    "UnionAll": _union,
    "Filter": None,
    "WhereRows": _where_rows,
    "BoundRows": _bound_rows,
    "Extend": None,
    "Unwind": None,
    "Project": _project,
    "DistinctRows": _distinct,
    "GroupRows": _group,
    "OrderRows": None,
    "SliceRows": None,
    # These give other sorts of rows: see `entities_of` and `facts_of`.
    "EntitiesOf": None,
    "FactsOf": None,
}
_BY_TYPE: Final = by_type(SOLUTIONS)


def compared(compiler: Compiler, node: alg.WhereRows) -> tuple[list[str], str, str]:
    """Return clauses that leave the terms a condition tests, and expressions for their kind and unit."""
    of = rows(compiler, node.of, {})
    term = of.terms[node.variable]
    clauses = of.clauses if term.certain else [*of.clauses, f"WITH * WHERE {term.text} IS NOT NULL"]
    if term.sort == "entity":
        return clauses, "'entity'", "null"
    if term.sort == "count":
        return clauses, "'quantity'", f"'{NO_UNIT}'"
    kind = f"{term.text}.kind"
    if term.sort == "any":
        kind = f"CASE WHEN {compiler.layout.is_entity_term(term.text)} THEN 'entity' ELSE {kind} END"
    return clauses, kind, f"{term.text}.unit"


# -- The end of a query ------------------------------------------------------------------------------


def listed(compiler: Compiler, term: Term) -> str:
    """Return a term as an answer lists it: entities and values as maps, of which only values have a `kind`."""
    layout, v = compiler.layout, term.text
    if term.sort in ("name", "truth", "count"):
        return v
    value = f"{v} {{.kind, .text, .number, .exact, .unit, .start, .end, .precision}}"
    if term.sort == "value":
        return value
    if term.sort == "entity":
        return layout.described(v)
    return f"CASE WHEN {v} IS NULL THEN null WHEN {layout.is_entity_term(v)} THEN {layout.described_term(v)} ELSE {value} END"


def returned(compiler: Compiler, node: alg.Solutions) -> list[str]:
    """Return clauses that end in one list of rows, each a list of terms in the order of the variables."""
    of = rows(compiler, node, {})
    cells = [listed(compiler, of.terms[name]) for name in node.variables]
    return [*of.clauses, f"RETURN collect([{', '.join(cells)}]) AS rows"]

"""Explanations of missing results: follows an expected result from the last operator of a plan down to the one that
lost it, and names the statement that is missing or differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Compare, Condition, Entities, Facts, Node, Scan, Values, carried
from condgraph.engine.bounds import check, within
from condgraph.engine.describe import describe
from condgraph.engine.errors import DeadlineError, on_one_line, shortened
from condgraph.engine.facts import Entity
from condgraph.engine.passes import names
from condgraph.engine.values import Quantity, Time, text_of
from condgraph.engine.why_not import (
    Lookup,
    MissingStatement,
    WhyNot,
    comparisons,
    either,
    has_test,
    having_text,
    operator_of,
    result_of,
    step_of,
    tested,
    values_tested,
    words,
)

#: The most missing statements listed.
MAX_MISSING: Final = 10


def why_missing(
    plan: Node, steps: Sequence[tuple[str, Node]], expected: Any, lookup: Lookup, seconds: float | None = None
) -> WhyNot:
    """Find the operator that lost an expected result, an entity (with its name or id) or a value, and the statement
    that is missing or differs.
    """
    target = result_of(plan)
    is_value = isinstance(target, Values) and not _gives_entities(target)
    target_plan, name = wanted(expected, value=is_value)
    search = _Expected(lookup, name)
    try:
        with within(seconds):
            search.run(target, target_plan)
    except DeadlineError:
        check()
        search.complete = False
        search.reason = search.reason or f"the step that lost {name!r} is unknown"
    node = search.node
    step_name = "" if node is None else step_of(node, steps)
    return WhyNot(
        step_name, "" if node is None else operator_of(node, plan, step_name), search.reason, (),
        tuple(dict.fromkeys(search.missing))[:MAX_MISSING], search.complete, 0, name, node,
    )  # fmt: skip


class _Expected:
    """Follows an expected result from the last operator to the one that lost it."""

    def __init__(self, lookup: Lookup, name: str) -> None:
        self.lookup, self.name, self.text = lookup, name, repr(name)
        self.node: Node | None = None
        self.reason, self.complete = "", True
        self.missing: list[MissingStatement] = []

    def run(self, target: Node, expected: Entities | Values) -> None:
        size = self._size(expected)
        if not size and isinstance(expected, Entities) and self.lookup.schema.has_text(self.name):
            # Rows may be labelled by a column that does not name them.
            expected = having_text(self.name)
            size = self._size(expected)
        if not size:
            self.reason = f"nothing in the graph is called {self.text}"
            nearest_names = self.lookup.near(self.name)[:3]
            if nearest_names:
                self.reason += f"; nearest: {', '.join(map(repr, nearest_names))}"
            return
        if isinstance(expected, Entities):
            self._entities(target, expected)
        else:
            self._values(target, expected)
        if not self.reason:
            self.reason = f"{self.text} is in the answer"

    def _size(self, node: Node) -> int:
        return self.lookup.size(node)

    def _names(self, of: Entities, most: int = MAX_MISSING) -> list[str]:
        return self.lookup.texts(alg.Names(of), most)

    def _lost(self, node: Node, reason: str) -> None:
        # The search goes down from the end of the program, so later findings are more exact.
        self.node, self.reason = node, reason

    # -- entities ------------------------------------------------------------------------------

    def _entities(self, node: Node, want: Entities) -> bool:
        """Follow entities; return whether the operator has one of them."""
        check()
        if isinstance(node, Facts):
            return self._facts(node, want)
        if isinstance(node, Values):
            return self._entities(node.inputs()[0], want) if node.inputs() else True
        if isinstance(node, Entities) and self._size(alg.Intersect((node, want))):
            return True
        if isinstance(node, alg.Reached):
            return self._facts(node.facts, want)
        if isinstance(node, alg.Intersect):
            for part in node.parts:
                if not self._size(alg.Intersect((part, want))):
                    return self._entities(part, want)
        if isinstance(node, alg.Union):
            for part in reversed(node.parts):
                self._entities(part, want)
            return False
        if isinstance(node, alg.Minus):
            if self._size(alg.Intersect((node.left, want))):
                self._lost(node, f"{self.text} is excluded by {words(node.right)}")
                return False
            return self._entities(node.left, want)
        if isinstance(node, alg.SubjectsOf):
            return self._subjects(node.values, want)
        if isinstance(node, alg.ArgExtreme):
            if not self._entities(node.of, want):
                return False
            own_values = self.lookup.texts(alg.Objects(Scan(want, (node.key,), "subject", "subject", "attribute")), 3)
            description = f"has {node.key!r} {', '.join(map(on_one_line, own_values))}" if own_values else f"has no {node.key!r}"
            best = self.lookup.texts(alg.Objects(Scan(node, (node.key,), "subject", "subject", "attribute")), 1)
            if best:
                description += f"; the {node.direction} is {', '.join(map(on_one_line, best))}"
            self._lost(node, f"{self.text} {description}")
            self.missing += [MissingStatement(name, node.key, "?") for name in self._names(want, 1)]
            return False
        if isinstance(node, alg.Members):
            concept = words(node.concepts)
            self._lost(node, f"{self._shown(want)} is not a member of {concept}")
            concepts = self._names(node.concepts, 3)
            self.missing += [
                MissingStatement(name, "instance of", concept_name) for name in self._names(want, 3) for concept_name in concepts
            ]
            return False
        if isinstance(node, alg.ByName | alg.ById):
            self._lost(node, f"{self._shown(want)} is not {words(node)}")
            return False
        self._lost(node, f"{self.text} is not among the results of {words(node)}")
        return False

    def _shown(self, want: Entities) -> str:
        names = self._names(want, 4)
        return either(names) if names else self.text

    def _subjects(self, values: Values, want: Entities) -> bool:
        """Follow the subjects of values."""
        conditions: list[alg.FilterValues] = []
        inner: Values = values
        while isinstance(inner, alg.FilterValues | alg.Distinct | alg.Extreme | alg.Nth | alg.Mode):
            if isinstance(inner, alg.FilterValues):
                conditions.append(inner)
            inner = inner.values
        if isinstance(inner, alg.Objects | alg.Qualifiers) and inner.facts.facets.gives in ("stated", "carried"):
            facts: Facts = inner.facts
            for filter_ in reversed(conditions):
                facts = alg.Where(facts, filter_.condition) if isinstance(inner, alg.Objects) else facts
            if not self._facts(facts, want):
                return False
        self._lost(values, f"{self.text} is not among the subjects of {words(values)}")
        return False

    # -- statements ----------------------------------------------------------------------------

    def _facts(self, facts: Facts, want: Entities) -> bool:
        """Follow statements that reach entities: first those of the predicate, then those from the preceding
        entities, then each condition.
        """
        *conditions, inner = _chain(facts)
        assert isinstance(inner, Scan)
        scan, reach = inner, facts_reach(facts)
        other: alg.End = "object" if reach == "subject" else "subject"
        matching: Facts = Scan(want, scan.predicates, reach, reach, scan.family, scan.source)
        of = scan.of
        if scan.anchor == reach:
            # The statements are about the entities themselves.
            if of is not None and not isinstance(of, alg.AllEntities) and not self._entities(of, want):
                return False
            if not self._size(matching):
                self._lost(scan, f"{self._shown(want)} has no {either(scan.predicates or ('statement',))}")
                self._missing([*self._names(want, 3)], scan, ["?"])
                return False
        else:
            if not self._size(matching):
                self._absent(scan, want, reach, None)
                return False
            if of is not None:
                joined = self._connecting(scan, want, of, reach, other)
                if not self._size(joined):
                    lead = alg.Reached(alg.OtherEnd(matching, other))
                    self._absent(scan, want, reach, lead)
                    return self._upstream(of, lead)
                matching = joined
        for node in reversed(conditions):
            narrowed = rebuilt_on(node, matching)
            if narrowed is None:
                continue
            if not self._size(narrowed):
                self._unmet(node, matching, want, scan, reach)
                return False
            matching = narrowed
        return True

    def _connecting(self, scan: Scan, want: Entities, of: Entities, reach: alg.End, other: alg.End) -> Facts:
        """Return the statements from some entities that reach expected ones."""
        if reach == "object":
            return alg.Where(replace(scan), alg.Among(want))
        return alg.Where(Scan(want, scan.predicates, "subject", "subject", "relation", scan.source), alg.Among(of))

    def _upstream(self, of: Entities, lead: Entities) -> bool:
        """Continue with the entities that would have led to the expected ones, if the program computes their
        predecessors.
        """
        if isinstance(of, alg.ByName | alg.ById | alg.AllEntities):
            return False
        node, reason, missing = self.node, self.reason, self.missing
        self.missing = []
        self._entities(of, lead)
        missing_below = self.missing
        if missing_below:
            self.missing = [*missing_below[: MAX_MISSING // 2], *missing]
            self.reason = f"{reason}; or {self.reason}"
        else:
            self.missing = missing
            self.reason = reason if self.node is node else f"{reason}; {self.reason}"
        self.node = node
        return False

    def _absent(self, scan: Scan, want: Entities, reach: alg.End, lead: Entities | None) -> None:
        """Report that no statement of a predicate leads from the preceding entities to the expected ones."""
        starts = self._names(scan.of) if scan.of is not None else ["?"]
        ends = self._names(want)
        predicate = either(scan.predicates) if scan.predicates else "any statement"
        reason = f"no {predicate} leads from {either(starts) if starts else 'nothing'} to {either(ends)}"
        if lead is not None:
            reason += f"; it leads there from {either(self._names(lead, 4))}"
        if scan.of is not None and starts:
            between = self._describe_links(scan.of, want)
            if between:
                reason += f"; between them there is {', '.join(between)}"
        self._lost(scan, reason)
        self._missing(starts, scan, ends)

    def _describe_links(self, of: Entities, want: Entities) -> list[str]:
        """Describe other statements between some entities and expected ones, in either direction."""
        described = []
        for direction, (source, end) in {"forward": (of, want), "backward": (want, of)}.items():
            scan = alg.Where(Scan(source, None, "subject", "object", "relation"), alg.Among(end))
            described += [f"{name!r} {direction}" for name in self.lookup.texts(alg.Distinct(alg.Predicates(scan)), 4)]
        return described

    def _missing(self, before: list[str], scan: Scan, wanted: list[str]) -> None:
        for predicate in (scan.predicates or ())[:1]:
            for start in before:
                for end in wanted:
                    pair = (start, end) if scan.anchor == "subject" else (end, start)
                    self.missing.append(MissingStatement(pair[0], predicate, pair[1]))

    def _unmet(self, node: Facts, there: Facts, want: Entities, scan: Scan, reach: alg.End) -> None:
        """Report a condition that the statements of an expected entity, or those that lead to it, do not satisfy."""
        timed = isinstance(node, alg.During)
        values = alg.Validity(there, "interval") if timed else values_tested(rebuilt_on(node, there))
        own_values = self.lookup.texts(alg.Distinct(values), 5) if values is not None else []
        subject = "the time" if timed else tested(node) if has_test(node) else describe(node)
        description = f"{subject} is {', '.join(map(on_one_line, own_values))}" if own_values else f"{subject} is missing"
        self._lost(node, f"for {self._shown(want)}, {description}; the program asks for {words(node)}")
        if reach == "object":
            # Another statement that satisfies it may lead there.
            is_bound = scan.of is not None and not isinstance(scan.of, alg.AllEntities)
            self._missing(self._names(scan.of) if is_bound else ["?"], scan, self._names(want, 1))  # type: ignore[arg-type]
            return
        predicates = _base(there).predicates
        for name in self._names(want, 1):
            requirement = f"{words(node)} (is {', '.join(map(on_one_line, own_values)) or 'missing'})"
            self.missing.append(MissingStatement(name, (predicates or ("?",))[0], requirement))

    # -- values --------------------------------------------------------------------------------

    def _values(self, target: Node, expected: Values) -> None:
        """Follow a value to the statements that would have it."""
        node = target
        filters: list[alg.FilterValues] = []
        while isinstance(node, Values) and not isinstance(node, alg.Objects | alg.Qualifiers | alg.Predicates):
            if isinstance(node, alg.FilterValues):
                filters.append(node)
            inputs = [filter_ for filter_ in node.inputs() if isinstance(filter_, Values)]
            if not inputs:
                break
            node = inputs[0]
        (value,) = expected.values if isinstance(expected, alg.Constants) else ("",)
        if not isinstance(node, alg.Objects | alg.Qualifiers | alg.Predicates):
            self._lost(target, f"{self.text} is not among the results of {words(target)}")
            return
        test: Condition = Compare("=", value)
        matching = alg.FilterValues(node, test)
        if self._size(matching):
            for input_ in reversed(filters):
                self._lost(input_, f"{self.text} does not satisfy {words(input_)}")
            return
        facts: Facts = node.facts
        scan = _base(facts)
        own_values = self.lookup.texts(alg.Distinct(node), 5)
        starts = self._names(scan.of) if scan.of is not None and not isinstance(scan.of, alg.AllEntities) else []
        if isinstance(node, alg.Predicates):
            self._predicate(node, scan, starts)
            return
        conditions = [filter_ for filter_ in _chain(facts) if isinstance(filter_, alg.Where)]
        if isinstance(node, alg.Qualifiers) and not own_values and conditions and scan.predicates:
            # The statement that would have the qualifier is itself missing.
            requirement = ", ".join(words(condition) for condition in conditions)
            self._lost(node, f"no statement of {either(starts) or 'any entity'} has {requirement}")
            ends = [_literals(conditions)] if scan.family == "attribute" else self._ends(facts)
            self.missing += [MissingStatement(name, scan.predicates[0], end) for name in starts for end in ends]
            return
        subject = f"the qualifier {node.key!r}" if isinstance(node, alg.Qualifiers) else words(scan)
        description = ", ".join(map(on_one_line, own_values)) or "no value"
        self._lost(node, f"{subject} of {either(starts) or 'every entity'} has {description}, not {self.text}")
        key = node.key if isinstance(node, alg.Qualifiers) and node.key else (scan.predicates or ("?",))[0]
        self.missing += [MissingStatement(name, key, self.name) for name in starts]
        # If other entities have the value, the preceding entities may be wrong.
        unrestricted = replace(scan, of=None, anchor="subject")
        if isinstance(node, alg.Objects):
            holders: Entities = alg.Reached(replace(alg.Where(replace(unrestricted, reach="subject"), test)))
            holder_names = self._names(holders, 4)
            if holder_names:
                self.reason += f"; {either(holder_names)} has this value"
                if scan.of is not None:
                    self._upstream(scan.of, holders)

    def _predicate(self, node: alg.Predicates, scan: Scan, before: list[str]) -> None:
        """Report that no statement of an expected predicate leads from some entities to others."""
        ends = self._ends(node.facts)
        self._lost(node, f"no {self.text} leads from {either(before) or 'any entity'} to {either(ends) or 'nothing'}")
        for start in before or ["?"]:
            pairs = [(start, end) if scan.anchor == "subject" else (end, start) for end in ends]
            self.missing += [MissingStatement(subject, self.name, thing) for subject, thing in pairs]
        # If the predicate leads to other entities, or from others, these may be what is missing.
        destination = _led_to(node.facts)
        for of, anchor, preceding in ((scan.of, "subject", destination), (destination, "object", scan.of)):
            other: alg.End = "object" if anchor == "subject" else "subject"
            lead = alg.Reached(Scan(of, (self.name,), anchor, other, "relation"))  # type: ignore[arg-type]
            if of is not None and preceding is not None and self._size(lead):
                self._upstream(preceding, lead)

    def _ends(self, facts: Facts) -> list[str]:
        """Return the names of the entities that statements must lead to."""
        destination = _led_to(facts)
        return ["?"] if destination is None else self._names(destination)


def _led_to(facts: Facts) -> Entities | None:
    """Return the entities that statements must lead to."""
    among = (part.condition for part in _chain(facts) if isinstance(part, alg.Where) and isinstance(part.condition, alg.Among))
    return next((condition.entities for condition in among), None)


def _chain(facts: Facts) -> list[Facts]:
    """Return facts and those they derive from, down to the scan."""
    chain = [facts]
    while not isinstance(chain[-1], Scan):
        chain += [input_ for input_ in chain[-1].inputs() if isinstance(input_, Facts)][:1]
    return chain


def _base(facts: Facts) -> Scan:
    scan = _chain(facts)[-1]
    assert isinstance(scan, Scan)
    return scan


def _literals(conditions: Sequence[alg.Where]) -> str:
    """Return the literals of conditions as text."""
    return ", ".join(text_of(comparison.value) for part in conditions for comparison in comparisons(part.condition)[:1])


def facts_reach(facts: Facts) -> alg.End:
    """Return the end that statements reach."""
    return next(part.reach for part in _chain(facts) if isinstance(part, alg.OtherEnd | Scan))


def rebuilt_on(node: Any, there: Facts) -> Facts | None:
    """Return the same condition on other statements; None if the operator is not a condition."""
    if isinstance(node, alg.OtherEnd) or "facts" not in names(node):
        return None
    fresh: Facts = replace(node, facts=there)
    return fresh


def _gives_entities(values: Values) -> bool:
    """Return whether values may be entities, as the objects of relations."""
    node: Node = values
    while isinstance(node, Values) and not isinstance(node, alg.Objects):
        inner = [input_ for input_ in carried(node) if isinstance(input_, Values)]
        if not inner:
            return False
        node = inner[0]
    return isinstance(node, alg.Objects) and _base(node.facts).family != "attribute"


def wanted(expected: Any, *, value: bool) -> tuple[Entities | Values, str]:
    """Return an expected result as a plan and as text: an entity, its name or id, or a value, which may be a text
    where the answer has values.
    """
    if isinstance(expected, Entity):
        return alg.ById((expected.id,)), expected.name
    if value and isinstance(expected, str):
        return alg.Constants((expected,)), shortened(expected, 100)
    if isinstance(expected, Quantity | Time):
        return alg.Constants((expected,)), shortened(text_of(expected), 100)
    if isinstance(expected, int | float) and not isinstance(expected, bool):
        return alg.Constants((Quantity(expected),)), str(expected)
    return alg.Union((alg.ByName((str(expected),)), alg.ById((str(expected),)))), shortened(str(expected), 100)

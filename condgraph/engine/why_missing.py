"""Explains why a result that was expected is missing: follows it from the last operator of a plan down to the one that lost
it, and names the statement that is missing or differs.
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

#: Missing statements that are named.
MOST_MISSING: Final = 10


def why_missing(
    plan: Node, steps: Sequence[tuple[str, Node]], expected: Any, lookup: Lookup, seconds: float | None = None
) -> WhyNot:
    """Which operator lost an expected result, an entity (with its name or id) or a value, and the statement that is
    missing or differs.
    """
    target = result_of(plan)
    plain = isinstance(target, Values) and not _gives_entities(target)
    want, name = wanted(expected, value=plain)
    search = _Expected(lookup, name)
    try:
        with within(seconds):
            search.run(target, want)
    except DeadlineError:
        check()
        search.complete = False
        search.reason = search.reason or f"where {name!r} was lost is not known"
    node = search.node
    step = "" if node is None else step_of(node, steps)
    return WhyNot(
        step, "" if node is None else operator_of(node, plan, step), search.reason, (),
        tuple(dict.fromkeys(search.missing))[:MOST_MISSING], search.complete, 0, name, node,
    )  # fmt: skip


class _Expected:
    """Follows an expected result from the last operator to the one that lost it."""

    def __init__(self, lookup: Lookup, name: str) -> None:
        self.lookup, self.name, self.text = lookup, name, repr(name)
        self.node: Node | None = None
        self.reason, self.complete = "", True
        self.missing: list[MissingStatement] = []

    def run(self, target: Node, expected: Entities | Values) -> None:
        found = self._size(expected)
        if not found and isinstance(expected, Entities) and self.lookup.schema.has_text(self.name):
            # Rows are shown by a column that may not name them.
            expected = having_text(self.name)
            found = self._size(expected)
        if not found:
            self.reason = f"nothing in the graph is called {self.text}"
            near = self.lookup.near(self.name)[:3]
            if near:
                self.reason += f"; nearest: {', '.join(map(repr, near))}"
            return
        if isinstance(expected, Entities):
            self._entities(target, expected)
        else:
            self._values(target, expected)
        if not self.reason:
            self.reason = f"{self.text} is in the answer"

    def _size(self, node: Node) -> int:
        return self.lookup.size(node)

    def _names(self, of: Entities, most: int = MOST_MISSING) -> list[str]:
        return self.lookup.texts(alg.Names(of), most)

    def _lost(self, node: Node, reason: str) -> None:
        # What was found first is nearest to the end of the program; what is found below it is more exact.
        self.node, self.reason = node, reason

    # -- entities ------------------------------------------------------------------------------

    def _entities(self, node: Node, want: Entities) -> bool:
        """Follow entities; whether the operator has one of them."""
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
                self._lost(node, f"{self.text} is taken away by {words(node.right)}")
                return False
            return self._entities(node.left, want)
        if isinstance(node, alg.SubjectsOf):
            return self._subjects(node.values, want)
        if isinstance(node, alg.ArgExtreme):
            if not self._entities(node.of, want):
                return False
            own = self.lookup.texts(alg.Objects(Scan(want, (node.key,), "subject", "subject", "attribute")), 3)
            has = f"has {node.key!r} {', '.join(map(on_one_line, own))}" if own else f"has no {node.key!r}"
            best = self.lookup.texts(alg.Objects(Scan(node, (node.key,), "subject", "subject", "attribute")), 1)
            if best:
                has += f"; the {node.direction} is {', '.join(map(on_one_line, best))}"
            self._lost(node, f"{self.text} {has}")
            self.missing += [MissingStatement(name, node.key, "?") for name in self._names(want, 1)]
            return False
        if isinstance(node, alg.Members):
            concept = words(node.concepts)
            self._lost(node, f"{self._shown(want)} is no member of {concept}")
            concepts = self._names(node.concepts, 3)
            self.missing += [MissingStatement(name, "instance of", one) for name in self._names(want, 3) for one in concepts]
            return False
        if isinstance(node, alg.ByName | alg.ById):
            self._lost(node, f"{self._shown(want)} is not {words(node)}")
            return False
        self._lost(node, f"{self.text} is not among the results of {words(node)}")
        return False

    def _shown(self, want: Entities) -> str:
        named = self._names(want, 4)
        return either(named) if named else self.text

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
            for one in reversed(conditions):
                facts = alg.Where(facts, one.condition) if isinstance(inner, alg.Objects) else facts
            if not self._facts(facts, want):
                return False
        self._lost(values, f"{self.text} is not among the subjects of {words(values)}")
        return False

    # -- statements ----------------------------------------------------------------------------

    def _facts(self, facts: Facts, want: Entities) -> bool:
        """Follow statements that reach entities: first those of the predicate, then those from the entities before,
        then each condition.
        """
        *conditions, inner = _chain(facts)
        assert isinstance(inner, Scan)
        scan, reach = inner, facts_reach(facts)
        other: alg.End = "object" if reach == "subject" else "subject"
        there: Facts = Scan(want, scan.predicates, reach, reach, scan.family, scan.source)
        of = scan.of
        if scan.anchor == reach:
            # The statements are those of the entities themselves.
            if of is not None and not isinstance(of, alg.AllEntities) and not self._entities(of, want):
                return False
            if not self._size(there):
                self._lost(scan, f"{self._shown(want)} has no {either(scan.predicates or ('statement',))}")
                self._missing([*self._names(want, 3)], scan, ["?"])
                return False
        else:
            if not self._size(there):
                self._absent(scan, want, reach, None)
                return False
            if of is not None:
                from_here = self._joined(scan, want, of, reach, other)
                if not self._size(from_here):
                    lead = alg.Reached(alg.OtherEnd(there, other))
                    self._absent(scan, want, reach, lead)
                    return self._upstream(of, lead)
                there = from_here
        for node in reversed(conditions):
            narrowed = rebuilt_on(node, there)
            if narrowed is None:
                continue
            if not self._size(narrowed):
                self._unmet(node, there, want, scan, reach)
                return False
            there = narrowed
        return True

    def _joined(self, scan: Scan, want: Entities, of: Entities, reach: alg.End, other: alg.End) -> Facts:
        """The statements from some entities that reach expected ones."""
        if reach == "object":
            return alg.Where(replace(scan), alg.Among(want))
        return alg.Where(Scan(want, scan.predicates, "subject", "subject", "relation", scan.source), alg.Among(of))

    def _upstream(self, of: Entities, lead: Entities) -> bool:
        """Go on with the entities that would have led to the expected ones, where the program computes those before."""
        if isinstance(of, alg.ByName | alg.ById | alg.AllEntities):
            return False
        node, reason, missing = self.node, self.reason, self.missing
        self.missing = []
        self._entities(of, lead)
        below = self.missing
        if below:
            self.missing = [*below[: MOST_MISSING // 2], *missing]
            self.reason = f"{reason}; or {self.reason}"
        else:
            self.missing = missing
            self.reason = reason if self.node is node else f"{reason}; {self.reason}"
        self.node = node
        return False

    def _absent(self, scan: Scan, want: Entities, reach: alg.End, lead: Entities | None) -> None:
        """Report that no statement of a predicate leads from the entities before to the expected ones."""
        before = self._names(scan.of) if scan.of is not None else ["?"]
        wanted = self._names(want)
        predicate = either(scan.predicates) if scan.predicates else "any statement"
        reason = f"no {predicate} leads from {either(before) if before else 'nothing'} to {either(wanted)}"
        if lead is not None:
            reason += f"; it leads there from {either(self._names(lead, 4))}"
        if scan.of is not None and before:
            between = self._between(scan.of, want)
            if between:
                reason += f"; between them there is {', '.join(between)}"
        self._lost(scan, reason)
        self._missing(before, scan, wanted)

    def _between(self, of: Entities, want: Entities) -> list[str]:
        """Other statements between some entities and expected ones, in either direction."""
        found = []
        for way, (source, end) in {"forward": (of, want), "backward": (want, of)}.items():
            scan = alg.Where(Scan(source, None, "subject", "object", "relation"), alg.Among(end))
            found += [f"{name!r} {way}" for name in self.lookup.texts(alg.Distinct(alg.Predicates(scan)), 4)]
        return found

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
        own = self.lookup.texts(alg.Distinct(values), 5) if values is not None else []
        what = "the time" if timed else tested(node) if has_test(node) else describe(node)
        has = f"{what} is {', '.join(map(on_one_line, own))}" if own else f"{what} is missing"
        self._lost(node, f"of {self._shown(want)} {has}; the program asks for {words(node)}")
        if reach == "object":
            # Another statement may lead there that satisfies it.
            known = scan.of is not None and not isinstance(scan.of, alg.AllEntities)
            self._missing(self._names(scan.of) if known else ["?"], scan, self._names(want, 1))  # type: ignore[arg-type]
            return
        predicates = _base(there).predicates
        for name in self._names(want, 1):
            asked = f"{words(node)} (is {', '.join(map(on_one_line, own)) or 'missing'})"
            self.missing.append(MissingStatement(name, (predicates or ("?",))[0], asked))

    # -- values --------------------------------------------------------------------------------

    def _values(self, target: Node, expected: Values) -> None:
        """Follow a value to the statements that would have it."""
        node = target
        filters: list[alg.FilterValues] = []
        while isinstance(node, Values) and not isinstance(node, alg.Objects | alg.Qualifiers | alg.Predicates):
            if isinstance(node, alg.FilterValues):
                filters.append(node)
            inputs = [one for one in node.inputs() if isinstance(one, Values)]
            if not inputs:
                break
            node = inputs[0]
        (value,) = expected.values if isinstance(expected, alg.Constants) else ("",)
        if not isinstance(node, alg.Objects | alg.Qualifiers | alg.Predicates):
            self._lost(target, f"{self.text} is not among the results of {words(target)}")
            return
        test: Condition = Compare("=", value)
        have = alg.FilterValues(node, test)
        if self._size(have):
            for one in reversed(filters):
                self._lost(one, f"{self.text} does not satisfy {words(one)}")
            return
        facts: Facts = node.facts
        scan = _base(facts)
        own = self.lookup.texts(alg.Distinct(node), 5)
        before = self._names(scan.of) if scan.of is not None and not isinstance(scan.of, alg.AllEntities) else []
        if isinstance(node, alg.Predicates):
            self._predicate(node, scan, before)
            return
        conditions = [one for one in _chain(facts) if isinstance(one, alg.Where)]
        if isinstance(node, alg.Qualifiers) and not own and conditions and scan.predicates:
            # The statement that would have the qualifier is not there itself.
            asked = ", ".join(words(one) for one in conditions)
            self._lost(node, f"no statement of {either(before) or 'any entity'} has {asked}")
            ends = [_literals(conditions)] if scan.family == "attribute" else self._ends(facts)
            self.missing += [MissingStatement(name, scan.predicates[0], end) for name in before for end in ends]
            return
        what = f"the qualifier {node.key!r}" if isinstance(node, alg.Qualifiers) else words(scan)
        has = ", ".join(map(on_one_line, own)) or "no value"
        self._lost(node, f"{what} of {either(before) or 'every entity'} has {has}, and not {self.text}")
        key = node.key if isinstance(node, alg.Qualifiers) and node.key else (scan.predicates or ("?",))[0]
        self.missing += [MissingStatement(name, key, self.name) for name in before]
        # Statements of other entities that have the value: the entities before may be wrong.
        wide = replace(scan, of=None, anchor="subject")
        if isinstance(node, alg.Objects):
            elsewhere: Entities = alg.Reached(replace(alg.Where(replace(wide, reach="subject"), test)))
            others = self._names(elsewhere, 4)
            if others:
                self.reason += f"; {either(others)} has it"
                if scan.of is not None:
                    self._upstream(scan.of, elsewhere)

    def _predicate(self, node: alg.Predicates, scan: Scan, before: list[str]) -> None:
        """Report that no statement of an expected predicate leads from some entities to others."""
        ends = self._ends(node.facts)
        self._lost(node, f"no {self.text} leads from {either(before) or 'any entity'} to {either(ends) or 'nothing'}")
        for start in before or ["?"]:
            pairs = [(start, end) if scan.anchor == "subject" else (end, start) for end in ends]
            self.missing += [MissingStatement(subject, self.name, thing) for subject, thing in pairs]
        # Where the predicate leads to others, or from others, these may be what is missing.
        to = _led_to(node.facts)
        for of, anchor, before_it in ((scan.of, "subject", to), (to, "object", scan.of)):
            other: alg.End = "object" if anchor == "subject" else "subject"
            lead = alg.Reached(Scan(of, (self.name,), anchor, other, "relation"))  # type: ignore[arg-type]
            if of is not None and before_it is not None and self._size(lead):
                self._upstream(before_it, lead)

    def _ends(self, facts: Facts) -> list[str]:
        """The names of the entities that statements are asked to lead to."""
        to = _led_to(facts)
        return ["?"] if to is None else self._names(to)


def _led_to(facts: Facts) -> Entities | None:
    """The entities that statements are asked to lead to."""
    among = (one.condition for one in _chain(facts) if isinstance(one, alg.Where) and isinstance(one.condition, alg.Among))
    return next((one.entities for one in among), None)


def _chain(facts: Facts) -> list[Facts]:
    """Facts and those that they are carried on from, down to the scan."""
    chain = [facts]
    while not isinstance(chain[-1], Scan):
        chain += [one for one in chain[-1].inputs() if isinstance(one, Facts)][:1]
    return chain


def _base(facts: Facts) -> Scan:
    scan = _chain(facts)[-1]
    assert isinstance(scan, Scan)
    return scan


def _literals(conditions: Sequence[alg.Where]) -> str:
    """What conditions compare with, as text."""
    return ", ".join(text_of(one.value) for part in conditions for one in comparisons(part.condition)[:1])


def facts_reach(facts: Facts) -> alg.End:
    """The end that statements reach."""
    return next(one.reach for one in _chain(facts) if isinstance(one, alg.OtherEnd | Scan))


def rebuilt_on(node: Any, there: Facts) -> Facts | None:
    """The same condition on other statements; None of what is no condition."""
    if isinstance(node, alg.OtherEnd) or "facts" not in names(node):
        return None
    fresh: Facts = replace(node, facts=there)
    return fresh


def _gives_entities(values: Values) -> bool:
    """Whether a bag of values may have entities: the objects of relations."""
    node: Node = values
    while isinstance(node, Values) and not isinstance(node, alg.Objects):
        inner = [one for one in carried(node) if isinstance(one, Values)]
        if not inner:
            return False
        node = inner[0]
    return isinstance(node, alg.Objects) and _base(node.facts).family != "attribute"


def wanted(expected: Any, *, value: bool) -> tuple[Entities | Values, str]:
    """An expected result as a plan, and as text: an entity, its name or id, or where the answer has values a text."""
    if isinstance(expected, Entity):
        return alg.ById((expected.id,)), expected.name
    if value and isinstance(expected, str):
        return alg.Constants((expected,)), shortened(expected, 100)
    if isinstance(expected, Quantity | Time):
        return alg.Constants((expected,)), shortened(text_of(expected), 100)
    if isinstance(expected, int | float) and not isinstance(expected, bool):
        return alg.Constants((Quantity(expected),)), str(expected)
    return alg.Union((alg.ByName((str(expected),)), alg.ById((str(expected),)))), shortened(str(expected), 100)

"""Explains empty answers and missing results: the first step that left nothing, the changes that give something, the
statement that is missing.

An answer is empty because some operator of its plan gave nothing although its inputs gave something: the smallest part
that fails. Changes replace one operator of the part below it, and each is run. A result that was expected is followed
from the last operator down to the one that lost it. All of it is made of plans, which every store runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Final, Protocol

from condgraph.engine import algebra as alg
from condgraph.engine import html
from condgraph.engine.algebra import Compare, Condition, Entities, Facts, Node, Scan, Values, carried, postorder
from condgraph.engine.algebra.expressions import Call, Comparison, Constant, Property
from condgraph.engine.bounds import check, within
from condgraph.engine.clauses import clause, lost
from condgraph.engine.describe import describe, describe_test
from condgraph.engine.errors import DeadlineError, PlanError, UnknownNameError, UnsupportedError, nearest, on_one_line
from condgraph.engine.facts import Entity
from condgraph.engine.kinds import GraphKnowledge, condition_of, kinds_tested
from condgraph.engine.lowered import owners
from condgraph.engine.passes import rebuild, rewrite
from condgraph.engine.values import NO_UNIT, Kind, Quantity, Time, parse_quantity, text_of

#: Changes that are named, and that are tried.
MOST_CHANGES: Final = 3
_MOST_TRIED: Final = 24
#: Entities whose predicates are listed, predicates that are listed, and texts that a misspelled one is compared with.
MOST_ENTITIES: Final = 1_000
_MOST_PREDICATES: Final = 6
_MOST_TEXTS: Final = 20_000
_MOST_COMPARED: Final = 1_000
#: Results that are shown of a change, and the most that they are chosen from.
_MOST_SHOWN: Final = 3
_MOST_SAMPLED: Final = 1_000


class Lookup(Protocol):
    """What an explanation asks of the store that answered. `batch` is how many changes it tries at once: on a server one
    query tries them all. `order` has the operators of the answer's plan, inputs first, where they are known.
    """

    batch: int
    order: Sequence[Node]

    @property
    def schema(self) -> GraphKnowledge:
        """What lowering knows of the graph."""

    def size(self, node: Node) -> int:
        """How many results an operator gives."""

    def counts(self, nodes: Sequence[Node]) -> list[int]:
        """The same of several."""

    def changed(self, program: Program, changes: Sequence[tuple[Node, Node]]) -> list[int]:
        """How many results a program gives with one operator replaced by another, for each of these pairs."""

    def sample(self, program: Program, node: Node, fresh: Node, most: int) -> list[str]:
        """The texts of its results with one such change, at most so many."""

    def values(self, node: Values, most: int) -> list[Any]:
        """Typed values, at most so many."""

    def texts(self, node: Node, most: int) -> list[str]:
        """The texts of results, at most so many."""

    def near(self, name: str) -> list[str]:
        """Names of entities like one, best first."""

    def predicates(self, of: Entities, most: int) -> dict[str, list[str]]:
        """The predicates of entities, at most so many each: "forward" and "backward" of relations, "value" of attributes."""

    def behind(self, plan: Node, facts: Facts) -> Facts | None:
        """An operator that gives those statements of an operator in a plan that the plan's results rest on; None where that
        costs more than to ask for results a few times.
        """

    def alike(self, of: Entities) -> list[str]:
        """Other names of entities that are one of some entities' but for case, marks between words, and what is before a
        slash (`folded`); and those of theirs that several entities have.
        """


# -- what an explanation says ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the program that gives something: what it is ("direction", "name", "predicate", "unit", "type", "bound",
    "join", "condition" or "source") and `text` in words, how many results it gives, and the first of them.
    """

    kind: str
    text: str
    size: int
    sample: tuple[str, ...]
    #: The root of the program, the operator that is replaced, and the one in its place.
    made_of: tuple[Node, Node, Node] = field(repr=False, compare=False)

    @property
    def plan(self) -> Node:
        """The changed program, made anew."""
        return replaced(*self.made_of)

    def __str__(self) -> str:
        listed = ", ".join(map(on_one_line, self.sample)) + (", ..." if self.size > len(self.sample) else "")
        return f"{self.text}: {self.size:,} result{'' if self.size == 1 else 's'}" + (f" ({listed})" if listed else "")


@dataclass(frozen=True, slots=True)
class MissingStatement:
    """A statement that the graph would have to have for an expected result, its ends by their names; "?" is any object, and
    a condition in its place is one that the object does not satisfy.
    """

    subject: str
    predicate: str
    object: str

    def __str__(self) -> str:
        return " | ".join(map(on_one_line, (self.subject, self.predicate, self.object)))


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why an answer has nothing, or lacks an expected result.

    `step` is the step of the program and `operator` the operator that lost it, both empty where nothing is lost; `reason`
    says why, in words. `changes` give something, the smallest first. `missing` are statements that are missing or
    differ from what the program asks for, each of which alone would give the expected result at this step. `complete` is
    false where the deadline ended the search, after `tried` changes.
    """

    step: str
    operator: str
    reason: str
    changes: tuple[Change, ...] = ()
    missing: tuple[MissingStatement, ...] = ()
    complete: bool = True
    tried: int = 0
    #: The expected result that is missing; "" where the answer is empty.
    expected: str = ""
    #: The operator itself, None where nothing is lost.
    node: Node | None = field(default=None, repr=False, compare=False)

    def lines(self) -> list[str]:
        """The explanation as lines of text."""
        lost = f"lost {self.expected!r}" if self.expected else "gave nothing"
        first = f"{self.step} {lost}, {self.operator}; {self.reason}" if self.step else self.reason
        lines = [first, *map(str, self.changes), *(f"missing: {one}" for one in self.missing)]
        if not self.complete:
            tried = f"{self.tried} change{'' if self.tried == 1 else 's'}"
            lines.append(f"the time for explaining was over after {tried}")
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        """For notebooks."""
        first, *more = self.lines()
        return html.page(first, (), more)

    def data(self) -> dict[str, Any]:
        """As JSON takes it."""
        return {
            "step": self.step, "operator": self.operator, "reason": self.reason,
            "changes": [
                {"kind": one.kind, "text": one.text, "size": one.size, "sample": list(one.sample)} for one in self.changes
            ],
            "missing": [[one.subject, one.predicate, one.object] for one in self.missing],
            "complete": self.complete, "tried": self.tried, "expected": self.expected,
        }  # fmt: skip


# -- the part that fails ---------------------------------------------------------------------------


def why_empty(
    plan: Node,
    steps: Sequence[tuple[str, Node]],
    lookup: Lookup,
    seconds: float | None = None,
    *,
    changes: bool = True,
    empty: bool = False,
) -> WhyNot | None:
    """Why a plan gives nothing, or a count or sum is one of nothing; None where it gives something. `seconds` is how long
    it may take; what is known by then is returned. Without `changes` none is tried. `empty` says that it is known to give
    nothing.
    """
    search = _Search(plan, steps, lookup, changes, empty)
    try:
        with within(seconds):
            search.run()
    except DeadlineError:
        check()
        search.complete = False
    except (PlanError, UnsupportedError):
        # Some operator has no size of its own on this store.
        search.complete = search.failing is not None
    return search.result()


class _Search:
    """The state of one explanation, which a deadline may end at any point."""

    def __init__(self, plan: Node, steps: Sequence[tuple[str, Node]], lookup: Lookup, changes: bool, empty: bool) -> None:
        self.plan, self.steps, self.lookup, self.try_changes, self.empty = plan, steps, lookup, changes, empty
        self.program: Program | None = None
        self.failing: Node | None = None
        self.reason = ""
        #: By what they say.
        self.changes: dict[str, Change] = {}
        self.complete, self.tried = True, 0

    def run(self) -> None:
        program = self.program = Program(result_of(self.plan), self.lookup, empty=self.empty)
        if not program.is_empty(program.root):
            return
        self.failing = program.failing()
        self.reason = _reason(self.failing, program)
        if not self.try_changes:
            return
        for phase in _phases(self.failing, program):
            tried: list[Candidate] = []
            for candidate in phase:
                if candidate[1] in self.changes:
                    continue
                tried.append(candidate)
                if len(tried) == self.lookup.batch:
                    self._try(program, tried)
                    tried = []
                    if len(self.changes) >= MOST_CHANGES or self.tried >= _MOST_TRIED:
                        return
            self._try(program, tried)
            if self.changes:
                return

    def _try(self, program: Program, tried: list[Candidate]) -> None:
        if not tried:
            return
        pairs = [program.freed(node, fresh) for _, _, node, fresh in tried]
        try:
            found = self.lookup.changed(program, pairs)
        except (PlanError, UnsupportedError, UnknownNameError):
            # A change that makes no sense here, or that the store cannot run, is none.
            if len(tried) > 1:
                for one in tried:
                    self._try(program, [one])
            return
        self.tried += len(tried)
        for (kind, text, *_), (node, fresh), size in zip(tried, pairs, found, strict=True):
            if size and len(self.changes) < MOST_CHANGES and text not in self.changes:
                sample = self.lookup.sample(program, node, fresh, _MOST_SHOWN) if size <= _MOST_SAMPLED else []
                self.changes[text] = Change(kind, text, size, tuple(sample), (program.root, node, fresh))

    def result(self) -> WhyNot | None:
        node = self.failing
        if node is None:
            return None if self.complete else WhyNot("", "", "what left nothing is not known", complete=False)
        step, reason = step_of(node, self.steps, self.program), self.reason or f"{describe(node)} gave nothing"
        return WhyNot(
            step,
            operator_of(node, self.plan, step),
            reason,
            tuple(self.changes.values()),
            (),
            self.complete,
            self.tried,
            node=node,
        )


def result_of(plan: Node) -> Node:
    """The part of a plan whose results the answer is made of: what a number counts or sums up."""
    while isinstance(plan, alg.Scalar | alg.Apply | alg.Distinct | alg.Names | alg.Shown):
        if isinstance(plan, alg.AnySatisfies):
            return alg.FilterValues(plan.values, plan.condition)
        inputs = plan.inputs()
        if not inputs:
            return plan
        plan = inputs[0]
    return plan


class Program:
    """A plan, how many results each of its operators gives, and what it is with one of them replaced. On a server the sizes
    are one query, of those operators that nothing else tells to be empty; in process each is counted when it is first asked for.
    """

    def __init__(self, root: Node, lookup: Lookup, *, empty: bool = False) -> None:
        self.root, self.lookup = root, lookup
        #: Its operators, inputs first, and the inputs of each by its identity.
        self.order = _until(root, lookup.order) or postorder(root)
        self.inputs = {id(node): node.inputs() for node in self.order}
        self._sizes: dict[int, int | None] = {id(root): 0} if empty else {}
        #: The operators that are empty where another is, and only there, by their identity.
        self._alike: dict[int, Node] = {}
        if lookup.batch > 1:
            self._alike = _empty_alike(self.order, self.inputs)
            known = {*self._sizes, *self._alike}
            sized = [node for node in self.order if id(node) not in known and not isinstance(node, alg.Scalar)]
            self._sizes.update(zip(map(id, sized), lookup.counts(sized), strict=True))
        self._above: dict[int, list[Node]] = {}
        self._below: dict[int, list[Node]] = {}
        #: Plans by the operator and that in its place, which they keep alive.
        self._plans: dict[tuple[int, int], Node] = {}
        self._filters = [node for node in self.order if isinstance(node, alg.Filter)]
        self._freed: dict[tuple[int, int], tuple[Node, Node]] = {}

    def size(self, node: Node) -> int | None:
        """How many results one of its operators gives; None of one that gives a single value."""
        if id(node) not in self._sizes:
            self._sizes[id(node)] = None if isinstance(node, alg.Scalar) else self.lookup.size(node)
        return self._sizes[id(node)]

    def is_empty(self, node: Node) -> bool:
        """Whether one of its operators gives no results."""
        alike = self._alike.get(id(node)) if id(node) not in self._sizes else None
        return self.size(node) == 0 if alike is None else self.is_empty(alike)

    def failing(self) -> Node:
        """The first operator that gave nothing although everything that it needs gave something."""
        node = self.root
        while True:
            for one in self.needed(node):
                if self.is_empty(one):
                    node = one
                    break
            else:
                return node

    def above(self, node: Node) -> list[Node]:
        """The operators that an operator is below, the nearest first."""
        found = self._above.get(id(node))
        if found is None:
            found, inside = [], {id(node)}
            for one in self.order:
                if not inside.isdisjoint(map(id, self.inputs[id(one)])):
                    inside.add(id(one))
                    found.append(one)
            self._above[id(node)] = found
        return found

    def below(self, node: Node) -> list[Node]:
        """An operator and those below it, the nearest first."""
        found = self._below.get(id(node))
        if found is None:
            found, seen = [node], {id(node)}
            for one in found:
                for child in self.inputs[id(one)]:
                    if id(child) not in seen:
                        seen.add(id(child))
                        found.append(child)
            self._below[id(node)] = found
        return found

    def owner(self, node: Node, steps: Sequence[tuple[str, Node]]) -> int | None:
        """The place of the first step that an operator is part of; None where a step before it is no part of the plan."""
        containing = {id(node), *map(id, self.above(node))}
        for at, (_, root) in enumerate(steps):
            if id(root) in containing:
                return at
            if id(root) not in self.inputs:
                break
        return None

    def needed(self, node: Node) -> Sequence[Node]:
        """The inputs without which an operator gives nothing, where any of them is empty: not what is taken away, and not
        the columns of a table.
        """
        if isinstance(node, alg.Group):
            return (node.of,)
        return (node.left,) if isinstance(node, alg.Minus) else self.inputs[id(node)]

    def freed(self, node: Node, fresh: Node) -> tuple[Node, Node]:
        """The operator to replace for a change of another, and the one in its place: a condition of Cypher that chose the nodes
        that rows begin with is asked again by a filter of the rows, which a change of it takes away as well.
        """
        if not self._filters:
            return node, fresh
        pair = self._freed.get((id(node), id(fresh)))
        if pair is None:
            kept = {id(part) for part in postorder(fresh)}
            gone = [part for part in self.below(node) if id(part) not in kept]
            above = {id(part) for part in self.above(node)}
            filters = (one for one in self._filters if id(one) in above and any(_asks(one, part) for part in gone))
            asked = next(filters, None)
            pair = (node, fresh) if asked is None else (asked, replaced(asked.of, node, fresh))
            self._freed[id(node), id(fresh)] = pair
        return pair

    def changed(self, node: Node, fresh: Node) -> Node:
        """The plan with one operator replaced by one that was made for this; the same plan each time."""
        plan = self._plans.get((id(node), id(fresh)))
        if plan is None:
            plan = self._plans[id(node), id(fresh)] = replaced(self.root, node, fresh)
        return plan


def _empty_alike(order: Sequence[Node], inputs: Mapping[int, Sequence[Node]]) -> dict[int, Node]:
    """The operator above each one that only this takes, and that it alone empties: statements that lead to entities, and
    those whose values are listed.
    """
    users: dict[int, list[Node]] = {}
    for node in order:
        for child in inputs[id(node)]:
            users.setdefault(id(child), []).append(node)
    result: dict[int, Node] = {}
    for node in order:
        above = users.get(id(node), ())
        if len(above) != 1 or not isinstance(node, Facts):
            continue
        scan: Node = node
        while isinstance(scan, Facts) and not isinstance(scan, Scan) and (passed := carried(scan)):
            scan = passed[0]
        leads = isinstance(scan, Scan) and (scan.reach == "subject" or scan.family == "relation")
        if isinstance(above[0], alg.Objects) or (leads and isinstance(above[0], alg.Reached)):
            result[id(node)] = above[0]
    return result


def _asks(rows: alg.Filter, node: Node) -> bool:
    """Whether a filter of rows compares the property with the value by which an operator chose entities."""
    keys: Sequence[str]
    value: Any
    if isinstance(node, alg.ByName):
        keys, value = ("name",), node.names[0]
    elif isinstance(node, alg.ById):
        keys, value = ("id",), node.ids[0]
    elif isinstance(node, alg.Where) and isinstance(node.condition, Compare) and isinstance(node.facts, Scan):
        keys, value = node.facts.predicates or (), node.condition.value
    else:
        return False
    test: Any = rows.test
    sides = (test.left, test.right) if isinstance(test, Comparison) else ()
    asked = {one.key if isinstance(one, Property) else one.name for one in sides if isinstance(one, Property | Call)}
    # A number without a unit is compared with values in a unit as well.
    same = (value, value.number) if isinstance(value, Quantity) else (value,)
    return not asked.isdisjoint(keys) and any(isinstance(one, Constant) and one.value in same for one in sides)


def replaced(plan: Node, node: Node, fresh: Node) -> Node:
    """A plan with one of its operators replaced. What is not above that stays the same object."""
    return rewrite(plan, lambda part: fresh if part is node else part)


def _until(root: Node, order: Sequence[Node]) -> Sequence[Node]:
    """The operators of a plan as far as one of them, where all others take that one alone; else none."""
    for at in range(len(order), 0, -1):
        if order[at - 1] is root:
            return order[:at]
        if len(order[at - 1].inputs()) != 1:
            break
    return ()


def step_of(node: Node, steps: Sequence[tuple[str, Node]], program: Program | None = None) -> str:
    """The step of the program that an operator is part of: the first that contains it."""
    at = None if program is None else program.owner(node, steps)
    if at is None:
        at = owners(steps, node).get(id(node), -1)  # a pass made others out of several steps
    step = steps[at][0] if steps else "the query" if isinstance(node, alg.Solutions) else type(node).__name__
    if step == "RETURN" and isinstance(node, alg.Pattern | alg.Path) and any(name == "MATCH" for name, _ in steps):
        # Several patterns of its clause, or more of the query, in one.
        return "MATCH"
    return step


def operator_of(node: Node, plan: Node, step: str) -> str:
    """An operator as an explanation names it: in the words of the query where the plan is one of rows, whose clauses users
    write, else in the notation of plans.
    """
    if not isinstance(plan, alg.Solutions):
        return describe(node)
    if isinstance(node, alg.ByName | alg.ById):
        return f"the name {either(node.names)}" if isinstance(node, alg.ByName) else f"the id {either(node.ids)}"
    if isinstance(node, alg.Members):
        return f"the label {words(node.concepts)}"
    return clause(node, step) or words(node)


# -- reasons ---------------------------------------------------------------------------------------


def _reason(node: Node, program: Program) -> str:
    """Why an operator gave nothing, in words."""
    if isinstance(node, alg.ByName):
        return f"nothing is called {either(node.names)}"
    if isinstance(node, alg.ById):
        return f"nothing has the id {either(node.ids)}"
    if isinstance(node, alg.Members):
        return f"{words(node.concepts)} has no members"
    if isinstance(node, Scan):
        return _scan_reason(node, program)
    if has_test(node):
        return _test_reason(node, program)
    if isinstance(node, alg.Intersect):
        return "nothing is in all of: " + "; ".join(f"{words(part)} ({program.size(part) or 0:,})" for part in _flat(node))
    if isinstance(node, alg.Minus):
        return f"all {program.size(node.left) or 0:,} are taken away by {words(node.right)}"
    of = [size for one in program.needed(node) if (size := program.size(one)) is not None]
    if isinstance(node, alg.During) and node.relation in ("may", "must") and of:
        truth = "true" if node.relation == "may" else "certain to be true"
        return f"no statement of {of[0]:,} is {truth} at {node.interval}"
    if (why := lost(node, of)) is not None:
        return why
    return f"nothing is left of {' and '.join(f'{size:,}' for size in of)}" if of else "there is nothing of the kind"


def _flat(node: alg.Intersect) -> Iterator[Entities]:
    """The parts of an intersection, and of those in it."""
    for part in node.parts:
        if isinstance(part, alg.Intersect):
            yield from _flat(part)
        elif part != alg.AllEntities():
            yield part


def either(texts: Sequence[str]) -> str:
    """Some texts in quotes, as alternatives."""
    return " or ".join(map(repr, texts[:3])) + (", ..." if len(texts) > 3 else "")


def _scan_reason(scan: Scan, program: Program) -> str:
    lookup = program.lookup
    unknown = [name for name in scan.predicates or () if not _known(name, scan, lookup.schema)]
    if scan.predicates and len(unknown) == len(scan.predicates):
        other = [name for name in unknown if lookup.schema.has_relation(name) or lookup.schema.has_attribute(name)]
        if not other:
            return f"the graph has no {either(unknown)}"
    if scan.predicates == ():
        return "its predicate means nothing here"
    if scan.predicates is None:
        return "there are no statements of the kind"
    if scan.of is None or isinstance(scan.of, alg.AllEntities):
        return f"nothing has {either(scan.predicates)} {_WAYS[_way(scan)]}"
    if (size := program.size(scan.of) or 0) > MOST_ENTITIES:
        return f"none of {size:,} entities has {either(scan.predicates)} {_WAYS[_way(scan)]}"
    return instead(scan, lookup)


def _known(name: str, scan: Scan, schema: GraphKnowledge) -> bool:
    if scan.family == "relation":
        return schema.has_relation(name)
    return schema.has_attribute(name) or (scan.family == "any" and schema.has_relation(name))


def _way(scan: Scan) -> str:
    return "value" if scan.family == "attribute" else "backward" if scan.anchor == "object" else "forward"


_WAYS: Final = {"forward": "forward", "backward": "backward", "value": "as an attribute"}


def instead(scan: Scan, lookup: Lookup) -> str:
    """What the entities of a scan that gave nothing have instead, in one sentence."""
    assert scan.of is not None
    assert scan.predicates is not None
    found = lookup.predicates(scan.of, 100)
    named = scan.of.names if isinstance(scan.of, alg.ByName) else lookup.texts(alg.Names(scan.of), 3)
    # The same predicate another way round, then names like it, then others.
    told: list[str] = []
    ways: dict[str, list[str]] = {}
    for way, several in found.items():
        for name in several:
            ways.setdefault(name, []).append(way)
    every = sorted(ways)
    like = [
        name for missing in scan.predicates[:3] if missing not in ways for name in nearest(missing, every, most=_MOST_PREDICATES)
    ]
    for name in dict.fromkeys([*(one for one in scan.predicates if one in ways), *like, *every]):
        if len(told) >= _MOST_PREDICATES:
            break
        told += [f"{name!r} {_WAYS[way]}" for way in ways[name]]
    more = sum(map(len, found.values())) - len(told[:_MOST_PREDICATES])
    has = "have" if len(named[:3]) > 1 else "has"
    asked = " or ".join(repr(name) for name in scan.predicates[:3])
    begin = f"{', '.join(map(repr, named[:3]))} {has} no {asked} {_WAYS[_way(scan)]}"
    if not told:
        return f"{begin}, and no other predicate"
    return f"{begin}, but {', '.join(told[:_MOST_PREDICATES])}{f' and {more} more' if more else ''}"


def _test_reason(node: Node, program: Program) -> str:
    condition, what = condition_of(node), tested(node)
    if isinstance(condition, alg.Among):
        return f"none of {_count(node, program)} leads to {words(condition.entities)}"
    wanted = _wanted(condition)
    there = kinds_tested(node, program.lookup.schema)
    if isinstance(node, alg.WhereQualifier) and not there:
        return f"no statement has the qualifier {node.key!r}"
    if there and wanted and not wanted & {kind for kind in there if kind[0] is not Kind.UNKNOWN}:
        return f"the values of {what} are {_kinds(there)}, and are compared with {_kinds(wanted)}"
    return f"none of {_count(node, program)} has {what} {describe_test(condition)}"


def _count(node: Node, program: Program) -> str:
    return f"{program.size(node.inputs()[0]) or 0:,}"


def _kinds(kinds: Any) -> str:
    listed = [
        kind.name.lower() + (f" in {on_one_line(unit)}" if unit not in ("", NO_UNIT) else "") for kind, unit in sorted(kinds)[:4]
    ]
    return " or ".join(listed)


def _wanted(condition: Condition) -> set[tuple[Kind, str]]:
    """The types and units of the literals of a test."""
    found = set()
    for one in comparisons(condition):
        if isinstance(one.value, Quantity):
            found.add((Kind.QUANTITY, one.value.unit))
        elif isinstance(one.value, Time):
            found.add((Kind.TIME, NO_UNIT))
        else:
            # A text compares with names of entities, too.
            found |= {(Kind.TEXT, NO_UNIT), (Kind.ENTITY, NO_UNIT)}
    return found


def comparisons(condition: Condition) -> list[Compare]:
    """The comparisons with literals that a condition is made of."""
    if isinstance(condition, Compare):
        return [condition]
    return [one for part in condition.parts() for one in comparisons(part)]


def has_test(node: Node) -> bool:
    """Whether an operator tests statements or values; rows of several variables are tested by expressions."""
    return node.facets.tests != "nothing" and isinstance(node, Facts | Values)


def tested(node: Node) -> str:
    """What a condition is asked of, in words."""
    if isinstance(node, alg.WhereQualifier):
        return f"the qualifier {node.key!r}"
    if isinstance(node, alg.WhereValidity):
        return f"the {node.part} time"
    below = node
    while carried(below):
        below = carried(below)[0]
    if isinstance(below, Scan):
        return either(below.predicates) if below.predicates else "any predicate"
    return f"the qualifier {below.key!r}" if isinstance(below, alg.Qualifiers) and below.key else "the value"


def words(node: Node) -> str:
    """An operator and what it is about, in words."""
    if isinstance(node, alg.ByName):
        return either(node.names)
    if isinstance(node, alg.Members):
        return f"the members of {words(node.concepts)}"
    if isinstance(node, Scan):
        return f"{either(node.predicates) if node.predicates else 'any predicate'} {_WAYS[_way(node)]}"
    if isinstance(node, alg.AllEntities):
        return "every entity" if node.source is None else f"the rows of {node.source!r}"
    if has_test(node):
        condition = condition_of(node)
        if isinstance(condition, alg.Among):
            return f"{tested(node)} among {words(condition.entities)}"
        return f"{tested(node)} {describe_test(condition)}"
    if isinstance(node, alg.Reached | alg.SubjectsOf | alg.Names | alg.Distinct | alg.Objects):
        return words(node.inputs()[0])
    if isinstance(node, alg.During) and node.relation in ("may", "must"):
        return f"the time {node.interval}"
    return clause(node, "") or describe(node)


# -- changes ---------------------------------------------------------------------------------------

#: What a change is, in words, the operator that it replaces, and the one in its place.
Candidate = tuple[str, str, Node, Node]


def _phases(failed: Node, program: Program) -> Iterator[Iterator[Candidate]]:
    """Changes in the order in which they are tried, until some of a phase give something: names that mean nothing, and
    values that cannot be compared; directions; names of one thing that differ; bounds, and the condition itself; other
    conditions, those below the operator that failed before those above it; predicates that mean something else.
    """
    lookup, below, conditioned = program.lookup, program.below(failed), has_test(failed)

    def names() -> Iterator[Candidate]:
        for node in below:
            if isinstance(node, alg.ByName) and program.is_empty(node):
                yield from _other_names(node, failed, program)
        if isinstance(failed, Scan):
            yield from _misspelled(failed, program)
        if conditioned:
            yield from _comparable(failed, lookup)

    def conditions() -> Iterator[Candidate]:
        # Parts of a union that gave nothing, too, though the operator that failed does not need them.
        for node in [failed, *(one for one in below[1:] if _fails(one, program))]:
            looser = False
            for one in _bounds(node, program) if has_test(node) else ():
                looser |= one[0] == "bound"
                yield one
            # Without the condition there is more than with a looser bound, which says less.
            if not looser:
                yield from _left_out(node, program)

    def others() -> Iterator[Candidate]:
        for node in below[1:]:
            yield from _left_out(node, program)
        for node in program.above(failed):
            if isinstance(node, alg.Intersect | alg.Where):
                yield from _left_out(node, program)

    yield names()
    # Where a program goes on from what a relation led to, the relation may have led the wrong way.
    turned = [one for node in below if isinstance(node, Facts | alg.Solutions) for one in _turned(node)]
    if not (turned and _met_nowhere(failed, lookup)):
        yield chain(turned, _joins(failed, program))
        yield _joined_everywhere(program)
    yield conditions()
    yield others()
    if isinstance(failed, Scan) and failed.of is not None and failed.predicates:
        yield _other_predicates(failed, lookup)


def _met_nowhere(failed: Any, lookup: Lookup) -> bool:
    """Whether no statement of the graph meets the condition of an operator, so that no other statements before it would."""
    if not isinstance(failed, alg.Where | alg.WhereQualifier) or failed.condition.inputs():
        return False
    scan: Any = failed
    while isinstance(scan, Facts) and not isinstance(scan, Scan):
        scan = carried(scan)[0]
    every = Scan(None, scan.predicates, family=scan.family)
    # The condition was asked of these, and none met it.
    return failed.facts == every or lookup.size(replace(failed, facts=every)) == 0


def _fails(node: Node, program: Program) -> bool:
    return program.is_empty(node) and not any(map(program.is_empty, program.needed(node)))


def _other_names(node: alg.ByName, failed: Node, program: Program) -> Iterator[Candidate]:
    name, lookup = node.names[0], program.lookup
    concepts: Sequence[str] = getattr(lookup.schema, "concepts", ())
    of_members = failed is node or any(isinstance(part, alg.Members) and part.concepts is node for part in program.above(node))
    near = nearest(name, concepts, most=3) if of_members else []
    near += [one for one in lookup.near(name)[:MOST_CHANGES] if one not in near]
    for other in near:
        yield "name", f"with {other!r} in place of {name!r}", node, alg.ByName((other,))
    # Rows are often looked for by another column than the one that names them; of a name that is no entity's in any case.
    forms = [name] if near else [name, name.title(), name.capitalize(), name.upper(), name.lower()]
    text = next(filter(lookup.schema.has_text, dict.fromkeys(forms)), None)
    if text is not None:
        yield "join", f"with what has {text!r} as an attribute", node, having_text(text)


def having_text(text: str) -> Entities:
    """The entities of which a text is an attribute."""
    cells = alg.Objects(Scan(None, None, "subject", "subject", "attribute"))
    return alg.SubjectsOf(alg.FilterValues(cells, Compare("=", text)))


def _misspelled(scan: Scan, program: Program) -> Iterator[Candidate]:
    """Names of predicates that are like one that the graph does not have as such."""
    schema = program.lookup.schema
    for name in scan.predicates or ():
        if _known(name, scan, schema):
            continue
        other: alg.Family | None = "relation" if schema.has_relation(name) else "attribute" if schema.has_attribute(name) else None
        if other == "attribute" and any(isinstance(part, alg.Reached) and part.facts is scan for part in program.above(scan)[:1]):
            # It leads nowhere: what it is an attribute of would be left.
            continue
        if other is not None and scan.family != "any":
            reach: alg.End = "object" if other == "relation" and scan.anchor == "subject" else "subject"
            yield "predicate", f"with {name!r} as {_AS[other]}", scan, replace(scan, family=other, reach=reach, anchor="subject")
            continue
        known: Sequence[str] = getattr(schema, "attributes" if scan.family == "attribute" else "relations", ())
        if scan.family == "any":
            known = [*getattr(schema, "relations", ()), *getattr(schema, "attributes", ())]
        for like in nearest(name, known, most=3):
            fresh: Any = replace(scan, predicates=(like,))
            text = f"with {like!r} in place of {name!r}"
            test: Any = next((one for one in program.above(scan)[:1] if isinstance(one, alg.Where) and one.facts is scan), None)
            condition = None if test is None else _read_anew(test.condition, schema.attribute_kinds(like))
            if condition is None:
                yield "name", text, scan, fresh
            else:
                yield "name", text, test, alg.Where(fresh, condition)


def _read_anew(condition: Condition, kinds: Any) -> Condition | None:
    """A condition on values of a name that means nothing, whose literal was read as a text, as those of another name."""
    if not isinstance(condition, Compare) or not isinstance(condition.value, str):
        return None
    if any(kind in (Kind.TEXT, Kind.ENTITY) for kind, _ in kinds):
        return None
    values = [value for kind, unit in kinds if (value := _as(condition.value, kind, unit)) is not None]
    return Compare(condition.operator, values[0]) if values else None


_AS: Final = {"relation": "a relation", "attribute": "an attribute"}


def _turned(scan: Node) -> Iterator[Candidate]:
    """A relation that is followed the other way."""
    if isinstance(scan, alg.Pattern):
        for at, part in enumerate(scan.statements):
            if isinstance(part.predicate, tuple) and not part.undirected and part.condition is None and part.subject is not None:
                turned = replace(part, subject=part.object, object=part.subject)
                parts = (*scan.statements[:at], turned, *scan.statements[at + 1 :])
                yield "direction", f"with {clause(alg.Pattern((turned,)), '')}", scan, replace(scan, statements=parts)
        return
    if not isinstance(scan, Scan) or scan.of is None or scan.anchor == scan.reach or not scan.predicates:
        return
    fresh = Scan(scan.of, scan.predicates, scan.reach, scan.anchor, scan.family, scan.source)
    yield "direction", f"with {words(fresh)}", scan, fresh


def _comparable(node: Any, lookup: Lookup) -> Iterator[Candidate]:
    """The same condition in the units and of the types that the values have."""
    if isinstance(node, alg.WhereQualifier) and not lookup.schema.qualifier_kinds(node.key):
        keys: Sequence[str] = getattr(lookup.schema, "qualifiers", ())
        for like in nearest(node.key, keys, most=3):
            yield "name", f"with the qualifier {like!r} in place of {node.key!r}", node, replace(node, key=like)
        return
    there = kinds_tested(node, lookup.schema)
    if not there or _wanted(node.condition) & set(there):
        return
    for one in comparisons(node.condition)[:1]:
        for (kind, unit), _ in sorted(there.items(), key=lambda item: -item[1])[:3]:
            value = _as(one.value, kind, unit)
            if value is not None:
                fresh = replace(node, condition=Compare(one.operator, value))
                what = "unit" if kind is Kind.QUANTITY and isinstance(one.value, Quantity) else "type"
                yield what, f"with {words(fresh)}", node, fresh


def _as(value: Any, kind: Kind, unit: str) -> Any:
    """A literal as another type or in another unit; None where it cannot be one."""
    text = text_of(value) if not isinstance(value, Quantity) else text_of(Quantity(value.number))
    try:
        if kind is Kind.QUANTITY:
            number = value.number if isinstance(value, Quantity) else parse_quantity(str(text)).number
            return Quantity(number, unit)
        if kind is Kind.TIME:
            return Time.parse(text.replace(",", ""))
        return text_of(value) if kind in (Kind.TEXT, Kind.ENTITY) else None
    except (ValueError, ArithmeticError):
        return None


#: Of each operator: the nearest values that do not satisfy it, and the operator that they satisfy.
_NEAREST: Final[dict[str, tuple[tuple[alg.Operator, alg.Direction, alg.Operator], ...]]] = {
    ">": (("<=", "largest", ">="),),
    ">=": (("<", "largest", ">="),),
    "<": ((">=", "smallest", "<="),),
    "<=": ((">", "smallest", "<="),),
    "=": (("<", "largest", "="), (">", "smallest", "=")),
}


def _bounds(node: Any, program: Program) -> Iterator[Candidate]:
    """The nearest value that there is in place of the one in the condition; where the program gives nothing with it either,
    the nearest with which it does.
    """
    of, lookup = values_tested(node), program.lookup
    condition = node.condition
    if isinstance(condition, alg.AllOf):
        for at, part in enumerate(condition.conditions):
            rest = (*condition.conditions[:at], *condition.conditions[at + 1 :])
            fresh = replace(node, condition=rest[0] if len(rest) == 1 else alg.AllOf(rest))
            yield "bound", f"without {tested(node)} {describe_test(part)}", node, fresh
        return
    if of is None or not isinstance(condition, Compare | alg.AnyOf):
        return
    for one in comparisons(condition):
        if isinstance(one.value, str):
            if one.operator == "=":
                # Not their texts: a cell of a table is shown as it stood, with the spaces around it.
                there = [
                    value.name if isinstance(value, Entity) else value for value in lookup.values(alg.Distinct(of), _MOST_TEXTS)
                ]
                for like in _near_texts(one.value, [value for value in there if isinstance(value, str)]):
                    fresh = replace(node, condition=Compare("=", like))
                    yield "name", f"with {words(fresh)}", node, fresh
            continue
        literal = (Kind.QUANTITY, one.value.unit) if isinstance(one.value, Quantity) else (Kind.TIME, NO_UNIT)
        kinds = kinds_tested(node, lookup.schema)
        nearest_values = []
        for limit, direction, satisfied in _NEAREST.get(one.operator, ()):
            # No value satisfies the condition: where all compare with its literal, the best of all is that of one side.
            if kinds is not None and set(kinds) == {literal}:
                best = lookup.values(alg.Extreme(of, direction), 1)
                if best and (one.operator != "=" or _is_beyond(best[0], one.value, limit)):
                    nearest_values = [(of, direction, satisfied, limit, best[0])]
                    break
            beyond: Values = alg.FilterValues(of, Compare(limit, one.value))
            best = lookup.values(alg.Extreme(beyond, direction), 1)
            nearest_values += [(beyond, direction, satisfied, limit, value) for value in best if isinstance(value, Quantity | Time)]
        if not nearest_values and isinstance(one.value, Time):
            # Times that overlap the one of the condition are on neither side of it.
            for limit, direction, satisfied in _NEAREST.get(one.operator, ()):
                best = lookup.values(alg.Extreme(of, direction), 1)
                nearest_values += [(of, direction, satisfied, limit, value) for value in best if isinstance(value, Time)]
        for among, direction, satisfied, limit, value in nearest_values:
            fresh = _nearest_bound(node, program, among, direction, satisfied, value, Compare(limit, one.value))
            if fresh is not None:
                yield "bound", f"with {words(fresh)}", node, fresh


def _is_beyond(value: Any, limit: Any, operator: alg.Operator) -> bool:
    """Whether a value is surely below ("<") or above another."""
    if isinstance(value, Quantity) and isinstance(limit, Quantity):
        return value.number < limit.number if operator == "<" else value.number > limit.number
    low, high = (value, limit) if operator == "<" else (limit, value)
    return isinstance(low, Time) and isinstance(high, Time) and low.end <= high.start


def _near_texts(text: str, texts: list[str]) -> list[str]:
    """Texts that are like one: those of its length first, which a slip of the hand leaves as it is."""
    close = [one for one in texts if abs(len(one) - len(text)) <= 2]
    like = (close and nearest(text, close, most=2)) or nearest(text, texts[:_MOST_COMPARED], most=2)
    wanted = text.casefold()
    return like or [one for one in texts if len(wanted) > 1 and wanted in one.casefold()][:2]


def _nearest_bound(
    node: Any, program: Program, there: Values, direction: alg.Direction, operator: alg.Operator, best: Any, limit: Condition
) -> Any:
    """The operator with the nearest value with which the whole program gives something; None where it does with none."""
    lookup = program.lookup

    def gives(conditions: Sequence[Condition]) -> list[Any]:
        """The operator with each of the conditions, None in place of one with which the program gives nothing."""
        tried = [replace(node, condition=condition) for condition in conditions]
        sizes = lookup.changed(program, [program.freed(node, fresh) for fresh in tried])
        return [fresh if size else None for fresh, size in zip(tried, sizes, strict=True)]

    def is_comparable(value: Any) -> bool:
        return type(value) is type(best) and getattr(value, "unit", "") == getattr(best, "unit", "")

    (fresh,) = gives([Compare(operator, best)])
    if fresh is not None:
        return fresh
    inner = carried(node)[0]
    if lookup.changed(program, [program.freed(node, inner)]) == [0]:
        return None
    behind = None if isinstance(node, alg.FilterValues) else lookup.behind(program.changed(node, inner), node.facts)
    led = None if behind is None else values_tested(replace(node, facts=behind))
    if led is not None:
        # Each of these statements led to results by itself, unless it takes several at once.
        led = alg.FilterValues(led, limit)
        for value in filter(is_comparable, lookup.values(alg.Extreme(led, direction), 1)):
            (fresh,) = gives([Compare(operator, value)])
            if fresh is not None:
                return fresh
    values = list(filter(is_comparable, lookup.values(alg.Distinct(there), _MOST_TEXTS)))
    if direction == "largest":
        values.reverse()
    if operator == "=":
        # The value and those between it and the one of the condition.
        towards: alg.Operator = ">=" if direction == "largest" else "<="
        conditions: list[Condition] = [alg.AllOf((Compare(towards, value), limit)) for value in values]
    else:
        conditions = [Compare(operator, value) for value in values]
    if not values or gives(conditions[-1:]) == [None]:
        return None
    # A looser bound gives at least as much, so that values are divided until one is left.
    low, high = 0, len(values) - 1
    while high - low > 1:
        check()
        # On a server as many as one query tries.
        parts = min(max(lookup.batch, 1), high - low - 1)
        tried = [low + (high - low) * (at + 1) // (parts + 1) for at in range(parts)]
        given = gives([conditions[at] for at in tried])
        first = next((at for at, fresh in zip(tried, given, strict=True) if fresh is not None), high)
        low, high = max([low, *(at for at in tried if at < first)]), first
    (fresh,) = gives([Compare(operator, values[high])])
    return fresh


def values_tested(node: Any) -> Values | None:
    """The values that a condition is asked of."""
    if isinstance(node, alg.WhereQualifier):
        return alg.Qualifiers(node.facts, node.key)
    if isinstance(node, alg.WhereValidity):
        return alg.Validity(node.facts, node.part)
    if isinstance(node, alg.Where):
        return alg.Objects(node.facts)
    return node.values if isinstance(node, alg.FilterValues) else None


def _left_out(node: Any, program: Program) -> Iterator[Candidate]:
    """The operator without one of its conditions; a condition on an attribute goes with the attribute, where only the
    entities matter.
    """
    if isinstance(node, alg.Where | alg.Scan):
        facts, scan = node, node.facts if isinstance(node, alg.Where) else node
        user = next(iter(program.above(node)), None)
        alone = isinstance(scan, Scan) and scan.anchor == scan.reach == "subject" and scan.of is not None
        if alone and isinstance(user, alg.Reached) and user.facts is facts and isinstance(scan, Scan) and scan.of is not None:
            yield "condition", f"without {words(node)}", user, scan.of
    if isinstance(node, alg.Intersect):
        # The part that is made of the least is the smallest change.
        for part in sorted(node.parts, key=lambda one: len(program.below(one))):
            rest = tuple(one for one in node.parts if one is not part)
            if not rest:
                # The same part twice.
                continue
            yield "condition", f"without {words(part)}", node, rest[0] if len(rest) == 1 else alg.Intersect(rest)
    elif isinstance(node, Scan):
        if node.source is not None:
            yield "source", f"without source {node.source!r}", node, replace(node, source=None)
    elif isinstance(node, alg.Having):
        yield "condition", f"without {words(node)}", node, node.table
    elif isinstance(node, alg.Minus):
        yield "condition", f"without taking away {words(node.right)}", node, node.left
    elif node.facets.filters and len(inner := carried(node)) == 1 and not isinstance(node, alg.Distinct | alg.Names):
        sort = next((one for one in (Entities, Facts, Values) if isinstance(node, one)), None)
        if sort is not None and isinstance(inner[0], sort):
            yield "condition", f"without {words(node)}", node, inner[0]


def _joins(failed: Node, program: Program) -> Iterator[Candidate]:
    """What leads on where two ids or names of one thing differ: other entities of the same name, of a name that differs by
    case, marks between words or what is before a slash, and entities that texts name.
    """
    lookup = program.lookup
    if isinstance(failed, alg.Intersect):
        for part in sorted(failed.parts, key=lambda one: -len(program.below(one))):
            rest = [one for one in failed.parts if one is not part]
            yield from _joined(part, partial(_before, rest[0]), lookup)
    if isinstance(failed, alg.Where) and isinstance(failed.condition, alg.Among):
        for _, text, _, fresh in _joined(failed.condition.entities, lambda: f"after {tested(failed)}", lookup):
            yield "join", text, failed, alg.Where(failed.facts, alg.Among(fresh))  # type: ignore[arg-type]
    scan = next((node for node in program.below(failed) if isinstance(node, Scan)), None)
    if scan is None or scan.of is None or isinstance(scan.of, alg.AllEntities):
        return
    if not isinstance(failed, alg.Intersect | alg.Union | alg.Minus):
        yield from _joined(scan.of, partial(_before, scan), lookup)
    if scan is failed and scan.family == "relation" and any(map(lookup.schema.has_attribute, scan.predicates or ())):
        text = f"with {words(scan)} joined by names, as its values are texts"
        if scan.anchor == "object":
            cells = alg.Objects(Scan(None, scan.predicates, "subject", "subject", "attribute"))
            naming: Entities = alg.SubjectsOf(alg.FilterValues(cells, alg.Equals(alg.Names(scan.of))))
        else:
            naming = alg.Referents(alg.Objects(replace(scan, reach="subject", family="attribute")))
        yield "join", text, scan, Scan(naming, None, "subject", "subject", "any")
        yield from _joined_by_keys(scan, lookup)


def _joined_by_keys(scan: Scan, lookup: Lookup) -> Iterator[Candidate]:
    """Rows of tables whose keys are spelled in another way than the column that refers to them, for a relation that is such
    a column: its values are texts, as no row was found by them.
    """
    column = Scan(None, scan.predicates, "subject", "subject", "attribute")
    forward = scan.anchor == "subject"
    of = scan.of if scan.of is not None else alg.AllEntities()
    given = lookup.values(alg.Distinct(alg.Objects(replace(column, of=of, predicates=scan.predicates if forward else None))), 20)
    own = [one for one in given if isinstance(one, str) and len(one) <= _LONGEST_KEY]
    forms = {form: one for one in reversed(own) for form in _spellings(one, getattr(lookup.schema, "concepts", ()))}
    if not forms:
        return
    there: Facts = column if not forward else replace(column, predicates=None)
    spelled = alg.FilterValues(alg.Objects(there), alg.Equals(alg.Constants(tuple(forms))))
    keys = [one for one in lookup.values(alg.Distinct(spelled), 100) if isinstance(one, str) and one in forms and one not in own]
    if not keys:
        return
    any_key = alg.Equals(alg.Constants(tuple(keys)))
    rows: Entities = alg.SubjectsOf(alg.FilterValues(alg.Objects(there), any_key))
    if forward:
        rows = alg.Minus(rows, alg.SubjectsOf(alg.FilterValues(alg.Objects(column), any_key)))
    pairs = ", ".join(f"{one!r} for {forms[one]!r}" for one in keys[:3]) + (", ..." if len(keys) > 3 else "")
    text = f"with {words(scan)} joined by keys that are spelled otherwise, {pairs}"
    yield "join", text, scan, Scan(rows, None, "subject", "subject", "any")


#: Characters of a key.
_LONGEST_KEY: Final = 100
#: Concepts that a key may have before a slash.
_MOST_BEFORE: Final = 20


def _spellings(key: str, concepts: Sequence[str]) -> list[str]:
    """How other tables may spell a key: without what is before a slash or with a table's name there, in another case, with
    other marks between words and before a number.

    >>> _spellings("a/S-9", ["stations"])
    ['a/S-9', 'S-9', 's-9', 'S9', 's9', 'S_9', 's_9', 'S 9', 's 9']
    >>> _spellings("S9", ["stations"])
    ['S9', 's9', 'S-9', 's-9', 'S_9', 's_9', 'S 9', 's 9', 'stations/S9', 'stations/s9']
    """
    bare = key.rpartition("/")[2]
    marked = _BEFORE_DIGITS.sub(r"\1-\2", bare)
    forms = [key]
    for form in (bare, *(re.sub("[-_ ]+", mark, marked) for mark in ("", "-", "_", " "))):
        forms += [form, form.upper(), form.lower(), form.title()]
    before = concepts[:_MOST_BEFORE] if bare == key else ()
    forms += [f"{one}/{form}" for one in before for form in (bare, bare.upper(), bare.lower(), re.sub("[-_ ]+", "", bare))]
    return list(dict.fromkeys(forms))


#: Letters before a number, with or without a mark between them.
_BEFORE_DIGITS: Final = re.compile(r"([^\W\d_])[-_ ]?(\d)")


def _before(node: Node) -> str:
    return f"before {words(node)}"


def _joined(of: Entities, where: Callable[[], str], lookup: Lookup) -> Iterator[Candidate]:
    """Entities, and those that are the same by their names."""
    same = lookup.alike(of)
    if same:
        yield "join", f"with {either(same)} as well {where()}", of, alg.Union((of, alg.ByName(tuple(same))))


def _joined_everywhere(program: Program) -> Iterator[Candidate]:
    """The program with all entities of the same names at every step, where one join alone is not enough."""
    done: dict[int, Node] = {}
    joined: list[str] = []
    for node in program.order:
        fresh: Any = rebuild(node, done) if any(id(child) in done for child in program.inputs[id(node)]) else node
        if isinstance(node, alg.ByName | alg.Reached | alg.Intersect):
            check()
            same = program.lookup.alike(fresh)
            if same:
                joined += same
                fresh = alg.Union((fresh, alg.ByName(tuple(same))))
        if fresh is not node:
            done[id(node)] = fresh
    if joined:
        yield "join", f"with {either(joined)} as well, at every step", program.root, done[id(program.root)]


def folded(name: str) -> str:
    """A name without what tells two spellings of it apart: case, marks between words and before a number, and what is before
    a slash.

    >>> folded("stations/Old_Town"), folded("old town"), folded("S-12"), folded("s12")
    ('old town', 'old town', 's12', 's12')
    """
    return _BEFORE_NUMBER.sub("", " ".join(name.rpartition("/")[2].casefold().replace("_", " ").replace("-", " ").split()))


_BEFORE_NUMBER: Final = re.compile(r"(?<=[^\W\d_]) (?=\d)")


def _other_predicates(scan: Scan, lookup: Lookup) -> Iterator[Candidate]:
    """Predicates that the entities have in place of one that they do not have, those like it first."""
    assert scan.of is not None
    have = lookup.predicates(scan.of, 50)[_way(scan)]
    for name in scan.predicates or ():
        for other in nearest(name, have, most=2):
            if other not in (scan.predicates or ()):
                yield "predicate", f"with {other!r} in place of {name!r}", scan, replace(scan, predicates=(other,))

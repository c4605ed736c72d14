"""Explanations of empty answers: the first step that yielded nothing, and changes of the program that yield
something; with the shared parts of explanations of missing results (`why_missing`).

An answer is empty because some operator of its plan yielded nothing although its inputs yielded something. Each
change replaces one operator in the part below it, and is run. All of this is expressed in plans, which every store
runs.
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

#: The most changes reported, and the most tried.
MAX_CHANGES: Final = 3
_MAX_TRIED: Final = 24
#: Limits: entities whose predicates are listed, predicates listed, and texts read and compared with a misspelled one.
MAX_ENTITIES: Final = 1_000
_MAX_PREDICATES: Final = 6
_MAX_TEXTS: Final = 20_000
_MAX_COMPARED: Final = 1_000
#: The most results shown of a change, and the largest result from which they are taken.
_MAX_SHOWN: Final = 3
_MAX_SAMPLED: Final = 1_000


class Lookup(Protocol):
    """What an explanation looks up in the store that answered. `batch` is the number of changes tried at once: on a
    server, one query tries them all. `order` has the operators of the answer's plan, inputs first, if known.
    """

    batch: int
    order: Sequence[Node]

    @property
    def schema(self) -> GraphKnowledge:
        """The names and types of the graph, as lowering uses them."""

    def size(self, node: Node) -> int:
        """Return the number of results of an operator."""

    def counts(self, nodes: Sequence[Node]) -> list[int]:
        """Return the numbers of results of several operators."""

    def changed(self, program: Program, changes: Sequence[tuple[Node, Node]]) -> list[int]:
        """Return the number of results of a program with one operator replaced, for each pair of an operator and its
        replacement.
        """

    def sample(self, program: Program, node: Node, fresh: Node, most: int) -> list[str]:
        """Return the texts of at most `most` results of a program with one such change."""

    def values(self, node: Values, most: int) -> list[Any]:
        """Return at most `most` typed values."""

    def texts(self, node: Node, most: int) -> list[str]:
        """Return the texts of at most `most` results."""

    def near(self, name: str) -> list[str]:
        """Return similar names of entities, best first."""

    def predicates(self, of: Entities, most: int) -> dict[str, list[str]]:
        """Return at most `most` predicates of entities each: "forward" and "backward" for relations, "value" for
        attributes.
        """

    def behind(self, plan: Node, facts: Facts) -> Facts | None:
        """Return an operator that yields the statements of `facts` that support the plan's results; None if that
        costs more than a few queries.
        """

    def alike(self, of: Entities) -> list[str]:
        """Return other names that equal names of the entities after `folded` (case, marks between words, and the part
        before a slash ignored), and those of their own names that several entities share.
        """


# -- what an explanation says ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the program that yields results: its kind ("direction", "name", "predicate", "unit", "type",
    "bound", "join", "condition" or "source"), a description, the number of results, and the first of them.
    """

    kind: str
    text: str
    size: int
    sample: tuple[str, ...]
    #: The root of the program, the replaced operator, and its replacement.
    made_of: tuple[Node, Node, Node] = field(repr=False, compare=False)

    @property
    def plan(self) -> Node:
        """The changed program, rebuilt."""
        return replaced(*self.made_of)

    def __str__(self) -> str:
        listed = ", ".join(map(on_one_line, self.sample)) + (", ..." if self.size > len(self.sample) else "")
        return f"{self.text}: {self.size:,} result{'' if self.size == 1 else 's'}" + (f" ({listed})" if listed else "")


@dataclass(frozen=True, slots=True)
class MissingStatement:
    """A statement that the graph lacks for an expected result, its ends by their names. As object, "?" stands for
    any, and a condition for one that the present object does not satisfy.
    """

    subject: str
    predicate: str
    object: str

    def __str__(self) -> str:
        return " | ".join(map(on_one_line, (self.subject, self.predicate, self.object)))


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why an answer is empty, or lacks an expected result.

    `step` is the step of the program and `operator` the operator that lost it, both empty if nothing is lost;
    `reason` is a description. `changes` yield something, the smallest change first. `missing` are statements that are
    missing or differ from those the program asks for; each alone would give the expected result at this step.
    `complete` is false if the deadline ended the search, after `tried` changes.
    """

    step: str
    operator: str
    reason: str
    changes: tuple[Change, ...] = ()
    missing: tuple[MissingStatement, ...] = ()
    complete: bool = True
    tried: int = 0
    #: The expected result that is missing; "" for an empty answer.
    expected: str = ""
    #: The operator itself; None if nothing is lost.
    node: Node | None = field(default=None, repr=False, compare=False)

    def lines(self) -> list[str]:
        """Return the explanation as lines of text."""
        lost = f"lost {self.expected!r}" if self.expected else "returned nothing"
        first = f"{self.step} {lost}, {self.operator}; {self.reason}" if self.step else self.reason
        lines = [first, *map(str, self.changes), *(f"missing: {statement}" for statement in self.missing)]
        if not self.complete:
            tried = f"{self.tried} change{'' if self.tried == 1 else 's'}"
            lines.append(f"the time for explaining was over after {tried}")
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        """Return the explanation as HTML for notebooks."""
        first, *more = self.lines()
        return html.page(first, (), more)

    def data(self) -> dict[str, Any]:
        """Return the explanation as JSON-compatible data."""
        return {
            "step": self.step, "operator": self.operator, "reason": self.reason,
            "changes": [
                {"kind": entry.kind, "text": entry.text, "size": entry.size, "sample": list(entry.sample)} for entry in self.changes
            ],
            "missing": [[statement.subject, statement.predicate, statement.object] for statement in self.missing],
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
    """Explain why a plan yields nothing, or counts or sums nothing; None if it yields something.

    `seconds` limits the time; at the deadline, what is known is returned. Without `changes` only the operator is
    sought, not the reason. `empty` says that the plan is known to yield nothing.
    """
    search = _Search(plan, steps, lookup, changes, empty)
    try:
        with within(seconds):
            search.run()
    except DeadlineError:
        check()
        search.complete = False
    except (PlanError, UnsupportedError):
        # This store cannot count the results of some operator.
        search.complete = search.failing is not None
    return search.result()


class _Search:
    """The state of one explanation, which a deadline may end at any point."""

    def __init__(self, plan: Node, steps: Sequence[tuple[str, Node]], lookup: Lookup, changes: bool, empty: bool) -> None:
        self.plan, self.steps, self.lookup, self.try_changes, self.empty = plan, steps, lookup, changes, empty
        self.program: Program | None = None
        self.failing: Node | None = None
        self.reason = ""
        #: By their descriptions.
        self.changes: dict[str, Change] = {}
        self.complete, self.tried = True, 0

    def run(self) -> None:
        program = self.program = Program(result_of(self.plan), self.lookup, empty=self.empty)
        if not program.is_empty(program.root):
            return
        self.failing = program.failing()
        if not self.try_changes:
            return
        self.reason = _reason(self.failing, program)
        for phase in _phases(self.failing, program):
            tried: list[Candidate] = []
            for candidate in phase:
                if candidate[1] in self.changes:
                    continue
                tried.append(candidate)
                if len(tried) == self.lookup.batch:
                    self._try(program, tried)
                    tried = []
                    if len(self.changes) >= MAX_CHANGES or self.tried >= _MAX_TRIED:
                        return
            self._try(program, tried)
            if self.changes:
                return

    def _try(self, program: Program, tried: list[Candidate]) -> None:
        if not tried:
            return
        pairs = [program.freed(node, fresh) for _, _, node, fresh in tried]
        try:
            sizes = self.lookup.changed(program, pairs)
        except (PlanError, UnsupportedError, UnknownNameError):
            # A change that is invalid here, or that the store cannot run, is skipped.
            if len(tried) > 1:
                for candidate in tried:
                    self._try(program, [candidate])
            return
        self.tried += len(tried)
        for (kind, text, *_), (node, fresh), size in zip(tried, pairs, sizes, strict=True):
            if size and len(self.changes) < MAX_CHANGES and text not in self.changes:
                sample = self.lookup.sample(program, node, fresh, _MAX_SHOWN) if size <= _MAX_SAMPLED else []
                self.changes[text] = Change(kind, text, size, tuple(sample), (program.root, node, fresh))

    def result(self) -> WhyNot | None:
        node = self.failing
        if node is None:
            return None if self.complete else WhyNot("", "", "the step that left nothing is unknown", complete=False)
        step, reason = step_of(node, self.steps, self.program), self.reason or f"{describe(node)} returned nothing"
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
    """Return the part of a plan whose results make up the answer: what a number counts or sums."""
    while isinstance(plan, alg.Scalar | alg.Apply | alg.Distinct | alg.Names | alg.Shown):
        if isinstance(plan, alg.AnySatisfies):
            return alg.FilterValues(plan.values, plan.condition)
        inputs = plan.inputs()
        if not inputs:
            return plan
        plan = inputs[0]
    return plan


#: Operators that are counted only if an explanation needs their size.
_UNSIZED: Final = (alg.Scalar, alg.AllEntities, alg.ByName)


class Program:
    """A plan, the number of results of each operator, and the plan with an operator replaced. On a server the sizes
    are one query, without operators whose emptiness follows from others; in process each is counted on first use.
    """

    def __init__(self, root: Node, lookup: Lookup, *, empty: bool = False) -> None:
        self.root, self.lookup = root, lookup
        #: The operators, inputs first, and the inputs of each by its identity.
        self.order = _until(root, lookup.order) or postorder(root)
        self.inputs = {id(node): node.inputs() for node in self.order}
        self._sizes: dict[int, int | None] = {id(root): 0} if empty else {}
        #: By the identity of an operator, another that is empty if and only if it is.
        self._empty_with: dict[int, Node] = {}
        if lookup.batch > 1:
            self._empty_with = _empty_together(self.order, self.inputs)
            known = {*self._sizes, *self._empty_with}
            sized = [node for node in self.order if id(node) not in known and not isinstance(node, _UNSIZED)]
            self._sizes.update(zip(map(id, sized), lookup.counts(sized), strict=True))
        self._all_users: dict[int, list[Node]] = {}
        self._all_inputs: dict[int, list[Node]] = {}
        #: Plans by the replaced operator and its replacement, which they keep alive.
        self._plans: dict[tuple[int, int], Node] = {}
        self._filters = [node for node in self.order if isinstance(node, alg.Filter)]
        self._freed: dict[tuple[int, int], tuple[Node, Node]] = {}

    def size(self, node: Node) -> int | None:
        """Return the number of results of an operator; None if it yields a single value."""
        if id(node) not in self._sizes:
            self._sizes[id(node)] = None if isinstance(node, alg.Scalar) else self.lookup.size(node)
        return self._sizes[id(node)]

    def is_empty(self, node: Node) -> bool:
        """Return whether an operator yields no results."""
        if id(node) not in self._sizes:
            if (alike := self._empty_with.get(id(node))) is not None:
                return self.is_empty(alike)
            if isinstance(node, alg.ByName) and self.lookup.batch > 1:
                # Lowering or the answer looked them up.
                return not any(map(self.lookup.schema.has_entity, node.names))
            if isinstance(node, alg.AllEntities) and not all(
                self.is_empty(user) for user in self.order if any(child is node for child in self.needed(user))
            ):
                return False
        return self.size(node) == 0

    def failing(self) -> Node:
        """Return the first operator that yielded nothing although every input it needs yielded something."""
        node = self.root
        while True:
            for input_ in self.needed(node):
                if self.is_empty(input_):
                    node = input_
                    break
            else:
                return node

    def above(self, node: Node) -> list[Node]:
        """Return the operators that use an operator directly or indirectly, nearest first."""
        users = self._all_users.get(id(node))
        if users is None:
            users, inside = [], {id(node)}
            for part in self.order:
                if not inside.isdisjoint(map(id, self.inputs[id(part)])):
                    inside.add(id(part))
                    users.append(part)
            self._all_users[id(node)] = users
        return users

    def below(self, node: Node) -> list[Node]:
        """Return an operator and those below it, nearest first."""
        parts = self._all_inputs.get(id(node))
        if parts is None:
            parts, seen = [node], {id(node)}
            for part in parts:
                for child in self.inputs[id(part)]:
                    if id(child) not in seen:
                        seen.add(id(child))
                        parts.append(child)
            self._all_inputs[id(node)] = parts
        return parts

    def owner(self, node: Node, steps: Sequence[tuple[str, Node]]) -> int | None:
        """Return the index of the first step that contains an operator; None if an earlier step is not part of the
        plan.
        """
        containing = {id(node), *map(id, self.above(node))}
        for at, (_, root) in enumerate(steps):
            if id(root) in containing:
                return at
            if id(root) not in self.inputs:
                break
        return None

    def needed(self, node: Node) -> Sequence[Node]:
        """Return the inputs that make an operator empty if any of them is: not what is subtracted, and not the
        columns of a table.
        """
        if isinstance(node, alg.Group):
            return (node.of,)
        return (node.left,) if isinstance(node, alg.Minus) else self.inputs[id(node)]

    def freed(self, node: Node, fresh: Node) -> tuple[Node, Node]:
        """Return the operator to replace for a change, and its replacement. A Cypher condition that chose the nodes
        that rows begin with is tested again by a filter of the rows; the change removes that filter as well.
        """
        if not self._filters:
            return node, fresh
        pair = self._freed.get((id(node), id(fresh)))
        if pair is None:
            remaining = {id(part) for part in postorder(fresh)}
            removed = [part for part in self.below(node) if id(part) not in remaining]
            above = {id(part) for part in self.above(node)}
            filters = (
                filter_ for filter_ in self._filters if id(filter_) in above and any(_same_test(filter_, part) for part in removed)
            )
            repeated = next(filters, None)
            pair = (node, fresh) if repeated is None else (repeated, replaced(repeated.of, node, fresh))
            self._freed[id(node), id(fresh)] = pair
        return pair

    def changed(self, node: Node, fresh: Node) -> Node:
        """Return the plan with one operator replaced; the same object each time."""
        plan = self._plans.get((id(node), id(fresh)))
        if plan is None:
            plan = self._plans[id(node), id(fresh)] = replaced(self.root, node, fresh)
        return plan


def _empty_together(order: Sequence[Node], inputs: Mapping[int, Sequence[Node]]) -> dict[int, Node]:
    """Return, for operators with a single user that is empty if and only if they are, that user: for statements that
    lead to entities, and those whose values are listed.
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


def _same_test(rows: alg.Filter, node: Node) -> bool:
    """Return whether a filter of rows compares the same property with the same value by which an operator chose
    entities.
    """
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
    tested_keys = {side.key if isinstance(side, Property) else side.name for side in sides if isinstance(side, Property | Call)}
    # A number without a unit also compares with values in a unit.
    values = (value, value.number) if isinstance(value, Quantity) else (value,)
    return not tested_keys.isdisjoint(keys) and any(isinstance(side, Constant) and side.value in values for side in sides)


def replaced(plan: Node, node: Node, fresh: Node) -> Node:
    """Return a plan with one operator replaced. Parts that do not contain it stay the same objects."""
    return rewrite(plan, lambda part: fresh if part is node else part)


def _until(root: Node, order: Sequence[Node]) -> Sequence[Node]:
    """Return the operators up to one of them, if each later operator takes a single input; otherwise nothing."""
    for at in range(len(order), 0, -1):
        if order[at - 1] is root:
            return order[:at]
        if len(order[at - 1].inputs()) != 1:
            break
    return ()


def step_of(node: Node, steps: Sequence[tuple[str, Node]], program: Program | None = None) -> str:
    """Return the first step of the program that contains an operator."""
    at = None if program is None else program.owner(node, steps)
    if at is None:
        at = owners(steps, node).get(id(node), -1)  # a pass made others out of several steps
    step = steps[at][0] if steps else "the query" if isinstance(node, alg.Solutions) else type(node).__name__
    if step == "RETURN" and isinstance(node, alg.Pattern | alg.Path) and any(name == "MATCH" for name, _ in steps):
        # The operator combines several patterns or clauses.
        return "MATCH"
    return step


def operator_of(node: Node, plan: Node, step: str) -> str:
    """Return an operator's text in an explanation: in the words of the query for plans of rows, whose clauses users
    write, otherwise in the notation of plans.
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
    """Describe why an operator yielded nothing."""
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
        return f"all {program.size(node.left) or 0:,} are excluded by {words(node.right)}"
    sizes = [size for input_ in program.needed(node) if (size := program.size(input_)) is not None]
    if isinstance(node, alg.During) and node.relation in ("may", "must") and sizes:
        truth = "true" if node.relation == "may" else "certain to be true"
        return f"no statement of {sizes[0]:,} is {truth} at {node.interval}"
    if (explanation := lost(node, sizes)) is not None:
        return explanation
    return f"none of {' and '.join(f'{size:,}' for size in sizes)} remains" if sizes else "the graph has no such item"


def _flat(node: alg.Intersect) -> Iterator[Entities]:
    """Yield the parts of nested intersections."""
    for part in node.parts:
        if isinstance(part, alg.Intersect):
            yield from _flat(part)
        elif part != alg.AllEntities():
            yield part


def either(texts: Sequence[str]) -> str:
    """Return quoted texts as alternatives."""
    return " or ".join(map(repr, texts[:3])) + (", ..." if len(texts) > 3 else "")


def _scan_reason(scan: Scan, program: Program) -> str:
    lookup = program.lookup
    unknown = [name for name in scan.predicates or () if not _has_predicate(name, scan, lookup.schema)]
    if scan.predicates and len(unknown) == len(scan.predicates):
        known = [name for name in unknown if lookup.schema.has_relation(name) or lookup.schema.has_attribute(name)]
        if not known:
            return f"the graph has no {either(unknown)}"
    if scan.predicates == ():
        return "its predicate matches nothing"
    if scan.predicates is None:
        return "there are no such statements"
    if scan.of is None or isinstance(scan.of, alg.AllEntities):
        return f"nothing has {either(scan.predicates)} {_DIRECTION_TEXTS[_direction_of(scan)]}"
    if not isinstance(scan.of, alg.ByName) and (size := program.size(scan.of) or 0) > MAX_ENTITIES:
        return f"none of {size:,} entities has {either(scan.predicates)} {_DIRECTION_TEXTS[_direction_of(scan)]}"
    return instead(scan, lookup)


def _has_predicate(name: str, scan: Scan, schema: GraphKnowledge) -> bool:
    if scan.family == "relation":
        return schema.has_relation(name)
    return schema.has_attribute(name) or (scan.family == "any" and schema.has_relation(name))


def _direction_of(scan: Scan) -> str:
    return "value" if scan.family == "attribute" else "backward" if scan.anchor == "object" else "forward"


_DIRECTION_TEXTS: Final = {"forward": "forward", "backward": "backward", "value": "as an attribute"}


def instead(scan: Scan, lookup: Lookup) -> str:
    """Describe in one sentence what the entities of an empty scan have instead."""
    assert scan.of is not None
    assert scan.predicates is not None
    predicates = lookup.predicates(scan.of, 100)
    entity_names = scan.of.names if isinstance(scan.of, alg.ByName) else lookup.texts(alg.Names(scan.of), 3)
    # The same predicate in another direction first, then similar names, then the rest.
    listed: list[str] = []
    ways: dict[str, list[str]] = {}
    for way, names in predicates.items():
        for name in names:
            ways.setdefault(name, []).append(way)
    every = sorted(ways)
    similar = [
        name for missing in scan.predicates[:3] if missing not in ways for name in nearest(missing, every, most=_MAX_PREDICATES)
    ]
    for name in dict.fromkeys([*(name for name in scan.predicates if name in ways), *similar, *every]):
        if len(listed) >= _MAX_PREDICATES:
            break
        listed += [f"{name!r} {_DIRECTION_TEXTS[way]}" for way in ways[name]]
    more = sum(map(len, predicates.values())) - len(listed[:_MAX_PREDICATES])
    verb = "have" if len(entity_names[:3]) > 1 else "has"
    wanted = " or ".join(repr(name) for name in scan.predicates[:3])
    opening = f"{', '.join(map(repr, entity_names[:3]))} {verb} no {wanted} {_DIRECTION_TEXTS[_direction_of(scan)]}"
    if not listed:
        return f"{opening}, and no other predicate"
    return f"{opening}, but {', '.join(listed[:_MAX_PREDICATES])}{f' and {more} more' if more else ''}"


def _test_reason(node: Node, program: Program) -> str:
    condition, subject = condition_of(node), tested(node)
    if isinstance(condition, alg.Among):
        return f"none of {_count(node, program)} leads to {words(condition.entities)}"
    literal_kinds = _literal_kinds(condition)
    kinds = kinds_tested(node, program.lookup.schema)
    if isinstance(node, alg.WhereQualifier) and not kinds:
        return f"no statement has the qualifier {node.key!r}"
    if kinds and literal_kinds and not literal_kinds & {kind for kind in kinds if kind[0] is not Kind.UNKNOWN}:
        return f"the values of {subject} are {_kinds_text(kinds)}, and are compared with {_kinds_text(literal_kinds)}"
    return f"none of {_count(node, program)} has {subject} {describe_test(condition)}"


def _count(node: Node, program: Program) -> str:
    return f"{program.size(node.inputs()[0]) or 0:,}"


def _kinds_text(kinds: Any) -> str:
    listed = [
        kind.name.lower() + (f" in {on_one_line(unit)}" if unit not in ("", NO_UNIT) else "") for kind, unit in sorted(kinds)[:4]
    ]
    return " or ".join(listed)


def _literal_kinds(condition: Condition) -> set[tuple[Kind, str]]:
    """Return the types and units of the literals of a test."""
    kinds = set()
    for comparison in comparisons(condition):
        if isinstance(comparison.value, Quantity):
            kinds.add((Kind.QUANTITY, comparison.value.unit))
        elif isinstance(comparison.value, Time):
            kinds.add((Kind.TIME, NO_UNIT))
        else:
            # A text compares with names of entities, too.
            kinds |= {(Kind.TEXT, NO_UNIT), (Kind.ENTITY, NO_UNIT)}
    return kinds


def comparisons(condition: Condition) -> list[Compare]:
    """Return the comparisons with literals in a condition."""
    if isinstance(condition, Compare):
        return [condition]
    return [comparison for part in condition.parts() for comparison in comparisons(part)]


def has_test(node: Node) -> bool:
    """Return whether an operator tests statements or values; rows of several variables are tested by expressions
    instead.
    """
    return node.facets.tests != "nothing" and isinstance(node, Facts | Values)


def tested(node: Node) -> str:
    """Describe what a condition is applied to."""
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
    """Describe an operator and its object."""
    if isinstance(node, alg.ByName):
        return either(node.names)
    if isinstance(node, alg.Members):
        return f"the members of {words(node.concepts)}"
    if isinstance(node, Scan):
        return f"{either(node.predicates) if node.predicates else 'any predicate'} {_DIRECTION_TEXTS[_direction_of(node)]}"
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

#: The kind of a change, its description, the operator to replace, and the replacement.
Candidate = tuple[str, str, Node, Node]


def _phases(failed: Node, program: Program) -> Iterator[Iterator[Candidate]]:
    """Yield changes in the order of trial, until some in a phase yield results: unknown names and incomparable
    values; directions; different names for one thing; bounds, and the condition itself; other conditions, those below
    the failed operator before those above it; predicates with other meanings.
    """
    lookup, below, conditioned = program.lookup, program.below(failed), has_test(failed)

    def names() -> Iterator[Candidate]:
        for node in below:
            if isinstance(node, alg.ByName) and program.is_empty(node):
                yield from _similar_names(node, failed, program)
        if isinstance(failed, Scan):
            yield from _misspelled(failed, program)
        if conditioned:
            yield from _comparable(failed, lookup)

    def conditions() -> Iterator[Candidate]:
        # Includes empty parts of a union, although the failed operator does not need them.
        for node in [failed, *(candidate for candidate in below[1:] if _fails(candidate, program))]:
            looser = False
            for part in _bounds(node, program) if has_test(node) else ():
                looser |= part[0] == "bound"
                yield part
            # Omitting the condition is only tried if there is no looser bound, which is the smaller change.
            if not looser:
                yield from _without_condition(node, program)

    def others() -> Iterator[Candidate]:
        for node in below[1:]:
            yield from _without_condition(node, program)
        for node in program.above(failed):
            if isinstance(node, alg.Intersect | alg.Where):
                yield from _without_condition(node, program)

    yield names()
    # A relation may have been followed in the wrong direction.
    turned = [candidate for node in below if isinstance(node, Facts | alg.Solutions) for candidate in _reversed(node)]
    if not (turned and _is_never_satisfied(failed, lookup)):
        yield chain(turned, _joins(failed, program))
        yield _with_similar_everywhere(program)
    yield conditions()
    yield others()
    if isinstance(failed, Scan) and failed.of is not None and failed.predicates:
        yield _other_predicates(failed, lookup)


def _is_never_satisfied(failed: Any, lookup: Lookup) -> bool:
    """Return whether no statement of the graph satisfies the condition of an operator, so that other preceding
    statements would not help.
    """
    if not isinstance(failed, alg.Where | alg.WhereQualifier) or failed.condition.inputs():
        return False
    scan: Any = failed
    while isinstance(scan, Facts) and not isinstance(scan, Scan):
        scan = carried(scan)[0]
    every = Scan(None, scan.predicates, family=scan.family)
    # The condition was tested on all of these already.
    return failed.facts == every or lookup.size(replace(failed, facts=every)) == 0


def _fails(node: Node, program: Program) -> bool:
    return program.is_empty(node) and not any(map(program.is_empty, program.needed(node)))


def _similar_names(node: alg.ByName, failed: Node, program: Program) -> Iterator[Candidate]:
    name, lookup = node.names[0], program.lookup
    concepts: Sequence[str] = getattr(lookup.schema, "concepts", ())
    of_members = failed is node or any(isinstance(part, alg.Members) and part.concepts is node for part in program.above(node))
    similar = nearest(name, concepts, most=3) if of_members else []
    similar += [part for part in lookup.near(name)[:MAX_CHANGES] if part not in similar]
    for other in similar:
        yield "name", f"with {other!r} in place of {name!r}", node, alg.ByName((other,))
    # Rows are often searched by a column that does not name them; a name like no entity's is tried in other cases.
    forms = [name] if similar else [name, name.title(), name.capitalize(), name.upper(), name.lower()]
    text = next(filter(lookup.schema.has_text, dict.fromkeys(forms)), None)
    if text is not None:
        yield "join", f"with what has {text!r} as an attribute", node, having_text(text)


def having_text(text: str) -> Entities:
    """Return the entities that have a text as an attribute."""
    cells = alg.Objects(Scan(None, None, "subject", "subject", "attribute"))
    return alg.SubjectsOf(alg.FilterValues(cells, Compare("=", text)))


def _misspelled(scan: Scan, program: Program) -> Iterator[Candidate]:
    """Propose names of predicates similar to an unknown one."""
    schema = program.lookup.schema
    for name in scan.predicates or ():
        if _has_predicate(name, scan, schema):
            continue
        family: alg.Family | None = "relation" if schema.has_relation(name) else "attribute" if schema.has_attribute(name) else None
        if family == "attribute" and any(isinstance(part, alg.Reached) and part.facts is scan for part in program.above(scan)[:1]):
            # An attribute leads nowhere: the step would stay at its subjects.
            continue
        if family is not None and scan.family != "any":
            reach: alg.End = "object" if family == "relation" and scan.anchor == "subject" else "subject"
            yield "predicate", f"with {name!r} as {_AS[family]}", scan, replace(scan, family=family, reach=reach, anchor="subject")
            continue
        known_names: Sequence[str] = getattr(schema, "attributes" if scan.family == "attribute" else "relations", ())
        if scan.family == "any":
            known_names = [*getattr(schema, "relations", ()), *getattr(schema, "attributes", ())]
        for similar in nearest(name, known_names, most=3):
            fresh: Any = replace(scan, predicates=(similar,))
            text = f"with {similar!r} in place of {name!r}"
            test: Any = next((part for part in program.above(scan)[:1] if isinstance(part, alg.Where) and part.facts is scan), None)
            condition = None if test is None else _retyped(test.condition, schema.attribute_kinds(similar))
            if condition is None:
                yield "name", text, scan, fresh
            else:
                yield "name", text, test, alg.Where(fresh, condition)


def _retyped(condition: Condition, kinds: Any) -> Condition | None:
    """Return a condition whose literal was read as a text, because its predicate was unknown, with the literal read
    as a value of another predicate.
    """
    if not isinstance(condition, Compare) or not isinstance(condition.value, str):
        return None
    if any(kind in (Kind.TEXT, Kind.ENTITY) for kind, _ in kinds):
        return None
    values = [value for kind, unit in kinds if (value := _as(condition.value, kind, unit)) is not None]
    return Compare(condition.operator, values[0]) if values else None


_AS: Final = {"relation": "a relation", "attribute": "an attribute"}


def _reversed(scan: Node) -> Iterator[Candidate]:
    """Propose a relation in the opposite direction."""
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
    """Propose the same condition in the units and types that the values have."""
    if isinstance(node, alg.WhereQualifier) and not lookup.schema.qualifier_kinds(node.key):
        keys: Sequence[str] = getattr(lookup.schema, "qualifiers", ())
        for similar in nearest(node.key, keys, most=3):
            yield "name", f"with the qualifier {similar!r} in place of {node.key!r}", node, replace(node, key=similar)
        return
    kinds = kinds_tested(node, lookup.schema)
    if not kinds or _literal_kinds(node.condition) & set(kinds):
        return
    for comparison in comparisons(node.condition)[:1]:
        for (kind, unit), _ in sorted(kinds.items(), key=lambda item: -item[1])[:3]:
            value = _as(comparison.value, kind, unit)
            if value is not None:
                fresh = replace(node, condition=Compare(comparison.operator, value))
                change_kind = "unit" if kind is Kind.QUANTITY and isinstance(comparison.value, Quantity) else "type"
                yield change_kind, f"with {words(fresh)}", node, fresh


def _as(value: Any, kind: Kind, unit: str) -> Any:
    """Return a literal as another type or in another unit; None if it cannot be converted."""
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


#: By operator: the side on which values fail it, the extreme nearest to the bound, and the operator that this satisfies.
_NEAREST_EXTREMES: Final[dict[str, tuple[tuple[alg.Operator, alg.Direction, alg.Operator], ...]]] = {
    ">": (("<=", "largest", ">="),),
    ">=": (("<", "largest", ">="),),
    "<": ((">=", "smallest", "<="),),
    "<=": ((">", "smallest", "<="),),
    "=": (("<", "largest", "="), (">", "smallest", "=")),
}


def _bounds(node: Any, program: Program) -> Iterator[Candidate]:
    """Propose the nearest existing value as the bound of a condition; if the program is still empty, the nearest that
    yields something.
    """
    values, lookup = values_tested(node), program.lookup
    condition = node.condition
    if isinstance(condition, alg.AllOf):
        for at, part in enumerate(condition.conditions):
            remaining = (*condition.conditions[:at], *condition.conditions[at + 1 :])
            fresh = replace(node, condition=remaining[0] if len(remaining) == 1 else alg.AllOf(remaining))
            yield "bound", f"without {tested(node)} {describe_test(part)}", node, fresh
        return
    if values is None or not isinstance(condition, Compare | alg.AnyOf):
        return
    for comparison in comparisons(condition):
        if isinstance(comparison.value, str):
            if comparison.operator == "=":
                # Not the texts of answers: those of table cells include surrounding spaces.
                existing = [
                    value.name if isinstance(value, Entity) else value for value in lookup.values(alg.Distinct(values), _MAX_TEXTS)
                ]
                for similar in _similar_texts(comparison.value, [value for value in existing if isinstance(value, str)]):
                    fresh = replace(node, condition=Compare("=", similar))
                    yield "name", f"with {words(fresh)}", node, fresh
            continue
        literal = (Kind.QUANTITY, comparison.value.unit) if isinstance(comparison.value, Quantity) else (Kind.TIME, NO_UNIT)
        kinds = kinds_tested(node, lookup.schema)
        nearest_values = []
        for limit, direction, satisfied in _NEAREST_EXTREMES.get(comparison.operator, ()):
            # No value satisfies the condition. If all compare with its literal, the extreme of all is that of one side.
            if kinds is not None and set(kinds) == {literal}:
                best = lookup.values(alg.Extreme(values, direction), 1)
                if best and (comparison.operator != "=" or _is_beyond(best[0], comparison.value, limit)):
                    nearest_values = [(values, direction, satisfied, limit, best[0])]
                    break
            beyond: Values = alg.FilterValues(values, Compare(limit, comparison.value))
            best = lookup.values(alg.Extreme(beyond, direction), 1)
            nearest_values += [(beyond, direction, satisfied, limit, value) for value in best if isinstance(value, Quantity | Time)]
        if not nearest_values and isinstance(comparison.value, Time):
            # Times that overlap the condition's time are neither before nor after it: propose the extremes of all times.
            for limit, direction, satisfied in _NEAREST_EXTREMES.get(comparison.operator, ()):
                best = lookup.values(alg.Extreme(values, direction), 1)
                nearest_values += [(values, direction, satisfied, limit, value) for value in best if isinstance(value, Time)]
        for among, direction, satisfied, limit, value in nearest_values:
            fresh = _nearest_bound(node, program, among, direction, satisfied, value, Compare(limit, comparison.value))
            if fresh is not None:
                yield "bound", f"with {words(fresh)}", node, fresh


def _is_beyond(value: Any, limit: Any, operator: alg.Operator) -> bool:
    """Return whether a value is certainly below ("<") or above another."""
    if isinstance(value, Quantity) and isinstance(limit, Quantity):
        return value.number < limit.number if operator == "<" else value.number > limit.number
    low, high = (value, limit) if operator == "<" else (limit, value)
    return isinstance(low, Time) and isinstance(high, Time) and low.end <= high.start


def _similar_texts(text: str, texts: list[str]) -> list[str]:
    """Return similar texts, preferring those of about the same length, which a slip of the hand keeps."""
    close = [other for other in texts if abs(len(other) - len(text)) <= 2]
    similar = (close and nearest(text, close, most=2)) or nearest(text, texts[:_MAX_COMPARED], most=2)
    wanted = text.casefold()
    return similar or [other for other in texts if len(wanted) > 1 and wanted in other.casefold()][:2]


def _nearest_bound(
    node: Any, program: Program, there: Values, direction: alg.Direction, operator: alg.Operator, best: Any, limit: Condition
) -> Any:
    """Return the operator with the nearest value for which the whole program yields something; None if there is none."""
    lookup = program.lookup

    tried: dict[int, Any] = {}

    def gives(conditions: Sequence[Condition]) -> list[Any]:
        """Return the operator with each condition; None where the program yields nothing with it."""
        fresh = [tried.setdefault(id(condition), replace(node, condition=condition)) for condition in conditions]
        sizes = lookup.changed(program, [program.freed(node, other) for other in fresh])
        return [other if size else None for other, size in zip(fresh, sizes, strict=True)]

    def between(low: int, high: int) -> list[int]:
        """Return places between two, as many as one query tries."""
        parts = min(max(lookup.batch, 1), high - low - 1)
        return [low + (high - low) * (at + 1) // (parts + 1) for at in range(parts)]

    def is_comparable(value: Any) -> bool:
        return type(value) is type(best) and getattr(value, "unit", "") == getattr(best, "unit", "")

    nearest_one, inner = Compare(operator, best), carried(node)[0]
    if lookup.batch > 1:
        # One query tries both.
        tried[id(nearest_one)] = replace(node, condition=nearest_one)
        lookup.changed(program, [program.freed(node, tried[id(nearest_one)]), program.freed(node, inner)])
    (fresh,) = gives([nearest_one])
    if fresh is not None:
        return fresh
    if lookup.changed(program, [program.freed(node, inner)]) == [0]:
        return None
    supporting_facts = None if isinstance(node, alg.FilterValues) else lookup.behind(program.changed(node, inner), node.facts)
    supporting = None if supporting_facts is None else values_tested(replace(node, facts=supporting_facts))
    if supporting is not None:
        # Each of these statements led to results by itself, unless results need several at once.
        supporting = alg.FilterValues(supporting, limit)
        for value in filter(is_comparable, lookup.values(alg.Extreme(supporting, direction), 1)):
            (fresh,) = gives([Compare(operator, value)])
            if fresh is not None:
                return fresh
    values = list(filter(is_comparable, lookup.values(alg.Distinct(there), _MAX_TEXTS)))
    if direction == "largest":
        values.reverse()
    if operator == "=":
        # The value, and all between it and the literal.
        towards: alg.Operator = ">=" if direction == "largest" else "<="
        conditions: list[Condition] = [alg.AllOf((Compare(towards, value), limit)) for value in values]
    else:
        conditions = [Compare(operator, value) for value in values]
    if not values:
        return None
    # A looser bound yields at least as much, so the values can be bisected.
    low, high = 0, len(values) - 1
    if lookup.batch > 1:
        gives([conditions[at] for at in (*between(low, high), high)])
    if gives(conditions[-1:]) == [None]:
        return None
    while high - low > 1:
        check()
        places = between(low, high)
        outcomes = gives([conditions[at] for at in places])
        first = next((at for at, fresh in zip(places, outcomes, strict=True) if fresh is not None), high)
        low, high = max([low, *(at for at in places if at < first)]), first
    (fresh,) = gives([conditions[high]])
    return fresh


def values_tested(node: Any) -> Values | None:
    """Return the values that a condition is applied to."""
    if isinstance(node, alg.WhereQualifier):
        return alg.Qualifiers(node.facts, node.key)
    if isinstance(node, alg.WhereValidity):
        return alg.Validity(node.facts, node.part)
    if isinstance(node, alg.Where):
        return alg.Objects(node.facts)
    return node.values if isinstance(node, alg.FilterValues) else None


def _without_condition(node: Any, program: Program) -> Iterator[Candidate]:
    """Propose the operator without one of its conditions; a condition on an attribute is omitted with the attribute
    if only the entities matter.
    """
    if isinstance(node, alg.Where | alg.Scan):
        facts, scan = node, node.facts if isinstance(node, alg.Where) else node
        user = next(iter(program.above(node)), None)
        alone = isinstance(scan, Scan) and scan.anchor == scan.reach == "subject" and scan.of is not None
        if alone and isinstance(user, alg.Reached) and user.facts is facts and isinstance(scan, Scan) and scan.of is not None:
            yield "condition", f"without {words(node)}", user, scan.of
    if isinstance(node, alg.Intersect):
        # Omitting the part with the fewest operators is the smallest change.
        for part in sorted(node.parts, key=lambda one: len(program.below(one))):
            rest = tuple(one for one in node.parts if one is not part)
            if not rest:
                # All parts are the same object.
                continue
            yield "condition", f"without {words(part)}", node, rest[0] if len(rest) == 1 else alg.Intersect(rest)
    elif isinstance(node, Scan):
        if node.source is not None:
            yield "source", f"without source {node.source!r}", node, replace(node, source=None)
    elif isinstance(node, alg.Having):
        yield "condition", f"without {words(node)}", node, node.table
    elif isinstance(node, alg.Minus):
        yield "condition", f"without excluding {words(node.right)}", node, node.left
    elif node.facets.filters and len(inner := carried(node)) == 1 and not isinstance(node, alg.Distinct | alg.Names):
        sort = next((one for one in (Entities, Facts, Values) if isinstance(node, one)), None)
        if sort is not None and isinstance(inner[0], sort):
            yield "condition", f"without {words(node)}", node, inner[0]


def _joins(failed: Node, program: Program) -> Iterator[Candidate]:
    """Propose joins where ids or names of one thing differ: other entities of the same name, of a name that differs
    in case, marks between words or the part before a slash, and entities that texts name.
    """
    lookup = program.lookup
    if isinstance(failed, alg.Intersect):
        for part in sorted(failed.parts, key=lambda other: -len(program.below(other))):
            remaining = [other for other in failed.parts if other is not part]
            yield from _with_similar(part, partial(_before_text, remaining[0]), lookup)
    if isinstance(failed, alg.Where) and isinstance(failed.condition, alg.Among):
        for _, text, _, fresh in _with_similar(failed.condition.entities, lambda: f"after {tested(failed)}", lookup):
            yield "join", text, failed, alg.Where(failed.facts, alg.Among(fresh))  # type: ignore[arg-type]
    scan = next((node for node in program.below(failed) if isinstance(node, Scan)), None)
    if scan is None or scan.of is None or isinstance(scan.of, alg.AllEntities):
        return
    if not isinstance(failed, alg.Intersect | alg.Union | alg.Minus):
        yield from _with_similar(scan.of, partial(_before_text, scan), lookup)
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
    """Propose rows whose keys are spelled differently from the column that refers to them. For a relation that is
    such a column: its values are texts, because no row was found by them.
    """
    column = Scan(None, scan.predicates, "subject", "subject", "attribute")
    forward = scan.anchor == "subject"
    of = scan.of if scan.of is not None else alg.AllEntities()
    values = lookup.values(alg.Distinct(alg.Objects(replace(column, of=of, predicates=scan.predicates if forward else None))), 20)
    own_keys = [key for key in values if isinstance(key, str) and len(key) <= _MAX_KEY]
    forms = {form: key for key in reversed(own_keys) for form in _spellings(key, getattr(lookup.schema, "concepts", ()))}
    if not forms:
        return
    facts: Facts = column if not forward else replace(column, predicates=None)
    spelled = alg.FilterValues(alg.Objects(facts), alg.Equals(alg.Constants(tuple(forms))))
    keys = [
        key for key in lookup.values(alg.Distinct(spelled), 100) if isinstance(key, str) and key in forms and key not in own_keys
    ]
    if not keys:
        return
    any_key = alg.Equals(alg.Constants(tuple(keys)))
    rows: Entities = alg.SubjectsOf(alg.FilterValues(alg.Objects(facts), any_key))
    if forward:
        rows = alg.Minus(rows, alg.SubjectsOf(alg.FilterValues(alg.Objects(column), any_key)))
    pairs = ", ".join(f"{key!r} for {forms[key]!r}" for key in keys[:3]) + (", ..." if len(keys) > 3 else "")
    text = f"with {words(scan)} joined by keys that are spelled otherwise, {pairs}"
    yield "join", text, scan, Scan(rows, None, "subject", "subject", "any")


#: The longest key, in characters.
_MAX_KEY: Final = 100
#: The most concepts tried as the part of a key before a slash.
_MAX_PREFIXES: Final = 20


def _spellings(key: str, concepts: Sequence[str]) -> list[str]:
    """Return other spellings of a key: without the part before a slash or with a table's name there, in another case,
    with other marks between words and before a number.

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
    prefixes = concepts[:_MAX_PREFIXES] if bare == key else ()
    forms += [
        f"{concept}/{form}" for concept in prefixes for form in (bare, bare.upper(), bare.lower(), re.sub("[-_ ]+", "", bare))
    ]
    return list(dict.fromkeys(forms))


#: Letters before a number, with or without a mark between them.
_BEFORE_DIGITS: Final = re.compile(r"([^\W\d_])[-_ ]?(\d)")


def _before_text(node: Node) -> str:
    return f"before {words(node)}"


def _with_similar(of: Entities, where: Callable[[], str], lookup: Lookup) -> Iterator[Candidate]:
    """Propose entities together with those of similar names."""
    similar = lookup.alike(of)
    if similar:
        yield "join", f"with {either(similar)} as well {where()}", of, alg.Union((of, alg.ByName(tuple(similar))))


def _with_similar_everywhere(program: Program) -> Iterator[Candidate]:
    """Propose the program with all entities of similar names at every step, where a single join is not enough."""
    replacements: dict[int, Node] = {}
    names: list[str] = []
    for node in program.order:
        fresh: Any = rebuild(node, replacements) if any(id(child) in replacements for child in program.inputs[id(node)]) else node
        if isinstance(node, alg.ByName | alg.Reached | alg.Intersect):
            check()
            similar = program.lookup.alike(fresh)
            if similar:
                names += similar
                fresh = alg.Union((fresh, alg.ByName(tuple(similar))))
        if fresh is not node:
            replacements[id(node)] = fresh
    if names:
        yield "join", f"with {either(names)} as well, at every step", program.root, replacements[id(program.root)]


def folded(name: str) -> str:
    """Return a name without what distinguishes two spellings of it: case, marks between words and before a number,
    and the part before a slash.

    >>> folded("stations/Old_Town"), folded("old town"), folded("S-12"), folded("s12")
    ('old town', 'old town', 's12', 's12')
    """
    return _BEFORE_NUMBER.sub("", " ".join(name.rpartition("/")[2].casefold().replace("_", " ").replace("-", " ").split()))


_BEFORE_NUMBER: Final = re.compile(r"(?<=[^\W\d_]) (?=\d)")


def _other_predicates(scan: Scan, lookup: Lookup) -> Iterator[Candidate]:
    """Propose predicates that the entities have in place of one they lack, similar ones first."""
    assert scan.of is not None
    own = lookup.predicates(scan.of, 50)[_direction_of(scan)]
    for name in scan.predicates or ():
        for other in nearest(name, own, most=2):
            if other not in (scan.predicates or ()):
                yield "predicate", f"with {other!r} in place of {name!r}", scan, replace(scan, predicates=(other,))

"""The operators every way of asking is lowered to: small immutable records over four sorts.

`Entities` is a set of entities; `Facts` a set of statements, each with the end that was reached; `Values` a bag of values, each
carried by a statement, a qualifier or an entity; `Scalar` one number, text, time or truth value. A plan is a tree of these (a
shared part stands once and is referred to twice). Plans hold names and ids, never a store's own numbers, so that one plan runs on
every store. Use the lower-case constructors where there is one: they normalise, and refuse nonsense.

Two rules hold everywhere. A text literal compares with an entity by the entity's name. A test on one type of value is false for
values of other types and, for quantities, of other units; the answer warns of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from condgraph.engine.errors import PlanError
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import Kind, Time, Value

Operator: TypeAlias = Literal["=", "!=", "<", ">", "<=", ">="]
OPERATORS: Final[tuple[Operator, ...]] = ("=", "!=", "<", ">", "<=", ">=")
End: TypeAlias = Literal["subject", "object"]
#: Which objects a statement may have: entities (relation), values (attribute), or either.
Family: TypeAlias = Literal["relation", "attribute", "any"]
Direction: TypeAlias = Literal["largest", "smallest"]
#: How a validity stands to an interval (`During`).
Span: TypeAlias = Literal["overlaps", "disjoint", "before", "after", "within", "contains", "until", "from"]
ENTITY_KINDS: Final = (EntityKind.ENTITY, EntityKind.ROW)


class Node:
    """An operator. `inputs` are the operators it takes."""

    __slots__ = ()

    def inputs(self) -> tuple[Node, ...]:
        """The operators this one takes, in order."""
        return ()


class Entities(Node):
    """A set of entities."""

    __slots__ = ()


class Facts(Node):
    """A set of statements, each with the end that was reached."""

    __slots__ = ()


class Values(Node):
    """A bag of values with their carriers."""

    __slots__ = ()


class Scalar(Node):
    """One number, text, time or truth value."""

    __slots__ = ()


# -- tests ----------------------------------------------------------------------------------------------------------------


class Test:
    """What `Where`, `WhereQualifier`, `Keep` and `Some` ask of a value."""

    __slots__ = ()
    __test__ = False

    def inputs(self) -> tuple[Node, ...]:
        """The operators the test refers to."""
        return ()


@dataclass(frozen=True, slots=True)
class Compare(Test):
    """Compare with a typed literal; times as intervals (= within, != disjoint, < ends before, > begins after)."""

    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class AnyOf(Test):
    """At least one of the tests holds: the readings a literal has."""

    tests: tuple[Test, ...]

    def inputs(self) -> tuple[Node, ...]:
        return tuple(node for test in self.tests for node in test.inputs())


@dataclass(frozen=True, slots=True)
class AllOf(Test):
    """Every test holds of the same value: two bounds."""

    tests: tuple[Test, ...]

    def inputs(self) -> tuple[Node, ...]:
        return tuple(node for test in self.tests for node in test.inputs())


@dataclass(frozen=True, slots=True)
class Among(Test):
    """The value is one of these entities."""

    entities: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.entities,)


@dataclass(frozen=True, slots=True)
class Equals(Test):
    """The value equals one of these values; an entity and a text meet by name."""

    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Versus(Test):
    """Compare with any of the values of a bag, one after the other; a number without a unit compares with every unit."""

    operator: Operator
    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Not(Test):
    """The test does not hold."""

    test: Test

    def inputs(self) -> tuple[Node, ...]:
        return self.test.inputs()


# -- entities -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Every(Entities):
    """All entities of these kinds; of one source where it is named."""

    kinds: tuple[EntityKind, ...] = ENTITY_KINDS
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Known(Entities):
    """The entities of these ids."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Named(Entities):
    """All entities and concepts that have exactly one of these names."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Members(Entities):
    """The entities (no concepts) in any of the concepts, closed under subclass."""

    concepts: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.concepts,)


@dataclass(frozen=True, slots=True)
class Union(Entities):
    """Entities in any of the parts."""

    parts: tuple[Entities, ...]

    def inputs(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True, slots=True)
class Intersect(Entities):
    """Entities in all of the parts."""

    parts: tuple[Entities, ...]

    def inputs(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True, slots=True)
class Minus(Entities):
    """Entities of `left` that are not in `right`."""

    left: Entities
    right: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Neighbour(Entities):
    """The table rows `distance` after (negative: before) these rows, in the order of their source."""

    of: Entities
    distance: int

    def inputs(self) -> tuple[Node, ...]:
        return (self.of,)


@dataclass(frozen=True, slots=True)
class Reached(Entities):
    """The distinct ends that the facts reached."""

    facts: Facts

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


@dataclass(frozen=True, slots=True)
class Holders(Entities):
    """The subjects of the statements that carry the values (of a name: the entity itself)."""

    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Referents(Entities):
    """The entities that the values are, or whose name they are."""

    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Namesakes(Entities):
    """All entities and concepts that have the name of one of these, themselves included: how sources meet that share no ids."""

    of: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.of,)


@dataclass(frozen=True, slots=True)
class Best(Entities):
    """The entities whose largest (smallest) value of `key` is the best among them; all ties.

    Numbers or times: those of the most frequent type and unit compete, the answer warns of the others.
    """

    of: Entities
    key: str
    direction: Direction

    def inputs(self) -> tuple[Node, ...]:
        return (self.of,)


# -- facts ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scan(Facts):
    """Statements whose `anchor` end lies in `of` (None: any) and whose predicate is one of `predicates` (None: any).

    `reach` is the end that is kept: (subject, subject) for an attribute of the entities themselves, (subject, object) for a
    relation forward, (object, subject) for one backward. `source` scopes to one source.
    """

    of: Entities | None
    predicates: tuple[str, ...] | None
    anchor: End = "subject"
    reach: End = "subject"
    family: Family = "any"
    source: str | None = None

    def inputs(self) -> tuple[Node, ...]:
        return () if self.of is None else (self.of,)


@dataclass(frozen=True, slots=True)
class Where(Facts):
    """Facts whose object satisfies the test."""

    facts: Facts
    test: Test

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts, *self.test.inputs())


@dataclass(frozen=True, slots=True)
class WhereQualifier(Facts):
    """Facts of which some qualifier `key` satisfies the test."""

    facts: Facts
    key: str
    test: Test

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts, *self.test.inputs())


@dataclass(frozen=True, slots=True)
class During(Facts):
    """Facts whose validity stands in `relation` to an interval.

    "overlaps" (=) and "disjoint" (!=), "before" (ends before it begins) and "after", "within" and "contains", and "until" (<=, ends
    no later than its end) and "from" (>=, starts no earlier than its start). An unknown bound decides nothing: the fact is kept
    only where the known bound alone decides.
    """

    facts: Facts
    relation: Span
    interval: Time

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


@dataclass(frozen=True, slots=True)
class DuringAny(Facts):
    """Facts whose validity stands in `relation` (see `During`) to at least one of the times of a bag."""

    facts: Facts
    relation: Span
    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts, self.values)


@dataclass(frozen=True, slots=True)
class WhereValidity(Facts):
    """Facts of which the start or the end of the validity, as a time, satisfies the test."""

    facts: Facts
    part: Literal["start", "end"]
    test: Test

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts, *self.test.inputs())


@dataclass(frozen=True, slots=True)
class Turn(Facts):
    """The same statements, with the other end reached."""

    facts: Facts
    reach: End

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


# -- values ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Objects(Values):
    """The object of each fact, carried by the statement."""

    facts: Facts

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


@dataclass(frozen=True, slots=True)
class Qualifiers(Values):
    """The values of qualifier `key` of each fact (None: of every key), carried by the statement."""

    facts: Facts
    key: str | None

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


@dataclass(frozen=True, slots=True)
class Validity(Values):
    """When each fact holds: its whole interval, its start, or its end; nothing where it is not known."""

    facts: Facts
    part: Literal["interval", "start", "end"]

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


@dataclass(frozen=True, slots=True)
class Predicates(Values):
    """The predicate of each fact, as text."""

    facts: Facts

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


@dataclass(frozen=True, slots=True)
class QualifierKeys(Values):
    """The qualifier keys of each fact, as text."""

    facts: Facts

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


@dataclass(frozen=True, slots=True)
class Names(Values):
    """The name of each entity, carried by the entity."""

    entities: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.entities,)


@dataclass(frozen=True, slots=True)
class RowNumbers(Values):
    """The 1-based position of each table row in its source, carried by the row."""

    entities: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.entities,)


@dataclass(frozen=True, slots=True)
class Keep(Values):
    """The values that satisfy the test."""

    values: Values
    test: Test

    def inputs(self) -> tuple[Node, ...]:
        return (self.values, *self.test.inputs())


@dataclass(frozen=True, slots=True)
class Distinct(Values):
    """Each value once."""

    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Concat(Values):
    """The bags one after the other."""

    parts: tuple[Values, ...]

    def inputs(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True, slots=True)
class Extreme(Values):
    """The largest (smallest) values, all ties, with their carriers; the most frequent type and unit compete."""

    values: Values
    direction: Direction

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Mode(Values):
    """The values that occur most ("largest") or least ("smallest") often, all ties, with their carriers."""

    values: Values
    direction: Direction = "largest"

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Nth(Values):
    """One value of a bag by its 0-based place (from the end where negative), with its carriers; nothing where there is none.

    `order` is "row" (the order in which the carriers stand in their source), or "ascending" or "descending" by value, each value
    once.
    """

    values: Values
    place: int
    order: Literal["row", "ascending", "descending"]

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Clip(Values):
    """Times cut to what satisfies a comparison with at least one of the limits, and left out where nothing of them does.

    `=` keeps the part within a limit, `<` and `<=` the part before its start and its end, `>` and `>=` the part after its end and
    its start, `!=` a time that is disjoint from it. Values that are no times are left out with a warning.
    """

    values: Values
    operator: Operator
    limits: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values, self.limits)


@dataclass(frozen=True, slots=True)
class Bound(Values):
    """The first ("start") or last ("end") year, month or day of each time, as exact as its ends are; other values stay."""

    values: Values
    part: Literal["start", "end"]

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Choose(Values):
    """The values of `then` where the test holds, else those of `otherwise`, with their carriers.

    A test is a truth value, or anything else: it holds where there is something that is neither 0 nor a word for no.
    """

    test: Values | Scalar
    then: Values
    otherwise: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.test, self.then, self.otherwise)


@dataclass(frozen=True, slots=True)
class Shown(Values):
    """Values that stand for table rows in an answer, which keeps the rows as its entities."""

    values: Values
    rows: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.values, self.rows)


@dataclass(frozen=True, slots=True)
class Given(Values):
    """Values written in the program."""

    values: tuple[Value, ...]


# -- scalars --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Count(Scalar):
    """How many entities; of values, how many distinct texts."""

    of: Entities | Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.of,)


@dataclass(frozen=True, slots=True)
class Sum(Scalar):
    """The exactly rounded sum of all numbers of the bag; 0 of none."""

    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Mean(Scalar):
    """The mean of all numbers of the bag; nothing of none."""

    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Some(Scalar):
    """Whether any value satisfies the test, and how many do."""

    values: Values
    test: Test

    def inputs(self) -> tuple[Node, ...]:
        return (self.values, *self.test.inputs())


@dataclass(frozen=True, slots=True)
class Exists(Scalar):
    """Whether there is any fact."""

    facts: Facts

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


@dataclass(frozen=True, slots=True)
class Apply(Values):
    """A native function of the table in `functions`, over values and scalars; the result carries nothing."""

    function: str
    arguments: tuple[Values | Scalar, ...]
    options: tuple[tuple[str, str], ...] = ()

    def inputs(self) -> tuple[Node, ...]:
        return self.arguments


@dataclass(frozen=True, slots=True)
class External(Values):
    """A function from outside, a language model say: `call(name, texts of each argument, options)` gives texts. Only in process."""

    name: str
    call: Callable[[str, list[list[str]], dict[str, str]], Iterable[object]]
    arguments: tuple[Values | Scalar, ...]
    options: tuple[tuple[str, str], ...] = ()

    def inputs(self) -> tuple[Node, ...]:
        return self.arguments


# -- constructors ---------------------------------------------------------------------------------------------------------


def union(*parts: Entities) -> Entities:
    """Union, flattened, equal parts once; at least one part."""
    return _set_of(Union, parts)


def intersect(*parts: Entities) -> Entities:
    """Intersection, flattened, equal parts once; at least one part."""
    return _set_of(Intersect, parts)


def _set_of(kind: type[Union] | type[Intersect], parts: tuple[Entities, ...]) -> Entities:
    flat: list[Entities] = []
    for part in parts:
        if isinstance(part, kind):
            flat.extend(inner for inner in part.parts if not _holds(flat, inner))
        elif not _holds(flat, part):
            flat.append(part)
    if not flat:
        raise PlanError(f"{kind.__name__.lower()} of nothing")
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


def _holds(parts: list[Entities], part: Entities) -> bool:
    # By identity: comparing deep trees by value costs more than the part that is saved.
    return any(part is known for known in parts)


def reached(of: Entities | Facts) -> Entities:
    """A set of entities from either sort."""
    return Reached(of) if isinstance(of, Facts) else of


def any_of(tests: list[Test] | tuple[Test, ...]) -> Test:
    """One test out of the readings of a literal; at least one."""
    if not tests:
        raise PlanError("a test without a reading")
    return tests[0] if len(tests) == 1 else AnyOf(tuple(tests))


def postorder(root: Node) -> list[Node]:
    """Every node below and including `root` once (by identity), inputs before what takes them; no recursion."""
    # A tree (most plans are one) is its own preorder turned round; the bound keeps shared parts from being walked again and again.
    order: list[Node] = []
    stack: list[Node] = [root]
    while stack and len(order) < 64:
        node = stack.pop()
        order.append(node)
        stack.extend(node.inputs())
    if stack:
        return _postorder(root)
    order.reverse()
    if len(set(map(id, order))) == len(order):
        return order
    seen: set[int] = set()
    return [node for node in order if not (id(node) in seen or seen.add(id(node)))]  # type: ignore[func-returns-value]


def _postorder(root: Node) -> list[Node]:
    order: list[Node] = []
    seen: set[int] = set()
    stack: list[Node] = [root]
    while stack:
        node = stack[-1]
        if id(node) in seen:
            stack.pop()
            continue
        waiting = [child for child in node.inputs() if id(child) not in seen]
        if waiting:
            stack.extend(reversed(waiting))
        else:
            seen.add(id(node))
            order.append(stack.pop())
    return order


#: The types a value can have in a literal's readings, in the order they are tried.
LITERAL_KINDS: Final = (Kind.TIME, Kind.QUANTITY, Kind.TEXT)

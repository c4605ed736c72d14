"""The operators by sort, the tests of values, and the walk over a plan."""

from __future__ import annotations

import re
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

from condgraph.engine.algebra.facets import ALWAYS, EACH, NEVER, Facets, Needs, Warns, declared
from condgraph.engine.errors import PlanError
from condgraph.engine.external import CallContext
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import Time, Value

# -- Sorts -------------------------------------------------------------------------------------------


Operator: TypeAlias = Literal["=", "!=", "<", ">", "<=", ">="]
OPERATORS: Final[tuple[Operator, ...]] = ("=", "!=", "<", ">", "<=", ">=")
End: TypeAlias = Literal["subject", "object"]
#: Which objects a statement may have: entities (relation), values (attribute), or either.
Family: TypeAlias = Literal["relation", "attribute", "any"]
Direction: TypeAlias = Literal["largest", "smallest"]
#: How a validity stands to an interval (`During`).
Span: TypeAlias = Literal["overlaps", "disjoint", "before", "after", "within", "contains", "until", "from", "may", "must"]
ENTITY_KINDS: Final = (EntityKind.ENTITY, EntityKind.ROW)


class Referring:
    """What refers to operators."""

    __slots__ = ()

    def inputs(self) -> tuple[Node, ...]:
        """The operators this one refers to, in the order of its fields."""
        result: list[Node] = []
        for name in _REFERRING[self.__class__]:
            value = getattr(self, name)
            if isinstance(value, Node):
                result.append(value)
                continue
            for part in value if value.__class__ is tuple else (value,):
                if isinstance(part, Node):
                    result.append(part)
                elif isinstance(part, Referring) and _REFERRING[part.__class__]:
                    result += part.inputs()
        return tuple(result)


class Node(Referring):
    """An operator. `inputs` are the operators it takes; each operator says as class variables what
    has to be whole for its result (`needs`), and what others must know of it (`facets`).
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        declared(cls, "Node", {"needs": Needs, "facets": Facets})

    @property
    @abstractmethod
    def needs(self) -> Needs:
        """What has to be whole for the result."""

    @property
    @abstractmethod
    def facets(self) -> Facets:
        """What others must know of it."""


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


class Condition(Referring):
    """What `Where`, `WhereQualifier`, `FilterValues` and `AnySatisfies` ask of a value; `needs` is
    as of operators.
    """

    __slots__ = ()
    __test__ = False

    def __init_subclass__(cls) -> None:
        declared(cls, "", {"needs": Needs})

    @property
    @abstractmethod
    def needs(self) -> Needs:
        """What has to be whole for it to hold."""

    def parts(self) -> tuple[Condition, ...]:
        """The tests it is made of."""
        return tuple(held(self, (Condition,)))


class Table(Node):
    """Rows of cells under named columns, in an order."""

    __slots__ = ()


class Solutions(Node):
    """A bag of rows that bind variables to terms; `algebra.solutions` has its operators."""

    __slots__ = ()

    @property
    @abstractmethod
    def variables(self) -> tuple[str, ...]:
        """The variables that rows may bind, in order: the columns of an answer."""


class Parameter(Referring):
    """A record that an operator has as a parameter, and that refers to operators itself."""

    __slots__ = ()


def held(record: Any, sorts: tuple[type, ...]) -> list[Any]:
    """What the fields of a dataclass hold of some sorts, alone or in a tuple, in the order of the fields."""
    result: list[Any] = []
    for name in _holding(record.__class__, sorts):
        value = getattr(record, name)
        if isinstance(value, sorts):
            result.append(value)
        elif isinstance(value, tuple):
            result += value
    return result


@cache
def _holding(cls: Any, sorts: tuple[type, ...]) -> tuple[str, ...]:
    """The fields whose annotations name one of the sorts, or a union with one."""
    known = vars(sys.modules[cls.__module__])

    def names_one(annotation: str) -> bool:
        named = [known.get(word) for word in re.findall(r"\w+", annotation)]
        types = [item for name in named for item in get_args(name) or (name,)]
        return any(isinstance(item, type) and issubclass(item, sorts) for item in types)

    return tuple(field.name for field in fields(cls) if names_one(str(field.type)))


class _Referring(dict[type, tuple[str, ...]]):
    """The fields of a class that may refer to operators, worked out when they are first asked for. A cached function takes
    twice as long, and `inputs` is called for every operator of a plan many times.
    """

    def __missing__(self, cls: Any) -> tuple[str, ...]:
        found = self[cls] = _holding(cls, (Node, Condition, Parameter))
        return found


_REFERRING: Final = _Referring()


def postorder(root: Node, known: Mapping[int, object] | None = None) -> list[Node]:
    """Every node below and including `root` once (by identity), inputs before what takes them; no
    recursion. Nodes that are `known` by identity are left out, with what is below them.
    """
    # A tree (most plans are one) is its own preorder turned round; the bound keeps shared parts
    # from being walked again and again.
    order: list[Node] = []
    stack: list[Node] = [root]
    known = known or {}
    for _ in range(64):
        node = stack.pop()
        if id(node) not in known:
            order.append(node)
            stack += node.inputs()
        if not stack:
            break
    else:
        return _postorder(root, known)
    order.reverse()
    if len(set(map(id, order))) == len(order):
        return order
    seen: set[int] = set()
    return [node for node in order if not (id(node) in seen or seen.add(id(node)))]  # type: ignore[func-returns-value]


def remade(node: Any, change: Callable[[Any], Any]) -> Any:
    """A tree of records and tuples, with every part changed that `change` gives another one for."""
    changed = change(node)
    if changed is not node:
        return changed
    if isinstance(node, tuple):
        parts = tuple(remade(part, change) for part in node)
        return node if all(a is b for a, b in zip(parts, node, strict=True)) else parts
    if is_dataclass(node) and not isinstance(node, type):
        found = {}
        for field in fields(node):
            before = getattr(node, field.name)
            after = remade(before, change)
            if after is not before:
                found[field.name] = after
        return replace(node, **found) if found else node
    return node


def _postorder(root: Node, known: Mapping[int, object]) -> list[Node]:
    order: list[Node] = []
    seen: set[int] = set()
    stack: list[Node] = [root]
    while stack:
        node = stack[-1]
        if id(node) in seen or id(node) in known:
            stack.pop()
            continue
        waiting = [child for child in node.inputs() if id(child) not in seen and id(child) not in known]
        if waiting:
            stack.extend(reversed(waiting))
        else:
            seen.add(id(node))
            order.append(stack.pop())
    return order


# -- Conditions --------------------------------------------------------------------------------------
# What `Where`, `WhereQualifier`, `FilterValues` and `AnySatisfies` ask of a value.


@dataclass(frozen=True, slots=True)
class Compare(Condition):
    """Compare with a typed literal; times as intervals (= within, != disjoint, < ends before, >
    begins after).
    """

    needs: ClassVar[Needs] = EACH
    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class AnyOf(Condition):
    """At least one of the tests holds: the readings a literal has."""

    needs: ClassVar[Needs] = EACH
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AllOf(Condition):
    """Every test holds of the same value: two bounds."""

    needs: ClassVar[Needs] = EACH
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Among(Condition):
    """The value is one of these entities."""

    needs: ClassVar[Needs] = EACH
    entities: Entities


@dataclass(frozen=True, slots=True)
class Equals(Condition):
    """The value equals one of these values; an entity and a text meet by name."""

    needs: ClassVar[Needs] = EACH
    values: Values


@dataclass(frozen=True, slots=True)
class Versus(Condition):
    """Compare with any of the values of a bag, one after the other; a number without a unit
    compares with every unit.
    """

    needs: ClassVar[Needs] = EACH
    operator: Operator
    values: Values


@dataclass(frozen=True, slots=True)
class Not(Condition):
    """The test does not hold."""

    needs: ClassVar[Needs] = Needs(whole=("condition",))
    condition: Condition


# -- Entities ----------------------------------------------------------------------------------------
# Operators that give a set of entities.


@dataclass(frozen=True, slots=True)
class AllEntities(Entities):
    """All entities of these kinds; of a source that is named its rows and what its statements are
    about, or with `own` its rows alone.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=(), gives="entities", reads="entities", warns=NEVER)
    kinds: tuple[EntityKind, ...] = ENTITY_KINDS
    source: str | None = None
    own: bool = False


@dataclass(frozen=True, slots=True)
class ById(Entities):
    """The entities of these ids."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=(), gives="entities", reads="entities", warns=NEVER)
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ByName(Entities):
    """All entities and concepts that have exactly one of these names."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=(), gives="entities", reads="entities", warns=NEVER)
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Members(Entities):
    """The entities (no concepts) in any of the concepts, closed under subclass."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=("concepts",), gives="entities", reads="members", warns=NEVER)
    concepts: Entities


@dataclass(frozen=True, slots=True)
class Union(Entities):
    """Entities in any of the parts."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("parts",), strict=(), gives="entities", reads="nothing", warns=NEVER)
    parts: tuple[Entities, ...]


@dataclass(frozen=True, slots=True)
class Intersect(Entities):
    """Entities in all of the parts."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("parts",), strict=("parts",), gives="entities", reads="nothing", warns=NEVER)
    parts: tuple[Entities, ...]


@dataclass(frozen=True, slots=True)
class Minus(Entities):
    """Entities of `left` that are not in `right`."""

    needs: ClassVar[Needs] = Needs(whole=("right",))
    facets: ClassVar[Facets] = Facets(carries=("left",), strict=("left",), gives="entities", reads="nothing", warns=NEVER)
    left: Entities
    right: Entities


@dataclass(frozen=True, slots=True)
class Neighbour(Entities):
    """The table rows `distance` after (negative: before) these rows, in the order of their source."""

    needs: ClassVar[Needs] = Needs(graph=True)
    facets: ClassVar[Facets] = Facets(carries=(), strict=("of",), gives="entities", reads="entities", warns=ALWAYS)
    of: Entities
    distance: int


@dataclass(frozen=True, slots=True)
class Reached(Entities):
    """The distinct ends that the facts reached."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=("facts",), gives="entities", reads="nothing", warns=NEVER)
    facts: Facts


@dataclass(frozen=True, slots=True)
class SubjectsOf(Entities):
    """The subjects of the statements that carry the values (of a name: the entity itself)."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=("values",), gives="entities", reads="nothing", warns=NEVER)
    values: Values


@dataclass(frozen=True, slots=True)
class Referents(Entities):
    """The entities that the values are, or whose name they are."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=(), strict=("values",), gives="entities", reads="entities", warns=Warns("nameless", "values")
    )
    values: Values


@dataclass(frozen=True, slots=True)
class SameName(Entities):
    """All entities and concepts that have the name of one of these, themselves included: how
    sources meet that share no ids.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=("of",), gives="entities", reads="entities", warns=NEVER)
    of: Entities


@dataclass(frozen=True, slots=True)
class ArgExtreme(Entities):
    """The entities whose largest (smallest) value of `key` is the best among them; all ties.

    Numbers or times: those of the most frequent type and unit compete, the answer warns of the
    others.
    """

    needs: ClassVar[Needs] = Needs(whole=("of",), graph=True)
    facets: ClassVar[Facets] = Facets(
        carries=("of",), strict=("of",), gives="entities", reads="statements", warns=Warns("mixed", "key")
    )
    of: Entities
    key: str
    direction: Direction


# -- Facts -------------------------------------------------------------------------------------------
# Operators that give statements, each with the end that was reached.


@dataclass(frozen=True, slots=True)
class Scan(Facts):
    """Statements whose `anchor` end lies in `of` (None: any) and whose predicate is one of
    `predicates` (None: any).

    `reach` is the end that is kept: (subject, subject) for an attribute of the entities themselves,
    (subject, object) for a relation forward, (object, subject) for one backward. `source` scopes to
    one source.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=("of",), gives="stated", reads="statements", warns=NEVER)
    of: Entities | None
    predicates: tuple[str, ...] | None
    anchor: End = "subject"
    reach: End = "subject"
    family: Family = "any"
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Where(Facts):
    """Facts whose object satisfies the test."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=("facts",), strict=("facts",), gives="carried", reads="nothing", warns=NEVER, tests="objects"
    )
    facts: Facts
    condition: Condition


@dataclass(frozen=True, slots=True)
class WhereQualifier(Facts):
    """Facts of which some qualifier `key` satisfies the test."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=("facts",), strict=("facts",), gives="carried", reads="nothing", warns=NEVER, tests="qualifiers"
    )
    facts: Facts
    key: str
    condition: Condition


@dataclass(frozen=True, slots=True)
class During(Facts):
    """Facts whose validity stands in `relation` to an interval.

    "overlaps" (=) and "disjoint" (!=), "before" (ends before it begins) and "after", "within" and
    "contains", and "until" (<=, ends no later than its end) and "from" (>=, starts no earlier than
    its start). An unknown bound decides nothing: the fact is kept only where the known bound alone
    decides.

    "may" and "must" are of facts that are true at a time (`engine.period`): a fact without a validity
    is kept, one with a bound that is open or not known may hold beyond the other bound and is not
    certain to.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("facts",), strict=("facts",), gives="carried", reads="nothing", warns=NEVER)
    facts: Facts
    relation: Span
    interval: Time


@dataclass(frozen=True, slots=True)
class DuringAny(Facts):
    """Facts whose validity stands in `relation` (see `During`) to at least one of the times of a
    bag.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=("facts",),
        strict=("facts", "values"),
        gives="carried",
        reads="nothing",
        warns=Warns("mixed", "values", constants=False),
    )
    facts: Facts
    relation: Span
    values: Values


@dataclass(frozen=True, slots=True)
class WhereValidity(Facts):
    """Facts of which the start or the end of the validity, as a time, satisfies the test."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=("facts",), strict=("facts",), gives="carried", reads="nothing", warns=NEVER, tests="validity"
    )
    facts: Facts
    part: Literal["start", "end"]
    condition: Condition


@dataclass(frozen=True, slots=True)
class OtherEnd(Facts):
    """The same statements, with the other end reached."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=("facts",), strict=("facts",), gives="carried", reads="nothing", warns=NEVER, alters=True
    )
    facts: Facts
    reach: End


# -- Values ------------------------------------------------------------------------------------------
# Operators that give a bag of values, each carried by a statement, a qualifier or an entity.


@dataclass(frozen=True, slots=True)
class Objects(Values):
    """The object of each fact, carried by the statement."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("facts",), strict=("facts",), gives="carried", reads="nothing", warns=NEVER)
    facts: Facts


@dataclass(frozen=True, slots=True)
class Qualifiers(Values):
    """The values of qualifier `key` of each fact (None: of every key), carried by the statement."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("facts",), strict=("facts",), gives="stated", reads="nothing", warns=NEVER)
    facts: Facts
    key: str | None


@dataclass(frozen=True, slots=True)
class Validity(Values):
    """When each fact holds: its whole interval, its start, or its end; nothing where it is not
    known.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("facts",), strict=("facts",), gives="times", reads="nothing", warns=NEVER)
    facts: Facts
    part: Literal["interval", "start", "end"]


@dataclass(frozen=True, slots=True)
class Predicates(Values):
    """The predicate of each fact, as text."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("facts",), strict=("facts",), gives="texts", reads="nothing", warns=NEVER)
    facts: Facts


@dataclass(frozen=True, slots=True)
class QualifierKeys(Values):
    """The qualifier keys of each fact, as text."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("facts",), strict=("facts",), gives="texts", reads="nothing", warns=NEVER)
    facts: Facts


@dataclass(frozen=True, slots=True)
class Names(Values):
    """The name of each entity, carried by the entity."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("entities",), strict=("entities",), gives="texts", reads="nothing", warns=NEVER)
    entities: Entities


@dataclass(frozen=True, slots=True)
class RowNumbers(Values):
    """The 1-based position of each table row in its source, carried by the row."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("entities",), strict=("entities",), gives="numbers", reads="nothing", warns=NEVER)
    entities: Entities


@dataclass(frozen=True, slots=True)
class FilterValues(Values):
    """The values that satisfy the test."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=("values",), strict=("values",), gives="carried", reads="nothing", warns=NEVER, tests="values"
    )
    values: Values
    condition: Condition


@dataclass(frozen=True, slots=True)
class Distinct(Values):
    """Each value once."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("values",), strict=("values",), gives="carried", reads="nothing", warns=NEVER)
    values: Values


@dataclass(frozen=True, slots=True)
class Concat(Values):
    """The bags one after the other."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("parts",), strict=(), gives="any", reads="nothing", warns=NEVER)
    parts: tuple[Values, ...]


@dataclass(frozen=True, slots=True)
class Extreme(Values):
    """The largest (smallest) values, all ties, with their carriers; the most frequent type and unit
    compete.
    """

    needs: ClassVar[Needs] = Needs(whole=("values",))
    facets: ClassVar[Facets] = Facets(
        carries=("values",), strict=("values",), gives="carried", reads="nothing", warns=Warns("mixed", "values")
    )
    values: Values
    direction: Direction


@dataclass(frozen=True, slots=True)
class Mode(Values):
    """The values that occur most ("largest") or least ("smallest") often, all ties, with their
    carriers.
    """

    needs: ClassVar[Needs] = Needs(whole=("values",))
    facets: ClassVar[Facets] = Facets(
        carries=("values",), strict=("values",), gives="carried", reads="nothing", warns=Warns("empty", "values")
    )
    values: Values
    direction: Direction = "largest"


@dataclass(frozen=True, slots=True)
class Nth(Values):
    """One value of a bag by its 0-based place (from the end where negative), with its carriers;
    nothing where there is none.

    `order` is "row" (the order in which the carriers stand in their source), or "ascending" or
    "descending" by value, each value once.
    """

    needs: ClassVar[Needs] = Needs(whole=("values",))
    facets: ClassVar[Facets] = Facets(
        carries=("values",), strict=("values",), gives="carried", reads="nothing", warns=Warns("empty", "values")
    )
    values: Values
    place: int
    order: Literal["row", "ascending", "descending"]


@dataclass(frozen=True, slots=True)
class Clip(Values):
    """Times cut to what satisfies a comparison with at least one of the limits, and left out where
    nothing of them does.

    `=` keeps the part within a limit, `<` and `<=` the part before its start and its end, `>` and
    `>=` the part after its end and its start, `!=` a time that is disjoint from it. Values that are
    no times are left out with a warning.
    """

    needs: ClassVar[Needs] = Needs(whole=("limits",))
    facets: ClassVar[Facets] = Facets(
        carries=("values",),
        strict=("values", "limits"),
        gives="times",
        reads="nothing",
        warns=Warns("mixed", "limits"),
        alters=True,
    )
    values: Values
    operator: Operator
    limits: Values


@dataclass(frozen=True, slots=True)
class Bound(Values):
    """The first ("start") or last ("end") year, month or day of each time, as exact as its ends
    are; other values stay.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=("values",), strict=("values",), gives="times", reads="nothing", warns=NEVER, alters=True
    )
    values: Values
    part: Literal["start", "end"]


@dataclass(frozen=True, slots=True)
class Choose(Values):
    """The values of `then` where the test holds, else those of `otherwise`, with their carriers.

    A test is a truth value, or anything else: it holds where there is something that is neither 0
    nor a word for no.
    """

    needs: ClassVar[Needs] = Needs(whole=("condition",))
    facets: ClassVar[Facets] = Facets(carries=("then", "otherwise"), strict=(), gives="any", reads="nothing", warns=ALWAYS)
    condition: Values | Scalar
    then: Values
    otherwise: Values


@dataclass(frozen=True, slots=True)
class Shown(Values):
    """Values that stand for table rows in an answer, which keeps the rows as its entities."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("values",), strict=("values",), gives="any", reads="nothing", warns=NEVER)
    values: Values
    rows: Entities


@dataclass(frozen=True, slots=True)
class Constants(Values):
    """Values written in the program."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=(), gives="any", reads="nothing", warns=NEVER)
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Apply(Values):
    """A native function of the table in `functions`, over values and scalars; the result carries
    nothing.
    """

    needs: ClassVar[Needs] = Needs(whole=("arguments",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=(), gives="any", reads="nothing", warns=ALWAYS)
    function: str
    arguments: tuple[Values | Scalar, ...]
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class External(Values):
    """A function from outside, a language model say: `call(name, texts of each argument, options)`
    gives texts. Only in process.

    Where `asked` is given, `call` takes one `outside.FunctionCall` instead; `about` are the facts
    of the rows that it is shown.
    """

    needs: ClassVar[Needs] = Needs(whole=("arguments", "about"))
    facets: ClassVar[Facets] = Facets(carries=(), strict=(), gives="any", reads="nothing", warns=ALWAYS)
    name: str
    call: Callable[..., Iterable[object]]
    arguments: tuple[Values | Scalar, ...]
    options: tuple[tuple[str, str], ...] = ()
    about: tuple[Facts, ...] = ()
    asked: CallContext | None = None


# -- Scalars -----------------------------------------------------------------------------------------
# Operators that give one number, text, time or truth value.


@dataclass(frozen=True, slots=True)
class Count(Scalar):
    """How many entities; of values, how many distinct texts."""

    needs: ClassVar[Needs] = Needs(whole=("of",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("of",), gives="numbers", reads="nothing", warns=NEVER, total="counted")
    of: Entities | Values


@dataclass(frozen=True, slots=True)
class Sum(Scalar):
    """The exact sum of all numbers of the bag; 0 of none."""

    needs: ClassVar[Needs] = Needs(whole=("values",))
    facets: ClassVar[Facets] = Facets(
        carries=(), strict=("values",), gives="numbers", reads="nothing", warns=ALWAYS, total="summed"
    )
    values: Values


@dataclass(frozen=True, slots=True)
class Mean(Scalar):
    """The mean of all numbers of the bag; nothing of none."""

    needs: ClassVar[Needs] = Needs(whole=("values",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("values",), gives="numbers", reads="nothing", warns=ALWAYS)
    values: Values


@dataclass(frozen=True, slots=True)
class Median(Scalar):
    """The middle of all numbers of the bag by size, the mean of the middle two of an even number;
    nothing of none.
    """

    needs: ClassVar[Needs] = Needs(whole=("values",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("values",), gives="numbers", reads="nothing", warns=ALWAYS)
    values: Values


@dataclass(frozen=True, slots=True)
class Deviation(Scalar):
    """The sample standard deviation of all numbers of the bag; nothing of fewer than two."""

    needs: ClassVar[Needs] = Needs(whole=("values",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("values",), gives="numbers", reads="nothing", warns=ALWAYS)
    values: Values


@dataclass(frozen=True, slots=True)
class AnySatisfies(Scalar):
    """Whether any value satisfies the test, and how many do."""

    needs: ClassVar[Needs] = Needs(shown=True)
    facets: ClassVar[Facets] = Facets(carries=(), strict=("values",), gives="truths", reads="nothing", warns=NEVER, tests="values")
    values: Values
    condition: Condition


@dataclass(frozen=True, slots=True)
class Exists(Scalar):
    """Whether there is any fact."""

    needs: ClassVar[Needs] = Needs(shown=True)
    facets: ClassVar[Facets] = Facets(carries=(), strict=("facts",), gives="truths", reads="nothing", warns=NEVER)
    facts: Facts


# -- constructors ------------------------------------------------------------------------------------
# Constructors that normalise, and refuse nonsense; parts of a plan that others ask for.


# -- Constructors ------------------------------------------------------------------------------------


def union(*parts: Entities) -> Entities:
    """Union, flattened, equal parts once; at least one part."""
    return _set_of(Union, parts)


def intersect(*parts: Entities) -> Entities:
    """Intersection, flattened, equal parts once; at least one part."""
    return _set_of(Intersect, parts)


def _set_of(kind: type[Union] | type[Intersect], parts: tuple[Entities, ...]) -> Entities:
    # By identity: comparing deep trees by value costs more than the part that is saved.
    flat: dict[int, Entities] = {}
    for part in parts:
        for inner in part.parts if isinstance(part, kind) else (part,):
            flat.setdefault(id(inner), inner)
    if not flat:
        raise PlanError(f"{kind.__name__.lower()} of nothing")
    return kind(tuple(flat.values())) if len(flat) > 1 else next(iter(flat.values()))


def reached(of: Entities | Facts) -> Entities:
    """A set of entities from either sort."""
    return Reached(of) if isinstance(of, Facts) else of


def any_of(conditions: list[Condition] | tuple[Condition, ...]) -> Condition:
    """One test out of the readings of a literal; at least one."""
    if not conditions:
        raise PlanError("a test without a reading")
    return conditions[0] if len(conditions) == 1 else AnyOf(tuple(conditions))


def carried(node: Node) -> list[Node]:
    """The inputs whose entities, statements or values make up the result (`Facets.carries`)."""
    return fields_of(node, node.facets.carries)


def passed(facts: Facts) -> Facts | None:
    """The facts that others are carried on from; None of a scan."""
    found = carried(facts)
    return found[0] if found and isinstance(found[0], Facts) else None


def passing(facts: Facts, inner: Facts) -> Facts:
    """The same facts, carried on from others."""
    (name,) = facts.facets.carries
    return replace(facts, **{name: inner})  # type: ignore[type-var]


def fields_of(node: Node, names: tuple[str, ...]) -> list[Node]:
    """The operators in some fields, in order; a field without any has none."""
    found: list[Node] = []
    for name in names:
        value: Any = getattr(node, name)
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            found += [part for part in value if isinstance(part, Node)]
    return found


def whole_inputs(node: Node) -> list[Node]:
    """The inputs of which everything counts, and that there is no more; tests included."""
    found: list[Node] = []
    _gather_whole(node, False, found)
    return found


def _gather_whole(record: Node | Condition, within: bool, found: list[Node]) -> None:
    for name in () if not record.inputs() else record.__dataclass_fields__:  # type: ignore[union-attr]
        whole = within or name in record.needs.whole
        value: Any = getattr(record, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Condition):
                _gather_whole(part, whole, found)
            elif whole and isinstance(part, Node):
                found.append(part)


def monotone(plan: Node) -> bool:
    """Whether more statements can only give more, so that what the answer has is proved by what led
    to it.
    """
    return not any(node.needs.graph or whole_inputs(node) for node in postorder(plan))


# -- Statements around entities ----------------------------------------------------------------------
# What stands around some entities, as operators: those entities, and the statements that have one
# of them at an end; and the entities that stand in these.


def around_of(ids: Sequence[str], names: Sequence[str], *, values: bool) -> tuple[Entities, tuple[Scan, ...]]:
    """The entities of these ids and names, and scans of their statements: with `values`, relations
    and attributes from them; and relations to them.
    """
    parts: list[Entities] = []
    if ids:
        parts.append(ById(tuple(ids)))
    if names:
        parts.append(ByName(tuple(names)))
    of: Entities = parts[0] if len(parts) == 1 else Union(tuple(parts))
    scans = [
        Scan(of, None, reach="object", family="relation"),
        Scan(of, None, anchor="object", reach="subject", family="relation"),
    ]
    if values:
        scans.append(Scan(of, None, family="attribute"))
    return of, tuple(scans)


def scans_around(of: Entities) -> dict[str, Scan]:
    """The statements of entities: "forward" and "backward" for relations, "value" for attributes."""
    return {
        "forward": Scan(of, None, "subject", "object", "relation"),
        "backward": Scan(of, None, "object", "subject", "relation"),
        "value": Scan(of, None, "subject", "subject", "attribute"),
    }


def around(of: Entities) -> dict[str, Node]:
    """What gives the predicates of entities, by the same words."""
    return {way: Distinct(Predicates(scan)) for way, scan in scans_around(of).items()}


def named_of(of: Entities, scans: Sequence[Scan], *, qualified: bool) -> list[Entities]:
    """The entities that stand in scans of `around_of`: those they begin at, their other ends, and
    those that are qualifiers, where a graph has such (`qualified`).
    """
    parts: list[Entities] = [of, *(Reached(scan) for scan in scans if scan.family == "relation")]
    return [*parts, *(Referents(Qualifiers(scan, None)) for scan in scans)] if qualified else parts

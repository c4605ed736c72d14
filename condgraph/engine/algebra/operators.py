"""The operators by sort, the conditions on values, constructors, and functions to walk a plan."""

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
#: Relations of a validity to an interval (`During`).
Span: TypeAlias = Literal["overlaps", "disjoint", "before", "after", "within", "contains", "until", "from", "may", "must"]
ENTITY_KINDS: Final = (EntityKind.ENTITY, EntityKind.ROW)


class Referring:
    """A record that refers to operators."""

    __slots__ = ()

    def inputs(self) -> tuple[Node, ...]:
        """Return the operators that the record refers to, in the order of its fields."""
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
    """An operator. `inputs` returns the operators it takes. Each operator defines the class variables `needs` (which
    inputs must be complete) and `facets` (its other properties).
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        declared(cls, "Node", {"needs": Needs, "facets": Facets})

    @property
    @abstractmethod
    def needs(self) -> Needs:
        """What must be complete for the result to be right."""

    @property
    @abstractmethod
    def facets(self) -> Facets:
        """The properties that evidence, warnings and compilers use."""


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
    """A test of a value, used by `Where`, `WhereQualifier`, `FilterValues` and `AnySatisfies`; `needs` is as for
    operators.
    """

    __slots__ = ()
    __test__ = False

    def __init_subclass__(cls) -> None:
        declared(cls, "", {"needs": Needs})

    @property
    @abstractmethod
    def needs(self) -> Needs:
        """What must be complete for the condition to hold."""

    def parts(self) -> tuple[Condition, ...]:
        """Return the conditions that it is made of."""
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
    """A parameter of an operator that refers to operators itself."""

    __slots__ = ()


def held(record: Any, sorts: tuple[type, ...]) -> list[Any]:
    """Return the values of the given sorts in the fields of a dataclass, alone or in tuples, in the order of the
    fields.
    """
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
    """Return the fields whose annotations name one of the sorts, or a union that contains one."""
    known = vars(sys.modules[cls.__module__])

    def names_one(annotation: str) -> bool:
        named = [known.get(word) for word in re.findall(r"\w+", annotation)]
        types = [item for name in named for item in get_args(name) or (name,)]
        return any(isinstance(item, type) and issubclass(item, sorts) for item in types)

    return tuple(field.name for field in fields(cls) if names_one(str(field.type)))


class _Referring(dict[type, tuple[str, ...]]):
    """The fields of a class that may refer to operators, computed on first use. A cached function would take twice as
    long, and `inputs` is called many times for every operator.
    """

    def __missing__(self, cls: Any) -> tuple[str, ...]:
        node_fields = self[cls] = _holding(cls, (Node, Condition, Parameter))
        return node_fields


_REFERRING: Final = _Referring()


def postorder(root: Node, known: Mapping[int, object] | None = None) -> list[Node]:
    """Return every node below and including `root` once (by identity), inputs first, without recursion. Nodes whose
    identity is in `known` are left out, with everything below them.
    """
    # For a tree (most plans are one) a reversed preorder does; the bound of 64 keeps shared parts
    # from being walked over and over.
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
    """Return a tree of records and tuples with every part replaced for which `change` returns another one."""
    changed = change(node)
    if changed is not node:
        return changed
    if isinstance(node, tuple):
        parts = tuple(remade(part, change) for part in node)
        return node if all(a is b for a, b in zip(parts, node, strict=True)) else parts
    if is_dataclass(node) and not isinstance(node, type):
        replacements = {}
        for field in fields(node):
            before = getattr(node, field.name)
            after = remade(before, change)
            if after is not before:
                replacements[field.name] = after
        return replace(node, **replacements) if replacements else node
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
# Tests of a value, for `Where`, `WhereQualifier`, `FilterValues` and `AnySatisfies`.


@dataclass(frozen=True, slots=True)
class Compare(Condition):
    """A comparison with a typed literal; times are compared as intervals (= within, != disjoint, < ends before, >
    begins after).
    """

    needs: ClassVar[Needs] = EACH
    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class AnyOf(Condition):
    """At least one of the conditions holds, such as the readings of one literal."""

    needs: ClassVar[Needs] = EACH
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AllOf(Condition):
    """Every condition holds of the same value, such as two bounds."""

    needs: ClassVar[Needs] = EACH
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Among(Condition):
    """The value is one of these entities."""

    needs: ClassVar[Needs] = EACH
    entities: Entities


@dataclass(frozen=True, slots=True)
class Equals(Condition):
    """The value equals one of these values; an entity and a text are compared by name."""

    needs: ClassVar[Needs] = EACH
    values: Values


@dataclass(frozen=True, slots=True)
class Versus(Condition):
    """The comparison holds with at least one value of a bag; a number without a unit compares with every unit."""

    needs: ClassVar[Needs] = EACH
    operator: Operator
    values: Values


@dataclass(frozen=True, slots=True)
class Not(Condition):
    """The condition does not hold."""

    needs: ClassVar[Needs] = Needs(whole=("condition",))
    condition: Condition


# -- Entities ----------------------------------------------------------------------------------------
# Operators that give a set of entities.


@dataclass(frozen=True, slots=True)
class AllEntities(Entities):
    """All entities of these kinds; with `source`, the rows of that source and the subjects of its statements, or with
    `own` the rows alone.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=(), gives="entities", reads="entities", warns=NEVER)
    kinds: tuple[EntityKind, ...] = ENTITY_KINDS
    source: str | None = None
    own: bool = False


@dataclass(frozen=True, slots=True)
class ById(Entities):
    """The entities with these ids."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=(), gives="entities", reads="entities", warns=NEVER)
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ByName(Entities):
    """All entities and concepts whose name is exactly one of these."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=(), gives="entities", reads="entities", warns=NEVER)
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Members(Entities):
    """The entities (not concepts) in any of the concepts or their subclasses."""

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
    """The subjects of the statements that carry the values (for a name: the entity itself)."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=("values",), gives="entities", reads="nothing", warns=NEVER)
    values: Values


@dataclass(frozen=True, slots=True)
class Referents(Entities):
    """The entities that the values are, or that have a value as their name."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=(), strict=("values",), gives="entities", reads="entities", warns=Warns("nameless", "values")
    )
    values: Values


@dataclass(frozen=True, slots=True)
class SameName(Entities):
    """All entities and concepts that share a name with one of these, themselves included; connects sources that share
    no ids.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=("of",), gives="entities", reads="entities", warns=NEVER)
    of: Entities


@dataclass(frozen=True, slots=True)
class ArgExtreme(Entities):
    """The entities whose largest (smallest) value of `key` is the best among them, with all ties.

    The values are numbers or times: those of the most frequent type and unit compete, the answer warns of the others.
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
    """Statements whose `anchor` end is in `of` (None: any) and whose predicate is one of `predicates` (None: any).

    `reach` is the end that is carried on; (anchor, reach) is (subject, subject) for an attribute of the entities
    themselves, (subject, object) for a relation forward, (object, subject) for one backward. `source` restricts to
    the statements of one source.
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
    """Facts whose object satisfies the condition."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=("facts",), strict=("facts",), gives="carried", reads="nothing", warns=NEVER, tests="objects"
    )
    facts: Facts
    condition: Condition


@dataclass(frozen=True, slots=True)
class WhereQualifier(Facts):
    """Facts with a qualifier `key` that satisfies the condition."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=("facts",), strict=("facts",), gives="carried", reads="nothing", warns=NEVER, tests="qualifiers"
    )
    facts: Facts
    key: str
    condition: Condition


@dataclass(frozen=True, slots=True)
class During(Facts):
    """Facts whose validity has the given `relation` to an interval.

    "overlaps" (=) and "disjoint" (!=), "before" (ends before it begins) and "after", "within" and "contains", and
    "until" (<=, ends no later than its end) and "from" (>=, starts no earlier than its start). An unknown bound
    decides nothing: a fact passes only if the known bound alone decides.

    "may" and "must" select facts that are true at a time (`engine.period`): a fact without a validity passes; one
    with an open or unknown bound may hold beyond its other bound, but not surely.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("facts",), strict=("facts",), gives="carried", reads="nothing", warns=NEVER)
    facts: Facts
    relation: Span
    interval: Time


@dataclass(frozen=True, slots=True)
class DuringAny(Facts):
    """Facts whose validity has the relation (see `During`) to at least one of the times of a bag."""

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
    """Facts whose start or end of validity, as a time, satisfies the condition."""

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
    """The validity of each fact: its whole interval, its start, or its end; no value if it is unknown."""

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
    """The values that satisfy the condition."""

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
    """The bags, concatenated."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("parts",), strict=(), gives="any", reads="nothing", warns=NEVER)
    parts: tuple[Values, ...]


@dataclass(frozen=True, slots=True)
class Extreme(Values):
    """The largest (smallest) values, with all ties and their carriers, among the values of the most frequent type and
    unit.
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
    """One value of a bag by its 0-based index (negative: from the end), with its carriers; empty if the index is out
    of range.

    `order` is "row" (the order of the carriers in their source), or "ascending" or "descending" by distinct value.
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
    """Times cut to the part that satisfies a comparison with at least one of the limits; times without
    any such part are dropped.

    `=` keeps the part within a limit, `<` and `<=` the part before its start and its end, `>` and
    `>=` the part after its end and its start, `!=` a time that is disjoint from it. Values that are
    not times are dropped with a warning.
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
    """The first ("start") or last ("end") year, month or day of each time, as precise as its ends; other values are
    unchanged.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=("values",), strict=("values",), gives="times", reads="nothing", warns=NEVER, alters=True
    )
    values: Values
    part: Literal["start", "end"]


@dataclass(frozen=True, slots=True)
class Choose(Values):
    """The values of `then` if the condition holds, else those of `otherwise`, with their carriers.

    The condition is a truth value, or anything else: it holds if there is a value that is neither 0 nor a word for
    no.
    """

    needs: ClassVar[Needs] = Needs(whole=("condition",))
    facets: ClassVar[Facets] = Facets(carries=("then", "otherwise"), strict=(), gives="any", reads="nothing", warns=ALWAYS)
    condition: Values | Scalar
    then: Values
    otherwise: Values


@dataclass(frozen=True, slots=True)
class Shown(Values):
    """Values displayed in place of table rows in an answer, which keeps the rows as its entities."""

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
    """A native function from the table in `functions`, applied to values and scalars; the result has no carriers."""

    needs: ClassVar[Needs] = Needs(whole=("arguments",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=(), gives="any", reads="nothing", warns=ALWAYS)
    function: str
    arguments: tuple[Values | Scalar, ...]
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class External(Values):
    """An external function, such as a language model: `call(name, texts of each argument, options)` returns texts.
    Runs only in process.

    With `asked`, `call` takes one `external.FunctionCall` instead; `about` are the facts of the rows that are shown
    to it.
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
    """The number of entities, or of distinct texts of values."""

    needs: ClassVar[Needs] = Needs(whole=("of",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("of",), gives="numbers", reads="nothing", warns=NEVER, total="counted")
    of: Entities | Values


@dataclass(frozen=True, slots=True)
class Sum(Scalar):
    """The exact sum of all numbers of the bag; 0 if there are none."""

    needs: ClassVar[Needs] = Needs(whole=("values",))
    facets: ClassVar[Facets] = Facets(
        carries=(), strict=("values",), gives="numbers", reads="nothing", warns=ALWAYS, total="summed"
    )
    values: Values


@dataclass(frozen=True, slots=True)
class Mean(Scalar):
    """The mean of all numbers of the bag; empty if there are none."""

    needs: ClassVar[Needs] = Needs(whole=("values",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("values",), gives="numbers", reads="nothing", warns=ALWAYS)
    values: Values


@dataclass(frozen=True, slots=True)
class Median(Scalar):
    """The median of all numbers of the bag (the mean of the middle two for an even number); empty if there are none."""

    needs: ClassVar[Needs] = Needs(whole=("values",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("values",), gives="numbers", reads="nothing", warns=ALWAYS)
    values: Values


@dataclass(frozen=True, slots=True)
class Deviation(Scalar):
    """The sample standard deviation of all numbers of the bag; empty for fewer than two."""

    needs: ClassVar[Needs] = Needs(whole=("values",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("values",), gives="numbers", reads="nothing", warns=ALWAYS)
    values: Values


@dataclass(frozen=True, slots=True)
class AnySatisfies(Scalar):
    """Whether any value satisfies the condition, and how many do."""

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


# -- Constructors ------------------------------------------------------------------------------------
# Constructors that normalise and reject nonsense, and questions about the parts of a plan.


def union(*parts: Entities) -> Entities:
    """Return the union of at least one part, flattened and without repeated parts."""
    return _set_of(Union, parts)


def intersect(*parts: Entities) -> Entities:
    """Return the intersection of at least one part, flattened and without repeated parts."""
    return _set_of(Intersect, parts)


def _set_of(kind: type[Union] | type[Intersect], parts: tuple[Entities, ...]) -> Entities:
    # By identity: comparing deep trees by value costs more than a repeated part.
    flat: dict[int, Entities] = {}
    for part in parts:
        for inner in part.parts if isinstance(part, kind) else (part,):
            flat.setdefault(id(inner), inner)
    if not flat:
        raise PlanError(f"{kind.__name__.lower()} of nothing")
    return kind(tuple(flat.values())) if len(flat) > 1 else next(iter(flat.values()))


def reached(of: Entities | Facts) -> Entities:
    """Return a set of entities from either sort."""
    return Reached(of) if isinstance(of, Facts) else of


def any_of(conditions: list[Condition] | tuple[Condition, ...]) -> Condition:
    """Return one condition for the readings of a literal; raise `PlanError` if there are none."""
    if not conditions:
        raise PlanError("a test without a reading")
    return conditions[0] if len(conditions) == 1 else AnyOf(tuple(conditions))


def carried(node: Node) -> list[Node]:
    """Return the inputs whose entities, statements or values make up the result (`Facets.carries`)."""
    return fields_of(node, node.facets.carries)


def passed(facts: Facts) -> Facts | None:
    """Return the facts that an operator carries on, or None for a scan."""
    inputs = carried(facts)
    return inputs[0] if inputs and isinstance(inputs[0], Facts) else None


def passing(facts: Facts, inner: Facts) -> Facts:
    """Return the operator with other facts as its input."""
    (name,) = facts.facets.carries
    return replace(facts, **{name: inner})  # type: ignore[type-var]


def fields_of(node: Node, names: tuple[str, ...]) -> list[Node]:
    """Return the operators in the named fields, in order."""
    nodes: list[Node] = []
    for name in names:
        value: Any = getattr(node, name)
        if isinstance(value, Node):
            nodes.append(value)
        elif isinstance(value, tuple):
            nodes += [part for part in value if isinstance(part, Node)]
    return nodes


def whole_inputs(node: Node) -> list[Node]:
    """Return the inputs that must be complete (`Needs.whole`), those of conditions included."""
    inputs: list[Node] = []
    _add_whole_inputs(node, False, inputs)
    return inputs


def _add_whole_inputs(record: Node | Condition, within: bool, found: list[Node]) -> None:
    for name in () if not record.inputs() else record.__dataclass_fields__:  # type: ignore[union-attr]
        whole = within or name in record.needs.whole
        value: Any = getattr(record, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Condition):
                _add_whole_inputs(part, whole, found)
            elif whole and isinstance(part, Node):
                found.append(part)


def monotone(plan: Node) -> bool:
    """Return whether additional statements can only add results, so that the statements behind an answer prove it."""
    return not any(node.needs.graph or whole_inputs(node) for node in postorder(plan))


# -- Statements around entities ----------------------------------------------------------------------
# The neighbourhood of entities, as operators: the statements that have one of them at an end, and
# the entities in these statements.


def around_of(ids: Sequence[str], names: Sequence[str], *, values: bool) -> tuple[Entities, tuple[Scan, ...]]:
    """Return the entities with these ids and names, and scans of their statements: relations from and to them, and
    with `values` their attributes.
    """
    parts: list[Entities] = []
    if ids:
        parts.append(ById(tuple(ids)))
    if names:
        parts.append(ByName(tuple(names)))
    of: Entities = parts[0] if len(parts) == 1 else Union(tuple(parts))
    scans = [Scan(of, None, reach="object", family="relation"), Scan(of, None, anchor="object", reach="subject", family="relation")]
    if values:
        scans.append(Scan(of, None, family="attribute"))
    return of, tuple(scans)


def scans_around(of: Entities) -> dict[str, Scan]:
    """Return scans of the statements of entities: "forward" and "backward" for relations, "value" for attributes."""
    return {
        "forward": Scan(of, None, "subject", "object", "relation"),
        "backward": Scan(of, None, "object", "subject", "relation"),
        "value": Scan(of, None, "subject", "subject", "attribute"),
    }


def around(of: Entities) -> dict[str, Node]:
    """Return operators for the distinct predicates of entities, under the keys of `scans_around`."""
    return {direction: Distinct(Predicates(scan)) for direction, scan in scans_around(of).items()}


def named_of(of: Entities, scans: Sequence[Scan], *, qualified: bool) -> list[Entities]:
    """Return the entities in the scans of `around_of`: those they start at, their other ends, and with `qualified`
    those in qualifiers.
    """
    parts: list[Entities] = [of, *(Reached(scan) for scan in scans if scan.family == "relation")]
    return [*parts, *(Referents(Qualifiers(scan, None)) for scan in scans)] if qualified else parts

"""Operators that give a bag of values, each carried by a statement, a qualifier or an entity."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from condgraph.engine.algebra.facets import ALWAYS, NEVER, Facets, Warns
from condgraph.engine.algebra.needs import EACH, Needs
from condgraph.engine.algebra.sorts import Condition, Direction, Entities, Facts, Node, Operator, Scalar, Values
from condgraph.engine.external import Asked
from condgraph.engine.values import Value


@dataclass(frozen=True, slots=True)
class Objects(Values):
    """The object of each fact, carried by the statement."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("facts",), strict=("facts",), gives="carried", reads="nothing", warns=NEVER)
    facts: Facts

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


@dataclass(frozen=True, slots=True)
class Qualifiers(Values):
    """The values of qualifier `key` of each fact (None: of every key), carried by the statement."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("facts",), strict=("facts",), gives="stated", reads="nothing", warns=NEVER)
    facts: Facts
    key: str | None

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


@dataclass(frozen=True, slots=True)
class Validity(Values):
    """When each fact holds: its whole interval, its start, or its end; nothing where it is not
    known.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("facts",), strict=("facts",), gives="times", reads="nothing", warns=NEVER)
    facts: Facts
    part: Literal["interval", "start", "end"]

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


@dataclass(frozen=True, slots=True)
class Predicates(Values):
    """The predicate of each fact, as text."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("facts",), strict=("facts",), gives="texts", reads="nothing", warns=NEVER)
    facts: Facts

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


@dataclass(frozen=True, slots=True)
class QualifierKeys(Values):
    """The qualifier keys of each fact, as text."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("facts",), strict=("facts",), gives="texts", reads="nothing", warns=NEVER)
    facts: Facts

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


@dataclass(frozen=True, slots=True)
class Names(Values):
    """The name of each entity, carried by the entity."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("entities",), strict=("entities",), gives="texts", reads="nothing", warns=NEVER)
    entities: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.entities,)


@dataclass(frozen=True, slots=True)
class RowNumbers(Values):
    """The 1-based position of each table row in its source, carried by the row."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("entities",), strict=("entities",), gives="numbers", reads="nothing", warns=NEVER)
    entities: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.entities,)


@dataclass(frozen=True, slots=True)
class FilterValues(Values):
    """The values that satisfy the test."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=("values",), strict=("values",), gives="carried", reads="nothing", warns=NEVER, tests="values"
    )
    values: Values
    condition: Condition

    def inputs(self) -> tuple[Node, ...]:
        return (self.values, *self.condition.inputs())


@dataclass(frozen=True, slots=True)
class Distinct(Values):
    """Each value once."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("values",), strict=("values",), gives="carried", reads="nothing", warns=NEVER)
    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Concat(Values):
    """The bags one after the other."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("parts",), strict=(), gives="any", reads="nothing", warns=NEVER)
    parts: tuple[Values, ...]

    def inputs(self) -> tuple[Node, ...]:
        return self.parts


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

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


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

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


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

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


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

    def inputs(self) -> tuple[Node, ...]:
        return (self.values, self.limits)


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

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


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

    def inputs(self) -> tuple[Node, ...]:
        return (self.condition, self.then, self.otherwise)


@dataclass(frozen=True, slots=True)
class Shown(Values):
    """Values that stand for table rows in an answer, which keeps the rows as its entities."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("values",), strict=("values",), gives="any", reads="nothing", warns=NEVER)
    values: Values
    rows: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.values, self.rows)


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

    def inputs(self) -> tuple[Node, ...]:
        return self.arguments


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
    asked: Asked | None = None

    def inputs(self) -> tuple[Node, ...]:
        return (*self.arguments, *self.about)

"""Expressions of a table clause as ways through the graph, with their names looked up."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.algebra.constructors import reached
from condgraph.engine.errors import LiteralError, PlanError, UnknownNameError, nearest
from condgraph.engine.reading.shapes import readings
from condgraph.engine.units import conversions
from condgraph.engine.values import Kind, Quantity, Time, Value, clean_unit, collapse, parse_number
from condgraph.languages.literals import read_quantity
from condgraph.languages.table.tree import (
    SYNONYMS,
    Binary,
    Call,
    Comparison,
    Expression,
    Junction,
    Number,
    Path,
    Step,
    Test,
    Text,
)
from condgraph.languages.table.words import title
from condgraph.names.words import near_names

if TYPE_CHECKING:
    from condgraph.engine.store import KnownSchema

#: Qualifiers that mean when a fact holds, where no statement has a qualifier of that name.
_VALIDITY: Final = {"time": "interval", "start time": "start", "end time": "end"}
_WHITE: Final = re.compile(r"\s+")


class Columns:
    """The expressions of one table: what they need of the graph is gathered in `facts` and `values`."""

    def __init__(self, of: alg.Entities | alg.Facts, schema: KnownSchema, *, lenient: bool = False) -> None:
        self.of, self.schema, self.lenient = of, schema, lenient
        self.facts: list[alg.Facts] = []
        self.values: list[alg.Values] = []
        self.warnings: list[str] = []
        #: What columns are called by `as`, while tests of the finished table are read.
        self.called: Mapping[str, Expression] = {}
        self._steps: dict[tuple[int, Step], int] = {}
        self._values: dict[tuple[int, str | None], int] = {}
        # Bound once, so that all first steps start from one operator.
        self._start = reached(of)

    # -- expressions -------------------------------------------------------------------------------

    def is_sum(self, of: Expression) -> bool:
        """Whether an expression sums a group up."""
        return isinstance(of, Call) and (SYNONYMS.get(of.function, of.function) in ex.FUNCTIONS)

    def expression(self, of: Expression, *, sums: bool = False) -> ex.Expression:
        """What is worked out for a row; `sums` says that a sum in it is one of that row alone."""
        if isinstance(of, Path):
            return self._path(of)
        if isinstance(of, Number):
            return ex.Given(_quantity(of))
        if isinstance(of, Text):
            return ex.Given(of.text)
        if isinstance(of, Binary):
            return ex.Computed(of.operator, (self.expression(of.left, sums=sums), self.expression(of.right, sums=sums)))
        if of.function not in ex.PARTS:
            if self.is_sum(of):
                if sums and of.of is not None:
                    return self._row_sum(of)
                hint = "it can be shown, tested with having, and ordered by; calculate with it afterwards, in the table"
                raise PlanError(f"{title(of)} sums up a group, and has no place within a row", span=of.span, hint=hint)
            known = (*ex.FUNCTIONS, *ex.PARTS)
            hint = f"known: {', '.join(known)}"
            raise UnknownNameError(
                "function", of.function, candidates=nearest(of.function, (*known, *SYNONYMS)), span=of.span, hint=hint
            )
        if of.of is None or of.number is not None:
            raise PlanError(f"{of.function} takes one expression", span=of.span, hint=f"{of.function}(birthday)")
        return ex.Computed(of.function, (self.expression(of.of, sums=sums),))

    def _row_sum(self, of: Call) -> ex.Summed:
        """All that one row has, summed up; there are no sums within it."""
        measure = self.measure(of, sums=False)
        if measure.function not in ex.ROW_FUNCTIONS or measure.of is None:
            hint = f"a row is summed up by {', '.join(ex.ROW_FUNCTIONS)}"
            raise PlanError(f"{title(of)} is no number, and has no place within a row", span=of.span, hint=hint)
        return ex.Summed(measure.function, measure.of)

    def measure(self, of: Expression, *, sums: bool = True) -> ex.Measure:
        """What sums a group up, without a name."""
        assert isinstance(of, Call)
        function = SYNONYMS.get(of.function, of.function)
        if of.distinct:
            if function not in ("count", "values"):
                raise PlanError(f"{function} takes no distinct", span=of.span, hint="count(distinct x)")
            function = "distinct" if function == "count" else function
        if function in ("top", "bottom"):
            if of.number is None or of.number < 1 or of.of is None:
                raise PlanError(f"{function} takes how many, and by what", span=of.span, hint=f"{function}(3, price)")
        elif of.number is not None:
            raise PlanError(f"{function} takes one expression", span=of.span, hint=f"{function}(price)")
        inside = None if of.of is None else self.expression(of.of, sums=sums)
        if inside is None and function not in ("count", "distinct"):
            raise PlanError(f"{function} of what?", span=of.span, hint=f"{function}(price); only count() is of the rows")
        return ex.Measure("", cast(ex.Function, function), inside, of.number or 0)

    # -- paths -------------------------------------------------------------------------------------

    def _path(self, path: Path) -> ex.Expression:
        name, schema = title(path), self.schema
        steps, at = [], -1
        if (
            path.steps == (Step("name"),)
            and path.qualifier is None
            and not (schema.has_attribute("name") or schema.has_relation("name"))
        ):
            return ex.Computed("name", (ex.Way("self"),))
        for number, step in enumerate(path.steps):
            last = number == len(path.steps) - 1 and path.qualifier is None
            at = self._step(at, step, path, last=last)
            steps.append(at)
        if path.qualifier is not None:
            return ex.Way(name, tuple(steps), self._qualifier(at, path.qualifier, path))
        if not steps or path.steps[-1].backward:
            return ex.Way(name, tuple(steps))
        return ex.Way(name, tuple(steps), self._objects(at))

    def _step(self, before: int, step: Step, path: Path, *, last: bool) -> int:
        known = self._steps.get((before, step))
        if known is not None:
            return known
        schema, name = self.schema, step.name
        relation, attribute = schema.has_relation(name), schema.has_attribute(name)
        if step.backward:
            if not relation:
                hint = f"{name!r} is an attribute: its values lead nowhere" if attribute else None
                self._unknown("relation", name, path, schema.relations, hint)
        elif not relation and not attribute:
            self._unknown("column", name, path, (*schema.attributes, *schema.relations), self._quoted(path))
        elif not relation and not last and path.qualifier is None:
            hint = self._quoted(path) or f"{name!r} is an attribute: nothing follows its values"
            self._unknown("relation", name, path, schema.relations, hint)
        of = self._start if before < 0 else alg.Reached(self.facts[before])
        if step.backward:
            scan = alg.Scan(of, (name,), "object", "subject", "relation")
        elif relation and attribute:
            scan = alg.Scan(of, (name,), "subject", "object", "any")
        elif relation:
            scan = alg.Scan(of, (name,), "subject", "object", "relation")
        else:
            scan = alg.Scan(of, (name,), "subject", "subject", "attribute")
        self.facts.append(scan)
        self._steps[before, step] = len(self.facts) - 1
        return len(self.facts) - 1

    def _quoted(self, path: Path) -> str | None:
        """What to write where the steps of a path are one name with points in it, as nested records
        and tables give it.
        """
        names = [step.name for step in path.steps]
        if any(step.backward for step in path.steps):
            return None
        for begin in range(len(names)):
            for end in range(len(names), begin + 1, -1):
                name = ".".join(names[begin:end])
                if self.schema.has_attribute(name) or self.schema.has_relation(name):
                    return f'a name with a point in it stands in double quotes: "{name}"'
        return None

    def _objects(self, at: int) -> int:
        return self._put((at, None), lambda: alg.Objects(self.facts[at]))

    def _qualifier(self, at: int, key: str, path: Path) -> int:
        facts = self.of if at < 0 else self.facts[at]
        assert isinstance(facts, alg.Facts)
        if not self.schema.has_qualifier(key):
            if key in _VALIDITY:
                part = cast(Any, _VALIDITY[key])
                return self._put((at, key), lambda: alg.Validity(facts, part))
            self._unknown("qualifier", key, path, self.schema.qualifiers)
        return self._put((at, key), lambda: alg.Qualifiers(facts, key))

    def _put(self, key: tuple[int, str | None], make: Callable[[], alg.Values]) -> int:
        known = self._values.get(key)
        if known is None:
            self.values.append(make())
            known = self._values[key] = len(self.values) - 1
        return known

    def _unknown(self, kind: str, name: str, path: Path, known: Any, hint: str | None = None) -> None:
        error = UnknownNameError(kind, name, candidates=near_names(name, tuple(known)), span=path.span, hint=hint)
        if not self.lenient:
            raise error
        self.warnings.append(f"{error}; it means nothing here")

    # -- tests -------------------------------------------------------------------------------------

    def test(self, test: Test, of: Callable[[Expression], ex.Expression | int]) -> ex.Test:
        """A test, what it compares turned into an expression or the place of a column."""
        if isinstance(test, Junction):
            parts = tuple([self.test(part, of) for part in test.tests])
            return ex.No(parts[0]) if test.word == "not" else (ex.Every if test.word == "and" else ex.Some)(parts)
        if not test.literals:
            return ex.CellTest(of(test.of), test.operator)
        compared = of(test.of)
        if test.operator in ex.TEXT_OPERATORS:
            # Blanks at the ends are part of what is looked for.
            return ex.CellTest(compared, test.operator, tuple([_WHITE.sub(" ", literal.text) for literal in test.literals]))
        readings: list[Value] = []
        for literal in test.literals:
            readings += self._readings(literal, test)
        return ex.CellTest(compared, test.operator, tuple(readings))

    def _readings(self, literal: Number | Text, test: Comparison) -> list[Value]:
        """What a literal may be: values of different types are never equal, so that readings do not
        disturb each other.
        """
        found: list[Value] = []
        if isinstance(literal, Number):
            quantity = _quantity(literal)
            found += [quantity, *conversions(quantity, self._units(test.of))]
            if isinstance(quantity.number, int) and 1 <= quantity.number <= 9999 and not literal.unit:
                found.append(Time.year(quantity.number))
            return found
        found.append(collapse(literal.text))
        with suppress(ValueError):
            found.append(Time.parse(literal.text))
        with suppress(LiteralError):
            found.append(read_quantity(literal.text))
        found += [value for value in _as_cell(collapse(literal.text)) if value not in found]
        units = self._units(test.of)
        return [*found, *(one for value in found if isinstance(value, Quantity) for one in conversions(value, units))]

    def _units(self, of: Expression) -> list[str]:
        """The units that the values of an expression, or of the column that is called so, have."""
        meant = self.called.get(title(of)) if isinstance(of, Path) else None
        return self._own_units(of if meant is None else meant)

    def _own_units(self, of: Expression) -> list[str]:
        while isinstance(of, Call) and of.of is not None:
            of = of.of
        if isinstance(of, Binary):
            # What is calculated has the unit of one of its parts.
            return list(dict.fromkeys([*self._own_units(of.left), *self._own_units(of.right)]))
        if not isinstance(of, Path) or not of.steps or of.qualifier is not None:
            return []
        return [unit for kind, unit in self.schema.attribute_kinds(of.steps[-1].name) if kind is Kind.QUANTITY]


def _as_cell(text: str) -> list[Value]:
    """What the cell of a text would be that has one honest reading: "$1.2M", "10%", "5 May 2021". Of
    a number with a comma it is the one where that separates thousands.
    """
    read = [one for one in readings(text) if one.family in ("number", "time")]
    read = [one for one in read if one.tag != "eu"] or read
    values = {one.value: None for one in read}
    return list(values) if len(values) == 1 else []


def _quantity(literal: Number) -> Quantity:
    try:
        return Quantity(parse_number(literal.text), clean_unit(literal.unit))
    except ValueError as error:
        raise LiteralError(str(error), span=literal.span) from None

"""Lowers a table clause on top of the plan of a program: expressions to paths through the graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import grouped as ex
from condgraph.engine.algebra import postorder
from condgraph.engine.algebra.operators import reached
from condgraph.engine.errors import LiteralError, PlanError, UnknownNameError, nearest
from condgraph.engine.lowered import Lowered
from condgraph.engine.reading.shapes import UNSURE, readings
from condgraph.engine.time_parts import TRUNCATIONS, zone_of
from condgraph.engine.units import conversions
from condgraph.engine.values import FORMS, Kind, Quantity, Time, Value, clean_unit, collapse, parse_number, read_point
from condgraph.languages.literals import is_time_function, read_quantity
from condgraph.languages.table import tree
from condgraph.languages.table.tree import Clause, Column, Expression, mentions, named_row, title
from condgraph.names.words import Forms, OnUnknown, near_names, read_as

if TYPE_CHECKING:
    from condgraph.engine.schema import Classes, End
    from condgraph.engine.store import KnownSchema


# -- classes of entities -----------------------------------------------------------------------------
# The classes (concepts and tables) of a table's rows and of the ends of its paths, as far as the plan
# and the schema tell. Facts are never consulted, so a name means the same on every store.


#: Sets of classes: every entity has at least one class of each set. An empty tuple if nothing is
#: known; None for fixed entities, which may have any class.
PossibleClasses: TypeAlias = "tuple[Classes, ...] | None"
_ANYTHING: Final[PossibleClasses] = ()


def classes_of(root: alg.Node, schema: KnownSchema) -> PossibleClasses:
    """Return the classes of the entities that an operator returns or its facts reach."""
    classes: dict[int, PossibleClasses] = {}
    for node in postorder(root):
        classes[id(node)] = _of(node, schema, classes)
    return classes[id(root)]


def _of(node: alg.Node, schema: KnownSchema, found: dict[int, PossibleClasses]) -> PossibleClasses:
    if isinstance(node, alg.AllEntities):
        rows = None if node.source is None else schema.table_classes(node.source)
        return (rows,) if rows is not None and node.own else _ANYTHING
    if isinstance(node, alg.Members) and isinstance(node.concepts, alg.ByName):
        below = [schema.concept_classes(name) for name in node.concepts.names]
        return _union(below)
    if isinstance(node, alg.Reached):
        return found[id(node.facts)]
    if isinstance(node, alg.Scan):
        of = None if node.of is None else found[id(node.of)]
        return (*((of or ()) if node.reach == node.anchor else ()), *ends(node.predicates, node.reach, schema))
    if isinstance(node, alg.OtherEnd):
        scan: alg.Facts = node
        while (inner := alg.passed(scan)) is not None:
            scan = inner
        return ends(scan.predicates, node.reach, schema) if isinstance(scan, alg.Scan) else _ANYTHING
    if isinstance(node, alg.Union):
        parts = [found[id(part)] for part in node.parts]
        if None in parts:
            return None
        return _union([min(part, key=len) if part else None for part in parts if part is not None])
    if isinstance(node, alg.Intersect):
        known = [found[id(part)] for part in node.parts]
        return tuple(classes for part in known for classes in part or ()) or (None if None in known else _ANYTHING)
    if isinstance(node, alg.ArgExtreme):
        return (*(found[id(node.of)] or ()), *ends((node.key,), "subject", schema))
    if isinstance(node, alg.Minus):
        return found[id(node.left)]
    if isinstance(node, alg.Facts) and (inner := alg.passed(node)) is not None:
        return found[id(inner)]
    return None


def _union(some: list[Classes | None]) -> PossibleClasses:
    """Return the classes of entities that are in any of some sets; unknown if one set is."""
    known = [classes for classes in some if classes is not None]
    return (frozenset().union(*known),) if len(known) == len(some) else _ANYTHING


def ends(predicates: tuple[str, ...] | None, end: End, schema: KnownSchema) -> tuple[Classes, ...]:
    """Return the classes of one end of the statements of some predicates; empty if unknown."""
    return () if predicates is None else _union([schema.end_classes(name, end) for name in predicates]) or ()


def may_have(known: PossibleClasses, predicate: str, end: End, schema: KnownSchema) -> bool | None:
    """Whether entities of these classes may be an end of a predicate's statements; None if unknown."""
    end_classes = schema.end_classes(predicate, end)
    return None if end_classes is None or known is None else all(end_classes & classes for classes in known)


def all_may_have(known: PossibleClasses, predicate: str, schema: KnownSchema) -> bool:
    """Whether entities of all these classes may be subjects of a predicate; False if unknown."""
    end_classes = schema.end_classes(predicate, "subject")
    return end_classes is not None and any(classes <= end_classes for classes in known or ())


def in_words(classes: Classes) -> str:
    """Return classes as a list in words, for messages."""
    names = sorted({name for _, name in classes if name})
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


# -- columns -----------------------------------------------------------------------------------------


#: Qualifiers that mean the validity of a fact, if no statement has a qualifier of that name.
_VALIDITY: Final = {"time": "interval", "start time": "start", "end time": "end"}
#: How many names are checked to suggest one that the rows have.
_MAX_CHECKED: Final = 200
#: The supported operations on times, as a hint.
OF_TIMES: Final = (
    f"times have {', '.join(f'{part}(x)' for part in ex.TIME_PARTS)}, differences (ended - started) and comparisons "
    "(x >= 2024-01-05), date_trunc('month', x) and timezone('Europe/Berlin', x); for the rest, to_pandas() gives the times as "
    "columns"
)
_WHITE: Final = re.compile(r"\s+")
_PAIRED: Final = {"distance": "distance(place, 'POINT(13.4 52.5)')", "point": "point(longitude, latitude)"}
_LATITUDE: Final = re.compile(r"(?:.*[._ ])?lat(?:itude)?", re.IGNORECASE).fullmatch
_LONGITUDE: Final = re.compile(r"(?:.*[._ ])?(?:lon|lng|long|longitude)", re.IGNORECASE).fullmatch


class Columns:
    """Lowers the expressions of one table; `facts` and `values` collect what they read from the graph."""

    def __init__(self, of: alg.Entities | alg.Facts, schema: KnownSchema, *, on_unknown: OnUnknown = "error") -> None:
        self.of, self.schema, self.on_unknown = of, schema, on_unknown
        self.facts: list[alg.Facts] = []
        self.values: list[alg.Values] = []
        self.warnings: list[str] = []
        #: Columns by the name that `as` gives them, while tests of the finished table are lowered.
        self.called: Mapping[str, tree.Expression] = {}
        self._steps: dict[tuple[int, tree.Step], int] = {}
        self._values: dict[tuple[int, str | None], int] = {}
        # Shared, so that all first steps start from one operator.
        self._start = alg.reached(of)
        #: The classes of the rows, and of the entities that each of the facts reaches.
        self._rows = classes_of(of, schema)
        self._reached: list[PossibleClasses] = []
        #: Indices in `facts` of columns that the rows may not have.
        self.unsure: list[int] = []

    # -- expressions -------------------------------------------------------------------------------

    def is_sum(self, of: tree.Expression) -> bool:
        """Whether an expression aggregates a group."""
        if isinstance(of, tree.Call) and of.function == "clock" and of.of is not None:
            return self.is_sum(of.of)
        return isinstance(of, tree.Call) and (tree.SYNONYMS.get(of.function, of.function) in ex.FUNCTIONS)

    def expression(self, of: tree.Expression, *, sums: bool = False) -> ex.Expression:
        """Lower an expression for a row; `sums` allows aggregates over that row alone."""
        if isinstance(of, tree.Path):
            return self._path(of)
        if isinstance(of, tree.Number):
            return ex.GivenValue(_quantity(of))
        if isinstance(of, tree.Text):
            return ex.GivenValue(of.text)
        if isinstance(of, tree.Binary):
            sides = (of.left, of.right)
            for side in sides:
                if self._is_time(side) and not (of.operator == "-" and all(map(self._may_be_time, sides))):
                    raise PlanError(f"{title(of)}: {title(side)} is a time, not a number", span=of.span, hint=OF_TIMES)
            return ex.Computed(of.operator, (self.expression(of.left, sums=sums), self.expression(of.right, sums=sums)))
        if of.function in ex.CHOSEN:
            return self._with_option(of, sums=sums)
        if of.function in ex.PAIRED:
            return self._paired(of, sums=sums)
        if of.function not in ex.PARTS:
            if self.is_sum(of):
                if sums and of.of is not None:
                    return self._row_sum(of)
                hint = "it can be shown, tested with having, and ordered by; calculate with it afterwards, in the table"
                raise PlanError(f"{title(of)} sums up a group, and has no place within a row", span=of.span, hint=hint)
            known = (*ex.FUNCTIONS, *ex.PARTS, *ex.CHOSEN, *ex.PAIRED)
            hint = OF_TIMES if is_time_function(of.function) else f"known: {', '.join(known)}"
            raise UnknownNameError(
                "function", of.function, candidates=nearest(of.function, (*known, *tree.SYNONYMS)), span=of.span, hint=hint
            )
        if of.of is None or of.number is not None:
            raise PlanError(f"{of.function} takes one expression", span=of.span, hint=f"{of.function}(birthday)")
        return ex.Computed(of.function, (self.expression(of.of, sums=sums),))

    def _with_option(self, of: tree.Call, *, sums: bool) -> ex.Computed:
        """Lower a function of an option, which is checked here, and a value."""
        example = "date_trunc('month', started)" if of.function == "date_trunc" else "timezone('Europe/Berlin', started)"
        if len(of.options) != 1 or of.of is None or of.number is not None or of.distinct:
            raise PlanError(f"{of.function} takes an option and an expression", span=of.span, hint=example)
        option = title(of.options[0])
        if of.function == "timezone":
            zone_of(option)
        elif (option := option.casefold()) not in TRUNCATIONS:
            raise PlanError(f"{option!r} is not a unit of date_trunc", span=of.span, hint=f"its units: {', '.join(TRUNCATIONS)}")
        return ex.Computed(cast(ex.Chosen, of.function), (ex.GivenValue(option), self.expression(of.of, sums=sums)))

    def _paired(self, of: tree.Call, *, sums: bool) -> ex.Computed:
        """Lower a function of two values; texts are read as points."""
        if len(of.options) != 1 or of.of is None or of.number is not None or of.distinct:
            takes = "two points" if of.function == "distance" else "a longitude and a latitude"
            raise PlanError(f"{of.function} takes {takes}", span=of.span, hint=_PAIRED[of.function])
        sides: list[ex.Expression] = []
        for side in (of.options[0], of.of):
            if isinstance(side, tree.Text):
                point = read_point(collapse(side.text)) if of.function == "distance" else None
                if point is None:
                    raise LiteralError(
                        f"{side.text!r} is no {'point' if of.function == 'distance' else 'number'}", hint=_PAIRED[of.function]
                    )
                sides.append(ex.GivenValue(point))
            else:
                sides.append(self.expression(side, sums=sums))
        if of.function == "point" and _LATITUDE(title(of.options[0])) and _LONGITUDE(title(of.of)):
            raise PlanError("point takes the longitude first", span=of.span, hint=f"point({title(of.of)}, {title(of.options[0])})")
        return ex.Computed(cast(ex.Paired, of.function), (sides[0], sides[1]))

    def _is_time(self, of: tree.Expression) -> bool:
        """Whether an expression is a column that has only times."""
        if isinstance(of, tree.Call) and of.function in ex.CHOSEN:
            return True
        if not isinstance(of, tree.Path) or not of.steps or of.qualifier is not None:
            return False
        kinds = self.schema.attribute_kinds(self._spelled(of).steps[-1].name)
        return bool(kinds) and all(kind is Kind.TIME for kind, _ in kinds)

    def _may_be_time(self, of: tree.Expression) -> bool:
        """Whether an expression may return times; a column of other types or a function of numbers does not."""
        if not isinstance(of, tree.Path) or not of.steps or of.qualifier is not None:
            return isinstance(of, tree.Path) or (isinstance(of, tree.Call) and of.function in ex.CHOSEN)
        kinds = self.schema.attribute_kinds(self._spelled(of).steps[-1].name)
        return not kinds or any(kind is Kind.TIME for kind, _ in kinds)

    def _row_sum(self, of: tree.Call) -> ex.RowTotal:
        """Lower an aggregate over the values of one row; it contains no other aggregate."""
        measure = self.measure(of, sums=False)
        if measure.function not in ex.ROW_FUNCTIONS or measure.of is None:
            hint = f"a row is summed up by {', '.join(ex.ROW_FUNCTIONS)}"
            raise PlanError(f"{title(of)} is not a number, and has no place within a row", span=of.span, hint=hint)
        return ex.RowTotal(measure.function, measure.of)

    def measure(self, of: tree.Expression, *, sums: bool = True) -> ex.Measure:
        """Lower an aggregate, without a name."""
        assert isinstance(of, tree.Call)
        if of.function == "clock" and of.of is not None:
            return replace(self.measure(of.of, sums=sums), clock=True)
        function = tree.SYNONYMS.get(of.function, of.function)
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

    def _spelled(self, path: tree.Path) -> tree.Path:
        """Return a path with the graph's spelling of its predicates and qualifier, with a warning.

        Only case, spacing, plural or tense may differ, unless `on_unknown="nearest"` accepts more.
        """
        schema = self.schema
        steps: list[tree.Step] = []
        for number, step in enumerate(path.steps):
            name, last = step.name, number == len(path.steps) - 1
            known = schema.has_relation(name) or schema.has_attribute(name)
            # "name" at the end is the name of the entity, even if the graph has no such predicate.
            if not known and not (last and path.qualifier is None and name == "name") and self._quoted(path) is None:
                names = schema.relations if step.backward else tuple(dict.fromkeys((*schema.attributes, *schema.relations)))
                name = self._read("relation" if step.backward else "column", name, names)
            steps.append(step if name == step.name else replace(step, name=name))
        key = path.qualifier
        if key is not None and key not in _VALIDITY and not schema.has_qualifier(key):
            key = self._read("qualifier", key, schema.qualifiers)
        if key == path.qualifier and all(new_step is original for new_step, original in zip(steps, path.steps, strict=True)):
            return path
        return replace(path, steps=tuple(steps), qualifier=key)

    def _read(self, kind: str, name: str, names: Sequence[str]) -> str:
        result, warning, _ = read_as(kind, name, Forms.of(self.schema.kept, kind, names), self.on_unknown)
        if result is None or warning is None:
            return name
        if warning not in self.warnings:
            self.warnings.append(warning)
        return result

    def _path(self, path: tree.Path) -> ex.Expression:
        name, steps, at = title(path), list[int](), -1
        path = self._spelled(path)
        for number, step in enumerate(path.steps):
            last = number == len(path.steps) - 1 and path.qualifier is None
            is_name = last and step == tree.Step("name")
            if is_name and self._may_have(at, step) is False:
                return self._own_name(steps)
            previous = at
            at = self._step(at, step, path, last=last)
            steps.append(at)
            if is_name and not all_may_have(self._classes(previous), step.name, self.schema):
                return ex.FirstOf(ex.ValuePath(name, tuple(steps), self._objects(at)), self._own_name(steps[:-1]))
        if path.qualifier is not None:
            return ex.ValuePath(name, tuple(steps), self._qualifier(at, path.qualifier, path))
        if not steps or path.steps[-1].backward:
            return ex.ValuePath(name, tuple(steps))
        return ex.ValuePath(name, tuple(steps), self._objects(at))

    def _own_name(self, steps: list[int]) -> ex.Computed:
        """Return the name of the entity that steps lead to, or of the row."""
        return ex.Computed("name", (ex.ValuePath("self", tuple(steps)),))

    def _classes(self, at: int) -> PossibleClasses:
        """Return the classes of the entities that some facts reach, or of the rows."""
        return self._rows if at < 0 else self._reached[at]

    def _may_have(self, before: int, step: tree.Step) -> bool | None:
        """Whether the entities before a step may have its predicate; None if unknown."""
        if not (self.schema.has_attribute(step.name) or self.schema.has_relation(step.name)):
            return False
        return may_have(self._classes(before), step.name, "object" if step.backward else "subject", self.schema)

    def _step(self, before: int, step: tree.Step, path: tree.Path, *, last: bool) -> int:
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
        may = self._may_have(before, step)
        if (relation or attribute) and may is False:
            self._refuse_other_rows(before, step, path)
        elif may is None and before < 0 and step.name != "name":
            self.unsure.append(len(self.facts))
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
        self._reached.append(ends((name,), "subject" if step.backward else "object", schema))
        self._steps[before, step] = len(self.facts) - 1
        return len(self.facts) - 1

    def _refuse_other_rows(self, before: int, step: tree.Step, path: tree.Path) -> None:
        """Raise the error for a column that exists, but not for these rows."""
        schema, name, end = self.schema, step.name, "object" if step.backward else "subject"
        names = schema.relations if step.backward else tuple(dict.fromkeys((*schema.attributes, *schema.relations)))
        if len(names) > _MAX_CHECKED:
            names = tuple(nearest(name, names, most=_MAX_CHECKED))
        candidates = [candidate for candidate in names if self._may_have(before, tree.Step(candidate, step.backward)) is not False]
        owners = in_words(schema.end_classes(name, cast("End", end)) or frozenset())
        rows = in_words(frozenset().union(*(self._classes(before) or ())))
        of, actual = f" of {owners}" if owners else "", f" ({rows})" if rows else ""
        hint = f"it is a column{of}, and none of these rows{actual} has it"
        if step.backward:
            hint = f"it leads{' to ' + owners if owners else ' elsewhere'}, and to none of these rows{actual}"
        self._unknown("relation" if step.backward else "column", name, path, candidates, hint)

    def _quoted(self, path: tree.Path) -> str | None:
        """Return a hint if the steps of a path are one name that contains points.

        Nested records and tables have such names.
        """
        names = [step.name for step in path.steps]
        if any(step.backward for step in path.steps):
            return None
        for begin in range(len(names)):
            for end in range(len(names), begin + 1, -1):
                name = ".".join(names[begin:end])
                if self.schema.has_attribute(name) or self.schema.has_relation(name):
                    return f'a name with a point in it is in double quotes: "{name}"'
        return None

    def _objects(self, at: int) -> int:
        return self._value_number((at, None), lambda: alg.Objects(self.facts[at]))

    def _qualifier(self, at: int, key: str, path: tree.Path) -> int:
        facts = self.of if at < 0 else self.facts[at]
        assert isinstance(facts, alg.Facts)
        scanned = facts
        while (inner := alg.passed(scanned)) is not None:
            scanned = inner
        predicates = scanned.predicates if isinstance(scanned, alg.Scan) else None
        applies = predicates is None or any(self.schema.has_qualifier(key, known) for known in predicates)
        if not applies or not self.schema.has_qualifier(key):
            if key in _VALIDITY:
                part = cast(Any, _VALIDITY[key])
                return self._value_number((at, key), lambda: alg.Validity(facts, part))
            keys = [
                known
                for known in self.schema.qualifiers
                if any(self.schema.has_qualifier(known, of) for of in predicates or (None,))
            ]
            hint = None
            if self.schema.has_qualifier(key):
                hint = f"statements of {' and '.join(map(repr, predicates or ()))} have no such qualifier, others have"
            self._unknown("qualifier", key, path, keys, hint)
        return self._value_number((at, key), lambda: alg.Qualifiers(facts, key))

    def _value_number(self, key: tuple[int, str | None], make: Callable[[], alg.Values]) -> int:
        known = self._values.get(key)
        if known is None:
            self.values.append(make())
            known = self._values[key] = len(self.values) - 1
        return known

    def _unknown(self, kind: str, name: str, path: tree.Path, known: Any, hint: str | None = None) -> None:
        error = UnknownNameError(kind, name, candidates=near_names(name, tuple(known)), span=path.span, hint=hint)
        if self.on_unknown != "empty":
            raise error
        self.warnings.append(f"{error}; it matches nothing")

    # -- tests -------------------------------------------------------------------------------------

    def test(self, test: tree.Test, of: Callable[[tree.Expression], ex.Expression | int]) -> ex.Test:
        """Lower a test; `of` turns what it compares into an expression or the index of a column."""
        if isinstance(test, tree.Junction):
            parts = tuple([self.test(part, of) for part in test.tests])
            return ex.NotTest(parts[0]) if test.word == "not" else (ex.AllTests if test.word == "and" else ex.AnyTest)(parts)
        if not test.literals:
            return ex.CellTest(of(test.of), test.operator)
        operand = of(test.of)
        if test.operator in ex.TEXT_OPERATORS:
            # Blanks at the ends of the text are significant.
            return ex.CellTest(operand, test.operator, tuple([_WHITE.sub(" ", literal.text) for literal in test.literals]))
        values: list[Value] = []
        for literal in test.literals:
            values += self._readings(literal, test)
        return ex.CellTest(operand, test.operator, tuple(values))

    def _readings(self, literal: tree.Number | tree.Text, test: tree.Comparison) -> list[Value]:
        """Return the possible values of a literal.

        Values of different types are never equal, so several readings do not interfere.
        """
        values: list[Value] = []
        if isinstance(literal, tree.Number):
            quantity = _quantity(literal)
            values += [quantity, *conversions(quantity, self._units(test.of))]
            if isinstance(quantity.number, int) and 1 <= quantity.number <= 9999 and not literal.unit:
                values.append(Time.year(quantity.number))
            if not literal.unit and "day" in self._units(test.of):
                # A difference of times is in days, or in seconds if days are inexact.
                values += [Quantity(quantity.number, "day"), *conversions(Quantity(quantity.number, "day"), ["second"])]
            column = self._named(test.of)
            if not literal.unit and isinstance(column, tree.Call) and column.function == "distance":
                values.append(Quantity(quantity.number, "metre"))
            return values
        text = collapse(literal.text)
        forms = [FORMS[form].read(text) for form in self._forms(test.of)]
        # All spellings of a point are equal, but in a column of texts only the text counts.
        values += [value for value in forms if value is not None] or [text]
        with suppress(ValueError):
            values.append(Time.parse(literal.text))
        with suppress(LiteralError):
            values.append(read_quantity(literal.text))
        values += [value for value in _as_cell(collapse(literal.text)) if value not in values]
        units = self._units(test.of)
        return [*values, *(converted for value in values if isinstance(value, Quantity) for converted in conversions(value, units))]

    def _units(self, of: tree.Expression) -> list[str]:
        """Return the units of an expression's values, or of those of the column with this name."""
        return self._own_units(self._named(of))

    def _named(self, of: tree.Expression) -> tree.Expression:
        """Return the expression of a column's name, or the expression itself."""
        return self.called.get(title(of), of) if isinstance(of, tree.Path) else of

    def _forms(self, of: tree.Expression) -> list[str]:
        """Return the forms of the texts that an expression returns."""
        of = self._named(of)
        if isinstance(of, tree.Call):
            return ["point"] if of.function == "point" else []
        if not isinstance(of, tree.Path) or not of.steps or of.qualifier is not None:
            return []
        return [unit for kind, unit in self.schema.attribute_kinds(of.steps[-1].name) if kind is Kind.TEXT and unit in FORMS]

    def _own_units(self, of: tree.Expression) -> list[str]:
        while isinstance(of, tree.Call) and of.of is not None:
            if of.function == "distance":
                return ["metre"]
            of = of.of
        if isinstance(of, tree.Binary) and of.operator == "-" and (self._is_time(of.left) or self._is_time(of.right)):
            return ["day", "second", "year"]
        if isinstance(of, tree.Binary):
            # A computed value has the unit of one of its operands.
            return list(dict.fromkeys([*self._own_units(of.left), *self._own_units(of.right)]))
        if not isinstance(of, tree.Path) or not of.steps or of.qualifier is not None:
            return []
        return [unit for kind, unit in self.schema.attribute_kinds(self._spelled(of).steps[-1].name) if kind is Kind.QUANTITY]


def _as_cell(text: str) -> list[Value]:
    """Return the value of a text as a loader would read it, if it is unambiguous: "$1.2M", "10%", "5 May 2021".

    A comma in a number is taken as a thousands separator.
    """
    candidates = readings(text)
    clock: list[Value] = [
        reading.value for reading in candidates if reading.family == "clock" and isinstance(reading.value, Quantity)
    ]
    if clock:
        # 4:27 may be a duration or a time of day; their units differ.
        return clock
    certain = [reading for reading in candidates if reading.family in ("number", "time") and reading.tag not in UNSURE]
    certain = [reading for reading in certain if reading.tag != "eu"] or certain
    values = {reading.value: None for reading in certain}
    return list(values) if len(values) == 1 else []


def _quantity(literal: tree.Number) -> Quantity:
    try:
        return Quantity(parse_number(literal.text), clean_unit(literal.unit))
    except ValueError as error:
        raise LiteralError(str(error), span=literal.span) from None


# -- the lowering of a clause ------------------------------------------------------------------------
# Names are looked up in the schema, steps of paths become scans, and columns are numbered. Paths with
# the same first steps share their scans, so that values computed from two of them belong to the same
# statements. A column that is only tested or ordered by is hidden.


def lower(of: Lowered, clause: Clause, schema: KnownSchema, *, on_unknown: OnUnknown = "error") -> Lowered:
    """Return the plan of a program extended by a table clause; the passes must run again.

    Raises `UnknownNameError` with the nearest names, and `PlanError` for a clause that makes no table.
    """
    table = TableLowering(rows_of(of.plan, clause), schema, on_unknown=on_unknown)
    plan, steps = table.plan(clause)
    return Lowered(plan, [*of.steps, *steps], [*of.warnings, *table.columns.warnings], of.notes)


def rows_of(plan: alg.Node, clause: Clause) -> alg.Entities | alg.Facts:
    """Return the rows of a table: the entities of a program, or its facts if a path begins with a qualifier."""
    while isinstance(plan, alg.Names | alg.Shown):
        plan = plan.entities if isinstance(plan, alg.Names) else plan.rows
    if mentions(clause):
        if not isinstance(plan, alg.Facts):
            raise PlanError(
                "a path that begins with @ asks for a qualifier of the facts that the program ends on, and it ends on none",
                hint="end it on a step that follows facts: Relate, FilterStr, FilterNum, FilterYear or FilterDate",
            )
        return plan
    if isinstance(plan, alg.Entities | alg.Facts):
        return reached(plan)
    described = "values" if isinstance(plan, alg.Values) else "a table" if isinstance(plan, alg.Table) else "a single result"
    raise PlanError(
        f"a table is made of entities; the program gives {described}", hint="leave out the step that reads values or counts"
    )


class TableLowering:
    """Lowers one table clause."""

    def __init__(self, of: alg.Entities | alg.Facts, schema: KnownSchema, *, on_unknown: OnUnknown = "error") -> None:
        self.of, self.columns = of, Columns(of, schema, on_unknown=on_unknown)
        self.keys: list[ex.Key] = []
        self.measures: list[ex.Measure] = []
        self.hidden: list[ex.Measure] = []
        #: Indices of columns by the names given to them.
        self.named: dict[str, int] = {}
        self.each = False

    def plan(self, clause: Clause) -> tuple[alg.Table, list[tuple[str, alg.Node]]]:
        """Return the operators of a clause, and the steps of the trace."""
        columns = self.columns
        for key in clause.keys:
            name = self._unused_name(key.name or title(key.of))
            self.keys.append(ex.Key(name, columns.expression(key.of, sums=True)))
        shown = clause.shown or ((Column(named_row()),) if not clause.keys else ())
        sums = [columns.is_sum(column.of) for column in shown]
        self.each = not clause.keys and not all(sums)
        for column in shown:
            self._show(column)
        if not self.measures and clause.keys and not clause.shown:
            self.measures.append(ex.Measure(self._unused_name("count()"), "count"))
        columns.called = {column.name: column.of for column in (*clause.keys, *shown) if column.name is not None}
        having = None if clause.having is None else columns.test(clause.having, self._index_of)
        columns.called = {}
        by = tuple(ex.OrderBy(self._index_of(item.of), item.descending) for item in clause.order)
        per = tuple(map(self._index_of, clause.per))
        where = None if clause.where is None else columns.test(clause.where, partial(columns.expression, sums=True))
        hidden = len(self.hidden)
        group = alg.Group(
            self.of, tuple(columns.facts), tuple(columns.values), tuple(self.keys), (*self.measures, *self.hidden), where, hidden,
            self.each, tuple(columns.unsure),
        )  # fmt: skip
        words = "group by" if clause.keys else "show"
        table: alg.Table = group
        steps: list[tuple[str, alg.Node]] = [(words, table)]
        if having is not None:
            table = alg.Having(table, having)
            steps.append(("having", table))
        if by:
            table = alg.Order(table, by)
            steps.append(("order by", table))
        if clause.limit is not None or clause.offset:
            limit = 10**12 if clause.limit is None else clause.limit
            table = alg.Limit(table, limit, clause.offset, clause.ties, per)
            steps.append(("limit", table))
        return table, steps

    # -- columns -----------------------------------------------------------------------------------

    def _show(self, column: Column) -> None:
        """Add a shown column; one that is a grouping key is in the table already."""
        if self.columns.is_sum(column.of):
            measure = self.columns.measure(column.of)
        else:
            of = self.columns.expression(column.of)
            place = next((at for at, key in enumerate(self.keys) if key.of == of), None)
            if place is not None:
                if column.name is not None:
                    self.keys[place] = replace(self.keys[place], name=self._unused_name(column.name, place))
                return
            if not self.each:
                raise PlanError(
                    f"{title(column.of)!r} is neither grouped by nor summed up, so that a group may have several",
                    span=getattr(column.of, "span", None),
                    hint=f"group by it as well, or show max({title(column.of)}) or values({title(column.of)})",
                )
            measure = ex.Measure("", "values", of)
        self.measures.append(replace(measure, name=self._unused_name(column.name or title(column.of))))

    def _unused_name(self, name: str, own: int | None = None) -> str:
        """Return the name of a new column; raises if it is taken."""
        taken = [column.name for at, column in enumerate(self.keys) if at != own] + [column.name for column in self.measures]
        if name in taken:
            raise PlanError(f"two columns are called {name!r}", hint="call one of them something else: sum(price) as total")
        return name

    def _index_of(self, of: Expression) -> int:
        """Return the index of a column that is tested or ordered by; adds a hidden one if it is not shown."""
        name = title(of)
        known: list[ex.Key | ex.Measure] = [*self.keys, *self.measures, *self.hidden]
        for at, column in enumerate(known):
            if column.name == name:
                return at
        if self.columns.is_sum(of):
            measure = self.columns.measure(of)
            alike = [isinstance(column, ex.Measure) and replace(column, name="") == measure for column in known]
        else:
            measure = ex.Measure("", "values", self.columns.expression(of))
            alike = [not _sums(column) and column.of == measure.of for column in known]
        if True in alike:
            return alike.index(True)
        if measure.function == "values" and not self.each:
            listed = ", ".join([column.name for column in known[: len(known) - len(self.hidden)]])
            raise PlanError(
                f"{name!r} is not a column of the table",
                span=getattr(of, "span", None),
                hint=f"its columns are: {listed}; rows are tested before they are grouped with where",
            )
        self.hidden.append(replace(measure, name=name))
        return len(known)


def _sums(one: ex.Key | ex.Measure) -> bool:
    return isinstance(one, ex.Measure) and one.function != "values"

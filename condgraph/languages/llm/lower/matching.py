"""Literals of LLM queries as tests of a column: cells of this text, values that read the same, else
what is near.

Exact texts come first. What differs in case, accents or white space, what contains the words of the
literal, and what is like it count only where nothing is exact, each with a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from condgraph.engine.algebra import Compare, Condition, Not, Operator, any_of
from condgraph.engine.comparisons import OPERATORS
from condgraph.engine.errors import LiteralError, UnknownNameError
from condgraph.engine.operands import exact
from condgraph.engine.pieces import watched
from condgraph.engine.reading.shapes import ambiguous
from condgraph.engine.schema import Schema
from condgraph.engine.values import Kind, Precision, Quantity, Time, Value, collapse
from condgraph.languages.llm.lower.literals import exactly, inner_number, leading_number, literal_tests
from condgraph.languages.llm.lower.quantities import Typed, read_quantity
from condgraph.languages.llm.syntax.tree import Literal
from condgraph.names.graph_names import LARGE, Column
from condgraph.names.resolve import Match
from condgraph.vectors.encoder import fold

_IN_ITS_UNIT: Final = "write it in the unit of the values, or without one"
#: How names are told that are the same but for what folding takes away.
_FOLDED: Final = "the same but for case, accents or white space"
#: Names that a warning shows.
_SHOWN: Final = 5


class Matching:
    """What is said of names and literals while a program is lowered, and literals as tests."""

    schema: Schema
    lenient: bool
    warnings: list[str]
    #: Remarks on the query at hand, for the trace.
    remarks: list[str]

    # -- remarks and warnings ----------------------------------------------------------------------

    def warn(self, message: str) -> None:
        """Something a user should know, once; it is shown with the step as well."""
        if message not in self.warnings:
            self.warnings.append(message)
        self.remark(message)

    def remark(self, message: str) -> None:
        """Something that the trace says of the query at hand."""
        if message not in self.remarks:
            self.remarks.append(message)

    def unknown(self, error: UnknownNameError) -> None:
        """Complain of a name, or with `on_unknown="empty"` warn that it means nothing."""
        if not self.lenient:
            raise error
        self.warn(f"{error}; it means nothing here")

    def near(self, what: str, name: str, matches: Sequence[Match]) -> None:
        """Say what a near name was taken for, and how near it is."""
        names = list(dict.fromkeys(match.name for match in matches))
        if matches[0].how == "similar":
            self.warn(f"{what} {name!r} is read as {_listed(names)} (similarity {matches[0].score:.2f})")
        elif matches[0].how == "folded":
            self.folded(what, name, names)

    def folded(self, what: str, name: str, names: Sequence[str]) -> None:
        """Say that a name was taken for others that are the same but for case, accents or white
        space.
        """
        self.warn(f"{what} {name!r} is read as {_listed(names)} ({_FOLDED})")

    # -- literals as tests -------------------------------------------------------------------------

    def condition(self, operator: Operator, literal: Literal, column: Column, what: str) -> Condition:
        """A test of a column's values against a literal."""
        if operator == "=":
            return self.equality(literal, column, what)
        if operator == "!=":
            return Not(self.equality(literal, column, what, unlike=True))
        typed = literal_tests(operator, literal.text, column.kinds, european=ambiguous(literal.text) and column.european)
        for remark in typed.remarks:
            self.warn(remark)
        if typed.conditions:
            return any_of(typed.conditions)
        if typed.refused:
            raise LiteralError(f"{what}: {typed.refused}, which do not compare", span=literal.span, hint=_IN_ITS_UNIT)
        types = {kind for kind, _ in column.kinds}
        if types & {Kind.TEXT, Kind.ENTITY} or not types:
            if operator in (">=", "<=") and types <= {Kind.TEXT, Kind.ENTITY} and _amount(literal.text) is None:
                # Texts have no amount: models write >= where they mean "this one".
                self.warn(f"{what}: the values are texts; {operator} {literal.text!r} is read as =")
                return self.equality(literal, column, what)
            if types == {Kind.TEXT} and (tests := self.by_number(operator, literal, column, what)) is not None:
                return tests
            if types:
                self.warn(f"{what}: the values are texts; {operator} {literal.text!r} compares by code point")
            return Compare(operator, collapse(literal.text))
        wanted = " or ".join(sorted(kind.name.lower() for kind in types))
        raise LiteralError(
            f"{what}: {literal.text!r} cannot be read as {wanted}, the type of the values",
            span=literal.span,
            hint="a year is 1960, a day 1960-02-01",
        )

    def by_number(self, operator: Operator, literal: Literal, column: Column, what: str) -> Condition | None:
        """A comparison with a number where cells are texts that begin with one: the texts that
        satisfy it; None for others.
        """
        limit = _amount(literal.text)
        if limit is None or len(column) > LARGE:
            return None
        texts = [str(value) for values in watched(column.cells.values()) for value in values]
        numbers = {text: leading_number(text) for text in texts}
        if sum(number is not None for number in numbers.values()) * 2 <= len(numbers):
            return None
        self.warn(f"{what}: the values are texts; {operator} {literal.text!r} compares the numbers they begin with")
        bound = exact(limit.number)
        compare = OPERATORS[operator]
        kept = [text for text, number in numbers.items() if number is not None and compare(exact(number), bound)]
        return any_of([Compare("=", collapse(text)) for text in kept] or [Compare("<", "")])

    def equality(self, literal: Literal, column: Column, what: str, *, unlike: bool = False) -> Condition:
        """`=` against a column: cells of this text, values that read the same, else cells that
        contain it or are near it.
        """
        text = literal.text
        typed = literal_tests("=", text, column.kinds, european=ambiguous(text) and column.european)
        types = {kind for kind, _ in column.kinds}
        textual = bool(types & {Kind.TEXT, Kind.ENTITY})
        if len(column) > LARGE and (typed.conditions or (textual and self.schema.has_text(collapse(text)))):
            tests = [*typed.conditions, Compare("=", collapse(text))] if textual else typed.conditions
            return any_of(tests)
        if same := self.same(text, column, what, typed):
            # A literal that is a cell's text needs no reading that leaves something out.
            tests = [exactly(value) for value in same]
            return any_of(list(dict.fromkeys([*tests, *([] if typed.remarks else typed.conditions)])))
        for remark in typed.remarks:
            self.warn(remark)
        return self._nearly(literal, column, what, typed, unlike)

    def same(self, text: str, column: Column, what: str, typed: Typed | None = None) -> list[Value]:
        """The values of the cells of a text: of exactly this one, else of those that differ in
        case, accents or white space.

        The latter are warned of, unless the literal, as `typed`, reads as their values.
        """
        folded = column.folded.get(fold(text), [])
        exactly_so = [one for one in folded if collapse(one) == collapse(text)]
        values = list(dict.fromkeys(value for one in exactly_so or folded for value in column.cells[one]))
        read = {test.value for test in typed.conditions if isinstance(test, Compare)} if typed is not None else set()
        if folded and not exactly_so and not read.issuperset(values):
            self.folded(what, text, folded)
        return values

    def _nearly(self, literal: Literal, column: Column, what: str, typed: Typed, unlike: bool) -> Condition:
        """`=` for a literal that is no cell's text: values that read the same, else cells that
        contain it or are near it.
        """
        text, types = literal.text, {kind for kind, _ in column.kinds}
        textual = bool(types & {Kind.TEXT, Kind.ENTITY})
        # Typed cells were compared as values; 1998/99 is also found by its text, as 1998, and 1.69
        # m (5 ft 7 in) as 5 ft 7 in.
        further = [
            one for one, values in watched(column.cells.items()) if typed.converted or any(_is_span(value) for value in values)
        ]
        found: list[str] = []
        if textual or not typed.conditions or further:
            among = further if not textual and typed.conditions else None
            if typed.certain:
                # €2 is not part of $1.2: only texts can have it.
                among = [one for one, values in watched(column.cells.items()) if any(isinstance(value, str) for value in values)]
            found = self.containing(text, column, what, among=among)
        if typed.conditions:
            tests = [*typed.conditions, *(exactly(value) for one in found for value in column.cells[one])]
            return any_of(list(dict.fromkeys(tests)))
        if not found:
            if typed.refused and typed.certain and not unlike:
                raise LiteralError(f"{what}: {typed.refused}, which do not compare", span=literal.span, hint=_IN_ITS_UNIT)
            number = inner_number(text)
            if number is not None and types == {Kind.QUANTITY} and not typed.certain:
                tests = literal_tests("=", str(number), column.kinds).conditions
                self.warn(f"{what}: {typed.refused or 'the values are numbers'}; {text!r} is read as {number}")
                return any_of(tests)
            if typed.refused and (typed.certain or not textual):
                self.warn(f"{what}: {typed.refused}; everything is unlike it")
                return Compare("=", collapse(text))
            found = self.similar(literal, column, what, unlike=unlike)
        if not found:
            return Compare("=", collapse(text))
        values = dict.fromkeys(value for one in found for value in column.cells[one])
        return any_of([exactly(value) for value in values])

    def containing(self, text: str, column: Column, what: str, *, among: list[str] | None = None) -> list[str]:
        """Cells whose words contain those of the literal one after the other."""
        wanted = f" {words(text)} "
        if not wanted.strip():
            return []
        found = [one for one in watched(column.cells if among is None else among) if wanted in f" {words(one)} "]
        if found:
            self.warn(f"{what} {text!r} is read as part of {_listed(found)}")
        return found

    def similar(self, literal: Literal, column: Column, what: str, *, unlike: bool) -> list[str]:
        """The cells most like a literal; none is an error, or for `!=` a warning."""
        resolution = column.resolve(literal.text)
        if resolution.matches:
            self.near(what, literal.text, resolution.matches)
            return list(dict.fromkeys(match.name for match in resolution.matches))
        near = tuple(dict.fromkeys(match.name for match in resolution.near))
        hint = None if near else "no value of this column is like it"
        error = UnknownNameError(what, literal.text, candidates=near, span=literal.span, hint=hint)
        if unlike:
            self.warn(f"{error}; everything is unlike it")
        else:
            self.unknown(error)
        return []


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(map(repr, names[:_SHOWN])) + (f" and {more} more" if more > 0 else "")


def _amount(text: str) -> Quantity | None:
    """The number that a literal is, or the only one in it."""
    return read_quantity(text) or inner_number(text)


def _is_span(value: object) -> bool:
    return isinstance(value, Time) and value.precision is Precision.SPAN


def words(text: str) -> str:
    """The words of a text, folded, parted by single spaces; marks go."""
    return " ".join("".join(c if c.isalnum() else " " for c in fold(text)).split())

"""Context of lowering an LLM query: results of queries, resolution of names and literals, warnings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from condgraph.engine import algebra as alg
from condgraph.engine.bounds import watched
from condgraph.engine.errors import AmbiguousNameError, LiteralError, OptionError, PlanError, UnknownNameError, nearest
from condgraph.engine.external import CallContext, LlmFunction
from condgraph.engine.facts import EntityKind
from condgraph.engine.functions import OPERATORS
from condgraph.engine.lowered import Substitution
from condgraph.engine.reading.shapes import ambiguous
from condgraph.engine.schema import Kinds, Schema
from condgraph.engine.values import NO_UNIT, Kind, Precision, Quantity, Time, Value, collapse, exact, fold
from condgraph.languages.llm.lower.literals import (
    LiteralTests,
    exactly,
    inner_number,
    leading_number,
    literal_tests,
    read_quantity,
    unlike,
)
from condgraph.languages.llm.syntax.tree import Application, Expression, Items, Literal, Program, Span
from condgraph.names.linking import ENTITY_THRESHOLD, LARGE, Column, Linker
from condgraph.names.vocabulary import THRESHOLD, Match, resolve
from condgraph.names.words import DIFFERS, OnUnknown, near_names

# -- results of queries ------------------------------------------------------------------------------
# The result of a query during lowering: its operator, and what the schema tells about it.


NUMBERS: Final[Kinds] = {(Kind.QUANTITY, NO_UNIT): 1}
TEXTS: Final[Kinds] = {(Kind.TEXT, NO_UNIT): 1}
TIMES: Final[Kinds] = {(Kind.TIME, NO_UNIT): 1}


@dataclass(slots=True)
class Result:
    """The operator of a query, and what later queries need to know about it.

    `table` is the source of its rows, or of the rows that carry its values; `sources` are its sources
    (empty: unknown, or all). `column` is the relation used last. `kinds` are the types of its values.
    `led` are the constants that led to it, in the graph's spelling. `validity` are the facts whose
    intervals the values are. `carried`: the values belong to statements or rows, and were not
    computed. `order` is that of `sort`. `facts` are those whose objects the entities are, with
    duplicates for aggregates. `empty`: rows without a value of `column`.
    """

    node: alg.Node
    table: str | None = None
    sources: tuple[str, ...] = ()
    column: str | None = None
    kinds: Kinds = field(default_factory=dict)
    led: tuple[str, ...] = ()
    validity: alg.Facts | None = None
    carried: bool = False
    order: str = ""
    #: A literal whose meaning depends on where it is used.
    literal: Literal | None = None
    span: Span = (0, 0)
    facts: alg.Facts | None = None
    empty: bool = False

    @property
    def is_entities(self) -> bool:
        return isinstance(self.node, alg.Entities)

    @property
    def is_rows(self) -> bool:
        return self.is_entities and self.table is not None

    @property
    def is_scalar(self) -> bool:
        """Whether it is a single result such as a count or a truth value."""
        return isinstance(self.node, alg.Scalar)

    def of(self, node: alg.Node, **changes: object) -> Result:
        """Return a copy with another operator."""
        # Not `dataclasses.replace`, which takes longer than lowering a query.
        fresh = Result(
            node,
            self.table,
            self.sources,
            self.column,
            self.kinds,
            self.led,
            self.validity,
            self.carried,
            self.order,
            None,
            self.span,
            self.facts if node is self.node else None,
            self.empty and node is self.node,
        )
        for name, value in changes.items():
            setattr(fresh, name, value)
        return fresh


def as_values(result: Result) -> alg.Values:
    """Return the values of a result; a scalar becomes one value, entities need a column first."""
    if isinstance(result.node, alg.Values):
        return result.node
    if isinstance(result.node, alg.Table):
        hint = "having, order_by, limit and top take a table; group_by ends the look-up"
        raise PlanError("a table of groups is not a set that this function could take", span=result.span, hint=hint)
    assert isinstance(result.node, alg.Scalar)
    return alg.Apply("identity", (result.node,))


def given(*values: Value) -> alg.Constants:
    return alg.Constants(values)


# -- names and literals ------------------------------------------------------------------------------


# -- matching ----------------------------------------------------------------------------------------
# Literals become tests of a column: cells with the same text, equal values, else similar cells.
#
# Exact texts come first. Cells that differ in case, accents or white space, contain the words of the
# literal, or are similar count only if none is exact, each with a warning.


_IN_ITS_UNIT: Final = "write it in the unit of the values, or without one"
#: How a warning describes names that are equal after folding.
_FOLDED: Final = "the same except for case, accents or white space"
#: How many names a warning lists.
_SHOWN: Final = 5


class Matching:
    """Matches literals with names and cells, with warnings for inexact matches."""

    schema: Schema
    on_unknown: OnUnknown
    warnings: list[str]
    #: Remarks about the current query, for the trace.
    remarks: list[str]

    # -- remarks and warnings ----------------------------------------------------------------------

    def warn(self, message: str) -> None:
        """Add a warning to the answer, once, and to the step."""
        if message not in self.warnings:
            self.warnings.append(message)
        self.remark(message)

    def remark(self, message: str) -> None:
        """Add a remark to the trace of the current query."""
        if message not in self.remarks:
            self.remarks.append(message)

    def unknown(self, error: UnknownNameError) -> None:
        """Raise the error, or with `on_unknown="empty"` warn that the name matches nothing."""
        if self.on_unknown != "empty":
            raise error
        self.warn(f"{error}; it matches nothing")

    def near(self, what: str, name: str, matches: Sequence[Match]) -> None:
        """Warn which similar names were used, and how similar they are."""
        names = list(dict.fromkeys(match.name for match in matches))
        if matches[0].how == "similar":
            self.warn(f"{what} {name!r} is read as {_listed(names)} (similarity {matches[0].score:.2f})")
        elif matches[0].how == "folded":
            self.folded(what, name, names)

    def folded(self, what: str, name: str, names: Sequence[str]) -> None:
        """Warn of names that differ in case, accents or white space."""
        self.warn(f"{what} {name!r} is read as {_listed(names)} ({_FOLDED})")

    def written(self, what: str, name: str, names: Sequence[str]) -> None:
        """Warn of predicates or qualifiers with another spelling."""
        if all(fold(candidate) == fold(name) for candidate in names):
            self.folded(what, name, names)
        else:
            self.warn(f"{what} {name!r} is read as {_listed(names)} ({DIFFERS})")

    # -- literals as tests -------------------------------------------------------------------------

    def condition(self, operator: alg.Operator, literal: Literal, column: Column, what: str) -> alg.Condition:
        """Return a test of a column's values against a literal."""
        if operator == "=":
            return self.equality(literal, column, what)
        if operator == "!=":
            return unlike(self.equality(literal, column, what, unlike=True), column.kinds)
        typed = literal_tests(operator, literal.text, column.kinds, european=ambiguous(literal.text) and column.european)
        for remark in typed.remarks:
            self.warn(remark)
        if typed.conditions:
            return alg.any_of(typed.conditions)
        if typed.refused:
            raise LiteralError(f"{what}: {typed.refused}, which do not compare", span=literal.span, hint=_IN_ITS_UNIT)
        types = {kind for kind, _ in column.kinds}
        if types & {Kind.TEXT, Kind.ENTITY} or not types:
            if operator in (">=", "<=") and types <= {Kind.TEXT, Kind.ENTITY} and _amount(literal.text) is None:
                # Models write >= with a text that is not a number where they mean =.
                self.warn(f"{what}: the values are texts; {operator} {literal.text!r} is read as =")
                return self.equality(literal, column, what)
            if types == {Kind.TEXT} and (tests := self.by_number(operator, literal, column, what)) is not None:
                return tests
            if types:
                self.warn(f"{what}: the values are texts; {operator} {literal.text!r} compares by code point")
            return alg.Compare(operator, collapse(literal.text))
        types_listed = " or ".join(sorted(kind.name.lower() for kind in types))
        raise LiteralError(
            f"{what}: {literal.text!r} cannot be read as {types_listed}, the type of the values",
            span=literal.span,
            hint="a year is 1960, a day 1960-02-01",
        )

    def by_number(self, operator: alg.Operator, literal: Literal, column: Column, what: str) -> alg.Condition | None:
        """Return a numeric comparison for a column of texts that mostly begin with a number, else None.

        It becomes a test for the texts that satisfy it.
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
        matching = [text for text, number in numbers.items() if number is not None and compare(exact(number), bound)]
        return alg.any_of([alg.Compare("=", collapse(text)) for text in matching] or [alg.Compare("<", "")])

    def equality(self, literal: Literal, column: Column, what: str, *, unlike: bool = False) -> alg.Condition:
        """Return the test of `=`: cells with this text, equal values, else cells that contain it or are similar."""
        text = literal.text
        typed = literal_tests("=", text, column.kinds, european=ambiguous(text) and column.european)
        types = {kind for kind, _ in column.kinds}
        textual = bool(types & {Kind.TEXT, Kind.ENTITY})
        if len(column) > LARGE and (typed.conditions or (textual and self.schema.has_text(collapse(text)))):
            tests = [*typed.conditions, alg.Compare("=", collapse(text))] if textual else typed.conditions
            return alg.any_of(tests)
        if cell_values := self.same(text, column, what, typed):
            # A literal that is the text of a cell ignores readings that need a remark.
            tests = [exactly(value) for value in cell_values]
            return alg.any_of(list(dict.fromkeys([*tests, *([] if typed.remarks else typed.conditions)])))
        for remark in typed.remarks:
            self.warn(remark)
        return self._nearly(literal, column, what, typed, unlike)

    def same(self, text: str, column: Column, what: str, typed: LiteralTests | None = None) -> list[Value]:
        """Return the values of the cells with a text, else of those equal but for case, accents or white space.

        The latter give a warning, unless `typed` already reads the literal as their values.
        """
        folded = column.folded.get(fold(text), [])
        exact_texts = [item for item in folded if item == text] or [item for item in folded if collapse(item) == collapse(text)]
        values = list(dict.fromkeys(value for item in exact_texts or folded for value in column.cells[item]))
        typed_values = {test.value for test in typed.conditions if isinstance(test, alg.Compare)} if typed is not None else set()
        if folded and not exact_texts and not typed_values.issuperset(values):
            self.folded(what, text, folded)
        return values

    def _nearly(self, literal: Literal, column: Column, what: str, typed: LiteralTests, unlike: bool) -> alg.Condition:
        """Return the test of `=` for a literal that is not the text of a cell.

        It matches equal values, else cells that contain the literal or are similar.
        """
        text, types = literal.text, {kind for kind, _ in column.kinds}
        textual = bool(types & {Kind.TEXT, Kind.ENTITY})
        # Typed cells are compared as values, but some match by part of their text as well: 1998/99 as
        # 1998, and 1.69 m (5 ft 7 in) as 5 ft 7 in.
        also_by_text = [
            item for item, values in watched(column.cells.items()) if typed.converted or any(_is_span(value) for value in values)
        ]
        cells: list[str] = []
        if textual or not typed.conditions or also_by_text:
            searched = also_by_text if not textual and typed.conditions else None
            if typed.certain:
                # €2 is not part of $1.2; only cells that are texts may contain it.
                searched = [
                    item for item, values in watched(column.cells.items()) if any(isinstance(value, str) for value in values)
                ]
            cells = self.containing(text, column, what, among=searched)
        if typed.conditions:
            tests = [*typed.conditions, *(exactly(value) for item in cells for value in column.cells[item])]
            return alg.any_of(list(dict.fromkeys(tests)))
        if not cells:
            if typed.refused and typed.certain and not unlike:
                raise LiteralError(f"{what}: {typed.refused}, which do not compare", span=literal.span, hint=_IN_ITS_UNIT)
            number = inner_number(text)
            if number is not None and types == {Kind.QUANTITY} and not typed.certain:
                tests = literal_tests("=", str(number), column.kinds).conditions
                self.warn(f"{what}: {typed.refused or 'the values are numbers'}; {text!r} is read as {number}")
                return alg.any_of(tests)
            if typed.refused and (typed.certain or not textual):
                self.warn(f"{what}: {typed.refused}; all values differ from it")
                return alg.Compare("=", collapse(text))
            cells = self.similar(literal, column, what, unlike=unlike)
        if not cells:
            return alg.Compare("=", collapse(text))
        values = dict.fromkeys(value for item in cells for value in column.cells[item])
        return alg.any_of([exactly(value) for value in values])

    def containing(self, text: str, column: Column, what: str, *, among: list[str] | None = None) -> list[str]:
        """Return the cells that contain the words of the literal in sequence."""
        phrase = f" {words(text)} "
        if not phrase.strip():
            return []
        result = [item for item in watched(column.cells if among is None else among) if phrase in f" {words(item)} "]
        if result:
            self.warn(f"{what} {text!r} is read as part of {_listed(result)}")
        return result

    def similar(self, literal: Literal, column: Column, what: str, *, unlike: bool) -> list[str]:
        """Return the cells most similar to a literal; if there are none, raise an error, or warn for `!=`."""
        resolution = column.resolve(literal.text)
        if resolution.matches:
            self.near(what, literal.text, resolution.matches)
            return list(dict.fromkeys(match.name for match in resolution.matches))
        near = tuple(dict.fromkeys(match.name for match in resolution.near))
        hint = None if near else "no value of this column is similar to it"
        error = UnknownNameError(what, literal.text, candidates=near, span=literal.span, hint=hint)
        if unlike:
            self.warn(f"{error}; all values differ from it")
        else:
            self.unknown(error)
        return []


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(map(repr, names[:_SHOWN])) + (f" and {more} more" if more > 0 else "")


def _amount(text: str) -> Quantity | None:
    """Return the number that a literal is, or the only number in it."""
    return read_quantity(text) or inner_number(text)


def _is_span(value: object) -> bool:
    return isinstance(value, Time) and value.precision is Precision.SPAN


def words(text: str) -> str:
    """Return the folded words of a text, with single spaces and without punctuation."""
    return " ".join("".join(c if c.isalnum() else " " for c in fold(text)).split())


# -- context -----------------------------------------------------------------------------------------
# No facts are read: a relation is resolved among the predicates of its source, a head among the heads
# of the relation, a tail among the texts of the column. All are vocabularies of the open generation.


#: Words for the validity of a fact, folded, with the part of the interval.
TIME_WORDS: Final = {"time": "interval", "start time": "start", "start_time": "start", "end time": "end", "end_time": "end"}
#: Texts that mean a missing cell, folded; tables have no statement for such a cell.
MISSING: Final = frozenset({"", "n/a", "na", "none", "null", "-", "–", "—", "--", "empty", "blank", "missing", "nan"})
#: How many keys are suggested for an unknown one.
_MAX_KEYS: Final = 12
ROW_NUMBER: Final = frozenset({"row_number", "row number", "rownumber", "row"})


class Context(Matching):
    """Resolves the names of one program against a schema."""

    def __init__(
        self,
        schema: Schema,
        *,
        on_unknown: OnUnknown = "error",
        source: str | None = None,
        llm_function: LlmFunction | Mapping[str, LlmFunction] | None = None,
        target_type: str | None = None,
        question: str | None = None,
    ) -> None:
        self.schema, self.on_unknown, self.llm_function, self.target_type = schema, on_unknown, llm_function, target_type
        self.question = question or ""
        self.linker = Linker.of(schema)
        self.warnings: list[str] = []
        #: Remarks about the current query, for the trace.
        self.remarks: list[str] = []
        if not (source is None or isinstance(source, str)):
            raise OptionError(f"a source is called by its name, a text, not {type(source).__name__}")
        self.scope = None if source is None else self.source(source, None)
        if self.scope is None and len(schema.sources) == 1:
            self.scope = schema.sources[0]

    # -- sources -----------------------------------------------------------------------------------

    def source(self, name: str, span: Span | None) -> str:
        """Return the source of a name; raises `UnknownNameError`."""
        sources = self.schema.sources
        if name in sources:
            return name
        same = [item for item in sources if fold(item) == fold(name)]
        if len(same) == 1:
            return same[0]
        raise UnknownNameError("source", name, candidates=nearest(name, sources), span=span, hint="status() lists the sources")

    def scoped(self, expression: Expression | None) -> str | None:
        """Return the source of a query, by default that of the program."""
        if expression is None:
            return self.scope
        if not isinstance(expression, Literal):
            raise PlanError("source takes the name of a source", span=expression.span)
        return self.source(expression.text, expression.span)

    def is_table(self, source: str | None) -> bool:
        """Whether a source has rows."""
        return source is not None and source in self.linker.tables

    @property
    def table_scope(self) -> str | None:
        """The only table of the graph, or None."""
        tables = self.linker.tables
        return next(iter(tables)) if len(tables) == 1 else None

    # -- predicates --------------------------------------------------------------------------------

    def predicates(self, expression: Expression, source: str | None, what: str = "relation") -> tuple[str, ...]:
        """Return the predicates that a literal, or a list of them, names.

        A name that the graph does not have raises an error with candidates; with `on_unknown="nearest"` it
        becomes the most similar one (all ties), as a `Substitution`.
        """
        if isinstance(expression, Items):
            return tuple(dict.fromkeys(name for item in expression.items for name in self.predicates(item, source, what)))
        if not isinstance(expression, Literal):
            raise PlanError(
                f"{what} takes a name, not the output of a query",
                span=expression.span,
                hint=f"write {what}='...' in the query itself",
            )
        result = self.find_predicates(expression.text, source)
        if result:
            if collapse(expression.text) not in result:
                self.written(what, expression.text, result)
            return result
        names, candidates = self._near_predicates(expression.text, source)
        if names and self.on_unknown == "nearest":
            self.warn(Substitution(what, expression.text, names, [candidate for candidate in candidates if candidate not in names]))
            return names
        hint = None if source is None else f"looked for in the source {source!r}"
        if what == "key":
            keys = list(self.schema.qualifiers) + (["time", "start time", "end time"] if self.linker.temporal else [])
            candidates = list(dict.fromkeys([*near_names(expression.text, keys), *candidates, *keys]))[:_MAX_KEYS]
            hint = hint or "a key is a qualifier of the facts, or says when they hold"
        elif self.schema.has_qualifier(collapse(expression.text)):
            hint = f"it is a qualifier of facts: key={collapse(expression.text)!r} beside their relation"
        self.unknown(UnknownNameError(what, expression.text, candidates=candidates, span=expression.span, hint=hint))
        return ()

    def _near_predicates(self, text: str, source: str | None) -> tuple[tuple[str, ...], list[str]]:
        """Return the predicates nearest to a name, and all candidates, best first.

        Nearest is the only one that contains its words, else the most similar.
        """
        forms = self.linker.forms(source)
        all_names = forms.names
        phrase = f" {words(text)} "
        containing = [name for name in all_names if phrase in f" {words(name)} "] if phrase.strip() else []
        resolution = self.linker.nearest_predicates(text, source, threshold=THRESHOLD)
        matches = [match.name for match in resolution.matches]
        names = containing if len(containing) == 1 else matches
        near = [*forms.same(text), *names, *matches, *near_names(text, all_names), *(match.name for match in resolution.near)]
        return tuple(dict.fromkeys(names)), list(dict.fromkeys(near))[:_MAX_KEYS]

    def find_predicates(self, name: str, source: str | None) -> tuple[str, ...]:
        """Return the predicates of a name.

        An exact match comes first, then all that differ in case and accents, then the only one that differs
        in spacing, plural or tense.
        """
        exact = collapse(name)
        if source is None and self.linker.sources_of(exact):
            return (exact,)
        matches = self.linker.predicates(source).get(fold(name), ())
        if not matches:
            matches = self.linker.forms(source).same(name)
            return tuple(matches) if len(matches) == 1 else ()
        return (exact,) if exact in matches else tuple(matches)

    def repeats(self, name: str, table: str) -> list[str]:
        """Return the columns that repeat a header: "Country (2)", "Country (3)"."""
        names = {item for spellings in self.linker.predicates(table).values() for item in spellings}
        result: list[str] = []
        while (repeat := f"{name} ({len(result) + 2})") in names:
            result.append(repeat)
        return result

    def sources_of(self, predicates: Sequence[str], source: str | None, span: Span | None) -> tuple[str, ...]:
        """Return the sources of a query over these predicates; several tables without a scope are an error."""
        if source is not None:
            return (source,)
        result = tuple(dict.fromkeys(item for name in predicates for item in self.linker.sources_of(name)))
        if len(result) > 1 and any(item in self.linker.tables for item in result):
            raise AmbiguousNameError(
                f"{predicates[0]!r} stands in {len(result)} sources",
                candidates=result,
                span=span,
                hint="source='...' in the query, or source= of the whole program, selects one",
            )
        return result

    def rows_of(self, span: Span | None) -> str:
        """Return the only table of the graph; raises if there are several."""
        if len(self.linker.tables) != 1:
            raise AmbiguousNameError(
                f"row_number is one of {len(self.linker.tables)} tables",
                candidates=sorted(self.linker.tables)[:20],
                span=span,
                hint="source='...' in the query, or source= of the whole program, selects one",
            )
        return next(iter(self.linker.tables))

    # -- heads -------------------------------------------------------------------------------------

    def named(
        self, literal: Literal, what: str, heads: tuple[str, ...] | None, *, least: float = ENTITY_THRESHOLD
    ) -> tuple[str, ...]:
        """Return the names of the entities that a literal means.

        Exact names come first, then folded or similar ones among the heads of the predicates.
        """
        name = self.exact_name(literal)
        if self.schema.has_entity(name):
            return (name,)
        aliases = tuple(dict.fromkeys(item for _, item in self.schema.also_called(name)))
        if aliases:
            self.warn(f"no entity is called {literal.text!r}; it is an alternative label of {', '.join(map(repr, aliases[:3]))}")
            return aliases
        vocabulary = self.linker.heads(heads)
        result = resolve(name, vocabulary, threshold=least)
        if not result.matches and heads is not None:
            among_all = resolve(name, self.linker.entities, threshold=least)
            result = among_all if among_all.matches and among_all.matches[0].how != "similar" else result
        if not result.matches:
            hint = "names are matched exactly, without case, then by likeness"
            if self.schema.has_id(name):
                hint = "it is the id of an entity, and names are asked for"
            near = tuple(dict.fromkeys(match.name for match in result.near))
            self.unknown(UnknownNameError(what, literal.text, candidates=near, span=literal.span, hint=hint))
            return (name,)
        self.near(what, literal.text, result.matches)
        return tuple(dict.fromkeys(match.name for match in result.matches))

    def exact_name(self, literal: Literal) -> str:
        """Return the text of a literal if an entity has exactly this name, else with its white space collapsed."""
        return literal.text if self.schema.has_entity(literal.text) else collapse(literal.text)

    def rows_with(self, literal: Literal, table: str) -> alg.Entities:
        """Return the rows of a table with a cell equal to a literal."""
        self.warn(f"{literal.text!r} as a head means the rows of {table!r} with such a cell")
        folded_literal = fold(literal.text)
        names = [name for spellings in self.linker.predicates(table).values() for name in spellings]
        texts = {name: self.linker.column((name,), table).folded.get(folded_literal, ()) for name in names}
        exact_columns = [name for name in names if any(collapse(text) == collapse(literal.text) for text in texts[name])]
        columns = tuple(exact_columns or [name for name in names if texts[name]]) or None
        column = self.linker.column(columns, table)
        test = self.equality(literal, column, f"cell of {table!r}")
        return alg.Reached(alg.Where(alg.Scan(None, columns, "subject", "subject", source=table), test))

    # -- universes ---------------------------------------------------------------------------------

    def rows(self, table: str) -> alg.AllEntities:
        return alg.AllEntities((EntityKind.ROW,), table)


# -- rules of calls ----------------------------------------------------------------------------------


class Lowering(Protocol):
    """The program being lowered, as the rules of its calls see it."""

    context: Context
    program: Program
    #: The last operator sorted in descending order, which an answer does not show.
    descending: alg.Node | None
    #: The current query, for external functions.
    asked: CallContext

    def evaluate(self, expression: Expression) -> Result:
        """Return the result of an expression."""

    def truth(self, expression: Expression) -> alg.Values | alg.Scalar:
        """Return an expression as a truth value."""

    def as_bag(self, result: Result) -> alg.Values:
        """Return any result as values: rows by their shown column, entities by name, a literal as it reads."""

    def column_values(self, result: Result, function: str) -> Result:
        """Return values for a function.

        Rows give the column used last; entities that a relation leads to give one for each of its facts.
        """

    def shown(self, result: Result) -> Result:
        """Return rows as a column: the one most similar to the target type, else the one used last, else the
        first.
        """

    def shown_column(self, result: Result) -> str | None:
        """Return the column that represents rows."""

    def entities(self, result: Result, table: str | None, sources: Sequence[str]) -> alg.Entities:
        """Return a result as entities: rows of a table, or entities of the graph by carrier, id or name.

        `table` is the source of the rows, None for entities of the graph; `sources` are those of the
        relation that is followed next.
        """


#: Lowers a call of a native function.
Rule = Callable[[Lowering, Application], Result]

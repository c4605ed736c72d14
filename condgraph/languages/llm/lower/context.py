"""What lowering shares: the schema and its names, the scope of a query, literals as tests, warnings
and remarks for the trace.

Nothing here looks at facts: a relation is resolved among the predicates of its source, a head among
the heads of the relation, a tail among the texts of the column, all of which are vocabularies of
the open generation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from condgraph.engine.algebra import (
    AllEntities,
    Entities,
    Reached,
    Scan,
    Where,
)
from condgraph.engine.errors import AmbiguousNameError, OptionError, PlanError, UnknownNameError, nearest
from condgraph.engine.facts import EntityKind
from condgraph.engine.outside import LlmFunction
from condgraph.engine.schema import Schema
from condgraph.engine.values import collapse
from condgraph.languages.llm.lower.matching import Matching, words
from condgraph.languages.llm.syntax.tree import Expression, Items, Literal, Span
from condgraph.names.graph_names import ENTITY_THRESHOLD, Linker
from condgraph.names.resolve import THRESHOLD, resolve
from condgraph.names.words import near_names
from condgraph.vectors.encoder import fold

#: Words for when a fact holds, folded, with the part they ask for.
TIME_WORDS: Final = {"time": "interval", "start time": "start", "start_time": "start", "end time": "end", "end_time": "end"}
#: What stands for a missing cell, folded; tables have no statement for these.
MISSING: Final = frozenset({"", "n/a", "na", "none", "null", "-", "–", "—", "--", "empty", "blank", "missing", "nan"})
#: Keys that are offered for one that there is none of.
_MOST_KEYS: Final = 12
ROW_NUMBER: Final = frozenset({"row_number", "row number", "rownumber", "row"})


class Context(Matching):
    """One program being lowered against one schema."""

    def __init__(
        self,
        schema: Schema,
        *,
        lenient: bool = False,
        source: str | None = None,
        llm_function: LlmFunction | Mapping[str, LlmFunction] | None = None,
        target_type: str | None = None,
        question: str | None = None,
    ) -> None:
        self.schema, self.lenient, self.llm_function, self.target_type = schema, lenient, llm_function, target_type
        self.question = question or ""
        self.linker = Linker.of(schema)
        self.warnings: list[str] = []
        #: Remarks on the query at hand, for the trace.
        self.remarks: list[str] = []
        if not (source is None or isinstance(source, str)):
            raise OptionError(f"a source is called by its name, a text, not {type(source).__name__}")
        self.scope = None if source is None else self.source(source, None)
        if self.scope is None and len(schema.sources) == 1:
            self.scope = schema.sources[0]

    # -- sources -----------------------------------------------------------------------------------

    def source(self, name: str, span: Span | None) -> str:
        """A source by its name."""
        sources = self.schema.sources
        if name in sources:
            return name
        same = [one for one in sources if fold(one) == fold(name)]
        if len(same) == 1:
            return same[0]
        raise UnknownNameError("source", name, candidates=nearest(name, sources), span=span, hint="status() lists the sources")

    def scoped(self, expression: Expression | None) -> str | None:
        """The source a query names, or the one of the whole program."""
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
        """The only table there is, where a query names none."""
        tables = self.linker.tables
        return next(iter(tables)) if len(tables) == 1 else None

    # -- predicates --------------------------------------------------------------------------------

    def predicates(self, expression: Expression, source: str | None, what: str = "relation") -> tuple[str, ...]:
        """The predicates that a literal (or a list of them) names; ties of near names are all
        taken.
        """
        if isinstance(expression, Items):
            return tuple(dict.fromkeys(name for item in expression.items for name in self.predicates(item, source, what)))
        if not isinstance(expression, Literal):
            raise PlanError(
                f"{what} takes a name, not the output of a query",
                span=expression.span,
                hint=f"write {what}='...' in the query itself",
            )
        found = self.find_predicates(expression.text, source)
        if found:
            if collapse(expression.text) not in found:
                self.folded(what, expression.text, found)
            return found
        wanted = f" {words(expression.text)} "
        holding = [name for several in self.linker.predicates(source).values() for name in several if wanted in f" {words(name)} "]
        if len(holding) == 1 and wanted.strip():
            self.warn(f"{what} {expression.text!r} is read as part of {holding[0]!r}")
            return tuple(holding)
        resolution = self.linker.resolve_predicate(expression.text, source, threshold=THRESHOLD)
        names = tuple(dict.fromkeys(match.name for match in resolution.matches))
        if not names:
            candidates = list(dict.fromkeys(match.name for match in resolution.near))
            hint = None if source is None else f"looked for in the source {source!r}"
            if what == "key":
                keys = list(self.schema.qualifiers) + (["time", "start time", "end time"] if self.linker.temporal else [])
                candidates = list(dict.fromkeys([*near_names(expression.text, keys), *candidates, *keys]))[:_MOST_KEYS]
                hint = hint or "a key is a qualifier of the facts, or says when they hold"
            elif self.schema.has_qualifier(collapse(expression.text)):
                hint = f"it is a qualifier of facts: key={collapse(expression.text)!r} beside their relation"
            self.unknown(UnknownNameError(what, expression.text, candidates=candidates, span=expression.span, hint=hint))
            return ()
        self.near(what, expression.text, resolution.matches)
        return names

    def find_predicates(self, name: str, source: str | None) -> tuple[str, ...]:
        """Predicates of exactly this name, or of the same name but for case and accents."""
        wanted = collapse(name)
        if source is None and self.linker.sources_of(wanted):
            return (wanted,)
        same = self.linker.predicates(source).get(fold(name), ())
        return (wanted,) if wanted in same else tuple(same)

    def repeats(self, name: str, table: str) -> list[str]:
        """The columns that repeat the header of another one: "Country (2)", "Country (3)"."""
        names = {one for several in self.linker.predicates(table).values() for one in several}
        found: list[str] = []
        while (other := f"{name} ({len(found) + 2})") in names:
            found.append(other)
        return found

    def sources_of(self, predicates: Sequence[str], source: str | None, span: Span | None) -> tuple[str, ...]:
        """The sources that a query over these predicates speaks of; several tables without a scope
        are an error.
        """
        if source is not None:
            return (source,)
        found = tuple(dict.fromkeys(one for name in predicates for one in self.linker.sources_of(name)))
        if len(found) > 1 and any(one in self.linker.tables for one in found):
            raise AmbiguousNameError(
                f"{predicates[0]!r} stands in {len(found)} sources",
                candidates=found,
                span=span,
                hint="source='...' in the query, or source= of the whole program, says which is meant",
            )
        return found

    def rows_of(self, span: Span | None) -> str:
        """The only table there is; several are an error."""
        if len(self.linker.tables) != 1:
            raise AmbiguousNameError(
                f"row_number is one of {len(self.linker.tables)} tables",
                candidates=sorted(self.linker.tables)[:20],
                span=span,
                hint="source='...' in the query, or source= of the whole program, says which is meant",
            )
        return next(iter(self.linker.tables))

    # -- heads -------------------------------------------------------------------------------------

    def named(
        self, literal: Literal, what: str, heads: tuple[str, ...] | None, *, least: float = ENTITY_THRESHOLD
    ) -> tuple[str, ...]:
        """The names of entities that a literal means: exact, else folded or near among the heads of
        the predicates.
        """
        name = collapse(literal.text)
        if self.schema.has_entity(name):
            return (name,)
        also = tuple(dict.fromkeys(one for _, one in self.schema.also_called(name)))
        if also:
            self.warn(f"no entity is called {literal.text!r}; it is an alternative label of {', '.join(map(repr, also[:3]))}")
            return also
        vocabulary = self.linker.heads(heads)
        found = resolve(name, vocabulary, threshold=least)
        if not found.matches and heads is not None:
            everywhere = resolve(name, self.linker.entities, threshold=least)
            found = everywhere if everywhere.matches and everywhere.matches[0].how != "similar" else found
        if not found.matches:
            hint = "names are matched exactly, without case, then by likeness"
            if self.schema.has_id(name):
                hint = "it is the id of an entity, and names are asked for"
            near = tuple(dict.fromkeys(match.name for match in found.near))
            self.unknown(UnknownNameError(what, literal.text, candidates=near, span=literal.span, hint=hint))
            return (name,)
        self.near(what, literal.text, found.matches)
        return tuple(dict.fromkeys(match.name for match in found.matches))

    def rows_with(self, literal: Literal, table: str) -> Entities:
        """The rows of a table with a cell equal to a literal."""
        self.warn(f"{literal.text!r} as a head means the rows of {table!r} with such a cell")
        wanted = fold(literal.text)
        names = [name for several in self.linker.predicates(table).values() for name in several]
        texts = {name: self.linker.column((name,), table).folded.get(wanted, ()) for name in names}
        exactly_so = [name for name in names if any(collapse(one) == collapse(literal.text) for one in texts[name])]
        holding = tuple(exactly_so or [name for name in names if texts[name]]) or None
        column = self.linker.column(holding, table)
        test = self.equality(literal, column, f"cell of {table!r}")
        return Reached(Where(Scan(None, holding, "subject", "subject", source=table), test))

    # -- universes ---------------------------------------------------------------------------------

    def rows(self, table: str) -> AllEntities:
        """Every row of a table."""
        return AllEntities((EntityKind.ROW,), table)

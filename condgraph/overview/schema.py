"""What a graph holds, as people see it: text for prompts, tables for notebooks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from condgraph.engine.html import page, table
from condgraph.overview.records import Overview
from condgraph.overview.rows import sections
from condgraph.overview.text import within_budget


@dataclass(frozen=True, slots=True, repr=False)
class GraphSchema(Overview):
    """What a graph holds (`Graph.schema`); the fields are those of `Overview`.

    `str(schema)` and `schema.text(tokens=...)` are plain text, `schema.data()` is for JSON.
    """

    def text(self, tokens: int = 1000, *, count: Callable[[str], int] | None = None) -> str:
        """The schema as plain text of at most `tokens` tokens, for the prompt of a language model.

        What is most used comes first, and the last line says what did not fit. Names stand as JSON
        strings without control characters, the long ones cut, so that none ends its line. Tokens
        are estimated, rather too many than too few (`models.tokens.estimate`); `count` is a
        function of a tokenizer, from text to a number of tokens, to count with instead. Raises
        `OptionError` for fewer than 0 tokens; a budget too small for anything gives "".
        """
        return within_budget(self, tokens, count)

    def __str__(self) -> str:
        return self.text(4000)

    def __repr__(self) -> str:
        return (
            f"<GraphSchema: {self.statements:,} statements, {len(self.predicates):,} predicates, "
            f"{len(self.concepts):,} concepts, {len(self.sources):,} sources>"
        )

    def _repr_html_(self) -> str:
        """The same as small tables, for notebooks."""
        return page(repr(self), (table(*section) for section in sections(self)))

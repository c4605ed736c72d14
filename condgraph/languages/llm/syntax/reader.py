"""Words of an expression one after the other, as its grammar takes them; how deep and how long an
expression may be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from condgraph.engine.bounds import check
from condgraph.engine.errors import ParseError
from condgraph.languages.llm.syntax.tokens import DOUBLE, SINGLE, SOME, Token, scan
from condgraph.languages.llm.syntax.tree import Expression, Notice, Span

#: Parentheses, lists, texts within texts and the like may lie this deep, and a line may have this
#: many operators and indexes. Both together bound the depth of a tree, so that walking one never
#: runs out of stack.
MOST_DEPTH: Final = 20
MOST_OPERATORS: Final = 200
#: A quote around the whole expression. An apostrophe is one only before a call:
#: `'A' if ... else 'B'` begins with a text.
_WRAPPED: Final = re.compile(rf"[{DOUBLE}]|[{SINGLE}](?=[^\W\d][\w.]*+\s*+\(|if\b)")


@dataclass(slots=True)
class Limits:
    """How deep the expressions of one line lie at the moment, and how many operators it has had."""

    depth: int = 0
    operators: int = 0

    def operator(self, span: Span) -> None:
        """Count an operator; raise `ParseError` where there are too many."""
        self.operators += 1
        if self.operators > MOST_OPERATORS:
            raise ParseError(f"more than {MOST_OPERATORS} operators in one line", span=span)


class TokenReader:
    """The words of `text[start:stop]`, and where the reading stands."""

    def __init__(
        self,
        text: str,
        start: int,
        stop: int,
        known: Mapping[str, int],
        notices: list[Notice],
        *,
        limits: Limits | None = None,
    ) -> None:
        self._text = text
        self._known = known
        self._notices = notices
        self._limits = limits or Limits()
        wrapper = None
        while start < stop and text[start] in " \t`*":
            start += 1
        if limits is None and (found := _WRAPPED.match(text, start, stop)) is not None:
            wrapper = SINGLE if found[0] in SINGLE else DOUBLE
            start = found.end()
        self._tokens = scan(text, start, stop, wrapper, notices)
        self._at = 0

    @property
    def end(self) -> int:
        """Offset at which the expression ended."""
        return self._tokens[-1].span[0]

    def finish(self) -> None:
        """Raise `ParseError` unless every word was used."""
        token = self._peek()
        if token.kind != "end":
            hint = None
            if token.kind == "operator":
                hint = "a comparison has one operator; two bounds are two arguments"
            elif token.text == "if":
                hint = "a conditional needs both branches: if(test, a, b)"
            raise ParseError(f"{self._written(token)!r} is not expected here", span=token.span, hint=hint)

    # Words

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        if not self._at % SOME:
            check()
        return token

    def _written(self, token: Token) -> str:
        return self._text[slice(*token.span)] or "the end of the line"

    def _symbol(self, text: str, ahead: int = 0) -> bool:
        token = self._peek(ahead)
        return token.kind == "symbol" and token.text == text

    def _word(self, *texts: str, ahead: int = 0) -> bool:
        token = self._peek(ahead)
        return token.kind == "word" and token.text.casefold().rstrip(".") in texts

    def _skip(self, *symbols: str) -> bool:
        token = self._peek()
        if token.kind == "symbol" and token.text in symbols:
            self._at += 1
            return True
        return False

    def _skip_word(self, *words: str) -> bool:
        if self._word(*words):
            self._at += 1
            return True
        return False

    def _expect(self, symbol: str, opened: Token) -> Token:
        if not self._symbol(symbol):
            token = self._peek()
            if token.kind == "end":
                raise ParseError(
                    f"{opened.text!r} is never closed",
                    span=opened.span,
                    hint="the line may have been cut off, or a quote is missing",
                )
            raise ParseError(
                f"{self._written(token)!r} is not expected here", span=token.span, hint=f"a comma or {symbol!r} would fit"
            )
        return self._next()

    def _deeper(self, node: Callable[[], Expression]) -> Expression:
        if self._limits.depth == MOST_DEPTH:
            raise ParseError(f"nested more than {MOST_DEPTH} deep", span=self._peek().span)
        self._limits.depth += 1
        try:
            return node()
        finally:
            self._limits.depth -= 1

    def _span(self, begin: int) -> Span:
        """From `begin` to the end of the word read last."""
        return begin, self._tokens[self._at - 1].span[1] if self._at else begin

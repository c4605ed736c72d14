"""Operators of the expression grammar by how tightly they bind; see `expression` for the grammar."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, cast

from condgraph.engine.errors import ParseError
from condgraph.languages.llm.syntax.reader import TokenReader
from condgraph.languages.llm.syntax.tree import (
    CompareOp,
    Comparison,
    Expression,
    Infix,
    InfixOp,
    Item,
    Literal,
    Not,
    Notice,
    Ternary,
)

#: Words that stand for "the first operand" in front of an operator and say nothing themselves:
#: `set1='...' > set2='...'`.
_PLACEHOLDER: Final = re.compile(r"(?:set|value|count|x|y|a|b)\d*")


class OperatorReader(TokenReader):
    """Reads conditionals, logic, comparisons and arithmetic; what they stand between is read by
    `_primary`.
    """

    def _primary(self) -> Expression:
        raise NotImplementedError

    def _if(self) -> Expression:
        raise NotImplementedError

    def _begins_argument(self, ahead: int) -> bool:
        raise NotImplementedError

    # The grammar, from the loosest binding to the tightest

    def expression(self) -> Expression:
        """One expression; what follows it is left for `finish`."""
        return self._deeper(self._expression)

    def _expression(self) -> Expression:
        begin = self._peek().span[0]
        if self._word("if"):
            return self._if()
        value = self._either()
        if self._symbol("?"):
            self._next()
            then = self.expression()
            if not self._skip(":"):
                raise ParseError(
                    "'?' without its ':'", span=self._peek().span, hint="a conditional needs both branches: test ? a : b"
                )
            return Ternary(value, then, self.expression(), self._span(begin))
        if self._word("if") and not self._symbol("(", 1):
            self._next()
            condition = self._either()
            if self._skip_word("else"):
                return Ternary(condition, value, self.expression(), self._span(begin))
            raise ParseError(
                "a condition without 'else'", span=self._span(begin), hint="a conditional needs both branches: if(test, a, b)"
            )
        return value

    def _chain(self, part: Callable[[], Expression], match: Callable[[], InfixOp | None]) -> Expression:
        begin = self._peek().span[0]
        value = part()
        while (op := match()) is not None:
            self._limits.operator(self._next().span)
            value = Infix(op, value, part(), self._span(begin))
        return value

    def _either(self) -> Expression:
        return self._chain(self._both, lambda: "or" if self._word("or") and not self._begins_argument(1) else None)

    def _both(self) -> Expression:
        return self._chain(self._opposite, lambda: "and" if self._word("and") and not self._begins_argument(1) else None)

    def _opposite(self) -> Expression:
        begin = self._peek().span[0]
        if self._word("not") and not self._word("in", ahead=1):
            self._next()
            inner = self._deeper(self._opposite)
            return Not(inner, self._span(begin))
        return self._comparison()

    def _comparison(self) -> Expression:
        begin = self._peek().span[0]
        left = self._labelled()
        negated = self._word("not") and self._word("in", ahead=1)
        if negated or self._word("in"):
            self._at += 1 + negated
            member = Infix("in", left, self._sum(), self._span(begin))
            return Not(member, member.span) if negated else member
        token = self._peek()
        if token.kind != "operator":
            return left
        self._next()
        return Comparison(cast(CompareOp, token.text), left, self._labelled(), self._span(begin))

    def _labelled(self) -> Expression:
        """A sum, without a placeholder and "=" in front of it."""
        token = self._peek()
        if (
            token.kind == "word"
            and _PLACEHOLDER.fullmatch(token.text)
            and self._peek(1).kind == "operator"
            and self._peek(1).text == "="
        ):
            self._notices.append(Notice(f"{token.text}= in front of an operand is left out", token.span))
            self._at += 2
        return self._sum()

    def _sum(self) -> Expression:
        return self._chain(self._product, lambda: self._infix("+", "-"))

    def _product(self) -> Expression:
        return self._chain(self._sign, lambda: self._infix("*", "/", "%"))

    def _infix(self, *symbols: str) -> InfixOp | None:
        token = self._peek()
        return cast(InfixOp, token.text) if token.kind == "symbol" and token.text in symbols else None

    def _sign(self) -> Expression:
        begin = self._peek().span[0]
        if self._symbol("-"):
            self._next()
            if self._peek().kind == "number" and not self._symbol("[", 1):
                return Literal("-" + self._next().text, False, self._span(begin))
            inner = self._deeper(self._sign)
            return Infix("-", Literal("0", False, (begin, begin)), inner, self._span(begin))
        value = self._primary()
        while self._symbol("["):
            opened = self._next()
            self._limits.operator(opened.span)
            negative = self._skip("-")
            index = self._next()
            if index.kind != "number" or not index.text.isascii() or not index.text.isdigit() or len(index.text) > 9:
                raise ParseError(
                    f"{self._written(index)!r} is not an index", span=index.span, hint="an index is a whole number: [0]"
                )
            self._expect("]", opened)
            value = Item(value, -int(index.text) if negative else int(index.text), self._span(begin))
        return value

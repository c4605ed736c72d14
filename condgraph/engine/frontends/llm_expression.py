"""The expression grammar of LLM queries: calls, comparisons, arithmetic, and the ways language models write "if".

    expression  := "if" choice | either [ "?" expression ":" expression | "if" either "else" expression ]
    either      := both { "or" both }          both := opposite { "and" opposite }
    opposite    := "not" opposite | comparison
    comparison  := sum [ ("=" | "!=" | "<" | ">" | "<=" | ">=" | ["not"] "in") sum ]
    sum         := product { ("+" | "-") product }      product := sign { ("*" | "/" | "%") sign }
    sign        := "-" sign | primary { "[" integer "]" }
    primary     := text | number | output_of_queryN | name "(" [ argument { "," argument } ] ")" | "(" ... ")" | "[" ... "]" | words
    argument    := [ name operator ] expression
    choice      := "(" test "," a "," b ")" | test ("then" | ":" | ",") ["return"] a ["," | ";"] "else" [":" | ","] ["return"] b

A text between quotes that holds nothing but such an expression over outputs (`condition='output_of_query2 > 2000'`) is that
expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from condgraph.engine.errors import ParseError, UnknownNameError
from condgraph.engine.frontends.llm_tokens import DOUBLE, REFERENCE, SINGLE, Token, scan
from condgraph.engine.frontends.llm_tree import (
    Argument,
    Call,
    CompareOp,
    Comparison,
    Expression,
    Infix,
    InfixOp,
    Item,
    Items,
    Literal,
    Not,
    Notice,
    OutputRef,
    Span,
    Ternary,
)

#: Parentheses, lists, texts within texts and the like may lie this deep, and a line may have this many operators and indexes.
#: Both together bound the depth of a tree, so that walking one never runs out of stack.
MOST_DEPTH: Final = 20
MOST_OPERATORS: Final = 200
_KEYWORDS: Final = frozenset({"then", "else", "and", "or", "in", "not", "return", "if"})
#: Keywords that name arguments as well: `if(test, then='A', else='B')`.
_BRANCHES: Final = frozenset({"then", "else"})
_PARAMETER: Final = re.compile(r"relation|(?:head|tail)_entity\d*|key|value\d*|source|set\d*|operator|unit|order|number\d*")
_MENTION: Final = re.compile(r"(?i)output_?(?:of_?)?query_?\d")
_OTHER_MENTION: Final = re.compile(r"(?i)_?query_?\d")
#: Words that stand for "the first operand" in front of an operator and say nothing themselves: `set1='...' > set2='...'`.
#: A quote around the whole expression. An apostrophe is one only before a call: `'A' if ... else 'B'` begins with a text.
_WRAPPED: Final = re.compile(rf"[{DOUBLE}]|[{SINGLE}](?=[^\W\d][\w.]*+\s*+\(|if\b)")
_UNBOUND: Final = re.compile(r"set\d+")
_PLACEHOLDER: Final = re.compile(r"(?:set|value|count|x|y|a|b)\d*")


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


class Parser:
    """Reads one expression from `text[start:stop]`.

    `known` maps the labels of the queries written so far to their positions. After `expression` and `finish`, `end` is where the
    expression ended. Errors are `ParseError`, or `UnknownNameError` for an output that no earlier query gives.
    """

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
            test = self._either()
            if self._skip_word("else"):
                return Ternary(test, value, self.expression(), self._span(begin))
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

    def _primary(self) -> Expression:
        token = self._next()
        if token.kind == "text":
            return self._quoted(token)
        if token.kind == "number":
            return self._words(token)
        if token.kind == "reference":
            return self._reference(token)
        if token.kind == "word" and token.text.casefold() not in _KEYWORDS:
            return self._call(token) if self._symbol("(") else self._words(token)
        if token.kind == "symbol" and token.text in "([{":
            return self._list(token)
        self._at -= 1
        hint = "the line is empty or was cut off" if token.kind == "end" else None
        raise ParseError(f"an expression is expected before {self._written(token)!r}", span=token.span, hint=hint)

    def _quoted(self, token: Token) -> Expression:
        """A text, or the expression over outputs that it holds."""
        start, stop = token.inner
        content = self._text[start:stop]
        if not _MENTION.search(content):
            return Literal(token.text, True, token.span)
        found = REFERENCE.fullmatch(content.strip())
        if found is not None:
            inner = scan(self._text, start, stop, None, self._notices)
            return self._reference(Token("reference", inner[0].text, token.span))

        def nested() -> Expression:
            parser = Parser(self._text, start, stop, self._known, self._notices, limits=self._limits)
            return parser.list_in_text(token.span)

        try:
            return self._deeper(nested)
        except UnknownNameError:
            raise
        except ParseError as error:
            raise ParseError(
                f"the text {content[:60]!r} mentions an output and is no expression: {error.message}",
                span=error.span or token.span,
                hint=error.hint or "write the output alone: 'output_of_query1'",
            ) from None

    def list_in_text(self, span: Span) -> Expression:
        """Expressions parted by commas up to the end, as one expression."""
        items = [self.expression()]
        while self._skip(","):
            items.append(self.expression())
        self.finish()
        if self.end < span[1] - 1 and self._text[self.end : span[1] - 1].strip():
            at = self.end
            raise ParseError(f"{self._text[at]!r} is not expected here", span=(at, at + 1))
        return items[0] if len(items) == 1 else Items(tuple(items), span)

    def _reference(self, token: Token) -> Expression:
        position = self._known.get(token.text)
        if position is None:
            raise UnknownNameError(
                "output",
                f"output_of_query{token.text}",
                candidates=[f"output_of_query{label}" for label in list(self._known)[-5:]],
                span=token.span,
                hint="a query can use the queries written before it",
            )
        return OutputRef(position, token.span)

    def _words(self, token: Token) -> Expression:
        """A run of bare words and numbers, taken as one text with the spaces it was written with."""
        begin = token.span[0]
        if token.kind == "word" and _OTHER_MENTION.search(token.text):
            raise ParseError(
                f"{token.text!r} is neither an output nor a text",
                span=token.span,
                hint="an output is written output_of_queryN; what is done with it needs a query of its own",
            )
        while self._peek().kind in ("word", "number") and self._peek().text.casefold() not in _KEYWORDS:
            if self._begins_argument(0) and _PARAMETER.fullmatch(self._peek().text):
                break
            self._next()
        span = self._span(begin)
        if span == token.span and _UNBOUND.fullmatch(token.text):
            raise ParseError(
                f"{token.text} stands for nothing here", span=span, hint="write which output is meant: output_of_queryN"
            )
        text = token.text if span == token.span else " ".join(self._text[slice(*span)].split())
        return Literal(text, False, span)

    def _list(self, opened: Token) -> Expression:
        closing = {"(": ")", "[": "]", "{": "}"}[opened.text]
        items: list[Expression] = []
        while not self._symbol(closing):
            items.append(self.expression())
            if self._symbol(":"):
                raise ParseError(
                    "a mapping has no meaning here", span=self._peek().span, hint="conditions are arguments: key='...', value='...'"
                )
            if not self._skip(","):
                break
        self._expect(closing, opened)
        if opened.text == "(" and len(items) == 1:
            return items[0]
        return Items(tuple(items), self._span(opened.span[0]))

    # Calls

    def _begins_argument(self, ahead: int) -> bool:
        token = self._peek(ahead)
        if token.kind != "word" or self._peek(ahead + 1).kind != "operator":
            return False
        return token.text.casefold() not in _KEYWORDS or (token.text in _BRANCHES and self._peek(ahead + 1).text == "=")

    def _call(self, name: Token) -> Expression:
        arguments = self._arguments()
        return Call(name.text, arguments, self._span(name.span[0]))

    def _arguments(self) -> tuple[Argument, ...]:
        opened = self._next()
        arguments: list[Argument] = []
        while not self._symbol(")"):
            arguments.append(self._argument())
            if self._skip(","):
                continue
            token = self._peek()
            if self._word("and") and self._begins_argument(1):
                self._notices.append(Notice("'and' between two arguments is read as a comma", token.span))
                self._next()
            elif self._word("or") and self._begins_argument(1):
                raise ParseError("'or' between two arguments", span=token.span, hint="write two queries and set_union")
            elif self._begins_argument(0):
                self._notices.append(Notice("a comma is missing before this argument", token.span))
            else:
                break
        self._expect(")", opened)
        return tuple(arguments)

    def _argument(self) -> Argument:
        begin = self._peek().span[0]
        if self._begins_argument(0):
            name, op = self._next().text, self._next().text
            value = self.expression()
            return Argument(name, cast(CompareOp, op), value, self._span(begin))
        if self._peek().kind == "word" and self._peek(1).kind == "word" and self._peek(2).kind == "operator":
            verb = self._peek(1)
            raise ParseError(f"unknown operator {verb.text!r}", span=verb.span, hint="the operators are = != > < >= <=")
        value = self.expression()
        return Argument(None, "=", value, self._span(begin))

    # Conditionals

    def _if(self) -> Expression:
        name = self._next()
        begin = name.span[0]
        if self._symbol("(") and self._is_call():
            return Call("if", self._arguments(), self._span(begin))
        test = self._either()
        separated = self._skip(",", ":", ";")
        separated = self._skip_word("then") or separated
        self._skip(":")
        self._skip_word("return")
        if not separated:
            raise ParseError(
                "a condition without 'then'", span=self._span(begin), hint="a conditional needs both branches: if(test, a, b)"
            )
        then = self.expression()
        self._skip(",", ";")
        if not self._skip_word("else"):
            raise ParseError(
                "a condition without 'else'", span=self._span(begin), hint="a conditional needs both branches: if(test, a, b)"
            )
        self._skip(":", ",")
        self._skip_word("return")
        return Ternary(test, then, self.expression(), self._span(begin))

    def _is_call(self) -> bool:
        """Whether the parenthesis at hand holds all of a conditional, rather than (the beginning of) its test."""
        depth, at = 0, self._at
        while True:
            token = self._tokens[at]
            if token.kind == "end":
                return True
            if token.kind == "symbol":
                depth += (token.text in "([{") - (token.text in ")]}")
                if depth == 0:
                    break
                if depth == 1 and token.text == ",":
                    return True
            at += 1
        after = self._tokens[at + 1]
        return after.kind == "end" or (after.kind == "symbol" and after.text in ")]}")

    def _span(self, begin: int) -> Span:
        """From `begin` to the end of the word read last."""
        return begin, self._tokens[self._at - 1].span[1] if self._at else begin

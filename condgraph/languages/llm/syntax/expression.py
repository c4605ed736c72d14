"""The expression grammar of LLM queries: calls, comparisons, arithmetic, and the ways language
models write "if".

    expression  := "if" choice | either [ "?" expression ":" expression | "if" either "else" expression ]
    either      := both { "or" both }          both := opposite { "and" opposite }
    opposite    := "not" opposite | comparison
    comparison  := sum [ ("=" | "!=" | "<" | ">" | "<=" | ">=" | ["not"] "in") sum ]
    sum         := product { ("+" | "-") product }      product := sign { ("*" | "/" | "%") sign }
    sign        := "-" sign | primary { "[" integer "]" }
    primary     := text | number | output_of_queryN | name "(" [ argument { "," argument } ] ")" | "(" ... ")" | "[" ... "]" | words
    argument    := [ name operator ] expression
    choice      := "(" test "," a "," b ")" | test ("then" | ":" | ",") ["return"] a ["," | ";"] "else" [":" | ","] ["return"] b

A text between quotes that holds nothing but such an expression over outputs
(`condition='output_of_query2 > 2000'`) is that expression.
"""

from __future__ import annotations

import re
from typing import Final, cast

from condgraph.engine.errors import ParseError, UnknownNameError
from condgraph.languages.llm.syntax.operators import OperatorReader
from condgraph.languages.llm.syntax.tokens import REFERENCE, Token, scan
from condgraph.languages.llm.syntax.tree import (
    Argument,
    Call,
    CompareOp,
    Expression,
    Items,
    Literal,
    Notice,
    OutputRef,
    Span,
    Ternary,
)

_KEYWORDS: Final = frozenset({"then", "else", "and", "or", "in", "not", "return", "if"})
#: Keywords that name arguments as well: `if(test, then='A', else='B')`.
_BRANCHES: Final = frozenset({"then", "else"})
_PARAMETER: Final = re.compile(r"relation|(?:head|tail)_entity\d*|key|value\d*|source|set\d*|operator|unit|order|number\d*")
_MENTION: Final = re.compile(r"(?i)output_?(?:of_?)?query_?\d")
_OTHER_MENTION: Final = re.compile(r"(?i)_?query_?\d")
_UNBOUND: Final = re.compile(r"set\d+")


class Parser(OperatorReader):
    """Reads one expression from `text[start:stop]`.

    `known` maps the labels of the queries written so far to their positions. After `expression` and
    `finish`, `end` is where the expression ended. Errors are `ParseError`, or `UnknownNameError`
    for an output that no earlier query gives.
    """

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
        condition = self._either()
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
        return Ternary(condition, then, self.expression(), self._span(begin))

    def _is_call(self) -> bool:
        """Whether the parenthesis at hand holds all of a conditional, rather than (the beginning
        of) its test.
        """
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

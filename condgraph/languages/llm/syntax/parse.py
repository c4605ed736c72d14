"""The parser of LLM queries as models write them: expressions, calls, and numbered lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

from condgraph.engine.algebra import remade
from condgraph.engine.bounds import check, watched
from condgraph.engine.errors import CondgraphError, InterruptedQueryError, OptionError, ParseError, UnknownNameError
from condgraph.languages.llm.functions import OPERATOR_OPTION
from condgraph.languages.llm.syntax import tree
from condgraph.languages.llm.syntax.tokens import DOUBLE, REFERENCE, SINGLE, SOME, Token, scan
from condgraph.languages.llm.syntax.tree import Argument, Literal, Program
from condgraph.languages.parameters import GivenText, Hole, hole, in_order

# -- reader ------------------------------------------------------------------------------------------
# Limits of an expression's depth and length.


#: The deepest nesting of parentheses, lists and nested texts, and the most operators and indexes of a
#: line. Together they bound the depth of a tree, so that walking it never overflows the stack.
MAX_DEPTH: Final = 20
MAX_OPERATORS: Final = 200
#: A quote around the whole expression. A single quote counts only before a call, since
#: `'A' if ... else 'B'` begins with a text.
_WRAPPED: Final = re.compile(rf"[{DOUBLE}]|[{SINGLE}](?=[^\W\d][\w.]*+\s*+\(|if\b)")


@dataclass(slots=True)
class Limits:
    """The current nesting depth of a line, and its operators so far."""

    depth: int = 0
    operators: int = 0

    def operator(self, span: tree.Span) -> None:
        """Count an operator; raises `ParseError` if there are too many."""
        self.operators += 1
        if self.operators > MAX_OPERATORS:
            raise ParseError(f"more than {MAX_OPERATORS} operators in one line", span=span)


# -- operators ---------------------------------------------------------------------------------------
#: Labels before an operand, which have no meaning: `set1='...' > set2='...'`.
_PLACEHOLDER: Final = re.compile(r"(?:set|value|count|x|y|a|b)\d*")


# -- expression --------------------------------------------------------------------------------------
# The expression grammar: calls, comparisons, arithmetic, and the forms of "if" that models write.
#
#     expression  := "if" choice | either [ "?" expression ":" expression | "if" either "else" expression ]
#     either      := both { "or" both }          both := opposite { "and" opposite }
#     opposite    := "not" opposite | comparison
#     comparison  := sum [ ("=" | "!=" | "<" | ">" | "<=" | ">=" | ["not"] "in") sum ]
#     sum         := product { ("+" | "-") product }      product := sign { ("*" | "/" | "%") sign }
#     sign        := "-" sign | primary { "[" integer "]" }
#     primary     := text | number | output_of_queryN | words | name "(" [ argument { "," argument } ] ")" | "(" ... ")"
#                    | "[" ... "]"
#     argument    := [ name operator ] expression
#     choice      := "(" test "," a "," b ")" | test ("then" | ":" | ",") ["return"] a ["," | ";"] "else" [":" | ","] ["return"] b
#
# A quoted text that contains only such an expression over outputs (`condition='output_of_query2 > 2000'`)
# is that expression.


_KEYWORDS: Final = frozenset({"then", "else", "and", "or", "in", "not", "return", "if"})
#: Keywords that are also names of arguments: `if(test, then='A', else='B')`.
_BRANCHES: Final = frozenset({"then", "else"})
_PARAMETER: Final = re.compile(r"relation|(?:head|tail)_entity\d*|key|value\d*|source|set\d*|operator|unit|order|number\d*")
_MENTION: Final = re.compile(r"(?i)output_?(?:of_?)?query_?\d")
_QUERY_NAME: Final = re.compile(r"(?i)_?query_?\d")
_UNBOUND: Final = re.compile(r"set\d+")


class Parser:
    """A parser of one expression in `text[start:stop]`.

    `known` maps the labels of earlier queries to their positions. After `expression` and `finish`, `end`
    is where the expression ended. Raises `ParseError`, or `UnknownNameError` for an output that no
    earlier query has.
    """

    def __init__(
        self,
        text: str,
        start: int,
        stop: int,
        known: Mapping[str, int],
        notices: list[tree.Notice],
        *,
        limits: Limits | None = None,
    ) -> None:
        self._text = text
        self._known = known
        self._notices = notices
        self._limits = limits or Limits()
        wrapper = None
        while start < stop and (text[start] in "`*" or (text[start].isspace() and text[start] != "\n")):
            start += 1
        if limits is None and (match := _WRAPPED.match(text, start, stop)) is not None:
            wrapper = SINGLE if match[0] in SINGLE else DOUBLE
            start = match.end()
        self._tokens = scan(text, start, stop, wrapper, notices)
        self._at = 0

    @property
    def end(self) -> int:
        """The offset where the expression ended."""
        return self._tokens[-1].span[0]

    def finish(self) -> None:
        """Raise `ParseError` unless every token was used."""
        token = self._peek()
        if token.kind != "end":
            hint = None
            if token.kind == "operator":
                hint = "a comparison has one operator; two bounds are two arguments"
            elif token.text == "if":
                hint = "a conditional needs both branches: if(test, a, b)"
            raise ParseError(f"{self._token_text(token)!r} is not expected here", span=token.span, hint=hint)

    # Words

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        if not self._at % SOME:
            check()
        return token

    def _token_text(self, token: Token) -> str:
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
                f"{self._token_text(token)!r} is not expected here", span=token.span, hint=f"a comma or {symbol!r} would fit"
            )
        return self._next()

    def _deeper(self, node: Callable[[], tree.Expression]) -> tree.Expression:
        if self._limits.depth == MAX_DEPTH:
            raise ParseError(f"nested more than {MAX_DEPTH} deep", span=self._peek().span)
        self._limits.depth += 1
        try:
            return node()
        finally:
            self._limits.depth -= 1

    def _span(self, begin: int) -> tree.Span:
        """Return the span from `begin` to the end of the last token."""
        return begin, self._tokens[self._at - 1].span[1] if self._at else begin

    # The grammar, from the loosest binding to the tightest

    def expression(self) -> tree.Expression:
        """Parse one expression; `finish` checks what follows it."""
        return self._deeper(self._expression)

    def _expression(self) -> tree.Expression:
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
            return tree.Ternary(value, then, self.expression(), self._span(begin))
        if self._word("if") and not self._symbol("(", 1):
            self._next()
            condition = self._either()
            if self._skip_word("else"):
                return tree.Ternary(condition, value, self.expression(), self._span(begin))
            raise ParseError(
                "a condition without 'else'", span=self._span(begin), hint="a conditional needs both branches: if(test, a, b)"
            )
        return value

    def _chain(self, part: Callable[[], tree.Expression], match: Callable[[], tree.InfixOp | None]) -> tree.Expression:
        begin = self._peek().span[0]
        value = part()
        while (op := match()) is not None:
            self._limits.operator(self._next().span)
            value = tree.Infix(op, value, part(), self._span(begin))
        return value

    def _either(self) -> tree.Expression:
        return self._chain(self._both, lambda: "or" if self._word("or") and not self._begins_argument(1) else None)

    def _both(self) -> tree.Expression:
        return self._chain(self._opposite, lambda: "and" if self._word("and") and not self._begins_argument(1) else None)

    def _opposite(self) -> tree.Expression:
        begin = self._peek().span[0]
        if self._word("not") and not self._word("in", ahead=1):
            self._next()
            inner = self._deeper(self._opposite)
            return tree.Not(inner, self._span(begin))
        return self._comparison()

    def _comparison(self) -> tree.Expression:
        begin = self._peek().span[0]
        left = self._labelled()
        negated = self._word("not") and self._word("in", ahead=1)
        if negated or self._word("in"):
            self._at += 1 + negated
            member = tree.Infix("in", left, self._sum(), self._span(begin))
            return tree.Not(member, member.span) if negated else member
        token = self._peek()
        if token.kind != "operator":
            return left
        self._next()
        return tree.Comparison(cast(tree.CompareOp, token.text), left, self._labelled(), self._span(begin))

    def _labelled(self) -> tree.Expression:
        """Parse a sum, skipping a meaningless label and "=" before it."""
        token = self._peek()
        if (
            token.kind == "word"
            and _PLACEHOLDER.fullmatch(token.text)
            and self._peek(1).kind == "operator"
            and self._peek(1).text == "="
        ):
            self._notices.append(tree.Notice(f"{token.text}= in front of an operand is left out", token.span))
            self._at += 2
        return self._sum()

    def _sum(self) -> tree.Expression:
        return self._chain(self._product, lambda: self._infix("+", "-"))

    def _product(self) -> tree.Expression:
        return self._chain(self._sign, lambda: self._infix("*", "/", "%"))

    def _infix(self, *symbols: str) -> tree.InfixOp | None:
        token = self._peek()
        return cast(tree.InfixOp, token.text) if token.kind == "symbol" and token.text in symbols else None

    def _sign(self) -> tree.Expression:
        begin = self._peek().span[0]
        if self._symbol("-"):
            self._next()
            if self._peek().kind == "number" and not self._symbol("[", 1):
                return tree.Literal("-" + self._next().text, False, self._span(begin))
            inner = self._deeper(self._sign)
            return tree.Infix("-", tree.Literal("0", False, (begin, begin)), inner, self._span(begin))
        value = self._primary()
        while self._symbol("["):
            opened = self._next()
            self._limits.operator(opened.span)
            negative = self._skip("-")
            index = self._next()
            if index.kind != "number" or not index.text.isascii() or not index.text.isdigit() or len(index.text) > 9:
                raise ParseError(
                    f"{self._token_text(index)!r} is not an index", span=index.span, hint="an index is a whole number: [0]"
                )
            self._expect("]", opened)
            value = tree.Item(value, -int(index.text) if negative else int(index.text), self._span(begin))
        return value

    def _primary(self) -> tree.Expression:
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
        raise ParseError(f"an expression is expected before {self._token_text(token)!r}", span=token.span, hint=hint)

    def _quoted(self, token: Token) -> tree.Expression:
        """Parse a text, or the expression over outputs that it contains."""
        start, stop = token.inner
        content = self._text[start:stop]
        if not _MENTION.search(content):
            return tree.Literal(token.text, True, token.span)
        match = REFERENCE.fullmatch(content.strip())
        if match is not None:
            inner = scan(self._text, start, stop, None, self._notices)
            return self._reference(Token("reference", inner[0].text, token.span))

        def nested() -> tree.Expression:
            parser = Parser(self._text, start, stop, self._known, self._notices, limits=self._limits)
            return parser.list_in_text(token.span)

        try:
            return self._deeper(nested)
        except UnknownNameError:
            raise
        except ParseError as error:
            raise ParseError(
                f"the text {content[:60]!r} mentions an output and is not an expression: {error.message}",
                span=error.span or token.span,
                hint=error.hint or "write the output alone: 'output_of_query1'",
            ) from None

    def list_in_text(self, span: tree.Span) -> tree.Expression:
        """Parse expressions separated by commas up to the end, as one expression."""
        items = [self.expression()]
        while self._skip(","):
            items.append(self.expression())
        self.finish()
        if self.end < span[1] - 1 and self._text[self.end : span[1] - 1].strip():
            at = self.end
            raise ParseError(f"{self._text[at]!r} is not expected here", span=(at, at + 1))
        return items[0] if len(items) == 1 else tree.Items(tuple(items), span)

    def _reference(self, token: Token) -> tree.Expression:
        position = self._known.get(token.text)
        if position is None:
            raise UnknownNameError(
                "output",
                f"output_of_query{token.text}",
                candidates=[f"output_of_query{label}" for label in list(self._known)[-5:]],
                span=token.span,
                hint="a query can use the queries written before it",
            )
        return tree.OutputRef(position, token.span)

    def _words(self, token: Token) -> tree.Expression:
        """Parse a run of bare words and numbers as one text, with its original spaces."""
        begin = token.span[0]
        if token.kind == "word" and _QUERY_NAME.search(token.text):
            raise ParseError(
                f"{token.text!r} is neither an output nor a text",
                span=token.span,
                hint="an output is written output_of_queryN; using it needs a query of its own",
            )
        while self._peek().kind in ("word", "number") and self._peek().text.casefold() not in _KEYWORDS:
            if self._begins_argument(0) and _PARAMETER.fullmatch(self._peek().text):
                break
            self._next()
        span = self._span(begin)
        if span == token.span and _UNBOUND.fullmatch(token.text):
            raise ParseError(f"{token.text} has no meaning here", span=span, hint="write which output is meant: output_of_queryN")
        text = token.text if span == token.span else " ".join(self._text[slice(*span)].split())
        return tree.Literal(text, False, span)

    def _list(self, opened: Token) -> tree.Expression:
        closing = {"(": ")", "[": "]", "{": "}"}[opened.text]
        items: list[tree.Expression] = []
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
        return tree.Items(tuple(items), self._span(opened.span[0]))

    # Calls

    def _begins_argument(self, ahead: int) -> bool:
        token = self._peek(ahead)
        if token.kind != "word" or self._peek(ahead + 1).kind != "operator":
            return False
        return token.text.casefold() not in _KEYWORDS or (token.text in _BRANCHES and self._peek(ahead + 1).text == "=")

    def _call(self, name: Token) -> tree.Expression:
        arguments = self._arguments()
        return tree.Call(name.text, arguments, self._span(name.span[0]))

    def _arguments(self) -> tuple[tree.Argument, ...]:
        opened = self._next()
        arguments: list[tree.Argument] = []
        while not self._symbol(")"):
            arguments.append(self._argument())
            if self._skip(","):
                continue
            token = self._peek()
            if self._word("and") and self._begins_argument(1):
                self._notices.append(tree.Notice("'and' between two arguments is read as a comma", token.span))
                self._next()
            elif self._word("or") and self._begins_argument(1):
                raise ParseError("'or' between two arguments", span=token.span, hint="write two queries and set_union")
            elif self._begins_argument(0):
                self._notices.append(tree.Notice("a comma is missing before this argument", token.span))
            else:
                break
        self._expect(")", opened)
        return tuple(arguments)

    def _argument(self) -> tree.Argument:
        begin = self._peek().span[0]
        if self._begins_argument(0):
            name, op = self._next().text, self._next().text
            value = self.expression()
            return tree.Argument(name, cast(tree.CompareOp, op), value, self._span(begin))
        if self._peek().kind == "word" and self._peek(1).kind == "word" and self._peek(2).kind == "operator":
            verb = self._peek(1)
            raise ParseError(f"unknown operator {verb.text!r}", span=verb.span, hint="the operators are = != > < >= <=")
        value = self.expression()
        return tree.Argument(None, "=", value, self._span(begin))

    # Conditionals

    def _if(self) -> tree.Expression:
        name = self._next()
        begin = name.span[0]
        if self._symbol("(") and self._is_call():
            return tree.Call("if", self._arguments(), self._span(begin))
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
        return tree.Ternary(condition, then, self.expression(), self._span(begin))

    def _is_call(self) -> bool:
        """Whether the parenthesis here encloses a whole conditional, rather than (part of) its test."""
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


# -- plain -------------------------------------------------------------------------------------------
# A fast path for plain lines: one call whose arguments are outputs or texts without inner quotes.
#
# Nine of ten lines that models write look like `"function(name='text', other>'output_of_query1')"`
# and need no grammar. All others go to `Parser.expression`, which gives the same tree for plain lines
# (a test compares both).


_QUOTED: Final = r"'[^'‘’‚‛´′\"“”„‟″\\\n`]*'"
_LINE: Final = re.compile(
    rf"[ \t]*\"(?P<name>[^\W\d]\w*)\("
    rf"(?P<arguments>[^\W\d]\w* ?(?:=|!=|<=|>=|<|>) ?{_QUOTED}(?:, ?[^\W\d]\w* ?(?:=|!=|<=|>=|<|>) ?{_QUOTED})*+)\)\"\s*"
)
_ARGUMENT: Final = re.compile(rf"([^\W\d]\w*) ?(!=|<=|>=|=|<|>) ?({_QUOTED})")
_REFERENCE: Final = re.compile(r"output_of_query(\d+)").fullmatch
#: Keywords of the grammar.
_SPECIAL: Final = frozenset({"then", "else", "and", "or", "in", "not", "return", "if"})


def plain_call(text: str, start: int, stop: int, known: Mapping[str, int]) -> tree.Expression | None:
    """Return the call of a plain line `text[start:stop]`, or None if the line needs the grammar.

    `known` maps the labels of earlier queries to their positions; an unknown output is left to the
    grammar, which reports the error.
    """
    match = _LINE.fullmatch(text, start, stop)
    if match is None or match["name"].casefold() in _SPECIAL:
        return None
    arguments: list[tree.Argument] = []
    begin, end = match.span("arguments")
    for item in _ARGUMENT.finditer(text, begin, end):
        name, operator, quoted = item.groups()
        if name.casefold() in _SPECIAL:
            return None
        span, inner = item.span(3), quoted[1:-1]
        value: tree.Expression
        if "query" in inner.casefold():
            reference = _REFERENCE(inner)
            position = None if reference is None else known.get(reference[1])
            if position is None:
                return None
            value = tree.OutputRef(position, span)
        else:
            value = tree.Literal(inner, True, span)
        arguments.append(tree.Argument(name, cast(tree.CompareOp, operator), value, item.span()))
    return tree.Call(match["name"], tuple(arguments), (match.start("name"), end + 1))


# -- parse -------------------------------------------------------------------------------------------
# ## Target type: {number of Italians}
#     Step1: Find the rows whose Nation is Italy
#     Query1: "get_information(relation='Nation', tail_entity='Italy')"
#     Step2: Count them
#     Query2: "count(set='output_of_query1')"
#
# The answer is the last query, and only the queries that it needs are run; errors in others are
# notices. Lines that are neither step nor query are ignored with a notice, since language models like
# to explain themselves. `languages.llm.functions` defines the functions.


_HEADER: Final = re.compile(
    r"""[ \t>*_`#-]*+ (?:
          (?P<kind>step|query)[ \t]*+(?P<label>\d+(?:_[a-z]\w*+)?)[*_]{0,2}+[ \t]*+:[*_]{0,2}+
        | target[ \t]+type[*_]{0,2}+[ \t]*+:[*_]{0,2}+[ \t]*+(?P<target>[^\n]*+)
        | quer(?:y|ies)[*_]{0,2}+[ \t]*+:[*_]{0,2}+(?P<rest>[^\n]*+)
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_LEFTOVER: Final = re.compile(r"""[\s"“”„‟″'‘’`.,;)\]}*]*""")
_LONE: Final = re.compile(r"""[\s"“`]*[a-z_]\w*[ \t]*\(""", re.IGNORECASE)
_FENCE: Final = re.compile(r"[ \t]*```\w*[ \t]*")


@dataclass(slots=True)
class _Section:
    """A step or a query, with the start and end of its text, which extends to the next one."""

    kind: str
    label: str
    span: tree.Span
    start: int
    stop: int


def parse(text: str) -> tree.Program:
    r"""Parse a program.

    A single expression without any `Query1:` is a program, too. Raises `ParseError` for invalid text,
    and `UnknownNameError` for an output that no earlier query has.

    >>> program = parse('Query1: "get_information(relation=\'Year\', tail_entity>\'2000\')"')
    >>> [argument.op for argument in program.queries[0].expression.arguments]
    ['=', '>']
    """
    notices: list[tree.Notice] = []
    sections, target_type = _sections(text, notices)
    queries: list[tree.Query] = []
    known: dict[str, int] = {}
    step: _Section | None = None
    for section in sections:
        check()
        if section.kind == "step":
            if step is not None:
                notices.append(tree.Notice(f"step {step.label} has no query", step.span))
            step = section
            continue
        words = "" if step is None else " ".join(text[step.start : step.stop].split())
        query, query_notices = _query(text, section, words, known)
        notices.extend(query_notices)
        if section.label in known:
            notices.append(tree.Notice(f"query {section.label} is written twice; later queries mean the second one", section.span))
        known[section.label] = len(queries)
        queries.append(query)
        step = None
    if step is not None:
        notices.append(tree.Notice(f"step {step.label} has no query", step.span))
    if not queries:
        raise ParseError("the text has no query", span=(0, len(text)), hint='a query is a line: Query1: "get_information(...)"')
    used = _used(queries)
    needed = set(used)
    for position, query in enumerate(queries):
        if query.error is not None and position not in needed:
            notices.append(tree.Notice(f"query {query.label} is not needed and cannot be read: {query.error.message}", query.span))
    return tree.Program(tuple(queries), used, target_type, tuple(notices))


def parse_expression(text: str) -> tree.Expression:
    """Parse one expression without references to other queries, for tests and tools."""
    parser = Parser(text, 0, len(text), {}, [])
    expression = parser.expression()
    parser.finish()
    return expression


def _sections(text: str, notices: list[tree.Notice]) -> tuple[list[_Section], str | None]:
    """Split the text into steps and queries, and read the target type; other lines become notices."""
    sections: list[_Section] = []
    target_type: str | None = None
    if text.strip() and not any(_HEADER.match(line) for line in watched(text.splitlines())):
        if _LONE.match(text):
            begin = len(text) - len(text.lstrip())
            return [_Section("query", "1", (begin, len(text)), begin, len(text))], None
        _prose(text, 0, len(text), notices)
        return [], None
    at = 0
    open_section: _Section | None = None
    prose = 0
    for line in watched(text.splitlines(keepends=True)):
        match = _HEADER.match(line)
        if match is not None:
            if open_section is not None:
                open_section.stop = at
            else:
                _prose(text, prose, at, notices)
            open_section = None
            if match["kind"] is not None:
                label = match["label"].casefold()
                open_section = _Section(match["kind"].casefold(), label, (at, at + len(line.rstrip())), at + match.end(), len(text))
                sections.append(open_section)
            elif match["target"] is not None:
                if target_type is not None:
                    notices.append(
                        tree.Notice("the target type is given twice; the last one counts", (at, at + len(line.rstrip())))
                    )
                target_type = _target(match["target"])
            elif match["rest"].strip(" \t`*\r"):
                notices.append(
                    tree.Notice("a line that is neither a step nor a numbered query is left out", (at, at + len(line.rstrip())))
                )
            prose = at + len(line)
        at += len(line)
    if open_section is None:
        _prose(text, prose, at, notices)
    return sections, target_type


def _prose(text: str, start: int, stop: int, notices: list[tree.Notice]) -> None:
    """Add a notice for each ignored line, except blank ones and code fences."""
    at = start
    for line in watched(text[start:stop].splitlines(keepends=True)):
        if line.strip() and not _FENCE.fullmatch(line.rstrip("\r\n")):
            begin = at + len(line) - len(line.lstrip())
            notices.append(tree.Notice("a line that is neither a step nor a query is left out", (begin, at + len(line.rstrip()))))
        at += len(line)


def _target(text: str) -> str | None:
    return text.strip().strip("{}'\"‘’“”`* ").strip() or None


def _query(text: str, section: _Section, step: str, known: dict[str, int]) -> tuple[tree.Query, list[tree.Notice]]:
    """Parse one query. An error is stored in it, since only queries that the answer needs must be valid."""
    plain = plain_call(text, section.start, section.stop, known)
    if plain is not None:
        return tree.Query(section.label, plain, step, None, section.span), []
    notices: list[tree.Notice] = []
    try:
        parser = Parser(text, section.start, section.stop, known, notices)
        expression = parser.expression()
        parser.finish()
        _leftover(text, parser.end, section.stop, notices)
    except InterruptedQueryError:
        raise
    except CondgraphError as error:
        return tree.Query(section.label, None, step, error, section.span), []
    return tree.Query(section.label, expression, step, None, section.span), notices


def _leftover(text: str, start: int, stop: int, notices: list[tree.Notice]) -> None:
    """Check what follows an expression: closing marks on its own line, and lines of prose."""
    line_end = text.find("\n", start, stop)
    line_end = stop if line_end < 0 else line_end
    match = _LEFTOVER.match(text, start, line_end)
    end = start if match is None else match.end()
    if end < line_end:
        hint = "one query a line" if text[start : start + 1] in ("'", '"', "”", "’") else "put texts in quotes"
        raise ParseError(
            f"{text[end : min(end + 30, line_end)]!r} follows the end of the expression", span=(end, line_end), hint=hint
        )
    if any(mark in text[start:end] for mark in ")]}"):
        notices.append(tree.Notice("a closing parenthesis too many", (start, end)))
    _prose(text, line_end, stop, notices)


def _used(queries: list[tree.Query]) -> tuple[int, ...]:
    """Return the positions that the last query needs; raises the error of an invalid one."""
    waiting, used = [len(queries) - 1], set[int]()
    while waiting:
        position = waiting.pop()
        if position in used:
            continue
        query = queries[position]
        if query.expression is None:
            assert query.error is not None
            raise query.error
        used.add(position)
        waiting.extend(reference.position for reference in tree.references(query.expression))
    return tuple(sorted(used))


# -- templates ---------------------------------------------------------------------------------------
# LLM queries with parameters: `Query1: "get_information(head_entity=$person, relation='born')"`.
#
# A parameter is a bare word, `$person`; `'$person'` in quotes is the text `$person`. Its value is always
# a name or a value: "highest" and "none" lose their meaning in the language, and `output_of_query1` is
# not an output.


#: Arguments whose values are words of the language.
_SYNTAX: Final = frozenset({*OPERATOR_OPTION, "order", "sort", "ascending", "descending", "absolute", "reverse"})


class LlmTemplate:
    """A parsed LLM query with parameters.

    Raises as `parse`, and `ParseError` for a parameter as an operator or an order, which are syntax.
    """

    language: ClassVar[str] = "llm_query"

    def __init__(self, program: str) -> None:
        if not isinstance(program, str):
            raise OptionError(f"an LLM query is a text, not {type(program).__name__}")
        names: list[str] = []

        def find(node: Any) -> Any:
            if isinstance(node, Argument) and (node.name or "").casefold() in _SYNTAX:
                value = node.value
                if isinstance(value, Literal) and not value.quoted and hole(value.text):
                    raise ParseError(
                        f"{value.text} stands for a word of {node.name}, and a parameter is a name or a value", span=value.span
                    )
            if isinstance(node, Literal) and not node.quoted and (result := hole(node.text)):
                names.append(result)
                return Literal(result, True, node.span)
            return node

        self._program: Program = remade(parse(program), find)
        self.parameters = in_order(names)
        self.entities: frozenset[str] = frozenset()

    def bind(self, values: Mapping[str, GivenText]) -> Program:
        result: Program = remade(self._program, lambda node: values[node] if type(node) is Hole else node)
        return result

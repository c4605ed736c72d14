"""The parser of table clauses.

    where year(orderDate) = 1997
    group by customerID.country
    show count(), sum(freight) as total
    having total > 100
    order by total desc
    limit 3

Every part is optional, and their order is free; `select` is a synonym of `show`. A name is one or
more words, or any text in double quotes. `.` follows a relation, `^` follows one backward, and `@`
is a qualifier of the statement before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, TypeVar

from condgraph.engine.algebra import grouped as ex
from condgraph.engine.algebra.grouped import TextOperator
from condgraph.engine.errors import ParseError
from condgraph.languages.table import tree

# -- Tokens ------------------------------------------------------------------------------------------

# One pass over the text; every character belongs to exactly one token.


#: The most characters of a clause.
MAX_LENGTH: Final = 20_000
_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)
    |(?P<name>"[^"]*"|`[^`]*`)
    |(?P<text>'(?:[^']|'')*')
    |(?P<date>[+-]?\d{4}-\d\d(?:-\d\d(?:T\d\d:\d\d(?::\d\d)?)?)?(?![\w-]))
    |(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\w))
    |(?P<word>[^\W\d]\w*|[$€£¥₹%°]\w*)
    |(?P<sign><=|>=|!=|<>|==|[-+*/(),.^@=<>])""",
    re.VERBOSE,
)
#: Words that end a name.
RESERVED: Final = frozenset(
    (
        *("group", "by", "show", "select", "where", "having", "order", "limit", "offset", "with", "ties", "and", "or", "not"),
        *("as", "asc", "desc", "ascending", "descending", "is", "in", "missing", "known", "null", "distinct"),
    )
)


class Token(NamedTuple):
    """A token: its kind ("name", "text", "date", "number", "word", "sign", "end"), content and position."""

    kind: str
    text: str
    start: int
    end: int

    def reserved(self) -> str:
        """Return the reserved word in lower case, or "" for any other token."""
        word = self.text.casefold()
        return word if self.kind == "word" and word in RESERVED else ""


def tokens_of(text: str) -> list[Token]:
    """Split a clause into tokens; raises `ParseError` for an unexpected character."""
    if len(text) > MAX_LENGTH:
        raise ParseError(f"a table clause of {len(text):,} characters is too long", hint=f"at most {MAX_LENGTH:,}")
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            quote = text[at] in "\"'`"
            hint = "a quoted text ends with the sign it begins with" if quote else "a name with other signs is put in double quotes"
            raise ParseError(f"{text[at]!r} has no meaning in a table clause", span=(at, at + 1), hint=hint)
        kind, content = str(match.lastgroup), match[0]
        if kind == "name":
            content = content[1:-1]
        elif kind == "text":
            content = content[1:-1].replace("''", "'")
        if kind != "space":
            tokens.append(Token(kind, content, at, match.end()))
        at = match.end()
    tokens.append(Token("end", "", len(text), len(text)))
    return tokens


# -- The clause --------------------------------------------------------------------------------------


T = TypeVar("T")
#: The deepest nesting of parentheses, and the most steps of a path.
_MAX_DEPTH: Final = 40
_COMPARED: Final = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", ">": ">", "<=": "<=", ">=": ">="}
#: The most rows that a limit may name.
_MAX_LIMIT: Final = 10**12
#: Words that mean the row itself where they are a whole path.
SELF: Final = ("self", "it")


def parse(text: str) -> tree.Clause:
    """Parse a clause; raises `ParseError` with a position."""
    reader = Reader(text)
    parts: dict[str, Any] = {}
    while reader.token.kind != "end":
        word = reader.reserved()
        part = {"select": "show"}.get(word, word)
        if part in parts:
            raise reader.error(f"{word!r} stands twice")
        if part in ("group", "order"):
            reader.expect("by")
        parts[part] = reader.part(part)
        if part == "limit":
            parts["per"] = reader.per()
        if part == "limit" and reader.accept("with"):
            reader.expect("ties")
            parts["ties"] = True
    return tree.Clause(
        parts.get("where"),
        tuple(parts.get("group", ())),
        tuple(parts.get("show", ())),
        parts.get("having"),
        tuple(parts.get("order", ())),
        parts.get("limit"),
        parts.get("offset", 0),
        parts.get("ties", False),
        tuple(parts.get("per", ())),
    )


def parse_part(text: str, part: str) -> Any:
    """Parse one part alone: the text after "group by", "show", "where", "having" or "order by"."""
    reader = Reader(text)
    result = reader.part(part)
    if reader.token.kind != "end":
        raise reader.error(f"{reader.token.text!r} has no place here")
    return result


class Reader:
    """A recursive-descent parser of a clause."""

    def __init__(self, text: str) -> None:
        self._tokens, self._at, self._depth = tokens_of(text), 0, 0
        self._closing = _closing(self._tokens)

    # -- tokens ------------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        """The current token."""
        return self._tokens[self._at]

    def error(self, message: str, hint: str | None = None) -> ParseError:
        """Return an error at the current token."""
        return ParseError(message, span=(self.token.start, max(self.token.end, self.token.start + 1)), hint=hint)

    def reserved(self) -> str:
        """Take the word that begins a part."""
        word = self.token.reserved()
        if word not in ("where", "group", "show", "select", "having", "order", "limit", "offset"):
            described = f"{self.token.text!r}" if self.token.kind != "end" else "the end"
            hint = "the parts of a table are: where, group by, show, having, order by, limit, offset"
            raise self.error(f"{described} begins no part of a table", hint)
        self._at += 1
        return word

    def accept(self, *words: str) -> str:
        """Take one of some reserved words or signs, and return it; "" if another token comes next."""
        token = self.token
        word = token.reserved() or (token.text if token.kind == "sign" else "")
        if word and word in words:
            self._at += 1
            return word
        return ""

    def expect(self, *words: str) -> str:
        """Take one of some reserved words or signs; raises if another token comes next."""
        word = self.accept(*words)
        if not word:
            next_token = repr(self.token.text) if self.token.kind != "end" else "the end"
            raise self.error(f"{' or '.join(map(repr, words))} is missing before {next_token}")
        return word

    # -- parts -------------------------------------------------------------------------------------

    def part(self, part: str) -> Any:
        """Parse the part that follows its word."""
        if part in ("group", "show"):
            return self._several(self._column)
        if part == "order":
            return self._several(self._by)
        return self._whole_number() if part in ("limit", "offset") else self._test()

    def per(self) -> list[tree.Expression]:
        """Parse the columns of `limit 2 per country`; elsewhere "per" may be part of a name."""
        if self.token.kind != "word" or self.token.text.casefold() != "per":
            return []
        self._at += 1
        return self._several(self._expression)

    def _several(self, read: Callable[[], T]) -> list[T]:
        items = [read()]
        while self.accept(","):
            items.append(read())
        return items

    def _column(self) -> tree.Column:
        of = self._expression()
        return tree.Column(of, self._name() if self.accept("as") else None)

    def _by(self) -> tree.OrderBy:
        minus = self.accept("-")
        of = self._expression()
        word = self.accept("asc", "ascending", "desc", "descending")
        return tree.OrderBy(of, bool(minus) != word.startswith("desc"))

    def _whole_number(self) -> int:
        token = self.token
        if token.kind != "number" or not token.text.isdigit() or len(token.text) > 12:
            raise self.error(f"a whole number up to {_MAX_LIMIT:,} belongs here")
        self._at += 1
        return int(token.text)

    # -- tests -------------------------------------------------------------------------------------

    def _test(self) -> tree.Test:
        return self._junction("or", lambda: self._junction("and", self._single))

    def _junction(self, word: Any, read: Callable[[], tree.Test]) -> tree.Test:
        tests = [read()]
        while self.accept(word):
            tests.append(read())
        return tests[0] if len(tests) == 1 else tree.Junction(word, tuple(tests))

    def _single(self) -> tree.Test:
        if self.accept("not"):
            return tree.Junction("not", (self._deeper(self._single),))
        if self.token.kind == "sign" and self.token.text == "(" and not self._is_expression():
            self._at += 1
            test = self._deeper(self._test)
            self.expect(")")
            return test
        return self._comparison()

    def _is_expression(self) -> bool:
        """Whether the parentheses here enclose an expression, rather than a test."""
        following = self._tokens[self._closing.get(self._at, len(self._tokens) - 2) + 1]
        return following.text in (*_COMPARED, "+", "-", "*", "/") or following.reserved() in ("is", "in")

    def _comparison(self) -> tree.Test:
        start = self.token.start
        of = self._expression()
        if self.accept("is"):
            negated = bool(self.accept("not"))
            known = self.expect("missing", "null", "known") == "known"
            return tree.Comparison(of, "known" if known != negated else "missing", (), (start, self._end()))
        negated = bool(self.accept("not"))
        part = self._part_of_text()
        if part:
            self._at += len(part.split())
            test = tree.Comparison(of, part, (self._text(),), (start, self._end()))
            return tree.Junction("not", (test,)) if negated else test
        if negated or self.token.reserved() == "in":
            self.expect("in")
            self.expect("(")
            membership = tree.Comparison(of, "=", tuple(self._several(self._literal)), (start, self._end()))
            self.expect(")")
            return tree.Junction("not", (membership,)) if negated else membership
        sign = self.accept(*_COMPARED)
        if not sign:
            signs = "= != < > <= >=, in (...), contains, starts with, ends with, is missing"
            raise self.error(f"a comparison is missing: {signs}", "having count() > 5")
        literal = self._literal()
        return tree.Comparison(of, _COMPARED[sign], (literal,), (start, self._end()))  # type: ignore[arg-type]

    def _literal(self) -> tree.Number | tree.Text:
        sign = "-" if self.accept("-") else ""
        token = self.token
        if token.kind == "number":
            self._at += 1
            unit = self._name() if self.token.kind == "name" or (self.token.kind == "word" and not self.token.reserved()) else ""
            return tree.Number(sign + token.text, unit, (token.start, self._end()))
        if token.kind in ("text", "date") and not sign:
            self._at += 1
            return tree.Text(token.text, (token.start, token.end))
        if token.kind == "name" and not sign:
            single = "'" + token.text.replace("'", "''") + "'"
            raise self.error("a column is not compared with another; a text is in single quotes", single)
        raise self.error("a number, or a text between single quotes, is missing", "country = 'Germany', price > 100 $")

    def _part_of_text(self) -> TextOperator | Literal[""]:
        """Return the text operator that the next words are, or "".

        The words are not reserved, since columns may have these names: what follows decides.
        """
        following = self._tokens[self._at + 1 : self._at + 3]
        word = self.token.text.casefold() if self.token.kind == "word" else ""
        if word == "contains" and following and following[0].kind == "text":
            return "contains"
        if word in ("starts", "ends") and len(following) == 2 and following[0].reserved() == "with" and following[1].kind == "text":
            return "starts with" if word == "starts" else "ends with"
        return ""

    def _text(self) -> tree.Text:
        token = self.token
        self._at += 1
        return tree.Text(token.text, (token.start, token.end))

    def _end(self) -> int:
        return self._tokens[self._at - 1].end

    # -- expressions -------------------------------------------------------------------------------

    def _expression(self) -> tree.Expression:
        return self._binary(("+", "-"), lambda: self._binary(("*", "/"), self._factor))

    def _binary(self, signs: tuple[str, ...], read: Callable[[], tree.Expression]) -> tree.Expression:
        start = self.token.start
        result = read()
        count = 0
        while sign := self.accept(*signs):
            count += 1
            if count > _MAX_DEPTH:
                raise self.error(f"more than {_MAX_DEPTH} numbers in one sum")
            result = tree.Binary(sign, result, read(), (start, self._end()))  # type: ignore[arg-type]
        return result

    def _factor(self) -> tree.Expression:
        token = self.token
        if self.accept("("):
            inner = self._deeper(self._expression)
            self.expect(")")
            return inner
        if token.kind == "number":
            self._at += 1
            return tree.Number(token.text, "", (token.start, token.end))
        following = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        if token.kind == "word" and following.kind == "sign" and following.text == "(":
            self._at += 2
            return self._call(token)
        return self._path()

    def _call(self, name: Token) -> tree.Call:
        number, distinct, function = None, bool(self.accept("distinct")), name.text.casefold()
        of: tree.Expression | None = None
        options: list[tree.Expression] = []
        if self.accept("*") or (self.token.kind == "sign" and self.token.text == ")"):
            pass
        else:
            if function in (*ex.CHOSEN, *ex.PAIRED):
                options.append(self._deeper(self._argument))
                self.expect(",")
            of = self._deeper(self._argument if options else self._expression)
            if self.accept(","):
                if not isinstance(of, tree.Number) or not of.text.isdigit():
                    raise self.error(f"the first argument of {name.text} is how many: top(3, price)")
                number, of = int(of.text), self._deeper(self._expression)
        self.expect(")")
        return tree.Call(function, of, number, distinct, (name.start, self._end()), tuple(options))

    def _argument(self) -> tree.Expression:
        """Parse a text in single quotes, or an expression."""
        return self._text() if self.token.kind == "text" else self._expression()

    def _path(self) -> tree.Path:
        start = self.token.start
        if self.accept("@"):
            return tree.Path((), self._name(), (start, self._end()))
        steps: list[tree.Step] = []
        while True:
            backward = bool(self.accept("^"))
            quoted = self.token.kind == "name"
            name = self._name()
            if steps or backward or quoted or name.casefold() not in SELF:
                steps.append(tree.Step(name, backward))
            if len(steps) > _MAX_DEPTH:
                raise self.error(f"a path of more than {_MAX_DEPTH} steps")
            if not self.accept("."):
                break
        qualifier = self._name() if self.accept("@") else None
        return tree.Path(tuple(steps), qualifier, (start, self._end()))

    def _name(self) -> str:
        """Parse a quoted name, or words up to a sign or a reserved word."""
        if self.token.kind == "name":
            self._at += 1
            return self._tokens[self._at - 1].text
        start = self._at
        while self.token.kind in ("word", "number") and not self.token.reserved():
            if self._at > start and self._part_of_text():
                break
            self._at += 1
        if start == self._at:
            position = f"{self.token.text!r} stands" if self.token.kind != "end" else "the clause ends"
            hint = "a name that is a word of the clause, or has other signs, is put in double quotes"
            raise self.error(f"{position} where a name should be", hint)
        return " ".join(token.text for token in self._tokens[start : self._at])

    def _deeper(self, read: Callable[[], T]) -> T:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self.error(f"more than {_MAX_DEPTH} parts within each other")
        result = read()
        self._depth -= 1
        return result


def _closing(tokens: list[Token]) -> dict[int, int]:
    """Return the position of each opening parenthesis with that of its closing one."""
    closing: dict[int, int] = {}
    stack: list[int] = []
    for at, token in enumerate(tokens):
        if token.kind == "sign" and token.text == "(":
            stack.append(at)
        elif token.kind == "sign" and token.text == ")" and stack:
            closing[stack.pop()] = at
    return closing

"""The tokenizer of Cypher queries, with the helpers of the parser: take, expect, and refuse with a position."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

from condgraph.engine.errors import ParseError, shortened

T = TypeVar("T")
#: Limits: characters of a query, nesting of brackets, operators of one level in a row, and retries.
MAX_TEXT: Final = 1_000_000
_MAX_DEPTH: Final = 50
MAX_CHAIN: Final = 150
_MAX_RETRIES: Final = 100
MAX_INTEGER: Final = 2**63 - 1

_TOKEN: Final = re.compile(
    r"""(?P<space>\s++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)
    |(?P<word>[^\W\d]\w*+)
    |(?P<number>0[xX][0-9a-fA-F]++|0[oO][0-7]++|(?:\d[\d_]*+(?:\.\d++)?|\.\d++)(?:[eE][+-]?\d++)?)
    |(?P<string>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")
    |(?P<name>`(?:[^`]|``)*+`)
    |(?P<parameter>\$(?:\w++|`(?:[^`]|``)*+`))
    |(?P<mark><=|>=|<>|=~|\.\.|\|\||[-()\[\]{}<>=+*/%^.,:;|&!?])
    |(?P<bad>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "b": "\b", "f": "\f", "r": "\r", "\\": "\\", "'": "'", '"': '"', "`": "`"}
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)

#: First words of clauses that write or administer, and what these do.
WRITE_CLAUSES: Final = {
    "create": "creates", "merge": "creates", "set": "writes", "delete": "deletes", "detach": "deletes", "nodetach": "deletes",
    "remove": "deletes", "insert": "creates", "foreach": "writes", "load": "reads a file", "drop": "deletes",
    "alter": "administers",
    "grant": "administers", "deny": "administers", "revoke": "administers", "show": "administers", "terminate": "administers",
    "start": "administers", "stop": "administers", "use": "chooses a database",
}  # fmt: skip
CLAUSES: Final = frozenset(
    ("match", "optional", "where", "with", "return", "unwind", "union", "call", "order", "skip", "limit", "offset")
)
#: Words that cannot be variables without backticks.
RESERVED: Final = CLAUSES | frozenset(
    "and or xor not in is null true false case when then else end as distinct by asc desc starts ends contains".split()  # noqa: SIM905
)
_WRITE_HINT: Final = "graph.load(...) and graph.add(...) write; a query only reads"


class Tokens:
    """A tokenized query and the position of the parser.

    `names` has the first position of each label, type and key.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.kinds: list[str] = []
        self.values: list[Any] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.at = 0
        self.depth = 0
        self.fresh = 0
        self.retries = 0
        self.names: dict[tuple[str, str], tuple[int, int]] = {}
        kinds, values, starts, ends = self.kinds, self.values, self.starts, self.ends
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup
            if kind == "space":
                continue
            start = match.start()
            value: Any = match[0]
            if kind == "bad":
                self._refuse(value, start)
            elif kind == "name":
                value = value[1:-1].replace("``", "`")
            elif kind == "parameter":
                value = value[1:]
                value = value[1:-1].replace("``", "`") if value[0] == "`" else value
            elif kind == "string":
                value = self._string(value, start)
            elif kind == "number":
                if ends and ends[-1] == start and kinds[-1] in ("number", "word"):
                    self.refuse(f"{match[0]!r} follows {text[starts[-1] : start]!r} without a space", start)
                value = self._number(value, start)
            elif kind == "word" and ends and ends[-1] == start and kinds[-1] == "number":
                self.refuse(f"{text[starts[-1] : match.end()]!r} is neither a number nor a name", starts[-1])
            kinds.append(str(kind))
            values.append(value)
            starts.append(start)
            ends.append(match.end())
        kinds.append("end")
        values.append("")
        starts.append(len(text))
        ends.append(len(text))
        #: Words in lower case, and punctuation marks; "" for tokens of another kind.
        self.words = [value.lower() if kind == "word" else "" for kind, value in zip(kinds, values, strict=True)]
        self.marks = [value if kind == "mark" else "" for kind, value in zip(kinds, values, strict=True)]

    def _refuse(self, value: str, start: int) -> NoReturn:
        token = {"'": "a string", '"': "a string", "`": "a name in backticks", "$": "a parameter"}.get(value)
        if token == "a parameter":
            self.refuse("'$' without the name of a parameter", start)
        self.refuse(f"{token} begins here and does not end" if token else f"the character {value!r} (U+{ord(value):04X})", start)

    def _string(self, value: str, start: int) -> str:
        body = value[1:-1]
        if "\\" not in body:
            return body

        def unescaped(match: re.Match[str]) -> str:
            escape = match[1]
            if len(escape) > 1:
                code = int(escape[1:], 16)
                if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                    self.refuse(f"{match[0]!r} is not a character", start + 1 + match.start())
                return chr(code)
            if escape not in _ESCAPES:
                self.refuse(f"{match[0]!r} is not an escape in a string", start + 1 + match.start())
            return _ESCAPES[escape]

        return _ESCAPE.sub(unescaped, body)

    def _number(self, text: str, start: int) -> int | float:
        lowered = text.lower().replace("_", "")
        if lowered[:2] in ("0x", "0o"):
            number = int(lowered, 0)
        elif lowered.isdigit():
            number = int(lowered) if len(lowered) < 100 else MAX_INTEGER + 2
        else:
            value = float(lowered)
            if value in (float("inf"), float("-inf")):
                self.refuse(f"{shortened(text, 40)} is too large for a float", start)
            return value
        # The least integer is written with a minus, which is a token of its own.
        if number > MAX_INTEGER + 1:
            self.refuse(f"{shortened(text, 40)} is too large for an integer of 64 bits", start)
        return number

    # -- helpers -----------------------------------------------------------------------------------

    def refuse(self, what: str, start: int | None = None, *, hint: str | None = None, end: int | None = None) -> NoReturn:
        """Raise `ParseError` with a position, by default that of the current token."""
        start = self.starts[self.at] if start is None else start
        raise ParseError(shortened(what, 300), span=(start, start + 1 if end is None else end), hint=hint)

    def expected(self, what: str, *, hint: str | None = None) -> NoReturn:
        """Raise the error for an unexpected token."""
        at = self.at
        if self.words[at] in WRITE_CLAUSES:
            self.refuse_write()
        text = repr(shortened(self.text[self.starts[at] : self.ends[at]], 60))
        token = "the end of the query" if self.kinds[at] == "end" else text
        self.refuse(f"{what} is expected, not {token}", end=self.ends[at], hint=hint)

    def refuse_write(self) -> NoReturn:
        """Raise the error for a clause that does more than read."""
        word = self.words[self.at]
        clause = "LOAD CSV" if word == "load" else word.upper()
        message = f"{clause} {WRITE_CLAUSES[word]}; only queries that read are answered"
        self.refuse(message, end=self.ends[self.at], hint=_WRITE_HINT)

    def word(self, *words: str) -> bool:
        """Take a sequence of words if it comes next."""
        at = self.at
        if tuple(self.words[at : at + len(words)]) == words:
            self.at = at + len(words)
            return True
        return False

    def mark(self, mark: str) -> bool:
        """Take a punctuation mark if it comes next."""
        if self.marks[self.at] == mark:
            self.at += 1
            return True
        return False

    def need(self, mark: str) -> None:
        """Take a required punctuation mark."""
        if not self.mark(mark):
            self.expected(f"{mark!r}")

    def several(self, item: Callable[[], T]) -> list[T]:
        """Take one or more items, separated by commas."""
        items = [item()]
        while self.mark(","):
            items.append(item())
        return items

    def several_until(self, closing: str, item: Callable[[], T]) -> list[T]:
        """Take zero or more items, separated by commas, and the closing mark."""
        if self.mark(closing):
            return []
        # `several` is inlined to save stack, since brackets may be nested deeply.
        items = [item()]
        while self.mark(","):
            items.append(item())
        self.need(closing)
        return items

    def name(self, what: str) -> str:
        """Take a name: any word, or a text in backticks."""
        if self.kinds[self.at] not in ("word", "name"):
            self.expected(what)
        value: str = self.values[self.at]
        self.at += 1
        return value

    def variable(self, what: str = "a variable") -> str:
        """Take the name of a variable."""
        if self.kinds[self.at] == "name" and self.values[self.at][:1] == " ":
            self.refuse("the name of a variable begins with a space", self.starts[self.at])
        if self.words[self.at] in RESERVED:
            self.expected(what, hint=f"put a variable of that name in backticks: `{self.values[self.at]}`")
        return self.name(what)

    def anonymous(self) -> str:
        """Return a new variable that no query can name."""
        self.fresh += 1
        return f" {self.fresh}"

    def known(self, kind: str, name: str) -> str:
        """Record the position of a name just taken, for errors."""
        self.names.setdefault((kind, name), (self.starts[self.at - 1], self.ends[self.at - 1]))
        return name

    def again(self, at: int) -> None:
        """Go back to an earlier token, after a list that is not a comprehension; the number of retries is limited."""
        self.retries += 1
        if self.retries > _MAX_RETRIES:
            self.refuse(
                "too many lists that begin like comprehensions", self.starts[at], hint="put their first items in parentheses"
            )
        self.at = at

    def deeper(self) -> None:
        """Enter a nested level; raises `ParseError` if there are too many."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.refuse(f"brackets are nested more than {_MAX_DEPTH} deep", self.starts[self.at])

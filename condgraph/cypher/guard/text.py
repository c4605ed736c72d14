"""Whether the text of a query can only read, by its tokens alone.

A word is refused wherever it may begin a clause or a command that does more than read, at any
depth: in a subquery, a list, a `CASE`, a predicate. A word is let through where it can only be a
name (`n.set`, `:CALL`, `{load: 1}`, `AS show`). In doubt it is refused, and the error says that
backticks make it a name. Procedures and functions have to be on a list.
"""

from __future__ import annotations

from typing import Final

from condgraph.cypher.guard.tokens import MARK, NAME, NUMBER, WORD, Tokens, readings
from condgraph.cypher.guard.words import (
    AFTER_A_NAME,
    ASKING,
    BEFORE_PARENTHESIS,
    CLAUSES,
    COMMANDS,
    FUNCTIONS,
    KEYWORDS,
    OPTIONS,
    PROCEDURES,
    VERSIONS,
)
from condgraph.engine.errors import OptionError

#: After these a name or an expression stands, and never a clause.
_BEFORE_AN_OPERAND: Final = frozenset(".$([,=:|/^&-<~")
#: These follow a name, and no word that begins a clause.
_BEHIND_A_NAME: Final = frozenset("=<>,)]}:|/^%&;")
_ENDS, _ASKS = "ends", "asks"
_QUOTED: Final = "where it is a name, write it in backticks"


def check_text(text: str) -> None:
    """Raise `ReadOnlyError`, with the place, for a text that may do more than read; its time is
    linear in the length.
    """
    if not isinstance(text, str):
        raise OptionError(f"a query is a text, and this is {type(text).__name__}")
    for tokens in readings(text):
        _Reader(tokens).check()


class _Reader:
    """One reading of a text."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        #: What is sure of a token: that an operand ends with it, or that one has to follow.
        self.roles: list[str] = []
        #: Where names of procedures that may be called begin.
        self.called: set[int] = set()
        self.begin = self.prefix()

    def check(self) -> None:
        """Look at every token once."""
        tokens = self.tokens
        self.roles = [""] * self.begin
        for at in range(self.begin, len(tokens.kinds)):
            self.roles.append(self.role(at))
            if tokens.kinds[at] == WORD:
                self.check_word(at, tokens.values[at])
            elif tokens.kinds[at] == MARK:
                if tokens.values[at] == "(":
                    self.check_call(at)
                elif tokens.values[at] == ";" and at + 1 < len(tokens.kinds):
                    tokens.refuse(tokens.starts[at + 1], "a second statement")

    # -- the words before a query ------------------------------------------------------------------

    def prefix(self) -> int:
        """Where the query itself begins, after `CYPHER 25 runtime=slotted`."""
        tokens, at = self.tokens, 0
        if tokens.word(0) == "cypher":
            at = 1
            if tokens.kinds[1:2] == [NUMBER]:
                if tokens.values[1] not in VERSIONS:
                    tokens.refuse(tokens.starts[1], f"version {tokens.values[1]!r} of Cypher is not known here")
                at = 2
            while tokens.word(at) and tokens.mark(at + 1) == "=":
                if tokens.word(at) not in OPTIONS or not tokens.word(at + 2):
                    known = ", ".join(sorted(OPTIONS))
                    tokens.refuse(tokens.starts[at], f"the option {tokens.word(at)!r}", hint=f"these may be given: {known}")
                at += 3
        if (word := tokens.word(at)) in ("explain", "profile", "cypher"):
            tokens.refuse(tokens.starts[at], f"it begins with {word.upper()}, so that its plan cannot be asked for")
        return at

    # -- names and keywords ------------------------------------------------------------------------

    def role(self, at: int) -> str:
        """What is sure of a token, given those before it."""
        tokens = self.tokens
        if tokens.kinds[at] == MARK:
            return _ENDS if tokens.values[at] in ")]}" else ""
        if tokens.kinds[at] != WORD:
            return _ENDS
        word, mark, before = tokens.values[at], tokens.mark(at - 1), tokens.word(at - 1)
        if mark == "$" or (mark == "." and tokens.mark(at - 2) != "."):
            return _ENDS
        ended = at == self.begin or self.roles[at - 1] == _ENDS
        if word in ASKING and (ended or (mark == "{" and word in ("return", "with", "unwind"))):
            return _ASKS
        if before and not ended:
            pair = (before, word) in (("order", "by"), ("starts", "with"), ("ends", "with"))
            if pair and self.roles[at - 2 : at - 1] == [_ENDS]:
                return _ASKS
            if self.roles[at - 1] == _ASKS:
                if (before, word) == ("return", "distinct"):
                    return _ASKS
                return _ENDS if before == "as" or word not in KEYWORDS else ""
        return _ENDS if mark and mark in _BEFORE_AN_OPERAND and word not in KEYWORDS else ""

    def check_word(self, at: int, word: str) -> None:
        """Refuse a word that may begin what does more than read."""
        tokens = self.tokens
        if word in ("in", "concurrent") and tokens.word(at + 1) in ("transaction", "transactions"):
            if word == "concurrent" or tokens.mark(at - 1) == "}":
                tokens.refuse(tokens.starts[at], "IN TRANSACTIONS", hint=_QUOTED)
        elif word == "call":
            if not self.is_name(at):
                self.check_procedure(at)
        elif (word in CLAUSES or word in COMMANDS) and not self.is_name(at):
            after = tokens.word(at + 1)
            if word in COMMANDS and (after in AFTER_A_NAME or (tokens.mark(at + 1) and tokens.mark(at + 1) not in "($")):
                return
            tokens.refuse(tokens.starts[at], f"{f'{word} {after}'.strip().upper()} is no reading clause", hint=_QUOTED)

    def is_name(self, at: int) -> bool:
        """Whether the word can only be a name where it stands."""
        tokens = self.tokens
        mark, after = tokens.mark(at - 1), tokens.mark(at + 1)
        if mark == "$" or (mark == "." and tokens.mark(at - 2) != "."):
            return True
        if after == "(":
            return False
        if at + 1 == len(tokens.kinds) or (after and after in _BEHIND_A_NAME) or (after == "." and tokens.named(at + 2)):
            return True
        operand = (mark and mark in _BEFORE_AN_OPERAND) or (tokens.word(at - 1) and self.roles[at - 1] == _ASKS)
        return bool(operand) and tokens.kinds[at + 1] in (WORD, MARK) and (bool(after) or tokens.word(at + 1) in AFTER_A_NAME)

    # -- what is called ----------------------------------------------------------------------------

    def check_procedure(self, at: int) -> None:
        """Refuse `CALL` of what is neither a subquery nor on the list."""
        tokens, to = self.tokens, at + 1
        if tokens.mark(to) == "{":
            return
        if tokens.mark(to) == "(":
            to += 1
            while tokens.named(to) or (tokens.mark(to) and tokens.mark(to) in ",*"):
                to += 1
            if tokens.mark(to) == ")" and tokens.mark(to + 1) == "{":
                return
            tokens.refuse(tokens.starts[at], "CALL of something that is no subquery", hint=_QUOTED)
        parts = []
        while tokens.named(to):
            parts.append(self.written(to))
            if tokens.mark(to + 1) != ".":
                break
            to += 2
        name = ".".join(parts)
        if name not in PROCEDURES:
            tokens.refuse(tokens.starts[at], f"CALL of {name!r}, which is not on the list of procedures", hint=_QUOTED)
        self.called.add(at + 1)

    def written(self, at: int) -> str:
        """A name as it was written; names of procedures have small and capital letters."""
        return self.tokens.written(at) if self.tokens.kinds[at] == WORD else self.tokens.values[at]

    def check_call(self, at: int) -> None:
        """Refuse the function before a parenthesis where it is not on the list."""
        tokens, first = self.tokens, at - 1
        if not tokens.named(first):
            return
        while tokens.mark(first - 1) == "." and tokens.named(first - 2):
            first -= 2
        if first in self.called:
            return
        parts = tokens.values[first:at:2]
        name = ".".join(parts).upper().casefold()
        if name in FUNCTIONS and not any("." in part for part in parts):
            return
        if len(parts) == 1 and tokens.kinds[first] != NAME and (name in BEFORE_PARENTHESIS or name == "call"):
            return
        if len(parts) == 1 and tokens.mark(first - 1) == ":" and self.is_hint(first - 2):
            return
        tokens.refuse(tokens.starts[first], f"the function {'.'.join(parts)!r} is not on the list")

    def is_hint(self, at: int) -> bool:
        """Whether `USING INDEX n:Label(property)` has its variable here."""
        words = [self.tokens.word(one) for one in range(max(at - 4, 0), at)]
        return self.tokens.named(at) and "using" in words and "index" in words

"""What stands between the quotes of LLM queries: names as they are written, texts that are values, the
words of a step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from condgraph.grammars.parts import DIGIT, Chars, Part, Repeat, Seq, Text, alt, maybe, seq, trie
from condgraph.languages.llm.syntax.tokens import DOUBLE, SINGLE

#: Characters of the longest text that is a value, and of the words of a step.
LONGEST_TEXT: Final = 100
LONGEST_WORDS: Final = 160
_MENTION: Final = re.compile(r"output_?(?:of_?)?query_?\d", re.IGNORECASE)
_QUOTES: Final = SINGLE + DOUBLE
_UNSEEN: Final = (("\x00", "\x1f"), ("\x7f", "\x9f"), ("\u2028", "\u2029"))


def writable(name: str) -> bool:
    """Whether a name can stand in the quotes of an LLM query."""
    return bool(name.strip()) and name.isprintable() and not name.endswith("\\") and _MENTION.search(name) is None


def written(name: str) -> str:
    """A name as it stands between the quotes."""
    return re.sub(rf"([\\{_QUOTES}])", r"\\\1", name)


def names_of(names: Iterable[str]) -> Part | None:
    """One of these names, as far as they can be written; None where none can."""
    found = [written(name) for name in names if writable(name)]
    return trie(found) if found else None


def texts() -> dict[str, Part]:
    """The rules of words and of texts that are values: none of these reads as a result."""
    shut = tuple((quote, quote) for quote in _QUOTES)
    words = Chars((*_UNSEEN, ("{", "{"), ("}", "}")), negated=True)
    first = Chars((*_UNSEEN, *shut, ("\\", "\\"), ("`", "`"), (" ", " "), ("\xa0", "\xa0"), ("Y", "Y"), ("y", "y")), negated=True)
    plain = Chars((*_UNSEEN, *shut, ("\\", "\\"), ("`", "`"), ("Y", "Y"), ("y", "y")), negated=True)
    # No digit stands behind a y, so that no text is an output of a query.
    behind = Chars((*_UNSEEN, *shut, ("\\", "\\"), ("`", "`"), ("0", "9"), ("_", "_")), negated=True)
    why = Chars((("Y", "Y"), ("y", "y")))
    escaped = seq("\\", Chars((("'", "'"), ('"', '"'))))
    return {
        "words": seq(Chars((*_UNSEEN, ("{", "{"), ("}", "}"), (" ", " ")), negated=True), Repeat(words, 0, LONGEST_WORDS)),
        "text": Seq(
            (
                alt(first, escaped, seq(why, maybe(behind))),
                Repeat(alt(plain, escaped, seq(why, behind)), 0, LONGEST_TEXT),
                maybe(why),
            )
        ),
        "result-text": alt("yes", "no", "equal"),
        "plain-number": seq(maybe(Text("-")), Repeat(DIGIT, 1, 12), maybe(seq(".", Repeat(DIGIT, 1, 6)))),
        "few": seq(Chars((("1", "9"),)), maybe(DIGIT)),
    }

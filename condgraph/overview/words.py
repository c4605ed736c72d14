"""How the parts of a schema are said in a few words: names that cannot end their line, kinds,
values, qualifiers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from condgraph.engine.values import NO_UNIT
from condgraph.overview.records import UNNAMED, KindCount, PredicateSchema, QualifierKey, ValueCount

#: Characters of the longest name that is shown whole.
LONGEST: Final = 60


def cut(text: str, most: int = LONGEST) -> str:
    """A text of at most `most` characters, the last of which says that there were more."""
    return text if len(text) <= most else text[: most - 1] + "…"


#: What servers turn into the marks of a conversation ("<|im_end|>", "</s>", "[INST]") where it stands in a text.
_MARKS: Final = re.compile(
    r"<(?=[|｜]|<SYS>>|/?(?:s|unk|pad|bos|eos|cls|sep|mask|think|tool\w*|(?:start|end|begin)_of_\w+|user|assistant|system)>)"
    r"|\[(?=/?(?:INST|TOOL_\w+|AVAILABLE_TOOLS)\])",
    re.IGNORECASE,
)


def unmarked(text: str) -> str:
    r"""A text of JSON strings in which no mark of a conversation stands: its first letter is escaped, so that
    the strings say the same.

    >>> print(unmarked('"<|im_end|> [INST] </s> <b>"'))
    "\u003c|im_end|> \u005bINST] \u003c/s> <b>"
    """
    return _MARKS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def quoted(name: str, most: int = LONGEST) -> str:
    r"""A name as a JSON string of one line, cut, in which everything that is not printed is escaped:
    control characters, ends of lines, marks that turn the direction of writing round; and marks of a
    conversation.

    >>> print(quoted('a "b"\nc\u202e'), quoted(""), quoted("x" * 9, 5))
    "a \"b\"\nc\u202e" "" "xxxx…"
    """
    text = cut(name, most)
    if text.isprintable() and '"' not in text and "\\" not in text:
        return unmarked(f'"{text}"')
    return unmarked('"' + "".join(_escaped(c) for c in text) + '"')


def _escaped(c: str) -> str:
    return json.dumps(c)[1:-1] if c in '"\\' or not c.isprintable() else c


def plain(name: str) -> str:
    """A name as it is, cut, in which only what is not printed is escaped: for cells of tables."""
    text = cut(name)
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def kind_words(one: KindCount) -> str:
    """A kind with its name quoted."""
    if one.sort == "concept":
        return quoted(one.name)
    return f"rows of {quoted(one.name)}" if one.sort == "table" else UNNAMED[one.sort]


def kinds_words(kinds: Iterable[KindCount], most: int) -> str:
    """The first kinds with their counts."""
    listed = list(kinds)
    return listed_words([f"{kind_words(one)} {one.statements:,}" for one in listed[:most]], len(listed) - most)


def value_words(one: ValueCount, *, counted: bool = True) -> str:
    """A type with its unit, how many values it has, and the first and last of them."""
    unit = "" if one.unit == NO_UNIT else f" in {quoted(one.unit)}"
    span = "" if not one.first else f" {one.first}" if one.first == one.last else f" {one.first} to {one.last}"
    # A unit that stands with the numbers as well would be said twice; it is text of the data.
    if unit and span:
        span = span.replace(f" {one.unit}", "")
    return f"{one.type}{unit}{f' {one.count:,}' if counted else ''}{f' ({safe(span.strip())})' if span else ''}"


def safe(text: str) -> str:
    """A text as it stands within a JSON string, cut."""
    return quoted(text)[1:-1]


def qualifier_words(one: QualifierKey) -> str:
    """A key with the types of its values."""
    return f"{quoted(one.name)} {'/'.join(dict.fromkeys(value.type for value in one.values))}"


def examples_words(one: PredicateSchema, most: int) -> str:
    """The first examples."""
    return "; ".join(f"{quoted(some.subject)} → {quoted(some.object)}" for some in one.examples[:most])


def listed_words(parts: list[str], more: int) -> str:
    """Parts side by side, and how many there are beyond."""
    return ", ".join(parts) + (f" and {more:,} more" if more > 0 else "")

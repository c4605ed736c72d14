"""What is guessed of a database of others from samples: by which properties nodes are called, and
which texts are numbers or dates. Every choice comes with its reason.

A name that does not tell nodes apart, or is that of something else (the ship of an order), is worse
than none: without one a node is called by its label and its key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from condgraph.cypher.native.formats import ISO_DATE, ISO_DATETIME, time_format
from condgraph.cypher.native.kinds import NUMBER, format_of
from condgraph.cypher.native.mapping import Property
from condgraph.engine.errors import OptionError
from condgraph.engine.values import NO_UNIT, Precision, Quantity, Time, Value, collapse, parse_number

#: How the loader of tables reads a column with a header: the value of each text, None where it takes
#: it for missing. Loaders are above stores, so it is handed in.
Typing: TypeAlias = Callable[[Sequence[str], str], list[Value | None]]

#: The characters of a text that a sample has at most.
LONGEST: Final = 100
_FORMATS: Final = (
    *(ISO_DATE, "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d, %Y", "%Y-%m", "%Y"),
    *("%Y-%m-%d 00:00:00", "%Y-%m-%d 00:00:00.000", "%Y-%m-%dT00:00:00", "%Y-%m-%dT00:00:00Z", "%m/%d/%Y 00:00:00"),
)
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+").findall
#: Names by themselves, the best first.
_NAMES: Final = ("name", "title", "fullname", "displayname", "label", "caption", "headline", "subject", "heading")
#: Where no property is called like a name, short texts that tell nodes apart: these first, then texts of
#: words, then codes.
_DESCRIBING: Final = ("desc", "description", "shortdescription", "summary", "text")
_SHORT: Final = 60
#: Keys whose texts nobody wants to read, and texts that no person wrote.
_SECRET: Final = frozenset(["password", "passwd", "pwd", "hash", "token", "secret", "salt", "checksum", "digest"])
_MACHINE: Final = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|[0-9a-fA-F]{16,}|[A-Za-z0-9+/=_-]{32,}|\d{4}-\d\d.*|\W*\d[\d\W]*[A-Z]?"
).fullmatch
_FIRST: Final = ("firstname", "forename", "givenname", "first", "given")
_LAST: Final = ("lastname", "surname", "familyname", "last", "family")
#: What stands before "name" where it is that of something else.
_OTHERS: Final = frozenset(
    [
        "contact",
        "ship",
        "shipping",
        "user",
        "file",
        "short",
        "nick",
        "middle",
        "maiden",
        "host",
        "domain",
        "path",
        "class",
        "type",
        "event",
        "method",
        "column",
        "table",
    ]
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a sample has of a property: how many things were looked at, the types with how many had
    each, distinct texts (cut to `LONGEST`) whole numbers, how many different values, the longest list.
    """

    key: str
    sampled: int
    types: tuple[tuple[str, int], ...]
    texts: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    distinct: int = 0
    longest: int = 0
    #: Whether some text has white space to fold.
    spaced: bool = False

    @property
    def held(self) -> int:
        """How many have it."""
        return sum(count for _, count in self.types)


def name_of(label: str, seen: Sequence[Seen], unique: str | None) -> tuple[tuple[str, ...], str]:
    """The properties that name the nodes of a label together, and why; none where none does."""
    ranked = sorted(((rank, one.key, one) for one in seen if (rank := _rank(label, one)) is not None), key=lambda three: three[:2])
    if not ranked and unique is None:
        ranked = sorted((rank, one.key, one) for one in seen if (rank := _telling(one)) is not None)
    if not ranked:
        otherwise = f"its unique property {unique!r}" if unique else "the number of the server"
        return (), f"no text is a name: a node is called by its label and {otherwise}"
    rank, key, best = ranked[0]
    by_word = {_folded(one.key): one for one in seen if _is_text(one)}
    last = next((by_word[word] for word in _LAST if word in by_word), None)
    first = next((by_word[word] for word in _FIRST if word in by_word), None)
    if first is not None and last is not None and (rank >= 3 or key in (first.key, last.key)):
        return (first.key, last.key), f"{first.key!r} and {last.key!r} together; {_measured(first)}, {_measured(last)}"
    if _apart(best) < 0.9 and last is not None and last is not best:
        return (key, last.key), f"{key!r} does not tell apart, with {last.key!r} it does better; {_measured(best)}"
    return (key,), f"{_measured(best)}"


def _measured(one: Seen) -> str:
    return f"{one.key!r}: {one.held} of {one.sampled} sampled have it, {_apart(one):.0%} of these different"


def _rank(label: str, one: Seen) -> int | None:
    """How good a property is as a name, 0 the best; None where it is none."""
    if not _is_text(one) or not one.held or not one.texts:
        return None
    # Graphs that were made of RDF have a prefix before their keys: rdfs__label.
    share, apart, folded = one.held / one.sampled, _apart(one), _folded(one.key.rpartition("__")[2]).replace("preflabel", "label")
    words = [word.casefold() for word in _WORDS(one.key)]
    if sorted(map(len, one.texts))[len(one.texts) // 2] >= LONGEST or any(map(_address, one.texts[:20])):
        return None
    own = {_folded(label) + word for word in ("name", "title", "label")}
    if share < 0.5:
        return None
    if folded in own or folded in _NAMES:
        # What few values share is a kind, whatever it is called.
        if apart < 0.05 and one.held > 20:
            return None
        return 0 if folded in own else 1 + _NAMES.index(folded) // 3
    if folded in _FIRST or folded in _LAST:
        return 4
    if words and words[-1] in ("name", "title") and apart >= 0.9 and share >= 0.9:
        return 6 if words[0] in _OTHERS else 5
    return None


def _telling(one: Seen) -> int | None:
    """How good a property is as a name that is not called like one, 7 the best; None where it is none."""
    if not _is_text(one) or one.held < 0.9 * one.sampled or _apart(one) < 0.95 or one.spaced:
        return None
    words = {word.casefold() for word in _WORDS(one.key)}
    odd = sum(bool(_MACHINE(text)) or _address(text) or not any(c.isalpha() for c in text) for text in one.texts)
    lengths = sorted(map(len, one.texts))
    if words & _SECRET or odd * 10 > len(one.texts) or not lengths or lengths[len(lengths) * 9 // 10] > _SHORT:
        return None
    if _folded(one.key) in _DESCRIBING:
        return 7
    return 8 if sum(any(c.islower() for c in text) for text in one.texts) * 2 > len(one.texts) else 9


def _apart(one: Seen) -> float:
    return one.distinct / one.held if one.held else 0.0


def _is_text(one: Seen) -> bool:
    texts = sum(count for name, count in one.types if name == "STRING")
    return texts > 0 and texts >= 0.9 * one.held


def _folded(key: str) -> str:
    return "".join(c for c in key.casefold() if c.isalnum())


def _address(text: str) -> bool:
    return "://" in text or ("@" in text and " " not in text and "." in text)


def read_as(prop: Property, texts: Sequence[str], typing: Typing) -> tuple[Property, str | None]:
    """A property with how its text is read, and why where that is not as text. `texts` are all
    different texts of the sample; each has to be read like the loader of tables does.
    """
    untidy = prop.untidy or any(collapse(text) != text for text in texts)
    prop = replace(prop, untidy=untidy)
    # What is cut is longer than any number or date.
    if not texts or untidy or any(len(text) >= LONGEST for text in texts):
        return prop, None
    values = typing(texts, prop.key)
    if all(isinstance(value, Quantity) and value.unit == NO_UNIT for value in values):
        if all(re.fullmatch(NUMBER, text) for text in texts) and values == [Quantity(parse_number(text)) for text in texts]:
            return replace(prop, reading="number"), f"all {len(texts)} different texts of the sample are numbers; no index applies"
        return prop, None
    times = [value for value in values if isinstance(value, Time)]
    if len(times) < len(texts):
        return prop, None
    if all(time.precision is Precision.SECOND for time in times):
        form = time_format(ISO_DATETIME, moment=True)
        if [form.read(text) for text in texts] == times:
            return replace(
                prop, reading="datetime"
            ), f"all {len(texts)} different texts of the sample are moments; no index applies"
    for text_format in _FORMATS:
        if [time_format(text_format).read(text) for text in texts] == times:
            chosen = replace(prop, reading="date", format=None if text_format == ISO_DATE else text_format)
            return chosen, f"all {len(texts)} different texts of the sample are dates as {text_format}; no index applies"
    return prop, None


def check_reading(prop: Property, texts: Sequence[str]) -> None:
    """Raise `OptionError` where a property is to be read in a way in which nothing of the sample can
    be read; the hint has what reads more. `texts` are those of the sample, and its whole numbers.
    """
    form = format_of(prop)
    if prop.format is None and any(name in ("DATE", "LOCAL DATETIME", "ZONED DATETIME") for name, _ in prop.types):
        # It is one already; text beside it is read where it can be.
        return
    if form is not None and not any(form.read(one) is not None for one in texts):
        tried = {one: sum(time_format(one).read(text) is not None for text in texts) for one in _FORMATS}
        better = max(tried, key=lambda one: tried[one])
        most = tried[better]
    elif prop.reading == "number" and not any(re.fullmatch(NUMBER, one) for one in texts):
        better, most = "", 0
    else:
        return
    if all(name != "STRING" and (form is None or name != "INTEGER") for name, _ in prop.types):
        kinds = " and ".join(name for name, _ in prop.types) or "nothing"
        raise OptionError(f"{prop.key!r} is {kinds}, and no text that could be read as {prop.reading}", hint="leave `as` out")
    what = f"the format {form.format!r}" if form is not None else "a number without unit"
    such = f"they are such as {texts[0]!r}" if texts else "there is no text in the sample"
    hint = f"{better!r} reads {most} of them" if most else such
    raise OptionError(f"{what} reads none of the {len(texts)} different values of {prop.key!r} in the sample", hint=hint)

"""Qualifiers in words: as conditions that follow a clause, and as what is asked of a fact."""

from __future__ import annotations

from typing import Final

from condgraph.engine.values import Time
from condgraph.questions import forms
from condgraph.questions.description import Restriction
from condgraph.questions.lexicon import PREPOSITIONS, TAKEN
from condgraph.questions.spelled import cell, compared, moment, when

#: What is asked of a fact, by the words of the qualifier.
_ASKED: Final = {
    "point in time": "when was that",
    "start time": "since when",
    "end time": "until when",
    "month of the year": "in which month was that",
    "month number": "what is the number of the month",
    "location": "where was that",
    "subject of": "what is that the subject of",
    "applies to part": "to which part does that apply",
}


def restriction(one: Restriction) -> str:
    """A qualifier as it follows a clause.

    >>> restriction(Restriction("point in time", "=", Time.year(2003)))
    'in 2003'
    >>> restriction(Restriction("approved by", "=", "Senate")), restriction(Restriction("character role", "=", "Darth Vader"))
    ('(approved by Senate)', '(with Darth Vader as the character role)')
    """
    key = forms.words_of(one.key).casefold()
    if isinstance(one.value, Time):
        if key in ("point in time", "time", "date", "year"):
            return when(one.op, one.value)
        if key == "start time":
            return f"from {moment(one.value)} on" if one.op == "=" else f"from {when(one.op, one.value)} on"
        if key == "end time":
            return f"until {moment(one.value)}" if one.op == "=" else f"until {when(one.op, one.value)}"
    if one.op != "=":
        return f"(the {key} is {compared(one.op, one.value)})"
    first, last = (*key.split(), "")[0], key.rpartition(" ")[2]
    if key == "month of the year":
        return f"(in {cell(one.value)})"
    if key == "month number":
        return f"(in month {cell(one.value)})"
    if first in ("for", "of", "with", "by"):
        return f"({first} {cell(one.value)})"
    if (first in ("located",) and " " in key) or last in PREPOSITIONS or _ing(key):
        return f"({'located in' if first == 'located' else key} {cell(one.value)})"
    return f"(with {cell(one.value)} as the {key})"


def restrictions(those: tuple[Restriction, ...]) -> str:
    """Qualifiers in a row, each after a space."""
    text = "".join(f" {restriction(one)}" for one in those)
    return text.replace(" on until ", " until ")


def about(key: str) -> str:
    """What is asked of a fact, after it is told.

    >>> about("start time"), about("position held"), about("for work"), about("followed by")
    ('since when', 'which position was held', 'for which work was that', 'followed by whom or what')
    >>> about("country"), about("cause of")
    ('what is the country given there', 'what is given there as “cause of”')
    """
    name = forms.words_of(key).casefold()
    words = [*name.split(), "", ""]
    if name in _ASKED:
        return _ASKED[name]
    if name in ("of", "for", "with", "by") or _ing(name):
        return f"{name} what"
    if words[0] == "for":
        return f"for which {name[4:]} was that"
    if words[0] == "located" and words[1] in ("in", "on", "at"):
        return "where is that located"
    if words[:2] == ["member", "of"]:
        return f"a member of which {name[10:]}" if words[2] else "a member of what"
    if len(words) == 4 and words[1] in TAKEN:
        return f"which {words[0]} was {words[1]}"
    if len(words) == 4 and words[1] == "by":
        return f"{name} whom or what"
    return f"what is the {name} given there" if forms.forms(key).whose else f"what is given there as “{name}”"


def _ing(key: str) -> bool:
    return key in ("excluding", "including", "following", "replacing")

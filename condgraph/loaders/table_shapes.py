"""The words and shapes that the typing of columns goes by: missing cells, header words, and what a column counts a cell as."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, TypeAlias

from condgraph.loaders.table_numbers import Reading, read_number
from condgraph.loaders.table_times import read_time

#: A missing cell, white space collapsed and case folded.
MISSING: Final = frozenset(("", "n/a", "n.a.", "#n/a", "null", "-", "–", "—", "−", "--", "––", "——", "---", "–––", "———"))
MISSING_NUMBERS: Final = frozenset(("nan", "na", "#value!", "#div/0!"))
#: Longer texts are not looked at: no number or date is.
LONGEST: Final = 80
#: Header words that make four digits a year; the second set only where nothing else stands in the header.
YEAR_WORDS: Final = frozenset(
    """year years yr season seasons date dates since until founded established opened closed built completed introduced released
    release launched launch formed foundation formation created joined elected election inaugurated debut debuted premiere premiered
    published publication born birth died death construction constructed incorporated incorporation commissioned decommissioned
    retired dissolved disbanded abolished abandoned commenced begun began ended expires appointed inducted issued awarded installed
    identified isolated designated discovered signed ratified adopted worn notified established establishment est demolished
    ordained enacted""".split()
)
YEAR_HEADERS: Final = frozenset(
    ("from", "to", "start", "end", "ends", "begin", "first", "last", "latest", "in service", "took office", "left office", "held",
     "first held", "last final", "entered competition", "start of term", "end of term", "term", "vintage", "when", "time", "period")
)
CERTAIN_YEAR_WORDS: Final = frozenset(("year", "years", "yr", "season", "seasons", "date", "dates"))
#: Words that make a number of what another word of the header would make a year: "number built".
AMOUNT_WORDS: Final = frozenset(
    """number no total count amount population size height cost price capacity attendance length weight votes points units sales
    elevation area distance rank speed power""".split()
)
SEASON_WORDS: Final = frozenset(("season", "seasons", "years", "career", "term", "period", "tenure", "span", "duration", "reign"))
CLOCK_WORDS: Final = re.compile(
    r"\b(?:kick-?off|tip-?off|start|starts|end|ends|utc|gmt|[ecmp][sd]?t|cest|departure|arrival|departs?|arrives?|opens?|closes?"
    r"|sunrise|sunset|local|time of day|clock|hour)\b"
)
DURATION_WORDS: Final = re.compile(
    r"\b(?:length|duration|running|runtime|run time|laps?|split|result|performance|notes|elapsed|delta|gap|interval|finish|delay|race"
    r"|record|best|m:ss?|mm:ss|h:mm?:ss?|hh:mm:ss|minutes|played|retired)\b"
)
MONEY_WORDS: Final = re.compile(r"\b(?:profits?|loss(?:es)?|net|income|balance|amount|cash|earnings|revenues?|surplus|deficit|result|ebitda)\b")
_PLAIN: Final = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII).fullmatch
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9]\d{0,14})\.\d{1,15}", re.ASCII).fullmatch
_MARKS: Final = re.compile(r"(?:\s?(?:\[[^\[\]]{1,20}\]|[*†‡§¶^=]))+$")
_DIGIT: Final = re.compile(r"\d", re.ASCII).search

#: What a column counts a cell as: its readings without their values.
Shape: TypeAlias = tuple[Reading, ...]
INT: Final[Shape] = (Reading("number", "num", ""),)
YEAR: Final[Shape] = (Reading("number", "num", ""), Reading("time", "year", ""))
POINT: Final[Shape] = (Reading("number", "en", ""),)


def readings(text: str) -> tuple[Reading, ...]:
    """Every reading of a text, white space collapsed; empty where it can only be text."""
    if len(text) > LONGEST or not _DIGIT(text):
        return ()
    return _readings(text)


@lru_cache(maxsize=1 << 16)
def _readings(text: str) -> tuple[Reading, ...]:
    bare = _MARKS.sub("", text)
    if not bare:
        return ()
    return (*read_number(bare), *read_time(bare))


def shape(text: str) -> Shape:
    """What a column counts a text by, white space collapsed: () where it can only be text."""
    if _PLAIN(text):
        return YEAR if len(text) == 4 and "1000" <= text <= "2100" else INT
    if _DECIMAL(text) and (text[-4:-3] != "." or text.startswith(("0", "-0"))):
        return POINT
    return tuple(reading._replace(value="") for reading in readings(text))

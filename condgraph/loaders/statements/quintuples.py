"""Temporal facts: `head, relation, tail, start, end` a line, or `head, relation, tail, time`.

The times become the qualifiers `start time` and `end time`, or `point in time`. `####` is a time
that is not known, `2012-##-##` the year, an empty field or `-` an open end, which has no qualifier.
Statements go out as batches of about 100,000 lines.

Times as graph files write them: ISO forms, slashes, and `#` for digits that are not known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, Batch, Ids, Item, Ref
from condgraph.engine.reading.times import read_time as cell_times
from condgraph.engine.values import UNKNOWN, Time, Unknown, Value
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.files import head_lines, path_of
from condgraph.loaders.statements.lines import (
    END,
    HEAD,
    RELATION,
    START,
    TAIL,
    TIME,
    EntityNames,
    columns_of,
    find_shape,
    likeness,
    shape_of,
    split,
)
from condgraph.loaders.statements.triples import TRIPLE_OPTIONS, Predicates

_SLASHED: Final = re.compile(r"([+-]?\d{1,6})/(\d{1,2})/(\d{1,2})").fullmatch
_MASKED: Final = re.compile(r"([+-]?)([\d#]{1,12})(?:-(##|\d{1,2}))?(?:-(##|\d{1,2}))?").fullmatch
_YEAR_LIKE: Final = re.compile(r"[+-]?\d{1,5}", re.ASCII).fullmatch


def read_time(text: str) -> Time:
    """Read an ISO year, month, day or second, a day as YYYY/MM/DD, or a year with its era; raises
    ValueError saying what is wrong.

    >>> str(read_time("1984/12/30")), str(read_time("-0043")), str(read_time("44 BC"))
    ('1984-12-30', '-43', '-43')
    """
    slashed = _SLASHED(text.strip())
    if slashed:
        year, month, day = (int(part) for part in slashed.groups())
        return Time.day(year, month, day)
    if text.strip()[-1:] in ("C", "E", "D", "."):
        era = next((one.value for one in cell_times(text.strip()) if one.tag == "era"), None)
        if isinstance(era, Time):
            return era
    if "/" in text:
        raise ValueError(f"{text!r} is not a time")
    return Time.parse(text)


def read_bound(text: str) -> Time | Unknown | None:
    """Read one end of a validity: a time, `UNKNOWN` for `####`, None for an open end (empty or
    `-`).

    `2012-##-##` is the year, `1850-05-##` the month, `18##` the whole century. Raises ValueError
    for anything else, also for a known day in an unknown month.

    >>> str(read_bound("1850-05-##")), str(read_bound("18##-##-##")), read_bound("####-##-##"), read_bound("-")
    ('1850-05', '1800/1899', UNKNOWN, None)
    """
    text = text.strip()
    if text in ("", "-"):
        return None
    if "#" not in text:
        return read_time(text)
    found = _MASKED(text)
    if found is None:
        raise ValueError(f"{text!r} is not a time")
    sign, year, month, day = found.groups()
    unknown_month = month in (None, "##")
    unknown_day = day in (None, "##")
    digits = year.rstrip("#")
    if "#" in digits:
        raise ValueError(f"{text!r} has unknown digits before known ones")
    if unknown_month and not unknown_day:
        raise ValueError(f"{text!r} has a day and no month")
    if not digits:
        if sign or not unknown_month:
            raise ValueError(f"{text!r} has no year")
        return UNKNOWN
    if len(digits) == len(year):
        whole = int(sign + year)
        if unknown_month:
            return Time.year(whole)
        return Time.month(whole, int(month)) if unknown_day else Time.day(whole, int(month), int(day))
    if not unknown_month:
        raise ValueError(f"{text!r} has a month and no exact year")
    missing = len(year) - len(digits)
    ends = sorted(int(sign + digits + filler * missing) for filler in "09")
    return Time.span(Time.year(ends[0]), Time.year(ends[1]))


def bound_kind(text: str) -> Literal["time", "open", "signed", "small", ""]:
    """What a field could be as one end of a validity: a time, an open end, a number of one or two
    digits with or without a sign (a year perhaps), or nothing of the kind.
    """
    text = text.strip()
    if text in ("", "-"):
        return "open"
    if _YEAR_LIKE(text) and len(text.lstrip("+-")) < 3:
        return "signed" if text[0] == "-" else "small"
    try:
        read_bound(text)
    except ValueError:
        return ""
    return "time"


def looks_like_bound(text: str) -> bool:
    """Whether a field could be one end of a validity: used to recognise files, so open ends count
    and bare small numbers do not.
    """
    return bound_kind(text) in ("time", "open")


ROLES: Final = ((HEAD, RELATION, TAIL, START, END), (HEAD, RELATION, TAIL, TIME))
_KEYS: Final = {START: START_TIME, END: END_TIME, TIME: POINT_IN_TIME}

Bound = Time | Unknown | str | None


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    predicates = Predicates(options, reading)
    names = EntityNames(options, reading)
    bounds = Bounds(reading)
    for piece in _facts(source, reading, options):
        named = predicates.column(piece.relations)
        yield from names.declare(piece.heads, piece.tails)
        yield from predicates.memberships(piece.rows, piece.heads, named, piece.tails, names)
        columns = {role: bounds.column(texts, piece.rows, role) for role, texts in piece.times.items()}
        if START in columns and END in columns:
            bounds.in_order(columns[START], columns[END], piece)
        qualifiers: list[tuple[str, Sequence[Ref | Value | None]]] = [
            (_KEYS[role], column) for role, column in columns.items() if any(value is not None for value in column)
        ]
        prefix = names.prefix
        yield Batch(
            [prefix + head for head in piece.heads] if prefix else piece.heads,
            named,
            Ids([prefix + tail for tail in piece.tails] if prefix else piece.tails),
            piece.rows,
            None,
            qualifiers,
        )
    names.finish()


@dataclass(frozen=True, slots=True)
class _Piece:
    """Columns of facts: line numbers, heads, relations, tails, and the texts of times by role."""

    rows: Sequence[int]
    heads: list[str]
    relations: list[str]
    tails: list[str]
    times: dict[str, list[str]]


def _facts(source: Any, reading: Reading, options: Options) -> Iterator[_Piece]:
    if _claims(source):
        columns = [list(column) for column in zip(*source, strict=True)]
        roles = next(roles for roles in ROLES if len(roles) == len(columns))
        yield _Piece(range(1, len(source) + 1), columns[0], columns[1], columns[2], dict(zip(roles[3:], columns[3:], strict=True)))
        reading.advance(len(source), 1.0)
        return
    path = path_of(source)
    shape = shape_of(path, ROLES, reading, options)
    if shape is None:
        return
    for rows, columns in columns_of(path, shape, reading, options):
        by_role = dict(zip(shape.roles, columns, strict=True))
        times: dict[str, list[str]] = {role: by_role[role] for role in (START, END, TIME) if role in by_role}
        yield _Piece(rows, by_role[HEAD], by_role[RELATION], by_role[TAIL], times)


class Bounds:
    """Reads columns of times, each spelling once."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._known: dict[str, Bound] = {}
        self._wrong: dict[str, str] = {}

    def column(self, texts: Sequence[str], rows: Sequence[int], field: str) -> list[Bound]:
        """The values of a column of times; a text that cannot be a time is warned about and kept as
        text.
        """
        known, wrong = self._known, self._wrong
        fresh = [text for text in dict.fromkeys(texts) if text not in known]
        for text in fresh:
            try:
                known[text] = read_bound(text)
            except ValueError as error:
                known[text] = " ".join(text.split())
                wrong[text] = str(error)
        if wrong:
            for row, text in zip(rows, texts, strict=True):
                if text in wrong:
                    self._reading.warn(f"{wrong[text]}; kept as text", row=row, field=field)
        return [known[text] for text in texts]

    def in_order(self, starts: list[Bound], ends: list[Bound], piece: _Piece) -> None:
        """Make both bounds unknown, with a warning, where a start lies after its end."""
        pairs = set(zip(starts, ends, strict=True))
        turned = {
            pair for pair in pairs if isinstance(pair[0], Time) and isinstance(pair[1], Time) and pair[0].start >= pair[1].end
        }
        if not turned:
            return
        for at, pair in enumerate(zip(starts, ends, strict=True)):
            if pair in turned:
                self._reading.warn(
                    f"the start {pair[0]} lies after the end {pair[1]}; both are taken as unknown", row=piece.rows[at]
                )
                starts[at] = ends[at] = UNKNOWN


def _claims(source: Any) -> bool:
    return (
        isinstance(source, (list, tuple))
        and bool(source)
        and isinstance(source[0], (list, tuple))
        and len(source[0]) in (4, 5)
        and all(
            isinstance(one, (list, tuple))
            and len(one) == len(source[0])
            and all(isinstance(part, str) for part in one)
            and all(part.strip() for part in one[:3])
            for one in source
        )
    )


def _sniff(path: Path, head: bytes) -> int:
    lines = head_lines(head)
    shape = find_shape(lines, ROLES) if lines else None
    if shape is None:
        return 0
    rows = [row for row in (split(line, shape.mark) for line in lines[shape.header :]) if len(row) == len(shape.roles)]
    times = [row[at] for row in rows for at, role in enumerate(shape.roles) if role in (START, END, TIME)]
    if not _are_times(times, shape.header, shape.header and START in shape.roles):
        return 0
    likely = likeness(lines, shape)
    if not likely and shape.share < 0.9:
        return 0
    # Times in their place say more than the words of relations do; where the first line has them,
    # it is no table's header either, unless its years stand above relations that do come again.
    first = split(lines[0], shape.mark)
    places = [at for at, role in enumerate(shape.roles) if role in (START, END, TIME)]
    timed = len(first) == len(shape.roles) and any(first[at].strip("-") and looks_like_bound(first[at]) for at in places)
    relations = [row[at] for row in rows] if (at := shape.at(RELATION)) is not None else []
    heads = relations[0] not in relations[1:] and len(set(relations[1:])) < len(relations) - 1
    return max(min(95, likely + 10), 75 if timed and not shape.header and not heads else 0)


def _are_times(texts: Sequence[str], named: bool, both: bool) -> bool:
    """Whether nearly all of some texts are times. Years of one or two digits are where others leave no
    doubt: those before Christ where a header names the times or one time has more digits, those after
    it where there is both, or a header that names the start and the end.
    """
    kinds: Counter[str] = Counter()
    for text in texts:
        kinds[bound_kind(text)] += 1
        if kinds[""] > 0.05 * len(texts):
            return False
    plain, signed, small = kinds["time"], kinds["signed"], kinds["small"]
    if named or plain:
        plain += signed
        plain += small if both or (named and plain) else 0
    return plain > 0 and plain + kinds["open"] >= 0.95 * len(texts)


FORMAT: Final = Format(
    name="quintuples",
    about="head, relation, tail, start, end (or head, relation, tail, time): one temporal fact a line",
    read=_read,
    options=TRIPLE_OPTIONS,
    sniff=_sniff,
    claims=_claims,
)

"""How graph files of one fact a line are written: which mark is between the fields, what each column
is, whether the first line is a header; and how much lines look like facts at all.

Used by the loaders of triples and of temporal facts. `delimited` reads a file of a known shape.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any, Final

from condgraph.engine.errors import FormatError, OptionError
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.files import ENCODING_HELP, blocks, head_lines, read_head
from condgraph.loaders.statements.names import option_text
from condgraph.loaders.table.dialect import heads_other_kinds

#: What a column is: its role.
HEAD: Final = "head"
RELATION: Final = "relation"
TAIL: Final = "tail"
START: Final = "start"
END: Final = "end"
TIME: Final = "time"
#: A column that `columns=` leaves out.
NOTHING: Final = "-"

#: What the headers of such files call their columns, by role (lower case, spaces for `_` and `-`).
WORDS: Final[Mapping[str, frozenset[str]]] = {
    HEAD: frozenset(
        {"head", "subject", "subj", "s", "h", "source", "src", "from", "head id", "subject id", "source id", "head entity"}
    ),
    RELATION: frozenset(
        {"relation", "predicate", "pred", "p", "r", "rel", "edge", "property", "relation id", "predicate id", "relationship"}
    ),
    TAIL: frozenset(
        {"tail", "object", "obj", "o", "t", "target", "dst", "to", "tail id", "object id", "target id", "tail entity", "value"}
    ),
    START: frozenset(
        {"start", "start time", "start year", "start date", "begin", "since", "valid from", "from", "time start", "s"}
    ),
    END: frozenset({"end", "end time", "end year", "end date", "until", "valid to", "to", "time end", "e"}),
    TIME: frozenset({"time", "date", "year", "timestamp", "point in time", "when"}),
}

#: Marks that are tried, in this order; the empty one is any run of white space.
MARKS: Final = ("\t", " | ", "|", ",", ";", "")
#: Marks with which fields may stand in quotes.
QUOTING: Final = frozenset(",;")

#: The options of this module, for the `options` of a format.
SHAPE_OPTIONS: Final[Mapping[str, str]] = {
    "delimiter": "what stands between the fields (default: found out); '' is any run of white space",
    "columns": "what the columns are, in the file's order, as a list or text ('head, tail, relation', 'htr'); '-' leaves one out",
    "header": "whether the first line names the columns (default: found out by its words)",
    "encoding": ENCODING_HELP,
}
#: What stands alone between white space, and is no relation.
_LONE: Final = frozenset(",;|")
#: What means something to `csv`.
_SPECIAL: Final = re.compile('["\r\n\0]').search
_ID: Final = re.compile(r"[A-Z]?\d+", re.ASCII).fullmatch


@dataclass(frozen=True, slots=True)
class Shape:
    """How the lines of a file are read: the mark between fields, the role of each column, and
    whether the first line is a header.

    `share` is the part of the lines looked at that have the right number of fields.
    """

    mark: str
    roles: tuple[str, ...]
    header: bool
    share: float = 1.0

    def at(self, role: str) -> int | None:
        """The position of a role's column, or None."""
        return self.roles.index(role) if role in self.roles else None


def split(line: str, mark: str) -> list[str]:
    """The fields of one line, without white space around them."""
    if mark in QUOTING:
        try:
            fields = next(csv.reader([line], delimiter=mark, strict=True), [])
        except csv.Error:
            fields = []
    else:
        fields = line.split(mark or None)
    return [field.strip() for field in fields]


def _width(line: str, mark: str) -> int:
    """How many fields `split` finds."""
    if mark in QUOTING and (not line or len(line) > csv.field_size_limit() or _SPECIAL(line)):
        return len(split(line, mark))
    return line.count(mark) + 1 if mark else len(line.split())


def roles_of(words: Sequence[str], choices: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The roles of columns with these words for headers, when the words name one of the choices of
    roles in some order.
    """
    plain = [" ".join(word.casefold().replace("_", " ").replace("-", " ").split()) for word in words]
    for roles in choices:
        if len(roles) != len(plain):
            continue
        for order in permutations(roles):
            if all(word == role or word in WORDS[role] for word, role in zip(plain, order, strict=True)):
                return order
    return None


def find_shape(lines: Sequence[str], choices: Sequence[tuple[str, ...]], options: Options | None = None) -> Shape | None:
    """How to read a file that begins with these lines, or None when no line has as many fields as
    one of the choices of roles.

    The choices are the roles in their usual order, e.g. `(HEAD, RELATION, TAIL)`. Options
    `delimiter`, `columns` and `header` decide where they are given; raises `OptionError` when they
    make no sense.
    """
    options = options or {}
    given = _columns_option(options.get("columns"), choices)
    wanted = (given,) if given is not None else tuple(choices)
    mark_option = options.get("delimiter")
    if mark_option is not None:
        option_text(options, "delimiter")
        if "\n" in mark_option or "\r" in mark_option or '"' in mark_option:
            raise OptionError(f"delimiter={mark_option!r} cannot stand between fields")
    marks = MARKS if mark_option is None else (mark_option,)
    best: Shape | None = None
    sample = [line for line in lines if not _is_count(line, lines)] if len(lines) > 1 else list(lines)
    for mark in marks:
        widths = [_width(line, mark) for line in sample]
        for roles in wanted:
            share = widths.count(len(roles)) / max(1, len(widths))
            if share and (best is None or share > best.share):
                first = split(sample[0], mark)
                named = roles_of(first, choices) if given is None and len(first) == len(roles) else None
                header = named is not None if given is None else roles_of(first, choices) is not None
                best = Shape(mark, named or roles, header, share)
    declared = options.get("header")
    if declared is not None and not isinstance(declared, bool):
        raise OptionError(f"header= is true or false, not {declared!r}")
    if best is not None and declared is not None and declared != best.header:
        if declared and len(split(sample[0], best.mark)) != len(best.roles):
            raise FormatError(f"the header {sample[0][:80]!r} does not have {len(best.roles)} fields as the lines below it")
        roles = best.roles if declared else next(roles for roles in wanted if len(roles) == len(best.roles))
        best = Shape(best.mark, roles, declared, best.share)
    return best


def _is_count(line: str, lines: Sequence[str]) -> bool:
    """Whether a line is the lone count that some files of ids begin with."""
    return line is lines[0] and line.strip().isdecimal()


def _columns_option(columns: Any, choices: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    if columns is None:
        return None
    if isinstance(columns, str):
        words = columns.replace(",", " ").split()
        if len(words) == 1:
            words = list(words[0])
    elif isinstance(columns, Sequence) and all(isinstance(word, str) for word in columns):
        words = list(columns)
    else:
        raise OptionError("columns= is a list of column names, or text")
    kept = [word for word in words if word != NOTHING]
    roles = roles_of(kept, choices)
    if roles is None:
        known = " or ".join(", ".join(choice) for choice in choices)
        raise OptionError(f"columns={columns!r} does not name {known}, each once", hint="'-' leaves a column out")
    named = iter(roles)
    return tuple(NOTHING if word == NOTHING else next(named) for word in words)


def shape_of(path: Path, choices: Sequence[tuple[str, ...]], reading: Reading, options: Options) -> Shape | None:
    """How to read a file; None for one without lines, which is warned about. Raises `FormatError`
    when no line fits.
    """
    encoding = options.get("encoding")
    lines = head_lines(read_head(path)) if encoding is None else []
    if not lines:
        first = next((lines for _, lines in blocks(path, Reading(reading.source, "skip"), encoding)), [])
        lines = [line for line in first if line.strip()][:1000]
    if not lines:
        reading.warn("the file has no lines")
        return None
    shape = find_shape(lines, choices, options)
    if shape is None:
        widths = " or ".join(str(len(roles)) for roles in choices)
        raise FormatError(
            f"no line has {widths} fields; the first is {lines[0][:80]!r}",
            file=str(path),
            hint="delimiter= and columns= say how the lines are read",
        )
    return shape


def likeness(lines: Sequence[str], shape: Shape) -> int:
    """How much lines of this shape look like facts and not like a table: 0 to 100.

    A header of known words says it outright. Otherwise relations are few, and the first line is one
    like the others: its relation comes again, or a column of ids has one there (the first line of a
    table is a header, whose words do neither).
    """
    # A tenth of the lines may be bad; of a few lines, one.
    if shape.share < 0.9 and round((1 - shape.share) * len(lines)) > (len(lines) > 2):
        return 0
    if shape.header:
        return 90
    rows = [row for row in (split(line, shape.mark) for line in lines) if len(row) == len(shape.roles)]
    at = shape.at(RELATION)
    relations = [row[at] for row in rows] if at is not None else []
    if sum(row[0].count(" ") >= 5 for row in rows) * 2 > len(rows):
        return 0  # sentences: a file of questions
    if not shape.mark and any(row[1] in _LONE for row in rows[:20]):
        return 0  # a table whose delimiter has white space around it
    if not shape.mark and len(split(lines[_is_count(lines[0], lines)], "")) != len(shape.roles):
        return 0  # a title above sentences
    by_mark = {"\t": 70, "|": 80, " | ": 80, "": 60}.get(shape.mark, 55)
    places = [place for place, role in enumerate(shape.roles) if role in (HEAD, RELATION, TAIL)]
    again = relations[0] in relations[1:]
    headed = not again and heads_other_kinds(rows)
    alike = again or (len(rows) > 1 and not headed and any(_of_ids([row[place] for row in rows]) for place in places))
    few = len(set(relations)) * 2 <= len(relations)
    if alike and few:
        return by_mark
    if not shape.mark:
        return 0  # any text has white space
    if alike:
        return by_mark - 15
    if headed:
        return 10  # a table
    ends = [place for place in places if place != at]
    linked = not {row[place] for row in rows[1:] for place in ends}.isdisjoint(rows[0][place] for place in ends)
    pipe = "|" in shape.mark
    return by_mark - (5 if linked else 25 if pipe and len(rows) == 1 else 40 if pipe else 35)


def _of_ids(column: Sequence[str]) -> bool:
    """Whether every field of a column, the first one too, is an id of one kind: `Q42`, `17`, or a
    common beginning as `/m/`.
    """
    return all(map(_ID, column)) or (len(set(column)) > 1 and len({one[:2] for one in column}) == 1)

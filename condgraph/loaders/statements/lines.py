"""Graph files of one fact a line: how they are written (the mark between fields, what each column is,
whether the first line is a header), how much lines look like facts at all, and their columns in
large pieces: by whole columns, a million lines a second. Also the names of ids: tables of names, one
name a predicate, a prefix for ids that would collide.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, repeat
from pathlib import Path
from typing import Any, Final

from condgraph.engine.errors import FormatError, OptionError, numbered
from condgraph.engine.facts import Entity, EntityKind
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.files import BLOCK_CHARS, ENCODING_HELP, blocks, head_lines, read_head
from condgraph.loaders.table.dialect import heads_other_kinds

#: The options of this module, for the `options` of a format.
NAME_OPTIONS: Final[Mapping[str, str]] = {
    "names": "file of id<TAB>name lines (or a mapping) that names the entities",
    "relation_names": "file of id<TAB>name lines (or a mapping) that names the relations",
    "id_prefix": "text put before every entity id, so that sources with ids of their own kind (numbers) do not collide",
}


class Table:
    """Names by id, from a mapping or a file of two columns.

    A file is id and name, or name and id: the first ids that are looked up decide, once, and the
    second reading is warned about.
    """

    def __init__(self, names: Mapping[str, str], swapped: Mapping[str, str], file: str) -> None:
        self._names = names
        self._swapped = swapped
        self._file = file
        self._decided = not swapped

    def settle(self, ids: Iterable[str], reading: Reading) -> None:
        """Decide which column holds the ids, from ids of the data; once decided, later calls do
        nothing.
        """
        if self._decided:
            return
        known = list(ids)
        straight = sum(one in self._names for one in known)
        turned = sum(one in self._swapped for one in known)
        if straight == turned:
            return
        self._decided = True
        if turned > straight:
            self._names = self._swapped
            reading.warn(
                f"the second column holds the ids, so the file is read as name, id ({turned} ids found there)", file=self._file
            )
        self._swapped = {}

    def get(self, one: str) -> str | None:
        """The name of an id, or None."""
        return self._names.get(one)

    @property
    def file(self) -> str:
        """The file the names come from; empty for a mapping."""
        return self._file


def read_table(source: Any, reading: Reading, option: str) -> Table:
    """Names from a mapping, or from a file of two columns (tab, comma or `|` between them, the name
    may hold the mark again).

    An id that stands twice with different names keeps the first, with a warning. A line without the
    mark is `bad`; a lone number in the first line is a count and is left out.
    """
    if isinstance(source, Mapping):
        table = {str(one): str(name) for one, name in source.items()}
        return Table(table, {}, "")
    if not isinstance(source, (str, os.PathLike)):
        raise OptionError(f"{option}= is a file or a mapping of ids to names, not {type(source).__name__}")
    path = Path(source)
    names: dict[str, str] = {}
    swapped: dict[str, str] = {}
    counts: list[int] = []
    quiet = Reading(reading.source, reading.on_error, problems=reading.problems)
    mark: str | None = None
    for first, lines in blocks(path, quiet):
        if mark is None:
            mark = next((one for one in "\t,|" if sum(one in line for line in lines[:100]) * 2 > len(lines[:100])), "\t")
        for at, line in enumerate(lines, first):
            if not line.strip():
                continue
            one, found, name = _two(line, mark)
            if not found:
                if at == 1 and line.strip().isdecimal():
                    counts.append(int(line))
                    continue
                reading.bad(f"a line of names has two fields with {mark!r} between them, this one has one", row=at, file=str(path))
                continue
            before = names.setdefault(one, name)
            if before != name:
                reading.warn(f"{one!r} is named {before!r} before and {name!r} here; the first is kept", row=at, file=str(path))
            swapped.setdefault(name, one)
    reading.skipped += quiet.skipped
    if counts and counts[0] != len(names):
        reading.warn(f"the first line says {counts[0]} names and there are {len(names)}", row=1, file=str(path))
    return Table(names, swapped, str(path))


def _two(line: str, mark: str) -> tuple[str, str, str]:
    if mark == "," and '"' in line:
        fields = next(csv.reader([line]), [])
        if len(fields) >= 2:
            return fields[0].strip(), mark, " ".join(",".join(fields[1:]).split())
    one, found, name = line.partition(mark)
    return one.strip(), found, " ".join(name.split())


class EntityNames:
    """Declares the entities of a graph file as they turn up: with names from a table, and with
    prefixed ids.

    Without a table and without a prefix nothing has to be declared, and nothing is kept.
    """

    def __init__(self, options: Options, reading: Reading) -> None:
        names = options.get("names")
        self._table = None if names is None else read_table(names, reading, "names")
        self.prefix = option_text(options, "id_prefix")
        self._reading = reading
        self._seen: set[str] = set()
        self._concepts: set[str] = set()
        self._nameless = 0
        self._first_nameless = ""

    def declare(self, *columns: Sequence[str]) -> Iterator[Entity]:
        """The entities of these columns of ids (without prefix) that have a name or a prefixed id,
        each once.
        """
        if self._table is None and not self.prefix:
            return
        seen, table, prefix = self._seen, self._table, self.prefix
        fresh = dict.fromkeys(one for column in columns for one in column if one not in seen)
        if table is not None:
            table.settle(fresh, self._reading)
        for one in fresh:
            seen.add(one)
            name = None if table is None else table.get(one)
            if name is None and table is not None:
                self._first_nameless = self._first_nameless or one
                self._nameless += 1
            if name is not None or prefix:
                yield Entity(prefix + one, one if name is None else name)

    def concept(self, one: str) -> Iterator[Entity]:
        """The entity of an id (without prefix) declared as a concept, the first time."""
        if one in self._concepts:
            return
        self._concepts.add(one)
        name = None if self._table is None else self._table.get(one)
        yield Entity(self.prefix + one, one if name is None else name, EntityKind.CONCEPT)

    def finish(self) -> None:
        """Warn about entities that the table does not name."""
        if self._nameless and self._table is not None:
            self._reading.warn(
                f"{self._nameless} entities have no name there and are named by their ids, the first is {self._first_nameless!r}",
                file=self._table.file or None,
            )


class PredicateNames:
    """One name a predicate: by a table, or a name found in the data; two ids that would share a
    name are told apart.

    The first id keeps the name, the others get `name (id)` (or the id alone with `whole=True`),
    with a warning.
    """

    def __init__(self, reading: Reading, table: Table | None = None, *, whole: bool = False) -> None:
        self._reading = reading
        self._table = table
        self._whole = whole
        self._by_id: dict[str, str] = {}
        self._by_name: dict[str, str] = {}

    def __contains__(self, one: str) -> bool:
        return one in self._by_id

    def keep(self, one: str, name: str) -> None:
        """A predicate has this name already."""
        self._by_id[one] = name
        self._by_name[name] = one

    def name(self, one: str, label: str | None = None, *, row: int | None = None) -> str:
        """The name of a predicate's id; `label` is what the data calls it, decisive when the id is
        seen for the first time.
        """
        known = self._by_id.get(one)
        if known is not None:
            return known
        if self._table is not None:
            label = self._table.get(one) or label
        name = label or one
        owner = self._by_name.setdefault(name, one)
        if owner != one:
            unique = one if self._whole else f"{name} ({one})"
            self._reading.warn(
                f"the predicates {owner!r} and {one!r} are both called {name!r}; the second is {unique!r} here", row=row
            )
            name = unique
            self._by_name.setdefault(name, one)
        self._by_id[one] = name
        return name

    def settle(self, ids: Iterable[str]) -> None:
        """Let ids of the data decide how the table is read."""
        if self._table is not None:
            self._table.settle(ids, self._reading)


def option_text(options: Options, name: str, default: str = "") -> str:
    """An option that is text; raises `OptionError` for anything else."""
    value = options.get(name, default)
    if value is None:
        return default
    if not isinstance(value, str):
        raise OptionError(f"{name}= is text, not {type(value).__name__}")
    return value


def option_names(options: Options, name: str, default: Sequence[str] = ()) -> tuple[str, ...]:
    """An option that is one name or several; raises `OptionError` for anything else."""
    value = options.get(name)
    if value is None:
        return tuple(default)
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, Mapping)):
        names = tuple(value)
        if all(isinstance(one, str) for one in names):
            return names
    raise OptionError(f"{name}= is a name or a list of names")


def option_choice(options: Options, name: str, choices: Sequence[str]) -> str:
    """An option that is one of several words, the first by default; raises `OptionError` for
    anything else.
    """
    value = options.get(name)
    if value is None:
        return choices[0]
    if value not in choices:
        raise OptionError(f"{name}= is one of {', '.join(choices)}, not {value!r}")
    return str(value)


def option_bool(options: Options, name: str, default: bool) -> bool:
    """An option that is true or false; raises `OptionError` for anything else."""
    value = options.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise OptionError(f"{name}= is true or false, not {value!r}")
    return value


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


def columns_of(path: Path, shape: Shape, reading: Reading, options: Options) -> Iterator[tuple[Sequence[int], list[list[str]]]]:
    """The file's columns in pieces of about 100,000 lines: (1-based line numbers, one list a
    column, in the file's order).

    Lines with another number of fields, and lines where head, relation or tail are empty, are
    `bad`. White space around fields is left out, with one warning for the file. A lone number in
    the first line is taken for the count of lines, and compared.
    """
    needed = tuple(at for at, role in enumerate(shape.roles) if role in (HEAD, RELATION, TAIL))
    tidy = _Tidy(reading, needed, shape)
    pieces = blocks(path, reading, options.get("encoding"))
    header = shape.header
    count: tuple[int, int] | None = None
    total = 0
    for rows, columns, plain in _quoted(pieces, shape, reading) if shape.mark in QUOTING else _split(pieces, shape, reading):
        if isinstance(columns, int):
            count = (rows[0], columns)
            continue
        if header and rows:
            header = False
            rows, columns = rows[1:], [column[1:] for column in columns]
        if not plain:
            rows, columns = tidy(rows, columns)
        if rows:
            total += len(rows)
            yield rows, columns
    if count is not None and count[1] != total:
        reading.warn(f"the first line says {count[1]} facts and {total} were read", row=count[0])
    tidy.finish()


#: Line numbers, columns, and whether no field is empty or has white space around it, as far as that
#: is known.
_Piece = tuple[Sequence[int], "list[list[str]] | int", bool]
#: White space in ASCII that is neither a tab nor a space; lines have no line ends.
_RARE_SPACE: Final = "\x0b\x0c\x1c\x1d\x1e\x1f\r"


def _is_plain(joined: str, mark: str) -> bool:
    """Whether fields with marks between them are all there and need no stripping; quick, and may
    say no where they are.
    """
    if not joined.isascii() or mark * 2 in joined or any(map(joined.__contains__, _RARE_SPACE)):
        return False
    around = [space + mark for space in " \t" if space != mark] + [mark + space for space in " \t" if space != mark]
    ends = joined[:1] + joined[-1:]
    return not (mark in ends or " " in ends or "\t" in ends or any(map(joined.__contains__, around)))


def _split(pieces: Iterator[tuple[int, list[str]]], shape: Shape, reading: Reading) -> Iterator[_Piece]:
    """Columns of lines whose fields are never quoted. A piece with an int for its columns is the
    count in the first line.
    """
    mark, width = shape.mark, len(shape.roles)
    begun = False
    for first, lines in pieces:
        if mark == "\t" or (mark and not mark.isspace()):
            counts = list(map(str.count, lines, repeat(mark)))
            if counts.count(width - 1) == len(lines):
                begun = True
                joined = mark.join(lines)
                flat = joined.split(mark)
                plain = _is_plain(joined, mark)
                yield range(first, first + len(lines)), [flat[at::width] for at in range(width)], plain
                continue
        rows: list[int] = []
        records: list[list[str]] = []
        for at, line in enumerate(lines, first):
            fields = line.split(mark or None)
            if len(fields) == width:
                rows.append(at)
                records.append(fields)
            elif not line.strip():
                continue
            elif not begun and not rows and line.strip().isdecimal():
                yield [at], int(line), False
            else:
                reading.bad(_wrong_width(len(fields), width, mark, line), row=at)
            begun = True
        if records:
            yield rows, [list(column) for column in zip(*records, strict=True)], False


def _quoted(pieces: Iterator[tuple[int, list[str]]], shape: Shape, reading: Reading) -> Iterator[_Piece]:
    """Columns of comma- or semicolon-separated records, whose quoted fields may hold marks and line
    ends.
    """
    mark, width = shape.mark, len(shape.roles)
    reader = csv.reader((line + "\n" for _, lines in pieces for line in lines), delimiter=mark, strict=True)
    rows: list[int] = []
    records: list[list[str]] = []
    size = 0
    begun = False
    while True:
        row = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            until = "" if reader.line_num <= row else f", up to line {reader.line_num}"
            reading.bad(f"this record cannot be split into fields ({error}){until}", row=row)
            continue
        if len(fields) == width:
            rows.append(row)
            records.append(fields)
            size += 1
            if size == BLOCK_CHARS // 40:
                yield rows, [list(column) for column in zip(*records, strict=True)], False
                rows, records, size = [], [], 0
        elif not fields or (len(fields) == 1 and not fields[0].strip()):
            continue
        elif not begun and len(fields) == 1 and fields[0].strip().isdecimal():
            yield [row], int(fields[0]), False
        else:
            reading.bad(_wrong_width(len(fields), width, mark, mark.join(fields)), row=row)
        begun = True
    if records:
        yield rows, [list(column) for column in zip(*records, strict=True)], False


def _wrong_width(found: int, width: int, mark: str, line: str) -> str:
    between = repr(mark) if mark else "white space"
    return f"{width} fields with {between} between them are expected, this line has {found}: {line[:80]!r}"


class _Tidy:
    """Strips fields, and leaves out facts that lack a head, a relation or a tail."""

    def __init__(self, reading: Reading, needed: tuple[int, ...], shape: Shape) -> None:
        self._reading = reading
        self._needed = needed
        self._shape = shape
        self._stripped = 0
        self._first = 0

    def __call__(self, rows: Sequence[int], columns: list[list[str]]) -> tuple[Sequence[int], list[list[str]]]:
        for at, column in enumerate(columns):
            plain = list(map(str.strip, column))
            if plain != column:
                changed = [row for row, old, new in zip(rows, column, plain, strict=True) if new and old != new]
                self._stripped += len(changed)
                self._first = self._first or next(iter(changed), 0)
                columns[at] = plain
        if not any("" in columns[at] for at in self._needed):
            return rows, columns
        kept = []
        for at, row in enumerate(rows):
            empty = [position for position in self._needed if not columns[position][at]]
            if empty:
                role = self._shape.roles[empty[0]]
                self._reading.bad(f"the {role} of this fact is empty", row=row, field=role)
            else:
                kept.append(at)
        return [rows[at] for at in kept], [[column[at] for at in kept] for column in columns]

    def finish(self) -> None:
        if self._stripped:
            fields = numbered(self._stripped, "field has white space around it", "fields have white space around them")
            self._reading.warn(f"{fields}, which is left out", row=self._first)

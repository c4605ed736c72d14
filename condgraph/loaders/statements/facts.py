"""Loaders of graph files with one fact per line: triples, and temporal facts with start and end, or one time.

The layout of a file (separator, role of each column, header) is detected, and so is how much its lines
look like facts. Whole columns are read, at about a million lines a second; statements are yielded in
batches of about 100,000 lines.

The times of temporal facts become the qualifiers `start time` and `end time`, or `point in time`: ISO
forms, slashes, and `#` for unknown digits. `####` is an unknown time, `2012-##-##` the year; an empty
field or `-` is an open end, which has no qualifier.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, repeat
from pathlib import Path
from typing import Any, Final, Literal

from condgraph.engine import facts as model
from condgraph.engine.errors import FormatError, OptionError, numbered
from condgraph.engine.reading.shapes import shape as shape_of_cell
from condgraph.engine.reading.times import EPOCHS, digits_time
from condgraph.engine.reading.times import read_time as cell_times
from condgraph.engine.values import UNKNOWN, Quantity, Time, Unknown, Value, collapse, parse_number, text_of
from condgraph.loaders.base import Format, Options, Reading, option_choice, option_text, option_texts
from condgraph.loaders.files import BLOCK_CHARS, ENCODING_HELP, blocks, head_lines, path_of, read_head, suffix_of
from condgraph.loaders.statements.names import NAME_OPTIONS, EntityNames, PredicateNames, read_table
from condgraph.loaders.table.text import heads_other_kinds

#: The roles of columns.
HEAD: Final = "head"
RELATION: Final = "relation"
TAIL: Final = "tail"
START: Final = "start"
END: Final = "end"
TIME: Final = "time"
#: The role of a column that is ignored.
NOTHING: Final = "-"

#: Headers of each role (lower case, spaces for `_` and `-`).
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

#: Separators to try, in order; the empty one is any run of white space.
MARKS: Final = ("\t", " | ", "|", ",", ";", "")
#: Separators with which fields may be quoted.
QUOTING: Final = frozenset(",;")

#: The options of this module.
SHAPE_OPTIONS: Final[Mapping[str, str]] = {
    "delimiter": "the separator of fields (default: detected); '' is any run of white space",
    "columns": "what the columns are, in the file's order, as a list or text ('head, tail, relation', 'htr'); '-' leaves one out",
    "header": "whether the first line names the columns (default: decided by its words)",
    "encoding": ENCODING_HELP,
}
#: Marks that are not a relation when they stand alone between white space.
_LONE: Final = frozenset(",;|")
#: Characters with a meaning to `csv`.
_SPECIAL: Final = re.compile('["\r\n\0]').search
_ID: Final = re.compile(r"[A-Z]?\d+", re.ASCII).fullmatch


@dataclass(frozen=True, slots=True)
class Shape:
    """The layout of a file's lines: the separator, the role of each column, and whether there is a header.

    `share` is the fraction of examined lines with the right number of fields.
    """

    mark: str
    roles: tuple[str, ...]
    header: bool
    share: float = 1.0
    quoted: bool = False

    def at(self, role: str) -> int | None:
        """Return the index of a role's column, or None."""
        return self.roles.index(role) if role in self.roles else None


def split(line: str, mark: str) -> list[str]:
    """Return the fields of one line, stripped."""
    if mark in QUOTING:
        try:
            fields = next(csv.reader([line], delimiter=mark, strict=True), [])
        except csv.Error:
            fields = []
    else:
        fields = line.split(mark or None)
    return [field.strip() for field in fields]


def _unquoted(field: str) -> str:
    return field[1:-1].replace('""', '"') if len(field) > 1 and field[0] == field[-1] == '"' else field


def _without_quotes(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines without the quotes around fields, if every field between tabs is quoted or empty."""
    if not all(line[:1] == '"' and "\t" in line for line in lines):
        return lines
    fields = [split(line, "\t") for line in lines]
    if not all(not field or _unquoted(field) != field for row in fields for field in row):
        return lines
    return ["\t".join(map(_unquoted, row)) for row in fields]


def _widths(lines: Sequence[str], mark: str) -> list[int]:
    """Return the number of fields of each line."""
    if not mark:
        return [len(line.split()) for line in lines]
    widths = [line.count(mark) + 1 for line in lines]
    if mark in QUOTING and lines:
        longest = csv.field_size_limit()
        if _SPECIAL("".join(lines)) or not all(lines) or max(map(len, lines)) > longest:
            for at, line in enumerate(lines):
                if not line or len(line) > longest or _SPECIAL(line):
                    widths[at] = len(split(line, mark))
    return widths


def roles_of(words: Sequence[str], choices: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return the roles of columns with these headers, if they name one of the choices in some order."""
    plain = [" ".join(word.casefold().replace("_", " ").replace("-", " ").split()) for word in words]
    for roles in choices:
        if len(roles) != len(plain):
            continue
        for order in permutations(roles):
            if all(word == role or word in WORDS[role] for word, role in zip(plain, order, strict=True)):
                return order
    return None


def find_shape(lines: Sequence[str], choices: Sequence[tuple[str, ...]], options: Options | None = None) -> Shape | None:
    """Return the layout of a file that begins with these lines, or None if no line fits a choice of roles.

    The choices are roles in their usual order, such as `(HEAD, RELATION, TAIL)`. The options `delimiter`,
    `columns` and `header` take precedence; raises `OptionError` if they are invalid.
    """
    options = options or {}
    declared_roles = _columns_option(options.get("columns"), choices)
    candidates = (declared_roles,) if declared_roles is not None else tuple(choices)
    mark_option = options.get("delimiter")
    if mark_option is not None:
        option_text(options, "delimiter")
        if "\n" in mark_option or "\r" in mark_option or '"' in mark_option:
            raise OptionError(f"delimiter={mark_option!r} cannot separate fields")
    marks = MARKS if mark_option is None else (mark_option,)
    best: Shape | None = None
    sample = [line for line in lines if not _is_count(line, lines)] if len(lines) > 1 else list(lines)
    for mark in marks:
        widths = _widths(sample, mark)
        for roles in candidates:
            share = widths.count(len(roles)) / max(1, len(widths))
            if share and (best is None or share > best.share):
                first = split(sample[0], mark)
                header_roles = roles_of(first, choices) if declared_roles is None and len(first) == len(roles) else None
                header = header_roles is not None if declared_roles is None else roles_of(first, choices) is not None
                best = Shape(mark, header_roles or roles, header, share)
    declared = options.get("header")
    if declared is not None and not isinstance(declared, bool):
        raise OptionError(f"header= is true or false, not {declared!r}")
    if best is not None and declared is not None and declared != best.header:
        if declared and len(split(sample[0], best.mark)) != len(best.roles):
            raise FormatError(f"the header {sample[0][:80]!r} does not have {len(best.roles)} fields as the lines below it")
        roles = best.roles if declared else next(roles for roles in candidates if len(roles) == len(best.roles))
        best = Shape(best.mark, roles, declared, best.share)
    return best


def _is_count(line: str, lines: Sequence[str]) -> bool:
    """Whether a line is the count that some files of ids begin with."""
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
    named_words = [word for word in words if word != NOTHING]
    roles = roles_of(named_words, choices)
    if roles is None:
        known = " or ".join(", ".join(choice) for choice in choices)
        raise OptionError(f"columns={columns!r} does not name {known}, each once", hint="'-' leaves a column out")
    named = iter(roles)
    return tuple(NOTHING if word == NOTHING else next(named) for word in words)


def shape_of(path: Path, choices: Sequence[tuple[str, ...]], reading: Reading, options: Options) -> Shape | None:
    """Return the layout of a file, or None with a warning if it has no lines.

    Raises `FormatError` if no line fits.
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
    if shape is not None and shape.mark == "\t" and (plain := _without_quotes(lines)) != lines:
        shape = replace(find_shape(plain, choices, options) or shape, quoted=True)
    if shape is None:
        widths = " or ".join(str(len(roles)) for roles in choices)
        raise FormatError(
            f"no line has {widths} fields; the first is {lines[0][:80]!r}",
            file=str(path),
            hint="delimiter= and columns= say how the lines are read",
        )
    return shape


def likeness(lines: Sequence[str], shape: Shape) -> int:
    """Return how much lines of this layout look like facts rather than a table: 0 to 100.

    A header with known words is certain. Otherwise relations are few, and the first line is like the
    others: its relation occurs again, or a column of ids has an id there. The first line of a table is a
    header, whose words do neither.
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
    if alike and (again or not _are_values(relations)):
        return by_mark - 15
    if headed or _are_values(relations):
        return 10  # a table
    ends = [place for place in places if place != at]
    linked = not {row[place] for row in rows[1:] for place in ends}.isdisjoint(rows[0][place] for place in ends)
    pipe = "|" in shape.mark
    return by_mark - (5 if linked else 25 if pipe and len(rows) == 1 else 40 if pipe else 35)


def _are_values(relations: Sequence[str]) -> bool:
    """Return whether the relations are numbers or times that seldom repeat, as in a column of a table. Ids repeat."""
    return len(set(relations)) * 2 > len(relations) and all(shape_of_cell(collapse(relation)) for relation in relations)


def _of_ids(column: Sequence[str]) -> bool:
    """Whether every field of a column, including the first, is an id of one kind: `Q42`, `17`, or with a common prefix."""
    return all(map(_ID, column)) or (len(set(column)) > 1 and len({item[:2] for item in column}) == 1)


def columns_of(path: Path, shape: Shape, reading: Reading, options: Options) -> Iterator[tuple[Sequence[int], list[list[str]]]]:
    """Yield the file's columns in pieces of about 100,000 lines: 1-based line numbers, and a list per column.

    Lines with a wrong number of fields, or an empty head, relation or tail, are `bad`. White space around
    fields is stripped, with one warning for the file. A number alone in the first line is the count of
    lines, and is checked.
    """
    needed = tuple(at for at, role in enumerate(shape.roles) if role in (HEAD, RELATION, TAIL))
    tidy = _FactCleaner(reading, needed, shape)
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
        if shape.quoted:
            columns, plain = [[_unquoted(field.strip()) for field in column] for column in columns], False
        if not plain:
            rows, columns = tidy(rows, columns)
        if rows:
            total += len(rows)
            yield rows, columns
    if count is not None and count[1] != total:
        reading.warn(f"the first line says {count[1]} facts and {total} were read", row=count[0])
    tidy.finish()


#: Line numbers, columns, and whether all fields are known to be stripped and not empty.
_Piece = tuple[Sequence[int], "list[list[str]] | int", bool]
#: ASCII white space other than tab and space; lines have no line ends.
_RARE_SPACE: Final = "\x0b\x0c\x1c\x1d\x1e\x1f\r"


def _is_plain(joined: str, mark: str) -> bool:
    """Whether no field is empty or needs stripping; fast, and may return False for plain fields."""
    if not joined.isascii() or mark * 2 in joined or any(map(joined.__contains__, _RARE_SPACE)):
        return False
    around = [space + mark for space in " \t" if space != mark] + [mark + space for space in " \t" if space != mark]
    ends = joined[:1] + joined[-1:]
    return not (mark in ends or " " in ends or "\t" in ends or any(map(joined.__contains__, around)))


def _split(pieces: Iterator[tuple[int, list[str]]], shape: Shape, reading: Reading) -> Iterator[_Piece]:
    """Yield columns of lines without quoted fields; an int in the place of columns is the count in the first line."""
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
    """Yield columns of comma- or semicolon-separated records; quoted fields may contain separators and line ends."""
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
    separator = repr(mark) if mark else "white space"
    return f"{width} fields with {separator} between them are expected, this line has {found}: {line[:80]!r}"


class _FactCleaner:
    """Strips fields, and drops facts without a head, a relation or a tail."""

    def __init__(self, reading: Reading, needed: tuple[int, ...], shape: Shape) -> None:
        self._reading = reading
        self._needed = needed
        self._shape = shape
        self._stripped = 0
        self._first = 0

    def __call__(self, rows: Sequence[int], columns: list[list[str]]) -> tuple[Sequence[int], list[list[str]]]:
        for at, column in enumerate(columns):
            stripped = list(map(str.strip, column))
            if stripped != column:
                changed = [row for row, old, new in zip(rows, column, stripped, strict=True) if new and old != new]
                self._stripped += len(changed)
                self._first = self._first or next(iter(changed), 0)
                columns[at] = stripped
        if not any("" in columns[at] for at in self._needed):
            return rows, columns
        complete = []
        for at, row in enumerate(rows):
            empty = [position for position in self._needed if not columns[position][at]]
            if empty:
                role = self._shape.roles[empty[0]]
                self._reading.bad(f"the {role} of this fact is empty", row=row, field=role)
            else:
                complete.append(at)
        return [rows[at] for at in complete], [[column[at] for at in complete] for column in columns]

    def finish(self) -> None:
        if self._stripped:
            fields = numbered(self._stripped, "field has white space around it", "fields have white space around them")
            self._reading.warn(f"{fields}, which is left out", row=self._first)


ROLES: Final = ((HEAD, RELATION, TAIL),)
#: How many lines `objects="auto"` examines.
LOOKED_AT: Final = 1000

_FRACTION: Final = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?\d+[eE][+-]?\d+", re.ASCII).fullmatch
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII).fullmatch
_DAY: Final = re.compile(r"-?\d{4}-\d\d-\d\d", re.ASCII).fullmatch


class Predicates:
    """The relations of a file: without brackets, renamed by a table, and with declared memberships."""

    def __init__(self, options: Options, reading: Reading) -> None:
        table = options.get("relation_names")
        self._names = PredicateNames(reading, None if table is None else read_table(table, reading, "relation_names"))
        self._rename = table is not None
        self.instance_of = frozenset(option_texts(options, "instance_of"))
        self.subclass_of = frozenset(option_texts(options, "subclass_of"))

    def column(self, relations: list[str]) -> list[str]:
        """Return the predicates of a column of relations."""
        distinct = dict.fromkeys(relations)
        if self._rename:
            self._names.settle(map(bare, distinct))
        named = {item: self._names.name(bare(item)) for item in distinct}
        return (
            relations
            if all(relation_id == name for relation_id, name in named.items())
            else [named[relation] for relation in relations]
        )

    def memberships(
        self, rows: Sequence[int], subjects: Sequence[str], predicates: Sequence[str], objects: Sequence[str], names: EntityNames
    ) -> Iterator[model.Item]:
        """Yield the memberships that these statements declare; ids are without prefix."""
        if not (self.instance_of or self.subclass_of):
            return
        prefix = names.prefix
        both = self.instance_of | self.subclass_of
        for row, subject, predicate, object_id in zip(rows, subjects, predicates, objects, strict=True):
            if predicate in both:
                yield from names.concept(object_id)
                if predicate in self.subclass_of:
                    yield from names.concept(subject)
                    yield model.Subclass(prefix + subject, prefix + object_id, row)
                if predicate in self.instance_of:
                    yield model.Member(prefix + subject, prefix + object_id, row)

    @property
    def membership(self) -> frozenset[str]:
        """The predicates whose objects are concepts."""
        return self.instance_of | self.subclass_of


def bare(relation: str) -> str:
    """Return a relation without the angle brackets of an IRI."""
    return relation[1:-1] if len(relation) > 2 and relation[0] == "<" and relation[-1] == ">" else relation


def _read(source: Any, reading: Reading, options: Options) -> Iterator[model.Item]:
    mode = option_choice(options, "objects", ("auto", "entities", "values"))
    predicates = Predicates(options, reading)
    names = EntityNames(options, reading)
    for rows, heads, relations, tails in _facts(source, reading, options):
        if mode == "auto":
            mode = _mode_of(heads, tails, reading)
        named = predicates.column(relations)
        yield from _declared(mode, rows, heads, named, tails, predicates, names)
        yield _batch(mode, rows, heads, named, tails, predicates, names.prefix)
    names.finish()


def _facts(source: Any, reading: Reading, options: Options) -> Iterator[tuple[Sequence[int], list[str], list[str], list[str]]]:
    """Yield line numbers, heads, relations and tails, in pieces."""
    if _claims(source):
        rows = range(1, len(source) + 1)
        yield rows, [item[0] for item in source], [item[1] for item in source], [item[2] for item in source]
        reading.advance(len(source), 1.0)
        return
    path = path_of(source)
    shape = shape_of(path, ROLES, reading, options)
    if shape is None:
        return
    at = [shape.roles.index(role) for role in (HEAD, RELATION, TAIL)]
    for numbers, columns in columns_of(path, shape, reading, options):
        yield numbers, columns[at[0]], columns[at[1]], columns[at[2]]


def _declared(
    mode: str, rows: Sequence[int], heads: list[str], named: list[str], tails: list[str], predicates: Predicates, names: EntityNames
) -> Iterator[model.Item]:
    """Yield the entities of facts, and their memberships."""
    values = mode == "values"
    yield from names.declare(
        heads, [tail for tail, name in zip(tails, named, strict=True) if not values or name in predicates.membership]
    )
    yield from predicates.memberships(rows, heads, named, tails, names)


def _batch(
    mode: str, rows: Sequence[int], heads: list[str], named: list[str], tails: list[str], predicates: Predicates, prefix: str
) -> model.Batch:
    """Return a batch of facts whose objects are entities or values."""
    subjects = [prefix + head for head in heads] if prefix else heads
    if mode == "values":
        objects, raws = _values(tails, named, predicates.membership, prefix)
        return model.Batch(subjects, named, objects, rows, raws)
    return model.Batch(subjects, named, model.Ids([prefix + tail for tail in tails] if prefix else tails), rows)


def _mode_of(heads: Sequence[str], tails: Sequence[str], reading: Reading) -> str:
    """Decide from the first facts whether objects are entities or numbers; numbers only if nothing else fits."""
    sample = tails[:LOOKED_AT]
    if not all(map(_NUMBER, sample)) or any(map(_NUMBER, heads[:LOOKED_AT])):
        return "entities"
    if not all(map(_FRACTION, sample)):
        reading.warn(
            f'the objects of the first {len(sample)} facts are numbers, read as ids of entities (objects="values" changes that)'
        )
        return "entities"
    reading.warn(
        f"the objects of the first {len(sample)} facts are decimal numbers, so objects are read as values, not as entities"
        ' (objects="entities" or "values" says which)'
    )
    return "values"


def _values(
    tails: Sequence[str], predicates: Sequence[str], membership: frozenset[str], prefix: str
) -> tuple[model.Column, Sequence[str | None] | None]:
    """Return objects as values: numbers, days, texts, or concepts for membership; with their raw texts."""
    known: dict[str, Value] = {text: read_value(text) for text in dict.fromkeys(tails)}
    values: list[model.Ref | Value] = [
        model.Ref(prefix + tail) if name in membership else known[tail] for tail, name in zip(tails, predicates, strict=True)
    ]
    printed = {text: text_of(value) for text, value in known.items()}
    raws = [
        tail if type(value) is not model.Ref and printed[tail] != tail else None for tail, value in zip(tails, values, strict=True)
    ]
    return _column(values), raws if any(raw is not None for raw in raws) else None


def _column(values: list[model.Ref | Value]) -> model.Column:
    if all(type(value) is str for value in values):
        return model.Texts([str(value) for value in values])
    numbers = [value.number for value in values if isinstance(value, Quantity)]
    if len(numbers) == len(values):
        import numpy as np

        if all(type(number) is float for number in numbers):
            return model.Numbers(np.array(numbers, dtype=np.float64))
        if all(type(number) is int and -(2**63) <= number < 2**63 for number in numbers):
            return model.Numbers(np.array(numbers, dtype=np.int64))
    return model.Values(values)


def read_value(text: str) -> Value:
    """Return the value of a field: a decimal number, a day (YYYY-MM-DD), or text with collapsed white space.

    >>> read_value("9.7"), str(read_value("1984-12-30")), read_value("1984-13-30")
    (Quantity(number=9.7, unit='1'), '1984-12-30', '1984-13-30')
    """
    if _NUMBER(text):
        try:
            return Quantity(parse_number(text))
        except ValueError:  # a number beyond every bound stays text
            return text
    if _DAY(text):
        try:
            return Time.parse(text)
        except ValueError:
            return text
    return collapse(text)


def _claims(source: Any) -> bool:
    return (
        isinstance(source, (list, tuple))
        and bool(source)
        and all(
            isinstance(item, (list, tuple)) and len(item) == 3 and all(isinstance(part, str) and part.strip() for part in item)
            for item in source
        )
    )


def _fact_lines(head: bytes) -> list[str]:
    """Return the lines that may be facts; none for a JSON document."""
    lines = head_lines(head)
    try:
        return [] if lines and lines[0][:1] in ("[", "{") and json.loads("\n".join(lines)) else list(_without_quotes(lines))
    except (ValueError, RecursionError):
        return lines


def _sniff(path: Path, head: bytes) -> int:
    lines = _fact_lines(head)
    shape = find_shape(lines, ROLES) if lines else None
    if shape is None:
        return 0
    # A CSV file is not separated by white space.
    return min(likeness(lines, shape), 100 if shape.mark or suffix_of(path) != ".csv" else 20)


TRIPLE_OPTIONS: Final[Mapping[str, str]] = {
    **SHAPE_OPTIONS,
    **NAME_OPTIONS,
    "instance_of": "relation (or several) that says that its subject is an instance of its object",
    "subclass_of": "relation (or several) that says that its subject lies under its object",
}

FACT_OPTIONS: Final[Mapping[str, str]] = {
    **TRIPLE_OPTIONS,
    "objects": 'tails are "entities", "values" (numbers, days, texts), or "auto": entities, unless all are decimal numbers',
}

TRIPLES: Final = Format(
    name="triples",
    about="head, relation, tail: one fact a line, with tabs, |, commas or white space between them",
    read=_read,
    options=FACT_OPTIONS,
    sniff=_sniff,
    claims=_claims,
)


_SLASHED: Final = re.compile(r"([+-]?\d{1,6})/(\d{1,2})/(\d{1,2})").fullmatch
_MASKED: Final = re.compile(r"([+-]?)([\d#]{1,12})(?:-(##|\d{1,2}))?(?:-(##|\d{1,2}))?").fullmatch
_YEAR_LIKE: Final = re.compile(r"[+-]?\d{1,5}", re.ASCII).fullmatch


def read_time(text: str) -> Time:
    """Parse an ISO year, month, day or second, a day as YYYY/MM/DD, or an unambiguous time as in tables.

    Raises ValueError with the reason.

    >>> str(read_time("1984/12/30")), str(read_time("-0043")), str(read_time("44 BC")), str(read_time("5 March 2020"))
    ('1984-12-30', '-43', '-43', '2020-03-05')
    """
    slashed = _SLASHED(text.strip())
    if slashed:
        year, month, day = (int(part) for part in slashed.groups())
        return Time.day(year, month, day)
    try:
        if "/" in text:
            raise ValueError(f"{text!r} is not a time")
        if len(text) > 7 and text.isdecimal():
            if (time := digits_time(text)) is None:
                raise ValueError(f"{text!r} is not a time")
            return time
        return Time.parse(text)
    except ValueError:
        readings = cell_times(collapse(text))
        if len(readings) == 1 and readings[0].tag in ("era", "time", "second") and isinstance(readings[0].value, Time):
            return readings[0].value
        if len(readings) == 2 and readings[0].note == "dmy":
            raise ValueError(f"{text!r} has its day or its month first") from None
        raise


def read_bound(text: str) -> Time | Unknown | None:
    """Parse one end of a validity: a time, `UNKNOWN` for `####`, None for an open end (empty or `-`).

    `2012-##-##` is the year, `1850-05-##` the month, `18##` the whole century. Raises ValueError for
    anything else, such as a known day in an unknown month.

    >>> str(read_bound("1850-05-##")), str(read_bound("18##-##-##")), read_bound("####-##-##"), read_bound("-")
    ('1850-05', '1800/1899', UNKNOWN, None)
    """
    text = text.strip()
    if text in ("", "-"):
        return None
    if "#" not in text:
        return read_time(text)
    match = _MASKED(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time")
    sign, year, month, day = match.groups()
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
        full_year = int(sign + year)
        if unknown_month:
            return Time.year(full_year)
        return Time.month(full_year, int(month)) if unknown_day else Time.day(full_year, int(month), int(day))
    if not unknown_month:
        raise ValueError(f"{text!r} has a month and no exact year")
    missing = len(year) - len(digits)
    ends = sorted(int(sign + digits + filler * missing) for filler in "09")
    return Time.span(Time.year(ends[0]), Time.year(ends[1]))


def bound_kind(text: str) -> Literal["time", "open", "signed", "small", ""]:
    """Return what a field may be as one end of a validity.

    "time", "open" for an open end, "signed" or "small" for a number of one or two digits with or without
    a minus sign (perhaps a year), or "" for none.
    """
    text = text.strip()
    if text in ("", "-"):
        return "open"
    if _YEAR_LIKE(text) and len(text.lstrip("+-")) < 3:
        return "signed" if text[0] == "-" else "small"
    if len(text) > 8 and text.isdecimal() and not (text[0] == "1" and len(text) in (10, 13)) and len(text) != 14:
        # It may be anything, such as the number of a telephone.
        return ""
    try:
        read_bound(text)
    except ValueError:
        return ""
    return "time"


def looks_like_bound(text: str) -> bool:
    """Whether a field looks like one end of a validity; open ends count, bare small numbers do not."""
    return bound_kind(text) in ("time", "open")


TIMED_ROLES: Final = ((HEAD, RELATION, TAIL, START, END), (HEAD, RELATION, TAIL, TIME))
_KEYS: Final = {START: model.START_TIME, END: model.END_TIME, TIME: model.POINT_IN_TIME}

Bound = Time | Unknown | str | None


def _read_timed(source: Any, reading: Reading, options: Options) -> Iterator[model.Item]:
    mode = option_choice(options, "objects", ("auto", "entities", "values"))
    predicates = Predicates(options, reading)
    names = EntityNames(options, reading)
    bounds = Bounds(reading)
    for piece in _timed_facts(source, reading, options):
        if mode == "auto":
            mode = _mode_of(piece.heads, piece.tails, reading)
        named = predicates.column(piece.relations)
        yield from _declared(mode, piece.rows, piece.heads, named, piece.tails, predicates, names)
        columns = {role: bounds.column(texts, piece.rows, role) for role, texts in piece.times.items()}
        if START in columns and END in columns:
            bounds.in_order(columns[START], columns[END], piece)
        qualifiers: list[tuple[str, Sequence[model.Ref | Value | None]]] = [
            (_KEYS[role], column) for role, column in columns.items() if any(value is not None for value in column)
        ]
        yield replace(_batch(mode, piece.rows, piece.heads, named, piece.tails, predicates, names.prefix), qualifiers=qualifiers)
    names.finish()


@dataclass(frozen=True, slots=True)
class _TimedPiece:
    """Columns of facts: line numbers, heads, relations, tails, and the texts of times by role."""

    rows: Sequence[int]
    heads: list[str]
    relations: list[str]
    tails: list[str]
    times: dict[str, list[str]]


def _timed_facts(source: Any, reading: Reading, options: Options) -> Iterator[_TimedPiece]:
    if _claims_timed(source):
        columns = [list(column) for column in zip(*source, strict=True)]
        roles = next(roles for roles in TIMED_ROLES if len(roles) == len(columns))
        yield _TimedPiece(
            range(1, len(source) + 1), columns[0], columns[1], columns[2], dict(zip(roles[3:], columns[3:], strict=True))
        )
        reading.advance(len(source), 1.0)
        return
    path = path_of(source)
    shape = shape_of(path, TIMED_ROLES, reading, options)
    if shape is None:
        return
    for rows, columns in columns_of(path, shape, reading, options):
        by_role = dict(zip(shape.roles, columns, strict=True))
        times: dict[str, list[str]] = {role: by_role[role] for role in (START, END, TIME) if role in by_role}
        yield _TimedPiece(rows, by_role[HEAD], by_role[RELATION], by_role[TAIL], times)


class Bounds:
    """Reads columns of times; each spelling is parsed once."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._known: dict[str, Bound] = {}
        self._wrong: dict[str, str] = {}
        self._epochs = False

    def column(self, texts: Sequence[str], rows: Sequence[int], field: str) -> list[Bound]:
        """Return the values of a column of times; a text that is not a time is kept, with a warning."""
        known, wrong = self._known, self._wrong
        fresh = [text for text in dict.fromkeys(texts) if text not in known]
        for text in fresh:
            try:
                known[text] = read_bound(text)
            except ValueError as error:
                known[text] = " ".join(text.split())
                wrong[text] = str(error)
        if not self._epochs and any(len(text) in (9, 10, 12, 13) and text.isdecimal() for text in map(str.strip, fresh)):
            self._epochs = True
            self._reading.warn(EPOCHS, field=field)
        if wrong:
            for row, text in zip(rows, texts, strict=True):
                if text in wrong:
                    self._reading.warn(f"{wrong[text]}; kept as text", row=row, field=field)
        return [known[text] for text in texts]

    def in_order(self, starts: list[Bound], ends: list[Bound], piece: _TimedPiece) -> None:
        """Make both bounds unknown, with a warning, if the start is after the end."""
        pairs = set(zip(starts, ends, strict=True))
        reversed_pairs = {
            pair for pair in pairs if isinstance(pair[0], Time) and isinstance(pair[1], Time) and pair[0].start >= pair[1].end
        }
        if not reversed_pairs:
            return
        for at, pair in enumerate(zip(starts, ends, strict=True)):
            if pair in reversed_pairs:
                self._reading.warn(f"the start {pair[0]} is after the end {pair[1]}; both are read as unknown", row=piece.rows[at])
                starts[at] = ends[at] = UNKNOWN


def _claims_timed(source: Any) -> bool:
    return (
        isinstance(source, (list, tuple))
        and bool(source)
        and isinstance(source[0], (list, tuple))
        and len(source[0]) in (4, 5)
        and all(
            isinstance(item, (list, tuple))
            and len(item) == len(source[0])
            and all(isinstance(part, str) for part in item)
            and all(part.strip() for part in item[:3])
            for item in source
        )
    )


def _sniff_timed(path: Path, head: bytes) -> int:
    lines = _fact_lines(head)
    shape = find_shape(lines, TIMED_ROLES) if lines else None
    if shape is None:
        return 0
    rows = [row for row in (split(line, shape.mark) for line in lines[shape.header :]) if len(row) == len(shape.roles)]
    times = [row[at] for row in rows for at, role in enumerate(shape.roles) if role in (START, END, TIME)]
    relations = [row[at] for row in rows] if (at := shape.at(RELATION)) is not None else []
    again = relations[0] in relations[1:] if relations else False
    if shape.header:
        # It says so outright, and the load reports bad times; but a lone time of one or two digits may be an hour or a number.
        kinds = set() if START in shape.roles else set(map(bound_kind, times))
        if "small" in kinds and kinds.isdisjoint(("time", "signed")):
            return 0
    elif not _are_times(times, again) or _are_values(relations):
        return 0
    likely = likeness(lines, shape)
    if not likely and shape.share < 0.9:
        return 0
    # Times in the right columns are stronger evidence than repeated relations. If the first line has
    # them, it is no header, unless its relation is unique while those below it repeat.
    first = split(lines[0], shape.mark)
    places = [at for at, role in enumerate(shape.roles) if role in (START, END, TIME)]
    timed = len(first) == len(shape.roles) and any(first[at].strip("-") and looks_like_bound(first[at]) for at in places)
    heads = not again and len(set(relations[1:])) < len(relations) - 1
    return max(min(95, likely + 10), 75 if timed and not shape.header and not heads else 0)


def _are_times(texts: Sequence[str], again: bool) -> bool:
    """Return whether texts are times: nearly all of them, or all but one of a few. Three quarters suffice if
    the first relation occurs `again`, so that the first line is no header. Years before Christ of one or two digits are
    times if another year has more.
    """
    most = max(len(texts) // (4 if again else 20), len(texts) > 2)
    kinds: Counter[str] = Counter()
    for text in texts:
        kinds[bound_kind(text)] += 1
        if kinds[""] > most:
            return False
    plain = kinds["time"] and kinds["time"] + kinds["signed"]
    return plain > 0 and plain + kinds["open"] + most >= len(texts)


QUINTUPLES: Final = Format(
    name="quintuples",
    about="head, relation, tail, start, end (or head, relation, tail, time): one temporal fact a line",
    read=_read_timed,
    options=FACT_OPTIONS,
    sniff=_sniff_timed,
    claims=_claims_timed,
)

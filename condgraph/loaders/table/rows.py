"""What all table loaders share: their options, the names of columns, and rows and columns as facts.

A row is an entity of kind row, `{source}/{n}` with n from 1, named "{source} row {n}" (options `key`
and `name_column` say otherwise); a column is a predicate named by its header. Each cell that is not
missing is a statement, with the cell's text beside its value where that prints differently. Rows go
out in order, a few thousand at once: first their entities, then one `Batch` for each column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import compress, repeat
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import OptionError, nearest, numbered, shortened
from condgraph.engine.facts import Batch, Column, Entity, Ids, Numbers, Raws, Ref, Rows, Texts, Times, Values
from condgraph.engine.row_times import RowTimes
from condgraph.engine.values import DAY_SECONDS, Number, Precision, Quantity, Time, Value, collapse, format_number
from condgraph.loaders.base import Options, Reading, option_bool, option_texts
from condgraph.loaders.table.column_types import DECLARED, FEW, MISSING, Cell, ColumnType, Declared, Profile
from condgraph.loaders.table.fields import Fields
from condgraph.loaders.table.joins import GraphTables, JoinTarget, Keys, Targets, join_option, parts, seen_by

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: Options of every table format.
TABLE_OPTIONS: Final[Mapping[str, str]] = {
    "types": 'how columns are read, whatever their cells say: {column: "text", "number", "time" or "auto"}, or one for all',
    "key": "the column that identifies the rows: ids and names of the rows are its cells",
    "name_column": "the column that names the rows",
    "missing": "further texts that stand for a missing cell",
    "refs": "columns whose cells are names of entities rather than values",
    "join": "columns that refer to rows of other sources: {'country': 'countries.country'}, in any order; False: ask nothing",
    "day_first": "whether 03/05/2010 is the third of May (default: decided by column, text where undecided)",
    "decimal": "what stands before decimals, a comma or a point (default: decided by column and file)",
    "times": "columns that say when a row holds: '[valid_from, valid_to)' or, with the end included, '[valid_from, valid_to]'",
    "seasons": "whether 2004-05 is the years 2004 and 2005 rather than May 2004 (default: decided by column)",
}
#: Keys that a warning names.
_NAMED: Final = 5
#: Those that say how cells are read, which tables inside a source share.
CELL_OPTIONS: Final = ("missing", "day_first", "decimal", "seasons")
_TYPES: Final = "types are: " + ", ".join(DECLARED)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of `TABLE_OPTIONS`, checked; columns are by name until `Table` finds them."""

    types: Mapping[str, Declared]
    every_type: Declared
    key: str | None
    name_column: str | None
    missing: frozenset[str]
    refs: tuple[str, ...]
    day_first: bool | None
    decimal: str | None = None
    seasons: bool | None = None
    join: Mapping[str, JoinTarget] = field(default_factory=dict)
    times: RowTimes | None = None

    @classmethod
    def of(cls, options: Options) -> TableOptions:
        """Check the options; raises `OptionError`."""
        types = options.get("types") or {}
        every: Declared = "auto"
        if isinstance(types, str):
            every, types = _declared(types), {}
        if not isinstance(types, Mapping):
            raise OptionError("types= is a mapping of columns to types, or one type for all columns", hint=_TYPES)
        return cls(
            types={str(column): _declared(kind) for column, kind in types.items()},
            every_type=every,
            key=_name(options, "key"),
            name_column=_name(options, "name_column"),
            missing=MISSING | {collapse(marker).casefold() for marker in option_texts(options, "missing")},
            refs=option_texts(options, "refs"),
            day_first=option_bool(options, "day_first"),
            decimal=_decimal(options.get("decimal")),
            seasons=option_bool(options, "seasons"),
            join=join_option(options.get("join")),
            times=None if options.get("times") is None else RowTimes.of(options["times"]),
        )


def _declared(kind: Any) -> Declared:
    if kind not in DECLARED:
        raise OptionError(f"there is no column type {kind!r}", candidates=nearest(str(kind), DECLARED), hint=_TYPES)
    return cast(Declared, kind)


def _decimal(mark: Any) -> str | None:
    if mark not in (None, ",", "."):
        raise OptionError(f"decimal= is a comma or a point, not {mark!r}")
    return cast("str | None", mark)


def _name(options: Options, option: str) -> str | None:
    value = options.get(option)
    if value is not None and not isinstance(value, str):
        raise OptionError(f"{option}= is the name of a column, not {type(value).__name__}")
    return None if value is None else collapse(value)


#: Whole numbers up to this are exact as floats.
_EXACT_FLOAT: Final = 2**53


def column_of(values: Sequence[Ref | Value]) -> Column:
    """Values as the narrowest column that holds them without loss."""
    kinds = set(map(type, values))
    if kinds == {str}:
        return Texts(cast("Sequence[str]", values))
    if kinds == {Time}:
        times = cast("Sequence[Time]", values)
        return Times(
            np.fromiter((time.start for time in times), np.int64, len(times)),
            np.fromiter((time.end for time in times), np.int64, len(times)),
            np.fromiter((time.precision for time in times), np.int8, len(times)),
        )
    if kinds == {Quantity}:
        quantities = cast("Sequence[Quantity]", values)
        if len({quantity.unit for quantity in quantities}) == 1:
            array = _array([quantity.number for quantity in quantities])
            if array is not None:
                return Numbers(array, quantities[0].unit)
    return Values(values)


def _array(numbers: Sequence[Number]) -> NDArray[np.int64] | NDArray[np.float64] | None:
    """Numbers as an array that holds all of them exactly, None where there is none."""
    whole = [number for number in numbers if isinstance(number, int)]
    lowest, highest = (min(whole), max(whole)) if whole else (0, 0)
    if len(whole) == len(numbers):
        return np.array(numbers, dtype=np.int64) if lowest >= -(2**63) and highest < 2**63 else None
    if lowest >= -_EXACT_FLOAT and highest <= _EXACT_FLOAT and not any(isinstance(number, Decimal) for number in numbers):
        return np.array(numbers, dtype=np.float64)
    return None


#: Objects, the texts of the source where they print differently (None: nowhere), and which of the
#: cells are there.
Whole: TypeAlias = tuple[Column, Sequence[str | None] | None, NDArray[np.bool_]]
_TEN: Final = np.array([10.0**power for power in range(16)])


def read_whole(fields: Fields, chosen: ColumnType) -> Whole | None:
    """A column at once; None where it has to be read cell by cell."""
    if chosen.holds_lists:
        return None
    if chosen.kind == "text":
        return _texts(fields, chosen.missing)
    if not chosen.plain or chosen.years or any(marker[-1:].isdigit() for marker in chosen.missing):
        return None
    return _READERS[chosen.plain](fields)


def _texts(fields: Fields, missing: frozenset[str]) -> Whole | None:
    if not fields.collapsed:
        return None
    there = ~fields.missing(missing)
    return Texts(fields if there.all() else fields.where(there), collapsed=True), None, there


def _days(fields: Fields) -> Whole | None:
    days = fields.days
    if days is None:
        return None
    starts = days.days[days.there] * DAY_SECONDS
    return Times(starts, starts + DAY_SECONDS, np.full(len(starts), Precision.DAY, np.int8)), None, days.there


def year_times(years: NDArray[np.int64]) -> Times:
    """Whole years as times."""
    starts, ends = ((number - 1970).astype("datetime64[Y]").astype("datetime64[s]") for number in (years, years + 1))
    return Times(starts.astype(np.int64), ends.astype(np.int64), np.full(len(years), Precision.YEAR, dtype=np.int8))


def _years(fields: Fields) -> Whole | None:
    plain = fields.plain
    if plain is None:
        return None
    years = plain.mantissa[plain.there]
    if plain.decimals.any() or (plain.lengths[plain.there] != 4).any() or (years < 1000).any():
        return None
    return year_times(years), None, plain.there


def _integers(fields: Fields) -> Whole | None:
    plain = fields.plain
    if plain is None or plain.decimals.any():
        return None
    return Numbers(plain.mantissa[plain.there]), None, plain.there


def _decimals(fields: Fields) -> Whole | None:
    plain = fields.plain
    # A float keeps fifteen digits; one that is smaller than that prints with an exponent.
    if plain is None or int(plain.lengths.max(initial=0)) > 15:
        return None
    mantissa, decimals = plain.mantissa, plain.decimals
    # Both are exact as floats, so that one division rounds as reading the text does.
    numbers = mantissa / _TEN[decimals]
    if ((np.abs(numbers) < 1e-4) & (mantissa != 0)).any():
        return None
    # A number prints without zeros at the end of its decimals.
    other = (decimals > 0) & (mantissa % 10 == 0) & plain.there
    there = plain.there
    raws = None
    if other.any():
        raws = Raws(int(np.count_nonzero(there)), np.flatnonzero(other if there.all() else other[there]), fields.where(other))
    return Numbers(numbers[there]), raws, there


_READERS: Final[dict[str, Callable[[Fields], Whole | None]]] = {"int": _integers, "float": _decimals, "day": _days, "year": _years}


def plain_batch(name: str, chosen: ColumnType, ids: Sequence[str], rows: Sequence[int], cells: Sequence[str]) -> Batch | None:
    """A column of plain integers, decimals or ISO days read at once; None where it has to be read
    cell by cell after all.
    """
    kept: list[int] | None = None
    if any(marker[-1:].isdigit() for marker in chosen.missing):
        return None
    if any(cell in chosen.missing or cell.casefold() in chosen.missing for cell in set(cells) if len(cell) < 8):
        kept = [at for at, cell in enumerate(cells) if cell.casefold() not in chosen.missing]
        cells = [cells[at] for at in kept]
        if not cells:
            return None
    objects: Column
    try:
        if chosen.plain == "day":
            days = np.array(cells, dtype="datetime64[D]").astype(np.int64)
            starts = days * DAY_SECONDS
            objects = Times(starts, starts + DAY_SECONDS, np.full(len(cells), Precision.DAY, dtype=np.int8))
            printed = list(cells) if set(map(len, cells)) == {10} else None
        elif chosen.years:
            return None
        elif chosen.plain == "year":
            numbers = list(map(int, cells))
            printed = list(map(str, numbers))
            if printed != list(cells) or min(numbers) < 1000 or max(numbers) > 9999:
                return None
            objects = year_times(np.array(numbers, dtype=np.int64))
        elif chosen.plain == "int":
            numbers = list(map(int, cells))
            objects = Numbers(np.array(numbers, dtype=np.int64))
            printed = list(map(str, numbers))
        else:
            floats = list(map(float, cells))
            array = np.array(floats, dtype=np.float64)
            if np.isnan(array).any():
                return None
            objects = Numbers(array)
            printed = list(map(repr, floats))
            if printed != list(cells):
                # A float keeps fifteen digits.
                if any(len(cell) > 15 and cell != text for cell, text in zip(cells, printed, strict=True)):
                    return None
                printed = list(map(format_number, floats))
            elif np.any(array == np.trunc(array)):
                printed = list(map(format_number, floats))
    except (ValueError, OverflowError):
        # A missing marker with white space in it, say.
        return None
    if printed is None:
        return None
    raws = None if printed == list(cells) else [None if text == cell else cell for text, cell in zip(printed, cells, strict=True)]
    if kept is not None:
        ids, rows = [ids[at] for at in kept], [rows[at] for at in kept]
    return Batch(ids, name, objects, rows, raws)


def column_names(headers: Sequence[str], reading: Reading) -> list[str]:
    """The predicates of a table's columns: headers with white space collapsed, made different from
    each other.

    An empty header is named by its position ("column 3"), a repeated one gets a number ("Points
    (2)"); both are warned about.
    """
    names: list[str] = []
    taken = {collapse(header) for header in headers}
    used: set[str] = set()
    counts: dict[str, int] = {}
    for at, header in enumerate(headers, 1):
        stem = collapse(header)
        empty = not stem
        stem = stem or f"column {at}"
        # Numbers up to the last one given to a header are taken: a thousand equal headers are not
        # counted through each time.
        count = counts.get(stem, 1)
        name = stem if count == 1 else f"{stem} ({count})"
        while name in used or (name != collapse(header) and name in taken):
            count += 1
            name = f"{stem} ({count})"
        counts[stem] = count
        if empty:
            reading.warn(f"column {at} has no header and is named {name!r}", field=name)
        elif name != stem:
            reading.warn(f"the header {stem!r} stands more than once; column {at} is named {name!r}", field=name)
        used.add(name)
        names.append(name)
    return names


class Table:
    """One table while it is read: its columns by name, the ids of its rows, and its columns as
    batches.
    """

    def __init__(self, reading: Reading, options: TableOptions, names: Sequence[str]) -> None:
        self.reading = reading
        self.options = options
        self.names = list(names)
        self.key = self._find(options.key, "key")
        self.name_column = self._find(options.name_column, "name_column")
        for column in () if options.times is None else options.times.columns():
            self._find(column, "times")
        joins = {self._find(name, "join"): table for name, table in options.join.items()}
        self.refs = frozenset(self._find(name, "refs") for name in options.refs) | frozenset(joins)
        source = reading.source.name
        graph_tables = self._graph_tables = GraphTables(reading.known, source, reading.gone, reading.spill)
        # Rows may be what columns of other sources refer to already.
        self._keys = None if self.key is None else Keys(graph_tables, self.names[self.key], source, reading.warn)
        self._targets = {}
        for at in self.refs:
            if at is not None and at != self.key:
                to = joins.get(at)
                own = self._own(at, to) if to is not None and to.table == source else None
                self._targets[at] = Targets(graph_tables, self.names[at], to, reading.warn, reading.spill, own)
        for name in options.types:
            self._find(name, "types")
        self._seen = seen_by(reading.spill)
        self._commas: str | None = None
        self._undecided = False

    def look_for_commas(self, profiles: Mapping[int, Profile], delimiter: str = ",") -> None:
        """Once all columns were looked at: a column of numbers that has commas before decimals speaks
        for those that could be read both ways, unless another has points; semicolons between fields
        leave commas to decimals whatever others have.
        """
        commas = delimiter == ";"
        if self.options.decimal is not None or not (commas or any(profile.either_way for profile in profiles.values())):
            return
        speak = next((at for at, item in profiles.items() if item.has_commas and self._numbers(at, item, commas)), None)
        if not commas and speak is None:
            return
        points = any(profile.has_points and self._numbers(at, profile, commas) for at, profile in profiles.items())
        self._undecided = points if speak is not None and not commas else speak is None and not points
        if speak is not None and not self._undecided:
            self._commas = self.names[speak]

    def _numbers(self, at: int, profile: Profile, commas: bool) -> bool:
        """Whether a column is one of numbers, where commas may stand before decimals."""
        kind = profile.decide(self.names[at], self.declared(at), self.options.day_first, commas=commas).kind
        return at not in self.refs and kind == "number"

    def _own(self, at: int, to: JoinTarget) -> Keys:
        """The keys of this table, to which one of its columns refers."""
        if self.key is None or self._keys is None or to.key not in ("", self.names[self.key]):
            raise OptionError(
                f"join= says that {self.names[at]!r} refers to rows of its own table, whose key is "
                + ("not said" if self.key is None else repr(self.names[self.key])),
                hint="key= says the column that identifies the rows",
            )
        return self._keys

    def finish(self) -> None:
        """Call when all rows were read: says which references to rows of this table, of its own
        columns or of other sources, are to nothing.
        """
        source = self.reading.source.name
        if self._targets:
            keys = self._seen.among(() if source in self.reading.gone else self._graph_tables.former)
            for target in self._targets.values():
                target.finish(keys)
        lost, named = 0, ""
        for part in parts(self._graph_tables.wanted()):
            some = [key for key, row in zip(part, self._seen.rows(part), strict=True) if row is None]
            if lost < _NAMED:
                named = ", ".join([named] * (lost > 0) + [repr(shortened(key, 60)) for key in some[: _NAMED - lost]])
            lost += len(some)
        if lost:
            more = f" and {lost - _NAMED} more" if lost > _NAMED else ""
            without = "" if self.key is not None else "; its rows have no keys (key= says the column that identifies them)"
            self.reading.warn(f"other sources refer to rows of {source!r} that it has not: {named}{more}{without}")

    def _find(self, name: str | None, option: str) -> int | None:
        if name is None:
            return None
        name = collapse(name)
        if name not in self.names:
            raise OptionError(
                f"{option}= names the column {name!r}, which the table does not have",
                candidates=nearest(name, self.names),
                hint="its columns are: " + ", ".join(map(repr, self.names[:30])) + (", ..." if len(self.names) > 30 else ""),
            )
        return self.names.index(name)

    def ids_of(self, at: int, cells: Sequence[str], rows: Sequence[int]) -> Ids:
        """The entities that the cells of a column of references are."""
        targets = self._targets.get(at)
        return Ids(cells if targets is None else targets.ids(cells, rows))

    def profile(self) -> Profile:
        """An empty profile with the table's missing markers."""
        return Profile(self.options.missing)

    def declared(self, at: int) -> Declared:
        """The type that the options give a column."""
        name = self.names[at]
        return next((kind for item, kind in self.options.types.items() if collapse(item) == name), self.options.every_type)

    def decide(self, at: int, profile: Profile) -> ColumnType:
        """The type of a column; warns about what it cannot read as it should."""
        name, declared = self.names[at], self.declared(at)
        if at in self.refs:
            chosen = profile.decide(name, "text")
            if declared == "auto" and profile.decide(name).lists:
                self.reading.warn("cells such as 101,102 are read as lists of references; types= with text overrules", field=name)
                chosen = replace(chosen, lists=True)
            return chosen
        chosen = profile.decide(
            name,
            declared,
            self.options.day_first,
            commas=self._commas is not None,
            decimal=self.options.decimal,
            seasons=self.options.seasons,
        )
        for remark in chosen.remarks:
            self.reading.warn(remark, field=name)
        if self._commas not in (None, name) and chosen.kind == "number" and profile.either_way:
            self.reading.warn(
                f"1.234 and 1,234 are read with a comma before decimals, as {self._commas!r} has them; "
                "decimal= with a comma or a point decides",
                field=name,
            )
        if self._undecided and chosen.kind == "number" and profile.either_way:
            self.reading.warn(
                "1,234 is read as 1234 and 1.234 as it is; in this table 1,234 may be meant as 1.234, and 1.234 as 1234, and "
                "no cell says so; decimal= with a comma or a point decides",
                field=name,
            )
        if chosen.cut:
            self.reading.warn(f"parts of a second are cut off in {chosen.cut} cells; the raw text keeps them", field=name)
        if chosen.unread:
            self.reading.warn(
                f"{numbered(chosen.unread, 'cell is a number or a time', 'cells are numbers or times')}, written in ways that do "
                "not go together, and the column stays text; types= with number or time reads what it can",
                field=name,
            )
        if chosen.ambiguous:
            dates, stay = numbered(chosen.ambiguous, "date", "dates"), "stays" if chosen.ambiguous == 1 else "stay"
            self.reading.warn(
                f"{dates} may have the day or the month first and {stay} text; day_first=true or false decides", field=name
            )
        return chosen

    def check(self, at: int, values: Sequence[Value], rows: Sequence[int]) -> None:
        """Warn about cells of a column whose type the options give, and which are of another."""
        declared = self.declared(at)
        if declared in ("number", "time") and at not in self.refs:
            kind = Quantity if declared == "number" else Time
            others = [row for value, row in zip(values, rows, strict=True) if not isinstance(value, kind)]
            if others:
                cells = numbered(len(others), "cell", "cells")
                self.reading.warn(f"{cells} cannot be read as a {declared}", row=others[0], field=self.names[at])

    def _warn_of_texts(self, at: int, chosen: ColumnType, values: Sequence[Value], rows: Sequence[int]) -> None:
        """Warn about cells that stay text in a column that is of another type by what most of its
        cells are.
        """
        if chosen.kind in ("text", "form") or self.declared(at) != "auto" or at in self.refs:
            return
        texts = [(row, value) for row, value in zip(rows, values, strict=True) if isinstance(value, str)]
        # Dates whose order is not known are reported once, for the whole column.
        if len(texts) > chosen.ambiguous:
            row, first = texts[0]
            kind = "numbers" if chosen.kind == "number" else "times"
            stay = f"{len(texts)} cells stay" if len(texts) > 1 else "a cell stays"
            such = "such as " if len(texts) > 1 else ""
            self.reading.warn(f"{stay} text in a column of {kind}: {such}{shortened(first, 60)!r}", row=row, field=self.names[at])

    def rows(
        self, numbers: Sequence[int], keys: Sequence[str | None] | None, names: Sequence[str | None] | None
    ) -> tuple[list[Entity], list[int] | None]:
        """The entities of rows, and which of the rows they are (None: all); a row whose key is
        missing or repeated is bad.
        """
        rows, kept = self.rows_at_once(numbers, keys, names)
        return list(rows.entities()), kept

    def rows_at_once(
        self, numbers: Sequence[int], keys: Sequence[str | None] | None, names: Sequence[str | None] | None
    ) -> tuple[Rows, list[int] | None]:
        """The same side by side."""
        if keys is None:
            source = self.reading.within
            # Quicker than a text at a time; the name of a file may have percent signs.
            escaped = source.replace("%", "%%")
            ids = tuple(map(f"{escaped}/%d".__mod__, numbers))
            if names is None:
                return Rows(ids, list(map(f"{escaped} row %d".__mod__, numbers)), numbers), None
            return Rows(ids, self._row_names(names, numbers), numbers), None
        assert self._keys is not None
        clean = self._clean(keys)
        # A key that was there before has the number of its first row.
        if clean is not None and self._seen.firsts(clean, numbers) == list(numbers):
            called: Sequence[str] = clean if names is None else self._row_names(names, numbers, clean)
            return Rows(tuple(self._keys.ids_of(clean, numbers)), called, numbers), None
        idents: list[str] = []
        called = []
        kept: list[int] = []
        collapsed = ["" if cell is None else collapse(cell) for cell in keys]
        perhaps = list(self._keys.perhaps(collapsed))
        there = [at for at, key in enumerate(collapsed) if keys[at] is not None and key.casefold() not in self.options.missing]
        firsts = dict(zip(there, self._seen.firsts([collapsed[at] for at in there], [numbers[at] for at in there]), strict=True))
        for at, (number, key) in enumerate(zip(numbers, collapsed, strict=True)):
            if at not in firsts:
                self.reading.bad("the row has no key", row=number, field=self.options.key)
                continue
            first = firsts[at]
            if first != number:
                self.reading.bad(f"the key {key!r} stands in row {first} already", row=number, field=self.options.key)
                continue
            name = key if names is None else self._row_name(names[at], number, key)
            idents.append(self._keys.settled(perhaps[at], number))
            called.append(name)
            kept.append(at)
        if len(kept) == len(numbers):
            return Rows(tuple(idents), called, numbers), None
        return Rows(tuple(idents), called, [numbers[at] for at in kept]), kept

    def _clean(self, cells: Sequence[str | None]) -> Fields | None:
        """Cells that are all there and have no white space to collapse; None where some are to be
        looked at one by one.
        """
        fields = cells if isinstance(cells, Fields) else None if None in cells else Fields.of(cast("Sequence[str]", cells))
        if fields is None or not fields.collapsed or fields.missing(self.options.missing).any():
            return None
        return fields

    def _row_names(
        self, cells: Sequence[str | None], numbers: Sequence[int], otherwise: Sequence[str | None] | None = None
    ) -> Sequence[str]:
        clean = self._clean(cells)
        return list(map(self._row_name, cells, numbers, otherwise or repeat(None))) if clean is None else clean

    def _row_name(self, cell: str | None, number: int, otherwise: str | None = None) -> str:
        name = "" if cell is None else collapse(cell)
        if name and name.casefold() not in self.options.missing:
            return name
        otherwise = otherwise or f"{self.reading.within} row {number}"
        self.reading.warn(f"the row has no name and is named {otherwise!r}", row=number, field=self.options.name_column)
        return otherwise

    def batch(
        self,
        at: int,
        chosen: ColumnType,
        read: Callable[[str], Cell | None],
        ids: Sequence[str],
        rows: Sequence[int] | NDArray[np.int32],
        cells: Sequence[str],
    ) -> Batch | None:
        """The statements of a column of texts, as `chosen` reads them, with the ids and the positions
        of its rows; None where every cell is missing.
        """
        fields = cells if isinstance(cells, Fields) else None
        if fields is None and chosen.kind == "text" and len(cells) > FEW:
            fields = Fields.of(cells)
        whole = None if fields is None else read_whole(fields, chosen)
        if whole is None:
            return self._cell_by_cell(at, chosen, read, ids, _listed(rows), cells)
        objects, raws, there = whole
        if not there.all():
            if not there.any():
                return None
            ids, rows = list(compress(ids, there)), np.asarray(rows, np.int32)[there]
        if at in self.refs and isinstance(objects, Texts):
            objects = self.ids_of(at, objects.texts, _listed(rows))
        return Batch(ids, self.names[at], objects, cast("Sequence[int]", rows), raws)

    def _cell_by_cell(
        self,
        at: int,
        chosen: ColumnType,
        read: Callable[[str], Cell | None],
        ids: Sequence[str],
        rows: Sequence[int],
        cells: Sequence[str],
    ) -> Batch | None:
        name = self.names[at]
        if chosen.lists:
            places, cells = chosen.elements(cells)
            ids, rows = [ids[place] for place in places], [rows[place] for place in places]
        if chosen.plain:
            batch = plain_batch(name, chosen, ids, rows, cells)
            if batch is not None:
                return batch
        # The memory of a reader costs more than it saves where cells rarely come again.
        look = chosen.read if len(set(cells)) * 2 > len(cells) else read
        typed = [look(cell) for cell in cells]
        if None in typed:
            kept = [other for other, cell in enumerate(typed) if cell is not None]
            if not kept:
                return None
            ids, rows = [ids[item] for item in kept], [rows[item] for item in kept]
        values = [cell[0] for cell in typed if cell is not None]
        raws = [cell[1] for cell in typed if cell is not None]
        self.check(at, values, rows)
        self._warn_of_texts(at, chosen, values, rows)
        objects = self.ids_of(at, cast("list[str]", values), rows) if at in self.refs else column_of(values)
        return Batch(ids, name, objects, rows, raws if any(raw is not None for raw in raws) else None)


def _listed(rows: Sequence[int] | NDArray[np.int32]) -> Sequence[int]:
    return rows.tolist() if isinstance(rows, np.ndarray) else rows

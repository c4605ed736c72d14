"""What table loaders share: options, names of columns, and the conversion of rows and columns to facts.

A row is an entity of kind row, `{source}/{n}` with n from 1, named "{source} row {n}" (unless `key` or
`name_column` is given); a column is a predicate named by its header. Each cell that is not missing is
a statement, with the cell's text if that differs from the printed value. Rows are yielded in order, a
few thousand at a time: first their entities, then one `Batch` for each column.
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
from condgraph.loaders.table.column_types import DECLARED, FEW, MAYBE_EPOCHS, MISSING, Cell, ColumnType, Declared, Profile
from condgraph.loaders.table.fields import Fields
from condgraph.loaders.table.joins import GraphTables, JoinTarget, Keys, Targets, join_option, parts, seen_by

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: Options of every table format.
TABLE_OPTIONS: Final[Mapping[str, str]] = {
    "types": 'how columns are read, whatever their cells say: {column: "text", "number", "time" or "auto"}, or one for all',
    "key": "the column that identifies the rows: ids and names of the rows are its cells",
    "name_column": "the column that names the rows",
    "missing": "further texts that mean a missing cell",
    "refs": "columns whose cells are names of entities rather than values",
    "join": "columns that refer to rows of other sources: {'country': 'countries.country'}, in any order; False: ask nothing",
    "day_first": "whether 03/05/2010 is the third of May (default: decided by column, text where undecided)",
    "decimal": "the decimal separator, a comma or a point (default: decided by column and file)",
    "times": "columns that say when a row holds: '[valid_from, valid_to)' or, with the end included, '[valid_from, valid_to]'",
    "seasons": "whether 2004-05 is the years 2004 and 2005 rather than May 2004 (default: decided by column)",
}
#: How many keys a warning names.
_NAMED: Final = 5
#: Options for reading cells, which the tables of one source share.
CELL_OPTIONS: Final = ("missing", "day_first", "decimal", "seasons")
_TYPES: Final = "types are: " + ", ".join(DECLARED)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of `TABLE_OPTIONS`, checked; columns are names until `Table` resolves them."""

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
        raise OptionError(f"unknown column type {kind!r}", candidates=nearest(str(kind), DECLARED), hint=_TYPES)
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


#: Integers up to this are exact as floats.
_EXACT_FLOAT: Final = 2**53


def column_of(values: Sequence[Ref | Value], *, collapsed: bool = False) -> Column:
    """Return values as the narrowest column that holds them without loss; `collapsed`: the white space of texts is."""
    kinds = set(map(type, values))
    if kinds == {str}:
        return Texts(cast("Sequence[str]", values), collapsed)
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
    """Return numbers as an array that holds them exactly, or None."""
    integers = [number for number in numbers if isinstance(number, int)]
    lowest, highest = (min(integers), max(integers)) if integers else (0, 0)
    if len(integers) == len(numbers):
        return np.array(numbers, dtype=np.int64) if lowest >= -(2**63) and highest < 2**63 else None
    if lowest >= -_EXACT_FLOAT and highest <= _EXACT_FLOAT and not any(isinstance(number, Decimal) for number in numbers):
        return np.array(numbers, dtype=np.float64)
    return None


#: Objects, the source texts that differ from the printed values (None: none do), and a mask of the
#: cells that are not missing.
Whole: TypeAlias = tuple[Column, Sequence[str | None] | None, NDArray[np.bool_]]
_TEN: Final = np.array([10.0**power for power in range(16)])


def read_whole(fields: Fields, chosen: ColumnType) -> Whole | None:
    """Read a whole column at once, or return None if it must be read cell by cell."""
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
    present = ~fields.missing(missing)
    return Texts(fields if present.all() else fields.where(present), collapsed=True), None, present


def _days(fields: Fields) -> Whole | None:
    days = fields.days
    if days is None:
        return None
    starts = days.days[days.there] * DAY_SECONDS
    return Times(starts, starts + DAY_SECONDS, np.full(len(starts), Precision.DAY, np.int8)), None, days.there


def year_times(years: NDArray[np.int64]) -> Times:
    """Return whole years as times."""
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
    # A float keeps fifteen digits. Numbers below 0.0001, which print with an exponent, are rejected below.
    if plain is None or int(plain.lengths.max(initial=0)) > 15:
        return None
    mantissa, decimals = plain.mantissa, plain.decimals
    # Both are exact as floats, so one division rounds like parsing the text.
    numbers = mantissa / _TEN[decimals]
    if ((np.abs(numbers) < 1e-4) & (mantissa != 0)).any():
        return None
    # A number prints without trailing zeros, so such texts are kept as raw texts.
    trailing_zeros = (decimals > 0) & (mantissa % 10 == 0) & plain.there
    present = plain.there
    raws = None
    if trailing_zeros.any():
        raws = Raws(
            int(np.count_nonzero(present)),
            np.flatnonzero(trailing_zeros if present.all() else trailing_zeros[present]),
            fields.where(trailing_zeros),
        )
    return Numbers(numbers[present]), raws, present


_READERS: Final[dict[str, Callable[[Fields], Whole | None]]] = {"int": _integers, "float": _decimals, "day": _days, "year": _years}


def plain_batch(name: str, chosen: ColumnType, ids: Sequence[str], rows: Sequence[int], cells: Sequence[str]) -> Batch | None:
    """Read a column of plain integers, decimals or ISO days at once; None if it must be read cell by cell."""
    present: list[int] | None = None
    if any(marker[-1:].isdigit() for marker in chosen.missing):
        return None
    if any(cell in chosen.missing or cell.casefold() in chosen.missing for cell in set(cells) if len(cell) < 8):
        present = [at for at, cell in enumerate(cells) if cell.casefold() not in chosen.missing]
        cells = [cells[at] for at in present]
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
        # For example, a missing marker that contains white space.
        return None
    if printed is None:
        return None
    raws = None if printed == list(cells) else [None if text == cell else cell for text, cell in zip(printed, cells, strict=True)]
    if present is not None:
        ids, rows = [ids[at] for at in present], [rows[at] for at in present]
    return Batch(ids, name, objects, rows, raws)


def column_names(headers: Sequence[str], reading: Reading) -> list[str]:
    """Return the predicates of a table's columns: headers with white space collapsed, made unique.

    An empty header is named by its position ("column 3"), a repeated one gets a number ("Points (2)"),
    both with a warning.
    """
    names: list[str] = []
    taken = {collapse(header) for header in headers}
    used: set[str] = set()
    counts: dict[str, int] = {}
    for at, header in enumerate(headers, 1):
        stem = collapse(header)
        empty = not stem
        stem = stem or f"column {at}"
        # Continue with the last number of the header, so that a thousand equal headers take linear time.
        count = counts.get(stem, 1)
        name = stem if count == 1 else f"{stem} ({count})"
        while name in used or (name != collapse(header) and name in taken):
            count += 1
            name = f"{stem} ({count})"
        counts[stem] = count
        if empty:
            reading.warn(f"column {at} has no header and is named {name!r}", field=name)
        elif name != stem:
            reading.warn(f"the header {stem!r} occurs more than once; column {at} is named {name!r}", field=name)
        used.add(name)
        names.append(name)
    return names


class Table:
    """One table during a load: its columns by name, the ids of its rows, and its columns as batches."""

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
        # Columns of other sources may already refer to these rows.
        self._keys = None if self.key is None else Keys(graph_tables, self.names[self.key], source, reading.warn)
        self._targets = {}
        for at in self.refs:
            if at is not None and at != self.key:
                target = joins.get(at)
                own_keys = self._own(at, target) if target is not None and target.table == source else None
                self._targets[at] = Targets(graph_tables, self.names[at], target, reading.warn, reading.spill, own_keys)
        for name in options.types:
            self._find(name, "types")
        self._seen = seen_by(reading.spill)
        self._commas: str | None = None
        self._undecided = self.has_rows = False

    def look_for_commas(self, profiles: Mapping[int, Profile], delimiter: str = "") -> None:
        """Decide whether ambiguous numbers have decimal commas, after all columns are profiled.

        A column of numbers that certainly has decimal commas decides for ambiguous ones, unless another has
        points. Fields separated by semicolons imply decimal commas in any case, and fields separated by commas decimal
        points. Otherwise `decide` warns if no column decides.
        """
        commas = delimiter == ";"
        if self.options.decimal is not None or not (commas or any(profile.either_way for profile in profiles.values())):
            return
        deciding = next((at for at, item in profiles.items() if item.has_commas and self._numbers(at, item, commas)), None)
        if delimiter == "," and deciding is None:
            return
        points = any(profile.has_points and self._numbers(at, profile, commas) for at, profile in profiles.items())
        self._undecided = points if deciding is not None and not commas else deciding is None and not points
        if deciding is not None and not self._undecided:
            self._commas = self.names[deciding]

    def _numbers(self, at: int, profile: Profile, commas: bool) -> bool:
        """Whether a column has numbers, which may have decimal commas."""
        kind = profile.decide(self.names[at], self.declared(at), self.options.day_first, commas=commas).kind
        return at not in self.refs and kind == "number"

    def _own(self, at: int, to: JoinTarget) -> Keys:
        """Return the keys of this table, for a column that refers to its own table."""
        if self.key is None or self._keys is None or to.key not in ("", self.names[self.key]):
            raise OptionError(
                f"join= says that {self.names[at]!r} refers to rows of its own table, whose key is "
                + ("not specified" if self.key is None else repr(self.names[self.key])),
                hint="key= names the column that identifies the rows",
            )
        return self._keys

    def finish(self) -> None:
        """Report references to missing rows of this table, from its own columns and other sources; call it last."""
        source = self.reading.source.name
        if self._targets:
            keys = self._seen.among(() if source in self.reading.gone else self._graph_tables.former)
            for target in self._targets.values():
                target.finish(keys)
        unnamed, named = 0, ""
        for part in parts(self._graph_tables.wanted()):
            missing_keys = [key for key, row in zip(part, self._seen.rows(part), strict=True) if row is None]
            if unnamed < _NAMED:
                named = ", ".join([named] * (unnamed > 0) + [repr(shortened(key, 60)) for key in missing_keys[: _NAMED - unnamed]])
            unnamed += len(missing_keys)
        if unnamed:
            more = f" and {unnamed - _NAMED} more" if unnamed > _NAMED else ""
            without = "" if self.key is not None else "; its rows have no keys (key= names the column that identifies them)"
            self.reading.warn(f"other sources refer to rows of {source!r} that are missing: {named}{more}{without}")

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
        """Return the entities that the cells of a reference column mean."""
        targets = self._targets.get(at)
        return Ids(cells if targets is None else targets.ids(cells, rows))

    def profile(self) -> Profile:
        return Profile(self.options.missing)

    def declared(self, at: int) -> Declared:
        """Return the declared type of a column."""
        name = self.names[at]
        return next((kind for item, kind in self.options.types.items() if collapse(item) == name), self.options.every_type)

    def decide(self, at: int, profile: Profile) -> ColumnType:
        """Decide the type of a column, with warnings about cells that it cannot read properly."""
        name, declared = self.names[at], self.declared(at)
        if at in self.refs:
            result = profile.decide(name, "text")
            if declared == "auto" and profile.decide(name).lists:
                self.reading.warn("cells such as 101,102 are read as lists of references; types= with text overrules", field=name)
                result = replace(result, lists=True)
            return result
        result = profile.decide(
            name,
            declared,
            self.options.day_first,
            commas=self._commas is not None,
            decimal=self.options.decimal,
            seasons=self.options.seasons,
        )
        times = () if self.options.times is None else self.options.times.columns()
        for remark in result.notes():
            if remark != MAYBE_EPOCHS or name not in times:
                self.reading.warn(remark, field=name)
        if self._commas not in (None, name) and result.kind == "number" and profile.either_way:
            self.reading.warn(
                f"1.234 and 1,234 are read with a comma before decimals, as {self._commas!r} has them; "
                "decimal= with a comma or a point decides",
                field=name,
            )
        if self._undecided and result.kind == "number" and profile.either_way:
            self.reading.warn(
                "1,234 is read as 1234 and 1.234 as it is; in this table 1,234 may be meant as 1.234, and 1.234 as 1234, and "
                "no cell says so; decimal= with a comma or a point decides",
                field=name,
            )
        return result

    def check(self, at: int, values: Sequence[Value], rows: Sequence[int]) -> None:
        """Warn of cells that do not have the declared type of their column."""
        declared = self.declared(at)
        if declared in ("number", "time") and at not in self.refs:
            kind = Quantity if declared == "number" else Time
            mismatched = [row for value, row in zip(values, rows, strict=True) if not isinstance(value, kind)]
            if mismatched:
                cells = numbered(len(mismatched), "cell", "cells")
                self.reading.warn(f"{cells} cannot be read as a {declared}", row=mismatched[0], field=self.names[at])

    def _warn_of_texts(self, at: int, chosen: ColumnType, values: Sequence[Value], rows: Sequence[int]) -> None:
        """Warn of cells that stay text in a column whose inferred type is another."""
        if chosen.kind in ("text", "form") or self.declared(at) != "auto" or at in self.refs:
            return
        texts = [(row, value) for row, value in zip(rows, values, strict=True) if isinstance(value, str)]
        # Dates with an unknown order are reported once for the column, and not counted here.
        if len(texts) > chosen.ambiguous:
            row, first = texts[0]
            kind = "numbers" if chosen.kind == "number" else "times"
            stay = f"{len(texts)} cells stay" if len(texts) > 1 else "a cell stays"
            prefix = "such as " if len(texts) > 1 else ""
            self.reading.warn(f"{stay} text in a column of {kind}: {prefix}{shortened(first, 60)!r}", row=row, field=self.names[at])

    def rows(
        self, numbers: Sequence[int], keys: Sequence[str | None] | None, names: Sequence[str | None] | None
    ) -> tuple[list[Entity], list[int] | None]:
        """Return the entities of rows, and the indices of these rows (None for all).

        A row whose key is missing or repeated is bad.
        """
        rows, good = self.rows_at_once(numbers, keys, names)
        return list(rows.entities()), good

    def rows_at_once(
        self, numbers: Sequence[int], keys: Sequence[str | None] | None, names: Sequence[str | None] | None
    ) -> tuple[Rows, list[int] | None]:
        """Return the same as `rows`, column by column."""
        self.has_rows |= len(numbers) > 0
        if keys is None:
            source = self.reading.within
            # Faster than f-strings; the name of a file may contain percent signs.
            escaped = source.replace("%", "%%")
            ids = tuple(map(f"{escaped}/%d".__mod__, numbers))
            if names is None:
                return Rows(ids, list(map(f"{escaped} row %d".__mod__, numbers)), numbers), None
            return Rows(ids, self._row_names(names, numbers), numbers), None
        assert self._keys is not None
        clean = self._clean(keys)
        # A repeated key returns the number of its first row.
        if clean is not None and self._seen.firsts(clean, numbers) == list(numbers):
            row_names: Sequence[str] = clean if names is None else self._row_names(names, numbers, clean)
            return Rows(tuple(self._keys.ids_of(clean, numbers)), row_names, numbers), None
        idents: list[str] = []
        row_names = []
        good: list[int] = []
        collapsed = ["" if cell is None else collapse(cell) for cell in keys]
        possible_ids = list(self._keys.perhaps(collapsed))
        present = [at for at, key in enumerate(collapsed) if keys[at] is not None and key.casefold() not in self.options.missing]
        firsts = dict(
            zip(present, self._seen.firsts([collapsed[at] for at in present], [numbers[at] for at in present]), strict=True)
        )
        for at, (number, key) in enumerate(zip(numbers, collapsed, strict=True)):
            if at not in firsts:
                self.reading.bad("the row has no key", row=number, field=self.options.key)
                continue
            first = firsts[at]
            if first != number:
                self.reading.bad(f"the key {key!r} is already in row {first}", row=number, field=self.options.key)
                continue
            name = key if names is None else self._row_name(names[at], number, key)
            idents.append(self._keys.resolve(possible_ids[at], number))
            row_names.append(name)
            good.append(at)
        if len(good) == len(numbers):
            return Rows(tuple(idents), row_names, numbers), None
        return Rows(tuple(idents), row_names, [numbers[at] for at in good]), good

    def _clean(self, cells: Sequence[str | None]) -> Fields | None:
        """Return cells without missing ones or white space to collapse; None if they must be examined one by one."""
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
        """Return the statements of a column of texts, read as type `chosen`; None if every cell is missing.

        `ids` and `rows` are the ids and numbers of the rows.
        """
        fields = cells if isinstance(cells, Fields) else None
        if fields is None and chosen.kind == "text" and len(cells) > FEW:
            fields = Fields.of(cells)
        result = None if fields is None else read_whole(fields, chosen)
        if result is None:
            return self._cell_by_cell(at, chosen, read, ids, _listed(rows), cells)
        objects, raws, present = result
        if not present.all():
            if not present.any():
                return None
            ids, rows = list(compress(ids, present)), np.asarray(rows, np.int32)[present]
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
        typed = chosen.read_all(cells, read)
        if None in typed:
            present = [other for other, cell in enumerate(typed) if cell is not None]
            if not present:
                return None
            ids, rows = [ids[item] for item in present], [rows[item] for item in present]
        values = [cell[0] for cell in typed if cell is not None]
        raws = [cell[1] for cell in typed if cell is not None]
        self.check(at, values, rows)
        self._warn_of_texts(at, chosen, values, rows)
        objects = self.ids_of(at, cast("list[str]", values), rows) if at in self.refs else column_of(values, collapsed=True)
        return Batch(ids, name, objects, rows, raws if any(raw is not None for raw in raws) else None)


def _listed(rows: Sequence[int] | NDArray[np.int32]) -> Sequence[int]:
    return rows.tolist() if isinstance(rows, np.ndarray) else rows

"""Keys and references between tables: which columns identify rows, and which point to rows of others.

- **Primary key**: declared, in an option, or by the database; else a column named `id`, or like the
  table (`productID`, `product_id`, `product` in products.csv), whose cells are complete and unique.
- **Reference**: declared, in an option, or by the database; else a column named like the primary key of
  another table (`productID`), or like that table (`product_id` if its key is `id`), if at least half of
  its distinct values are keys there. The others are left dangling. Whole numbers that were written with
  a point (`1.0`, in a column where some are missing) match keys without it.
- **Relation**: a table of two references and nothing else, except a column with one word for all rows.

A key may have several columns; the key of a row is then one text (`joined` in `table.joins`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from condgraph.engine.snapshot.spill import SpilledFiles
from condgraph.loaders.folder.declared import Declared, Join
from condgraph.loaders.table.joins import (
    CONTAINED,
    TYPE_NAMES,
    SpilledValues,
    Values,
    called_like,
    key_names,
    near_keys,
    plain,
    singular,
    values_by,
    whole,
)

#: The indices of a key's columns.
Key: TypeAlias = tuple[int, ...]
#: A table, a column that looks like a reference, and a message about it.
Doubt: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Reference:
    """Columns that point to rows, and the tables and columns to search, in order.

    `pointed` means that the cells are whole numbers written as 1.0, and the keys are not.
    """

    columns: Key
    targets: tuple[tuple[str, Key], ...]
    pointed: bool = False

    def spelled(self, text: str) -> str:
        """Return a cell in the spelling of keys."""
        return whole(text) if self.pointed else text


@dataclass(slots=True)
class Columns:
    """The columns of a table, with the values of those that may be keys.

    `values` are the distinct texts by key; `missing` and `repeated` count cells that a primary key must
    not have.
    """

    table: str
    names: list[str]
    rows: int = 0
    values: dict[Key, Values | SpilledValues] = field(default_factory=dict)
    missing: dict[Key, int] = field(default_factory=dict)
    repeated: dict[Key, int] = field(default_factory=dict)
    primary: Key | None = None
    foreign: list[Reference] = field(default_factory=list)
    #: Whether rows are relations, if declared.
    relation: bool | None = None
    #: Whether other tables point here.
    pointed: bool = False
    #: Temporary files of a load with bounded memory.
    files: SpilledFiles | None = None

    def add(self, key: Key, cells: Iterable[str | None]) -> None:
        """Add cells of columns that may be a key; None for missing ones."""
        if key not in self.values:
            self.values[key] = values_by(self.files)
        known = self.values[key]
        cell_list = list(cells)
        distinct = set(cell_list)
        rows = len(cell_list)
        if None in distinct:
            missing = cell_list.count(None)
            rows -= missing
            distinct.discard(None)
            self.missing[key] = self.missing.get(key, 0) + missing
        fresh = known.take(cast("set[str]", distinct))
        if fresh < rows:
            self.repeated[key] = self.repeated.get(key, 0) + rows - fresh

    def of(self, key: Key) -> Values | SpilledValues:
        """Return the values of a key; empty if it was not examined."""
        return self.values[key] if key in self.values else values_by(self.files)

    def inside(self, key: Key, other: Columns, of: Key) -> int:
        """Return how many values of a key are also values of another one."""
        values, keys = self.values.get(key), other.values.get(of)
        return values.inside(keys) if values and keys else 0

    def unique(self, key: Key) -> bool:
        """Whether a key's cells are complete and unique."""
        return self.rows > 0 and key in self.values and not self.missing.get(key) and not self.repeated.get(key)

    def reference(self, at: int) -> Reference | None:
        """Return the reference of one column alone."""
        return next((item for item in self.foreign if item.columns == (at,)), None)

    @property
    def constant(self) -> int | None:
        """The column that has the kind of relation, in one word for all rows; or None."""
        for at, name in enumerate(self.names):
            if len(self.values.get((at,), ())) == 1 and not self.missing.get((at,)) and plain(name) in TYPE_NAMES:
                return at
        return None

    @property
    def joins(self) -> bool:
        """Whether the rows are relations between rows of other tables."""
        if self.relation is not None:
            return self.relation
        ends = {item.columns[0] for item in self.foreign if len(item.columns) == 1}
        other_columns = set(range(len(self.names))) - ends - {self.constant}
        has_own_key = self.primary is not None and not set(self.primary) <= ends
        return len(ends) == 2 == len(self.foreign) and not other_columns and not has_own_key and not self.pointed


def may_be_keys(tables: Mapping[str, Sequence[str]], declared: Declared) -> dict[str, set[Key]]:
    """Return the possible keys of each table, from all headers and the declarations."""
    names = {"id"}.union(*(key_names(table) for table in tables)) | TYPE_NAMES
    result: dict[str, set[Key]] = {
        table: {(at,) for at, name in enumerate(headers) if plain(name) in names} for table, headers in tables.items()
    }

    def add_key(table: str, columns: Sequence[str]) -> None:
        if columns:
            result[table].add(tuple(tables[table].index(column) for column in columns))

    for table, columns in declared.keys.items():
        add_key(table, columns)
    for join in declared.joins:
        add_key(join.table, join.columns)
        for other, columns in join.targets:
            add_key(other, columns)
    return result


def find_keys(tables: Mapping[str, Columns], declared: Declared) -> list[Doubt]:
    """Set `primary`, `foreign` and `relation` of the tables; returns doubtful columns with messages.

    Raises the errors of `declared.wrong`.
    """
    doubtful: list[Doubt] = []
    for name, table in tables.items():
        if name in declared.keys:
            table.primary = tuple(map(table.names.index, declared.keys[name])) or None
            key = table.primary
            if key is not None and name in declared.of_source and not table.unique(key) and table.rows:
                missing, repeated = table.missing.get(key, 0), table.repeated.get(key, 0)
                defect = f"{repeated} of its cells repeat others" if repeated else f"{missing} of its cells are missing"
                message = f"this is the declared key, but {defect}; rows are numbered instead"
                doubtful.append((name, " + ".join(declared.keys[name]), message))
                table.primary = None
        elif declared.guess_joins:
            table.primary = _primary(table)
        relation = declared.relations.get(name)
        table.relation = None if relation is None else relation is not False
    doubtful += [item for join in declared.joins for item in _declare(tables, join, declared)]
    doubtful += _by_names(tables, declared) if declared.guess_joins else []
    for table in tables.values():
        for item in table.foreign:
            for target, _ in item.targets:
                tables[target].pointed = True
    return doubtful


def _declare(tables: Mapping[str, Columns], join: Join, declared: Declared) -> list[Doubt]:
    table = tables[join.table]
    targets: list[tuple[str, Key]] = []
    header = " + ".join(join.columns)
    for name, columns in join.targets:
        other = tables[name]
        key = tuple(map(other.names.index, columns))
        if not key:
            if other.primary is None:
                if join.of_source:
                    return [
                        (join.table, header, f"this refers to the key of {name!r}, a table without a key; its cells are values")
                    ]
                raise declared.wrong(
                    f"{join} takes the key of {name!r}, a table without a key", hint=f"write the column, as {name}.column"
                )
            key = other.primary
        elif other.primary is None and other.unique(key):
            other.primary = key
        if len(key) != len(join.columns):
            if join.of_source:
                message = f"this refers to {name!r} with another number of columns than its key; its cells are values"
                return [(join.table, header, message)]
            raise declared.wrong(f"{join} joins {len(join.columns)} columns to {len(key)}")
        if other.repeated.get(key):
            why = f"{name}.{' + '.join(columns)} as a key, but {other.repeated[key]} of its cells repeat others"
            if join.of_source:
                return [(join.table, header, f"this uses {why}; its cells are values")]
            raise declared.wrong(f"{join} uses {why}")
        targets.append((name, key))
    columns_here = tuple(map(table.names.index, join.columns))
    # A database has already compared the cells of its joins.
    pointed = len(targets) == 1 and not join.of_source and _pointed(table, columns_here, tables[targets[0][0]], targets[0][1])
    table.foreign.append(Reference(columns_here, tuple(targets), pointed))
    return [(join.table, header, _spelling(targets[0][0]))] if pointed else []


def _spelling(target: str) -> str:
    return f"whole numbers with a point, such as 1.0, match the keys of {target!r} without it"


def _pointed(table: Columns, columns: Key, other: Columns, key: Key) -> bool:
    """Whether the cells of a column match keys only as whole numbers without the point."""
    values, keys = table.values.get(columns), other.values.get(key)
    if len(columns) > 1 or not values or not keys or values.inside(keys) >= CONTAINED * len(values):
        return False
    return values.spelled(whole).inside(keys) >= CONTAINED * len(values)


def _by_names(tables: Mapping[str, Columns], declared: Declared) -> list[Doubt]:
    doubtful: list[Doubt] = []
    for name, table in tables.items():
        for at, column in enumerate(table.names):
            if (at,) == table.primary or any(at in item.columns for item in table.foreign) or not table.values.get((at,)):
                continue
            for target, other in tables.items():
                if target == name or (other.primary is not None and len(other.primary) > 1):
                    continue
                if other.primary is None:
                    if target not in declared.keys and (why := _no_key(column, table.values[at,], other)):
                        doubtful.append((name, column, f"this looks like a reference, but {why}; its cells are values"))
                    continue
                if not points(column, other):
                    continue
                values = table.values[at,]
                inside = table.inside((at,), other, other.primary)
                pointed = _pointed(table, (at,), other, other.primary)
                if pointed or inside >= CONTAINED * len(values):
                    table.foreign.append(Reference((at,), ((target, other.primary),), pointed))
                    if pointed:
                        doubtful.append((name, column, _spelling(target)))
                    break
                if not inside and _only_a_name(column, target, other.names[other.primary[0]]):
                    continue
                why = f"{len(values) - inside} of its {len(values)} values are not keys of {target!r}"
                doubtful.append(
                    (name, column, f"this looks like a reference, but {why}; its cells are values (join= makes it a reference)")
                )
                keys = other.of(other.primary)
                if near := near_keys(values.beyond(keys), keys, target):
                    doubtful.append((name, column, near))
    return doubtful


def _only_a_name(column: str, table: str, key: str) -> bool:
    """Whether a column is named like a table, but not like its key: it may hold names."""
    plain_column, stem = plain(column), plain(table)
    return plain_column != plain(key) and plain_column in (stem, singular(stem))


def _no_key(column: str, mine: Values | SpilledValues, other: Columns) -> str:
    """Return why the table that a column is named after has no key: missing or repeated cells; else ""."""
    for at in _called(other):
        key, keys = other.names[at], other.values.get((at,))
        if not keys or not called_like(column, key, other.table):
            continue
        if _only_a_name(column, other.table, key) and not mine.inside(keys):
            continue
        missing, repeated = other.missing.get((at,), 0), other.repeated.get((at,), 0)
        defect = f"{repeated} of its cells repeat others" if repeated else f"{missing} of its cells are missing"
        return f"{other.table}.{key} is not a key: {defect}"
    return ""


def _primary(table: Columns) -> Key | None:
    """Return the first column named like a key of the table whose cells are complete and unique."""
    return next(((at,) for at in _called(table) if table.unique((at,))), None)


def _called(table: Columns) -> list[int]:
    """Return the columns named like a key of the table, best first."""
    key_like = {"id", *key_names(table.table)}
    candidates = [at for at, name in enumerate(table.names) if plain(name) in key_like]
    # A column named like the table itself ("product" in products.csv) is the last choice.
    candidates.sort(key=lambda at: plain(table.names[at]) in (plain(table.table), singular(plain(table.table))))
    return candidates


def points(column: str, other: Columns) -> bool:
    """Whether a column is named like the key of another table, or like that table."""
    return called_like(column, "" if other.primary is None else other.names[other.primary[0]], other.table)

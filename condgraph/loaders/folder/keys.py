"""Keys between tables: which columns identify the rows of a table, and which ones point to rows of
others.

- **Primary key**: what a declaration, an option or the database says; else a column called `id`, or
  like the table (`productID`, `product_id`, `product` in products.csv), whose cells are all there
  and all different.
- **Reference**: what a declaration, an option or the database says; else a column called like the
  primary key of another table (`productID`), or like that table (`product_id` where its key is
  `id`), of whose different values at least half are keys there. The others dangle. Whole numbers
  that programs wrote with a point (`1.0`, in a column where some are missing) meet keys without.
- **Relation**: a table of two references and nothing else but a column with one word for all rows.

Keys may have several columns; the key of a row is one text then (`joined` of `spelling.py`).
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

#: Positions of the columns of a key.
Key: TypeAlias = tuple[int, ...]
#: A table, columns of it that look like a reference, and what there is to say of them.
Doubt: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Reference:
    """Columns that point to rows, and the tables and columns where these may be, in the order in
    which they are looked for.

    `pointed` says that the cells are whole numbers written as 1.0, and the keys are not.
    """

    columns: Key
    targets: tuple[tuple[str, Key], ...]
    pointed: bool = False

    def spelled(self, text: str) -> str:
        """A cell as keys are written."""
        return whole(text) if self.pointed else text


@dataclass(slots=True)
class Columns:
    """One table as far as keys are concerned: its columns, and what was found in those that may be
    keys.

    `values` are the different texts by key, for columns that may be keys; `missing` and `repeated`
    count cells that a primary key must not have.
    """

    table: str
    names: list[str]
    rows: int = 0
    values: dict[Key, Values | SpilledValues] = field(default_factory=dict)
    missing: dict[Key, int] = field(default_factory=dict)
    repeated: dict[Key, int] = field(default_factory=dict)
    primary: Key | None = None
    foreign: list[Reference] = field(default_factory=list)
    #: Whether rows are relations: as declared, or None.
    relation: bool | None = None
    #: Whether rows of other tables point here.
    pointed: bool = False
    #: The files of a load that is bounded in memory.
    files: SpilledFiles | None = None

    def add(self, key: Key, cells: Iterable[str | None]) -> None:
        """Look at cells of columns that may be a key; None where one is missing."""
        if key not in self.values:
            self.values[key] = values_by(self.files)
        known = self.values[key]
        listed = list(cells)
        different = set(listed)
        rows = len(listed)
        if None in different:
            missing = listed.count(None)
            rows -= missing
            different.discard(None)
            self.missing[key] = self.missing.get(key, 0) + missing
        fresh = known.take(cast("set[str]", different))
        if fresh < rows:
            self.repeated[key] = self.repeated.get(key, 0) + rows - fresh

    def of(self, key: Key) -> Values | SpilledValues:
        """The values of a key; none of one that was not looked at."""
        return self.values[key] if key in self.values else values_by(self.files)

    def inside(self, key: Key, other: Columns, of: Key) -> int:
        """How many values of a key are values of another one too."""
        mine, keys = self.values.get(key), other.values.get(of)
        return mine.inside(keys) if mine and keys else 0

    def unique(self, key: Key) -> bool:
        """Whether a key's cells are all there and all different."""
        return self.rows > 0 and key in self.values and not self.missing.get(key) and not self.repeated.get(key)

    def reference(self, at: int) -> Reference | None:
        """The reference that one column alone is."""
        return next((item for item in self.foreign if item.columns == (at,)), None)

    @property
    def constant(self) -> int | None:
        """The column that says for all rows, with one word, what kind of relation they are."""
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
        rest = set(range(len(self.names))) - ends - {self.constant}
        own = self.primary is not None and not set(self.primary) <= ends
        return len(ends) == 2 == len(self.foreign) and not rest and not own and not self.pointed


def may_be_keys(tables: Mapping[str, Sequence[str]], declared: Declared) -> dict[str, set[Key]]:
    """The keys of each table that have to be looked at, from all headers and what is declared."""
    names = {"id"}.union(*(key_names(table) for table in tables)) | TYPE_NAMES
    result: dict[str, set[Key]] = {
        table: {(at,) for at, name in enumerate(headers) if plain(name) in names} for table, headers in tables.items()
    }

    def look(table: str, columns: Sequence[str]) -> None:
        if columns:
            result[table].add(tuple(tables[table].index(column) for column in columns))

    for table, columns in declared.keys.items():
        look(table, columns)
    for join in declared.joins:
        look(join.table, join.columns)
        for other, columns in join.targets:
            look(other, columns)
    return result


def find_keys(tables: Mapping[str, Columns], declared: Declared) -> list[Doubt]:
    """Set `primary`, `foreign` and `relation` of the tables; what there is to say of columns that
    look like references, as (table, column, what). Raises what `declared.wrong` makes.
    """
    doubtful: list[Doubt] = []
    for name, table in tables.items():
        if name in declared.keys:
            table.primary = tuple(map(table.names.index, declared.keys[name])) or None
            key = table.primary
            if key is not None and name in declared.of_source and not table.unique(key) and table.rows:
                missing, repeated = table.missing.get(key, 0), table.repeated.get(key, 0)
                what = f"{repeated} of its cells repeat others" if repeated else f"{missing} of its cells are missing"
                said = f"this is declared to be the key, but {what}; rows go by their numbers"
                doubtful.append((name, " + ".join(declared.keys[name]), said))
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
    said = " + ".join(join.columns)
    for name, columns in join.targets:
        other = tables[name]
        key = tuple(map(other.names.index, columns))
        if not key:
            if other.primary is None:
                if join.of_source:
                    return [(join.table, said, f"this refers to the key of {name!r}, which has none; its cells are values")]
                raise declared.wrong(
                    f"{join} takes the key of {name!r}, which has none", hint=f"write the column, as {name}.column"
                )
            key = other.primary
        elif other.primary is None and other.unique(key):
            other.primary = key
        if len(key) != len(join.columns):
            if join.of_source:
                what = f"this refers to {name!r} by another number of columns than its key has; its cells are values"
                return [(join.table, said, what)]
            raise declared.wrong(f"{join} joins {len(join.columns)} columns to {len(key)}")
        if other.repeated.get(key):
            why = f"{name}.{' + '.join(columns)} for a key, but {other.repeated[key]} of its cells repeat others"
            if join.of_source:
                return [(join.table, said, f"this takes {why}; its cells are values")]
            raise declared.wrong(f"{join} takes {why}")
        targets.append((name, key))
    columns_here = tuple(map(table.names.index, join.columns))
    # What a database joins it has compared itself.
    pointed = len(targets) == 1 and not join.of_source and _pointed(table, columns_here, tables[targets[0][0]], targets[0][1])
    table.foreign.append(Reference(columns_here, tuple(targets), pointed))
    return [(join.table, said, _spelling(targets[0][0]))] if pointed else []


def _spelling(target: str) -> str:
    return f"whole numbers with a point, as 1.0, stand for the keys of {target!r} without it"


def _pointed(table: Columns, columns: Key, other: Columns, key: Key) -> bool:
    """Whether the cells of a column meet keys of a table as whole numbers, and not as they stand."""
    mine, keys = table.values.get(columns), other.values.get(key)
    if len(columns) > 1 or not mine or not keys or mine.inside(keys) >= CONTAINED * len(mine):
        return False
    return mine.spelled(whole).inside(keys) >= CONTAINED * len(mine)


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
                        doubtful.append((name, column, f"this looks like a key, but {why}; its cells are values"))
                    continue
                if not points(column, other):
                    continue
                mine = table.values[at,]
                inside = table.inside((at,), other, other.primary)
                pointed = _pointed(table, (at,), other, other.primary)
                if pointed or inside >= CONTAINED * len(mine):
                    table.foreign.append(Reference((at,), ((target, other.primary),), pointed))
                    if pointed:
                        doubtful.append((name, column, _spelling(target)))
                    break
                if not inside and _only_a_name(column, target, other.names[other.primary[0]]):
                    continue
                why = f"{len(mine) - inside} of its {len(mine)} values are no keys of {target!r}"
                doubtful.append((name, column, f"this looks like a key, but {why}; its cells are values (join= makes it one)"))
                keys = other.of(other.primary)
                if near := near_keys(mine.beyond(keys), keys, target):
                    doubtful.append((name, column, near))
    return doubtful


def _only_a_name(column: str, table: str, key: str) -> bool:
    """Whether a column is called like a table and not like a key of it: it may hold names."""
    mine, stem = plain(column), plain(table)
    return mine != plain(key) and mine in (stem, singular(stem))


def _no_key(column: str, mine: Values | SpilledValues, other: Columns) -> str:
    """Why a table that a column is called like has no key: cells that are missing or repeated."""
    for at in _called(other):
        key, keys = other.names[at], other.values.get((at,))
        if not keys or not called_like(column, key, other.table):
            continue
        if _only_a_name(column, other.table, key) and not mine.inside(keys):
            continue
        missing, repeated = other.missing.get((at,), 0), other.repeated.get((at,), 0)
        what = f"{repeated} of its cells repeat others" if repeated else f"{missing} of its cells are missing"
        return f"{other.table}.{key} is none: {what}"
    return ""


def _primary(table: Columns) -> Key | None:
    """The first column called like a key of the table whose cells are all there and different."""
    return next(((at,) for at in _called(table) if table.unique((at,))), None)


def _called(table: Columns) -> list[int]:
    """The columns called like a key of the table, the best first."""
    wanted = {"id", *key_names(table.table)}
    called = [at for at, name in enumerate(table.names) if plain(name) in wanted]
    # A column called as the table itself ("product" in products.csv) is a key only where there is
    # no better one.
    called.sort(key=lambda at: plain(table.names[at]) in (plain(table.table), singular(plain(table.table))))
    return called


def points(column: str, other: Columns) -> bool:
    """Whether a column is called like the key of another table, or like that table."""
    return called_like(column, "" if other.primary is None else other.names[other.primary[0]], other.table)

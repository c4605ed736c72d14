"""Keys between the tables of a folder: which column identifies the rows of a table, and which ones
point to rows of others.

- **Primary key**: the column that `primary=` names; else one called `id`, or like the file
  (`productID`, `product_id`, `product` in products.csv), whose cells are all there and all
  different.
- **Foreign key**: what `keys=` names; else a column called like the primary key of another table
  (`productID`), or like that table (`product_id` where its key is `id`), of whose different values
  at least half are keys there. The others dangle.
- **Join table**: two foreign keys to rows and no other column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from condgraph.engine.errors import OptionError, nearest

#: The part of a column's different values that have to be keys of the other table.
CONTAINED: Final = 0.5

_ENDINGS: Final = ("", "id", "key", "code", "no", "number", "uuid", "guid")


@dataclass(slots=True)
class Columns:
    """One table as far as keys are concerned: its columns, and what was found in those that may be
    keys.

    `values` are the different texts by column, for columns that may be keys; `missing` and
    `repeated` count cells that a primary key must not have.
    """

    table: str
    names: list[str]
    rows: int = 0
    values: dict[int, set[str]] = field(default_factory=dict)
    missing: dict[int, int] = field(default_factory=dict)
    repeated: dict[int, int] = field(default_factory=dict)
    primary: int | None = None
    #: Position of a foreign key to the table it points to.
    foreign: dict[int, str] = field(default_factory=dict)

    def add(self, at: int, cells: Iterable[str | None]) -> None:
        """Look at cells of a column that may be a key; None where one is missing."""
        known = self.values.setdefault(at, set())
        for cell in cells:
            if cell is None:
                self.missing[at] = self.missing.get(at, 0) + 1
            elif cell in known:
                self.repeated[at] = self.repeated.get(at, 0) + 1
            else:
                known.add(cell)

    def unique(self, at: int) -> bool:
        """Whether a column's cells are all there and all different."""
        return self.rows > 0 and at in self.values and not self.missing.get(at) and not self.repeated.get(at)

    @property
    def joins(self) -> bool:
        """Whether the table only joins two others."""
        return self.primary is None and len(self.names) == 2 == len(self.foreign)


def plain(name: str) -> str:
    """A name with letters and digits alone, in lower case: what `productID` and `product_id` share."""
    return re.sub(r"[\W_]+", "", name.casefold())


def singular(name: str) -> str:
    """The English singular of a plain name.

    >>> [singular(name) for name in ("products", "categories", "boxes", "addresses", "status")]
    ['product', 'category', 'box', 'address', 'status']
    """
    if name.endswith("ies") and len(name) > 4:
        return name[:-3] + "y"
    if re.search(r"(?:ss|x|ch|sh|z)es$", name):
        return name[:-2]
    if name.endswith("s") and not name.endswith(("ss", "us", "is")):
        return name[:-1]
    return name


def key_names(table: str) -> frozenset[str]:
    """What a key of a table may be called, as plain names, apart from `id`."""
    stems = {plain(table), singular(plain(table))}
    return frozenset(stem + ending for stem in stems for ending in _ENDINGS) | {"id" + stem for stem in stems}


def may_be_keys(tables: Mapping[str, Sequence[str]], named: Iterable[tuple[str, str]]) -> dict[str, set[int]]:
    """The columns of each table that have to be looked at, from all headers and the columns that
    options name.
    """
    names = {"id"}.union(*(key_names(table) for table in tables))
    found = {table: {at for at, name in enumerate(headers) if plain(name) in names} for table, headers in tables.items()}
    for table, column in named:
        found[table].add(tables[table].index(column))
    return found


def find_keys(
    tables: Mapping[str, Columns], primary: Mapping[str, str], keys: Mapping[tuple[str, str], tuple[str, str]]
) -> list[tuple[str, str, str]]:
    """Set `primary` and `foreign` of the tables; columns that look like foreign keys and are none,
    as (table, column, why).
    """
    for name, table in tables.items():
        given = primary.get(name)
        table.primary = table.names.index(given) if given is not None else _primary(table)
    for (source, column), (target, key) in keys.items():
        other = tables[target]
        at = other.names.index(key)
        if other.primary is None and other.unique(at):
            other.primary = at
        if other.primary != at:
            why = "which has another" if other.primary is not None else "whose cells are not all there and different"
            raise OptionError(f"keys= takes {target}.{key} for the primary key of {target!r}, {why}", hint="primary= names it")
        tables[source].foreign[tables[source].names.index(column)] = target
    doubtful = []
    for name, table in tables.items():
        for at, column in enumerate(table.names):
            if at == table.primary or at in table.foreign or not table.values.get(at):
                continue
            for target, other in tables.items():
                if target == name or other.primary is None or not _points(column, other):
                    continue
                mine = table.values[at]
                inside = len(mine & other.values[other.primary])
                if inside >= CONTAINED * len(mine):
                    table.foreign[at] = target
                    break
                if inside:
                    doubtful.append((name, column, f"{len(mine) - inside} of its {len(mine)} values are no keys of {target!r}"))
    return doubtful


def _primary(table: Columns) -> int | None:
    """The first column called like a key of the table whose cells are all there and different."""
    wanted = key_names(table.table)
    called = [at for at, name in enumerate(table.names) if plain(name) == "id" or plain(name) in wanted]
    # A column called as the table itself ("product" in products.csv) is a key only where there is
    # no better one.
    called.sort(key=lambda at: plain(table.names[at]) in (plain(table.table), singular(plain(table.table))))
    return next((at for at in called if table.unique(at)), None)


def _points(column: str, other: Columns) -> bool:
    key = plain(other.names[other.primary]) if other.primary is not None else ""
    return (key != "id" and plain(column) == key) or (plain(column) != "id" and plain(column) in key_names(other.table))


def keys_option(keys: Any, tables: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], tuple[str, str]]:
    """`keys=` checked: {"orders.shipVia": "shippers.shipperID"} as pairs of table and column.
    Raises `OptionError`.
    """
    if keys is None:
        return {}
    if not isinstance(keys, Mapping):
        raise OptionError("keys= is a mapping of columns to the keys they point to, as {'orders.shipVia': 'shippers.shipperID'}")
    return {_column(str(one), "keys", tables): _column(str(other), "keys", tables) for one, other in keys.items()}


def columns_option(columns: Any, option: str, tables: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """`primary=` or `name_columns=` checked: {"orders": "orderID"}. Raises `OptionError`."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise OptionError(f"{option}= is a mapping of tables to columns, as {{'orders': 'orderID'}}")
    return dict(_column(f"{table}.{column}", option, tables) for table, column in columns.items())


def _column(text: str, option: str, tables: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    # Names of tables and columns may hold points themselves.
    for at in (match.start() for match in re.finditer(r"\.", text)):
        if text[:at] in tables and text[at + 1 :] in tables[text[:at]]:
            return text[:at], text[at + 1 :]
    table, _, column = text.partition(".")
    if table not in tables:
        raise OptionError(f"{option}= names the table {table!r}, which is not there", candidates=nearest(table, tables))
    raise OptionError(
        f"{option}= names the column {column!r}, which {table!r} does not have",
        candidates=nearest(column, tables[table]),
        hint="columns are written as table.column",
    )

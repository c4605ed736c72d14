"""What people, files and databases say of tables: keys, names, types, joins, and which tables are
relations.

Options of a load say it, and a declaration file: `condgraph.toml` in a folder, or what
`declaration=` names. Options come first, then the file, then what the database says itself.

    guess = false                                   # nothing beside what stands here

    [tables.orders]
    key = "orderID"                                 # or ["order", "line"]
    name = "title"
    types = { zip = "text" }

    [tables.order-details]
    relation = "contains"                           # or true: called like the table

    [joins]
    "orders.shipVia" = "shippers.shipperID"         # or a list of several tables
    "parcels.(order, line)" = "lines.(order, line)"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from condgraph.engine.errors import CondgraphError, LoadError, OptionError, nearest
from condgraph.engine.toml import read_toml
from condgraph.loaders.base import Options
from condgraph.loaders.files import file_errors
from condgraph.loaders.table.column_types import DECLARED
from condgraph.loaders.table.rows import TABLE_OPTIONS

#: What a declaration file in a folder is called.
FILE: Final = "condgraph.toml"
#: Bytes that such a file may have.
MOST_BYTES: Final = 1 << 20

#: The headers of tables, by name.
Headers: TypeAlias = Mapping[str, Sequence[str]]

#: Options that every format of several tables takes.
JOIN_OPTIONS: Final[Mapping[str, str]] = {
    "join": "columns that refer to rows of other tables: {'orders.shipVia': 'shippers.shipperID'}, a list for several; False: none",
    "keys": "the same as join=",
    "primary": "columns that identify the rows of a table: {'orders': 'orderID'}, a list for several columns",
    "name_columns": "columns that name the rows: {'products': 'productName'}",
    "relations": "tables whose rows are relations with qualifiers: ['order-details'], or {'order-details': 'contains'}",
    "declaration": "the file that says all this (default: condgraph.toml in the folder); False: none",
    "types": "how columns are read: {'orders.zip': 'text'}; types are text, number, time and auto",
    "missing": "further texts that stand for a missing cell",
    "day_first": TABLE_OPTIONS["day_first"],
    "decimal": TABLE_OPTIONS["decimal"],
    "seasons": TABLE_OPTIONS["seasons"],
}
_TABLE_KEYS: Final = ("key", "name", "types", "relation", "type")
_TOP_KEYS: Final = ("guess", "tables", "joins")


@dataclass(frozen=True, slots=True)
class Join:
    """Columns of a table, and the tables and columns (none: the key) that they refer to.

    `of_source` says that the source itself declares it: databases keep foreign keys that lead to no
    key, and their cells are values, with a warning.
    """

    table: str
    columns: tuple[str, ...]
    targets: tuple[tuple[str, tuple[str, ...]], ...]
    of_source: bool = False

    def __str__(self) -> str:
        return f"the join of {self.table}.{' + '.join(self.columns)}"


@dataclass(slots=True)
class Declared:
    """What is said of tables. `guess` says whether names of columns are looked at beside that,
    `guess_joins` whether they are for keys and references.

    `keys` with no columns says that a table has none. `types` are by table and column; a `relation`
    is its predicate, True (called like the table) or False; `type_columns` hold predicates by row.
    """

    where: Path | None = None
    guess: bool = True
    guess_joins: bool = True
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    types: dict[str, dict[str, str]] = field(default_factory=dict)
    relations: dict[str, bool | str] = field(default_factory=dict)
    type_columns: dict[str, str] = field(default_factory=dict)
    joins: list[Join] = field(default_factory=list)
    #: Texts that stand for a missing cell, by table and column, in place of those of every table.
    missing: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    #: How cells of a table are read: `day_first` and `decimal`, as the options of a table have them.
    cells: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Tables whose keys their own source declares: a key that is none is no key, with a warning.
    of_source: frozenset[str] = frozenset()

    def wrong(self, message: str, *, candidates: Sequence[str] = (), hint: str | None = None) -> CondgraphError:
        """The error of something declared that cannot be: about the file, or the options."""
        if self.where is not None:
            return LoadError(message, file=str(self.where), candidates=candidates, hint=hint)
        return OptionError(message, candidates=candidates, hint=hint)

    def over(self, below: Declared) -> Declared:
        """This, and what is said below it of the tables and columns that this says nothing of."""
        mine = {(join.table, join.columns) for join in self.joins}
        return Declared(
            self.where or below.where,
            self.guess and below.guess,
            self.guess_joins and below.guess_joins,
            below.keys | self.keys,
            below.names | self.names,
            {table: below.types.get(table, {}) | self.types.get(table, {}) for table in (*below.types, *self.types)},
            below.relations | self.relations,
            below.type_columns | self.type_columns,
            [*self.joins, *(join for join in below.joins if (join.table, join.columns) not in mine)],
            below.missing | self.missing,
            below.cells | self.cells,
            below.of_source - self.keys.keys(),
        )


def of_options(options: Options, tables: Headers) -> Declared:
    """What the options say; raises `OptionError`."""
    said = Declared()
    said.keys = _columns_of(options.get("primary"), "primary", tables, said)
    said.names = {
        table: columns[0] for table, columns in _columns_of(options.get("name_columns"), "name_columns", tables, said).items()
    }
    relations = options.get("relations")
    if relations is not None:
        if isinstance(relations, str) or not isinstance(relations, (Mapping, Iterable)):
            raise OptionError("relations= is a list of tables, or a mapping of tables to names of relations")
        for table in relations:
            known_table(str(table), "relations=", tables, said)
        listed = dict(relations) if isinstance(relations, Mapping) else dict.fromkeys(relations, True)
        said.relations = {str(table): _relation(value, str(table), said) for table, value in listed.items()}
    types = options.get("types")
    if types is not None:
        if not isinstance(types, Mapping):
            raise OptionError("types= is a mapping of columns to types, as {'orders.zip': 'text'}")
        for text, kind in types.items():
            table, columns = column(str(text), "types=", tables, said)
            said.types.setdefault(table, {})[columns[0]] = _type(kind, str(text), said)
    for option in ("join", "keys"):
        joins = options.get(option)
        if joins is False:
            said.guess_joins = False
        if joins is None or joins is False:
            continue
        if not isinstance(joins, Mapping):
            raise OptionError(
                f"{option}= is a mapping of columns to the keys they point to, as {{'orders.shipVia': 'shippers.shipperID'}}"
            )
        said.joins += [_join(str(one), targets, f"{option}=", tables, said) for one, targets in joins.items()]
    return said


def of_file(path: Path, tables: Headers) -> Declared:
    """What a declaration file says; raises `LoadError`, with the file, for what it cannot say."""
    said = Declared(path)
    content = _content(path)
    _only(content, _TOP_KEYS, "the file", said)
    guess = content.get("guess", True)
    if not isinstance(guess, bool):
        raise said.wrong("guess is true or false")
    said.guess = said.guess_joins = guess
    for table, section in _section(content, "tables", said).items():
        known_table(table, "[tables]", tables, said)
        if not isinstance(section, dict):
            raise said.wrong(f"[tables.{table}] is no section")
        _only(section, _TABLE_KEYS, f"[tables.{table}]", said)
        if "key" in section:
            said.keys |= _columns_of({table: section["key"]}, "key", tables, said)
        if "name" in section:
            said.names[table] = _columns_of({table: section["name"]}, "name", tables, said)[table][0]
        if "relation" in section:
            said.relations[table] = _relation(section["relation"], table, said)
        if "type" in section:
            said.type_columns[table] = _columns_of({table: section["type"]}, "type", tables, said)[table][0]
        types = section.get("types", {})
        if not isinstance(types, dict):
            raise said.wrong(f"types of [tables.{table}] is a mapping of columns to types")
        for name, kind in types.items():
            column(f"{table}.{name}", "types", tables, said)
            said.types.setdefault(table, {})[name] = _type(kind, f"{table}.{name}", said)
    said.joins = [_join(one, targets, "[joins]", tables, said) for one, targets in _section(content, "joins", said).items()]
    return said


def _content(path: Path) -> dict[str, Any]:
    with file_errors(path), path.open("rb") as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise LoadError(f"a declaration has at most {MOST_BYTES >> 20} MiB", file=str(path))
    try:
        return read_toml(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except ValueError as error:
        raise LoadError(f"the declaration is no TOML ({error})", file=str(path)) from None


def _section(content: Mapping[str, Any], name: str, said: Declared) -> dict[str, Any]:
    found = content.get(name, {})
    if not isinstance(found, dict):
        raise said.wrong(f"[{name}] is no section")
    return found


def _only(content: Mapping[str, Any], known: Sequence[str], where: str, said: Declared) -> None:
    for key in content:
        if key not in known:
            raise said.wrong(f"{where} has no {key!r}", candidates=nearest(key, known), hint="it has: " + ", ".join(known))


def _relation(value: Any, table: str, said: Declared) -> bool | str:
    if isinstance(value, bool) or (isinstance(value, str) and value.strip()):
        return value
    raise said.wrong(f"the relation of {table!r} is true, false or its name, not {value!r}")


def _type(kind: Any, text: str, said: Declared) -> str:
    if not isinstance(kind, str) or kind not in DECLARED:
        raise said.wrong(
            f"there is no column type {kind!r} for {text}",
            candidates=nearest(str(kind), DECLARED),
            hint="types are: " + ", ".join(DECLARED),
        )
    return kind


def _columns_of(given: Any, option: str, tables: Headers, said: Declared) -> dict[str, tuple[str, ...]]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise said.wrong(f"{option}= is a mapping of tables to columns, as {{'orders': 'orderID'}}")
    found = {}
    for table, columns in given.items():
        listed = [columns] if isinstance(columns, str) else columns
        if (
            not isinstance(listed, (list, tuple))
            or not all(isinstance(one, str) for one in listed)
            or (not listed and option != "key")
        ):
            raise said.wrong(f"{option} of {table!r} is the name of a column, or a list of names")
        known_table(str(table), option, tables, said)
        found[str(table)] = tuple(_known(str(table), one, option, tables, said) for one in listed)
    return found


def known_table(table: str, option: str, tables: Headers, said: Declared) -> None:
    """Raise where a table that is named is not there."""
    if table not in tables:
        raise said.wrong(f"{option} names the table {table!r}, which is not there", candidates=nearest(table, tables))


def _known(table: str, column: str, option: str, tables: Headers, said: Declared) -> str:
    if column not in tables[table]:
        raise said.wrong(
            f"{option} names the column {column!r}, which {table!r} does not have",
            candidates=nearest(column, tables[table]),
            hint="columns are written as table.column",
        )
    return column


def _join(text: str, targets: Any, option: str, tables: Headers, said: Declared) -> Join:
    listed = [targets] if isinstance(targets, str) else targets
    if not isinstance(listed, (list, tuple)) or not listed or not all(isinstance(one, str) for one in listed):
        raise said.wrong(f"{option} joins {text} to a column, or to a list of columns of several tables")
    table, columns = column(text, option, tables, said)
    return Join(
        table,
        columns,
        tuple((one, ()) if one in tables else column(one, option, tables, said) for one in listed),
    )


_SEVERAL: Final[Callable[[str], Any]] = re.compile(r"(.+)\.\(([^()]*)\)", re.DOTALL).fullmatch


def column(text: str, option: str, tables: Headers, said: Declared) -> tuple[str, tuple[str, ...]]:
    """The table and the columns of `orders.shipVia` or `lines.(order, line)`; names of both may
    hold points themselves.
    """
    for at in (match.start() for match in re.finditer(r"\.", text[:10_000])):
        if text[:at] in tables and text[at + 1 :] in tables[text[:at]]:
            return text[:at], (text[at + 1 :],)
    several = _SEVERAL(text)
    if several:
        table = several[1]
        known_table(table, option, tables, said)
        return table, tuple(_known(table, one.strip(), option, tables, said) for one in several[2].split(","))
    table, _, name = text.partition(".")
    known_table(table, option, tables, said)
    return table, (_known(table, name, option, tables, said),)

"""Random sets of realistic tables: keys, references that dangle or are missing, repeated rows, columns of one name in
several tables, names that several rows share, numbers as `1,234`, `$5.10`, `12 %` and `7 kg`, dates in several forms,
cells in quotes, blanks around cells, marks of missing cells, byte order marks, CRLF, a comma at the end of each line.

The intended values are stored by column, so that DuckDB gets the same data without parsing these texts. A set is
written as a folder of CSV and Parquet files, as a workbook, or as an SQLite file.
"""

from __future__ import annotations

import csv
import datetime
import io
import random
import sqlite3
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal

Kind = Literal["number", "date", "text"]
Value = Decimal | datetime.date | str | None
Form = Literal["folder", "excel", "sqlite"]

NAMES: Final = (
    "Anna", "Bo Lee", "Chloé", "D'Arcy", "Eve, the first", "Færch", "Gus \"G\"", "Hana", "Ian", "Jo-Ann", "Ÿves", "zoe", "Zoe",
)  # fmt: skip
WORDS: Final = ("red", "Red", "blue", "deep blue", "green; dark", "très vert", "no", "x|y", "don't", 'the "big" one', "ÜBER", "a&b")
MISSING: Final = ("", "n/a", "-", " ", "NULL")
TABLES: Final = ("customers", "orders", "products", "shops", "visits", "parts", "staff")
#: The ways of writing numbers, each with its unit and number of decimals.
NUMBERS: Final = {
    "plain": ("", 0),
    "decimal": ("", 2),
    "thousands": ("", 0),
    "dollars": ("$", 2),
    "euros": ("€", 2),
    "percent": ("%", 1),
    "kilograms": ("kg", 1),
    "brackets": ("", 0),
    "continental": ("", 2),
    "spaces": ("", 0),
    "pounds": ("£", 0),
}
#: The ways of writing numbers without a sign.
_POSITIVE: Final = ("dollars", "euros", "kilograms", "pounds")
DATES: Final = ("iso", "long", "american", "european", "stamp", "short", "compact")
HEADERS: Final = {
    "number": ("amount", "size", "price", "weight", "score", "net value"),
    "date": ("date", "start", "changed on"),
    "text": ("colour", "group", "note", "type of thing"),
}
SQL_TYPES: Final = {"number": "DECIMAL(20, 4)", "date": "DATE", "text": "VARCHAR"}


@dataclass(slots=True)
class Column:
    """A column with its intended values, and the way of writing them."""

    name: str
    kind: Kind
    way: str
    cells: list[Value]
    #: The table that the cells refer to by its key.
    to: str | None = None

    @property
    def unit(self) -> str:
        """The unit of its numbers."""
        return NUMBERS[self.way][0] if self.kind == "number" else ""


@dataclass(slots=True)
class Table:
    """A table; `key` is the column that identifies its rows."""

    name: str
    columns: list[Column]
    key: str | None = None

    def column(self, name: str) -> Column:
        """Return a column by its name."""
        return next(column for column in self.columns if column.name == name)

    @property
    def rows(self) -> list[tuple[Value, ...]]:
        """The rows of intended values."""
        return list(zip(*(column.cells for column in self.columns), strict=True))


@dataclass(slots=True)
class Tables:
    """A set of tables, and the path where it was written."""

    tables: list[Table]
    path: Path = Path()
    options: dict[str, Any] = field(default_factory=dict)

    def table(self, name: str) -> Table:
        """Return a table by its name."""
        return next(table for table in self.tables if table.name == name)

    def duckdb(self) -> Any:
        """Return the same data in DuckDB, where `nr` numbers the rows of each table."""
        import duckdb

        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        for table in self.tables:
            columns = ", ".join(f'"{column.name}" {SQL_TYPES[column.kind]}' for column in table.columns)
            connection.execute(f'CREATE TABLE "{table.name}" (nr INTEGER, {columns})')
            marks = ", ".join("?" * (len(table.columns) + 1))
            connection.executemany(
                f'INSERT INTO "{table.name}" VALUES ({marks})', [(number, *row) for number, row in enumerate(table.rows, 1)]
            )
        return connection


def made(seed: int, folder: Path) -> Tables:
    """Return a random set of tables, written to a folder of its own."""
    dice = random.Random(seed)
    names = dice.sample(TABLES, dice.randint(2, 5))
    result = Tables([])
    for name in names:
        result.tables.append(_table(dice, name, result.tables))
    form: Form = dice.choice(("folder", "folder", "excel", "sqlite"))
    folder.mkdir(parents=True, exist_ok=True)
    if form == "folder":
        result.path = folder / "untidy"
        result.path.mkdir()
        for table in result.tables:
            _file(dice, table, result.path)
    elif form == "excel":
        result.path = folder / "untidy.xlsx"
        _workbook(dice, result)
    else:
        result.path = folder / "untidy.db"
        _sqlite(result)
    return result


def _table(some: random.Random, name: str, before: list[Table]) -> Table:
    rows = some.randint(8, 60)
    columns: list[Column] = []
    key = None
    if not before or some.random() < 0.7:
        key = f"{name[:-1] if name.endswith('s') else name}{some.choice(('ID', '_id', ' id'))}"
        texts = some.random() < 0.3
        numbers = some.sample(range(1, 900), rows)
        keys: list[Value] = [f"{name[0].upper()}-{n}" if texts else Decimal(n) for n in numbers]
        columns.append(Column(key, "text" if texts else "number", "plain", keys))
        if some.random() < 0.6:
            columns.append(Column("name", "text", "plain", [some.choice(NAMES) for _ in range(rows)]))
    for other in before:
        if other.key is not None and (len(before) == 1 or some.random() < 0.6):
            kind, keys = other.column(other.key).kind, other.column(other.key).cells
            dangling = "X-99999" if kind == "text" else Decimal(99999)
            cells: list[Value] = [
                None if some.random() < 0.1 else dangling if some.random() < 0.05 else some.choice(keys) for _ in range(rows)
            ]
            columns.append(Column(other.key, kind, "plain", cells, to=other.name))
    kinds: list[Kind] = [some.choice(("number", "number", "date", "text")) for _ in range(some.randint(1, 4))]
    for kind in kinds:
        header = some.choice(HEADERS[kind])
        if header not in [column.name for column in columns]:
            columns.append(_column(some, header, kind, rows))
    for at in range(rows):
        # A sheet cannot have a row without cells; and a single column of `$1,200` would be read as two.
        if all(column.cells[at] is None for column in columns):
            columns[-1].cells[at] = columns[-1].cells[0]
    if len(columns) == 1:
        columns.append(_column(some, "remark", "text", rows))
    if key is None and some.random() < 0.5:
        # Repeated rows count as two rows.
        for column in columns:
            column.cells += column.cells[: rows // 4]
    return Table(name, columns, key)


def _column(some: random.Random, name: str, kind: Kind, rows: int) -> Column:
    empty = some.choice((0, 0, 0.1, 0.35))
    few = some.random() < 0.4
    cells: list[Value] = []
    if kind == "number":
        way = some.choice(list(NUMBERS))
        digits = NUMBERS[way][1]
        most = {"thousands": 4_000_000, "spaces": 9_000_000, "brackets": 70_000, "percent": 1500, "plain": 40 if few else 3000}.get(
            way, 250_000
        )
        pool: list[Value] = [Decimal(some.randint(-most // 5, most)).scaleb(-digits) for _ in range(6 if few else 1000)]
        if way in _POSITIVE:
            pool = [abs(number) for number in pool if isinstance(number, Decimal)]
    elif kind == "date":
        way = some.choice(DATES)
        start = datetime.date(some.randint(1950, 2020), 1, 1)
        pool = [start + datetime.timedelta(some.randrange(1500)) for _ in range(8 if few else 500)]
        # Without a day after the 12th, nothing would show whether days or months come first.
        pool[0] = datetime.date(start.year, 5, 28)
    else:
        way = "plain"
        pool = list(WORDS[: some.randint(3, len(WORDS))])
    for at in range(rows):
        cells.append(None if at and some.random() < empty else pool[0] if not at else some.choice(pool))
    return Column(name, kind, way, cells)


# -- files ------------------------------------------------------------------------------------------


def written(column: Column, value: Value) -> str:
    """Return a cell as its column writes it."""
    if isinstance(value, Decimal):
        digits = NUMBERS[column.way][1]
        separated = column.way in ("thousands", "dollars", "euros", "brackets", "continental", "spaces", "pounds")
        number = f"{value:,.{digits}f}" if separated else f"{value:.{digits}f}"
        swapped = number.replace(",", " ").replace(".", ",").replace(" ", ".")
        return {
            "dollars": f"${number}",
            "euros": f"{number} €",
            "pounds": f"£{number}",
            "percent": f"{number}%",
            "kilograms": f"{number} kg",
            "brackets": f"({number[1:]})" if value < 0 else number,
            "continental": swapped,
            "spaces": number.replace(",", " "),
        }.get(column.way, number)
    if isinstance(value, datetime.date):
        return {
            "iso": value.isoformat(),
            "long": f"{value.day} {value:%B %Y}",
            "american": f"{value.month}/{value.day}/{value.year}",
            "european": f"{value:%d.%m.%Y}",
            "stamp": f"{value.isoformat()} 00:00:00",
            "short": f"{value:%d-%b-%Y}",
            "compact": f"{value:%b} {value.day}, {value.year}",
        }[column.way]
    return value or ""


def _file(some: random.Random, table: Table, folder: Path) -> None:
    if some.random() < 0.25:
        import pyarrow
        import pyarrow.parquet

        types = {"number": pyarrow.decimal128(20, 4), "date": pyarrow.date32(), "text": pyarrow.string()}
        columns = {column.name: pyarrow.array(column.cells, types[column.kind]) for column in table.columns}
        for column in table.columns:
            # Parquet has no units, so columns with units are texts there. Keys are integers.
            if column.unit:
                columns[column.name] = pyarrow.array([None if cell is None else written(column, cell) for cell in column.cells])
            elif column.kind == "number" and (column.name == table.key or column.to):
                columns[column.name] = columns[column.name].cast(pyarrow.int64())
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / f"{table.name}.parquet")
        return
    missing = some.choice(MISSING)
    ends, delimiter = some.choice(("\n", "\r\n")), some.choice(",,;\t")
    quoting = some.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    padded, trailing = some.random() < 0.3, some.random() < 0.2
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator=ends, quoting=quoting)
    writer.writerow([*(column.name for column in table.columns), *[""] * trailing])
    for row in table.rows:
        cells = [missing if cell is None else written(column, cell) for column, cell in zip(table.columns, row, strict=True)]
        writer.writerow([*(f" {cell} " if padded and some.random() < 0.5 else cell for cell in cells), *[""] * trailing])
    (folder / f"{table.name}.csv").write_bytes((b"\xef\xbb\xbf" if some.random() < 0.3 else b"") + stream.getvalue().encode())


def _workbook(some: random.Random, tables: Tables) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for table in tables.tables:
        sheet = book.create_sheet(table.name)
        sheet.append([column.name for column in table.columns])
        typed = [
            column.kind == "date" or (column.kind == "number" and not column.unit and some.random() < 0.7)
            for column in table.columns
        ]
        for row in table.rows:
            sheet.append(
                [
                    None
                    if cell is None
                    else (float(cell) if isinstance(cell, Decimal) else cell)
                    if is_typed
                    else written(column, cell)
                    for column, cell, is_typed in zip(table.columns, row, typed, strict=True)
                ]
            )
    book.save(tables.path)


def _sqlite(tables: Tables) -> None:
    database = sqlite3.connect(tables.path)
    for table in tables.tables:
        types = [{"number": "TEXT" if column.unit else "NUMERIC"}.get(column.kind, "TEXT") for column in table.columns]
        columns = [
            f'"{column.name}" {kind}' + " PRIMARY KEY" * (column.name == table.key)
            for column, kind in zip(table.columns, types, strict=True)
        ]
        columns += [
            f'FOREIGN KEY ("{column.name}") REFERENCES "{column.to}" ("{tables.table(column.to).key}")'
            for column in table.columns
            if column.to is not None
        ]
        database.execute(f'CREATE TABLE "{table.name}" ({", ".join(columns)})')
        for row in table.rows:
            cells = [None if cell is None else written(column, cell) for column, cell in zip(table.columns, row, strict=True)]
            cells = [
                float(cell) if isinstance(cell, Decimal) and not column.unit else text
                for column, cell, text in zip(table.columns, row, cells, strict=True)
            ]
            database.execute(f'INSERT INTO "{table.name}" VALUES ({", ".join("?" * len(cells))})', cells)
    database.commit()
    database.close()

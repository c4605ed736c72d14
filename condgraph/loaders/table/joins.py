"""Keys of tables and references to them, for tables that are loaded alone.

Which ids the rows have, which rows of the graph the columns refer to, and warnings about references to
missing rows; also the spelling of keys, and names of columns that hold them.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest
from itertools import chain, islice, pairwise, repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import different, slices
from condgraph.engine.errors import OptionError, numbered, shortened
from condgraph.engine.facts import Batch, EntityKind, Ids, Item, Numbers, Texts
from condgraph.engine.snapshot.container import bytes_of_texts, released
from condgraph.engine.snapshot.readback import KeptRows, without_sources
from condgraph.engine.snapshot.spill import I32, SpilledColumn, SpilledFiles, SpilledTable, binary
from condgraph.engine.values import NO_UNIT, collapse, text_of
from condgraph.loaders.base import Options, Read, Reading
from condgraph.loaders.table.fields import Fields

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- sets of texts -----------------------------------------------------------------------------------
# The keys of a table's rows and the cells that refer to them: in memory, or in files if memory is bounded.
#
# A key in a file takes twelve bytes of memory: a 64-bit hash, and its index in the file. The hash finds keys that
# may be equal, and the texts decide.


#: How many keys are collected before they are written to a file.
_MAX_IN_MEMORY: Final = 1 << 16
#: Up to so many keys stay in memory at the end.
_FEW: Final = 1 << 10
#: The most hashes that are sorted together.
_SORTED: Final = 1 << 22
_NUMBERS: Final = (("begins", np.int64), ("rows", np.int64))
#: How many keys a warning lists.
_MAX_KEYS: Final = 3
#: The most unmatched texts that are compared with nearly equal keys.
MAX_UNMATCHED: Final = 100_000


def seen_by(files: SpilledFiles | None) -> Seen | SpilledSeen:
    """Return a map of keys to rows, in memory, or in files for bounded memory."""
    return Seen() if files is None else SpilledSeen(files)


def values_by(files: SpilledFiles | None) -> Values | SpilledValues:
    """Return a set of a column's distinct texts, in memory, or in files for bounded memory."""
    return Values() if files is None else SpilledValues(files)


class Seen(dict[str, int]):
    """The row of each key, in memory."""

    def firsts(self, keys: Sequence[str], rows: Sequence[int]) -> list[int]:
        """Return the first row of each key; new keys are added with their row."""
        return list(map(self.setdefault, keys, rows))

    def rows(self, keys: Sequence[str]) -> list[int | None]:
        """Return the row of each key, or None."""
        return list(map(self.get, keys))

    def among(self, further: Iterable[str]) -> Collection[str]:
        """Return all keys and some more, to compare cells with."""
        return {*self, *further} if further else self


class Cells(dict[str, int]):
    """The distinct cells of a column with their first rows, in memory."""

    def add(self, cells: Sequence[str], rows: Sequence[int]) -> None:
        deque(map(self.setdefault, cells, rows), 0)

    def count(self) -> int:
        return len(self)

    def that_are(self, keys: Any) -> tuple[int, list[str]]:
        """Return how many cells are keys, and the first few by code point."""
        both = self.keys() & keys
        return len(both), sorted(both)[:_MAX_KEYS]

    def that_are_not(self, keys: Any) -> Iterator[tuple[str, int]]:
        """Return the cells that are not keys, with their first rows, in order."""
        return ((cell, row) for cell, row in self.items() if cell not in keys)


def _hashes(texts: Collection[str]) -> NDArray[np.int64]:
    return np.fromiter(map(hash, texts), np.int64, len(texts))


class SpilledSeen:
    """The row of each key, in files."""

    def __init__(self, files: SpilledFiles) -> None:
        self._files = files
        self._in_memory: dict[str, int] = {}
        #: Sorted hashes, and the indices of their keys.
        self._runs: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []
        self._read: tuple[NDArray[Any], ...] = ()

    @cached_property
    def _columns(self) -> tuple[SpilledColumn, ...]:
        """The texts, the start of each, and the rows."""
        name = self._files.fresh("keys")
        columns = [self._files.column(f"{name}-{part}", dtype) for part, dtype in (("texts", np.uint8), *_NUMBERS)]
        columns[1].add(np.zeros(1, np.int64))
        return tuple(columns)

    def __len__(self) -> int:
        return sum(len(places) for _, places in self._runs) + len(self._in_memory)

    def firsts(self, keys: Sequence[str], rows: Sequence[int]) -> list[int]:
        """Return the first row of each key; new keys are added with their row."""
        written, add = self._written(keys), self._in_memory.setdefault
        firsts = [written[at] if at in written else add(key, row) for at, (key, row) in enumerate(zip(keys, rows, strict=True))]
        if len(self._in_memory) >= _MAX_IN_MEMORY:
            self._write()
        return firsts

    def rows(self, keys: Sequence[str]) -> list[int | None]:
        """Return the row of each key, or None."""
        written, in_memory = self._written(keys), self._in_memory.get
        return [written[at] if at in written else in_memory(key) for at, key in enumerate(keys)]

    def end(self) -> None:
        """Write the keys to the files, unless they are few; call it when no more come soon."""
        if len(self._in_memory) > _FEW:
            self._write()

    def _written(self, keys: Sequence[str]) -> dict[int, int]:
        """Return the rows of keys that are in the files, by index in `keys`."""
        rows_found: dict[int, int] = {}
        if not self._runs:
            return rows_found
        hashes = _hashes(keys)
        # In sorted order, successive searches touch nearby memory.
        order = np.argsort(hashes)
        hashes = hashes[order]
        texts, begins, rows = self._read
        for known, places in self._runs:
            low = known.searchsorted(hashes)
            for at in np.flatnonzero(known.take(low, mode="clip") == hashes).tolist():
                key, place = keys[order[at]].encode("utf-8", "surrogatepass"), int(low[at])
                while place < len(known) and known[place] == hashes[at]:
                    text = places[place]
                    if texts[begins[text] : begins[text + 1]].tobytes() == key:
                        rows_found[int(order[at])] = int(rows[text])
                    place += 1
        for column in self._read:
            released(column)
        return rows_found

    def _write(self) -> None:
        data, sizes = bytes_of_texts(list(self._in_memory))
        hashes = _hashes(self._in_memory)
        order = np.argsort(hashes)
        texts, begins, rows = self._columns
        hashes, places = hashes[order], (rows.length + order).astype(I32)
        begins.add(texts.length + np.cumsum(sizes))
        texts.add(np.frombuffer(data, np.uint8))
        rows.add(np.fromiter(self._in_memory.values(), np.int64, len(self._in_memory)))
        self._in_memory = {}
        # Merge a run with earlier ones that are not longer, so that there are few runs.
        while self._runs and len(self._runs[-1][0]) <= len(hashes) < _SORTED:
            last_run = self._runs.pop()
            hashes, places = np.concatenate([last_run[0], hashes]), np.concatenate([last_run[1], places])
            order = np.argsort(hashes, kind="stable")
            hashes, places = hashes[order], places[order]
        self._runs.append((hashes, places))
        self._read = tuple(column.mapped() for column in self._columns)

    def __iter__(self) -> Iterator[str]:
        for part in slices(len(self) - len(self._in_memory)):
            texts, begins, _ = self._read
            ends = (begins[part.start : part.stop + 1] - begins[part.start]).tolist()
            data = texts[begins[part.start] : begins[part.stop]].tobytes()
            yield from (data[low:high].decode() for low, high in pairwise(ends))
            released(texts)
        yield from self._in_memory

    def among(self, further: Iterable[str]) -> SpilledAmong:
        """Return all keys and some more, to compare cells with."""
        return SpilledAmong(self._files, self, further)


class SpilledAmong:
    """All keys of a table, in a file for DuckDB."""

    def __init__(self, files: SpilledFiles, keys: Iterable[str], further: Iterable[str]) -> None:
        self._keys, self._further = keys, further
        self.table = files.table("keys")
        for part in parts(self):
            self.table.add({"key": _texts(part)})

    def __iter__(self) -> Iterator[str]:
        return chain(self._keys, self._further)


def parts(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield texts in lists of limited length."""
    remaining = iter(texts)
    while part := list(islice(remaining, _MAX_IN_MEMORY)):
        yield part


def _texts(texts: Sequence[str]) -> Any:
    return binary(*bytes_of_texts(list(texts)))


class SpilledCells:
    """The cells of a column and their rows, in a file."""

    def __init__(self, files: SpilledFiles) -> None:
        self._files, self._table = files, files.table(files.fresh("cells"))

    def add(self, cells: Sequence[str], rows: Sequence[int]) -> None:
        places = np.arange(self._table.rows, self._table.rows + len(cells))
        self._table.add({"cell": _texts(cells), "n": np.array(rows, np.int64), "place": places})

    def count(self) -> int:
        """Return the number of distinct cells."""
        return next((row["n"] for row in self._found("SELECT count(DISTINCT cell) AS n FROM $0")), 0)

    def that_are(self, keys: Any) -> tuple[int, list[str]]:
        """Return how many cells are keys, and the first few by code point."""
        query = "SELECT DISTINCT cell FROM $0 c SEMI JOIN $1 k ON c.cell = k.key ORDER BY cell"
        count, first = 0, []
        for row in self._found(query, keys.table):
            count += 1
            if count <= _MAX_KEYS:
                first.append(row["cell"].decode())
        return count, first

    def that_are_not(self, keys: Any) -> Iterator[tuple[str, int]]:
        """Yield the cells that are not keys, with their first rows, in order."""
        query = "SELECT cell, arg_min(n, place) AS n FROM $0 c ANTI JOIN $1 k ON c.cell = k.key GROUP BY cell ORDER BY min(place)"
        return ((row["cell"].decode(), row["n"]) for row in self._found(query, keys.table))

    def _found(self, query: str, *tables: SpilledTable) -> Iterator[dict[str, Any]]:
        if self._table.rows:
            for batch in self._files.rows(query, self._table, *tables):
                yield from batch.to_pylist()


class Values(set[str]):
    """The distinct texts of a column, in memory."""

    def take(self, texts: Iterable[str]) -> int:
        """Add texts; returns how many are new."""
        size_before = len(self)
        self.update(texts)
        return len(self) - size_before

    def end(self) -> None:
        """Do nothing; see `SpilledValues.end`."""

    def holds(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether it is contained."""
        return list(map(self.__contains__, texts))

    def holds_all(self, texts: Sequence[Any]) -> bool:
        return self.issuperset(texts)

    def inside(self, other: Any) -> int:
        """Return how many texts are also in another column."""
        return len(self & other)

    def beyond(self, other: Any) -> list[str]:
        """Return the first texts by code point that are not in another column, a limited number."""
        return nsmallest(MAX_UNMATCHED + 1, self - other)

    def spelled(self, how: Callable[[str], str]) -> Values:
        """Return the texts in another spelling."""
        return Values(map(how, self))


class SpilledValues:
    """The distinct texts of a column, in files."""

    def __init__(self, files: SpilledFiles) -> None:
        self._files, self._seen = files, SpilledSeen(files)
        #: Cached results of `inside`, by the other column and its size.
        self._inside: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen)

    def take(self, texts: Iterable[str]) -> int:
        """Add texts; returns how many are new."""
        size_before = len(self)
        for part in parts(texts):
            self._seen.firsts(part, range(len(part)))
        return len(self) - size_before

    def end(self) -> None:
        """Release memory; call it when no more texts come."""
        self._seen.end()

    def holds(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether it is contained."""
        return [row is not None for row in self._seen.rows(texts)]

    def holds_all(self, texts: Sequence[Any]) -> bool:
        return None not in texts and all(self.holds(texts))

    def inside(self, other: Any) -> int:
        """Return how many texts are also in another column."""
        key = id(other), len(other)
        if key not in self._inside:
            self._inside[key] = sum(sum(other.holds(part)) for part in parts(self))
        return self._inside[key]

    def beyond(self, other: Any) -> list[str]:
        """Return the first texts by code point that are not in another column, a limited number."""
        unmatched = (text for part in parts(self) for text, contained in zip(part, other.holds(part), strict=True) if not contained)
        return nsmallest(MAX_UNMATCHED + 1, unmatched)

    def spelled(self, how: Callable[[str], str]) -> SpilledValues:
        """Return the texts in another spelling."""
        result = SpilledValues(self._files)
        result.take(map(how, self))
        return result


# -- joins -------------------------------------------------------------------------------------------


#: The least share of a column's distinct values that must be keys of the other table.
CONTAINED: Final = 0.5
#: Plain names of columns that have the kind of a row's relation.
TYPE_NAMES: Final = frozenset(
    ("type", "kind", "relation", "relationship", "relationtype", "relationshiptype", "reltype", "predicate", "linktype", "edgetype")
)

_IRREGULAR: Final = {"people": "person", "children": "child", "women": "woman", "indices": "index", "matrices": "matrix"}
_POINTED: Final = re.compile(r"(0|-?[1-9][0-9]*)\.0+").fullmatch
_ENDINGS: Final = ("", "id", "key", "code", "no", "number", "uuid", "guid")


def joined(parts: Sequence[str | None]) -> str | None:
    r"""Return the key of a row as one text; None if a part is missing.

    >>> joined(["10", "2"]), joined(["a+b", "c"]), joined(["10", None])
    ('10+2', 'a\\+b+c', None)
    """
    if len(parts) == 1:
        return parts[0]
    if None in parts:
        return None
    return "+".join(str(part).replace("\\", "\\\\").replace("+", "\\+") for part in parts)


def whole(text: str) -> str:
    """Return a whole number without a decimal point, which programs write in columns with missing values.

    >>> [whole(text) for text in ("12.0", "-3.00", "1.5", "A.0", "012.0")]
    ['12', '-3', '1.5', 'A.0', '012.0']
    """
    match = _POINTED(text)
    return text if match is None else match[1]


def plain(name: str) -> str:
    """Return a name's letters and digits in lower case: `productID` and `product_id` become equal."""
    return re.sub(r"[\W_]+", "", name.casefold())


def singular(name: str) -> str:
    """Return the English singular of a plain name.

    >>> [singular(name) for name in ("products", "categories", "boxes", "addresses", "status", "people")]
    ['product', 'category', 'box', 'address', 'status', 'person']
    """
    for plural, item in _IRREGULAR.items():
        if name.endswith(plural):
            return name[: -len(plural)] + item
    if name.endswith("ies") and len(name) > 4:
        return name[:-3] + "y"
    if re.search(r"(?:ss|x|ch|sh|z)es$", name):
        return name[:-2]
    if name.endswith("s") and not name.endswith(("ss", "us", "is")):
        return name[:-1]
    return name


def key_names(table: str) -> frozenset[str]:
    """Return the plain names that a table's key may have, apart from `id`."""
    stems = {plain(table), singular(plain(table))}
    return frozenset(stem + ending for stem in stems for ending in _ENDINGS) | {"id" + stem for stem in stems}


def _folded(text: str) -> str:
    return text.lstrip("0") or "0" if text.isascii() and text.isdigit() else text.casefold()


def near_keys(unmatched: Iterable[str], keys: Iterable[str], table: str) -> str:
    """Return a message about values that differ from keys only in case or leading zeros, or "".

    Only the first of very many are compared.

    >>> near_keys(["s09", "7", "x"], ["S09", "007"], "stops")
    "2 values differ from keys of 'stops' only in case or leading zeros, and are not joined: 's09' ('S09') and '7' ('007')"
    """
    by_folded: dict[str, list[str]] = {}
    remaining = iter(unmatched)
    for text in islice(remaining, MAX_UNMATCHED):
        by_folded.setdefault(_folded(text), []).append(text)
    prefix = f"of the first {MAX_UNMATCHED:,} " if next(remaining, None) is not None else ""
    near: dict[str, str] = {}
    for key in keys if by_folded else ():
        folded = _folded(key)
        if folded in by_folded:
            near[folded] = min(key, near.get(folded, key))
    likeliest = {text: near[folded] for folded, texts in by_folded.items() if folded in near for text in texts}
    if not likeliest:
        return ""
    zeros = {text.isascii() and text.isdigit() for text in likeliest}
    difference = " or ".join(name for name, kind in (("case", False), ("leading zeros", True)) if kind in zeros)
    examples = " and ".join(f"{shortened(text, 60)!r} ({shortened(likeliest[text], 60)!r})" for text in list(likeliest)[:2])
    subject = "value differs from a key" if len(likeliest) == 1 else "values differ from keys"
    joined = "is not joined" if len(likeliest) == 1 else "are not joined"
    return f"{prefix}{len(likeliest):,} {subject} of {table!r} only in {difference}, and {joined}: {examples}"


def is_number(text: str) -> bool:
    """Whether a text is a number; digits after a leading zero are a code.

    >>> [is_number(text) for text in ("12", "-1.5", "0", "007", "S09")]
    [True, True, True, False, False]
    """
    return not (len(text) > 1 and text[0] == "0" and text[1] != ".") and text.replace(".", "", 1).replace("-", "", 1).isdigit()


#: How many rows, spread over a table, are examined to find its key column.
_LOOKED_AT: Final = 50
#: With more tables, columns are not compared with their keys.
_MAX_TABLES: Final = 100


def called_like(column: str, key: str, table: str) -> bool:
    """Whether a column has the name of a table's key, or of the table."""
    plain_column = plain(column)
    return plain_column != "id" and (plain_column == plain(key) or plain_column in key_names(table))


def called_alike(column: str, key: str, source: str) -> bool:
    """Whether a column has the name of a source's key or table; a column without letters has not."""
    return bool(plain(column)) and called_like(column, key, source.rpartition("/")[2])


class JoinTarget(NamedTuple):
    """The target of a column in `join=`: a source, and its key column ("" if not given)."""

    table: str
    key: str


def join_option(join: Any) -> dict[str, JoinTarget]:
    """Return `join=` of one table, checked, by column; raises `OptionError`."""
    if join is None or join is False:
        return {}
    if not isinstance(join, Mapping) or not all(isinstance(item, str) and isinstance(to, str) and to for item, to in join.items()):
        raise OptionError(
            "join= is a mapping of columns to tables, as {'country': 'countries.country'} or {'country': 'countries'}"
        )
    result = {}
    for column, target in join.items():
        table, _, key = target.rpartition(".")
        result[collapse(column)] = JoinTarget(table, collapse(key)) if table else JoinTarget(target, "")
    return result


class GraphTables:
    """The rows and entities of a graph that columns of the table `own` may refer to.

    The content of the sources `gone` is ignored.
    """

    def __init__(
        self,
        known: Callable[[], Snapshot | None] | None,
        own: str = "",
        gone: Collection[str] = (),
        files: SpilledFiles | None = None,
    ) -> None:
        self._known, self.own, self._replaced, self._files = known, own, gone, files
        self._called: dict[tuple[str, str], Seen | SpilledSeen] = {}

    def of(self, own: str) -> GraphTables:
        """Return the same for another table of the graph."""
        result = GraphTables(self._known, own, self._replaced, self._files)
        result.__dict__.update(snapshot=self.snapshot, _rest=self._rest, _tables=self._tables)
        return result

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The present graph; None if it is empty or cannot be read."""
        return None if self._known is None else self._known()

    @cached_property
    def _rest(self) -> KeptRows | None:
        """The rows that remain without the sources `gone`; None if all do."""
        snapshot = self.snapshot
        if snapshot is None or not self._replaced:
            return None
        numbers = range(len(snapshot.arrays.get("src.name")))
        gone = [number for number in numbers if snapshot.source_of(number).name in self._replaced]
        return without_sources(snapshot, gone) if gone else None

    @cached_property
    def _tables(self) -> list[tuple[str, Any]]:
        """The tables of the graph: the source, and the numbers of its rows."""
        snapshot = self.snapshot
        if snapshot is None:
            return []
        owner = snapshot.arrays.get("ent.source")
        if not len(owner):
            return []
        by_source: dict[int, list[Any]] = {}
        for part in slices(len(owner)):
            of = np.where(snapshot.entity_kind[part] == EntityKind.ROW, owner[part], -1)
            for source in np.unique(of[of >= 0]).tolist():
                by_source.setdefault(source, []).append((np.flatnonzero(of == source) + part.start).astype(np.int32))
        return [(snapshot.source_of(source).name, np.concatenate(by_source[source])) for source in sorted(by_source)]

    @cached_property
    def _sources(self) -> list[tuple[str, Any, frozenset[str] | None]]:
        """The remaining tables: source, numbers of rows, and possible key columns (None: rows without a key)."""
        snapshot = self.snapshot
        if snapshot is None:
            return []
        return [(name, rows, self._key_columns(snapshot, rows, name)) for name, rows in self._tables if name not in self._replaced]

    def _key_columns(self, snapshot: Snapshot, rows: Any, source: str) -> frozenset[str] | None:
        columns: set[str] | None = None
        raws = snapshot.arrays.get("att.raw")
        keyed = False
        for number in rows[np.unique(np.linspace(0, len(rows) - 1, _LOOKED_AT).astype(np.int64))].tolist():
            entity = snapshot.entity(number)
            if entity.name == f"{source} row {entity.row}":
                return None
            if entity.id.startswith(f"{source}+"):
                # An added row without a key.
                continue
            key = _key_of(entity.id, source)
            keyed = keyed or key != str(entity.row)
            matching = set()
            for statement in snapshot.outgoing(number, snapshot.relations, snapshot.statements).tolist():
                at = statement - snapshot.relations
                raw = int(raws[at]) if len(raws) else -1
                text = text_of(snapshot.value("att", at)) if raw < 0 else snapshot.texts[raw]  # type: ignore[arg-type]
                if collapse(text) == key:
                    matching.add(snapshot.predicate_name(snapshot.predicate_of(statement)))
            columns = matching if columns is None else columns & matching
        return frozenset(columns) if columns else frozenset() if keyed else None

    def tables(self, column: str) -> list[str]:
        """Return the other tables that a column is named after."""
        return [
            name
            for name, _, keys in self._sources
            if name != self.own and any(called_alike(column, key, name) for key in keys or ())
        ]

    def keyed(self) -> list[tuple[str, frozenset[str]]]:
        """Return the other tables with keys, and their possible key columns; empty if there are too many tables."""
        if len(self._tables) > _MAX_TABLES:
            return []
        return [(name, keys) for name, _, keys in self._sources if keys is not None and name != self.own]

    def inside(self, table: str, cells: Collection[str], least: float) -> int:
        """Return how many cells are keys of a table; 0 as soon as too many are not."""
        snapshot, prefix, result = self.snapshot, self.ident(table, ""), 0
        assert snapshot is not None
        for at, cell in enumerate(cells):
            number = snapshot.identified(prefix + cell)
            if number < 0 and not cell.startswith(prefix):
                # The row may have the id by which it was referred to earlier.
                number = snapshot.identified(cell)
            result += number >= 0 and snapshot.entity_kind[number] == EntityKind.ROW and self._row_of(snapshot, number) == table
            if at + 1 - result > (1 - least) * len(cells):
                return 0
        return result

    def _row_of(self, snapshot: Snapshot, number: int) -> str:
        owner = int(snapshot.arrays.get("ent.source")[number])
        return snapshot.source_of(owner).name if owner >= 0 else ""

    def called(self, table: str) -> str:
        """Return the source that `join=` names: with that name, or as the only such table of a folder."""
        keyed = [name for name, _, keys in self._sources if keys is not None]
        owners = [name for name in keyed if name.rpartition("/")[2] == table]
        return owners[0] if len(owners) == 1 and all(name != table for name, _, _ in self._sources) else table

    def rows(self, table: str) -> RowsByKey:
        """Return the rows of a table by key; empty if it does not exist or has no keys."""
        for name, numbers, keys in self._sources:
            if name == table and keys is not None:
                return RowsByKey(self.snapshot, name, numbers, self._files)
        return RowsByKey()

    def check(self, table: str, key: str, column: str) -> None:
        """Raise `OptionError` if a table exists but has no keys, or another key column than `key`."""
        for name, _, keys in self._sources:
            if name != table:
                continue
            if keys is None:
                raise OptionError(
                    f"join= says that {column!r} refers to rows of {table!r}, which was loaded without a key",
                    hint="load that table again with key= and replace=True",
                )
            if key and keys and key not in keys:
                raise OptionError(
                    f"join= says that {column!r} refers to {key!r} of {table!r}, whose key is {min(keys)!r}",
                    hint=f"join= with {table!r} alone refers to its key; load it with key= to choose another",
                )

    @cached_property
    def former(self) -> RowsByKey:
        """The existing rows of this table by key.

        All of them if the table is added to; those that others mention if it is replaced.
        """
        remaining = self._rest
        for name, numbers in self._tables:
            if name == self.own:
                kept_rows = numbers if remaining is None or name not in self._replaced else numbers[remaining.entities[numbers]]
                return RowsByKey(self.snapshot, name, kept_rows, self._files)
        return RowsByKey()

    def holds(self, ident: str) -> bool:
        """Whether an entity exists."""
        snapshot, remaining = self.snapshot, self._rest
        number = -1 if snapshot is None else snapshot.identified(ident)
        return number >= 0 and (remaining is None or bool(remaining.entities[number]))

    def wanted(self) -> Iterator[str]:
        """Yield the keys of this table's rows that other sources mention but no row has."""
        snapshot, remaining = self.snapshot, self._rest
        if snapshot is None:
            return iter(())
        prefix = f"{self.own}/"
        kinds, owner = snapshot.entity_kind, snapshot.arrays.get("ent.source")
        # Texts are sorted, so those with this prefix are contiguous.
        low, high = snapshot.texts.rank(prefix), snapshot.texts.rank(prefix[:-1] + "0")
        named = (snapshot.entity_id >= low) & (snapshot.entity_id < high) & (kinds == EntityKind.ENTITY)
        if len(owner):
            named &= owner < 0
        if remaining is not None:
            named &= remaining.entities
        numbers = np.flatnonzero(named)
        idents = (ident for part in slices(len(numbers)) for ident in snapshot.texts.take(snapshot.entity_id[numbers[part]]))
        keys = (ident[len(prefix) :] for ident in idents)
        return chain(self.former, keys) if self.own in self._replaced else keys

    def places(self, table: str, key: str, cells: Sequence[str]) -> list[str]:
        """Return the ids for rows of a table that may not exist yet.

        An id by which similarly named columns already refer to the row comes before the table's own id.
        """
        idents, referred = self.idents(table, cells), self.referred(key, table).rows(cells)
        return [
            cell if number is not None and not self.holds(ident) else ident
            for cell, ident, number in zip(cells, idents, referred, strict=True)
        ]

    def idents(self, table: str, cells: Sequence[str]) -> list[str]:
        """Return the ids that a table gives to the rows of some keys."""
        return list(map(self.ident(table, "").__add__, cells))

    def ident(self, table: str, cell: str) -> str:
        """Return the id that a table gives to the row of a key; tables of a folder omit the folder's name."""
        for name, numbers, _ in self._sources:
            stem = name.rpartition("/")[2]
            if name == table and stem != name and self.snapshot is not None:
                first = self.snapshot.entity(int(numbers[0])).id
                return f"{stem}/{cell}" if first.startswith(f"{stem}/") and not first.startswith(f"{name}/") else f"{name}/{cell}"
        return f"{table}/{cell}"

    def referred(self, key: str, table: str) -> Seen | SpilledSeen:
        """Return the entities that similarly named columns of other tables refer to, by id, except rows of these.

        Rows of this table may become these entities.
        """
        result = self._called.get((key, table))
        if result is None:
            result = self._called[key, table] = seen_by(self._files)
            numbers = self._referred(key, table)
            for part in slices(len(numbers)):
                assert self.snapshot is not None
                result.firsts(self.snapshot.texts.take(self.snapshot.entity_id[numbers[part]]), numbers[part].tolist())
        return result

    def _referred(self, key: str, table: str) -> Any:
        snapshot, remaining = self.snapshot, self._rest
        if snapshot is None:
            return ()
        names = [snapshot.predicate_name(number) for number in range(snapshot.predicate_count)]
        alike = tuple(name for name in names if called_alike(name, key, table))
        if not alike:
            return ()
        sources = [snapshot.source_of(number).name for number in range(len(snapshot.arrays.get("src.name")))]
        # References within the table itself do not count.
        own = sources.index(table) if table in sources else -1
        parts = [np.empty(0, np.int32)]
        if remaining is None:
            for low, high in snapshot.runs(alike, True, False):
                from_others = snapshot.source[low:high] != own
                parts.append(different(snapshot.relation_object[low:high][from_others]))
                places = snapshot.arrays.get("prov.stmt")
                first, last = np.searchsorted(places, [low, high])
                further_statements = places[first:last][snapshot.arrays.get("prov.src")[first:last] != own]
                parts.append(different(snapshot.relation_object[further_statements]))
        elif len(remaining.relations["p"]):
            texts, entities = np.flatnonzero(remaining.texts), np.flatnonzero(remaining.entities)
            predicates = [
                text for text in np.unique(remaining.relations["p"]).tolist() if snapshot.texts[int(texts[text])] in alike
            ]
            mask = np.isin(remaining.relations["p"], predicates) & (remaining.relations["src"] != own)
            further = remaining.places[0][remaining.places[1] != own]
            mask |= np.isin(remaining.relations["p"], predicates) & np.isin(remaining.relations["sid"], further)
            parts.append(entities[different(remaining.relations["o"][mask])])
        numbers = different(np.concatenate(parts))
        owner, kinds = snapshot.arrays.get("ent.source"), snapshot.entity_kind[numbers]
        usable = kinds == EntityKind.ENTITY
        if len(owner):
            free = np.array([self._free(source, table) for source in sources], bool)
            usable |= (kinds == EntityKind.ROW) & free[owner[numbers]]
        return numbers[usable]

    def _free(self, owner: str, table: str) -> bool:
        """Whether a row of one table may be a row of another: the tables are the same, or the first is replaced."""
        return owner == table or owner in self._replaced


def _key_of(ident: str, source: str) -> str:
    """Return the key in a row's id."""
    for prefix in (f"{source}/", f"{source.rpartition('/')[2]}/"):
        if ident.startswith(prefix):
            return ident[len(prefix) :]
    return ident


class RowsByKey:
    """Rows of a table by their keys; `numbers` are those of the rows (none by default)."""

    def __init__(
        self, snapshot: Snapshot | None = None, source: str = "", numbers: Any = (), files: SpilledFiles | None = None
    ) -> None:
        self._snapshot, self._seen = snapshot, seen_by(files)
        for part in slices(len(numbers)):
            assert snapshot is not None
            idents = snapshot.texts.take(snapshot.entity_id[numbers[part]])
            self._seen.firsts([_key_of(ident, source) for ident in idents], numbers[part].tolist())

    def __len__(self) -> int:
        return len(self._seen)

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen)

    def ids(self, keys: Sequence[str]) -> list[str | None]:
        """Return the ids of the rows with some keys; None for a key without a row."""
        if self._snapshot is None:
            return [None] * len(keys)
        numbers = self._seen.rows(keys)
        idents = iter(self._snapshot.texts.take(self._snapshot.entity_id[[at for at in numbers if at is not None]]))
        return [None if number is None else next(idents) for number in numbers]


#: How many cells of a column are compared with keys.
_FIRST: Final = 1000


class Keys:
    """The ids of the rows of a table during its load, by key."""

    def __init__(self, graph_tables: GraphTables, key: str, table: str, warn: Callable[..., None]) -> None:
        self._graph_tables, self._table, self._warn, self._key = graph_tables, table, warn, key
        self._former = graph_tables.former
        self._there = graph_tables.referred(key, table)

    def ids_of(self, keys: Sequence[str], rows: Sequence[int] | None = None) -> list[str]:
        """Return the ids of rows, or of references to them; existing ids are reused."""
        if not (self._former or self._there):
            return list(map(f"{self._table}/".__add__, keys))
        return list(map(self.resolve, self.perhaps(keys), repeat(None) if rows is None else rows))

    def perhaps(self, keys: Sequence[str]) -> Iterator[tuple[str, str | None, bool]]:
        """Yield for each key: the key, the existing id of its row, and whether an entity of that name is referred to."""
        if not (self._former or self._there):
            return ((key, None, False) for key in keys)
        former, referred = self._former.ids(keys), self._there.rows(keys)
        return ((key, ident, number is not None) for key, ident, number in zip(keys, former, referred, strict=True))

    def resolve(self, perhaps: tuple[str, str | None, bool], row: int | None = None) -> str:
        """Return the id of a row from an item of `perhaps`."""
        key, ident, is_referred = perhaps
        if ident is None:
            ident = f"{self._table}/{key}"
            if not is_referred:
                return ident
            if not self._graph_tables.holds(ident):
                return key
        if row is not None and ident != key and is_referred:
            self._warn(
                f"{ident!r} is referred to, and a column with a similar name has a separate entity {key!r} "
                "(join= for that column makes it this row)",
                row=row,
                field=self._key,
            )
        return ident


class Targets:
    """The entities that the cells of one reference column mean; `own` has the keys for its own table."""

    def __init__(
        self,
        graph_tables: GraphTables,
        column: str,
        to: JoinTarget | None,
        warn: Callable[..., None],
        files: SpilledFiles | None,
        own: Keys | None = None,
    ) -> None:
        self._warn, self._graph_tables, self._own = warn, graph_tables, own
        #: The cells of a column that refers to no table, or to its own.
        self._cells = Cells() if files is None else SpilledCells(files)
        self.column = column
        self.key = ""
        self.known = RowsByKey()
        self.table: str | None = None
        self._joined = to is not None
        if to is not None:
            self.table, self.key = to
            if own is None:
                self.table = graph_tables.called(to.table)
                graph_tables.check(self.table, to.key, column)
                self.known = graph_tables.rows(self.table)
        else:
            tables = graph_tables.tables(column)
            if len(tables) > 1:
                named = ", ".join(tables[:5])
                warn(
                    f"this may refer to rows of several tables ({named}); its cells become entities (join= selects a table)",
                    field=column,
                )
            elif tables:
                self.table = tables[0]
                self.known = graph_tables.rows(tables[0])
        #: Cells that are not keys of the other table, numbered.
        self._others = seen_by(files)
        #: The first spelling of cells of a column that refers to no table, and the cells spelled otherwise.
        self._by_folded: dict[str, str] = {}
        self._near: dict[str, str] = {}

    def ids(self, cells: Sequence[str], rows: Sequence[int]) -> Sequence[str]:
        """Return the ids that cells refer to; warns of missing ones."""
        if self.table is None or self._own is not None:
            self._cells.add(cells, rows)
            for cell in dict.fromkeys(cells) if self._own is None and len(self._by_folded) < MAX_UNMATCHED else ():
                spelled = self._by_folded.setdefault(cell.casefold(), cell)
                if spelled != cell:
                    self._near[cell] = spelled
            return cells if self._own is None else self._own.ids_of(cells)
        firsts: dict[str, int] = {}
        deque(map(firsts.setdefault, cells, rows), 0)
        idents = dict(zip(firsts, self.known.ids(list(firsts)), strict=True))
        unmatched = [cell for cell, ident in idents.items() if ident is None]
        idents.update(zip(unmatched, self._places(unmatched), strict=True))
        known_count = len(self._others)
        numbers = range(known_count, known_count + len(unmatched))
        for cell, number, first in zip(unmatched, numbers, self._others.firsts(unmatched, numbers), strict=True):
            # For a table that is not loaded yet, warn only once.
            if first == number and (self.known or number == 0):
                self._warn_missing(cell, firsts[cell], "" if self.known else ", which is not loaded yet")
        return [cast("str", idents[cell]) for cell in cells]

    def _places(self, cells: Sequence[str]) -> list[str]:
        if self._joined:
            return self._graph_tables.places(self.table or "", self.key, cells)
        idents = self._graph_tables.idents(self.table or "", cells)
        return [ident if self._graph_tables.holds(ident) else cell for cell, ident in zip(cells, idents, strict=True)]

    def _warn_missing(self, cell: str, row: int, more: str = "") -> None:
        self._warn(f"{cell!r} is not a key of {self.table!r}{more}", row=row, field=self.column)

    def finish(self, keys: Any) -> None:
        """Warn of cells that are not keys of the own table, and of cells that are keys without being references.

        The latter may mean something else (Singapore is the capital of Singapore, but a manager is an
        employee), so people must decide.
        """
        if self._near:
            pairs = list(self._near.items())[:2]
            examples = " and ".join(f"{shortened(cell, 60)!r} ({shortened(other, 60)!r})" for cell, other in pairs)
            count_text = numbered(len(self._near), "name differs from another", "names differ from others")
            self._warn(f"{count_text} only in case, and each spelling is a separate entity: {examples}", field=self.column)
        matches, first_matches = (0, []) if self.table is not None else self._cells.that_are(keys)
        if matches:
            named = ", ".join(repr(shortened(cell, 60)) for cell in first_matches)
            single = matches == 1
            self._warn(
                f"{matches:,} of the {self._cells.count():,} entities in this column "
                f"{'has the key of a row' if single else 'have the keys of rows'} of this table, but "
                f"{'is' if single else 'are'} separate from the rows: {named} "
                f"(join={{{self.column!r}: {self._graph_tables.own!r}}} makes the column refer to the rows)",
                field=self.column,
            )
        unmatched_texts: list[str] = []
        for cell, row in () if self._own is None else self._cells.that_are_not(keys):
            self._warn_missing(cell, row)
            if len(unmatched_texts) <= MAX_UNMATCHED:
                unmatched_texts.append(cell)
        unmatched, known_keys = (self._others, self.known) if self._own is None else (unmatched_texts, keys)
        near = near_keys(unmatched, known_keys, self.table or "") if known_keys else ""
        if near:
            self._warn(near, field=self.column)


def with_key_warnings(read: Read) -> Read:
    """Return a table loader that also warns of columns whose first cells are keys of other tables."""

    def read_and_warn(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
        graph_tables = GraphTables(reading.known, reading.source.name, reading.gone)
        join = options.get("join")
        checked = {collapse(str(options.get("key") or "")), *(map(collapse, join) if isinstance(join, Mapping) else ())}
        for item in read(source, reading, options):
            yield item
            if isinstance(item, Batch) and isinstance(item.predicates, str) and item.predicates not in checked:
                checked.add(item.predicates)
                if join is not False:
                    _warn_of_keys(item, item.predicates, graph_tables, reading)

    return read_and_warn


def _warn_of_keys(batch: Batch, column: str, graph_tables: GraphTables, reading: Reading) -> None:
    cells = _first_cells(batch) if graph_tables.snapshot is not None and graph_tables.keyed() else []
    if len(cells) < 2:
        return
    coded = not any(map(is_number, cells))
    for table, keys in graph_tables.keyed():
        named_so = any(called_alike(column, key, table) for key in keys)
        inside = graph_tables.inside(table, cells, CONTAINED if named_so else 1.0) if named_so or coded else 0
        if not inside:
            continue
        more = shortened(", ".join(cells[:3]), 60)
        first = "its" if len(batch) <= _FIRST else "its first"
        suffix = ", but name other entities" if isinstance(batch.objects, Ids) else ""
        reading.warn(
            f"{first} {len(cells):,} different values ({more}) are keys of {table!r}{suffix}: join={{{column!r}: {table!r}}} makes "
            "it refer to these rows"
            if inside == len(cells)
            else f"{inside:,} of {first} {len(cells):,} different values are keys of {table!r}{suffix}: join={{{column!r}: "
            f"{table!r}}} makes it refer to these rows",
            field=column,
        )
        return


def _first_cells(batch: Batch) -> list[str]:
    """Return the distinct texts of a column's first cells; empty if they cannot be keys."""
    objects, count = batch.objects, min(len(batch), _FIRST)
    if isinstance(objects, Numbers):
        if objects.unit != NO_UNIT or objects.numbers.dtype.kind != "i":
            return []
        texts = list(map(str, objects.numbers[:count].tolist()))
    elif isinstance(objects, Ids | Texts):
        texts_or_ids = objects.ids if isinstance(objects, Ids) else objects.texts
        texts = texts_or_ids.some(np.arange(count)) if isinstance(texts_or_ids, Fields) else list(texts_or_ids[:count])
    else:
        return []
    raws = batch.raws[:count] if isinstance(batch.raws, list) else [None] * count
    return list(dict.fromkeys(collapse(text if raw is None else raw) for text, raw in zip(texts, raws, strict=True)))

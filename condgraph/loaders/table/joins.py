"""Keys of tables and references to them: how they are written and what columns with them are called; which
ids the rows of a table that is loaded alone have, which rows of the graph its columns refer to, and
warnings about references to nothing.
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


# -- texts seen so far -------------------------------------------------------------------------------
# The keys of a table's rows and the cells that refer to them: in memory, or in files where a load is bounded.
#
# Of a key that is in a file, twelve bytes stay in memory: a hash of 64 bits, and the place in the file. The hash
# finds keys that may be equal, and their texts decide.


#: Keys that are held before they are written to a file.
_HELD: Final = 1 << 16
#: Keys that stay in memory where no more come.
_FEW: Final = 1 << 10
#: Hashes that are sorted together.
_SORTED: Final = 1 << 22
_NUMBERS: Final = (("begins", np.int64), ("rows", np.int64))
#: Of keys that cells name, and that nothing says they refer to, so many are told.
_TOLD: Final = 3
#: Texts that are no keys, of which so many are compared with keys that are nearly equal.
MOST_LOST: Final = 100_000


def seen_by(files: SpilledFiles | None) -> Seen | SpilledSeen:
    """The row of each key, in memory, or in the files of a bounded load."""
    return Seen() if files is None else SpilledSeen(files)


def values_by(files: SpilledFiles | None) -> Values | SpilledValues:
    """The different texts of a column, in memory, or in the files of a bounded load."""
    return Values() if files is None else SpilledValues(files)


class Seen(dict[str, int]):
    """The row of each key, in memory."""

    def firsts(self, keys: Sequence[str], rows: Sequence[int]) -> list[int]:
        """The first row of each key, which is its own where the key is new."""
        return list(map(self.setdefault, keys, rows))

    def rows(self, keys: Sequence[str]) -> list[int | None]:
        """The row of each key; None where there is none."""
        return list(map(self.get, keys))

    def among(self, further: Iterable[str]) -> Collection[str]:
        """All keys and some more, which cells are compared with."""
        return {*self, *further} if further else self


class Cells(dict[str, int]):
    """The different cells of a column, and the first row of each, in memory."""

    def add(self, cells: Sequence[str], rows: Sequence[int]) -> None:
        """Take cells."""
        deque(map(self.setdefault, cells, rows), 0)

    def count(self) -> int:
        """How many different ones there are."""
        return len(self)

    def that_are(self, keys: Any) -> tuple[int, list[str]]:
        """How many are keys, and the first of these by code point."""
        both = self.keys() & keys
        return len(both), sorted(both)[:_TOLD]

    def that_are_not(self, keys: Any) -> Iterator[tuple[str, int]]:
        """Those that are no keys, with the first row of each, in their order."""
        return ((cell, row) for cell, row in self.items() if cell not in keys)


def _hashes(texts: Collection[str]) -> NDArray[np.int64]:
    return np.fromiter(map(hash, texts), np.int64, len(texts))


class SpilledSeen:
    """The row of each key, in files."""

    def __init__(self, files: SpilledFiles) -> None:
        self._files = files
        self._held: dict[str, int] = {}
        #: Sorted hashes, and where their keys are.
        self._runs: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []
        self._read: tuple[NDArray[Any], ...] = ()

    @cached_property
    def _columns(self) -> tuple[SpilledColumn, ...]:
        """The texts, where each begins, and the rows."""
        name = self._files.fresh("keys")
        columns = [self._files.column(f"{name}-{part}", dtype) for part, dtype in (("texts", np.uint8), *_NUMBERS)]
        columns[1].add(np.zeros(1, np.int64))
        return tuple(columns)

    def __len__(self) -> int:
        return sum(len(places) for _, places in self._runs) + len(self._held)

    def firsts(self, keys: Sequence[str], rows: Sequence[int]) -> list[int]:
        """The first row of each key, which is its own where the key is new."""
        written, hold = self._written(keys), self._held.setdefault
        firsts = [written[at] if at in written else hold(key, row) for at, (key, row) in enumerate(zip(keys, rows, strict=True))]
        if len(self._held) >= _HELD:
            self._write()
        return firsts

    def rows(self, keys: Sequence[str]) -> list[int | None]:
        """The row of each key; None where there is none."""
        written, held = self._written(keys), self._held.get
        return [written[at] if at in written else held(key) for at, key in enumerate(keys)]

    def end(self) -> None:
        """Say that no more keys come soon: they are written to the files, but for few."""
        if len(self._held) > _FEW:
            self._write()

    def _written(self, keys: Sequence[str]) -> dict[int, int]:
        """The rows of those that are in the files, by their places among `keys`."""
        found: dict[int, int] = {}
        if not self._runs:
            return found
        hashes = _hashes(keys)
        # Those that are sought one after the other are close to each other.
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
                        found[int(order[at])] = int(rows[text])
                    place += 1
        for column in self._read:
            released(column)
        return found

    def _write(self) -> None:
        data, sizes = bytes_of_texts(list(self._held))
        hashes = _hashes(self._held)
        order = np.argsort(hashes)
        texts, begins, rows = self._columns
        hashes, places = hashes[order], (rows.length + order).astype(I32)
        begins.add(texts.length + np.cumsum(sizes))
        texts.add(np.frombuffer(data, np.uint8))
        rows.add(np.fromiter(self._held.values(), np.int64, len(self._held)))
        self._held = {}
        # A run joins those before it that are not longer, so that there are few.
        while self._runs and len(self._runs[-1][0]) <= len(hashes) < _SORTED:
            before = self._runs.pop()
            hashes, places = np.concatenate([before[0], hashes]), np.concatenate([before[1], places])
            order = np.argsort(hashes, kind="stable")
            hashes, places = hashes[order], places[order]
        self._runs.append((hashes, places))
        self._read = tuple(column.mapped() for column in self._columns)

    def __iter__(self) -> Iterator[str]:
        for part in slices(len(self) - len(self._held)):
            texts, begins, _ = self._read
            ends = (begins[part.start : part.stop + 1] - begins[part.start]).tolist()
            data = texts[begins[part.start] : begins[part.stop]].tobytes()
            yield from (data[low:high].decode() for low, high in pairwise(ends))
            released(texts)
        yield from self._held

    def among(self, further: Iterable[str]) -> SpilledAmong:
        """All keys and some more, which cells are compared with."""
        return SpilledAmong(self._files, self, further)


class SpilledAmong:
    """All keys of a table, in a file that DuckDB reads."""

    def __init__(self, files: SpilledFiles, keys: Iterable[str], further: Iterable[str]) -> None:
        self._keys, self._further = keys, further
        self.table = files.table("keys")
        for part in parts(self):
            self.table.add({"key": _texts(part)})

    def __iter__(self) -> Iterator[str]:
        return chain(self._keys, self._further)


def parts(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts as lists of some length."""
    rest = iter(texts)
    while part := list(islice(rest, _HELD)):
        yield part


def _texts(texts: Sequence[str]) -> Any:
    return binary(*bytes_of_texts(list(texts)))


class SpilledCells:
    """The cells of a column and their rows, in a file."""

    def __init__(self, files: SpilledFiles) -> None:
        self._files, self._table = files, files.table(files.fresh("cells"))

    def add(self, cells: Sequence[str], rows: Sequence[int]) -> None:
        """Take cells."""
        places = np.arange(self._table.rows, self._table.rows + len(cells))
        self._table.add({"cell": _texts(cells), "n": np.array(rows, np.int64), "place": places})

    def count(self) -> int:
        """How many different ones there are."""
        return next((row["n"] for row in self._found("SELECT count(DISTINCT cell) AS n FROM $0")), 0)

    def that_are(self, keys: Any) -> tuple[int, list[str]]:
        """How many are keys, and the first of these by code point."""
        query = "SELECT DISTINCT cell FROM $0 c SEMI JOIN $1 k ON c.cell = k.key ORDER BY cell"
        count, first = 0, []
        for row in self._found(query, keys.table):
            count += 1
            if count <= _TOLD:
                first.append(row["cell"].decode())
        return count, first

    def that_are_not(self, keys: Any) -> Iterator[tuple[str, int]]:
        """Those that are no keys, with the first row of each, in their order."""
        query = "SELECT cell, arg_min(n, place) AS n FROM $0 c ANTI JOIN $1 k ON c.cell = k.key GROUP BY cell ORDER BY min(place)"
        return ((row["cell"].decode(), row["n"]) for row in self._found(query, keys.table))

    def _found(self, query: str, *tables: SpilledTable) -> Iterator[dict[str, Any]]:
        if self._table.rows:
            for batch in self._files.rows(query, self._table, *tables):
                yield from batch.to_pylist()


class Values(set[str]):
    """The different texts of a column, in memory."""

    def take(self, texts: Iterable[str]) -> int:
        """Take texts; how many are new."""
        before = len(self)
        self.update(texts)
        return len(self) - before

    def end(self) -> None:
        """Say that no more texts come."""

    def holds(self, texts: Sequence[str]) -> list[bool]:
        """Which of some texts are here."""
        return list(map(self.__contains__, texts))

    def holds_all(self, texts: Sequence[Any]) -> bool:
        """Whether all of some texts are here."""
        return self.issuperset(texts)

    def inside(self, other: Any) -> int:
        """How many are in another column too."""
        return len(self & other)

    def beyond(self, other: Any) -> list[str]:
        """The first by code point of those that are not in another column, and no more than are looked at."""
        return nsmallest(MOST_LOST + 1, self - other)

    def spelled(self, how: Callable[[str], str]) -> Values:
        """The same in another spelling."""
        return Values(map(how, self))


class SpilledValues:
    """The different texts of a column, in files."""

    def __init__(self, files: SpilledFiles) -> None:
        self._files, self._seen = files, SpilledSeen(files)
        #: How many are in others, which have so many.
        self._inside: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen)

    def take(self, texts: Iterable[str]) -> int:
        """Take texts; how many are new."""
        before = len(self)
        for part in parts(texts):
            self._seen.firsts(part, range(len(part)))
        return len(self) - before

    def end(self) -> None:
        """Say that no more texts come."""
        self._seen.end()

    def holds(self, texts: Sequence[str]) -> list[bool]:
        """Which of some texts are here."""
        return [row is not None for row in self._seen.rows(texts)]

    def holds_all(self, texts: Sequence[Any]) -> bool:
        """Whether all of some texts are here."""
        return None not in texts and all(self.holds(texts))

    def inside(self, other: Any) -> int:
        """How many are in another column too."""
        key = id(other), len(other)
        if key not in self._inside:
            self._inside[key] = sum(sum(other.holds(part)) for part in parts(self))
        return self._inside[key]

    def beyond(self, other: Any) -> list[str]:
        """The first by code point of those that are not in another column, and no more than are looked at."""
        lost = (text for part in parts(self) for text, there in zip(part, other.holds(part), strict=True) if not there)
        return nsmallest(MOST_LOST + 1, lost)

    def spelled(self, how: Callable[[str], str]) -> SpilledValues:
        """The same in another spelling."""
        result = SpilledValues(self._files)
        result.take(map(how, self))
        return result


# -- joins -------------------------------------------------------------------------------------------


#: The part of a column's different values that have to be keys of the other table.
CONTAINED: Final = 0.5
#: What a column is called that says what kind of relation a row is, as plain names.
TYPE_NAMES: Final = frozenset(
    ("type", "kind", "relation", "relationship", "relationtype", "relationshiptype", "reltype", "predicate", "linktype", "edgetype")
)

_IRREGULAR: Final = {"people": "person", "children": "child", "women": "woman", "indices": "index", "matrices": "matrix"}
_POINTED: Final = re.compile(r"(0|-?[1-9][0-9]*)\.0+").fullmatch
_ENDINGS: Final = ("", "id", "key", "code", "no", "number", "uuid", "guid")


def joined(parts: Sequence[str | None]) -> str | None:
    """The key of a row as one text, None where a part is missing.

    >>> joined(["10", "2"]), joined(["a+b", "c"]), joined(["10", None])
    ('10+2', 'a\\\\+b+c', None)
    """
    if len(parts) == 1:
        return parts[0]
    if None in parts:
        return None
    return "+".join(str(part).replace("\\", "\\\\").replace("+", "\\+") for part in parts)


def whole(text: str) -> str:
    """A whole number without the point that programs write behind it, as in columns where some are
    missing.

    >>> [whole(text) for text in ("12.0", "-3.00", "1.5", "A.0", "012.0")]
    ['12', '-3', '1.5', 'A.0', '012.0']
    """
    match = _POINTED(text)
    return text if match is None else match[1]


def plain(name: str) -> str:
    """A name with letters and digits alone, in lower case: what `productID` and `product_id` share."""
    return re.sub(r"[\W_]+", "", name.casefold())


def singular(name: str) -> str:
    """The English singular of a plain name.

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
    """What a key of a table may be called, as plain names, apart from `id`."""
    stems = {plain(table), singular(plain(table))}
    return frozenset(stem + ending for stem in stems for ending in _ENDINGS) | {"id" + stem for stem in stems}


def _folded(text: str) -> str:
    return text.lstrip("0") or "0" if text.isascii() and text.isdigit() else text.casefold()


def near_keys(lost: Iterable[str], keys: Iterable[str], table: str) -> str:
    """What to say of values that are no keys of a table and would be but for case or leading zeros;
    "" where none would. The first of very many are looked at.

    >>> near_keys(["s09", "7", "x"], ["S09", "007"], "stops")
    "2 values would be keys of 'stops' but for case or leading zeros, and are not joined: 's09' ('S09') and '7' ('007')"
    """
    wanted: dict[str, list[str]] = {}
    rest = iter(lost)
    for text in islice(rest, MOST_LOST):
        wanted.setdefault(_folded(text), []).append(text)
    of = f"of the first {MOST_LOST:,} " if next(rest, None) is not None else ""
    near: dict[str, str] = {}
    for key in keys if wanted else ():
        folded = _folded(key)
        if folded in wanted:
            near[folded] = min(key, near.get(folded, key))
    likeliest = {text: near[folded] for folded, texts in wanted.items() if folded in near for text in texts}
    if not likeliest:
        return ""
    zeros = {text.isascii() and text.isdigit() for text in likeliest}
    what = " or ".join(name for name, kind in (("case", False), ("leading zeros", True)) if kind in zeros)
    some = " and ".join(f"{shortened(text, 60)!r} ({shortened(likeliest[text], 60)!r})" for text in list(likeliest)[:2])
    be = "value would be a key" if len(likeliest) == 1 else "values would be keys"
    joined = "is not joined" if len(likeliest) == 1 else "are not joined"
    return f"{of}{len(likeliest):,} {be} of {table!r} but for {what}, and {joined}: {some}"


def is_number(text: str) -> bool:
    """Whether a text is a number; digits after zeros are a code.

    >>> [is_number(text) for text in ("12", "-1.5", "0", "007", "S09")]
    [True, True, True, False, False]
    """
    return not (len(text) > 1 and text[0] == "0" and text[1] != ".") and text.replace(".", "", 1).replace("-", "", 1).isdigit()


#: Rows of a table that are looked at to find which column is its key: from the first to the last.
_LOOKED_AT: Final = 50
#: Of more tables it is not looked for keys that columns of another one have.
_MOST_TABLES: Final = 100


def called_like(column: str, key: str, table: str) -> bool:
    """Whether a column is called like the key of a table, or like that table."""
    mine = plain(column)
    return mine != "id" and (mine == plain(key) or mine in key_names(table))


def called_alike(column: str, key: str, source: str) -> bool:
    """The same of a table by the name of its source; a column without letters is called like nothing."""
    return bool(plain(column)) and called_like(column, key, source.rpartition("/")[2])


class JoinTarget(NamedTuple):
    """What `join=` says that a column refers to: a source, and the column that is its key (nothing
    where it is not said).
    """

    table: str
    key: str


def join_option(join: Any) -> dict[str, JoinTarget]:
    """`join=` of one table, checked, by column. Raises `OptionError`."""
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
    """What a graph has that columns of the table `own` may refer to: rows, and what was referred
    to; without what the sources `gone` say.
    """

    def __init__(
        self,
        known: Callable[[], Snapshot | None] | None,
        own: str = "",
        gone: Collection[str] = (),
        files: SpilledFiles | None = None,
    ) -> None:
        self._known, self.own, self._gone, self._files = known, own, gone, files
        self._called: dict[tuple[str, str], Seen | SpilledSeen] = {}

    def of(self, own: str) -> GraphTables:
        """The same for another table, in the same graph."""
        result = GraphTables(self._known, own, self._gone, self._files)
        result.__dict__.update(snapshot=self.snapshot, _rest=self._rest, _tables=self._tables)
        return result

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The graph as it is; None where it is empty, or cannot be asked."""
        return None if self._known is None else self._known()

    @cached_property
    def _rest(self) -> KeptRows | None:
        """What is left of the graph; None where that is all of it."""
        snapshot = self.snapshot
        if snapshot is None or not self._gone:
            return None
        numbers = range(len(snapshot.arrays.get("src.name")))
        gone = [number for number in numbers if snapshot.source_of(number).name in self._gone]
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
        found: dict[int, list[Any]] = {}
        for part in slices(len(owner)):
            of = np.where(snapshot.entity_kind[part] == EntityKind.ROW, owner[part], -1)
            for source in np.unique(of[of >= 0]).tolist():
                found.setdefault(source, []).append((np.flatnonzero(of == source) + part.start).astype(np.int32))
        return [(snapshot.source_of(source).name, np.concatenate(found[source])) for source in sorted(found)]

    @cached_property
    def _sources(self) -> list[tuple[str, Any, frozenset[str] | None]]:
        """The tables that are left: source, numbers of their rows, names of the columns that may be
        the key; None where the rows have no key.
        """
        snapshot = self.snapshot
        if snapshot is None:
            return []
        return [(name, rows, self._key_columns(snapshot, rows, name)) for name, rows in self._tables if name not in self._gone]

    def _key_columns(self, snapshot: Snapshot, rows: Any, source: str) -> frozenset[str] | None:
        columns: set[str] | None = None
        raws = snapshot.arrays.get("att.raw")
        keyed = False
        for number in rows[np.unique(np.linspace(0, len(rows) - 1, _LOOKED_AT).astype(np.int64))].tolist():
            entity = snapshot.entity(number)
            if entity.name == f"{source} row {entity.row}":
                return None
            if entity.id.startswith(f"{source}+"):
                # A row without a key that was added.
                continue
            key = _key_of(entity.id, source)
            keyed = keyed or key != str(entity.row)
            here = set()
            for statement in snapshot.outgoing(number, snapshot.relations, snapshot.statements).tolist():
                at = statement - snapshot.relations
                raw = int(raws[at]) if len(raws) else -1
                text = text_of(snapshot.value("att", at)) if raw < 0 else snapshot.texts[raw]  # type: ignore[arg-type]
                if collapse(text) == key:
                    here.add(snapshot.predicate_name(snapshot.predicate_of(statement)))
            columns = here if columns is None else columns & here
        return frozenset(columns) if columns else frozenset() if keyed else None

    def tables(self, column: str) -> list[str]:
        """The tables that a column is called like, but for its own."""
        return [
            name
            for name, _, keys in self._sources
            if name != self.own and any(called_alike(column, key, name) for key in keys or ())
        ]

    def keyed(self) -> list[tuple[str, frozenset[str]]]:
        """The tables whose rows have keys, but for its own, with the names of the columns that may be
        these; none of too many tables.
        """
        if len(self._tables) > _MOST_TABLES:
            return []
        return [(name, keys) for name, _, keys in self._sources if keys is not None and name != self.own]

    def inside(self, table: str, cells: Collection[str], least: float) -> int:
        """How many cells are keys of rows of a table; 0 where more than a part of them are none, which
        ends the search.
        """
        snapshot, prefix, result = self.snapshot, self.ident(table, ""), 0
        assert snapshot is not None
        for at, cell in enumerate(cells):
            number = snapshot.identified(prefix + cell)
            if number < 0 and not cell.startswith(prefix):
                # A row has the id by which it was referred to before.
                number = snapshot.identified(cell)
            result += number >= 0 and snapshot.entity_kind[number] == EntityKind.ROW and self._row_of(snapshot, number) == table
            if at + 1 - result > (1 - least) * len(cells):
                return 0
        return result

    def _row_of(self, snapshot: Snapshot, number: int) -> str:
        owner = int(snapshot.arrays.get("ent.source")[number])
        return snapshot.source_of(owner).name if owner >= 0 else ""

    def called(self, table: str) -> str:
        """The source that `join=` names: the one of that name, or the one table of a folder."""
        keyed = [name for name, _, keys in self._sources if keys is not None]
        owners = [name for name in keyed if name.rpartition("/")[2] == table]
        return owners[0] if len(owners) == 1 and all(name != table for name, _, _ in self._sources) else table

    def rows(self, table: str) -> RowsByKey:
        """The rows of a table by their keys; none where it is not there, or its rows have no key."""
        for name, numbers, keys in self._sources:
            if name == table and keys is not None:
                return RowsByKey(self.snapshot, name, numbers, self._files)
        return RowsByKey()

    def check(self, table: str, key: str, column: str) -> None:
        """Raise `OptionError` where a table is there, and its rows have no key or another one than
        `key` (nothing: any).
        """
        for name, _, keys in self._sources:
            if name != table:
                continue
            if keys is None:
                raise OptionError(
                    f"join= says that {column!r} refers to rows of {table!r}, which was loaded without a key",
                    hint="load that with key= (replace=True puts it in the place of what is there)",
                )
            if key and keys and key not in keys:
                raise OptionError(
                    f"join= says that {column!r} refers to {key!r} of {table!r}, whose key is {min(keys)!r}",
                    hint=f"join= with {table!r} alone refers to its key; key= of that says another one",
                )

    @cached_property
    def former(self) -> RowsByKey:
        """The rows that this table has already, by their keys: all of them where it is added to,
        those that others mention where it is replaced.
        """
        rest = self._rest
        for name, numbers in self._tables:
            if name == self.own:
                left = numbers if rest is None or name not in self._gone else numbers[rest.entities[numbers]]
                return RowsByKey(self.snapshot, name, left, self._files)
        return RowsByKey()

    def holds(self, ident: str) -> bool:
        """Whether an entity is there."""
        snapshot, rest = self.snapshot, self._rest
        number = -1 if snapshot is None else snapshot.identified(ident)
        return number >= 0 and (rest is None or bool(rest.entities[number]))

    def wanted(self) -> Iterator[str]:
        """The keys of rows of this table that other sources mention, and that no row has yet."""
        snapshot, rest = self.snapshot, self._rest
        if snapshot is None:
            return iter(())
        prefix = f"{self.own}/"
        kinds, owner = snapshot.entity_kind, snapshot.arrays.get("ent.source")
        # Texts that begin alike stand together.
        low, high = snapshot.texts.rank(prefix), snapshot.texts.rank(prefix[:-1] + "0")
        named = (snapshot.entity_id >= low) & (snapshot.entity_id < high) & (kinds == EntityKind.ENTITY)
        if len(owner):
            named &= owner < 0
        if rest is not None:
            named &= rest.entities
        numbers = np.flatnonzero(named)
        idents = (ident for part in slices(len(numbers)) for ident in snapshot.texts.take(snapshot.entity_id[numbers[part]]))
        keys = (ident[len(prefix) :] for ident in idents)
        return chain(self.former, keys) if self.own in self._gone else keys

    def places(self, table: str, key: str, cells: Sequence[str]) -> list[str]:
        """The ids of rows of a table that are not there yet: what columns that are called like its
        key refer to already, or what the table calls them.
        """
        idents, referred = self.idents(table, cells), self.referred(key, table).rows(cells)
        return [
            cell if number is not None and not self.holds(ident) else ident
            for cell, ident, number in zip(cells, idents, referred, strict=True)
        ]

    def idents(self, table: str, cells: Sequence[str]) -> list[str]:
        """The ids that a table gives the rows of some keys."""
        return list(map(self.ident(table, "").__add__, cells))

    def ident(self, table: str, cell: str) -> str:
        """The id that a table gives the row of a key: those of a folder go without its name."""
        for name, numbers, _ in self._sources:
            stem = name.rpartition("/")[2]
            if name == table and stem != name and self.snapshot is not None:
                first = self.snapshot.entity(int(numbers[0])).id
                return f"{stem}/{cell}" if first.startswith(f"{stem}/") and not first.startswith(f"{name}/") else f"{name}/{cell}"
        return f"{table}/{cell}"

    def referred(self, key: str, table: str) -> Seen | SpilledSeen:
        """The entities, by their ids, that are called alike and that columns of other tables refer to, but
        for rows of other tables: what rows of this table may be.
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
        snapshot, rest = self.snapshot, self._rest
        if snapshot is None:
            return ()
        names = [snapshot.predicate_name(number) for number in range(snapshot.predicate_count)]
        alike = tuple(name for name in names if called_alike(name, key, table))
        if not alike:
            return ()
        sources = [snapshot.source_of(number).name for number in range(len(snapshot.arrays.get("src.name")))]
        # A table does not refer to its own rows by a name.
        own = sources.index(table) if table in sources else -1
        found = [np.empty(0, np.int32)]
        if rest is None:
            for low, high in snapshot.runs(alike, True, False):
                others = snapshot.source[low:high] != own
                found.append(different(snapshot.relation_object[low:high][others]))
                places = snapshot.arrays.get("prov.stmt")
                first, last = np.searchsorted(places, [low, high])
                also = places[first:last][snapshot.arrays.get("prov.src")[first:last] != own]
                found.append(different(snapshot.relation_object[also]))
        elif len(rest.relations["p"]):
            texts, entities = np.flatnonzero(rest.texts), np.flatnonzero(rest.entities)
            predicates = [text for text in np.unique(rest.relations["p"]).tolist() if snapshot.texts[int(texts[text])] in alike]
            some = np.isin(rest.relations["p"], predicates) & (rest.relations["src"] != own)
            further = rest.places[0][rest.places[1] != own]
            some |= np.isin(rest.relations["p"], predicates) & np.isin(rest.relations["sid"], further)
            found.append(entities[different(rest.relations["o"][some])])
        numbers = different(np.concatenate(found))
        owner, kinds = snapshot.arrays.get("ent.source"), snapshot.entity_kind[numbers]
        fine = kinds == EntityKind.ENTITY
        if len(owner):
            free = np.array([self._free(source, table) for source in sources], bool)
            fine |= (kinds == EntityKind.ROW) & free[owner[numbers]]
        return numbers[fine]

    def _free(self, owner: str, table: str) -> bool:
        """Whether a row of one table may be a row of another: it is the same, or not there."""
        return owner == table or owner in self._gone


def _key_of(ident: str, source: str) -> str:
    """The key of a row, from its id."""
    for prefix in (f"{source}/", f"{source.rpartition('/')[2]}/"):
        if ident.startswith(prefix):
            return ident[len(prefix) :]
    return ident


class RowsByKey:
    """Rows of a table of the graph by their keys: the numbers of all rows, or of some; no rows are given: none."""

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
        """The ids of the rows that have some keys; None where none has."""
        if self._snapshot is None:
            return [None] * len(keys)
        numbers = self._seen.rows(keys)
        idents = iter(self._snapshot.texts.take(self._snapshot.entity_id[[at for at in numbers if at is not None]]))
        return [None if number is None else next(idents) for number in numbers]


#: Cells of a column that are looked at to see whether they are keys of a table.
_FIRST: Final = 1000


class Keys:
    """The ids of the rows of a table that is read, by their keys."""

    def __init__(self, graph_tables: GraphTables, key: str, table: str, warn: Callable[..., None]) -> None:
        self._graph_tables, self._table, self._warn, self._key = graph_tables, table, warn, key
        self._former = graph_tables.former
        self._there = graph_tables.referred(key, table)

    def ids_of(self, keys: Sequence[str], rows: Sequence[int] | None = None) -> list[str]:
        """The ids of rows, or of what refers to them: those that they have already, or by which they are referred to."""
        if not (self._former or self._there):
            return list(map(f"{self._table}/".__add__, keys))
        return list(map(self.settled, self.perhaps(keys), repeat(None) if rows is None else rows))

    def perhaps(self, keys: Sequence[str]) -> Iterator[tuple[str, str | None, bool]]:
        """Of each key the id that its row has already, and whether entities called so are referred to."""
        if not (self._former or self._there):
            return ((key, None, False) for key in keys)
        former, there = self._former.ids(keys), self._there.rows(keys)
        return ((key, ident, number is not None) for key, ident, number in zip(keys, former, there, strict=True))

    def settled(self, perhaps: tuple[str, str | None, bool], row: int | None = None) -> str:
        """The id of a row, of what `perhaps` gives."""
        key, ident, there = perhaps
        if ident is None:
            ident = f"{self._table}/{key}"
            if not there:
                return ident
            if not self._graph_tables.holds(ident):
                return key
        if row is not None and ident != key and there:
            self._warn(
                f"{ident!r} is referred to, and so is an entity {key!r} of its own, by a column that is called alike "
                "(join= for that says that it is this row)",
                row=row,
                field=self._key,
            )
        return ident


class Targets:
    """Which entities the cells of one column of references are; `own`: those of the table itself; `cells`: none so far."""

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
        #: Those of a column that refers to no table, or to its own.
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
                    f"this may refer to rows of several tables ({named}); its cells are entities named by them (join= says which)",
                    field=column,
                )
            elif tables:
                self.table = tables[0]
                self.known = graph_tables.rows(tables[0])
        #: Cells that are no keys of another table, numbered.
        self._others = seen_by(files)
        #: The first spelling of each of the first cells of a column that refers to no table, and the others.
        self._spelled: dict[str, str] = {}
        self._near: dict[str, str] = {}

    def ids(self, cells: Sequence[str], rows: Sequence[int]) -> Sequence[str]:
        """The ids of what cells refer to; says which are not there."""
        if self.table is None or self._own is not None:
            self._cells.add(cells, rows)
            for cell in dict.fromkeys(cells) if self._own is None and len(self._spelled) < MOST_LOST else ():
                spelled = self._spelled.setdefault(cell.casefold(), cell)
                if spelled != cell:
                    self._near[cell] = spelled
            return cells if self._own is None else self._own.ids_of(cells)
        firsts: dict[str, int] = {}
        deque(map(firsts.setdefault, cells, rows), 0)
        found = dict(zip(firsts, self.known.ids(list(firsts)), strict=True))
        others = [cell for cell, ident in found.items() if ident is None]
        found.update(zip(others, self._places(others), strict=True))
        before = len(self._others)
        numbers = range(before, before + len(others))
        for cell, number, first in zip(others, numbers, self._others.firsts(others, numbers), strict=True):
            # Said once of a table that may follow.
            if first == number and (self.known or number == 0):
                self._warn_missing(cell, firsts[cell], "" if self.known else ", which is not loaded yet")
        return [cast("str", found[cell]) for cell in cells]

    def _places(self, cells: Sequence[str]) -> list[str]:
        if self._joined:
            return self._graph_tables.places(self.table or "", self.key, cells)
        idents = self._graph_tables.idents(self.table or "", cells)
        return [ident if self._graph_tables.holds(ident) else cell for cell, ident in zip(cells, idents, strict=True)]

    def _warn_missing(self, cell: str, row: int, more: str = "") -> None:
        self._warn(f"{cell!r} is no key of {self.table!r}{more}", row=row, field=self.column)

    def finish(self, keys: Any) -> None:
        """Say which cells that refer to rows of the table itself are no keys of it, and which are keys
        of it although nothing says that they refer to them (Singapore is the capital of Singapore,
        and a manager is an employee: only people know which of the two it is).
        """
        if self._near:
            pairs = list(self._near.items())[:2]
            such = " and ".join(f"{shortened(cell, 60)!r} ({shortened(other, 60)!r})" for cell, other in pairs)
            what = numbered(len(self._near), "name differs from another", "names differ from others")
            self._warn(f"{what} in case alone, and each spelling is an entity of its own: {such}", field=self.column)
        both, some = (0, []) if self.table is not None else self._cells.that_are(keys)
        if both:
            named = ", ".join(repr(shortened(cell, 60)) for cell in some)
            item = both == 1
            self._warn(
                f"{both:,} of the {self._cells.count():,} entities named here {'has' if item else 'have'} the key of a row of "
                f"this table, and {'is' if item else 'are'} not that row: such as {named} "
                f"(join={{{self.column!r}: {self._graph_tables.own!r}}} makes the column refer to the rows)",
                field=self.column,
            )
        lost: list[str] = []
        for cell, row in () if self._own is None else self._cells.that_are_not(keys):
            self._warn_missing(cell, row)
            if len(lost) <= MOST_LOST:
                lost.append(cell)
        none, there = (self._others, self.known) if self._own is None else (lost, keys)
        near = near_keys(none, there, self.table or "") if there else ""
        if near:
            self._warn(near, field=self.column)


def with_key_warnings(read: Read) -> Read:
    """The same loader of a single table, which warns of columns whose cells are keys of tables of the
    graph, and which refer to none: the first cells of each decide.
    """

    def read_and_warn(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
        graph_tables = GraphTables(reading.known, reading.source.name, reading.gone)
        join = options.get("join")
        seen = {collapse(str(options.get("key") or "")), *(map(collapse, join) if isinstance(join, Mapping) else ())}
        for item in read(source, reading, options):
            yield item
            if isinstance(item, Batch) and isinstance(item.predicates, str) and item.predicates not in seen:
                seen.add(item.predicates)
                if join is not False:
                    _warn_of_keys(item, item.predicates, graph_tables, reading)

    return read_and_warn


def _warn_of_keys(batch: Batch, column: str, graph_tables: GraphTables, reading: Reading) -> None:
    cells = _first_cells(batch) if graph_tables.snapshot is not None and graph_tables.keyed() else []
    if len(cells) < 2:
        return
    coded = not any(map(is_number, cells))
    for table, keys in graph_tables.keyed():
        called = any(called_alike(column, key, table) for key in keys)
        inside = graph_tables.inside(table, cells, CONTAINED if called else 1.0) if called or coded else 0
        if not inside:
            continue
        some = shortened(", ".join(cells[:3]), 60)
        first = "its" if len(batch) <= _FIRST else "its first"
        others = ", and the entities that it names are others" if isinstance(batch.objects, Ids) else ""
        reading.warn(
            f"{first} {len(cells):,} different values ({some}) are keys of {table!r}{others}: join={{{column!r}: {table!r}}} makes "
            "it refer to these rows"
            if inside == len(cells)
            else f"{inside:,} of {first} {len(cells):,} different values are keys of {table!r}{others}: join={{{column!r}: "
            f"{table!r}}} makes it refer to these rows",
            field=column,
        )
        return


def _first_cells(batch: Batch) -> list[str]:
    """The different texts of the first cells of a column that may be keys; none of one with other values."""
    objects, most = batch.objects, min(len(batch), _FIRST)
    if isinstance(objects, Numbers):
        if objects.unit != NO_UNIT or objects.numbers.dtype.kind != "i":
            return []
        texts = list(map(str, objects.numbers[:most].tolist()))
    elif isinstance(objects, Ids | Texts):
        listed = objects.ids if isinstance(objects, Ids) else objects.texts
        texts = listed.some(np.arange(most)) if isinstance(listed, Fields) else list(listed[:most])
    else:
        return []
    raws = batch.raws[:most] if isinstance(batch.raws, list) else [None] * most
    return list(dict.fromkeys(collapse(text if raw is None else raw) for text, raw in zip(texts, raws, strict=True)))

"""Loads in bounded memory: items are spilled to files next to the graph, sorted there by DuckDB, and laid out in
parts. The result is the same columns as from `engine.snapshot.layout` in memory.

A `SpillingBuilder` accepts items like any builder. Whenever it reaches its limit it writes a run: the statements,
with numbers of texts and entities that are local to the run, and these texts. `lay_out` then sorts the texts of all
runs, which gives each text its number in the graph, and with these numbers the entities, statements and qualifiers.

Memory contains at most one run, DuckDB's share, and some numbers for each entity (about 25 bytes), membership, and
source of a predicate.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import changed, different, in_order, slices
from condgraph.engine.errors import LoadError, OptionError, StoreError
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, Entity, EntityKind, Item, Many, Rows
from condgraph.engine.snapshot.build import DECLARED, Builder, Declared, fewer_collections, gather, joined, lay_declared
from condgraph.engine.snapshot.cells import PARTS, sortable
from condgraph.engine.snapshot.container import SPARE, buckets_of, bytes_of_texts, checksums, released
from condgraph.engine.snapshot.directory import SPILL
from condgraph.engine.snapshot.layout import (
    ATTRIBUTE,
    QUALIFIER,
    RELATION,
    closed_members,
    counts_of,
    distinct_qualifiers,
    renumber_cells,
    renumbered,
    validity,
)
from condgraph.engine.snapshot.layout import lay_out as lay_out_in_memory
from condgraph.engine.snapshot.readback import items
from condgraph.engine.snapshot.spill import (
    I32,
    IDLE_MEMORY,
    Counts,
    Groups,
    NewRows,
    Offsets,
    Part,
    SpilledColumn,
    SpilledFiles,
    SpilledTable,
    binary,
    joined_parts,
    whole,
)

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


#: The smallest bound in bytes: Python, NumPy, Arrow and DuckDB alone take half of it.
MIN_MEMORY: Final = 512 << 20
#: The number of items between two checks of the run's size.
_ITEMS: Final = 1 << 13
_UNITS: Final = {"": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4} | {
    "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}  # fmt: skip
_SIZE: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([kmgt]i?b|)", re.IGNORECASE | re.ASCII)
#: The roles of a text in a run.
_TEXT, _ENTITY, _NAME = 0, 1, 2
_OF_SOURCES: Final = ("name", "location", "format", "content", "terms")
#: The sort key of the qualifiers of a statement.
_QUALIFIED: Final = ("key", "kind", "value", "b", "unit", "ref", "precision")


def memory_bound(memory: int | str) -> int:
    """Return a memory bound in bytes, given a number of bytes or a text such as "2 GiB". Raises `OptionError` if it
    is invalid or below 512 MiB.
    """
    size = None
    if isinstance(memory, int) and not isinstance(memory, bool):
        size = memory
    elif isinstance(memory, str) and (match := _SIZE.fullmatch(memory.strip())):
        size = int(float(match[1]) * _UNITS[match[2].lower()])
    if size is None:
        raise OptionError(f"memory= is a size such as '2 GiB' or '800 MB', or a number of bytes, not {memory!r}")
    if size < MIN_MEMORY:
        raise OptionError(f"memory= is {MIN_MEMORY >> 20} MiB or more, not {memory!r}", hint="a load without memory= has no bound")
    return size


class SpillingBuilder(Builder):
    """A builder that uses at most `memory` bytes and spills to files in a folder."""

    def __init__(self, folder: Path, memory: int, run: int | None = None) -> None:
        super().__init__()
        self.files = SpilledFiles(folder, memory)
        #: The maximum size of a run in memory, in bytes. Laying it out takes about as much again.
        self._most = run or (memory - IDLE_MEMORY) // 4
        self.runs: list[dict[str, Any]] = []
        self.text_table, self.naming_table = self.files.table("texts"), self.files.table("namings")
        #: The bytes of the batches in this run; the numbers of texts and entities already measured, and their characters.
        self._batches, self._measured, self._characters = 0, [0, 0], 0
        self._first_statement = 0
        #: The names given to entities in this run, in order, and the number of names in earlier runs.
        self._namings: list[tuple[str, str]] = []
        self.named_before = self.warned_from = 0
        #: The graph that the load adds to.
        self._before: Snapshot | None = None

    def seed(self, snapshot: Snapshot) -> None:
        """Begin with the content of a snapshot."""
        self._before = snapshot
        self.add(items(snapshot))
        self.spill()
        self.declared = {}
        self.warned_from = self.named_before

    # -- adding items ------------------------------------------------------------------------------

    def add(self, items: Iterable[Item]) -> None:
        """Add all items of a loader, and spill runs in between."""
        iterator = iter(items)
        with fewer_collections():
            for first in iterator:
                self._add(chain((first,), islice(iterator, _ITEMS - 1)))
                self._spill_if_large()

    def _add_columns(self, items: Many) -> None:
        lists: tuple[list[Any], ...] = (self.relations, self.attributes, self.qualifiers, self.many_members)
        before = [len(chunks) for chunks in lists]
        super()._add_columns(items)
        for chunks, old_length in zip(lists, before, strict=True):
            self._batches += sum(_size(chunk) for chunk in chunks[old_length:])
        self._spill_if_large()

    def _declare_rows(self, rows: Rows) -> None:
        # Rows that are new in this run may be known from an earlier one.
        for entity in rows.entities():
            self._declare(entity)

    def _declare(self, entity: Entity) -> None:
        warnings = len(self.warnings)
        super()._declare(entity)
        # The first name is only known at the end.
        del self.warnings[warnings:]
        if entity.name != entity.id:
            self._namings.append((entity.id, entity.name))

    def _size(self) -> int:
        """Return the approximate size of this run in bytes."""
        for position, index in enumerate((self.texts, self.entities)):
            new = len(index) - self._measured[position]
            self._characters += sum(map(len, islice(reversed(index), new)))
            self._measured[position] += new
        declared = sum(map(len, self.declared.values()))
        numbered_items = len(self.texts) + len(self.entities)
        single_links = len(self.members) + len(self.subclasses) + len(self.provenance)
        other_bytes = 300 * declared + 150 * len(self._namings) + 160 * single_links + 500 * len(self._pending)
        spelled = sum(len(data) for _, data, _ in self.spelled)
        return 180 * numbered_items + self._characters + other_bytes + self._batches + spelled

    def _spill_if_large(self) -> None:
        if self._before is not None:
            self._before.arrays.release()
        if self._size() >= self._most:
            self.spill()

    # -- runs --------------------------------------------------------------------------------------

    def spill(self) -> None:
        """Write the current content as a run, and clear it."""
        self._flush()
        texts = len(self.texts) + self.spelled_texts
        if not (texts or self.entities):
            return
        number = len(self.runs)
        names: defaultdict[str, int] = defaultdict(count().__next__)
        declared = [
            (entity, source, -1 if name is None else names[name], kind, row)
            for source, entities in self.declared.items()
            for entity, (name, kind, row) in entities.items()
        ]
        members = [np.array(self.members, np.int64).reshape(-1, 4), *self.many_members]
        parts: Part = {
            "declared": np.array(declared, I32).reshape(-1, 5),
            "mem": np.concatenate(members),
            "sub": np.array(self.subclasses, np.int64).reshape(-1, 4),
            "more": np.array(self.provenance, np.int64).reshape(-1, 4),
        }
        for family, chunks, columns in (
            ("rel", self.relations, RELATION),
            ("att", self.attributes, ATTRIBUTE),
            ("qual", self.qualifiers, QUALIFIER),
        ):
            parts |= {f"{family}.{name}": column for name, column in gather(chunks, columns).items()}
            chunks.clear()
        self.files.save(number, parts)
        self._write_texts(number, names)
        if self._namings:
            order = np.arange(self.named_before, self.named_before + len(self._namings))
            ids, names_of_ids = (binary(*bytes_of_texts([naming[side] for naming in self._namings])) for side in (0, 1))
            self.naming_table.add({"id": ids, "name": names_of_ids, "seq": order})
            self.named_before += len(self._namings)
        self.runs.append(
            {"sizes": (texts, len(self.entities), len(names)), "first": self._first_statement,
             "statements": self.statements - self._first_statement}
        )  # fmt: skip
        self._first_statement = self.statements
        self._clear()

    def _clear(self) -> None:
        self.texts, self.entities = defaultdict(count().__next__), defaultdict(count().__next__)
        self.spelled, self.spelled_texts = [], 0
        self.members, self.many_members, self.subclasses, self.provenance = [], [], [], []
        self.names, self._namings = {}, []
        # The sources with declarations are needed at the end.
        self.declared = {source: {} for source in self.declared}
        self._numbered = self._named = ((), np.empty(0, I32))
        self._batches, self._measured, self._characters = 0, [0, 0], 0

    def _write_texts(self, run: int, names: Mapping[str, int]) -> None:
        parts = [
            (role, np.fromiter(index.values(), I32, len(index)), binary(*bytes_of_texts(list(index))))
            for role, index in ((_TEXT, self.texts), (_ENTITY, self.entities), (_NAME, names))
        ]
        for begin, data, sizes in self.spelled:
            parts.append((_TEXT, np.arange(begin, begin + len(sizes), dtype=I32), binary(data, sizes)))
        for role, numbers, texts in parts:
            if len(numbers):
                constants = {"what": np.full(len(numbers), role, np.int8), "run": np.full(len(numbers), run, I32)}
                self.text_table.add({"text": texts, "local": numbers, **constants})

    def lay_out(self) -> tuple[Mapping[str, NDArray[Any]], dict[str, int]]:
        """Return the columns of a snapshot, in files, and its counts."""
        # Texts that describe the sources are in the last run.
        self.described = {part: [self.texts[getattr(source, part)] for source in self.sources] for part in _OF_SOURCES}
        self.spill()
        if not self.runs:
            return lay_out_in_memory(self)
        return _Layout(self).columns()


def _size(chunk: Any) -> int:
    return chunk.nbytes if isinstance(chunk, np.ndarray) else sum(column.nbytes for column in chunk.values())


# -- a load in a folder ----------------------------------------------------------------------------


@contextmanager
def spilled(directory: Path, memory: int) -> Iterator[SpillingBuilder]:
    """Yield a builder that spills into the directory of a graph, which the caller has locked. The files are removed
    afterwards.

    Raises `StoreError` if the disk is full, and `LoadError` if the memory bound is too small.
    """
    hint = "free some space, and load again"
    builder = None
    try:
        builder = SpillingBuilder(directory / SPILL, memory)
        yield builder
    except OSError as error:
        if error.filename is not None and not str(error.filename).startswith(str(directory)):
            raise
        raise StoreError(f"{directory} cannot be written: {error.strerror or _first_line(error)}", hint=hint) from error
    except Exception as error:
        if not type(error).__module__.endswith("duckdb"):
            raise
        if type(error).__name__ == "OutOfMemoryException" and "directory" not in str(error):
            raise LoadError(f"memory= is too small for this load: {_first_line(error)}", hint="raise it") from error
        raise StoreError(f"{directory} cannot be written: {_first_line(error)}", hint=hint) from error
    finally:
        if builder is not None:
            builder.files.close()


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]


# -- laying out ------------------------------------------------------------------------------------


class _Layout:
    """Lays out the runs of a builder as the columns of a graph."""

    def __init__(self, builder: SpillingBuilder) -> None:
        self.builder, self.files, self.runs = builder, builder.files, builder.runs
        self.out: dict[str, Any] = {}
        #: For each entity, in the order of ids: the text of its id, and its number in the graph.
        self.ids = self.number = np.empty(0, I32)

    def columns(self) -> tuple[Mapping[str, NDArray[Any]], dict[str, int]]:
        """Return the columns, mapped from files if they are long, and the counts."""
        self._texts("")
        dropped = self._declarations()
        if len(dropped) and (unused := self._unused_texts(dropped)):
            # Texts of dropped names that nothing else uses are excluded from the pool.
            self._texts("WHERE text NOT IN (FROM $1)", unused)
            self._declarations()
        self._entities()
        self._predicates()
        self._sources()
        tables = self._renumbered()
        self._statements(tables)
        self._lay_provenance()
        self._adjacency()
        self._qualifiers()
        self._links(tables)
        self._by_source()
        return self._ordered()

    def _column(self, name: str, dtype: Any = I32) -> SpilledColumn:
        column = self.out[name] = self.files.column(name, dtype)
        return column

    def _get(self, name: str) -> NDArray[Any]:
        column = self.out[name]
        return column.mapped() if isinstance(column, SpilledColumn) else column

    # -- texts

    def _texts(self, condition: str, *further: SpilledTable) -> None:
        """Number the texts of all runs by code point, and write the pool. For each run, the numbers of its texts are
        written to a separate file.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        sizes = np.array([run["sizes"] for run in self.runs], np.int64)
        begins = np.concatenate([np.zeros((len(sizes), 1), np.int64), np.cumsum(sizes, axis=1)[:, :2]], axis=1)
        for number in range(len(self.runs)):
            self._map_file(number).unlink(missing_ok=True)
        data, offsets, ids = self._column("pool.bytes", np.uint8), self.files.column("offsets", np.int64), self.files.column("ids")
        hashes = self.files.column("hashes", np.uint32)
        offsets.add(np.zeros(1, np.int64))
        texts, size, last, fresh_entity = 0, 0, None, NewRows()
        query = f"SELECT text, what, run, local FROM $0 {condition} ORDER BY text"
        for batch in self.files.rows(query, self.builder.text_table, *further):
            text = batch.column(0).cast(pa.large_binary())
            is_new = np.ones(len(text), bool)
            is_new[1:] = pc.not_equal(text.slice(1), text.slice(0, len(text) - 1)).to_numpy(zero_copy_only=False)
            is_new[0] = last is None or text[0].as_py() != last
            last = text[len(text) - 1].as_py()
            new_texts = text.filter(pa.array(is_new))
            if len(new_texts):
                lengths = pc.binary_length(new_texts).to_numpy().astype(np.int64)
                begin = np.frombuffer(new_texts.buffers()[1], np.int64)[new_texts.offset]
                characters = (
                    np.frombuffer(new_texts.buffers()[2], np.uint8, int(lengths.sum()), int(begin)) if lengths.any() else None
                )
                padded = np.concatenate([np.empty(0, np.uint8) if characters is None else characters, np.zeros(SPARE, np.uint8)])
                ends = np.cumsum(lengths)
                hashes.add(checksums(padded, ends - lengths, lengths))
                data.add(padded[:-SPARE])
                offsets.add(ends + size)
                size += int(ends[-1])
            numbers = (texts - 1 + np.cumsum(is_new)).astype(I32)
            texts += int(is_new.sum())
            role, run, local = (batch.column(at).to_numpy().astype(np.int64) for at in (1, 2, 3))
            entities = numbers[role == _ENTITY]
            if len(entities):
                ids.add(entities[fresh_entity(entities)])
            pairs = np.stack([local + begins[run, role], numbers], axis=1).astype(I32)
            order = in_order([run])
            cuts = np.flatnonzero(changed(run[order])).tolist()
            for low, high in zip(cuts, [*cuts[1:], len(order)], strict=True):
                with self._map_file(int(run[order[low]])).open("ab") as file:
                    file.write(pairs[order[low:high]].data)
        if texts >= 2**31 - 1:
            raise LoadError(f"a graph holds fewer than {2**31 - 1:,} texts, and this one has {texts:,}")
        self.text_count, self.ids = texts, np.array(ids.mapped())
        if size < 2**31:
            offsets_32 = self._column("pool.offsets")
            for part in slices(offsets.length):
                offsets_32.add(offsets.mapped()[part])
        else:
            self.out["pool.offsets"] = offsets
        self._buckets(hashes)

    def _buckets(self, hashes: SpilledColumn) -> None:
        table, mask = self.files.table("slots"), buckets_of(self.text_count) - 1
        counts = np.zeros(mask + 2, np.int64)
        hash_values = hashes.mapped()
        for part in slices(len(hash_values)):
            slots = (hash_values[part] & np.uint32(mask)).astype(np.int64)
            np.add.at(counts, slots + 1, 1)
            table.add({"slot": slots.astype(np.uint32), "n": np.arange(part.start, part.stop, dtype=I32)})
        self.out["pool.buckets"] = np.cumsum(counts).astype(I32)
        items = self._column("pool.items")
        for rows in self.files.parts("SELECT n FROM $0 ORDER BY slot, n", table):
            items.add(rows["n"])

    def _map_file(self, run: int) -> Path:
        return self.files.folder / f"map-{run}.column"

    def _map(self, run: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the numbers of the texts, entities (by id) and names of a run."""
        texts, entities, names = self.runs[run]["sizes"]
        number = np.full(texts + entities + names, -1, I32)
        pairs = np.fromfile(self._map_file(run), I32).reshape(-1, 2) if self._map_file(run).exists() else np.empty((0, 2), I32)
        number[pairs[:, 0]] = pairs[:, 1]
        return (
            number[:texts],
            np.searchsorted(self.ids, number[texts : texts + entities]).astype(I32),
            number[texts + entities :],
        )

    # -- entities

    def _declarations(self) -> NDArray[Any]:
        """Merge the declarations of all runs, and determine the name, kind and row of each entity. Returns the texts
        of names that a source gave an entity after another name.
        """
        table = self.files.table("declared")
        for run in range(len(self.runs)):
            _, entity, name = self._map(run)
            with self.files.run(run) as parts:
                declared = parts["declared"]
            if len(declared):
                name_texts = np.where(declared[:, 2] >= 0, name[declared[:, 2]], -1) if len(name) else declared[:, 2]
                columns = {part: declared[:, column] for column, part in enumerate(DECLARED)}
                order = np.full(len(declared), run, I32)
                table.add(columns | {"e": entity[declared[:, 0]], "name": name_texts.astype(I32), "run": order})
        size = len(self.ids)
        self.names, self.kinds = self.ids.copy(), np.zeros(size, np.int8)
        self.said = [self.files.column(f"said-{part}") for part in DECLARED]
        self.row_table = self.files.table("rows")
        self.named = 0
        dropped = []
        query = "SELECT e, src, name, kind, row, run FROM $0 ORDER BY e, src, run"
        for part in whole(self.files.parts(query, table), "e"):
            rows = Declared(*(part[name] for name in DECLARED))
            merged = joined([rows])
            if len(merged.e) < len(rows.e):
                first_names = merged.name[np.cumsum(changed(rows.e, rows.src)) - 1]
                dropped.append(different(rows.name[(rows.name >= 0) & (rows.name != first_names)]))
            for column, values in zip(self.said, merged, strict=True):
                column.add(values)
            entities, positions = merged.firsts(merged.name)
            self.names[entities] = merged.name[positions]
            self.named += len(entities)
            for kind in (EntityKind.ROW, EntityKind.CONCEPT):
                self.kinds[merged.e[merged.kind == kind]] = kind
            positions, row_positions = merged.firsts(merged.row)
            if len(positions):
                self.row_table.add({"e": positions, "src": merged.src[row_positions], "row": merged.row[row_positions]})
        return different(joined_parts(dropped, I32))

    def _unused_texts(self, dropped: NDArray[Any]) -> SpilledTable | None:
        """Return the texts of dropped names that nothing else in the graph uses."""
        names = self.said[DECLARED.index("name")].mapped()
        for part in slices(len(names)):
            dropped = dropped[~np.isin(dropped, names[part])]
        data, offsets = self.out["pool.bytes"].mapped(), self._get("pool.offsets")
        texts = [bytes(data[offsets[at] : offsets[at + 1]]) for at in dropped.tolist()]
        candidates, unused = self.files.table("dropped"), self.files.table("unused")
        if not texts:
            return None
        candidates.add({"text": texts})
        query = f"SELECT DISTINCT text FROM $0 WHERE text NOT IN (SELECT text FROM $1 WHERE what <> {_NAME})"
        for batch in self.files.rows(query, candidates, self.builder.text_table):
            unused.add({"text": batch.column(0)})
        return unused if unused.rows else None

    def _entities(self) -> None:
        """Number the entities by name and id, and write their columns."""
        for run in range(len(self.runs)):
            _, entity, _ = self._map(run)
            with self.files.run(run) as parts:
                for table, end in (("mem", 1), ("sub", 0), ("sub", 1)):
                    self.kinds[entity[parts[table][:, end]]] = EntityKind.CONCEPT
        self._warn_of_names()
        size = len(self.ids)
        self.number = np.empty(size, I32)
        by_name = self.files.table("entities")
        for part in slices(size):
            by_name.add({"name": self.names[part], "e": np.arange(part.start, part.stop, dtype=I32)})
        types = {"ent.id": I32, "ent.name": I32, "ent.kind": np.int8}
        ident, name, kind = (self._column(part, dtype) for part, dtype in types.items())
        begin = 0
        for rows in self.files.parts("SELECT e FROM $0 ORDER BY name, e", by_name):
            order = rows["e"]
            self.number[order] = np.arange(begin, begin + len(order), dtype=I32)
            begin += len(order)
            ident.add(self.ids[order])
            name.add(self.names[order])
            kind.add(self.kinds[order])
        del self.names, self.kinds
        self.out["ent.by_id"] = self.number
        self.out["ent.source"] = self.out["ent.row"] = np.empty(0, I32)
        key, row_entity = self._column("row.key", np.int64), self._column("row.entity")
        if self.row_table.rows:
            source, row = np.full(size, -1, I32), np.zeros(size, I32)
            keys = self.files.table("keys")
            for rows in self.files.parts("SELECT * FROM $0", self.row_table):
                number = self.number[rows["e"]]
                source[number], row[number] = rows["src"], rows["row"]
                keys.add({"src": rows["src"], "row": rows["row"], "e": number})
            self.out["ent.source"], self.out["ent.row"] = source, row
            for rows in self.files.parts("SELECT * FROM $0 ORDER BY src, row, e", keys):
                key.add(rows["src"].astype(np.int64) << 32 | rows["row"].astype(np.int64))
                row_entity.add(rows["e"])

    def _warn_of_names(self) -> None:
        builder, table = self.builder, self.builder.naming_table
        if table.rows == self.named:
            return
        query = (
            "WITH firsts AS (SELECT id, arg_min(name, seq) AS first FROM $0 GROUP BY id) "
            "SELECT n.id AS id, f.first AS first, n.name AS name FROM $0 n JOIN firsts f USING (id) "
            f"WHERE n.name <> f.first AND n.seq >= {builder.warned_from} ORDER BY n.seq"
        )
        for batch in self.files.rows(query, table):
            for record in batch.to_pylist():
                ident, first, name = (record[part].decode() for part in ("id", "first", "name"))
                builder.warnings.append(f"entity {ident!r} is called {first!r} and {name!r}; the first name stays")

    # -- statements

    def _predicates(self) -> None:
        texts = [np.empty(0, I32)]
        for run in range(len(self.runs)):
            text, _, _ = self._map(run)
            with self.files.run(run) as parts:
                texts += [different(text[different(parts[name])]) for name in ("rel.p", "att.p", "qual.key")]
        self.predicates = self.out["pred.text"] = different(np.concatenate(texts))

    def _sources(self) -> None:
        text, _, _ = self._map(len(self.runs) - 1)
        for part, numbers in self.builder.described.items():
            self.out[f"src.{part}"] = text[np.array(numbers, np.int64)]

    def _renumbered(self) -> dict[str, SpilledTable]:
        """Return tables of the statements, qualifiers, further rows of statements, and memberships of all runs, with
        the numbers of the graph.
        """
        tables = {name: self.files.table(name) for name in ("rel", "att", "qual", "more", "mem", "sub")}
        offset = 0
        for number, run in enumerate(self.runs):
            text, by_id, _ = self._map(number)
            entity = self.number[by_id]
            with self.files.run(number) as parts:
                rel, att, qual = (
                    {name: parts[f"{family}.{name}"] for name, _ in columns}
                    for family, columns in (("rel", RELATION), ("att", ATTRIBUTE), ("qual", QUALIFIER))
                )
                provenance, links = parts["more"], {"mem": parts["mem"], "sub": parts["sub"]}
            for cells in (att, qual):
                renumber_cells(cells, text, entity)
            qual["sid"] -= run["first"]
            qual["key"] = self._predicate(text[qual["key"]])
            qual, fingerprint = distinct_qualifiers(qual, run["statements"])
            if fingerprint is None:
                fingerprint = np.zeros(run["statements"], np.uint64)
            for family in (rel, att):
                family["p"], family["s"] = self._predicate(text[family["p"]]), entity[family["s"]]
                family["fp"] = fingerprint[family["sid"] - run["first"]]
            rel["o"] = entity[rel["o"]]
            att["raw"] = renumbered(att["raw"], text)
            qual["sid"] += run["first"]
            for cells in (att, qual):
                cells["value"] = sortable(cells["kind"], cells["a"], cells["ref"])
            seq = np.arange(offset, offset + len(provenance))
            offset += len(provenance)
            raw_texts = renumbered(provenance[:, 3], text)
            places = {"sid": provenance[:, 0].astype(I32), "src": provenance[:, 1].astype(I32), "row": provenance[:, 2].astype(I32)}
            for name, columns in (("rel", rel), ("att", att), ("qual", qual), ("more", places | {"raw": raw_texts, "seq": seq})):
                tables[name].add(columns)
            for name, rows in links.items():
                ends = entity[rows[:, :2]] if len(rows) else rows[:, :2]
                columns = {"a": ends[:, 0], "b": ends[:, 1], "src": rows[:, 2], "row": rows[:, 3]}
                tables[name].add({key: column.astype(I32) for key, column in columns.items()})
            self.files.run_path(number).unlink()
            self._map_file(number).unlink(missing_ok=True)
        return tables

    def _predicate(self, text: NDArray[Any]) -> NDArray[Any]:
        return np.searchsorted(self.predicates, text).astype(I32)

    def _statements(self, tables: Mapping[str, SpilledTable]) -> None:
        """Merge equal statements, and write their columns."""
        self.numbers, self.places = self.files.table("numbers"), self.files.table("places")
        self.starts, self.ends = self.files.table("out"), self.files.table("in")
        self.qual, self.more = tables["qual"], tables["more"]
        needed = bool(self.qual.rows or self.more.rows)
        source, row = self._column("st.src"), self._column("st.row")
        total = 0
        for family, prefix, keys, stored in (
            ("rel", "rel", ("p", "s", "o", "fp"), ("s", "o")),
            ("att", "att", ("p", "kind", "unit", "value", "b", "ref", "precision", "s", "fp"), ("s", "raw", *dict(PARTS))),
        ):
            columns = {name: self._column(f"{prefix}.{name}", dict(PARTS).get(name, I32)) for name in stored}
            counts, is_first_of = np.zeros(len(self.predicates) + 1, np.int64), NewRows()
            groups = Groups("p", "kind", "unit")
            for part in self.files.parts(f"SELECT * FROM $0 ORDER BY {', '.join(keys)}, sid", tables[family]):
                is_first = is_first_of(*(part[key] for key in keys))
                number = (total - 1 + np.cumsum(is_first)).astype(I32)
                if needed:
                    self.numbers.add({"sid": part["sid"], "number": number, "p": part["p"]})
                if not is_first.all():
                    repeated = {name: column[~is_first] for name, column in part.items()}
                    raw = repeated.get("raw", np.full(len(repeated["sid"]), -1, I32))
                    self._write_locations(number[~is_first], repeated["src"], repeated["row"], raw, 2, repeated["sid"])
                    part, number = {name: column[is_first] for name, column in part.items()}, number[is_first]
                total += len(number)
                for name, column in columns.items():
                    column.add(part[name])
                source.add(part["src"])
                row.add(part["row"])
                np.add.at(counts, part["p"] + 1, 1)
                self.starts.add({"node": part["s"], "n": number})
                if family == "rel":
                    self.ends.add({"node": part["o"], "n": number})
                elif len(number):
                    groups.add(part)
            self.out[f"{prefix}.offsets"] = np.cumsum(counts)
            if family == "rel":
                self.relations = total
        self.out |= groups.columns("grp", {"kind": np.int8}, {"p": "pred"})
        self.total = total

    def _write_locations(self, stmt: NDArray[Any], src: Any, row: Any, raw: Any, rank: int, seq: NDArray[Any]) -> None:
        columns = {"stmt": stmt, "src": src, "row": row, "raw": raw}
        wide = {"rank": np.full(len(stmt), rank, np.int8), "seq": seq.astype(np.int64)}
        self.places.add({name: np.asarray(column, I32) for name, column in columns.items()} | wide)

    def _lay_provenance(self) -> None:
        """Write the first source and row of each statement, and the further ones, as `layout.lay_provenance` does."""
        query = "SELECT n.number AS stmt, src, row, raw, seq FROM $0 JOIN $1 n USING (sid)"
        for part in self.files.parts(query, self.more, self.numbers):
            self._write_locations(part["stmt"], part["src"], part["row"], part["raw"], 1, part["seq"])
        columns = {name: self._column(f"prov.{name}") for name in ("stmt", "src", "row", "raw")}
        has_raw = False
        if self.places.rows:
            source, row, raw = (self.out[name].mapped("r+") for name in ("st.src", "st.row", "att.raw"))
            firsts = self.files.table("own")
            for part in self.files.parts("SELECT DISTINCT stmt FROM $0 ORDER BY stmt", self.places):
                stmt = part["stmt"]
                texts = np.full(len(stmt), -1, I32)
                attribute = stmt >= self.relations
                texts[attribute] = raw[stmt[attribute] - self.relations]
                zeros = {"rank": np.zeros(len(stmt), np.int8), "seq": np.zeros(len(stmt), np.int64)}
                firsts.add({"stmt": stmt, "src": source[stmt], "row": row[stmt], "raw": texts, **zeros})
            query = "SELECT stmt, src, row, raw FROM (FROM $0 UNION ALL FROM $1) ORDER BY stmt, src, row, rank, seq"
            for part in whole(self.files.parts(query, self.places, firsts), "stmt"):
                # If one row states it twice, the text that was loaded first counts.
                is_new = changed(part["stmt"], part["src"], part["row"])
                part = {name: column[is_new] for name, column in part.items()}
                begins = changed(part["stmt"])
                first_rows = {name: column[begins] for name, column in part.items()}
                source[first_rows["stmt"]], row[first_rows["stmt"]] = first_rows["src"], first_rows["row"]
                attribute = first_rows["stmt"] >= self.relations
                if attribute.any():
                    raw[first_rows["stmt"][attribute] - self.relations] = first_rows["raw"][attribute]
                for name, column in columns.items():
                    column.add(part[name][~begins])
                has_raw = has_raw or bool((part["raw"][~begins] >= 0).any())
                for column in (source, row, raw):
                    released(column)
        raw = self.out["att.raw"].mapped()
        own_texts = any((raw[part] >= 0).any() for part in slices(len(raw)))
        if not own_texts:
            self.out["att.raw"] = np.empty(0, I32)
        if not (has_raw or own_texts):
            self.out["prov.raw"] = np.empty(0, I32)

    def _adjacency(self) -> None:
        for name, table in (("out", self.starts), ("in", self.ends)):
            items, offsets = self._column(f"{name}.items"), Offsets(self._column(f"{name}.offsets"))
            for part in self.files.parts("SELECT node, n FROM $0 ORDER BY node, n", table):
                items.add(part["n"])
                offsets.add(part["node"])
            offsets.end(len(self.number))

    def _qualifiers(self) -> None:
        """Write the qualifiers by statement and by key, the validity of statements, and the keys of each predicate."""
        columns = {name: self._column(f"q.{name}", dict(PARTS).get(name, I32)) for name in ("owner", "key", *dict(PARTS))}
        if self.qual.rows:
            offsets = Offsets(self._column("q.offsets"))
        valid = {
            name: self._column(f"val.{name}", dtype) for name, dtype in (("stmt", I32), ("start", np.int64), ("end", np.int64))
        }
        times = {name: self._text_as_predicate(name) for name in (START_TIME, END_TIME, POINT_IN_TIME)}
        keys, kinds, place = self.files.table("keys-of"), Counts(4), 0
        query = (
            "SELECT n.number AS owner, n.p AS p, q.* EXCLUDE (sid) FROM $0 q JOIN $1 n USING (sid) "
            f"ORDER BY owner, {', '.join(_QUALIFIED)}"
        )
        for part in whole(self.files.parts(query, self.qual, self.numbers), "owner"):
            is_new = changed(part["owner"], *(part[name] for name in _QUALIFIED))
            part = {name: column[is_new] for name, column in part.items()}
            for name, column in columns.items():
                column.add(part[name])
            offsets.add(part["owner"])
            for name, values in zip(valid, self._valid(part, times), strict=True):
                valid[name].add(values)
            kinds.add([part[name] for name in ("p", "key", "kind", "unit")])
            places = np.arange(place, place + len(part["owner"]), dtype=I32)
            place += len(places)
            keys.add({name: part[name] for name in ("key", "kind", "unit", "value", "b")} | {"place": places})
        if self.qual.rows:
            offsets.end(self.total)
        items, groups, counts = (
            self._column("qkey.items"),
            Groups("key", "kind", "unit"),
            np.zeros(len(self.predicates) + 1, np.int64),
        )
        for part in self.files.parts("SELECT key, kind, unit, place FROM $0 ORDER BY key, kind, unit, value, b, place", keys):
            items.add(part["place"])
            groups.add(part)
            np.add.at(counts, part["key"] + 1, 1)
        self.out["qkey.offsets"] = np.cumsum(counts)
        self.out |= groups.columns("qgrp", {"kind": np.int8}, {})
        distinct, frequencies = kinds.found()
        for name, values_of_column in zip(("pred", "key", "kind", "unit"), distinct, strict=True):
            self.out[f"sch.q.{name}"] = values_of_column.astype(I32)
        self.out["sch.q.count"] = frequencies

    def _text_as_predicate(self, name: str) -> int:
        """Return the number of a predicate, or -1."""
        data, offsets = self.out["pool.bytes"].mapped(), self._get("pool.offsets")
        key = name.encode()
        at = bisect_left(self.predicates, key, key=lambda text: bytes(data[offsets[text] : offsets[text + 1]]))
        exists = at < len(self.predicates) and bytes(data[offsets[self.predicates[at]] : offsets[self.predicates[at] + 1]]) == key
        return at if exists else -1

    def _valid(self, part: Part, times: Mapping[str, int]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        at = [np.flatnonzero(part["key"] == times[name]) for name in (START_TIME, END_TIME, POINT_IN_TIME)]
        return validity({f"q.{name}": part[name] for name in ("owner", "kind", "a", "b")}, *at)

    # -- the rest

    def _links(self, tables: Mapping[str, SpilledTable]) -> None:
        """Write the distinct memberships and subclasses with their sources, and the transitive memberships."""
        for prefix, names, order in (("mem", ("e", "c"), "b, a"), ("sub", ("c", "p"), "a, b")):
            columns = [self._column(f"{prefix}.{name}") for name in (*names, "src", "row")]
            for part in self.files.parts(f"SELECT DISTINCT a, b, src, row FROM $0 ORDER BY {order}, src, row", tables[prefix]):
                for name, column in zip(("a", "b", "src", "row"), columns, strict=True):
                    column.add(part[name])
        self.out |= closed_members({name: self._get(name) for name in ("mem.e", "mem.c", "sub.c", "sub.p", "ent.kind")})

    def _predicates_of(self, statements: NDArray[Any]) -> NDArray[Any]:
        relation = statements < self.relations
        predicates = np.empty(len(statements), np.int64)
        predicates[relation] = np.searchsorted(self.out["rel.offsets"], statements[relation], side="right") - 1
        predicates[~relation] = np.searchsorted(self.out["att.offsets"], statements[~relation] - self.relations, side="right") - 1
        return predicates

    def _by_source(self) -> None:
        """Write the statements of each source, the sources of each predicate, and the declarations of entities."""
        width = max(len(self.out["src.name"]), 1)
        pairs, table = Counts(2), self.files.table("by-source")
        for owner, source in ((None, self._get("st.src")), (self._get("prov.stmt"), self._get("prov.src"))):
            for part in slices(len(source)):
                stmt = np.arange(part.start, part.stop, dtype=I32) if owner is None else np.array(owner[part])
                source_numbers = np.array(source[part])
                pairs.add([self._predicates_of(stmt), source_numbers])
                if width > 1:
                    table.add({"src": source_numbers, "stmt": stmt})
            released(source)
        (predicates, sources), frequencies = pairs.found()
        self.out["sch.s.pred"], self.out["sch.s.src"], self.out["sch.s.count"] = (
            predicates.astype(I32),
            sources.astype(I32),
            frequencies,
        )
        if width > 1:
            items, counts = self._column("bysrc.items"), np.zeros(width + 1, np.int64)
            # A statement in several rows of a source counts once.
            for rows in self.files.parts("SELECT DISTINCT src, stmt FROM $0 ORDER BY src, stmt", table):
                items.add(rows["stmt"])
                np.add.at(counts, rows["src"] + 1, 1)
            self.out["bysrc.offsets"] = np.cumsum(counts)
        declared = Declared(*(column.mapped() for column in self.said))
        if width > 1 or not all((declared.src[part] == 0).all() for part in slices(len(declared.src))):
            declared = joined([declared._replace(e=self.number[declared.e])])
        columns = MappedColumns(self.out)
        lay_declared(columns, declared)
        self.out |= columns.fresh

    def _ordered(self) -> tuple[Mapping[str, NDArray[Any]], dict[str, int]]:
        names = list(lay_out_in_memory(Builder())[0])
        names.insert(names.index("qkey.offsets"), "q.offsets")
        names.insert(names.index("dec.known"), "bysrc.items")
        names.insert(names.index("dec.known"), "bysrc.offsets")
        columns = MappedColumns({name: self.out[name] for name in names if name in self.out})
        return columns, counts_of(columns)


class MappedColumns(dict[str, Any]):
    """Columns by name. A column in a file is mapped anew at each access, so that its pages can leave memory."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        super().__init__(columns)
        self.fresh: dict[str, Any] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        column = super().__getitem__(name)
        return column.mapped() if isinstance(column, SpilledColumn) else column

    def __setitem__(self, name: str, column: NDArray[Any]) -> None:
        self.fresh[name] = column
        super().__setitem__(name, column)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self.keys() else default

    def items(self) -> Any:
        """Yield the names and columns."""
        return ((name, self[name]) for name in self)

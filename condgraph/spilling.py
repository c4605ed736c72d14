"""Loads in bounded memory: what is read is spilled to files next to the graph, sorted there by DuckDB,
and laid out in parts, as the same columns that `engine.snapshot.layout` makes in memory.

A `SpillingBuilder` takes items as every builder does. Whenever it holds as much as it may, it writes
a run: its statements by its own numbers of texts and entities, and these texts. `lay_out` then sorts
the texts of all runs, which gives each its number in the graph, and with these numbers the entities,
statements and qualifiers.

In memory are at most one run, what DuckDB may have, and some numbers of each entity (about 25 bytes),
each membership and each source of a predicate.
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
    AT_REST,
    I32,
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


#: The least bound: Python, NumPy, Arrow and DuckDB alone take half of it.
LEAST: Final = 512 << 20
#: Items between two looks at how much is held.
_ITEMS: Final = 1 << 13
_UNITS: Final = {"": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4} | {
    "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}  # fmt: skip
_SIZE: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([kmgt]i?b|)", re.IGNORECASE | re.ASCII)
#: What a text is in a run.
_TEXT, _ENTITY, _NAME = 0, 1, 2
_OF_SOURCES: Final = ("name", "location", "format", "content", "terms")
#: Qualifiers in their order.
_QUALIFIED: Final = ("key", "kind", "value", "b", "unit", "ref", "precision")


def memory_bound(memory: int | str) -> int:
    """A bound of memory in bytes, from a number of bytes or a text such as "2 GiB"; raises `OptionError`."""
    size = None
    if isinstance(memory, int) and not isinstance(memory, bool):
        size = memory
    elif isinstance(memory, str) and (match := _SIZE.fullmatch(memory.strip())):
        size = int(float(match[1]) * _UNITS[match[2].lower()])
    if size is None:
        raise OptionError(f"memory= is a size such as '2 GiB' or '800 MB', or a number of bytes, not {memory!r}")
    if size < LEAST:
        raise OptionError(f"memory= is {LEAST >> 20} MiB or more, not {memory!r}", hint="a load without memory= has no bound")
    return size


class SpillingBuilder(Builder):
    """A builder that holds at most `memory` bytes, and writes the rest to a folder."""

    def __init__(self, folder: Path, memory: int, run: int | None = None) -> None:
        super().__init__()
        self.files = SpilledFiles(folder, memory)
        #: Bytes that a run may take while it is gathered. Laying it out takes about as much again.
        self._most = run or (memory - AT_REST) // 4
        self.runs: list[dict[str, Any]] = []
        self.text_table, self.naming_table = self.files.table("texts"), self.files.table("namings")
        #: Bytes of the batches that are held; how many texts and entities were measured, and their characters.
        self._batches, self._measured, self._characters = 0, [0, 0], 0
        self._first_statement = 0
        #: Names that entities were given in this run, one by one, and how many there were before.
        self._namings: list[tuple[str, str]] = []
        self.named_before = self.warned_from = 0
        #: The graph that is added to.
        self._before: Snapshot | None = None

    def seed(self, snapshot: Snapshot) -> None:
        """Begin with all that a snapshot holds."""
        self._before = snapshot
        self.add(items(snapshot))
        self.spill()
        self.declared = {}
        self.warned_from = self.named_before

    # -- taking ------------------------------------------------------------------------------------

    def add(self, items: Iterable[Item]) -> None:
        """Take all items of a loader, spilling in between."""
        rest = iter(items)
        with fewer_collections():
            for first in rest:
                self._add(chain((first,), islice(rest, _ITEMS - 1)))
                self._spill_much()

    def _add_many(self, items: Many) -> None:
        lists: tuple[list[Any], ...] = (self.relations, self.attributes, self.qualifiers, self.many_members)
        before = [len(chunks) for chunks in lists]
        super()._add_many(items)
        for chunks, known in zip(lists, before, strict=True):
            self._batches += sum(_size(chunk) for chunk in chunks[known:])
        self._spill_much()

    def _declare_rows(self, rows: Rows) -> None:
        # Rows that are new in this run may be known from another.
        for entity in rows.entities():
            self._declare(entity)

    def _declare(self, entity: Entity) -> None:
        warnings = len(self.warnings)
        super()._declare(entity)
        # Which name is the first is known at the end.
        del self.warnings[warnings:]
        if entity.name != entity.id:
            self._namings.append((entity.id, entity.name))

    def _held(self) -> int:
        """About how many bytes this run takes so far."""
        for at, index in enumerate((self.texts, self.entities)):
            fresh = len(index) - self._measured[at]
            self._characters += sum(map(len, islice(reversed(index), fresh)))
            self._measured[at] += fresh
        declared = sum(map(len, self.declared.values()))
        things = len(self.texts) + len(self.entities)
        single = len(self.members) + len(self.subclasses) + len(self.provenance)
        more = 300 * declared + 150 * len(self._namings) + 160 * single + 500 * len(self._pending)
        spelled = sum(len(data) for _, data, _ in self.spelled)
        return 180 * things + self._characters + more + self._batches + spelled

    def _spill_much(self) -> None:
        if self._before is not None:
            self._before.arrays.release()
        if self._held() >= self._most:
            self.spill()

    # -- runs --------------------------------------------------------------------------------------

    def spill(self) -> None:
        """Write what is held as a run, and hold nothing."""
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
            at = np.arange(self.named_before, self.named_before + len(self._namings))
            ids, called = (binary(*bytes_of_texts([one[side] for one in self._namings])) for side in (0, 1))
            self.naming_table.add({"id": ids, "name": called, "seq": at})
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
        # Who declared something is asked for at the end.
        self.declared = {source: {} for source in self.declared}
        self._numbered = self._named = ((), np.empty(0, I32))
        self._batches, self._measured, self._characters = 0, [0, 0], 0

    def _write_texts(self, run: int, names: Mapping[str, int]) -> None:
        parts = [
            (what, np.fromiter(index.values(), I32, len(index)), binary(*bytes_of_texts(list(index))))
            for what, index in ((_TEXT, self.texts), (_ENTITY, self.entities), (_NAME, names))
        ]
        for begin, data, sizes in self.spelled:
            parts.append((_TEXT, np.arange(begin, begin + len(sizes), dtype=I32), binary(data, sizes)))
        for what, numbers, texts in parts:
            if len(numbers):
                same = {"what": np.full(len(numbers), what, np.int8), "run": np.full(len(numbers), run, I32)}
                self.text_table.add({"text": texts, "local": numbers, **same})

    def lay_out(self) -> tuple[Mapping[str, NDArray[Any]], dict[str, int]]:
        """The columns of a snapshot, in files, and its counts."""
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
    """A builder that spills into the directory of a graph, which the caller has locked; nothing is left of the spill then.
    A full disk is a `StoreError`, too small a bound a `LoadError`.
    """
    hint = "free some space, and load again"
    builder = None
    try:
        builder = SpillingBuilder(directory / SPILL, memory)
        yield builder
    except OSError as error:
        if error.filename is not None and not str(error.filename).startswith(str(directory)):
            raise
        raise StoreError(f"{directory} cannot be written: {error.strerror or _one_line(error)}", hint=hint) from error
    except Exception as error:
        if not type(error).__module__.endswith("duckdb"):
            raise
        if type(error).__name__ == "OutOfMemoryException" and "directory" not in str(error):
            raise LoadError(f"memory= is too small for this load: {_one_line(error)}", hint="raise it") from error
        raise StoreError(f"{directory} cannot be written: {_one_line(error)}", hint=hint) from error
    finally:
        if builder is not None:
            builder.files.close()


def _one_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]


# -- laying out ------------------------------------------------------------------------------------


class _Layout:
    """Lays out the runs of a builder."""

    def __init__(self, builder: SpillingBuilder) -> None:
        self.builder, self.files, self.runs = builder, builder.files, builder.runs
        self.out: dict[str, Any] = {}
        #: Of each entity, by the order of their ids: the text of its id, and its number in the graph.
        self.ids = self.number = np.empty(0, I32)

    def columns(self) -> tuple[Mapping[str, NDArray[Any]], dict[str, int]]:
        """The columns, mapped from files where they are long, and the counts."""
        self._texts("")
        dropped = self._declarations()
        if len(dropped) and (unused := self._only_dropped(dropped)):
            # What nobody calls anything is no text of the graph.
            self._texts("WHERE text NOT IN (FROM $1)", unused)
            self._declarations()
        self._entities()
        self._predicates()
        self._sources()
        tables = self._renumbered()
        self._statements(tables)
        self._places()
        self._adjacency()
        self._qualifiers()
        self._links(tables)
        self._by_source()
        return self._ordered()

    def _column(self, name: str, dtype: Any = I32) -> SpilledColumn:
        """A column of the graph."""
        column = self.out[name] = self.files.column(name, dtype)
        return column

    def _get(self, name: str) -> NDArray[Any]:
        column = self.out[name]
        return column.mapped() if isinstance(column, SpilledColumn) else column

    # -- texts

    def _texts(self, condition: str, *further: SpilledTable) -> None:
        """Number the texts of all runs by code point, and write the pool. Of each run the numbers of its texts are written
        to a file of their own.
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
            fresh = np.ones(len(text), bool)
            fresh[1:] = pc.not_equal(text.slice(1), text.slice(0, len(text) - 1)).to_numpy(zero_copy_only=False)
            fresh[0] = last is None or text[0].as_py() != last
            last = text[len(text) - 1].as_py()
            kept = text.filter(pa.array(fresh))
            if len(kept):
                lengths = pc.binary_length(kept).to_numpy().astype(np.int64)
                begin = np.frombuffer(kept.buffers()[1], np.int64)[kept.offset]
                body = np.frombuffer(kept.buffers()[2], np.uint8, int(lengths.sum()), int(begin)) if lengths.any() else None
                spare = np.concatenate([np.empty(0, np.uint8) if body is None else body, np.zeros(SPARE, np.uint8)])
                ends = np.cumsum(lengths)
                hashes.add(checksums(spare, ends - lengths, lengths))
                data.add(spare[:-SPARE])
                offsets.add(ends + size)
                size += int(ends[-1])
            numbers = (texts - 1 + np.cumsum(fresh)).astype(I32)
            texts += int(fresh.sum())
            what, run, local = (batch.column(at).to_numpy().astype(np.int64) for at in (1, 2, 3))
            entities = numbers[what == _ENTITY]
            if len(entities):
                ids.add(entities[fresh_entity(entities)])
            pairs = np.stack([local + begins[run, what], numbers], axis=1).astype(I32)
            order = in_order([run])
            cuts = np.flatnonzero(changed(run[order])).tolist()
            for low, high in zip(cuts, [*cuts[1:], len(order)], strict=True):
                with self._map_file(int(run[order[low]])).open("ab") as file:
                    file.write(pairs[order[low:high]].data)
        if texts >= 2**31 - 1:
            raise LoadError(f"a graph holds fewer than {2**31 - 1:,} texts, and this one has {texts:,}")
        self.text_count, self.ids = texts, np.array(ids.mapped())
        if size < 2**31:
            narrow = self._column("pool.offsets")
            for part in slices(offsets.length):
                narrow.add(offsets.mapped()[part])
        else:
            self.out["pool.offsets"] = offsets
        self._buckets(hashes)

    def _buckets(self, hashes: SpilledColumn) -> None:
        table, mask = self.files.table("slots"), buckets_of(self.text_count) - 1
        counts = np.zeros(mask + 2, np.int64)
        found = hashes.mapped()
        for part in slices(len(found)):
            slots = (found[part] & np.uint32(mask)).astype(np.int64)
            np.add.at(counts, slots + 1, 1)
            table.add({"slot": slots.astype(np.uint32), "n": np.arange(part.start, part.stop, dtype=I32)})
        self.out["pool.buckets"] = np.cumsum(counts).astype(I32)
        items = self._column("pool.items")
        for rows in self.files.parts("SELECT n FROM $0 ORDER BY slot, n", table):
            items.add(rows["n"])

    def _map_file(self, run: int) -> Path:
        return self.files.folder / f"map-{run}.column"

    def _map(self, run: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Of a run the numbers of its texts, entities (by id) and names."""
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
        """Join what all runs declare, and find the name, kind and row of each entity; the texts of names that a source gave
        an entity after another.
        """
        table = self.files.table("declared")
        for run in range(len(self.runs)):
            _, entity, name = self._map(run)
            with self.files.run(run) as parts:
                declared = parts["declared"]
            if len(declared):
                called = np.where(declared[:, 2] >= 0, name[declared[:, 2]], -1) if len(name) else declared[:, 2]
                columns = {part: declared[:, at] for at, part in enumerate(DECLARED)}
                order = np.full(len(declared), run, I32)
                table.add(columns | {"e": entity[declared[:, 0]], "name": called.astype(I32), "run": order})
        size = len(self.ids)
        self.names, self.kinds = self.ids.copy(), np.zeros(size, np.int8)
        self.said = [self.files.column(f"said-{part}") for part in DECLARED]
        self.row_table = self.files.table("rows")
        self.named = 0
        dropped = []
        query = "SELECT e, src, name, kind, row, run FROM $0 ORDER BY e, src, run"
        for part in whole(self.files.parts(query, table), "e"):
            rows = Declared(*(part[name] for name in DECLARED))
            said = joined([rows])
            if len(said.e) < len(rows.e):
                kept = said.name[np.cumsum(changed(rows.e, rows.src)) - 1]
                dropped.append(different(rows.name[(rows.name >= 0) & (rows.name != kept)]))
            for column, values in zip(self.said, said, strict=True):
                column.add(values)
            named, at = said.firsts(said.name)
            self.names[named] = said.name[at]
            self.named += len(named)
            for kind in (EntityKind.ROW, EntityKind.CONCEPT):
                self.kinds[said.e[said.kind == kind]] = kind
            at, first = said.firsts(said.row)
            if len(at):
                self.row_table.add({"e": at, "src": said.src[first], "row": said.row[first]})
        return different(joined_parts(dropped, I32))

    def _only_dropped(self, dropped: NDArray[Any]) -> SpilledTable | None:
        """The texts, out of those of dropped names, that nothing else in the graph is."""
        names = self.said[DECLARED.index("name")].mapped()
        for part in slices(len(names)):
            dropped = dropped[~np.isin(dropped, names[part])]
        data, offsets = self.out["pool.bytes"].mapped(), self._get("pool.offsets")
        texts = [bytes(data[offsets[at] : offsets[at + 1]]) for at in dropped.tolist()]
        some, unused = self.files.table("dropped"), self.files.table("unused")
        if not texts:
            return None
        some.add({"text": texts})
        query = f"SELECT DISTINCT text FROM $0 WHERE text NOT IN (SELECT text FROM $1 WHERE what <> {_NAME})"
        for batch in self.files.rows(query, some, self.builder.text_table):
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
        called = self.files.table("entities")
        for part in slices(size):
            called.add({"name": self.names[part], "e": np.arange(part.start, part.stop, dtype=I32)})
        types = {"ent.id": I32, "ent.name": I32, "ent.kind": np.int8}
        ident, name, kind = (self._column(part, dtype) for part, dtype in types.items())
        begin = 0
        for rows in self.files.parts("SELECT e FROM $0 ORDER BY name, e", called):
            order = rows["e"]
            self.number[order] = np.arange(begin, begin + len(order), dtype=I32)
            begin += len(order)
            ident.add(self.ids[order])
            name.add(self.names[order])
            kind.add(self.kinds[order])
        del self.names, self.kinds
        self.out["ent.by_id"] = self.number
        self.out["ent.source"] = self.out["ent.row"] = np.empty(0, I32)
        key, of = self._column("row.key", np.int64), self._column("row.entity")
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
                of.add(rows["e"])

    def _warn_of_names(self) -> None:
        """Warn of entities that have several names."""
        builder, table = self.builder, self.builder.naming_table
        if table.rows == self.named:
            return
        query = (
            "WITH firsts AS (SELECT id, arg_min(name, seq) AS first FROM $0 GROUP BY id) "
            "SELECT n.id AS id, f.first AS first, n.name AS name FROM $0 n JOIN firsts f USING (id) "
            f"WHERE n.name <> f.first AND n.seq >= {builder.warned_from} ORDER BY n.seq"
        )
        for batch in self.files.rows(query, table):
            for one in batch.to_pylist():
                ident, first, name = (one[part].decode() for part in ("id", "first", "name"))
                builder.warnings.append(f"entity {ident!r} is called {first!r} and {name!r}; the first name stays")

    # -- statements

    def _predicates(self) -> None:
        found = [np.empty(0, I32)]
        for run in range(len(self.runs)):
            text, _, _ = self._map(run)
            with self.files.run(run) as parts:
                found += [different(text[different(parts[name])]) for name in ("rel.p", "att.p", "qual.key")]
        self.predicates = self.out["pred.text"] = different(np.concatenate(found))

    def _sources(self) -> None:
        text, _, _ = self._map(len(self.runs) - 1)
        for part, numbers in self.builder.described.items():
            self.out[f"src.{part}"] = text[np.array(numbers, np.int64)]

    def _renumbered(self) -> dict[str, SpilledTable]:
        """The statements, qualifiers, further places and memberships of all runs, by the numbers of the graph."""
        tables = {name: self.files.table(name) for name in ("rel", "att", "qual", "more", "mem", "sub")}
        further = 0
        for number, run in enumerate(self.runs):
            text, by_id, _ = self._map(number)
            entity = self.number[by_id]
            with self.files.run(number) as parts:
                rel, att, qual = (
                    {name: parts[f"{family}.{name}"] for name, _ in columns}
                    for family, columns in (("rel", RELATION), ("att", ATTRIBUTE), ("qual", QUALIFIER))
                )
                more, links = parts["more"], {"mem": parts["mem"], "sub": parts["sub"]}
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
            seq = np.arange(further, further + len(more))
            further += len(more)
            raw = renumbered(more[:, 3], text)
            places = {"sid": more[:, 0].astype(I32), "src": more[:, 1].astype(I32), "row": more[:, 2].astype(I32)}
            for name, columns in (("rel", rel), ("att", att), ("qual", qual), ("more", places | {"raw": raw, "seq": seq})):
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
        """Join equal statements, and write the columns of what is left."""
        self.numbers, self.places = self.files.table("numbers"), self.files.table("places")
        self.starts, self.ends = self.files.table("out"), self.files.table("in")
        self.qual, self.more = tables["qual"], tables["more"]
        wanted = bool(self.qual.rows or self.more.rows)
        source, row = self._column("st.src"), self._column("st.row")
        total = 0
        for family, prefix, keys, kept in (
            ("rel", "rel", ("p", "s", "o", "fp"), ("s", "o")),
            ("att", "att", ("p", "kind", "unit", "value", "b", "ref", "precision", "s", "fp"), ("s", "raw", *dict(PARTS))),
        ):
            columns = {name: self._column(f"{prefix}.{name}", dict(PARTS).get(name, I32)) for name in kept}
            counts, fresh_of = np.zeros(len(self.predicates) + 1, np.int64), NewRows()
            groups = Groups("p", "kind", "unit")
            for part in self.files.parts(f"SELECT * FROM $0 ORDER BY {', '.join(keys)}, sid", tables[family]):
                fresh = fresh_of(*(part[key] for key in keys))
                number = (total - 1 + np.cumsum(fresh)).astype(I32)
                if wanted:
                    self.numbers.add({"sid": part["sid"], "number": number, "p": part["p"]})
                if not fresh.all():
                    again = {name: column[~fresh] for name, column in part.items()}
                    raw = again.get("raw", np.full(len(again["sid"]), -1, I32))
                    self._place(number[~fresh], again["src"], again["row"], raw, 2, again["sid"])
                    part, number = {name: column[fresh] for name, column in part.items()}, number[fresh]
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

    def _place(self, stmt: NDArray[Any], src: Any, row: Any, raw: Any, rank: int, seq: NDArray[Any]) -> None:
        columns = {"stmt": stmt, "src": src, "row": row, "raw": raw}
        wide = {"rank": np.full(len(stmt), rank, np.int8), "seq": seq.astype(np.int64)}
        self.places.add({name: np.asarray(column, I32) for name, column in columns.items()} | wide)

    def _places(self) -> None:
        """The first place of each statement, and the further ones, as `layout.lay_provenance` has them."""
        query = "SELECT n.number AS stmt, src, row, raw, seq FROM $0 JOIN $1 n USING (sid)"
        for part in self.files.parts(query, self.more, self.numbers):
            self._place(part["stmt"], part["src"], part["row"], part["raw"], 1, part["seq"])
        columns = {name: self._column(f"prov.{name}") for name in ("stmt", "src", "row", "raw")}
        said = False
        if self.places.rows:
            source, row, raw = (self.out[name].mapped("r+") for name in ("st.src", "st.row", "att.raw"))
            own = self.files.table("own")
            for part in self.files.parts("SELECT DISTINCT stmt FROM $0 ORDER BY stmt", self.places):
                stmt = part["stmt"]
                texts = np.full(len(stmt), -1, I32)
                attribute = stmt >= self.relations
                texts[attribute] = raw[stmt[attribute] - self.relations]
                zeros = {"rank": np.zeros(len(stmt), np.int8), "seq": np.zeros(len(stmt), np.int64)}
                own.add({"stmt": stmt, "src": source[stmt], "row": row[stmt], "raw": texts, **zeros})
            query = "SELECT stmt, src, row, raw FROM (FROM $0 UNION ALL FROM $1) ORDER BY stmt, src, row, rank, seq"
            for part in whole(self.files.parts(query, self.places, own), "stmt"):
                # Of one place that says it twice the first text counts, as it was loaded.
                fresh = changed(part["stmt"], part["src"], part["row"])
                part = {name: column[fresh] for name, column in part.items()}
                begins = changed(part["stmt"])
                first = {name: column[begins] for name, column in part.items()}
                source[first["stmt"]], row[first["stmt"]] = first["src"], first["row"]
                attribute = first["stmt"] >= self.relations
                if attribute.any():
                    raw[first["stmt"][attribute] - self.relations] = first["raw"][attribute]
                for name, column in columns.items():
                    column.add(part[name][~begins])
                said = said or bool((part["raw"][~begins] >= 0).any())
                for column in (source, row, raw):
                    released(column)
        raw = self.out["att.raw"].mapped()
        own_texts = any((raw[part] >= 0).any() for part in slices(len(raw)))
        if not own_texts:
            self.out["att.raw"] = np.empty(0, I32)
        if not (said or own_texts):
            self.out["prov.raw"] = np.empty(0, I32)

    def _adjacency(self) -> None:
        for name, table in (("out", self.starts), ("in", self.ends)):
            items, offsets = self._column(f"{name}.items"), Offsets(self._column(f"{name}.offsets"))
            for part in self.files.parts("SELECT node, n FROM $0 ORDER BY node, n", table):
                items.add(part["n"])
                offsets.add(part["node"])
            offsets.end(len(self.number))

    def _qualifiers(self) -> None:
        """Qualifiers by statement and by key, the validity of statements, and what keys each predicate has."""
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
            fresh = changed(part["owner"], *(part[name] for name in _QUALIFIED))
            part = {name: column[fresh] for name, column in part.items()}
            for name, column in columns.items():
                column.add(part[name])
            offsets.add(part["owner"])
            for name, found in zip(valid, self._valid(part, times), strict=True):
                valid[name].add(found)
            kinds.add([part[name] for name in ("p", "key", "kind", "unit")])
            at = np.arange(place, place + len(part["owner"]), dtype=I32)
            place += len(at)
            keys.add({name: part[name] for name in ("key", "kind", "unit", "value", "b")} | {"place": at})
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
        distinct, often = kinds.found()
        for name, marks in zip(("pred", "key", "kind", "unit"), distinct, strict=True):
            self.out[f"sch.q.{name}"] = marks.astype(I32)
        self.out["sch.q.count"] = often

    def _text_as_predicate(self, name: str) -> int:
        """The number of a predicate, or -1."""
        data, offsets = self.out["pool.bytes"].mapped(), self._get("pool.offsets")
        key = name.encode()
        at = bisect_left(self.predicates, key, key=lambda text: bytes(data[offsets[text] : offsets[text + 1]]))
        found = at < len(self.predicates) and bytes(data[offsets[self.predicates[at]] : offsets[self.predicates[at] + 1]]) == key
        return at if found else -1

    def _valid(self, part: Part, times: Mapping[str, int]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        at = [np.flatnonzero(part["key"] == times[name]) for name in (START_TIME, END_TIME, POINT_IN_TIME)]
        return validity({f"q.{name}": part[name] for name in ("owner", "kind", "a", "b")}, *at)

    # -- the rest

    def _links(self, tables: Mapping[str, SpilledTable]) -> None:
        """Memberships and subclasses, each once, with their sources; concepts closed."""
        for prefix, names, order in (("mem", ("e", "c"), "b, a"), ("sub", ("c", "p"), "a, b")):
            columns = [self._column(f"{prefix}.{name}") for name in (*names, "src", "row")]
            for part in self.files.parts(f"SELECT DISTINCT a, b, src, row FROM $0 ORDER BY {order}, src, row", tables[prefix]):
                for name, column in zip(("a", "b", "src", "row"), columns, strict=True):
                    column.add(part[name])
        self.out |= closed_members({name: self._get(name) for name in ("mem.e", "mem.c", "sub.c", "sub.p", "ent.kind")})

    def _predicates_of(self, statements: NDArray[Any]) -> NDArray[Any]:
        relation = statements < self.relations
        of = np.empty(len(statements), np.int64)
        of[relation] = np.searchsorted(self.out["rel.offsets"], statements[relation], side="right") - 1
        of[~relation] = np.searchsorted(self.out["att.offsets"], statements[~relation] - self.relations, side="right") - 1
        return of

    def _by_source(self) -> None:
        """The statements of each source, and the sources of each predicate; who declared what."""
        width = max(len(self.out["src.name"]), 1)
        pairs, table = Counts(2), self.files.table("by-source")
        for owner, source in ((None, self._get("st.src")), (self._get("prov.stmt"), self._get("prov.src"))):
            for part in slices(len(source)):
                stmt = np.arange(part.start, part.stop, dtype=I32) if owner is None else np.array(owner[part])
                of = np.array(source[part])
                pairs.add([self._predicates_of(stmt), of])
                if width > 1:
                    table.add({"src": of, "stmt": stmt})
            released(source)
        (predicates, sources), often = pairs.found()
        self.out["sch.s.pred"], self.out["sch.s.src"], self.out["sch.s.count"] = predicates.astype(I32), sources.astype(I32), often
        if width > 1:
            items, counts = self._column("bysrc.items"), np.zeros(width + 1, np.int64)
            # A statement that stands in two rows of a source is one.
            for rows in self.files.parts("SELECT DISTINCT src, stmt FROM $0 ORDER BY src, stmt", table):
                items.add(rows["stmt"])
                np.add.at(counts, rows["src"] + 1, 1)
            self.out["bysrc.offsets"] = np.cumsum(counts)
        said = Declared(*(column.mapped() for column in self.said))
        if width > 1 or not all((said.src[part] == 0).all() for part in slices(len(said.src))):
            said = joined([said._replace(e=self.number[said.e])])
        columns = MappedColumns(self.out)
        lay_declared(columns, said)
        self.out |= columns.fresh

    def _ordered(self) -> tuple[Mapping[str, NDArray[Any]], dict[str, int]]:
        names = list(lay_out_in_memory(Builder())[0])
        names.insert(names.index("qkey.offsets"), "q.offsets")
        names.insert(names.index("dec.known"), "bysrc.items")
        names.insert(names.index("dec.known"), "bysrc.offsets")
        columns = MappedColumns({name: self.out[name] for name in names if name in self.out})
        return columns, counts_of(columns)


class MappedColumns(dict[str, Any]):
    """Columns by name, those in files mapped anew each time that one is asked for, so that what was read leaves memory."""

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
        """A column, or what there is in its place."""
        return self[name] if name in self.keys() else default

    def items(self) -> Any:
        """The columns with their names, one after the other."""
        return ((name, self[name]) for name in self)

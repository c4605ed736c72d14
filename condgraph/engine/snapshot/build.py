"""From a loader's items to columns in load order: the first half of building a snapshot.

A `Builder` takes items one by one or in batches, gives numbers to texts and entities in the order
they come, and keeps everything in NumPy chunks. `layout` sorts, joins equal statements and makes
the indexes. An append starts from the columns of the open snapshot, so that no source is read
again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import LoadError
from condgraph.engine.facts import (
    Batch,
    Entity,
    EntityKind,
    Ids,
    Item,
    Member,
    Ref,
    Source,
    Sourced,
    Statement,
    Subclass,
    Texts,
    Values,
)
from condgraph.engine.origins import check_source
from condgraph.engine.snapshot.cells import PARTS, CellColumns, encode_column, encode_values
from condgraph.engine.snapshot.collector import fewer_collections
from condgraph.engine.values import Value, collapse

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Single statements are gathered in lists, and turned into chunks when there are this many.
_FLUSH = 1 << 16
#: Numbers of statements, texts and entities are 32 bits wide.
_MOST = 2**31 - 1
_Chunk = dict[str, NDArray[Any]]


class Builder:
    """Gathers items. `begin` names the source of what follows; `add` takes items;
    `layout.lay_out(builder)` gives the columns.
    """

    def __init__(self, previous: Snapshot | None = None) -> None:
        self.texts: defaultdict[str, int] = defaultdict(count().__next__)
        self.entities: defaultdict[str, int] = defaultdict(count().__next__)
        self.names: dict[int, str] = {}
        self.kinds: dict[int, EntityKind] = {}
        self.rows: dict[int, tuple[int, int]] = {}
        self.sources: list[Source] = []
        self.source_numbers: dict[str, int] = {}
        self.warnings: list[str] = []
        self.statements = 0
        # Chunks of columns; every statement has a number in load order (`sid`), by which qualifiers
        # and sources find it.
        self.relations: list[_Chunk] = []
        self.attributes: list[_Chunk] = []
        self.qualifiers: list[_Chunk] = []
        self.members: list[tuple[int, int, int, int]] = []
        self.subclasses: list[tuple[int, int, int, int]] = []
        self.provenance: list[tuple[int, int, int]] = []
        self.previous_members: _Chunk | None = None
        self._source = Source("")
        self._source_at = -1
        self._pending: list[tuple[int, int, Statement]] = []
        if previous is not None:
            previous.seed(self)

    def begin(self, source: Source) -> None:
        """Everything that follows comes from this source. A source of the same name is the same
        source.

        It becomes a source of the graph with the first item that it gives.
        """
        self._source, self._source_at = source, -1

    def _current(self) -> int:
        if self._source_at < 0:
            self._source_at = self._source_number(self._source)
        return self._source_at

    def _source_number(self, source: Source) -> int:
        number = self.source_numbers.setdefault(source.name, len(self.sources))
        if number == len(self.sources):
            self.sources.append(source)
        else:
            check_source(self.sources[number], source)
            if source.location or source.content:
                self.sources[number] = source
        return number

    def add(self, items: Iterable[Item]) -> None:
        """Take all items of a loader; raises what the loader raises."""
        with fewer_collections():
            self._add(items)

    def _add(self, items: Iterable[Item]) -> None:
        pending = self._pending
        for item in items:
            if isinstance(item, Statement):
                pending.append((self.statements, self._current(), item))
                self.statements += 1
                if len(pending) >= _FLUSH:
                    self._flush()
            elif isinstance(item, Batch):
                self._add_batch(item)
            elif isinstance(item, Entity):
                self._declare(item)
            elif isinstance(item, Member):
                self.members.append((self.entities[item.entity], self._concept(item.concept), self._current(), item.row))
            elif isinstance(item, Subclass):
                self.subclasses.append((self._concept(item.concept), self._concept(item.parent), self._current(), item.row))
            elif isinstance(item, Sourced):
                self._add_sourced(item)
            elif isinstance(item, Source):
                self._source_number(item)
            else:
                raise LoadError(f"{item!r} is no item of a condition graph")

    def finish(self) -> None:
        """Call when all items were added; raises `LoadError` for more than a graph can number."""
        self._flush()
        for what, size in (("statements", self.statements), ("texts", len(self.texts)), ("entities", len(self.entities))):
            if size >= _MOST:
                raise LoadError(f"a graph holds fewer than {_MOST:,} {what}, and this one has {size:,}")

    # -- entities ----------------------------------------------------------------------------------

    def _concept(self, ident: str) -> int:
        number = self.entities[ident]
        self.kinds[number] = EntityKind.CONCEPT
        return number

    def _declare(self, entity: Entity) -> None:
        number = self.entities[entity.id]
        if entity.name != entity.id:
            known = self.names.setdefault(number, entity.name)
            if known != entity.name:
                self.warnings.append(f"entity {entity.id!r} is called {known!r} and {entity.name!r}; the first name stays")
        kind = self.kinds.get(number, EntityKind.ENTITY)
        if entity.kind is EntityKind.CONCEPT or (entity.kind is EntityKind.ROW and kind is EntityKind.ENTITY):
            self.kinds[number] = entity.kind
        if entity.kind is EntityKind.ROW:
            self.rows.setdefault(number, (self._current(), entity.row))

    # -- statements --------------------------------------------------------------------------------

    def _add_sourced(self, sourced: Sourced) -> None:
        item = sourced.item
        numbers = [(self._source_number(Source(name)), row) for name, row in sourced.sources]
        if not numbers:
            self.add((item,))
            return
        outer = self._source_at
        if isinstance(item, Statement):
            self._source_at, row = numbers[0]
            self.provenance.extend((self.statements, source, at) for source, at in numbers[1:])
            self.add((item if item.row == row else replace(item, row=row),))
        else:
            for self._source_at, row in numbers:
                self.add((item if item.row == row else replace(item, row=row),))
        self._source_at = outer

    def _flush(self) -> None:
        """Turn the single statements gathered so far into chunks."""
        pending = self._pending
        if not pending:
            return
        texts, entities = self.texts, self.entities
        relations: list[tuple[int, int, int, int, int, int]] = []
        attributes: list[tuple[int, int, int, int, int, int]] = []
        objects: list[Ref | Value] = []
        owners: list[int] = []
        keys: list[int] = []
        values: list[Ref | Value] = []
        for sid, source, statement in pending:
            thing = statement.object
            if isinstance(thing, Ref):
                relations.append(
                    (sid, texts[statement.predicate], entities[statement.subject], entities[thing.id], statement.row, source)
                )
            else:
                raw = -1 if statement.raw is None else texts[statement.raw]
                if isinstance(thing, str) and (plain := collapse(thing)) != thing:
                    # Texts compare with their white space collapsed; how it stood is kept beside.
                    raw, thing = (texts[thing] if raw < 0 else raw), plain
                attributes.append((sid, texts[statement.predicate], entities[statement.subject], raw, statement.row, source))
                objects.append(thing)
            for key, value in statement.qualifiers:
                owners.append(sid)
                keys.append(texts[key])
                values.append(value)
        pending.clear()
        if relations:
            columns = np.array(relations, np.int32).T
            self.relations.append(dict(zip(("sid", "p", "s", "o", "row", "src"), columns, strict=True)))
        if attributes:
            columns = np.array(attributes, np.int32).T
            cells = encode_values(objects, texts.__getitem__, entities.__getitem__)
            self.attributes.append(dict(zip(("sid", "p", "s", "raw", "row", "src"), columns, strict=True)) | cells)
        if owners:
            self._qualify(np.array(owners, np.int32), np.array(keys, np.int32), self._encode(values))

    def _encode(self, values: list[Ref | Value]) -> CellColumns:
        return encode_values(values, self.texts.__getitem__, self.entities.__getitem__)

    def _chunk(self, family: list[_Chunk], chunk: _Chunk) -> None:
        chunk["src"] = np.full(len(chunk["sid"]), self._current(), np.int32)
        family.append(chunk)

    def _qualify(self, owners: NDArray[np.int32], keys: NDArray[np.int32], cells: CellColumns) -> None:
        self.qualifiers.append({"sid": owners, "key": keys, **cells})

    def _numbers(self, index: defaultdict[str, int], names: Sequence[str]) -> NDArray[np.int32]:
        return np.fromiter(map(index.__getitem__, names), np.int32, len(names))

    def _add_batch(self, batch: Batch) -> None:
        n = len(batch)
        if not n:
            return
        self._flush()
        sid = np.arange(self.statements, self.statements + n, dtype=np.int32)
        self.statements += n
        one = isinstance(batch.predicates, str)
        chunk: _Chunk = {
            "sid": sid,
            "p": np.full(n, self.texts[batch.predicates], np.int32)  # type: ignore[index]
            if one
            else self._numbers(self.texts, batch.predicates),
            "s": self._numbers(self.entities, batch.subjects),
            "row": np.asarray(batch.rows, np.int32),
        }
        raw = (
            np.full(n, -1, np.int32)
            if batch.raws is None
            else np.array([-1 if text is None else self.texts[text] for text in batch.raws], np.int32)
        )
        objects = batch.objects
        if isinstance(objects, (Texts, Values)):
            for i, value in enumerate(objects.texts if isinstance(objects, Texts) else objects.values):
                if isinstance(value, str) and raw[i] < 0 and collapse(value) != value:
                    raw[i] = self.texts[value]
        if isinstance(objects, Ids):
            self._chunk(self.relations, chunk | {"o": self._numbers(self.entities, objects.ids)})
        else:
            cells = encode_column(
                objects, lambda texts: self._numbers(self.texts, texts), self.texts.__getitem__, self.entities.__getitem__
            )
            if isinstance(objects, Values) and (cells["kind"] == 3).any():
                self._split(chunk, raw, cells)
            else:
                self._chunk(self.attributes, chunk | {"raw": raw} | cells)
        for key, values in batch.qualifiers:
            given = [i for i, value in enumerate(values) if value is not None]
            if given:
                cells = self._encode([value for value in values if value is not None])
                self._qualify(sid[given], np.full(len(given), self.texts[key], np.int32), cells)

    def _split(self, chunk: _Chunk, raw: NDArray[np.int32], cells: CellColumns) -> None:
        """A mixed column: objects that are entities are relations, the others attributes."""
        entity = cells["kind"] == 3
        relations = {name: column[entity] for name, column in chunk.items()}
        self._chunk(self.relations, relations | {"o": cells["ref"][entity]})
        rest = {name: column[~entity] for name, column in chunk.items()}
        rest |= {"raw": raw[~entity]} | {name: cells[name][~entity] for name, _ in PARTS}
        self._chunk(self.attributes, rest)


def gather(chunks: list[_Chunk], names: Sequence[tuple[str, Any]]) -> _Chunk:
    """Join chunks into one column a name; empty columns of the right type where there are no
    chunks.
    """
    return {name: np.concatenate([chunk[name] for chunk in chunks]) if chunks else np.empty(0, dtype) for name, dtype in names}

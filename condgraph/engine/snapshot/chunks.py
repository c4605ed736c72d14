"""Statements as columns while a snapshot is built: chunks of NumPy arrays in load order, of single
statements and of batches.

Texts and entities get numbers in the order they come. Every statement has a number too (`sid`), by
which qualifiers and sources find it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import compress, count, repeat
from operator import is_not
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.facts import Batch, Ids, Raws, Ref, Spelled, Statement, Texts, Values
from condgraph.engine.snapshot.cells import PARTS, CellColumns, encode_column, encode_values
from condgraph.engine.text_bytes import SPARE, put_together
from condgraph.engine.values import Value, collapse

#: Texts of a column that come so often, on average, are looked for among those that are known.
_OFTEN: Final = 16

#: Columns by name, of one length.
Chunk = dict[str, NDArray[Any]]


class Chunks:
    """The statements that were taken so far."""

    def __init__(self) -> None:
        self.texts: defaultdict[str, int] = defaultdict(count().__next__)
        #: Further texts, as bytes back to back with their lengths, by the number of the first of
        #: them; they may be among the others, too. And how many they are.
        self.spelled: list[tuple[int, NDArray[np.uint8], NDArray[np.int64]]] = []
        self.spelled_texts = 0
        self.entities: defaultdict[str, int] = defaultdict(count().__next__)
        self.statements = 0
        self.relations: list[Chunk] = []
        self.attributes: list[Chunk] = []
        self.qualifiers: list[Chunk] = []
        #: Further places of statements: the statement, the source, the row, the raw text (-1: none).
        self.provenance: list[tuple[int, int, int, int]] = []
        #: The same without raw texts, of single statements, and those themselves with their number
        #: and source, until they are turned into chunks.
        self._more: list[tuple[int, int, int]] = []
        self._pending: list[tuple[int, int, Statement]] = []
        #: The subjects that were numbered last.
        self._numbered: tuple[Sequence[str], NDArray[np.int32]] = ((), np.empty(0, np.int32))
        #: The names of rows that were numbered last, which may be the texts of a column as well.
        self._named: tuple[Sequence[str], NDArray[np.int32]] = ((), np.empty(0, np.int32))

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
        raws: dict[int, int] = {}
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
                if raw >= 0 and self._more:
                    raws[sid] = raw
            for key, value in statement.qualifiers:
                owners.append(sid)
                keys.append(texts[key])
                values.append(value)
        pending.clear()
        self.provenance.extend((*place, raws.get(place[0], -1)) for place in self._more)
        self._more.clear()
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

    def _qualify(self, owners: NDArray[np.int32], keys: NDArray[np.int32], cells: CellColumns) -> None:
        self.qualifiers.append({"sid": owners, "key": keys, **cells})

    def _numbers(self, index: defaultdict[str, int], names: Sequence[str]) -> NDArray[np.int32]:
        """The numbers of texts or of entities; new ones get theirs in the order they come."""
        # Each is looked for and put in at once, by its place among all; then places without one are
        # closed up.
        others = self.spelled_texts if index is self.texts else 0
        begin, end = others + len(index), others + len(index) + len(names)
        numbers = np.fromiter(map(index.setdefault, names, range(begin, end)), np.int32, len(names))
        known = others + len(index)
        if known > begin:
            index.default_factory = count(known).__next__
        if begin < known < end:
            fresh = numbers == np.arange(begin, end)
            later = numbers >= begin
            numbers[later] = (begin - 1 + np.cumsum(fresh, dtype=np.int32))[numbers[later] - begin]
            index.update(zip(compress(names, fresh), range(begin, known), strict=True))
        return numbers

    def _text_numbers(self, texts: Sequence[str]) -> NDArray[np.int32]:
        """The numbers of texts that are no predicates. Of those that are bytes, each is taken once;
        where they rarely come again, they are not looked for among the others, which the pool does.
        """
        if texts is self._named[0]:
            return self._named[1]
        found = texts.sorted() if isinstance(texts, Spelled) else None
        if found is None:
            return self._numbers(self.texts, texts)
        assert isinstance(texts, Spelled)
        (data, begins, lengths), (order, fresh) = texts.utf8(), found
        once = order[fresh]
        bare, sizes = put_together(data, begins[once], lengths[once])[:-SPARE], lengths[once]
        if _OFTEN * len(once) <= len(order):
            whole, ends = bare.tobytes(), np.cumsum(sizes)
            pairs = zip((ends - sizes).tolist(), ends.tolist(), strict=True)
            each = self._numbers(self.texts, [whole[low:high].decode() for low, high in pairs])
        else:
            first = len(self.texts) + self.spelled_texts
            self.spelled.append((first, bare, sizes))
            self.spelled_texts += len(once)
            self.texts.default_factory = count(first + len(once)).__next__
            each = np.arange(first, first + len(once), dtype=np.int32)
        numbers = np.empty(len(order), np.int32)
        numbers[order] = each[np.cumsum(fresh) - 1]
        return numbers

    def _subjects(self, ids: Sequence[str]) -> NDArray[np.int32]:
        """The numbers of entities; those of one tuple, the rows of a chunk, are looked up once."""
        if ids is not self._numbered[0]:
            numbers = self._numbers(self.entities, ids)
            if not isinstance(ids, tuple):
                return numbers
            self._numbered = ids, numbers
        return self._numbered[1]

    def _add_batch(self, batch: Batch, source: int) -> None:
        """Take the statements of a batch, which come from this source."""
        n = len(batch)
        self._flush()
        sid = np.arange(self.statements, self.statements + n, dtype=np.int32)
        self.statements += n
        one = isinstance(batch.predicates, str)
        chunk: Chunk = {
            "sid": sid,
            "p": np.full(n, self.texts[batch.predicates], np.int32)  # type: ignore[index]
            if one
            else self._numbers(self.texts, batch.predicates),
            "s": self._subjects(batch.subjects),
            "row": np.asarray(batch.rows, np.int32),
            "src": np.full(n, source, np.int32),
        }
        raw = np.full(n, -1, np.int32)
        if isinstance(batch.raws, Raws):
            raw[batch.raws.at] = self._text_numbers(batch.raws.texts)
        elif batch.raws is not None:
            differs = np.fromiter(map(is_not, batch.raws, repeat(None)), bool, n)
            raw[differs] = self._numbers(self.texts, [text for text in batch.raws if text is not None])
        objects = batch.objects
        if isinstance(objects, Values) or (isinstance(objects, Texts) and not objects.collapsed):
            for i, value in enumerate(objects.texts if isinstance(objects, Texts) else objects.values):
                if isinstance(value, str) and raw[i] < 0 and collapse(value) != value:
                    raw[i] = self.texts[value]
        if isinstance(objects, Ids):
            self.relations.append(chunk | {"o": self._numbers(self.entities, objects.ids)})
        else:
            cells = encode_column(objects, self._text_numbers, self.texts.__getitem__, self.entities.__getitem__)
            if isinstance(objects, Values) and (cells["kind"] == 3).any():
                self._split(chunk, raw, cells)
            else:
                self.attributes.append(chunk | {"raw": raw} | cells)
        for key, values in batch.qualifiers:
            given = [i for i, value in enumerate(values) if value is not None]
            if given:
                cells = self._encode([value for value in values if value is not None])
                self._qualify(sid[given], np.full(len(given), self.texts[key], np.int32), cells)

    def _split(self, chunk: Chunk, raw: NDArray[np.int32], cells: CellColumns) -> None:
        """A mixed column: objects that are entities are relations, the others attributes."""
        entity = cells["kind"] == 3
        relations = {name: column[entity] for name, column in chunk.items()}
        self.relations.append(relations | {"o": cells["ref"][entity]})
        rest = {name: column[~entity] for name, column in chunk.items()}
        rest |= {"raw": raw[~entity]} | {name: cells[name][~entity] for name, _ in PARTS}
        self.attributes.append(rest)


def gather(chunks: list[Chunk], names: Sequence[tuple[str, Any]]) -> Chunk:
    """Join chunks into one column a name; empty columns of the right type where there are no
    chunks.
    """
    return {name: np.concatenate([chunk[name] for chunk in chunks]) if chunks else np.empty(0, dtype) for name, dtype in names}

"""The statements of a snapshot as lines of RDF, read from its columns many at a time.

What is written of a statement is made as one text, and a value is read once, so that a line costs
no object of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.facts import Ref
from condgraph.engine.identity import statement_ids
from condgraph.engine.snapshot.cells import PARTS, decode_values
from condgraph.engine.snapshot.readback import further_sources, place_raws
from condgraph.engine.values import Kind
from condgraph.sparql.layout import LABEL, RECORD, STATEMENT, VALUE, encode, value_name, value_triples
from condgraph.sparql.literals import integer, string

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from condgraph.engine.snapshot.cells import CellColumns
    from condgraph.engine.snapshot.named import Numbers
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Statements that are read together.
_TOGETHER: Final = 20_000


def statements(snapshot: Snapshot, base: str, nodes: Sequence[str], sources: Sequence[str], end: str) -> Iterator[str]:
    """What is said of predicates and statements: texts of whole lines, each line with `end`.

    `nodes` are the IRIs of the entities and `sources` those of the sources, by their numbers.
    """
    names = list(map(snapshot.predicate_name, range(snapshot.predicate_count)))
    predicates = [f"<{base}{encode(name)}>" for name in names]
    for node, name in zip(predicates, names, strict=True):
        yield f"{node} {LABEL} {string(name)}{end}"
    sids, raws, validity = statement_ids(snapshot).view(np.uint64), place_raws(snapshot), _validity(snapshot)
    values, said = _Values(snapshot, base, nodes, end), [f" <pred:source> {node}{end}" for node in sources]
    for start in range(0, snapshot.statements, _TOGETHER):
        numbers = np.arange(start, min(start + _TOGETHER, snapshot.statements), dtype=np.int32)
        things, raw = _objects(snapshot, numbers, values)
        qualifiers, further = _qualifiers(snapshot, numbers, values, predicates), further_sources(snapshot, numbers)
        columns = (sids[numbers], snapshot.subjects(numbers), snapshot.predicates(numbers), snapshot.source.take(numbers))
        rows = snapshot.row.take(numbers).tolist()
        for at, (sid, subject, predicate, first) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            node, h, r, t = f"<{base}{STATEMENT}{sid:016x}>", nodes[subject], predicates[predicate], things[at]
            text = f"{h} {r} {t}{end}{node} <pred:fact_h> {h}{end}{node} <pred:fact_r> {r}{end}{node} <pred:fact_t> {t}{end}"
            more = values.said(t)
            for key, value in qualifiers.get(at, ()):
                text += f"{node} {key} {value}{end}"
                more += values.said(value)
            text += more
            if raw[at] >= 0:
                text += f"{node} <pred:raw> {string(snapshot.texts[raw[at]])}{end}"
            if start + at in raws:
                text += f"{node} <pred:raws> {string(json.dumps(raws[start + at], ensure_ascii=False))}{end}"
            if start + at in validity:
                begin, stop = validity[start + at]
                text += f"{node} <pred:valid_start> {integer(begin)}{end}{node} <pred:valid_end> {integer(stop)}{end}"
            text += f"{node}{said[first]}"
            if at in further:
                yield text + _records(node, f"<{base}{RECORD}{sid:016x}.", [(first, rows[at]), *further[at]], said, end)
            else:
                yield f"{text}{node} <pred:row> {integer(rows[at])}{end}" if rows[at] else text


def _validity(snapshot: Snapshot) -> dict[int, tuple[int, int]]:
    """From when until when the statements are valid that have a validity, in seconds."""
    stated, *times = (snapshot.arrays.get(f"val.{name}").tolist() for name in ("stmt", "start", "end"))
    return dict(zip(stated, zip(*times, strict=True), strict=True))


def _objects(snapshot: Snapshot, numbers: Numbers, values: _Values) -> tuple[list[str], list[int]]:
    """The node of each statement's object, and the number of its raw text (-1: none)."""
    get, split = snapshot.arrays.get, snapshot.split(numbers)
    attributes = numbers[split:] - np.int32(snapshot.relations)
    things = [values.entities[number] for number in snapshot.relation_object.take(numbers[:split]).tolist()]
    things += values.nodes({name: get(f"att.{name}").take(attributes) for name, _ in PARTS})
    written = get("att.raw")
    return things, [-1] * split + (written.take(attributes).tolist() if len(written) else [-1] * len(attributes))


def _qualifiers(
    snapshot: Snapshot, numbers: Numbers, values: _Values, predicates: Sequence[str]
) -> dict[int, list[tuple[str, str]]]:
    """The qualifiers of statements by their position: the nodes of keys and values."""
    get = snapshot.arrays.get
    positions, found = snapshot.qualifiers(numbers)
    keys = get("q.key").take(found).tolist()
    stated = values.nodes({name: get(f"q.{name}").take(found) for name, _ in PARTS})
    qualifiers: dict[int, list[tuple[str, str]]] = {}
    for position, key, value in zip(positions.tolist(), keys, stated, strict=True):
        qualifiers.setdefault(position, []).append((predicates[key], value))
    return qualifiers


def _records(node: str, record: str, places: Sequence[tuple[int, int]], said: Sequence[str], end: str) -> str:
    """The sources of a statement beyond the first, and each of its places as a record."""
    text = "".join(f"{node}{said[source]}" for source in list(dict.fromkeys(source for source, _ in places))[1:])
    for i, (source, row) in enumerate(places):
        text += f"{node} <pred:record> {record}{i}>{end}{record}{i}>{said[source]}{record}{i}> <pred:row> {integer(row)}{end}"
    return text


class _Values:
    """The nodes of values, by their cells. What is said of a value stands where it is met first."""

    def __init__(self, snapshot: Snapshot, base: str, entities: Sequence[str], end: str) -> None:
        self._snapshot, self._base, self._end = snapshot, base, end
        self.entities = entities
        #: Equal values of a snapshot have equal cells.
        self._known: dict[bytes, str] = {}
        self._unsaid: dict[str, str] = {}

    def nodes(self, cells: CellColumns) -> list[str]:
        """The node of each cell."""
        packed: NDArray[Any] = np.empty(len(cells["kind"]), [(name, kind) for name, kind in PARTS])
        for name, _ in PARTS:
            packed[name] = cells[name]
        keys: list[bytes] = packed.view(f"V{packed.dtype.itemsize}").tolist()
        self._learn(keys, cells)
        found = [self._known.get(key, "") for key in keys]
        for at in np.flatnonzero(cells["kind"] == Kind.ENTITY).tolist():
            found[at] = self.entities[cells["ref"][at]]
        return found

    def _learn(self, keys: list[bytes], cells: CellColumns) -> None:
        """Give a node to each value that has none."""
        known, kinds = self._known, cells["kind"].tolist()
        fresh = {key: at for at, key in enumerate(keys) if key not in known and kinds[at] != Kind.ENTITY}
        places = np.fromiter(fresh.values(), np.int64, len(fresh))
        some = {name: column[places] for name, column in cells.items()}
        texts, ident, ordered = self._snapshot.texts, self._snapshot.ident, self._snapshot.inexact
        for key, value in zip(fresh, decode_values(some, texts.__getitem__, ident), strict=True):
            if not isinstance(value, Ref):
                node = known[key] = f"<{self._base}{VALUE}{value_name(value)}>"
                self._unsaid[node] = "".join(f"{line}{self._end}" for line in value_triples(node, value, ordered=ordered))

    def said(self, node: str) -> str:
        """What is said of a value, the first time it is asked; nothing later, and of an entity."""
        return self._unsaid.pop(node, "")

"""Statements of a graph as triples: the updates that write them to a store, and files in N-Quads or Turtle."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.facts import Ref
from condgraph.engine.identity import statement_ids
from condgraph.engine.iris import MAX_NAME, PRED, RDF, RDFS, VALUE, XSD, encode, value_name
from condgraph.engine.snapshot.build import texts_of
from condgraph.engine.snapshot.cells import PARTS, decode_values
from condgraph.engine.snapshot.readback import further_sources, place_raws
from condgraph.engine.values import Kind
from condgraph.sparql import layout
from condgraph.sparql.dialect import cut

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from condgraph.engine.snapshot.cells import CellColumns
    from condgraph.engine.snapshot.snapshot import Numbers, Snapshot


# -- statements --------------------------------------------------------------------------------------
# The statements of a snapshot as lines of RDF, read from its columns in bulk. The lines of a statement
# are built as one text, and a value is read once, so that a line needs no object of its own.


#: Statements that are read together.
_TOGETHER: Final = 20_000


def statements(snapshot: Snapshot, base: str, nodes: Sequence[str], sources: Sequence[str], end: str) -> Iterator[str]:
    """Yield the triples of predicates and statements: texts of whole lines, each ending in `end`.

    `nodes` are the IRIs of the entities and `sources` those of the sources, by number.
    """
    names = list(map(snapshot.predicate_name, range(snapshot.predicate_count)))
    predicates = [f"<{base}{encode(name)}>" for name in names]
    for node, name in zip(predicates, names, strict=True):
        yield f"{node} {layout.LABEL} {layout.string(name)}{end}"
    sids, raws, validity = statement_ids(snapshot).view(np.uint64), place_raws(snapshot), _validity(snapshot)
    values, source_lines = _Values(snapshot, base, nodes, end), [f" <pred:source> {node}{end}" for node in sources]
    for start in range(0, snapshot.statements, _TOGETHER):
        numbers = np.arange(start, min(start + _TOGETHER, snapshot.statements), dtype=np.int32)
        things, raw = _objects(snapshot, numbers, values)
        qualifiers, further = _qualifiers(snapshot, numbers, values, predicates), further_sources(snapshot, numbers)
        columns = (sids[numbers], snapshot.subjects(numbers), snapshot.predicates(numbers), snapshot.source.take(numbers))
        rows = snapshot.row.take(numbers).tolist()
        for index, (sid, subject, predicate, first) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            node, h, r, t = f"<{base}{layout.STATEMENT}{sid:016x}>", nodes[subject], predicates[predicate], things[index]
            text = f"{h} {r} {t}{end}{node} <pred:fact_h> {h}{end}{node} <pred:fact_r> {r}{end}{node} <pred:fact_t> {t}{end}"
            value_lines = values.said(t)
            for key, value in qualifiers.get(index, ()):
                text += f"{node} {key} {value}{end}"
                value_lines += values.said(value)
            text += value_lines
            if raw[index] >= 0:
                text += f"{node} <pred:raw> {layout.string(snapshot.texts[raw[index]])}{end}"
            if start + index in raws:
                text += f"{node} <pred:raws> {layout.string(json.dumps(raws[start + index], ensure_ascii=False))}{end}"
            if start + index in validity:
                begin, stop = validity[start + index]
                text += f"{node} <pred:valid_start> {layout.integer(begin)}{end}{node} <pred:valid_end> {layout.integer(stop)}{end}"
            text += f"{node}{source_lines[first]}"
            if index in further:
                yield text + _records(
                    node, f"<{base}{layout.RECORD}{sid:016x}.", [(first, rows[index]), *further[index]], source_lines, end
                )
            else:
                yield f"{text}{node} <pred:row> {layout.integer(rows[index])}{end}" if rows[index] else text


def _validity(snapshot: Snapshot) -> dict[int, tuple[int, int]]:
    """Return the validity (from, until) of statements that have one, in seconds."""
    stated, *times = (snapshot.arrays.get(f"val.{name}").tolist() for name in ("stmt", "start", "end"))
    return dict(zip(stated, zip(*times, strict=True), strict=True))


def _objects(snapshot: Snapshot, numbers: Numbers, values: _Values) -> tuple[list[str], list[int]]:
    """Return the node of each statement's object, and the number of its raw text (-1: none)."""
    get, split = snapshot.arrays.get, snapshot.split(numbers)
    attributes = numbers[split:] - np.int32(snapshot.relations)
    things = [values.entities[number] for number in snapshot.relation_object.take(numbers[:split]).tolist()]
    things += values.nodes({name: get(f"att.{name}").take(attributes) for name, _ in PARTS})
    raws = get("att.raw")
    return things, [-1] * split + (raws.take(attributes).tolist() if len(raws) else [-1] * len(attributes))


def _qualifiers(
    snapshot: Snapshot, numbers: Numbers, values: _Values, predicates: Sequence[str]
) -> dict[int, list[tuple[str, str]]]:
    """Return the qualifiers of statements by position: nodes of keys and values."""
    get = snapshot.arrays.get
    positions, indices = snapshot.qualifiers(numbers)
    keys = get("q.key").take(indices).tolist()
    value_nodes = values.nodes({name: get(f"q.{name}").take(indices) for name, _ in PARTS})
    qualifiers: dict[int, list[tuple[str, str]]] = {}
    for position, key, value in zip(positions.tolist(), keys, value_nodes, strict=True):
        qualifiers.setdefault(position, []).append((predicates[key], value))
    return qualifiers


def _records(node: str, record: str, places: Sequence[tuple[int, int]], said: Sequence[str], end: str) -> str:
    """Return the further sources of a statement, and each of its places as a record."""
    text = "".join(f"{node}{said[source]}" for source in list(dict.fromkeys(source for source, _ in places))[1:])
    for i, (source, row) in enumerate(places):
        text += (
            f"{node} <pred:record> {record}{i}>{end}{record}{i}>{said[source]}{record}{i}> <pred:row> {layout.integer(row)}{end}"
        )
    return text


class _Values:
    """The nodes of values, by their cells. The triples of a value are written at its first use."""

    def __init__(self, snapshot: Snapshot, base: str, entities: Sequence[str], end: str) -> None:
        self._snapshot, self._base, self._end = snapshot, base, end
        self.entities = entities
        #: Equal values of a snapshot have equal cells.
        self._known: dict[bytes, str] = {}
        self._unsaid: dict[str, str] = {}

    def nodes(self, cells: CellColumns) -> list[str]:
        """Return the node of each cell."""
        packed: NDArray[Any] = np.empty(len(cells["kind"]), [(name, kind) for name, kind in PARTS])
        for name, _ in PARTS:
            packed[name] = cells[name]
        keys: list[bytes] = packed.view(f"V{packed.dtype.itemsize}").tolist()
        self._learn(keys, cells)
        result = [self._known.get(key, "") for key in keys]
        for index in np.flatnonzero(cells["kind"] == Kind.ENTITY).tolist():
            result[index] = self.entities[cells["ref"][index]]
        return result

    def _learn(self, keys: list[bytes], cells: CellColumns) -> None:
        """Create nodes for new values."""
        known, kinds = self._known, cells["kind"].tolist()
        fresh = {key: index for index, key in enumerate(keys) if key not in known and kinds[index] != Kind.ENTITY}
        places = np.fromiter(fresh.values(), np.int64, len(fresh))
        columns = {name: column[places] for name, column in cells.items()}
        texts, ident, ordered = self._snapshot.texts, self._snapshot.ident, self._snapshot.inexact
        for key, value in zip(fresh, decode_values(columns, texts.__getitem__, ident), strict=True):
            if not isinstance(value, Ref):
                node = known[key] = f"<{self._base}{VALUE}{value_name(value)}>"
                self._unsaid[node] = "".join(f"{line}{self._end}" for line in layout.value_triples(node, value, ordered=ordered))

    def said(self, node: str) -> str:
        """Return the triples of a value at the first call; nothing later, and nothing for an entity."""
        return self._unsaid.pop(node, "")


# -- everything --------------------------------------------------------------------------------------


#: Texts in a batch, each the lines of a statement, or one line of an entity.
BATCH: Final = 8_000


def triples(snapshot: Snapshot, base: str, *, graph: str = "default") -> Iterator[str]:
    """Yield everything in the snapshot as `subject predicate object` without the final dot.

    The graph's own node comes last, so that a reader who finds it finds everything.
    """
    for lines in _written(snapshot, base, graph, "\n"):
        yield from lines.split("\n")[:-1]


def quads(snapshot: Snapshot, base: str, *, graph: str = "default") -> Iterator[str]:
    """Yield everything in the named graph `base`, as batches of N-Quads lines, each a text that ends with a newline."""
    return _batches(_written(snapshot, base, graph, f" <{base}> .\n"))


def ntriples(snapshot: Snapshot, base: str, *, graph: str = "default") -> Iterator[str]:
    """Yield everything without a named graph, as batches of N-Triples lines."""
    return _batches(_written(snapshot, base, graph, " .\n"))


def _batches(found: Iterator[str]) -> Iterator[str]:
    while batch := "".join(islice(found, BATCH)):
        yield batch


def _written(snapshot: Snapshot, base: str, graph: str, end: str) -> Iterator[str]:
    """Yield texts of one or several related lines, each ending in `end`. No term contains a newline."""
    names = layout.GraphIris(base)
    nodes, sources = _entity_nodes(snapshot, names), _source_nodes(snapshot, names)
    for lines in (_sources(snapshot, names), _entities(snapshot, nodes, sources), _concepts(snapshot, names, nodes, sources)):
        yield from (f"{line}{end}" for line in lines)
    yield from statements(snapshot, base, nodes, sources, end)
    node = names.graph
    yield f"{node} {layout.TYPE} <pred:Graph>{end}"
    yield f"{node} <pred:label> {layout.string(graph)}{end}"
    yield f"{node} <pred:layout> {layout.integer(layout.LAYOUT)}{end}"
    yield f"{node} <pred:declares> {layout.integer(1)}{end}"
    yield f"{node} <pred:counts> {layout.string(json.dumps(counts(snapshot), sort_keys=True))}{end}"


def _sources(snapshot: Snapshot, names: layout.GraphIris) -> Iterator[str]:
    for place in range(len(snapshot.arrays.get("src.name"))):
        source = snapshot.source_of(place)
        node = names.source(source.name)
        yield f"{node} {layout.TYPE} <pred:Source>"
        yield f"{node} <pred:label> {layout.string(source.name)}"
        yield f"{node} <pred:location> {layout.string(source.location)}"
        yield f"{node} <pred:format> {layout.string(source.format)}"
        if source.content:
            yield f"{node} <pred:content> {layout.string(source.content)}"
        if source.terms:
            yield f"{node} <pred:terms> {layout.string(source.terms)}"
        yield f"{node} <pred:place> {layout.integer(place)}"


def _source_nodes(snapshot: Snapshot, names: layout.GraphIris) -> list[str]:
    return [names.source(snapshot.source_of(i).name) for i in range(len(snapshot.arrays.get("src.name")))]


def _entity_nodes(snapshot: Snapshot, names: layout.GraphIris) -> list[str]:
    base = names.base
    return [f"<{base}{encode(ident)}>" for ident in snapshot.texts.take(snapshot.entity_id)]


def _entities(snapshot: Snapshot, nodes: list[str], sources: list[str]) -> Iterator[str]:
    places, rows = snapshot.arrays.get("ent.source"), snapshot.arrays.get("ent.row")
    classes = {int(kind): f" {layout.TYPE} <pred:{name}>" for kind, name in layout.ENTITY_CLASSES.items()}
    called = snapshot.texts.take(snapshot.entity_name)
    kinds = snapshot.entity_kind.tolist()
    positions, declared = _positions(snapshot), texts_of(snapshot)
    for number, (node, name, kind) in enumerate(zip(nodes, called, kinds, strict=True)):
        yield node + classes[kind]
        yield f"{node} <pred:name> {layout.string(name)}"
        if number in positions:
            yield f"{node} <pred:source> {sources[int(places[number])]}"
            yield f"{node} <pred:row> {layout.integer(int(rows[number]))}"
            yield f"{node} <pred:position> {layout.integer(positions[number])}"
        if number in declared:
            yield f"{node} <pred:declared> {layout.string(declared[number])}"


def _positions(snapshot: Snapshot) -> dict[int, int]:
    """Return the 1-based position of each table row among the rows of its source, whose row numbers may have gaps."""
    keys, entities = snapshot.arrays.get("row.key"), snapshot.arrays.get("row.entity")
    if not len(keys):
        return {}
    # Rows with equal numbers share the position of the first one.
    first = np.searchsorted(keys, keys)
    begin = np.searchsorted(keys, keys >> 32 << 32)
    return dict(zip(entities.tolist(), (first - begin + 1).tolist(), strict=True))


def _concepts(snapshot: Snapshot, names: layout.GraphIris, nodes: list[str], sources: list[str]) -> Iterator[str]:
    get = snapshot.arrays.get
    offsets, items = get("con.offsets").tolist(), get("con.items")
    for index, concept in enumerate(get("con.entity").tolist()):
        of = f" <pred:instance_of> {nodes[concept]}"
        for entity in items[offsets[index] : offsets[index + 1]].tolist():
            yield nodes[entity] + of
    for kind, prefix, first, second, words in (
        (layout.MEMBER, "mem", "e", "c", ("Membership", "member", "concept")),
        (layout.SUBCLASS, "sub", "c", "p", ("Subclassing", "subclass", "superclass")),
    ):
        columns = [get(f"{prefix}.{name}").tolist() for name in (first, second, "src", "row")]
        for left, right, source, row in zip(*columns, strict=True):
            node = names.stated(kind, nodes[left], nodes[right], sources[source], row)
            if kind is layout.SUBCLASS:
                yield f"{nodes[left]} <pred:subclass_of> {nodes[right]}"
            yield f"{node} {layout.TYPE} <pred:{words[0]}>"
            yield f"{node} <pred:{words[1]}> {nodes[left]}"
            yield f"{node} <pred:{words[2]}> {nodes[right]}"
            yield f"{node} <pred:source> {sources[source]}"
            if row:
                yield f"{node} <pred:row> {layout.integer(row)}"


def counts(snapshot: Snapshot) -> dict[str, int]:
    """Return the counts of the snapshot, and those that help the compiler: raw texts, validities and long texts."""
    get = snapshot.arrays.get
    raws = get("att.raw")
    # A character takes between one and twelve bytes. A number and its unit share a name, so half the
    # length counts as long for them.
    encoded = (encode(text) for text in snapshot.texts.take(snapshot.texts.longer(MAX_NAME // 24)))
    return {
        **snapshot.counts,
        "raws": int((raws >= 0).sum()) if len(raws) else 0,
        "validities": len(get("val.stmt")),
        "long": sum(1 for text in encoded if len(text) * 2 + 8 > MAX_NAME),
    }


def count(snapshot: Snapshot, base: str) -> int:
    """Count the triples of a snapshot, with repetitions."""
    return sum(1 for _ in chain(triples(snapshot, base)))


# -- files -------------------------------------------------------------------------------------------
# N-Quads with the graph's IRI as named graph, or readable Turtle.


#: Syntaxes that `export` writes.
SYNTAXES: Final = ("turtle", "nquads")
_BATCH: Final = 10_000


def write_file(snapshot: Snapshot, file: IO[str], syntax: str, *, graph: str, base: str | None = None) -> int:
    """Write everything in the snapshot in the layout of `layout`; return the number of triples."""
    base = base or layout.base_iri(graph)
    written = 0
    if syntax == "nquads":
        for batch in quads(snapshot, base, graph=graph):
            file.write(batch)
            written += batch.count(" .\n")
        return written
    file.write(
        f"@base <{base}> .\n@prefix pred: <{PRED}> .\n@prefix rdf: <{RDF}> .\n@prefix rdfs: <{RDFS}> .\n@prefix xsd: <{XSD}> .\n"
    )
    for lines in cut(triples(snapshot, base, graph=graph), _BATCH):
        file.write("".join(turtle(lines, base)))
        written += len(lines)
    return written


def turtle(lines: list[str], base: str) -> Iterator[str]:
    """Yield triples as Turtle, grouping consecutive ones with the same subject.

    >>> print("".join(turtle(['<http://x/a> <http://x/b> "c"', '<http://x/a> <pred:name> "a"'], "http://x/")).strip())
    <a> <b> "c" ;
        pred:name "a" .
    """
    before = ""
    for line in lines:
        subject, predicate, thing = line.split(" ", 2)
        predicate_object = f"{_term(predicate, base)} {_term(thing, base)}"
        yield (
            f" ;\n    {predicate_object}"
            if subject == before
            else f"{' .' if before else ''}\n{_term(subject, base)} {predicate_object}"
        )
        before = subject
    if before:
        yield " .\n"


_TYPE: Final = f"<{RDF}type>"
_SHORT: Final = {f"<{RDFS}label>": "rdfs:label", _TYPE: "a"}


def _term(term: str, base: str) -> str:
    if term.startswith("<"):
        if term.startswith(base, 1):
            return f"<{term[len(base) + 1 :]}"
        if term.startswith(PRED, 1):
            return term[1:-1]
        return _SHORT.get(term, term)
    text, mark, datatype = term.rpartition(f'"^^<{XSD}')
    return f'{text}"^^xsd:{datatype[:-1]}' if mark else term

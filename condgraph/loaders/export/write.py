"""Writing condgraph's export; `read` describes it and reads it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import chain
from typing import IO, Any, Final

from condgraph.engine.errors import LoadError
from condgraph.engine.facts import (
    MANY,
    Batch,
    Column,
    Entity,
    EntityKind,
    Ids,
    Item,
    Many,
    Member,
    Numbers,
    Ref,
    Rows,
    Source,
    Sourced,
    Statement,
    Subclass,
    Texts,
    Times,
)
from condgraph.engine.values import NO_UNIT, Precision, Quantity, Time, Value

#: The version of the export that is written, and the newest that is read.
VERSION: Final = 1


def header(graph: str, sources: Iterable[Source]) -> str:
    """The first line of an export, without its line end."""
    listed = [_source_record("name", one) for one in sources]
    return _dump({"condgraph": VERSION, "graph": graph, "sources": listed})


def _source_record(key: str, source: Source) -> dict[str, Any]:
    record = {key: source.name, "location": source.location, "format": source.format}
    further = {"content": source.content, "terms": source.terms}
    return {**record, **{part: text for part, text in further.items() if text}}


def encode(item: Item) -> str:
    """The line of an item, without its line end; a `Batch` gives one line a statement, `Rows` one a
    row, `Members` one a membership.

    Raises `LoadError` for a number that is not finite, which JSON cannot hold.
    """
    if isinstance(item, MANY):
        return "\n".join(map(encode, one_by_one(item)))
    if isinstance(item, Source):
        return _dump(_source_record("source", item))
    if isinstance(item, Sourced):
        return _dump({**_record(item.item), "src": [list(source) for source in item.sources]})
    return _dump(_record(item))


def write(items: Iterable[Item], stream: IO[str], *, graph: str = "") -> int:
    """Write an export: the sources that the items begin with in the header, then a line an item;
    the number of lines written.
    """
    rest = iter(items)
    sources: list[Source] = []
    first: Item | None = None
    for item in rest:
        if not isinstance(item, Source):
            first = item
            break
        sources.append(item)
    stream.write(header(graph, sources) + "\n")
    lines = 1
    for item in chain(() if first is None else (first,), rest):
        if isinstance(item, MANY) and not len(item):
            continue
        if isinstance(item, Sourced) and isinstance(item.item, Entity) and item.item.kind is not EntityKind.ROW:
            # The only source of a graph declares everything.
            only = len(sources) == 1 and item.sources == ((sources[0].name, item.item.row),)
            item = item.item if only else item
        stream.write(encode(item) + "\n")
        lines += len(item) if isinstance(item, MANY) else 1
    return lines


def one_by_one(items: Many) -> Iterator[Item]:
    """What stands side by side, as single items."""
    single: Iterable[Entity | Member | Statement] = (
        statements_of(items) if isinstance(items, Batch) else items.entities() if isinstance(items, Rows) else items.one_by_one()
    )
    for item in single:
        yield Sourced(item, ((items.source, item.row),)) if items.source else item


def statements_of(batch: Batch) -> Iterator[Statement]:
    """The statements of a batch, one by one."""
    objects = list(_objects(batch.objects))
    for at, subject in enumerate(batch.subjects):
        pairs = []
        for key, column in batch.qualifiers:
            value = column[at]
            if value is not None:
                pairs.append((key, value))
        predicate = batch.predicates if isinstance(batch.predicates, str) else batch.predicates[at]
        yield Statement(
            subject,
            predicate,
            objects[at],
            tuple(pairs),
            int(batch.rows[at]),
            None if batch.raws is None else batch.raws[at],
        )


def _objects(column: Column) -> Iterator[Ref | Value]:
    if isinstance(column, Ids):
        yield from map(Ref, column.ids)
    elif isinstance(column, Texts):
        yield from column.texts
    elif isinstance(column, Numbers):
        for number in column.numbers.tolist():
            yield Quantity(number, column.unit)
    elif isinstance(column, Times):
        for start, end, precision in zip(column.starts.tolist(), column.ends.tolist(), column.precisions.tolist(), strict=True):
            yield Time(start, end, Precision(precision))
    else:
        yield from column.values


def _record(item: Entity | Member | Subclass | Statement) -> dict[str, Any]:
    if isinstance(item, Statement):
        record: dict[str, Any] = {"s": item.subject, "p": item.predicate, "o": encode_value(item.object)}
        if item.qualifiers:
            record["q"] = [[key, encode_value(value)] for key, value in item.qualifiers]
        if item.raw is not None:
            record["raw"] = item.raw
    elif isinstance(item, Entity):
        record = {"entity": item.id, "name": item.name}
        if item.kind is not EntityKind.ENTITY:
            record["kind"] = EntityKind(item.kind).name.lower()
    elif isinstance(item, Member):
        record = {"member": item.entity, "of": item.concept}
    else:
        record = {"subclass": item.concept, "of": item.parent}
    if item.row:
        record["row"] = int(item.row)
    return record


def encode_value(value: Ref | Value) -> Any:
    """A value as the JSON the module describes. Raises `LoadError` for a number that is not finite."""
    if isinstance(value, str):
        return value
    if isinstance(value, Ref):
        return {"ref": value.id}
    if isinstance(value, Quantity):
        number = value.number
        # `isfinite` would make a float of a whole number, and some are too large to be one.
        if not (isinstance(number, int) or (number.is_finite() if isinstance(number, Decimal) else math.isfinite(number))):
            raise LoadError(f"{number} is not a finite number, and cannot be exported")
        record: dict[str, Any] = {"n": str(number) if isinstance(number, Decimal) else number}
        if value.unit != NO_UNIT:
            record["u"] = value.unit
        return record
    if isinstance(value, Time):
        text = str(value)
        record = {"t": text, "precision": Precision(value.precision).name.lower()}
        try:
            exact = Time.parse(text) == value
        except ValueError:
            exact = False
        return record if exact else {**record, "start": value.start, "end": value.end}
    return {"unknown": True}


# One encoder for all lines: `json.dumps` with options makes a new one for each.
_dump: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

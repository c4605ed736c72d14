"""Answers to SPARQL programs as terms of RDF, as a store of RDF gives them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import repeat
from typing import Any, cast

from condgraph.engine.facts import Entity
from condgraph.engine.iris import XSD, date_of
from condgraph.engine.records import Evidence
from condgraph.engine.store import KnownSchema, Store
from condgraph.engine.values import NO_UNIT, Quantity, Time
from condgraph.languages.registry import lower, request
from condgraph.languages.sparql.lower import LoweredSparql
from condgraph.languages.sparql.patterns import NODES, Sort
from condgraph.languages.sparql.syntax import beyond
from condgraph.sparql.layout import GraphIris, double, integer, string


@dataclass(frozen=True, slots=True)
class Solutions:
    """What a SELECT gave: names of its columns, and rows of terms as N-Triples writes them, None where nothing
    is bound. `more` says that there are further rows.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    more: bool = False


def solutions_of(store: Store, schema: KnownSchema, text: str, names: GraphIris, most: int | None = None) -> Solutions | bool:
    """The answer of a store to a SELECT, or an ASK (bool), as terms: at most so many rows. Raises as the store and
    the lowering of the text do.
    """
    options = {"base": names.base}
    lowered = cast("LoweredSparql", lower(schema, text, "sparql", options))
    answer = store.answer(request(text, "sparql", None if most is None else most + 1, options))
    if lowered.ask:
        return bool(answer.values[0][0])
    columns = tuple(lowered.sorts)
    sorts = [lowered.sorts[name] for name in columns]
    rows = tuple(tuple(map(_term, row, sorts, repeat(names))) for row in answer.values[:most])
    return Solutions(columns, rows, len(answer.values) > len(rows))


def _term(value: Any, sort: Sort, names: GraphIris) -> str | None:
    if value is None:
        return None
    if isinstance(value, Entity):
        return names.entity(value.id)
    if sort == "predicate":
        return names.predicate(value)
    if isinstance(value, Evidence):
        raise beyond("the node of a statement as a result", "ask for its <pred:fact_h>, <pred:fact_t> and qualifiers")
    if isinstance(value, bool):
        return f'"{str(value).lower()}"^^<{XSD}boolean>' if sort == "boolean" else string(str(value).lower())
    if sort in NODES:
        return names.value(Quantity(value, NO_UNIT) if isinstance(value, int | float | Decimal) else value)
    if isinstance(value, Time):
        return f'"{date_of(value)}"^^<{XSD}date>'
    whole = sort == "integer" or (sort == "number or 0" and isinstance(value, int))
    return string(value) if isinstance(value, str) else integer(value) if whole else double(value)

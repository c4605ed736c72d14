"""What the terms of a result mean in a graph that was written as `layout` says: entities,
predicates by name, values.

A value says itself in the name of its node, and what else is known without asking is not asked for;
the others are looked up, some hundred at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from condgraph.engine.facts import Entity, EntityKind
from condgraph.engine.pieces import watched
from condgraph.sparql.dialect import cut
from condgraph.sparql.layout import ENTITY_CLASSES, PRED, RDF, RDFS, VALUE, GraphIris, value_named
from condgraph.sparql.load.pull import exact_value
from condgraph.sparql.text.table import Blank, Iri, literal

_KINDS: Final = {name: kind for kind, name in ENTITY_CLASSES.items()}
#: Runs a query over the graph: what pyoxigraph's `Store.query` gives.
Runs = Callable[[str], Any]
#: What a node is shown as: in a column of any name, and in one called `p`, where it rather is a
#: predicate.
Cells = tuple[Any, Any]
#: What is known of a node by its IRI; None where it has to be asked for.
Knows = Callable[[str], Cells | None]
_TERMS: Final = (
    f"FILTER(?p IN (<{RDF}type>, <{RDFS}label>, "
    + ", ".join(f"<{PRED}{name}>" for name in ("name", "row", "value", "unit", "exact", "start", "end", "precision"))
    + "))"
)
_VALUES: Final = ("Text", "Quantity", "Time", "Unknown")


@dataclass(frozen=True, slots=True)
class Meaning:
    """How it is found out what nodes mean: by what is known, or by lists of `list_length`
    (`VALUES`, or else `IN`).
    """

    runs: Runs
    names: GraphIris
    list_length: int
    values: bool
    known: Knows | None


def plain(term: Any) -> Any:
    """A term as it is."""
    if term is None:
        return None
    kind = type(term).__name__
    if kind == "NamedNode":
        return Iri(term.value)
    if kind == "BlankNode":
        return Blank(term.value)
    if kind == "Literal":
        return term.value if term.language else literal(term.value, term.datatype.value)
    return str(term)


def meanings(rows: list[tuple[Any, ...]], columns: Sequence[str], how: Meaning) -> tuple[list[tuple[Any, ...]], int]:
    """Rows of terms as rows of what they mean, without those about the layout; how many those are."""
    from pyoxigraph import NamedNode

    if not rows:
        return [], 0
    # A column at a time: most terms of a column are of one kind, and many of them the same.
    terms = list(zip(*rows, strict=True))
    written = [[term.value if type(term) is NamedNode else None for term in column] for column in terms]
    every = {iri for column in written for iri in column if iri is not None}
    meant = _meant(every, how)
    layout = {iri for iri in every if iri.startswith(PRED)}
    read = []
    for name, iris, column in zip(columns, written, terms, strict=True):
        which = int(name == "p")
        if None in iris:
            pairs = zip(iris, column, strict=True)
            read.append([plain(term) if iri is None else meant[iri][which] for iri, term in watched(pairs)])
        else:
            read.append([meant[iri][which] for iri in watched(iris)])
    found = list(zip(*read, strict=True))
    if not layout:
        return found, 0
    whole = [row for row, *iris in zip(found, *written, strict=True) if layout.isdisjoint(iris)]
    return whole, len(found) - len(whole)


def _meant(nodes: set[str], how: Meaning) -> dict[str | None, Cells]:
    """What nodes are."""
    base, known, names = how.names.base, how.known, how.names
    found: dict[str | None, Cells] = {}
    wanted: list[str] = []
    for iri in watched(nodes):
        if iri.startswith(base) and iri != base:
            cells = by_name(iri, names) if known is None else known(iri)
            if cells is None:
                wanted.append(iri)
            else:
                found[iri] = cells
        else:
            found[iri] = (Iri(iri),) * 2
    found.update((iri, (Iri(iri),) * 2) for iri in wanted)
    found.update(asked(wanted, how))
    return found


def asked(wanted: Sequence[str], how: Meaning) -> dict[str, Cells]:
    """What nodes of the graph are, asked of the store; without those that it says nothing of."""
    said: dict[str, dict[str, str]] = {}
    for some in cut(wanted, how.list_length):
        iris = [f"<{iri}>" for iri in some]
        among = f"VALUES ?v {{ {' '.join(iris)} }}" if how.values else f"FILTER(?v IN ({', '.join(iris)}))"
        for row in watched(how.runs(f"SELECT ?v ?p (STR(?x) AS ?o) WHERE {{ {among} ?v ?p ?x . {_TERMS} }}")):
            name, value = row["p"].value.removeprefix(PRED), row["o"].value
            about = said.setdefault(row["v"].value, {})
            if name == f"{RDF}type" and (kind := value.removeprefix(PRED)) in (*_KINDS, *_VALUES):
                about["type"] = kind
            else:
                about["label" if name == f"{RDFS}label" else name] = value
    return {iri: _one(iri, about, how.names) for iri, about in said.items()}


def by_name(iri: str, names: GraphIris) -> Cells | None:
    """What a node is by its name alone: a value, where the name is not its hash."""
    if not names.is_value(iri):
        return None
    try:
        value = value_named(iri[len(names.base) + len(VALUE) :])
    except (ValueError, ArithmeticError, LookupError):
        return None  # somebody's own IRI
    return None if value is None or names.value(value)[1:-1] != iri else (value, value)


def cells(iri: str, entity: Entity | None, label: str | None) -> Cells:
    """What a node is shown as that is an entity, or a predicate of this name, or both, or neither."""
    if entity is not None:
        return entity, entity if label is None else label
    thing = Iri(iri) if label is None else label
    return thing, thing


def _one(iri: str, about: dict[str, str], names: GraphIris) -> Cells:
    if names.is_value(iri):
        return (exact_value(iri, about, names),) * 2
    kind, entity = _KINDS.get(about.get("type", "")), None
    if kind is not None and "name" in about:
        row = int(about.get("row", "0")) if kind is EntityKind.ROW else 0
        entity = Entity(names.name_of(iri), about["name"], kind, row)
    # A predicate has its name as its label; of an entity, and of the layout's nodes, it says no more
    # than they do themselves.
    label = None if entity is not None and about.get("label") == about["name"] else about.get("label")
    return cells(iri, entity, None if iri.startswith(f"{names.base}.") else label)

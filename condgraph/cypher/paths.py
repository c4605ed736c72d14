"""The access paths of the layout: how the compiler reaches entities, statements, values and qualifiers.

The compiler writes no label, property or pattern of its own; it asks here. A second layout would answer the same questions for a
database that is laid out otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from condgraph.cypher.layout import type_of
from condgraph.cypher.quote import quote
from condgraph.engine.values import Kind

#: What an answer reads of a `Value` or `Qualifier` node.
FIELDS: Final = ("kind", "text", "number", "exact", "unit", "start", "end", "precision", "raw", "id", "held")
_SUFFIX: Final = "' (predicate)'"


def entity(e: str) -> tuple[str, str]:
    """Any entity of the graph: its pattern, and the condition that an index answers."""
    return f"({e}:Entity)", f"{e}.graph = $graph"


def entity_by_id(e: str, ids: str) -> tuple[str, str]:
    """Entities by id, given as a list."""
    return f"({e}:Entity)", f"{e}.graph = $graph AND {e}.id IN {ids}"


def entity_by_key(e: str, key: str) -> tuple[str, str]:
    """Entities and concepts of one name, by its index key."""
    return f"({e}:Entity)", f"{e}.graph = $graph AND {e}.key = {key}"


def named(e: str, test: str) -> str:
    """A condition on the name of an entity that is bound."""
    return f"{e}.graph = $graph AND {e}.key {test}"


def of_kinds(e: str, kinds: str) -> str:
    """A condition on the kind of an entity."""
    return f"{e}.kind IN {kinds}"


def concept(c: str) -> str:
    """A concept."""
    return f"({c}:Concept)"


def members(e: str, c: str, label: str = "") -> str:
    """Entities in a concept, closed under subclass."""
    return f"({e}{label})-[:MEMBER_OF]->({c})"


def is_member(e: str) -> str:
    """A condition: an entity, and no concept."""
    return f"{e}.kind <> 1"


def row(e: str, source: str) -> tuple[str, str]:
    """The rows of a table."""
    return f"({e}:Row)", f"{e}.graph = $graph AND {e}.source = {source} AND {e}.row IS NOT NULL"


def types(predicates: Sequence[str] | None) -> str:
    """The relationship types of predicates."""
    return "" if predicates is None else ":" + "|".join(quote(type_of(name)) for name in predicates)


def values_of(v: str, predicate: str) -> list[str]:
    """Conditions: values of the attributes of a predicate. With a test on them (or `of_kind`) an index answers it."""
    return [f"{v}.graph = $graph", f"{v}.predicate {predicate}"]


#: The properties of values that an index has side by side, by kind.
_INDEXED: Final = {Kind.QUANTITY: ("number", "unit"), Kind.TIME: ("start", "end"), Kind.TEXT: ("key",)}


def of_kind(v: str, kinds: set[Kind]) -> list[str] | None:
    """Conditions that hold of every value of a kind, and that an index has; None where no index has all values of these kinds."""
    names = _INDEXED.get(next(iter(kinds))) if len(kinds) == 1 else None
    return None if names is None else [f"{v}.{name} IS NOT NULL" for name in names]


def by_kind(v: str, kind: Kind) -> str:
    """The hint to take the index of a predicate's values of a kind, without which the planner may take that of all predicates."""
    return f" USING INDEX SEEK {v}:Value(graph, predicate, {', '.join(_INDEXED[kind])})"


def by_row(e: str) -> str:
    """The hint to look up the rows of a table (`row`): by its statistics the planner may go through all of them."""
    return f" USING INDEX SEEK {e}:Row(graph, source, row)"


def is_statement(f: str) -> str:
    """A condition that tells statements from the edges of the layout."""
    return f"{f}.sid IS NOT NULL"


def in_source(source: str, f: str, value: str | None) -> str:
    """A condition: a statement stands in a source; `value` is its object where that may be a value."""
    return f"{source} IN {f}.sources" if value is None else f"{source} IN coalesce({f}.sources, {value}.sources)"


def place(f: str, value: str | None) -> str:
    """Where a statement stands in its first source."""
    return f"{f}.rows[0]" if value is None else f"coalesce({f}.rows, {value}.rows)[0]"


def owner_of_value(v: str) -> str:
    """The node that the qualifiers of an attribute hang on."""
    return f"({v})"


def owner_of_relation(f: str) -> str:
    """The node that the qualifiers of a relation hang on."""
    return f"(:Statement {{graph: $graph, sid: {f}.sid}})"


def qualifier(owner: str, q: str) -> str:
    """The qualifiers of a statement."""
    return f"{owner}-[:QUALIFIER]->({q}:Qualifier)"


def referred(q: str, e: str) -> str:
    """The entity that a qualifier's value is."""
    return f"({q})-[:IS]->({e}:Entity)"


def predicate_name(f: str) -> str:
    """The predicate of a statement as a text."""
    return f"CASE WHEN type({f}) ENDS WITH {_SUFFIX} THEN left(type({f}), size(type({f})) - 12) ELSE type({f}) END"


def entity_cell(e: str) -> str:
    """An entity as a value. `held` tells what an answer lists among its entities."""
    return f"{e} {{kind: 'entity', .key, text: {e}.name, .id, .order, .ranks, held: true}}"


def name_cell(e: str) -> str:
    """The name of an entity as a value."""
    return f"{e} {{kind: 'text', .key, text: {e}.name, .id, .order, .ranks, held: true}}"


def row_cell(e: str) -> str:
    """The number of a row as a value."""
    return f"{{kind: 'quantity', number: toFloat({e}.row), unit: '1', text: toString({e}.row)}}"


def validity_cell(f: str) -> str:
    """When a statement holds, as a value."""
    return f"{{kind: 'time', start: {f}.since, end: {f}.until, precision: {f}.span, text: {f}.valid}}"


def text_cell(text: str) -> str:
    """A text that is no node's as a value."""
    return f"{{kind: 'text', key: {text}, text: {text}}}"


def described(e: str) -> str:
    """An entity with everything that is kept of it."""
    return f"{e} {{.id, .name, .kind, .source, .row}}"


def fields(node: str, *more: str) -> str:
    """A value with everything that is kept of it."""
    return f"{node} {{{', '.join(f'.{name}' for name in (*FIELDS, *more))}}}"

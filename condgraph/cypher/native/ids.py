"""By what nodes are identified and called, as expressions of Cypher, for whatever reads them.

    id    "Label/key" of the first label of a node (by name) that has a unique property, where the
          node has it; else the server's `elementId`, which is not stable
    name  the properties of the first label (by name) that has any of them, joined by a blank; else
          "Label key", else "Label 17", with the number that the server gives the node, "node 17"
          where it has no label

A concept, which is a label, has the id ":Label". The nodes and labels of graphs that condgraph keeps
in the same database are none of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from condgraph.cypher.answer import literal
from condgraph.cypher.layout import schema as own
from condgraph.cypher.layout.schema import quote
from condgraph.cypher.native.mapping import Mapping, NodeType

#: Labels of condgraph's own nodes, by which they are left out.
OWN: Final = frozenset(
    (
        own.ENTITY,
        own.CONCEPT,
        own.ROW,
        own.VALUE,
        own.STATEMENT,
        own.QUALIFIER,
        own.GRAPH,
        own.SOURCE,
        own.PREDICATE,
        own.LOAD,
        own.FORMER,
        own.VECTORS,
        own.EMBEDDING,
    )
)
#: The source of all statements of a database of others.
SOURCE: Final = "neo4j"
_OWN: Final = "|".join(sorted(OWN - {own.CONCEPT, own.ROW}))


def own_only(label: str) -> bool:
    """Whether no node has this label of condgraph's and another one of them that counts it."""
    return label in OWN and label not in (own.CONCEPT, own.ROW)


def foreign(e: str) -> str:
    """A condition: a node is none of condgraph's own."""
    return f"NOT {e}:{_OWN}"


def has_label(e: str, label: str) -> str:
    """A condition: a node has a label; of the empty one, that it has none."""
    return f"{e}:{quote(label)}" if label else f"size(labels({e})) = 0"


def concept_id(label: str) -> str:
    """The id of the concept that a label is."""
    return f":{label}"


def id_of(e: str, mapping: Mapping, labels: Sequence[str] | None = None) -> str:
    """The id of a node, a text. `labels` says that it has one of these and no other that has a
    unique property.
    """
    cases = [
        f"WHEN {has_label(e, node.label)} AND {_whole(e, node.unique)} IS NOT NULL "
        f"THEN {literal(node.label + '/')} + {_whole(e, node.unique)}"
        for node in _among(mapping, labels)
        if node.unique is not None
    ]
    return f"CASE {' '.join(cases)} ELSE elementId({e}) END" if cases else f"elementId({e})"


def name_of(e: str, mapping: Mapping, labels: Sequence[str] | None = None) -> str:
    """The name of a node, a text; `labels` as of `id_of`."""
    chosen, numbered = [], []
    for node in _among(mapping, labels):
        has = has_label(e, node.label)
        if node.name:
            called = joined(e, node.name)
            chosen.append(f"WHEN {has} AND {called} <> '' THEN {called}")
        if node.unique is not None:
            key = _whole(e, node.unique)
            numbered.append(f"WHEN {has} AND {key} IS NOT NULL THEN {literal(node.concept + ' ')} + {key}")
    labelled = [
        f"WHEN {has_label(e, node.label)} THEN {literal(node.concept + ' ')} + {_number(e)}"
        for node in _among(mapping, labels)
        if node.label
    ]
    cases = [*chosen, *numbered, *labelled]
    return f"CASE {' '.join(cases)} ELSE 'node ' + {_number(e)} END" if cases else f"'node ' + {_number(e)}"


def joined(e: str, keys: Sequence[str]) -> str:
    """What the properties of a name are together, a text; empty where the node has none of them."""
    first, *others = (f"coalesce({_whole(e, key)}, '')" for key in keys)
    return f"trim({first}{''.join(f' + {literal(chr(32))} + {other}' for other in others)})" if others else first


def _among(mapping: Mapping, labels: Sequence[str] | None) -> list[NodeType]:
    return [node for node in mapping.nodes if labels is None or node.label in labels]


def _whole(e: str, key: str) -> str:
    return f"toStringOrNull({e}.{quote(key)})"


def _number(e: str) -> str:
    """The number of a node at the end of the server's id."""
    return f"last(split(elementId({e}), ':'))"

"""Makes a graph readable in Neo4j Browser: a style file (GraSS) with captions, colours and sizes, and queries to save.

Browser also reads a style as JSON, in which labels may contain any character. The last of the rules that match a node wins,
so that the rarer of two concepts gives an entity its colour.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from condgraph.cypher.answer import literal
from condgraph.cypher.layout import schema as layout
from condgraph.overview.schema import Overview

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Colours of concepts, far apart in hue; the commonest concept gets the first.
COLOURS: Final = (
    *("#2f6db5", "#d9722b", "#3b8f4e", "#b5413c", "#7c59b0", "#8a6242", "#c861a0", "#5f6b73"),
    *("#9a9a2c", "#2a9aa8", "#e0a12e", "#4f4fa8", "#7aa63c", "#a83a6b", "#58b09a", "#b08968"),
)
#: Styles of the layout's nodes: a colour, and the diameter of the circle. Nodes for a value, a qualifier
#: or a statement are small.
_LAYOUT: Final = {
    layout.ENTITY: ("#6f8296", 50),
    layout.CONCEPT: ("#25384d", 65),
    layout.ROW: ("#56809f", 50),
    layout.VALUE: ("#e5dcc5", 35),
    layout.STATEMENT: ("#b9c2ca", 15),
    layout.QUALIFIER: ("#d5cbe2", 25),
    layout.GRAPH: ("#25384d", 65),
    layout.SOURCE: ("#8d99a3", 50),
    layout.PREDICATE: ("#8d99a3", 50),
}
#: Relationships of the layout, which are drawn faintly.
_QUIET: Final = ("MEMBER_OF", "SUBCLASS_OF", "SUBJECT", "OBJECT", "QUALIFIER", "IS")
#: Number of concepts with a query of their own.
_MAX_CONCEPTS: Final = 5
#: The longest name in a query, in characters: examples are cut at 120.
_MAX_NAME: Final = 119


def style(labels: Iterable[str]) -> str:
    """Return a style file for Neo4j Browser.

    `labels` are those of entities, commonest first; labels beyond `COLOURS` get the colour of entities.
    """
    rules: dict[str, dict[str, str]] = {
        "node": {"diameter": "50px", "border-width": "2px", "font-size": "10px", **_coloured("#a7afb6")},
        "relationship": {
            "color": "#8f979e",
            "shaft-width": "1px",
            "font-size": "8px",
            "padding": "3px",
            "text-color-external": "#000000",
            "text-color-internal": "#FFFFFF",
            "caption": "<type>",
        },
    }
    for label, (colour, diameter) in _LAYOUT.items():
        rules[f"node.{label}"] = {"diameter": f"{diameter}px", "caption": "{name}", **_coloured(colour)}
    for name in _QUIET:
        rules[f"relationship.{name}"] = {"color": "#ced3d7"}
    for label, colour in zip(filter(can_be_coloured, labels), COLOURS, strict=False):
        rules[f"node.{label.replace('.', chr(92) + '.')}"] = _coloured(colour)
    return json.dumps(rules, ensure_ascii=False, indent=2) + "\n"


def can_be_coloured(label: str) -> bool:
    """Tell whether a style can name a label: a backslash would change the name that Browser reads."""
    return "\\" not in label


def _coloured(colour: str) -> dict[str, str]:
    """Return the colours of a circle, its darker border, and a readable caption."""
    parts = [int(colour[index : index + 2], 16) for index in (1, 3, 5)]
    border = "#" + "".join(f"{part * 4 // 5:02x}" for part in parts)
    light = sum(weight * part for weight, part in zip((299, 587, 114), parts, strict=True)) > 150_000
    return {"color": colour, "border-color": border, "text-color-internal": "#2A2C34" if light else "#FFFFFF"}


def queries(schema: Overview, graph: str, labels: Mapping[str, int] | None) -> dict[str, str]:
    """Return queries that show what a graph holds, by title.

    `labels` are those of entities; with None, members of a concept are found through its node.
    """
    own = f"graph: {literal(graph)}"
    result = {
        "Concepts, and how many entities are in each": f"MATCH (c:{layout.CONCEPT} {{{own}}})\n"
        f"OPTIONAL MATCH (c)<-[:MEMBER_OF]-(e:{layout.ENTITY})\n"
        "RETURN c.name AS concept, count(e) AS entities ORDER BY entities DESC, concept LIMIT 100",
        "Predicates, and how many statements and qualifiers have each": f"MATCH (p:{layout.PREDICATE} {{{own}}})\n"
        "RETURN p.name AS predicate, p.relations AS relations, p.attributes AS attributes, p.qualifiers AS qualifiers\n"
        "ORDER BY relations + attributes DESC, predicate LIMIT 100",
        "Which concept is below which": f"MATCH (c:{layout.CONCEPT} {{{own}}})-[r:SUBCLASS_OF]->(d:{layout.CONCEPT}) "
        "RETURN c, r, d LIMIT 100",
    }
    for name in _safe(example.subject for predicate in schema.predicates for example in predicate.examples)[:1]:
        result[f"What is known of {name}"] = (
            f"MATCH (e:{layout.ENTITY} {{{own}, key: {literal(layout.index_key(name))}}})"
            f"-[r]-(other:{layout.ENTITY}|{layout.VALUE})\n"
            "RETURN e, r, other LIMIT 40"
        )
    for name in _safe(labels if labels is not None else (concept.name for concept in schema.concepts))[:_MAX_CONCEPTS]:
        node = (
            f"(e:{layout.quote(name)} {{{own}}})"
            if labels is not None
            else f"(:{layout.CONCEPT} {{{own}, key: {literal(layout.index_key(name))}}})<-[:MEMBER_OF]-(e:{layout.ENTITY})"
        )
        result[f"Entities in {name}, and their relations"] = (
            f"MATCH {node} WITH e LIMIT 25\nOPTIONAL MATCH (e)-[r]->(other:{layout.ENTITY}) WHERE r.sid IS NOT NULL\n"
            "RETURN e, r, other LIMIT 100"
        )
    for name in _safe(item.name for item in schema.predicates if item.relations and item.qualifiers)[:1]:
        result[f"Facts of {name} with their qualifiers"] = (
            f"MATCH (a:{layout.ENTITY} {{{own}}})-[f:{layout.quote(layout.type_of(name))}]->(b:{layout.ENTITY})\n"
            f"MATCH (a)<-[:SUBJECT]-(s:{layout.STATEMENT} {{{own}, sid: f.sid}})-[:QUALIFIER]->(q:{layout.QUALIFIER})\n"
            "RETURN a, f, b, s, q LIMIT 25"
        )
    return result


def _safe(names: Iterable[str]) -> Sequence[str]:
    """Return the names that a title and a query can contain unchanged."""
    return [name for name in dict.fromkeys(names) if name and len(name) <= _MAX_NAME and name.isprintable() and "\\" not in name]

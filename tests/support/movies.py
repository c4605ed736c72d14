"""The Movies database in process, without a server: the graph that its script creates, in the native layout (labels
become concepts, properties attributes, relationships relations with qualifiers).

The script creates nodes with a label and properties, and relationships between nodes by the variables of the script.
Anything else in it is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import condgraph
from condgraph import Entity, EntityKind, Member, Quantity, Ref, Statement
from condgraph.engine.facts import Item
from condgraph.graph import Graph

#: The numbers of nodes and relationships that the script creates on a server.
NODES, RELATIONSHIPS = 171, 253
_TEXT = r"""'[^']*'|"[^"]*\""""
_PROPERTIES = rf"\{{(?P<properties>(?:{_TEXT}|[^{{}}'\"])*)\}}"
_RELATIONSHIP = re.compile(rf"\((?P<start>\w+)\)-\[:(?P<type>\w+)\s*(?:{_PROPERTIES})?\]->\((?P<end>\w+)\)")
_NODE = re.compile(rf"\((?P<name>\w+):(?P<label>\w+)\s*(?:{_PROPERTIES})?\)")
_PROPERTY = re.compile(rf"(\w+)\s*:\s*({_TEXT}|\[(?:{_TEXT}|[\s,])*\]|\d+)")
#: The text allowed between nodes and relationships.
_WORDS = re.compile(r"CREATE|[\s,;]+")
#: The property that identifies a node of each label.
_KEYS = {"Movie": "title", "Person": "name"}


def movies(data: Path) -> Graph:
    """Return the database as a graph in memory; `data` is the folder of data sets."""
    script = (data / "lpg_movies" / "scripts" / "movies.cypher").read_text(encoding="utf-8")
    graph = condgraph.open()
    graph.add(list(_items(script[script.index("CREATE (TheMatrix:") :])), source="neo4j")
    return graph


def _items(script: str) -> Iterator[Item]:
    relationships = list(_RELATIONSHIP.finditer(script))
    without_relationships = _RELATIONSHIP.sub(" ", script)
    nodes = list(_NODE.finditer(without_relationships))
    unread = _WORDS.sub("", _NODE.sub(" ", without_relationships))
    assert not unread, unread[:200]
    assert (len(nodes), len(relationships)) == (NODES, RELATIONSHIPS)
    for label in _KEYS:
        yield Entity(f":{label}", label, EntityKind.CONCEPT)
    ids = {}
    for node in nodes:
        properties, label = dict(_properties(node["properties"])), node["label"]
        (name,) = properties[_KEYS[label]]
        entity_id = ids[node["name"]] = f"{label}/{name}"
        yield Entity(entity_id, str(name))
        yield Member(entity_id, f":{label}")
        for key, values in properties.items():
            yield from (Statement(entity_id, key, value) for value in values)
    for relationship in relationships:
        qualifiers = tuple((key, value) for key, values in _properties(relationship["properties"]) for value in values)
        yield Statement(ids[relationship["start"]], relationship["type"], Ref(ids[relationship["end"]]), qualifiers)


def _properties(text: str | None) -> Iterator[tuple[str, list[str | Quantity]]]:
    for key, value in _PROPERTY.findall(text or ""):
        if value.isdigit():
            yield key, [Quantity(int(value))]
        else:
            yield key, [text_with_quotes[1:-1] for text_with_quotes in re.findall(_TEXT, value)]

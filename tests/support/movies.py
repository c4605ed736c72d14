"""The Movies database in process, without a server: what its script creates, as the native layout
takes it (labels are concepts, properties attributes, relationships relations with qualifiers).

The script creates nodes with a label and properties, and relationships between nodes by the names
that it gives them. Whatever else stands in it is an error here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import condgraph
from condgraph import Entity, EntityKind, Member, Quantity, Ref, Statement
from condgraph.engine.facts import Item
from condgraph.graph import Graph

#: What the script makes on a server.
NODES, RELATIONSHIPS = 171, 253
_TEXT = r"""'[^']*'|"[^"]*\""""
_PROPERTIES = rf"\{{(?P<properties>(?:{_TEXT}|[^{{}}'\"])*)\}}"
_RELATIONSHIP = re.compile(rf"\((?P<start>\w+)\)-\[:(?P<type>\w+)\s*(?:{_PROPERTIES})?\]->\((?P<end>\w+)\)")
_NODE = re.compile(rf"\((?P<name>\w+):(?P<label>\w+)\s*(?:{_PROPERTIES})?\)")
_PROPERTY = re.compile(rf"(\w+)\s*:\s*({_TEXT}|\[(?:{_TEXT}|[\s,])*\]|\d+)")
#: What may stand between nodes and relationships.
_WORDS = re.compile(r"CREATE|[\s,;]+")
#: What names a node of a label, and tells it from the others.
_KEYS = {"Movie": "title", "Person": "name"}


def movies(data: Path) -> Graph:
    """The database as a graph in memory; `data` is the folder of data sets."""
    script = (data / "lpg_movies" / "scripts" / "movies.cypher").read_text(encoding="utf-8")
    graph = condgraph.open()
    graph.add(list(_items(script[script.index("CREATE (TheMatrix:") :])), source="neo4j")
    return graph


def _items(script: str) -> Iterator[Item]:
    relationships = list(_RELATIONSHIP.finditer(script))
    rest = _RELATIONSHIP.sub(" ", script)
    nodes = list(_NODE.finditer(rest))
    left = _WORDS.sub("", _NODE.sub(" ", rest))
    assert not left, left[:200]
    assert (len(nodes), len(relationships)) == (NODES, RELATIONSHIPS)
    for label in _KEYS:
        yield Entity(f":{label}", label, EntityKind.CONCEPT)
    ids = {}
    for node in nodes:
        properties, label = dict(_properties(node["properties"])), node["label"]
        (name,) = properties[_KEYS[label]]
        ident = ids[node["name"]] = f"{label}/{name}"
        yield Entity(ident, str(name))
        yield Member(ident, f":{label}")
        for key, values in properties.items():
            yield from (Statement(ident, key, value) for value in values)
    for one in relationships:
        qualifiers = tuple((key, value) for key, values in _properties(one["properties"]) for value in values)
        yield Statement(ids[one["start"]], one["type"], Ref(ids[one["end"]]), qualifiers)


def _properties(text: str | None) -> Iterator[tuple[str, list[str | Quantity]]]:
    for key, value in _PROPERTY.findall(text or ""):
        if value.isdigit():
            yield key, [Quantity(int(value))]
        else:
            yield key, [one[1:-1] for one in re.findall(_TEXT, value)]

"""What a database of others holds, as surveys say it (`overview.survey`), from its mapping: members of
concepts and relations are the server's own counts, the rest is what a sample of each label and type
makes likely.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np

from condgraph.cypher.native.ids import SOURCE, concept_id
from condgraph.cypher.native.kinds import kinds_of
from condgraph.cypher.native.mapping import Mapping, Property
from condgraph.cypher.native.qualifiers import named
from condgraph.overview.survey import Ends, Survey

NOTE: Final = (
    "Members of concepts, and relations, are counted by the server; numbers of attributes and qualifiers, types of values, and "
    "what relations are between, are those of a sample of each label and type."
)


def likely(prop: Property, count: int) -> int:
    """How many of so many things have a property, as the sample says; of a list as one."""
    return round(prop.share * count)


def counts_of(mapping: Mapping) -> dict[str, int]:
    """What a database holds, in the words of a status. Attributes and qualifiers are estimates."""
    predicates = {prop.predicate for node in mapping.nodes for prop in _shown(node)}
    predicates |= {named(one, prop) for one in mapping.relationships for prop in one.qualifiers}
    return {
        "entities": mapping.node_count,
        "concepts": sum(1 for node in mapping.nodes if node.label),
        "rows": 0,
        "relations": mapping.relationship_count,
        "attributes": sum(likely(prop, node.count) for node in mapping.nodes for prop in _shown(node)),
        "qualifiers": sum(likely(prop, one.count) for one in mapping.relationships for prop in one.qualifiers),
        "predicates": len(predicates | {one.predicate for one in mapping.relationships}),
        "sources": 1,
    }


def _shown(node: Any) -> list[Property]:
    return [prop for prop in node.properties if prop.key not in node.hidden]


def survey_of(mapping: Mapping) -> Survey:
    """The survey of a mapping; without spans and examples, which would have to be read."""
    labelled = [node for node in mapping.nodes if node.label]
    place = {node.label: number for number, node in enumerate(labelled)} | {"": len(labelled) + 1}
    kinds = [["concept", node.concept, concept_id(node.label), node.count, [], []] for node in labelled]
    kinds += [["concepts", "", "", len(labelled), [], []], ["entities", "", "", mapping.unlabelled, [], []]]
    names: dict[str, dict[str, Any]] = {}

    def predicate(name: str) -> dict[str, Any]:
        return names.setdefault(
            name, {"relations": 0, "attributes": 0, "values": Counter(), "keys": {}, "subjects": Counter(), "objects": Counter()}
        )

    for node in mapping.nodes:
        for prop in _shown(node):
            found, number = predicate(prop.predicate), likely(prop, node.count)
            found["attributes"] += number
            found["subjects"][place[node.label]] += number
            _add(found["values"], prop, node.count)
    for one in mapping.relationships:
        found = predicate(one.predicate)
        found["relations"] += one.count
        for start, end, count in one.ends:
            if start in place and end in place:
                found["subjects"][place[start]] += count
                found["objects"][place[end]] += count
        for prop in one.qualifiers:
            _add(found["keys"].setdefault(named(one, prop), Counter()), prop, one.count)
    predicates = [
        [
            *(name, found["relations"], found["attributes"], _values(found["values"])),
            sorted(([key, _values(of)] for key, of in found["keys"].items()), key=lambda one: (-sum(v[2] for v in one[1]), one[0])),
            *([[SOURCE, found["relations"] + found["attributes"]]], []),
        ]
        for name, found in sorted(names.items())
    ]
    counts = counts_of(mapping)
    return {
        "counts": {name: counts[name] for name in ("entities", "concepts", "rows", "relations", "attributes", "qualifiers")},
        "sources": [[SOURCE, "neo4j", counts["relations"] + counts["attributes"]]],
        "kinds": kinds,
        "predicates": predicates,
        "subjects": _ends([names[one[0]]["subjects"] for one in predicates]),
        "objects": _ends([names[one[0]]["objects"] for one in predicates]),
        "note": " ".join([NOTE, *(f"{warning}." for warning in mapping.warnings)]),
    }


def _add(values: Counter[tuple[str, str]], prop: Property, count: int) -> None:
    for (kind, unit), times in kinds_of(prop).items():
        values[kind.name.lower(), unit] += round(times * count / prop.sampled) if prop.sampled else 0


def _values(found: Counter[tuple[str, str]]) -> list[list[Any]]:
    listed = [[kind, unit, count, "", "", None, None] for (kind, unit), count in found.items()]
    return sorted(listed, key=lambda one: (-one[2], one[0], one[1]))


def _ends(found: list[Counter[int]]) -> Ends:
    starts = np.zeros(len(found) + 1, np.int64)
    kinds, counts = list[int](), list[int]()
    for number, of in enumerate(found, 1):
        for kind, count in sorted(of.items(), key=lambda one: (-one[1], one[0])):
            kinds.append(kind)
            counts.append(count)
        starts[number] = len(kinds)
    return Ends(starts, np.array(kinds, np.int64), np.array(counts, np.int64))

"""The schema and the survey of an existing database, from its mapping.

Counts are the server's; types and shares are those of a sample.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np

from condgraph.cypher.native.identity import SOURCE, concept_id
from condgraph.cypher.native.introspect import sample_size
from condgraph.cypher.native.mapping import Mapping, Property
from condgraph.cypher.native.properties import named
from condgraph.cypher.native.values import BYTES, INTEGERS, elements, is_list, kinds_of
from condgraph.engine.stored_schema import LookForShown, StoredSchema
from condgraph.engine.values import Kind
from condgraph.overview.survey import Ends, Survey

#: Types of values that do not affect how other values of their key are read.
_PLAIN: Final = frozenset(("INTEGER", "DATE", "LOCAL DATETIME", "ZONED DATETIME", "LOCAL TIME", "ZONED TIME"))

# -- Schema ------------------------------------------------------------------------------------------


#: Kinds with units, each with the estimated number of values.
_Counts = dict[tuple[Kind, str], int]


class NativeSchema(StoredSchema):
    """The schema of a mapping, which it keeps as `mapping`."""

    def __init__(self, mapping: Mapping, look: LookForShown | None = None) -> None:
        super().__init__(_described(mapping), look)
        self.mapping = mapping

    def properties_of(self, attribute: str) -> list[tuple[str, Property]]:
        """Return the properties of nodes that give an attribute, by label."""
        return [(node.label, prop) for node in self.mapping.nodes for prop in node.properties if prop.predicate == attribute]

    def _is_read_alone(self, key: str, qualifier: bool) -> bool:
        """See `StoredSchema._is_read_alone`. It is also True if there are too many values to look at, which answers then report."""
        mapping = self.mapping
        if qualifier:
            of_key = [
                prop
                for relationship in mapping.relationships
                for prop in relationship.qualifiers
                if named(relationship, prop) == key
            ]
        else:
            of_key = [prop for _, prop in self.properties_of(key)]
        if any(prop.key in mapping.unsure for prop in of_key):
            return True
        return all(prop.reading == "itself" and set(elements(name)) <= _PLAIN for prop in of_key for name, _ in prop.types)

    def concept_ids(self) -> dict[str, str]:
        """Return the ids of the concepts by their names."""
        return {node.concept: concept_id(node.label) for node in self.mapping.nodes if node.label}


def _described(mapping: Mapping) -> dict[str, Any]:
    attributes: dict[str, _Counts] = {}
    # If a label has more nodes than its sample, some may have properties that the sample lacks; likewise for the ends of a
    # type.
    sample_limit = sample_size(sum(1 for node in mapping.nodes if node.label), len(mapping.relationships))
    sampled_labels = {node.label for node in mapping.nodes if node.count > sample_limit}
    unknown = {relationship.predicate for relationship in mapping.relationships if relationship.count > sample_limit}
    counted: dict[str, bool] = {}
    for node in mapping.nodes:
        for prop in node.properties:
            counted[prop.predicate] = counted.get(prop.predicate, True) and prop.key in mapping.exact - mapping.unsure
    counted = {name: True for name, certain in counted.items() if certain}
    classes: list[tuple[str, str, list[int]]] = [("concept", node.concept, []) for node in mapping.nodes if node.label]
    places = {node.label: number for number, node in enumerate(node for node in mapping.nodes if node.label)} | {"": len(classes)}
    classes.append(("entities", "", []))
    ends_of: dict[str, tuple[set[int], set[int]]] = {}
    for node in mapping.nodes:
        for prop in filter(lambda prop: prop.key not in node.hidden, node.properties):
            ends_of.setdefault(prop.predicate, (set(), set()))[0].add(places[node.label])
            _add(attributes.setdefault(prop.predicate, {}), prop, node.count)
    qualifiers: dict[str, _Counts] = {}
    on: dict[str, dict[str, _Counts]] = {}
    sizes: dict[str, int] = {}
    degrees: dict[str, list[float]] = {}
    counts = {node.label: node.count for node in mapping.nodes}
    for relationship in mapping.relationships:
        predicate = relationship.predicate
        sizes[predicate] = sizes.get(predicate, 0) + relationship.count
        starts = {start for start, _, _ in relationship.ends}
        ends = {end for _, end, _ in relationship.ends}
        for end_places, labels in zip(ends_of.setdefault(predicate, (set(), set())), (starts, ends), strict=True):
            end_places.update(places[label] for label in labels if label in places)
        degrees[predicate] = [
            round(max(1.0, relationship.count / max(1, sum(counts.get(label, 0) for label in labels))), 1)
            for labels in (starts, ends)
        ]
        for prop in relationship.qualifiers:
            key = named(relationship, prop)
            _add(qualifiers.setdefault(key, {}), prop, relationship.count)
            _add(on.setdefault(key, {}).setdefault(predicate, {}), prop, relationship.count)
    members: dict[str, int] = {}
    for node in filter(lambda node: node.label, mapping.nodes):
        members[node.concept] = members.get(node.concept, 0) + node.count
    relations = sorted(name for name, size in sizes.items() if size)
    has_times = any(entry.start is not None or entry.end is not None for entry in mapping.relationships)
    return {
        "relations": relations,
        "attributes": {name: _listed(attributes[name]) for name in sorted(attributes) if attributes[name]},
        "qualifiers": {name: _listed(qualifiers[name]) for name in sorted(qualifiers) if qualifiers[name]},
        "concepts": sorted({node.concept for node in mapping.nodes if node.label}),
        "sources": [SOURCE],
        "classes": classes,
        "ends": {
            name: [sorted(end_places) for end_places in pair]
            for name, pair in ends_of.items()
            if name not in unknown and (name in counted or all(places[label] in pair[0] for label in sampled_labels))
        },
        "on": {key: {name: _listed(kinds) for name, kinds in owners.items() if kinds} for key, owners in on.items()},
        "predicates": {name: [0] for name in sorted({*relations, *(name for name, kinds in attributes.items() if kinds)})},
        "tables": [],
        "tabular": [],
        "temporal": has_times,
        "inexact": False,
        "raw": True,
        "concept_subjects": False,
        "concept_attributes": False,
        "concept_members": False,
        "sizes": sizes,
        "members": members,
        "degrees": degrees,
        "single": sorted(members),
        "several": {
            "attributes": sorted({prop.predicate for node in mapping.nodes for prop in node.properties if _has_lists(prop)}),
            "qualifiers": sorted(
                {
                    named(relationship, prop)
                    for relationship in mapping.relationships
                    for prop in relationship.qualifiers
                    if _has_lists(prop)
                }
            ),
        },
    }


def _has_lists(prop: Property) -> bool:
    """Tell whether some values of a property are lists; a list outside the sample is counted before a program reads it."""
    opaque = any(name == BYTES for name, _ in prop.types)
    return any(is_list(name) and elements(name) and not (opaque and name == INTEGERS) for name, _ in prop.types)


def _add(counts: _Counts, prop: Property, count: int) -> None:
    """Add the kinds of a property's values among so many owners, estimated from the sample."""
    for key, times in kinds_of(prop).items():
        counts[key] = counts.get(key, 0) + max(1, round(times * count / prop.sampled)) if prop.sampled else counts.get(key, 0)


def _listed(counts: _Counts) -> list[list[Any]]:
    return [[int(kind), unit, count] for (kind, unit), count in sorted(counts.items())]


# -- Survey ------------------------------------------------------------------------------------------
# The survey of an existing database (`overview.survey`): members of concepts and relations are the server's own counts; the
# rest is estimated from a sample of each label and type.


NOTE: Final = (
    "Members of concepts, and relations, are counted by the server; numbers of attributes and qualifiers, types of values, and "
    "what relations are between, are those of a sample of each label and type."
)


def likely(prop: Property, count: int) -> int:
    """Return how many of so many owners have a property, estimated from the sample; a list counts once."""
    return round(prop.share * count)


def counts_of(mapping: Mapping) -> dict[str, int]:
    """Return the counts of a database for its status; attributes and qualifiers are estimates."""
    predicates = {prop.predicate for node in mapping.nodes for prop in _shown(node)}
    predicates |= {named(relationship, prop) for relationship in mapping.relationships for prop in relationship.qualifiers}
    return {
        "entities": mapping.node_count,
        "concepts": sum(1 for node in mapping.nodes if node.label),
        "rows": 0,
        "relations": mapping.relationship_count,
        "attributes": sum(likely(prop, node.count) for node in mapping.nodes for prop in _shown(node)),
        "qualifiers": sum(likely(prop, item.count) for item in mapping.relationships for prop in item.qualifiers),
        "predicates": len(predicates | {entry.predicate for entry in mapping.relationships}),
        "sources": 1,
    }


def _shown(node: Any) -> list[Property]:
    return [prop for prop in node.properties if prop.key not in node.hidden]


def survey_of(mapping: Mapping) -> Survey:
    """Return the survey of a mapping, without spans and examples, which would have to be read."""
    labelled = [node for node in mapping.nodes if node.label]
    position = {node.label: number for number, node in enumerate(labelled)} | {"": len(labelled) + 1}
    kinds = [["concept", node.concept, concept_id(node.label), node.count, [], []] for node in labelled]
    kinds += [["concepts", "", "", len(labelled), [], []], ["entities", "", "", mapping.unlabelled, [], []]]
    names: dict[str, dict[str, Any]] = {}

    def predicate(name: str) -> dict[str, Any]:
        return names.setdefault(
            name, {"relations": 0, "attributes": 0, "values": Counter(), "keys": {}, "subjects": Counter(), "objects": Counter()}
        )

    for node in mapping.nodes:
        for prop in _shown(node):
            entry, number = predicate(prop.predicate), likely(prop, node.count)
            entry["attributes"] += number
            entry["subjects"][position[node.label]] += number
            _survey_add(entry["values"], prop, node.count)
    for relationship in mapping.relationships:
        entry = predicate(relationship.predicate)
        entry["relations"] += relationship.count
        for start, end, count in relationship.ends:
            if start in position and end in position:
                entry["subjects"][position[start]] += count
                entry["objects"][position[end]] += count
        for prop in relationship.qualifiers:
            _survey_add(entry["keys"].setdefault(named(relationship, prop), Counter()), prop, relationship.count)
    predicates = [
        [
            *(name, entry["relations"], entry["attributes"], _values(entry["values"])),
            sorted(
                ([key, _values(counter)] for key, counter in entry["keys"].items()),
                key=lambda item: (-sum(v[2] for v in item[1]), item[0]),
            ),
            *([[SOURCE, entry["relations"] + entry["attributes"]]], []),
        ]
        for name, entry in sorted(names.items())
    ]
    counts = counts_of(mapping)
    return {
        "counts": {name: counts[name] for name in ("entities", "concepts", "rows", "relations", "attributes", "qualifiers")},
        "sources": [[SOURCE, "neo4j", counts["relations"] + counts["attributes"]]],
        "kinds": kinds,
        "predicates": predicates,
        "subjects": _ends([names[item[0]]["subjects"] for item in predicates]),
        "objects": _ends([names[entry[0]]["objects"] for entry in predicates]),
        "note": " ".join([NOTE, *(f"{warning}." for warning in mapping.warnings)]),
    }


def _survey_add(values: Counter[tuple[str, str]], prop: Property, count: int) -> None:
    for (kind, unit), times in kinds_of(prop).items():
        values[kind.name.lower(), unit] += round(times * count / prop.sampled) if prop.sampled else 0


def _values(counts: Counter[tuple[str, str]]) -> list[list[Any]]:
    rows = [[kind, unit, count, "", "", None, None] for (kind, unit), count in counts.items()]
    return sorted(rows, key=lambda item: (-item[2], item[0], item[1]))


def _ends(counters: list[Counter[int]]) -> Ends:
    starts = np.zeros(len(counters) + 1, np.int64)
    kinds, counts = list[int](), list[int]()
    for number, kind_counts in enumerate(counters, 1):
        for kind, count in sorted(kind_counts.items(), key=lambda item: (-item[1], item[0])):
            kinds.append(kind)
            counts.append(count)
        starts[number] = len(kinds)
    return Ends(starts, np.array(kinds, np.int64), np.array(counts, np.int64))

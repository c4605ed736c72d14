"""What lowering knows of a database of others: its mapping as a kept schema. Counts are those of
the server, types and shares those of a sample.
"""

from __future__ import annotations

import re
from typing import Any, Final

from condgraph.cypher.native.ids import SOURCE, concept_id
from condgraph.cypher.native.introspect import sample_size
from condgraph.cypher.native.kinds import kinds_of
from condgraph.cypher.native.mapping import Mapping, Property
from condgraph.cypher.native.qualifiers import named
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.values import Kind

#: Kinds with units, as numbers, each with how many values there are likely to be.
_Counts = dict[tuple[Kind, str], int]


class NativeSchema(StoredSchema):
    """The schema of a mapping. `mapping` is what it was made from."""

    def __init__(self, mapping: Mapping) -> None:
        super().__init__(_described(mapping))
        self.mapping = mapping
        self.spelled = _Spellings(self).meant

    def concept_ids(self) -> dict[str, str]:
        """The ids of the concepts by their names."""
        return {node.concept: concept_id(node.label) for node in self.mapping.nodes if node.label}


class _Spellings:
    """The names of a database by their words, since "acted in" stands there as ACTED_IN."""

    def __init__(self, schema: StoredSchema) -> None:
        vocabularies = {
            "key": schema.attributes, "qkey": schema.qualifiers, "relation": schema.relations, "concept": schema.concepts,
        }  # fmt: skip
        self._names = {role: frozenset(names) for role, names in vocabularies.items()}
        self._by_words: dict[str, dict[str, list[str]]] = {}
        for role, names in vocabularies.items():
            by_words = self._by_words.setdefault(role, {})
            for name in names:
                by_words.setdefault(_words(name), []).append(name)

    def meant(self, role: str, text: str) -> str:
        """The one name that has the same words; the text itself where it is a name, or several are."""
        if role not in self._names or text in self._names[role] or len(text) > _LONGEST:
            return text
        found = self._by_words[role].get(_words(text), ())
        return found[0] if len(found) == 1 else text


#: Longer texts are no other spelling of a name.
_LONGEST: Final = 200


def _words(name: str) -> str:
    """What a name has for words, whatever stands between them.

    >>> _words("ACTED_IN") == _words("acted in"), _words("companyName") == _words("Company name")
    (True, True)
    """
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name))).casefold()


def _described(mapping: Mapping) -> dict[str, Any]:
    attributes: dict[str, _Counts] = {}
    # A label of more nodes than the sample may have a property that the sample does not, and a type ends that it does not.
    most = sample_size(sum(1 for node in mapping.nodes if node.label), len(mapping.relationships))
    partly = {node.label for node in mapping.nodes if node.count > most}
    unknown = {one.predicate for one in mapping.relationships if one.count > most}
    counted: dict[str, bool] = {}
    for node in mapping.nodes:
        for one in node.properties:
            counted[one.predicate] = counted.get(one.predicate, True) and one.key in mapping.exact - mapping.unsure
    counted = {name: True for name, certain in counted.items() if certain}
    classes: list[tuple[str, str, list[int]]] = [("concept", node.concept, []) for node in mapping.nodes if node.label]
    places = {node.label: number for number, node in enumerate(node for node in mapping.nodes if node.label)} | {"": len(classes)}
    classes.append(("entities", "", []))
    held: dict[str, tuple[set[int], set[int]]] = {}
    for node in mapping.nodes:
        for one in filter(lambda one: one.key not in node.hidden, node.properties):
            held.setdefault(one.predicate, (set(), set()))[0].add(places[node.label])
            _add(attributes.setdefault(one.predicate, {}), one, node.count)
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
        for of, labels in zip(held.setdefault(predicate, (set(), set())), (starts, ends), strict=True):
            of.update(places[label] for label in labels if label in places)
        degrees[predicate] = [
            round(max(1.0, relationship.count / max(1, sum(counts.get(label, 0) for label in labels))), 1)
            for labels in (starts, ends)
        ]
        for one in relationship.qualifiers:
            key = named(relationship, one)
            _add(qualifiers.setdefault(key, {}), one, relationship.count)
            _add(on.setdefault(key, {}).setdefault(predicate, {}), one, relationship.count)
    members: dict[str, int] = {}
    for node in filter(lambda node: node.label, mapping.nodes):
        members[node.concept] = members.get(node.concept, 0) + node.count
    relations = sorted(name for name, size in sizes.items() if size)
    timed = any(one.start is not None or one.end is not None for one in mapping.relationships)
    return {
        "relations": relations,
        "attributes": {name: _listed(attributes[name]) for name in sorted(attributes) if attributes[name]},
        "qualifiers": {name: _listed(qualifiers[name]) for name in sorted(qualifiers) if qualifiers[name]},
        "concepts": sorted({node.concept for node in mapping.nodes if node.label}),
        "sources": [SOURCE],
        "classes": classes,
        "ends": {
            name: [sorted(of) for of in both]
            for name, both in held.items()
            if name not in unknown and (name in counted or all(places[label] in both[0] for label in partly))
        },
        "on": {key: {name: _listed(found) for name, found in owners.items() if found} for key, owners in on.items()},
        "predicates": {name: [0] for name in sorted({*relations, *(name for name, found in attributes.items() if found)})},
        "tables": [],
        "tabular": [],
        "temporal": timed,
        "inexact": False,
        "raw": True,
        "concept_subjects": False,
        "concept_attributes": False,
        "concept_members": False,
        "sizes": sizes,
        "members": members,
        "degrees": degrees,
        "single": sorted(members),
    }


def _add(found: _Counts, one: Property, count: int) -> None:
    """The values of a property among so many things, as the sample says."""
    for key, times in kinds_of(one).items():
        found[key] = found.get(key, 0) + max(1, round(times * count / one.sampled)) if one.sampled else found.get(key, 0)


def _listed(found: _Counts) -> list[list[Any]]:
    return [[int(kind), unit, count] for (kind, unit), count in sorted(found.items())]

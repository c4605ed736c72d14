"""How an excerpt of a graph writes names, predicates and their ends: in words that serve every language, or as the nodes,
relationships and properties of Cypher (`docs/reference/cypher.md` has the rules).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from condgraph.overview import schema as overview

#: From an entity: along a relation, against one, or to a value.
Way = Literal["forward", "backward", "value"]


class Wording:
    """Relations and attributes alike are predicates, with arrows between their ends."""

    things = "Named in the question (→ leads to, ← is led to from, = has the value; type of the other end):"
    predicates = "Predicates: subjects → objects:"
    concepts, keys, more = "Concepts: ", "Qualifiers: ", "More predicates: "
    _SIGNS: Final[Mapping[str, str]] = {"forward": "→", "backward": "←", "value": "="}

    def name(self, name: str) -> str:
        """A name of the schema."""
        return overview.quoted(name)

    def concept(self, name: str) -> str:
        """A concept."""
        return overview.quoted(name)

    def entity(self, names: Sequence[str], key: str = "") -> str:
        """An entity by the names that it may have; `key` is the attribute that has the name, "" where none does."""
        return ", ".join(overview.quoted(name) for name in names)

    def around(self, name: str, value: overview.PredicateSchema | None, ways: Sequence[str]) -> str:
        """A predicate of an entity: its name, and for each direction what is at the other end."""
        if value is None:
            return f"{overview.quoted(name)} {''.join(self._SIGNS[way] for way in ways)}"
        ends = [f"{self._SIGNS[way]} ({overview.end_words(value, 'subject' if way == 'backward' else 'object')})" for way in ways]
        return f"{overview.quoted(name)} {' '.join(ends)}"

    def arrow(self, name: str, forward: bool) -> str:
        """A relation between two entities, from left to right or back."""
        return f"→{overview.quoted(name)}→" if forward else f"←{overview.quoted(name)}←"

    #: What is between two arrows.
    between = "something"

    def short(self, predicate: overview.PredicateSchema, *, longest: int = overview.LONGEST) -> str:
        """A predicate with its ends as one line; names of kinds have at most `longest` characters."""
        return overview.ends_line(predicate, longest=longest)

    def line(self, predicate: overview.PredicateSchema, length: int, *, examples: bool) -> str:
        """A predicate as one line: long (0), or shorter (1, 2). `examples=False` leaves out data of the graph."""
        return overview.predicate_line(predicate, length, examples=examples)


class CypherWording(Wording):
    """Relations are relationships between labels, attributes are properties of nodes, keys of qualifiers are properties of
    relationships.
    """

    things = "Nodes named in the question, with their relationships and properties:"
    predicates = "Relationships, and properties of nodes:"
    concepts, keys, more = "Labels: ", "Properties of relationships: ", "More types of relationships and properties: "
    between = "()"

    def name(self, name: str) -> str:
        """A label, type or property."""
        return overview.cypher_name(name)

    def concept(self, name: str) -> str:
        """A label as a pattern has it."""
        return f":{overview.cypher_name(name)}"

    def entity(self, names: Sequence[str], key: str = "") -> str:
        """A node by its name."""
        return " or ".join(f"({{{overview.cypher_name(key or 'name')}: {overview.quoted(name)}}})" for name in names)

    def around(self, name: str, value: overview.PredicateSchema | None, ways: Sequence[str]) -> str:
        """The relationships of a node with the labels at their other ends, or the property with its types."""
        parts = []
        for way in ways:
            if way == "value":
                parts.append(f".{overview.cypher_name(name)}" + ("" if value is None else f" = {_values(value)}"))
            else:
                kinds = () if value is None else value.objects if way == "forward" else value.subjects
                parts.append(self.arrow(name, way == "forward") + _node(kinds))
        return ", ".join(parts)

    def arrow(self, name: str, forward: bool) -> str:
        """A relationship, from left to right or back."""
        return f"-[:{overview.cypher_name(name)}]->" if forward else f"<-[:{overview.cypher_name(name)}]-"

    def short(self, predicate: overview.PredicateSchema, *, longest: int = overview.LONGEST) -> str:
        """A relationship or property with the commonest labels of its ends."""
        return self._pattern(predicate, kinds=1, longest=longest)

    def line(self, predicate: overview.PredicateSchema, length: int, *, examples: bool) -> str:
        """The same with more labels, the types of properties of relationships, and how many there are."""
        text = f"{self._pattern(predicate, kinds=3 - length, typed=True)} ({predicate.statements:,})"
        if length < 2 and examples and predicate.examples:
            text += f", e.g. {overview.examples_words(predicate, 2 - length)}"
        return text

    def _pattern(
        self, predicate: overview.PredicateSchema, *, kinds: int, longest: int = overview.LONGEST, typed: bool = False
    ) -> str:
        """The relationship, the property, or both; with the types of the relationship's own properties where `typed`."""
        subjects = _node(predicate.subjects[:kinds], longest)
        parts = []
        if predicate.relations or not predicate.values:
            keys = [
                overview.cypher_name(key.name)
                + (f": {'/'.join(dict.fromkeys(value.type for value in key.values))}" if typed else "")
                for key in predicate.qualifiers[: 4 if typed else 3]
            ]
            own = f" {{{', '.join(keys)}}}" if keys else ""
            parts.append(f"{subjects}-[:{overview.cypher_name(predicate.name)}{own}]->{_node(predicate.objects[:kinds], longest)}")
        if predicate.values:
            parts.append(f"{subjects[:-1]} {{{overview.cypher_name(predicate.name)}: {_values(predicate)}}})".replace("( {", "({"))
        return f"- {'; '.join(parts)}"


def _node(kinds: Sequence[overview.KindCount], longest: int = overview.LONGEST) -> str:
    """A node by the labels that it may have."""
    # The label of a table is the last part of its name.
    names = [kind.name if kind.sort == "concept" else kind.name.rpartition("/")[2] for kind in kinds[:3]]
    labels = list(dict.fromkeys(overview.cypher_name(name, longest) for name in names if name))
    return f"(:{'|'.join(labels)})" if labels else "()"


def _values(predicate: overview.PredicateSchema) -> str:
    """The types of the values of a property, with their units and ranges."""
    return " or ".join(overview.value_words(value, counted=False) for value in predicate.values[:2])


#: The wording of an excerpt for programs in Cypher, and for all others.
CYPHER: Final = CypherWording()
WORDS: Final = Wording()

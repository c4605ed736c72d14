"""What the names of the RDF view are in a database: which IRI is a relationship, which a property,
and of what type its values are for sure.

The view is what `Graph.snapshot` of the database is as RDF (`sparql.layout`). A predicate is used
live only where its triples are known without looking: one property, of single values of one type,
under one name. That a value has the type that the sample says is asked of every value that a query
meets; one that has not ends the query (`Attribute.value`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from condgraph.cypher.answer import literal
from condgraph.cypher.layout.schema import quote
from condgraph.cypher.native.identity import within_labels
from condgraph.cypher.native.values import collapsed, elements, is_list, spaced
from condgraph.engine.errors import nearest
from condgraph.engine.iris import PRED
from condgraph.languages.sparql.syntax import Iri, beyond
from condgraph.sparql.layout import TYPE, GraphIris

if TYPE_CHECKING:
    from condgraph.cypher.native.mapping import Mapping, Property

#: What a query ends with that met a value of another type than the sample says.
MARK: Final = "not-of-the-sampled-type"
#: What a value is: its node says so, and what stands at it follows.
Of: TypeAlias = Literal["text", "number", "boolean", "day"]
_OF: Final[dict[frozenset[str], Of]] = {
    frozenset(("STRING",)): "text",
    frozenset(("INTEGER",)): "number",
    frozenset(("FLOAT",)): "number",
    frozenset(("INTEGER", "FLOAT")): "number",
    frozenset(("BOOLEAN",)): "boolean",
    frozenset(("DATE",)): "day",
}
#: Values of a property may be of another type than most, where they are a part of so many of these.
_FEW: Final = 20
#: White space that makes a text another one than the view has.
_SPACES: Final = r"\\x09-\\x0D\\x1C-\\x1F\\x85\\xA0\\u1680\\u2000-\\u200A\\u2028\\u2029\\u202F\\u205F\\u3000"
_UNTIDY: Final = rf"(?s)(?:.*[{_SPACES}].*| .*|.* |.*  .*)"
#: Terms of the vocabulary about a value node, by what the value is.
TERMS: Final[dict[str, tuple[Of, ...]]] = {
    "value": ("text", "number", "boolean"),
    "unit": ("number",),
    "year": ("day",),
    "date": ("day",),
    "start": ("day",),
    "end": ("day",),
    "precision": ("day",),
}


@dataclass(frozen=True, slots=True)
class Attribute:
    """A property whose single values are of one type. `labels` are those of its nodes, where another
    name than its own is used for it there alone; else None. `qualifies`: relationships have it too,
    so that statements are subjects of it as well as nodes.
    """

    key: str
    of: Of
    types: frozenset[str]
    labels: tuple[str, ...] | None
    qualifies: bool = False
    #: The labels of all nodes that have it, and whether no text of it has white space to fold.
    every: tuple[str, ...] = ()
    tidy: bool = False

    def there(self, e: str) -> str:
        """A condition: a node has it."""
        held = f"{e}.{quote(self.key)} IS NOT NULL"
        return held if self.labels is None else f"{held} AND {within_labels(e, self.labels)}"

    def nodes(self, e: str) -> str:
        """The pattern of the nodes that may have it."""
        return f"({e})" if "" in self.every else f"({e}:{'|'.join(map(quote, self.every))})"

    def equals(self, e: str, text: str) -> str:
        """A condition that all nodes satisfy whose value is a text; an index answers it where it can."""
        p = f"{e}.{quote(self.key)}"
        return (
            f"{p} = {text}"
            if self.tidy
            else f"({p} = {text} OR CASE WHEN {p} IS :: STRING NOT NULL THEN {spaced(p)} ELSE false END)"
        )

    def value(self, e: str) -> str:
        """The value of a node that has it; one of another type ends the query."""
        p = f"{e}.{quote(self.key)}"
        # No day is called so, and the server says which text it could not read.
        otherwise = f"date({literal(f'{MARK} {self.key} of ')} + elementId({e}))"
        if self.of == "text":
            test, found = f"{p} IS :: STRING NOT NULL", f"CASE WHEN {p} =~ '{_UNTIDY}' THEN {collapsed(p)} ELSE {p} END"
        elif self.of == "number":
            whole = f"{p} IS :: INTEGER NOT NULL"
            part = f"({p} IS :: FLOAT NOT NULL AND {p} - {p} = 0 AND toString({p}) <> '-0.0')"
            test = " OR ".join([*([whole] if "INTEGER" in self.types else []), *([part] if "FLOAT" in self.types else [])])
            found = p
        elif self.of == "boolean":
            test, found = f"{p} IS :: BOOLEAN NOT NULL", p
        else:
            test, found = f"{p} IS :: DATE NOT NULL AND {p}.year > 0 AND {p}.year < 10000", p
        return f"CASE WHEN {test} THEN {found} ELSE {otherwise} END"


@dataclass(frozen=True, slots=True)
class Relation:
    """Relationships of some types."""

    types: tuple[str, ...]


#: A predicate: a word of the vocabulary, relationships, or a property.
Predicate: TypeAlias = str | Relation | Attribute


class Vocabulary:
    """The names of one database; `keys` are all property keys that it has."""

    def __init__(self, mapping: Mapping, names: GraphIris, keys: frozenset[str]) -> None:
        self.mapping, self.names, self._keys = mapping, names, keys
        self._sizes = {node.label: node.count for node in mapping.nodes}
        self._beyond = {node.label: node.beyond for node in mapping.nodes}
        #: Labels with what they are called.
        self.concepts = {node.label: node.concept for node in mapping.nodes if node.label}
        self._held: dict[str, list[tuple[str, Property]]] = {}
        for node in mapping.nodes:
            for one in node.properties:
                self._held.setdefault(one.key, []).append((node.label, one))
        self._hidden = {key for node in mapping.nodes for key in node.hidden}
        self._qualifiers = {one.predicate for relationship in mapping.relationships for one in relationship.qualifiers}
        self._qualifiers |= {"start time", "end time"} if any(one.start or one.end for one in mapping.relationships) else set()
        self._types: dict[str, list[str]] = {}
        for relationship in mapping.relationships:
            self._types.setdefault(relationship.predicate, []).append(relationship.type)
        self.predicates = frozenset((*self._types, *(one.predicate for held in self._held.values() for _, one in held)))
        unique = {node.label: node.unique for node in mapping.nodes if node.unique is not None}
        for label, key in unique.items():
            kinds = {kind for of, one in self._held.get(key, ()) if of == label for kind, _ in one.types}
            if len(kinds) > 1:
                raise beyond(f"a database whose key {label}.{key} is of several types ({', '.join(sorted(kinds))})")

    def is_name(self, name: str) -> bool:
        """Whether a predicate is called so."""
        return name in self.predicates

    def predicate(self, found: Iri) -> Predicate:
        """What a predicate is; raises `UnsupportedError` for one whose triples are not known."""
        iri = found.iri
        if f"<{iri}>" == TYPE:
            return "type"
        if iri.startswith(PRED):
            word = iri[len(PRED) :]
            if word in ("name", "instance_of", *TERMS):
                return word
            raise beyond(f"<{iri}>", "statements, their qualifiers and sources have no nodes in the database")
        name = self._name(iri)
        types = self._types.get(name)
        if types is None:
            return self._attribute(name)
        if name in self._keys or any(one.predicate == name for held in self._held.values() for _, one in held):
            raise beyond(f"{name!r}, which relationships and properties are called")
        return Relation(tuple(types))

    def _name(self, iri: str) -> str:
        if not iri.startswith(self.names.base):
            raise beyond(f"the predicate <{iri}>", f"names of the database begin with {self.names.base}")
        try:
            return self.names.name_of(iri)
        except ValueError:
            raise beyond(f"the predicate <{iri}>, which is no name") from None

    def _attribute(self, name: str) -> Attribute:
        places = [(label, one) for held in self._held.values() for label, one in held if one.predicate == name]
        if not places:
            near = nearest(name, sorted(self.predicates))
            raise beyond(
                f"{name!r}, which neither a relationship nor a property of the sample is called",
                f"nearest: {', '.join(map(repr, near))}" if near else None,
            )
        keys = {one.key for _, one in places}
        if len(keys) > 1:
            raise beyond(f"{name!r}, which several properties are called ({', '.join(sorted(keys))})")
        (key,) = keys
        every = self._held[key]
        if {one.predicate for _, one in every} != {name} or (name != key and name in self._keys):
            raise beyond(f"{name!r}, as the property {key!r} has other names elsewhere")
        if key in self._hidden:
            raise beyond(f"{name!r}, which is hidden of some nodes")
        if any(one.reading != "itself" or one.format is not None for _, one in every):
            raise beyond(f"{name!r}, whose texts are read as numbers or dates")
        kinds = [kind for _, one in every for kind, _ in one.types]
        if any(map(is_list, kinds)):
            raise beyond(f"{name!r}, which has lists")
        counts: Counter[str] = Counter()
        for label, one in every:
            for kind, times in one.types:
                for element in elements(kind):
                    counts[element] += times * max(1, self._sizes[label]) // max(1, one.sampled)
        types = frozenset(counts)
        of = _OF.get(types)
        if of is None:
            # What most are; a query that meets another one ends.
            (most, times), *others = counts.most_common() or [("", 0)]
            of = _OF.get(frozenset((most,)))
            if of is None or sum(count for _, count in others) * _FEW > times:
                raise beyond(f"{name!r}, whose values are of the types {', '.join(sorted(types))}")
            types = frozenset((most,))
        labels = tuple(dict.fromkeys(label for label, _ in every))
        known = key in self.mapping.exact or not any(self._beyond[label] for label in self._beyond)
        tidy = known and not any(one.untidy for _, one in every)
        return Attribute(key, of, types, None if name == key else labels, name in self._qualifiers, labels, tidy)

    def entity(self, found: Iri) -> str:
        """The id that an IRI says; a concept's begins with a colon."""
        return self._name(found.iri)

    def label(self, found: Iri) -> str:
        """The label that the IRI of a concept is."""
        ident = self.entity(found)
        if not ident.startswith(":") or ident[1:] not in self.concepts:
            raise beyond(f"<{found.iri}>, which is no label of the database")
        return ident[1:]

    def labels_called(self, name: str) -> list[str]:
        """The labels of the concepts of a name."""
        return [label for label, concept in self.concepts.items() if concept == name]

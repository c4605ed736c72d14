"""Ids of the nodes of an RDF source, and nodes that stand for statements."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from condgraph.engine.errors import LoadError
from condgraph.engine.facts import Ref
from condgraph.engine.values import Value
from condgraph.loaders.rdf.nodes import Object

if TYPE_CHECKING:
    import pyoxigraph

#: Characters of an IRI: a prefix of a megabyte is a megabyte wherever it stands.
LONGEST_IRI: Final = 65_536
#: Blank nodes without a label in the file get a random one from the parser, another each time.
_RANDOM: Final = re.compile(r"[0-9a-f]{24,32}").fullmatch

#: Subject, predicate and object of a reified statement, terms as they were parsed.
Parts: TypeAlias = "tuple[str, str, Object]"


@dataclass(slots=True)
class Reified:
    """A node that stands for statements: which ones, where, in which graph, and what is said about
    them.
    """

    row: int
    graph: str | None
    triples: list[Parts] = field(default_factory=list)
    parts: dict[int, Object] = field(default_factory=dict)
    broken: bool = False
    qualifiers: list[tuple[str, Ref | Value]] = field(default_factory=list)


class Nodes:
    """Ids of nodes: an IRI is its own, a blank node's is scoped by the source."""

    def __init__(self, scope: str) -> None:
        import pyoxigraph

        self._iri: type = pyoxigraph.NamedNode
        self._literal: type = pyoxigraph.Literal
        self._triple: type = pyoxigraph.Triple
        self._default: type = pyoxigraph.DefaultGraph
        self._scope = scope
        self._numbers: dict[str, int] = {}

    def id(self, node: Any) -> str:
        """The id of an IRI or a blank node."""
        value: str = node.value
        if len(value) > LONGEST_IRI:
            raise LoadError(f"an IRI has {len(value):,} characters, and may have {LONGEST_IRI:,}: {value[:60]!r}...")
        if type(node) is self._iri:
            return value
        if _RANDOM(value):
            # By order of appearance, so that two passes, and two loads of one file, agree. No label
            # in a file begins with a dot.
            value = f".{self._numbers.setdefault(value, len(self._numbers) + 1)}"
        return f"_:{self._scope}/{value}"

    def object(self, term: Any) -> Object | None:
        """The object of a triple; None for a triple term."""
        kind = type(term)
        if kind is self._literal:
            return Object("", term)
        return None if kind is self._triple else Object(self.id(term))

    def graph(self, quad: pyoxigraph.Quad) -> str | None:
        """The id of a quad's graph; None for the default graph."""
        name = quad.graph_name
        return None if type(name) is self._default else self.id(name)

    def triple(self, term: Any) -> Parts | None:
        """The parts of a triple term; None when there is another one inside."""
        other = self.object(term.object)
        return None if other is None else (self.id(term.subject), term.predicate.value, other)


def key_of(parts: Parts) -> tuple[str, str, str]:
    """A triple as something to look up: equal for equal triples."""
    subject, predicate, other = parts
    return subject, predicate, other.id if other.literal is None else str(other.literal)

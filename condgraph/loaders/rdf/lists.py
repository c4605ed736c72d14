"""RDF lists: chains of rdf:first and rdf:rest that are read as the members of a list, in order.

    :recipe :step ("mix" "bake") .

is two statements, (recipe, step, "mix") with the qualifier "list position" 1, and "bake" with 2.
Where a subject has several lists for one predicate, the qualifier "list" numbers them. A list is
read so if that loses nothing: its nodes are blank, stand in one graph, are named by one triple, say
nothing else, and have no list among their members. Every other one stays a chain of nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from condgraph.engine.terms import LIST, POSITION
from condgraph.engine.values import Quantity
from condgraph.loaders.rdf.nodes import Object
from condgraph.loaders.rdf.values import RDF

if TYPE_CHECKING:
    from condgraph.engine.facts import Ref
    from condgraph.engine.values import Value

FIRST: Final = RDF + "first"
REST: Final = RDF + "rest"
NIL: Final = RDF + "nil"
#: The triple that names a list: subject, predicate, graph.
_Named = tuple[str, str, "str | None"]


@dataclass(slots=True)
class _Cell:
    graph: str | None
    row: int
    first: Object | None = None
    rest: str = ""
    broken: bool = False


@dataclass(slots=True)
class Lists:
    """The lists of a source: `see` every triple once, then `settle`.

    `members` has the members of a list by its first node, `cells` the nodes of all of them.
    """

    members: dict[str, list[Object]] = field(default_factory=dict)
    cells: set[str] = field(default_factory=set)
    #: The row of the first triple of a list that stays a chain.
    left: int | None = None
    _chain: dict[str, _Cell] = field(default_factory=dict)
    #: What names a blank node; None where it is a member of a list, or named by several triples.
    _named: dict[str, _Named | None] = field(default_factory=dict)
    _several: dict[_Named, dict[str, int]] = field(default_factory=dict)

    def see(self, row: int, subject: str, predicate: str, other: Object | None, graph: str | None) -> bool:
        """Look at a triple; whether it is part of a chain."""
        node = other.id if other is not None and other.literal is None else ""
        part = predicate in (FIRST, REST)
        if part:
            cell = self._chain.get(subject)
            if cell is None:
                cell = self._chain[subject] = _Cell(graph, row)
            cell.broken |= not subject.startswith("_:") or cell.graph != graph or other is None
            if predicate == FIRST:
                cell.broken |= cell.first is not None
                cell.first = other
            else:
                cell.broken |= bool(cell.rest) or not node
                cell.rest = node
        if node.startswith("_:") and predicate != REST:
            self._named[node] = None if predicate == FIRST or node in self._named else (subject, predicate, graph)
        return part

    def settle(self, said: Set[str], statements: Set[str], kept: Set[str]) -> None:
        """Decide which chains are lists. `said` are subjects of other triples, `statements` nodes
        that are statements, `kept` predicates whose objects have to stay nodes.
        """
        said = said | statements
        followers = Counter(cell.rest for cell in self._chain.values())
        for head in self._chain:
            named = self._named.get(head)
            if followers[head] or named is None or named[0] in statements or named[1] in kept:
                continue
            nodes, members = self._walk(head, named[2], followers, said)
            if members:
                self.members[head] = members
                self.cells.update(nodes)
                self._several.setdefault(named, {})[head] = len(self._several.get(named, ())) + 1
        for node in self._chain:
            if node not in self.cells:
                self.left = self._chain[node].row
                break
        self._chain, self._named = {}, {}

    def _walk(self, head: str, graph: str | None, followers: Counter[str], said: Set[str]) -> tuple[list[str], list[Object]]:
        nodes: list[str] = []
        members: list[Object] = []
        node = head
        while node != NIL:
            cell = self._chain.get(node)
            if cell is None or cell.broken or cell.first is None or not cell.rest or cell.graph != graph or node in said:
                return [], []
            if node != head and (followers[node] != 1 or node in self._named):
                return [], []
            if cell.first.literal is None and (cell.first.id in self._chain or cell.first.id == NIL):
                return [], []
            nodes.append(node)
            members.append(cell.first)
            node = cell.rest
        return nodes, members

    def qualifiers(self, named: _Named, head: str, position: int) -> tuple[tuple[str, Ref | Value], ...]:
        """The qualifiers of a member."""
        found = self._several[named]
        pairs: tuple[tuple[str, Ref | Value], ...] = ((POSITION, Quantity(position)),)
        return (*pairs, (LIST, Quantity(found[head]))) if len(found) > 1 else pairs

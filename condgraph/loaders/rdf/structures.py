"""Structural nodes of RDF that become statements with qualifiers: lists, declared paths, intermediate nodes.

Intermediate nodes are converted only with the option `collapse`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from condgraph.engine.errors import OptionError, numbered
from condgraph.engine.terms import LIST, POSITION, is_iri
from condgraph.engine.values import Quantity
from condgraph.loaders.rdf.terms import RDF, Object

if TYPE_CHECKING:
    from condgraph.engine.facts import Ref
    from condgraph.engine.values import Value
    from condgraph.loaders.base import Reading


# -- lists -------------------------------------------------------------------------------------------
# RDF lists: chains of rdf:first and rdf:rest become the ordered members of a list.
#
#     :recipe :step ("mix" "bake") .
#
# is two statements, (recipe, step, "mix") with the qualifier "list position" 1, and "bake" with 2. If a
# subject has several lists for one predicate, the qualifier "list" numbers them. A list is converted
# only without loss: its nodes are blank, are in one graph, are the object of one triple, have no other
# triples, and no list as a member. Any other list stays a chain of nodes.


FIRST: Final = RDF + "first"
REST: Final = RDF + "rest"
NIL: Final = RDF + "nil"
#: The triple whose object is a list: subject, predicate, graph.
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
    """The lists of a source: `see` every triple once, then call `settle`.

    `members` has the members of a list by its first node, `cells` the nodes of all lists.
    """

    members: dict[str, list[Object]] = field(default_factory=dict)
    cells: set[str] = field(default_factory=set)
    #: The first row of a list that stays a chain.
    left: int | None = None
    _chain: dict[str, _Cell] = field(default_factory=dict)
    #: The triple whose object is a blank node; None for a member of a list, or several triples.
    _named: dict[str, _Named | None] = field(default_factory=dict)
    _several: dict[_Named, dict[str, int]] = field(default_factory=dict)

    def see(self, row: int, subject: str, predicate: str, other: Object | None, graph: str | None) -> bool:
        """Record a triple; returns whether it is part of a chain."""
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

    def settle(self, subjects: Set[str], statements: Set[str], node_predicates: Set[str]) -> None:
        """Decide which chains are lists.

        `subjects` are subjects of other triples, `statements` nodes that are statements, and `node_predicates` predicates
        whose objects must stay nodes.
        """
        subjects = subjects | statements
        followers = Counter(cell.rest for cell in self._chain.values())
        for head in self._chain:
            named = self._named.get(head)
            if followers[head] or named is None or named[0] in statements or named[1] in node_predicates:
                continue
            nodes, members = self._walk(head, named[2], followers, subjects)
            if members:
                self.members[head] = members
                self.cells.update(nodes)
                self._several.setdefault(named, {})[head] = len(self._several.get(named, ())) + 1
        for node in self._chain:
            if node not in self.cells:
                self.left = self._chain[node].row
                break
        self._chain, self._named = {}, {}

    def _walk(self, head: str, graph: str | None, followers: Counter[str], subjects: Set[str]) -> tuple[list[str], list[Object]]:
        nodes: list[str] = []
        members: list[Object] = []
        node = head
        while node != NIL:
            cell = self._chain.get(node)
            if cell is None or cell.broken or cell.first is None or not cell.rest or cell.graph != graph or node in subjects:
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
        """Return the qualifiers of a member."""
        nodes = self._several[named]
        pairs: tuple[tuple[str, Ref | Value], ...] = ((POSITION, Quantity(position)),)
        return (*pairs, (LIST, Quantity(nodes[head]))) if len(nodes) > 1 else pairs


# -- declared nodes ----------------------------------------------------------------------------------
# Declared representations of statements: named graphs (`GRAPHS`), and nodes on a path of two predicates
# from a subject to an object.
#
#     :ada :spouse :m . :m :partner :william ; :from "1835"^^xsd:gYear .
#
# With the path `:spouse / :partner` this is (ada, "spouse", william) with the qualifier "from" 1835. From
# `:m :employee :ada ; :employer :acme` the path `^:employee / :employer` makes (ada, "employer", acme).


#: Declares that triples about a named graph apply to each of its statements.
GRAPHS: Final = "graph"
#: Leads from a property that only one triple has to the property that it represents (Nguyen, Bodenreider, Sheth:
#: Don't like RDF reification? Making statements about statements using singleton property. WWW 2014).
SINGLETON: Final = RDF + "singletonPropertyOf"


class Path(NamedTuple):
    """A path over a node: `first` leads from the subject to the node, `last` from the node to the object.

    `inverse`: `first` leads from the node to the subject.
    """

    first: str
    last: str
    inverse: bool

    @property
    def predicate(self) -> str:
        """The predicate of the statements."""
        return self.last if self.inverse else self.first


def path_of(text: str) -> Path:
    """Parse a path `IRI / IRI`, with `^` before an IRI that leads to the subject; raises `OptionError`."""
    first, slash, last = text.partition(" / ")
    inverse = first.startswith("^")
    first, last = first.removeprefix("^").strip(), last.strip()
    if not slash or not is_iri(first) or not is_iri(last) or first == last:
        raise OptionError(
            f"statements= names {text!r}, which is neither {GRAPHS!r} nor a path over a node",
            hint="a path is two IRIs, 'http://example.org/spouse / http://example.org/partner', or '^IRI / IRI' if the node "
            "leads to both ends",
        )
    return Path(first, last, inverse)


# -- intermediate nodes ------------------------------------------------------------------------------
# Intermediate nodes only hold the parts of a fact together, like Freebase's compound values. With the
# option `collapse` they become one statement with qualifiers.
#
#     :ada :spouse _:m .   _:m :partner :william ; :from "1835"^^xsd:gYear .
#
# becomes (ada, "spouse", william) with the qualifier "from" 1835. A node is collapsed only if that is
# certain: it has no name and no type, is the object of one triple, is in one graph, and leads to
# literals and named nodes, one of which is clearly the object: the one of a predicate of `collapse_to`
# (default `rdf:value`), else the only node, else the only literal. Other nodes stay nodes, and the
# report counts them by reason.


#: The values of `collapse=`: nothing, blank nodes, or also IRIs without a label.
CHOICES: Final = ("no", "blank", "unnamed")
VALUE: Final = RDF + "value"
#: How many kinds of statements the report lists.
_MAX_REPORTED: Final = 20
_SEVERAL: Final = "is the object of several triples", "are the object of several triples"
_ROLE: Final = (
    "is a member of a list, a class, a graph, or part of a statement about a statement",
    "are members of a list, classes, graphs, or parts of statements about statements",
)
_GRAPHS: Final = "stands in several graphs", "stand in several graphs"
_UNNAMED: Final = "leads to another node without a name", "lead to other nodes without a name"
_OBJECTS: Final = (
    "leads to several things that could be the object (collapse_to= names the predicate of the object)",
    "lead to several things that could be the object (collapse_to= names the predicate of the object)",
)


@dataclass(slots=True)
class Collapsed:
    """A node that becomes a statement: the object, its predicate, and qualifiers as (predicate, object)."""

    by: str
    object: Object
    qualifiers: list[tuple[str, Object]]


@dataclass(slots=True)
class _Node:
    #: The row of the first triple with it as the subject; None if there is none.
    row: int | None = None
    named_by: tuple[str, str, str | None] | None = None
    several: bool = False
    blocked: bool = False
    typed: bool = False
    graphs: set[str | None] = field(default_factory=set)
    triples: dict[tuple[str, str], Object] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        """Whether it is already clear that the node stays."""
        return self.several or self.blocked or self.typed


class Intermediate:
    """The intermediate nodes of a source.

    Call `see` once for every ordinary triple, `block` and `typed` for the others, then `settle`. `nodes`
    has what is collapsed, by id. The triples of nodes without a type are kept until then; with `unnamed`
    that may be most of a source.
    """

    def __init__(self, reading: Reading, wanted: str, leading: tuple[str, ...]) -> None:
        self._reading, self._leading = reading, leading
        self.wanted, self._blank = wanted != "no", wanted == "blank"
        self.nodes: dict[str, Collapsed] = {}
        self._seen: dict[str, _Node] = {}

    def block(self, *nodes: str | None) -> None:
        """Keep these nodes, which have another role in the source."""
        for ident in nodes:
            if ident and self._may_be(ident):
                node = self._node(ident)
                node.blocked, node.triples = True, {}

    def typed(self, ident: str) -> None:
        """Keep a node, which has a type."""
        if self._may_be(ident):
            node = self._node(ident)
            node.typed, node.triples = True, {}

    def see(self, row: int, subject: str, predicate: str, other: Object | None, graph: str | None) -> None:
        """Record a triple; its object is None for a triple term."""
        if self._may_be(subject):
            node = self._node(subject)
            node.row = row if node.row is None else node.row
            node.graphs.add(graph)
            if other is None:
                self.block(subject)
            elif not node.over:
                node.triples[predicate, other.id or str(other.literal)] = other
        if other is not None and other.literal is None and self._may_be(other.id):
            node = self._node(other.id)
            node.graphs.add(graph)
            if node.named_by not in (None, (subject, predicate, graph)):
                node.several, node.triples = True, {}
            node.named_by = node.named_by or (subject, predicate, graph)

    def settle(self, named: Callable[[str], bool], called: Callable[[str], str]) -> None:
        """Decide which nodes are collapsed, and report it.

        `named` tells whether a node has a label or is a predicate, `called` returns a predicate's name.
        """
        nameless = {ident: node for ident, node in self._seen.items() if not named(ident)}
        candidates = {ident: node for ident, node in nameless.items() if node.row is not None and node.named_by and not node.typed}
        unnamed = {ident for ident in nameless if ident.startswith("_:")}
        unnamed |= {ident for ident, node in candidates.items() if not node.over}
        kinds: dict[tuple[str, str, tuple[str, ...]], list[int]] = {}
        reasons: dict[tuple[str, str], list[int]] = {}
        for ident, node in candidates.items():
            why = self._collapse(ident, node, unnamed)
            if why is not None:
                reasons.setdefault(why, []).append(node.row or 0)
                continue
            known = self.nodes[ident]
            qualifiers = tuple(dict.fromkeys(called(key) for key, _ in known.qualifiers))
            kind = called(node.named_by[1]) if node.named_by else "", called(known.by), qualifiers
            kinds.setdefault(kind, []).append(node.row or 0)
        self._report(kinds, reasons)
        self._report_equal()
        self._seen = {}

    def _node(self, ident: str) -> _Node:
        node = self._seen.get(ident)
        if node is None:
            node = self._seen[ident] = _Node()
        return node

    def _collapse(self, ident: str, node: _Node, unnamed: Container[str]) -> tuple[str, str] | None:
        """Collapse a node, or return the reason why it cannot be."""
        if node.blocked:
            return _ROLE
        if node.several:
            return _SEVERAL
        if len(node.graphs) > 1:
            return _GRAPHS
        if any(other.literal is None and other.id in unnamed for other in node.triples.values()):
            return _UNNAMED
        pairs = [(predicate, other) for (predicate, _), other in node.triples.items()]
        nodes = [pair for pair in pairs if pair[1].literal is None]
        for group in (*([pair for pair in pairs if pair[0] == item] for item in self._leading), nodes, pairs):
            if len(group) == 1:
                by, main = group[0]
                self.nodes[ident] = Collapsed(by, main, [pair for pair in pairs if pair != group[0]])
                return None
            if group:
                break
        return _OBJECTS

    def _report(self, collapsed: dict[tuple[str, str, tuple[str, ...]], list[int]], kept: dict[tuple[str, str], list[int]]) -> None:
        for (predicate, by, qualifiers), rows in list(collapsed.items())[:_MAX_REPORTED]:
            qualifier_text = f", qualifiers {', '.join(map(repr, qualifiers))}" if qualifiers else ", no qualifiers"
            nodes = numbered(len(rows), "node is collapsed into a statement", "nodes are collapsed into statements")
            self._reading.warn(f"{nodes}: {predicate!r} with the object of {by!r}{qualifier_text}", row=rows[0])
        if len(collapsed) > _MAX_REPORTED:
            other_count = sum(len(rows) for rows in list(collapsed.values())[_MAX_REPORTED:])
            self._reading.warn(f"{numbered(other_count, 'node is', 'nodes are')} collapsed into statements of other kinds")
        if collapsed:
            self._reading.warn(
                "collapsed nodes are not kept: RDF that is exported has their statements, with qualifiers, "
                "in the place of their triples"
            )
        for (singular, plural), rows in kept.items():
            why = numbered(len(rows), f"node without a name or a type {singular}", f"nodes without a name or a type {plural}")
            self._reading.warn(f"{why}: not collapsed", row=min(rows))

    def _report_equal(self) -> None:
        """Report nodes with the same content, which become one statement."""
        keys: set[object] = set()
        equal = 0
        for ident, item in self.nodes.items():
            parts = frozenset((by, other.id or str(other.literal)) for by, other in item.qualifiers)
            key = self._seen[ident].named_by, item.object.id or str(item.object.literal), parts
            equal += key in keys
            keys.add(key)
        if equal:
            says = numbered(equal, "collapsed node says", "collapsed nodes say")
            self._reading.warn(f"{says} the same as another of the same subject: one statement")

    def _may_be(self, node: str) -> bool:
        return self.wanted and (not self._blank or node.startswith("_:"))

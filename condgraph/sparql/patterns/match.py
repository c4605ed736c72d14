"""Patterns on RDF stores: what the client keeps of a graph for them, the edges that a search asks
for, the statements of solutions.

Nodes go in chunks, in the form that the store takes: `VALUES`, or `IN` where that is what is quick
(Virtuoso).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.engine.facts import EntityKind
from condgraph.engine.iris import VALUE, nearest_double, value_named
from condgraph.engine.period import Period
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.store import KnownSchema
from condgraph.engine.values import NO_UNIT, Kind, Value
from condgraph.patterns.distance.domains import BARRED, PairEdges
from condgraph.patterns.graph import Numbers, SearchGraph
from condgraph.patterns.join.driver import run_part
from condgraph.patterns.join.join import Join, Limit
from condgraph.patterns.matches import Matches
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows
from condgraph.patterns.remote.catalogue import Catalogue
from condgraph.patterns.remote.match import NamedCatalogue, match_remote
from condgraph.patterns.remote.parts import Tally
from condgraph.patterns.remote.solutions import Held
from condgraph.patterns.remote.terms import CatalogueTerms
from condgraph.patterns.remote.values import ValuePlan, value_plans
from condgraph.patterns.values import with_value
from condgraph.sparql.compile.conditions import during_filter
from condgraph.sparql.dialect import STANDARD, Dialect, cut
from condgraph.sparql.layout import ENTITY_CLASSES, TYPE, GraphIris, double, exactly, integer, read_value, string
from condgraph.sparql.load.pull import pull
from condgraph.sparql.patterns.vectors import CachedVectors, VectorSource
from condgraph.vectors.encoders import Encoder
from condgraph.vectors.stored import IndexReport, OnProgress

# -- Joins over fetched edges ------------------------------------------------------------------------

# The join of a connected part over the edges that it can use, fetched from a store step by step.
#
# For stores that cannot rank as the order of solutions asks (SPARQL has no ids to order by, and no
# first few beside each row). Step by step along the pattern, the edges of the nodes found so far are
# fetched, with the predicates that the bound leaves; on what came the part is joined as in process.
# Every edge of every solution under the bound is among them, so the first solutions are the same.


#: Which end of an edge the nodes asked for are at.
End: TypeAlias = Literal["subject", "object"]
#: Edges as columns: subject, predicate (by number, memberships last), object, and what tells equal
#: ones apart; shape (n, 4), int64.
Edges: TypeAlias = NDArray[np.int64]
#: Nodes that have a value, and the predicates that they have it under.
Holders: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


class EdgeStore(Protocol):
    """A store that gives the edges of nodes."""

    def edges(
        self, catalogue: Catalogue, nodes: Numbers | None, end: End, predicates: Sequence[int], *, statements: bool,
        tally: Tally,
    ) -> Edges:  # fmt: skip
        """The edges with these nodes (None: any) at one end and one of these predicates.

        With `statements`, one row a statement, told apart by its id; else one row for equal
        triples.
        """
        ...

    def holders(self, catalogue: Catalogue, nodes: Numbers | None, plan: ValuePlan, tally: Tally) -> Holders:
        """Of these nodes (None: any) those that have a value as planned, and under which predicate,
        by number; a pair a statement at least once.
        """
        ...


@dataclass(slots=True)
class FetchedParts:
    """The joins of a search on a store of edges (`patterns.join.join.Server`)."""

    store: EdgeStore
    catalogue: Catalogue
    tally: Tally
    #: What was fetched: by end, predicates and kind, which nodes were asked for, and their edges.
    _known: dict[Any, tuple[NDArray[np.bool_], list[Edges]]] = field(default_factory=dict)
    #: Likewise the nodes that have values, by what these have to be.
    _held: dict[Any, tuple[NDArray[np.bool_], list[Holders]]] = field(default_factory=dict)

    def part(
        self, problem: Problem, nodes: Sequence[int], bound: int, length: int | None, by: Sequence[int], top: int | None
    ) -> tuple[Rows, bool]:
        """The first `length` solutions of a part, of each group where it has nodes of `by`."""
        if bound < problem.least(nodes):
            return Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in nodes}), False
        holders = _Holders(self, problem, bound - problem.least(nodes), list(nodes))
        graph = self._graph(problem, list(nodes), bound, holders)
        own = replace(problem, graph=graph, server=None, domains=holders.domains, asked=())
        if length is not None:
            return run_part(own, list(nodes), bound, length, by)
        kept = [Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in nodes})]

        def keep(rows: Rows) -> Limit:
            kept.append(rows)
            return bound, None

        Join(own, nodes, bound, None, (), keep).run()
        return Rows.joined(kept), False

    def joined(
        self, problem: Problem, ones: NDArray[Any], others: NDArray[Any], forward: bool, backward: bool
    ) -> NDArray[np.bool_]:
        """Which of these pairs of nodes some edge joins."""
        every = tuple(np.flatnonzero(self.catalogue.used).tolist())
        found = np.zeros(len(ones), bool)
        for near, far, wanted in ((ones, others, forward), (others, ones, backward)):
            if wanted:
                edges = self._fetch(np.unique(near).astype(np.int32), "subject", every, statements=False)
                keys = np.unique(edges[:, 0] << 32 | edges[:, 2])
                found |= np.isin(near.astype(np.int64) << 32 | far, keys)
        return found

    def between(self, ones: NDArray[Any], others: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The edges between pairs of nodes."""
        every = tuple(np.flatnonzero(self.catalogue.used).tolist())
        near = np.unique(ones).astype(np.int32)
        edges = [self._fetch(near, end, every, statements=True) for end in ("subject", "object")]
        wanted = np.unique(np.concatenate([ones.astype(np.int64) << 32 | others, others.astype(np.int64) << 32 | ones]))
        inside = [some[np.isin(some[:, 0] << 32 | some[:, 2], wanted)] for some in edges]
        return self._adjacency(inside).between(ones, others)

    # -- what a part can use -----------------------------------------------------------------------

    def _graph(self, problem: Problem, nodes: list[int], bound: int, holders: _Holders) -> SearchGraph:
        """The edges that solutions under the bound can have, as an adjacency; nodes that are to have
        values are looked at as they are reached.
        """
        slack = bound - problem.least(nodes)
        bonds = [bond for bond in problem.bonds if bond.first in nodes]
        several = any(len(bond.edges) > 1 for bond in [*bonds, *problem.loops.values()])
        several = several or (problem.distinct and len(problem.bonds) + len(problem.loops) > 1)
        allowed = {
            node: problem.domains[node].within(problem.domains[node].least + slack)[0]
            for node in nodes
            if not problem.domains[node].open
        }
        found: list[Edges] = []
        reach: dict[int, Numbers | None] = {}
        seed = min(allowed, key=lambda node: (len(allowed[node]), node)) if allowed else min(holders.left, default=nodes[0])
        reach[seed] = holders.of(seed, allowed.get(seed))
        left = list(bonds)
        while left:
            ahead = [bond for bond in left if bond.first in reach or bond.second in reach]
            # Edges between nodes that are found first: they leave fewer of them.
            bond = min(ahead, key=lambda one: (not (one.first in reach and one.second in reach), -one.least, one.first, one.second))
            left.remove(bond)
            near = bond.first if bond.first in reach else bond.second
            far = bond.other(near)
            beyond = reach.get(far, allowed.get(far))
            if beyond is not None and (reach[near] is None or len(beyond) < len(reach[near])):  # type: ignore[arg-type]
                edges = self._along(problem, bond, far, beyond, slack, statements=several)
            else:
                edges = self._along(problem, bond, near, reach[near], slack, statements=several)
            edges = _between(edges, reach[near], beyond)
            found.append(edges)
            ends = np.unique(edges[:, [0, 2]]).astype(np.int32)
            for node in (near, far):
                before = reach.get(node, allowed.get(node))
                reach[node] = holders.of(node, ends if before is None else ends[np.isin(ends, before)])
        for node, loop in problem.loops.items():
            if node in nodes:
                edges = self._along(problem, loop, node, reach.get(node, allowed.get(node)), slack, statements=several)
                found.append(edges[edges[:, 0] == edges[:, 2]])
        if problem.forbidden:
            inside = np.unique(np.concatenate([numbers for numbers in reach.values() if numbers is not None] or [_none()]))
            every = tuple(np.flatnonzero(self.catalogue.used).tolist())
            edges = self._fetch(inside.astype(np.int32), "subject", every, statements=several)
            found.append(edges[np.isin(edges[:, 2], inside)])
        return self._adjacency(found)

    def values(self, numbers: Numbers | None, plan: ValuePlan) -> Holders:
        """The nodes that have a value as planned, and under which predicate; what was fetched before
        is not fetched again.
        """
        key = plan.condition, tuple(plan.prices)
        asked, kept = self._held.setdefault(key, (np.zeros(self.catalogue.graph.size + 1, bool), []))
        fresh = numbers if numbers is None else numbers[~asked[numbers]]
        if not asked[-1] and (fresh is None or len(fresh)):
            check()
            found = self.store.holders(self.catalogue, fresh, plan, self.tally)
            if fresh is None:
                kept.clear()
            asked[-1 if fresh is None else fresh] = True
            kept.append(found)
        if not kept:
            return _none().astype(np.int64), _none().astype(np.int64)
        nodes, predicates = (np.concatenate(some) for some in zip(*kept, strict=True))
        return nodes, predicates

    def _along(
        self, problem: Problem, bond: PairEdges, side: int, numbers: Numbers | None, slack: int, *, statements: bool
    ) -> Edges:
        """The edges that a bond can use, at some nodes of one of its sides."""
        size = problem.graph.predicates
        ways: dict[End, set[int]] = {"subject": set(), "object": set()}
        for prices in bond.weights(side):
            pairs: tuple[tuple[End, NDArray[np.int64]], ...] = (
                ("subject", prices[0 : 2 * size : 2]),
                ("object", prices[1 : 2 * size : 2]),
            )
            if bond.first == bond.second:
                pairs = (("subject", prices[2 * size : 3 * size]),)
            least = min(int(prices.min(initial=BARRED)) for _, prices in pairs)
            for end, own in pairs:
                ways[end].update(np.flatnonzero((own <= least + slack) & (own < BARRED) & self.catalogue.used).tolist())
        found = [
            self._fetch(numbers, end, tuple(sorted(predicates)), statements=statements)
            for end, predicates in ways.items()
            if predicates
        ]
        return np.concatenate(found) if found else np.empty((0, 4), np.int64)

    def _fetch(self, numbers: Numbers | None, end: End, predicates: tuple[int, ...], *, statements: bool) -> Edges:
        """The edges of nodes at one end; what was fetched before is not fetched again."""
        key = end, predicates, statements
        size = self.catalogue.graph.size
        asked, kept = self._known.setdefault(key, (np.zeros(size + 1, bool), []))
        # The last place says that all were fetched.
        if not asked[-1]:
            fresh = None if numbers is None else numbers[~asked[numbers]]
            if fresh is None or len(fresh):
                check()
                edges = self.store.edges(self.catalogue, fresh, end, predicates, statements=statements, tally=self.tally)
                if fresh is None:
                    kept.clear()
                    asked[-1] = True
                else:
                    asked[fresh] = True
                kept.append(edges)
        found = np.concatenate(kept) if kept else np.empty((0, 4), np.int64)
        if numbers is None:
            return found
        wanted = np.zeros(size, bool)
        wanted[numbers] = True
        return found[wanted[found[:, 0 if end == "subject" else 2]]]

    def _adjacency(self, found: Sequence[Edges]) -> SearchGraph:
        """Edges as a search sees them; each of them once."""
        whole = self.catalogue.graph
        size, predicates = whole.size, whole.predicates
        edges = np.unique(np.concatenate(found), axis=0) if found else np.empty((0, 4), np.int64)
        subject, predicate, thing = edges[:, 0], edges[:, 1], edges[:, 2]
        loop = subject == thing
        nodes = np.concatenate([subject, thing[~loop]])
        others = np.concatenate([thing, subject[~loop]])
        labels = np.concatenate([np.where(loop, 2 * predicates + predicate, 2 * predicate), 2 * predicate[~loop] + 1])
        order = np.lexsort((labels, others, nodes))
        offsets = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(nodes, minlength=size), out=offsets[1:])
        return SearchGraph(
            offsets, others[order].astype(np.int32), labels[order].astype(np.int32), predicates, whole.entities, whole.rank
        )


class _Holders:
    """The domains of a part with the values that its nodes are to have: each node's are fetched once,
    for the nodes that it may be by then.
    """

    def __init__(self, parts: FetchedParts, problem: Problem, slack: int, nodes: list[int]) -> None:
        self._parts, self._problem = parts, problem
        self._plans = value_plans(problem, parts.catalogue, nodes, slack)
        self.domains = list(problem.domains)
        #: Nodes whose values have not been looked at.
        self.left = set(self._plans)

    def of(self, node: int, numbers: Numbers | None) -> Numbers | None:
        """Of some nodes (None: any) those that a node of the pattern may be by its values."""
        if node not in self.left:
            return numbers
        self.left.remove(node)
        edges = [edge for edge in self._problem.asked if edge.node == node]
        for edge, plan in zip(edges, self._plans[node], strict=True):
            held = self._parts.values(numbers, plan)
            self.domains[node] = with_value(self.domains[node], edge, *held)
            some = self.domains[node].nodes
            assert some is not None
            numbers = some if numbers is None else some[np.isin(some, numbers)]
        return numbers


def _none() -> Numbers:
    return np.empty(0, np.int32)


def _between(edges: Edges, one: Numbers | None, two: Numbers | None) -> Edges:
    """The edges between two sets of nodes (None: any), in either direction."""
    if not len(edges) or (one is None and two is None):
        return edges

    def inside(column: NDArray[np.int64], numbers: Numbers | None) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = np.ones(len(column), bool) if numbers is None else np.isin(column, numbers)
        return found

    keep = (inside(edges[:, 0], one) & inside(edges[:, 2], two)) | (inside(edges[:, 0], two) & inside(edges[:, 2], one))
    found: Edges = edges[keep]
    return found


# -- Values ------------------------------------------------------------------------------------------

# Values of a pattern in SPARQL: what a store is asked for, and what of it is as asked.
#
# The store compares doubles, at most a step beyond what is asked; its value nodes say in their names
# what they are, so that the client compares exactly.


#: The least step that stores are trusted with; they need not read the smallest doubles.
_LEAST: Final = 1e-300


def value_text(plan: ValuePlan) -> str:
    """Patterns by which `?v` may be as asked."""
    ways = _ways(plan)
    return ways[0] if len(ways) == 1 else " UNION ".join(f"{{ {way} }}" for way in ways)


def _ways(plan: ValuePlan) -> list[str]:
    """Patterns, each of one way in which a value may be as asked."""
    found, operator = [], plan.condition.operator
    for one in plan.numbers:
        number = nearest_double(one.number)
        step = max(math.ulp(number), _LEAST) if math.isfinite(number) else 0.0
        low, high = number - step, number + step
        tests = []
        if operator[0] != "<" and math.isfinite(low):
            tests.append(f"?n >= {double(low)}")
        if operator[0] != ">" and math.isfinite(high):
            tests.append(f"?n <= {double(high)}")
        unit = "" if one.unit == NO_UNIT else f" ; <pred:unit> {string(one.unit)}"
        where = f" FILTER({' && '.join(tests)})" if tests else ""
        found.append(f"?v {TYPE} <pred:Quantity>{unit} ; <pred:value> ?n{where}")
    time = plan.time
    if time is not None:
        start, end = integer(time.start), integer(time.end)
        test = {
            "=": f"?a >= {start} && ?b <= {end}",
            "<": f"?b <= {start}",
            "<=": f"?b <= {end}",
            ">": f"?a >= {end}",
            ">=": f"?a >= {start}",
        }[operator]
        found.append(f"?v {TYPE} <pred:Time> ; <pred:start> ?a ; <pred:end> ?b FILTER({test})")
    return found


def value_at(iri: str, base: str) -> Value | None:
    """The value that a node says in its name; None where the name is a hash."""
    return value_named(iri[len(base) + len(VALUE) :])


def values_read(rows: Iterable[tuple[str, str, str]], base: str) -> dict[str, Value]:
    """Values by their nodes, from what is said of nodes: node, term of the vocabulary, lexical form."""
    said: dict[str, dict[str, str]] = {}
    for node, term, text in rows:
        name = "type" if term == TYPE[1:-1] else term.removeprefix("pred:")
        said.setdefault(node, {})[name] = text.removeprefix("pred:") if name == "type" else text
    return {node: exactly(read_value(found), node[len(base) + len(VALUE) :]) for node, found in said.items()}


# -- Patterns ----------------------------------------------------------------------------------------


_ENTITIES: Final = "SELECT ?e ?n WHERE {{ ?e {type} <pred:{kind}> ; <pred:name> ?n }}"
_TEXTS: Final = f"SELECT DISTINCT ?v ?t WHERE {{ ?f <pred:fact_t> ?v . ?v {TYPE} <pred:Text> ; <pred:value> ?t }}"
_MEMBERSHIP: Final = f"SELECT ?m WHERE {{ ?m {TYPE} <pred:Membership> }} LIMIT 1"
#: What is read of an entity.
_OF_ENTITIES: Final = (TYPE, "<pred:name>", "<pred:source>", "<pred:row>", "<pred:position>")


class SelectStore(Protocol):
    """A store that holds one graph."""

    @property
    def base(self) -> str:
        """The IRI of the graph."""
        ...

    def select(self, text: str) -> Iterable[Any]:
        """The rows of a SELECT over the graph."""
        ...


class Node(NamedTuple):
    """A term as far as reading looks at it."""

    value: str


class Triple(NamedTuple):
    """A triple as far as reading looks at it."""

    subject: Node
    predicate: Node
    object: Node


class SparqlPatterns:
    """Patterns on one state of a graph in an RDF store. `schema` is what lowering knows of it,
    `vectors` where terms come from.
    """

    def __init__(self, place: SelectStore, schema: KnownSchema, vectors: VectorSource, dialect: Dialect = STANDARD) -> None:
        self._place, self._schema, self._vectors, self._dialect = place, schema, vectors, dialect
        self._names = GraphIris(place.base)
        self._terms: dict[tuple[str, int], CatalogueTerms] = {}
        self._period: Period | None = None
        self.catalogue = self._fetch()
        self._predicates = [self._names.predicate(name) for name in self.catalogue.predicates]
        self._numbers = {iri[1:-1]: number for number, iri in enumerate(self._predicates)}
        self._iris = [*map(self._names.entity, self.catalogue.ids), *map(self._names.value, self.catalogue.texts)]
        self._nodes = {iri[1:-1]: number for number, iri in enumerate(self._iris)}

    def match(
        self,
        program: Any,
        *,
        encoder: Encoder | str | None = None,
        limit: int | None = None,
        period: Period | None = None,
        **options: Any,
    ) -> Matches:
        """The subgraphs that are nearest to a pattern, as a snapshot of the graph (of a period) gives them."""
        asked = ("", 0) if encoder is None else (encoder, -1) if isinstance(encoder, str) else (encoder.id, encoder.dimension)
        terms = self._terms.get(asked)
        if terms is None:
            terms = self._terms[asked] = self._vectors.terms(self.catalogue, encoder)
        names = NamedCatalogue(self.catalogue, self._members)
        place = copy(self)
        place._period = period
        found, tally = match_remote(place, names, self.catalogue, terms, program, limit=limit, period=period, **options)
        found.sparql = "\n\n".join(tally.texts)
        return found

    def index(self, vectors: CachedVectors, encoder: Encoder, on_progress: OnProgress | None) -> IndexReport:
        """Keep the vectors of the graph's names; patterns go by them from now on."""
        self._terms.clear()
        return vectors.index(self.catalogue, encoder, on_progress)

    def parts(self, catalogue: Catalogue, tally: Tally) -> FetchedParts:
        """The joins of a search, over fetched edges."""
        return FetchedParts(self, catalogue, tally)

    # -- names -------------------------------------------------------------------------------------

    def _fetch(self) -> Catalogue:
        entities = []
        for kind, name in ENTITY_CLASSES.items():
            for row in self._place.select(_ENTITIES.format(type=TYPE, kind=name)):
                entities.append((self._names.name_of(row["e"].value), row["n"].value, int(kind)))
        texts = [row["t"].value for row in self._place.select(_TEXTS)]
        schema = self._schema
        used = {
            *schema.relations,
            *(name for name in schema.attributes if any(kind is Kind.TEXT for kind, _ in schema.attribute_kinds(name))),
        }
        predicates = {name: name in used for name in {*schema.relations, *schema.attributes, *schema.qualifiers}}
        values = {name: schema.attribute_kinds(name) for name in schema.attributes}
        memberships = any(True for _ in self._place.select(_MEMBERSHIP))
        return Catalogue(entities, texts, predicates, memberships=memberships, values=values)

    def _members(self, concepts: tuple[int, ...]) -> NDArray[np.int32]:
        found: set[int] = set()
        kinds = self.catalogue.kinds
        for some in cut(concepts, self._dialect.list_length):
            among = self._among("?c", [self._iris[number] for number in some])
            text = f"SELECT DISTINCT ?e WHERE {{ {among} ?e <pred:instance_of> ?c }}"
            numbers = (self._nodes.get(row["e"].value, -1) for row in self._place.select(text))
            found.update(number for number in numbers if number >= 0 and kinds[number] != EntityKind.CONCEPT)
        return np.array(sorted(found), np.int32)

    def _among(self, variable: str, iris: Sequence[str]) -> str:
        if self._dialect.long_values:
            return f"VALUES {variable} {{{' '.join(iris)}}}"
        return f"FILTER({variable} IN ({', '.join(iris)}))"

    # -- edges -------------------------------------------------------------------------------------

    def edges(
        self, catalogue: Catalogue, nodes: Numbers | None, end: End, predicates: Sequence[int], *, statements: bool, tally: Tally
    ) -> Edges:
        """The edges of nodes at one end; see `fetched.EdgeStore`."""
        last = len(catalogue.predicates)
        variable = "?x" if end == "subject" else "?y"
        found: list[tuple[int, int, int, int]] = []
        named = [number for number in predicates if number != last]
        chunks = [None] if nodes is None else list(cut(nodes.tolist(), self._dialect.list_length))
        for chunk in chunks:
            # Texts are at the object end alone, and memberships join entities.
            if chunk is not None and end == "subject":
                chunk = [number for number in chunk if number < catalogue.entities]
            if chunk is not None and not chunk:
                continue
            among = "" if chunk is None else self._among(variable, [self._iris[number] for number in chunk]) + " "
            if named:
                found += self._rows(self._edge_text(among, named, statements), named, tally)
            if last in predicates:
                text = (
                    f"SELECT DISTINCT ?x ?y WHERE {{ {among}?m {TYPE} <pred:Membership> ; <pred:member> ?x ; <pred:concept> ?y }}"
                )
                found += [(s, last, o, 0) for s, _, o, _ in self._rows(text, [last], tally)]
        edges: Edges = np.array(found, np.int64).reshape(-1, 4)
        return edges

    def _edge_text(self, among: str, named: Sequence[int], statements: bool) -> str:
        """The query of edges with these predicates; of all of them where they are too many to be
        listed.
        """
        whole = len(named) > self._dialect.list_length
        one = self._predicates[named[0]] if len(named) == 1 else "?p"
        listed = "" if whole or len(named) == 1 else self._among("?p", [self._predicates[number] for number in named]) + " "
        stated = f"{among}{listed}?f <pred:fact_h> ?x ; <pred:fact_r> {one} ; <pred:fact_t> ?y{self._then('?f')}"
        if statements:
            return f"SELECT ?f ?x ?p ?y WHERE {{ {stated} }}"
        if self._period is not None:
            return f"SELECT DISTINCT ?x ?p ?y WHERE {{ {stated} }}"
        return f"SELECT DISTINCT ?x ?p ?y WHERE {{ {among}{listed}?x {one} ?y }}"

    def _then(self, f: str) -> str:
        """A condition after the triples of a statement: it holds in the period of the search."""
        if self._period is None:
            return ""
        time = self._period.interval
        test = during_filter(self._period.relation, "?since", "?until", integer(time.start), integer(time.end))
        times = f"{f} <pred:valid_start> ?since . {f} <pred:valid_end> ?until"
        return f" FILTER NOT EXISTS {{ {times} FILTER(!({test})) }}"

    def _rows(self, text: str, named: Sequence[int], tally: Tally) -> Iterator[tuple[int, int, int, int]]:
        tally.queries += 1
        tally.texts.append(text)
        only = named[0] if len(named) == 1 else None
        allowed, nodes = set(named), self._nodes
        for row in self._place.select(text):
            tally.rows += 1
            subject, thing = nodes.get(row["x"].value, -1), nodes.get(row["y"].value, -1)
            predicate = only if only is not None else self._numbers.get(row["p"].value, -1)
            # Numbers and times are no nodes, and the vocabulary of the layout is no predicate.
            if subject >= 0 and thing >= 0 and predicate in allowed:
                key = self._names.sid_of(row["f"].value) if text.startswith("SELECT ?f ") else 0
                yield subject, predicate, thing, key

    # -- values ------------------------------------------------------------------------------------

    def holders(self, catalogue: Catalogue, nodes: Numbers | None, plan: ValuePlan, tally: Tally) -> Holders:
        """The nodes that have a value as planned, and under which predicate; see
        `fetched.EdgeStore`.
        """
        named = [self._numbers[self._names.predicate(name)[1:-1]] for name in plan.prices]
        whole = len(named) > self._dialect.list_length
        one = self._predicates[named[0]] if len(named) == 1 else "?p"
        listed = "" if whole or len(named) == 1 else self._among("?p", [self._predicates[number] for number in named]) + " "
        found: list[tuple[int, int]] = []
        allowed = set(named)
        for among in self._chunks("?x", nodes):
            held = f"?x {one} ?v ."
            if self._period is not None:
                held = f"?f <pred:fact_h> ?x ; <pred:fact_r> {one} ; <pred:fact_t> ?v{self._then('?f')}"
            rows = list(self._valued(f"?x ?v{' ?p' if one == '?p' else ''}", f"{among}{listed}{held}", plan, tally))
            for row in rows:
                predicate = named[0] if len(named) == 1 else self._numbers.get(row["p"].value, -1)
                node = self._nodes.get(row["x"].value, -1)
                if node >= 0 and predicate in allowed:
                    found.append((node, predicate))
        pairs = np.array(found, np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def _chunks(self, variable: str, nodes: Numbers | None) -> Iterator[str]:
        """Patterns that hold a variable to some entities, as many as a query takes; none for any."""
        if nodes is None:
            yield ""
            return
        entities = [number for number in nodes.tolist() if number < self.catalogue.entities]
        for chunk in cut(entities, self._dialect.list_length):
            yield self._among(variable, [self._iris[number] for number in chunk]) + " "

    def _valued(self, variables: str, text: str, plan: ValuePlan, tally: Tally) -> Iterator[Any]:
        """The rows of patterns whose `?v` is a value as planned."""
        query = f"SELECT DISTINCT {variables} WHERE {{ {text} {value_text(plan)} }}"
        tally.queries += 1
        tally.texts.append(query)
        rows = list(self._place.select(query))
        tally.rows += len(rows)
        base = self._names.base
        values = {iri: value_at(iri, base) for iri in {row["v"].value for row in rows}}
        hashed = sorted(f"<{iri}>" for iri, value in values.items() if value is None)
        for chunk in cut(hashed, self._dialect.list_length):
            said = self._place.select(f"SELECT ?s ?p ?o WHERE {{ {self._among('?s', chunk)} ?s ?p ?o }}")
            values.update(values_read(((row["s"].value, row["p"].value, row["o"].value) for row in said), base))
        for row in rows:
            if plan.condition.holds(values[row["v"].value]):
                yield row

    # -- statements --------------------------------------------------------------------------------

    def between(self, catalogue: Catalogue, pairs: Sequence[tuple[int, int]], values: Sequence[Held] = ()) -> Snapshot:
        """All statements and stated memberships between pairs of nodes, and statements of values,
        with qualifiers and sources.
        """
        wanted = {(a, b) for one, two in pairs for a, b in ((one, two), (two, one)) if a < catalogue.entities}
        subjects = sorted({a for a, _ in wanted})
        nodes: list[str] = []
        for chunk in cut(subjects, self._dialect.list_length):
            among = self._among("?x", [self._iris[number] for number in chunk])
            for text in (
                f"SELECT ?f ?x ?y WHERE {{ {among} ?f <pred:fact_h> ?x ; <pred:fact_t> ?y{self._then('?f')} }}",
                f"SELECT ?f ?x ?y WHERE {{ {among} ?f {TYPE} <pred:Membership> ; <pred:member> ?x ; <pred:concept> ?y }}",
            ):
                for row in self._place.select(text):
                    if (self._nodes[row["x"].value], self._nodes.get(row["y"].value, -1)) in wanted:
                        nodes.append(row["f"].value)
        for numbers, plan in values:
            for among in self._chunks("?x", np.array(numbers, np.int32)):
                rows = self._valued("?f ?v", f"{among}?f <pred:fact_h> ?x ; <pred:fact_t> ?v .{self._then('?f')}", plan, Tally())
                nodes += (row["f"].value for row in rows)
        nodes = list(dict.fromkeys(nodes))
        triples = list(self._said(nodes))
        # Values, sources and records, then what these name; entities by what they are called.
        seen = set(nodes)
        for _ in range(3):
            beyond = {triple.object.value for triple in triples if triple.object.value.startswith(self._names.base)} - seen
            seen |= beyond
            triples += self._said(sorted(beyond))
        met = {number for pair in pairs for number in pair} | {number for numbers, _ in values for number in numbers}
        ids = sorted(number for number in met if number < catalogue.entities)
        triples += self._said(sorted({self._iris[number][1:-1] for number in ids} - seen))
        return pull(triples, lambda text: iter(self._place.select(text)), self._place.base)

    def _said(self, iris: Sequence[str]) -> Iterator[Triple]:
        """What is said of nodes: of entities their names alone, of others everything."""
        groups: tuple[list[str], list[str]] = ([], [])
        for iri in iris:
            rest = iri[len(self._names.base) :]
            groups[rest.startswith(".") and rest != ".empty"].append(f"<{iri}>")
        for whole, group in enumerate(groups):
            limited = "" if whole else self._among("?p", _OF_ENTITIES) + " "
            for chunk in cut(group, self._dialect.list_length):
                for row in self._place.select(f"SELECT ?s ?p ?o WHERE {{ {self._among('?s', chunk)} {limited}?s ?p ?o }}"):
                    yield Triple(Node(row["s"].value), Node(row["p"].value), Node(row["o"].value))

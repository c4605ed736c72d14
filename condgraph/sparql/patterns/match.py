"""Patterns on RDF stores: what the client keeps of a graph for them, the edges that a search asks
for, the statements of solutions.

Nodes go in chunks, in the form that the store takes: `VALUES`, or `IN` where that is what is quick
(Virtuoso).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.facts import EntityKind
from condgraph.engine.period import Period
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.store import KnownSchema
from condgraph.engine.values import Kind
from condgraph.patterns.graph import Numbers
from condgraph.patterns.matches import Matches
from condgraph.patterns.remote.catalogue import Catalogue
from condgraph.patterns.remote.fetched import Edges, End, FetchedParts, Holders
from condgraph.patterns.remote.match import NamedCatalogue, match_remote
from condgraph.patterns.remote.parts import Tally
from condgraph.patterns.remote.solutions import Held
from condgraph.patterns.remote.terms import CatalogueTerms
from condgraph.patterns.remote.values import ValuePlan
from condgraph.sparql.compile.conditions import during_filter
from condgraph.sparql.dialect import STANDARD, Dialect, cut
from condgraph.sparql.layout import ENTITY_CLASSES, TYPE, GraphIris, integer
from condgraph.sparql.load.pull import pull
from condgraph.sparql.patterns.values import value_at, value_text, values_read
from condgraph.sparql.patterns.vectors import CachedVectors, VectorSource
from condgraph.vectors.encoders import Encoder
from condgraph.vectors.stored import IndexReport, OnProgress

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

"""An endpoint that condgraph did not prepare, as a store.

One query fetches the evidence of a plan; the rules of the RDF loader read it, and the plan runs on it in process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.algebra.operators import around_of, remade
from condgraph.engine.bounds import check, kept, watched, within
from condgraph.engine.errors import CondgraphError, DeadlineError, ParseError, StoreError, UnsupportedError
from condgraph.engine.evidence import EvidenceList
from condgraph.engine.execute import Run
from condgraph.engine.execute.evidence import trace_back
from condgraph.engine.execute.run import count
from condgraph.engine.execute.witness_plan import Unit, keys_read, shown
from condgraph.engine.facts import Entity, Source
from condgraph.engine.schema import Kinds, offered
from condgraph.engine.snapshot.readback import statements
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.store import plan_answer
from condgraph.engine.stored_answer import ExplainedAnswer
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.terms import is_iri
from condgraph.engine.values import NO_UNIT, Kind
from condgraph.overview.survey import partial_survey
from condgraph.sparql.client import Endpoint
from condgraph.sparql.compile.conditions import TARGET
from condgraph.sparql.dialect import cut
from condgraph.sparql.layout import string
from condgraph.sparql.native.fetch import LISTED, MAX_TRIPLES, NODE_EXISTS, UNIT, Fetcher, Part, fetched
from condgraph.sparql.native.look import IS_KNOWN, TEXT_LANGUAGE, numbers_of, text_languages
from condgraph.sparql.native.mapping import OWN, TYPE, Counts, Mapping, Predicate

if TYPE_CHECKING:
    import pyoxigraph

    from condgraph.engine.check import KnownIds
    from condgraph.engine.lowered import Lowered
    from condgraph.engine.store import QueryStore, Request, Size
    from condgraph.overview.survey import Survey
    from condgraph.patterns.matches import Matches

#: The source of all statements.
SOURCE: Final = "sparql"
#: Results with fewer rows are not checked for a limit by counting again.
UNCAPPED: Final = 1_000
#: The most bytes of a JSON result (about those of the most rows); larger ones are refused unread.
MAX_BYTES: Final = 256 * 2**20

#: The most names of one program that a query looks up.
_MAX_NAMES: Final = 1_000
#: How many seconds a look at how a predicate's texts are written may take.
_LOOKUP_SECONDS: Final = 5.0
#: How many seconds the search for similar names may take, if a name does not exist.
_MAX_SEARCH: Final = 2.0


class EndpointSchema(StoredSchema):
    """The schema of an endpoint for lowering. Names of entities are looked up, each once."""

    def __init__(self, mapping: Mapping, store: NativeRdfStore) -> None:
        super().__init__(_described(mapping), store.shows)
        self.mapping, self._store = mapping, store
        self._names: dict[str, bool] = {}
        #: Names that are assumed to exist until an answer confirms it; None if names are looked up at once.
        self.assumed: set[str] | None = None

    def assuming(self) -> EndpointSchema:
        """Return this schema for one program, whose names are assumed to exist."""
        schema = copy(self)
        # What was looked up serves other programs as well.
        self.kept.setdefault("leases", {})
        schema.assumed, schema.kept = set(), {**self.kept, "plans": dict(self.kept.get("plans", ()))}
        return schema

    def confirm(self, program: EndpointSchema, snapshot: Snapshot | None) -> bool:
        """Tell whether the names that a program assumed exist; if so, keep the program's plan.

        The snapshot of what it reads may show a name; the endpoint is asked about the others.
        """
        for name in sorted(program.assumed or ()):
            if snapshot is not None and len(snapshot.named(name)):
                self._names[name] = True
            elif not self.has_entity(name):
                return False
        self.kept.setdefault("plans", {}).update(program.kept["plans"])
        return True

    def has_entity(self, name: str) -> bool:
        """Tell whether some node has this name, by one small query for each new name."""
        if name not in self._names:
            if self.assumed is not None:
                self.assumed.add(name)
                return True
            self._names[name] = self._store.is_name(name)
        return self._names[name]

    def qualifier_kinds(self, key: str, predicate: str | None = None) -> Kinds:
        """Return the types and units of a qualifier's values; which predicates have it is unknown."""
        return super().qualifier_kinds(key) if predicate is None or predicate in self._of else {}

    def _is_read_alone(self, key: str, qualifier: bool) -> bool:
        """Tell whether each value is read on its own. See `StoredSchema._is_read_alone`.

        That is also true of a literal's language and datatype, of a triple's named graph, and, in a Wikibase, whose
        properties have one type, of properties with neither texts nor numbers without unit.
        """
        if qualifier and any(predicate.name == key and predicate.iri.startswith(OWN) for predicate in self.mapping.qualifiers):
            return True
        kinds = self.qualifier_kinds(key) if qualifier else self.attribute_kinds(key)
        typed = not any(kind is Kind.TEXT or (kind, unit) == (Kind.QUANTITY, NO_UNIT) for kind, unit in kinds)
        return typed and self.mapping.shape == "wikibase"

    def has_concept(self, name: str) -> bool:
        """Tell whether some class has this name; in a Wikibase, ask the endpoint."""
        return super().has_concept(name) or (self.mapping.shape == "wikibase" and self.has_entity(name))

    def has_id(self, ident: str) -> bool:
        """Tell whether some triple has this node."""
        return self._store.has(alg.ById((ident,)))

    def nearest_entities(self, name: str, *, most: int = 5) -> list[str]:
        """Return names similar to a name, among those that begin with its first word."""
        return offered(name, [], self._store.names_like(name), most)


def _described(mapping: Mapping) -> dict[str, Any]:
    def listed(counts: Counts) -> list[list[Any]]:
        return [[int(kind), unit, number] for (kind, unit), number in sorted(counts.items())]

    def attributes(predicates: Iterable[Predicate]) -> dict[str, list[list[Any]]]:
        return {
            predicate.name: listed(predicate.values)
            for predicate in sorted(predicates, key=lambda predicate: predicate.name)
            if predicate.values
        }

    qualifiers = {
        predicate.name: listed(
            {**predicate.values, **({(Kind.ENTITY, NO_UNIT): predicate.relations} if predicate.relations else {})}
        )
        for predicate in sorted(mapping.qualifiers, key=lambda predicate: predicate.name)
    }
    concepts: dict[str, int] = {}
    for name, number in mapping.concepts.values():
        concepts[name] = concepts.get(name, 0) + number
    relations = sorted(predicate.name for predicate in mapping.predicates if predicate.relations)
    return {
        "relations": relations,
        "attributes": attributes(mapping.predicates),
        "qualifiers": qualifiers,
        "concepts": sorted(concepts),
        "sources": [SOURCE],
        # On every predicate (`qualifier_kinds`).
        "on": {},
        "predicates": {predicate.name: [0] for predicate in sorted(mapping.predicates, key=lambda predicate: predicate.name)},
        "tables": [],
        "tabular": [],
        "temporal": mapping.shape == "wikibase" or bool(mapping.statements) or bool(mapping.times),
        "inexact": True,
        "raw": True,
        "sizes": {predicate.name: predicate.relations for predicate in mapping.predicates if predicate.relations},
        "members": concepts,
    }


class EndpointAnswer(ExplainedAnswer):
    """The answer to one program, with the SPARQL that fetched what it reads.

    The rest of its evidence is fetched when it is first looked at, unless `whole` says that it was fetched already.
    """

    def __init__(self, store: NativeRdfStore, request: Request, lowered: Lowered, run: Run, text: str, *, whole: bool) -> None:
        super().__init__(cast("QueryStore", store), request, lowered, run)
        self._endpoint, self.sparql, self._is_whole = store, text, whole

    @kept
    def _whole(self) -> Run:
        """The plan run on all of its evidence."""
        if self._is_whole:
            return self.run
        run = self._endpoint.witness(self.plan)
        run.notes.update(self._notes)
        return run

    @kept
    def evidence(self) -> EvidenceList:
        """The evidence of the answer, by one more query."""
        return EvidenceList(trace_back(self._whole, self.plan), self.plan, self._count_results)

    def evidence_of(self, row: int) -> EvidenceList:
        """Return the evidence of one row of a table."""
        return self._evidence_of(self._whole, row)

    def ready(self, timeout: float | None = None) -> None:
        """Fetch the statements of the evidence, within so many seconds."""
        with within(timeout):
            self._whole  # noqa: B018 - it is kept

    def _count_results(self, nodes: Sequence[Node], timeout: float | None = None) -> list[int]:
        return [len(self._whole.outcome(node)) for node in nodes]  # type: ignore[arg-type]

    def recounted(self, nodes: Sequence[Node], timeout: float | None = None) -> list[int]:
        """Return how many fetched statements or entities each operator gives."""
        return count(self._whole.snapshot, nodes, timeout)

    def _size(self, node: Node) -> tuple[int, tuple[str, ...]]:
        size, sample = self._size_in(self._whole, node)
        if isinstance(node, alg.AllEntities):
            # Of all entities, only those that the program needs were fetched.
            size = max(size, self._endpoint.number_of(node))
        return size, sample


class NativeRdfStore:
    """The triples of an endpoint, queried in place. `build` makes a graph from triples (the RDF loader)."""

    declared: tuple[str, ...] = ()

    def __init__(self, endpoint: Endpoint, look: Callable[[bool], Mapping], build: Callable[..., Snapshot]) -> None:
        self.endpoint, self._look, self._build = endpoint, look, build
        self.place, self.read_only = endpoint.query_url, True
        self._mapping: Mapping | None = None
        self._schema: EndpointSchema | None = None
        #: Languages of the objects of predicates.
        self._text_languages: dict[str, tuple[str, ...] | None] = {}
        #: Attributes for which it is not known how all of their values are read.
        self._unread: set[str] = set()
        #: Names of superclasses with subclasses that are not a list, for stores that lose rows otherwise.
        self._unlisted: set[str] = set()
        #: Labels of units, as triples.
        self._units: dict[Any, list[tuple[Any, Any, Any]]] = {}
        #: The size of the longest result that was counted and is complete.
        self._complete = 0

    def __repr__(self) -> str:
        return f"<NativeRdfStore at {self.place}>"

    @property
    def timeout(self) -> float | None:
        """The seconds for a call without a deadline of its own."""
        return self.endpoint.timeout

    @property
    def mapping(self) -> Mapping:
        """The endpoint's mapping."""
        if self._mapping is None:
            self._mapping = self._look(False)
        return self._mapping

    @property
    def schema(self) -> EndpointSchema:
        """The schema that lowering uses."""
        if self._schema is None:
            self._schema = EndpointSchema(self.mapping, self)
        return self._schema

    @property
    def naming_schema(self) -> EndpointSchema:
        """The schema, which looks up names."""
        return self.schema

    linking_schema = naming_schema

    def refresh(self) -> None:
        """Look at the endpoint again."""
        self._mapping, self._schema = self._look(True), None
        self._units.clear()
        self._text_languages.clear()

    def close(self) -> None:
        """Close the connections that no query uses."""
        self.endpoint.close()

    # -- queries -----------------------------------------------------------------------------------

    def select(self, text: str) -> tuple[list[Any], list[str]]:
        """Return the rows of a query and the names of their variables; raise `StoreError` if the endpoint omits rows."""
        result: Any = self.endpoint.query(text, graphs=self.mapping.graphs, most_bytes=MAX_BYTES)
        rows = list(watched(result))
        # A limit cannot be below the size of a result that was complete. Limits are round numbers.
        if len(rows) > max(self._complete, self.mapping.rows, UNCAPPED - 1) or (len(rows) >= UNCAPPED and len(rows) % 100 == 0):
            counting = f"SELECT (COUNT(*) AS ?n) WHERE {{ {{ {text} }} }}"
            counted = list(self.endpoint.query(counting, graphs=self.mapping.graphs))  # type: ignore[arg-type]
            total = int(counted[0]["n"].value) if counted and counted[0]["n"] is not None else None
            if total is None or total > len(rows):
                total_text = "more" if total is None else f"{total:,}"
                raise StoreError(
                    f"{self.place} gives {len(rows):,} of {total_text} rows without a word: it has a limit",
                    hint="ask for less: begin with a name, or filter by a concept",
                )
            self._complete = max(self._complete, len(rows))
        if len(rows) > MAX_TRIPLES:
            raise UnsupportedError(
                TARGET,
                [f"a program that rests on more than {MAX_TRIPLES:,} triples"],
                hint="begin with a name, or filter by a concept",
            )
        return rows, [variable.value for variable in result.variables]

    def _fetcher(self) -> Fetcher:
        return Fetcher(self.mapping, self.endpoint.dialect, self._languages, self._numbers, self._classes)

    def _languages(self, iri: str) -> tuple[str, ...] | None:
        """Return the languages of a predicate's objects if all are texts (`text_languages`).

        That takes one query for each predicate whose texts are compared.
        """
        if iri not in self._text_languages:
            self._text_languages[iri] = None
            known_filter = IS_KNOWN if self.mapping.shape == "wikibase" else ""
            text = f"SELECT DISTINCT (<{iri}> AS ?p) ?t WHERE {{ ?s <{iri}> ?o . {known_filter} {TEXT_LANGUAGE} }}"
            try:
                with within(_LOOKUP_SECONDS):
                    rows: Any = self.endpoint.query(text, graphs=self.mapping.graphs)
                    self._text_languages[iri] = text_languages(rows).get(iri)
            except (StoreError, DeadlineError, ParseError):
                check()
        return self._text_languages[iri]

    def _numbers(self, predicate: Predicate) -> Predicate | None:
        """Return a predicate with the kinds and units of all its values instead of a sample's, by one query.

        It is None if that takes too long or shows other units.
        """

        def read_counts() -> Predicate | None:
            text, read = numbers_of(self.mapping, predicate)
            try:
                with within(_LOOKUP_SECONDS):
                    rows: Any = self.endpoint.query(text, graphs=self.mapping.graphs)
                    return read(rows)
            except (StoreError, DeadlineError, ParseError):
                check()
                return None

        return self.schema.leased(("numbers", predicate.iri), read_counts)

    def _classes(self, names: Sequence[str], query: str) -> list[str] | None:
        """Return the classes that a query of one variable finds: those with some names, and their subclasses.

        It is None if they are too many for a list, or one has no IRI.
        """

        def read_classes() -> list[str] | None:
            rows: Any = self.endpoint.query(f"{query} LIMIT {LISTED + 1}", graphs=self.mapping.graphs)
            iris = [row[0].value for row in rows]
            return iris if len(iris) <= LISTED and all(map(is_iri, iris)) else None

        classes = self.schema.leased(("classes", "\n".join(names)), read_classes)
        (self._unlisted.update if classes is None else self._unlisted.difference_update)(names)
        return classes

    def shows(self, key: str, qualifier: bool) -> list[list[Any]]:
        """Return the values by which others of an attribute or qualifier are read (`Schema.shows`), by one query.

        If that fails, answers that read the other values report it.
        """
        names = {item.iri: item.name if qualifier else key for item in self.mapping.predicates}
        self._unread.discard(key)
        try:
            with within(_LOOKUP_SECONDS):
                rows: Any = self.endpoint.query(self._fetcher().shown(key, qualifier=qualifier), graphs=self.mapping.graphs)
                readings = {row["k"].value: (row["s"], row["o"], row["p"]) for row in rows}
        except (StoreError, DeadlineError, ParseError):
            check()
            self._unread.add(key)
            return []
        number = readings.get("fraction", readings.get("long")) if "whole" in readings else None
        word = readings.get("word") if "truth" in readings else None
        examples = [item for item in (number, word) if item is not None]
        if not all(is_iri(node.value) and predicate.value in names for node, _, predicate in examples):
            # Values of a blank node cannot be asked for.
            self._unread.add(key)
        usable = [item for item in examples if is_iri(item[0].value) and item[2].value in names]
        return [[node.value, names[predicate.value], value.value] for node, value, predicate in usable]

    def has(self, node: alg.Entities) -> bool:
        """Tell whether a set has any entity."""
        fetcher = self._fetcher()
        text = f"ASK {{ {' '.join(fetcher.entities(node, '?e'))} }}"
        return bool(self.endpoint.query(text, graphs=self.mapping.graphs))

    def is_name(self, name: str) -> bool:
        """Tell whether some node has this name. One with this IRI may have a label, which is its name."""
        node, fetcher = alg.ByName((name,)), self._fetcher()
        if not fetcher.iris_named((name,)):
            return self.has(node)
        return len(self._gathered(fetcher, fetcher.nodes(node), bare=True)[0].named(name)) > 0

    def number_of(self, node: alg.Entities) -> int:
        """Return about how many entities a set has, or 0 if the endpoint takes too long."""
        fetcher = self._fetcher()
        estimate = f"SELECT (COUNT(DISTINCT ?e) AS ?n) WHERE {{ {' '.join(fetcher.entities(node, '?e'))} }}"
        try:
            with within(_MAX_SEARCH):
                return self._number(fetcher.counting(alg.Count(node)) or estimate)
        except (StoreError, DeadlineError):
            check()
            return 0

    def _number(self, text: str) -> int:
        rows: Any = self.endpoint.query(text, graphs=self.mapping.graphs)
        return sum(int(row["n"].value) for row in rows)

    def names_like(self, name: str) -> list[str]:
        """Return some names that begin like a name, or none if the endpoint takes too long."""
        prefix = name.split(" ")[0][:20] or name
        label = self._fetcher().labels[0]
        test = f"FILTER(STRSTARTS(LCASE(STR(?l)), {string(prefix.lower())}))"
        text = f"SELECT DISTINCT ?l WHERE {{ ?s <{label}> ?l {test} }} LIMIT 100"
        try:
            with within(_MAX_SEARCH):
                rows: Any = self.endpoint.query(text, graphs=self.mapping.graphs)
                return list(dict.fromkeys(row["l"].value for row in rows))
        except (StoreError, DeadlineError):
            check()
            return []

    def _fetched(self, wanted: Sequence[Unit]) -> tuple[Snapshot, str]:
        fetcher = self._fetcher()
        return self._gathered(fetcher, fetcher.parts(wanted))

    def _gathered(self, fetcher: Fetcher, parts: Sequence[Part], *, bare: bool = False) -> tuple[Snapshot, str]:
        """Return the triples of some parts as a graph, and their query. `bare` parts have no names of units."""
        text = fetcher.union(parts)
        texts = [part.text for part in parts] if self.endpoint.dialect.gathers_in_parts else [text]
        triples = [triple for text in texts for triple in fetcher.read(*self.select(text))]
        if bare:
            triples += list(fetcher.in_units(triples))
            triples += self._of_units({c for _, b, c in triples if b.value == UNIT})
        return self._graph_of(triples), text

    def _of_units(self, units: Collection[Any]) -> list[tuple[Any, Any, Any]]:
        """Return the labels of some units, by one query for those that neither the look nor earlier answers fetched."""
        if new_units := [unit for unit in units if unit not in self._units]:
            import pyoxigraph

            fetcher, names = self._fetcher(), self.mapping.unit_names
            label = pyoxigraph.NamedNode(fetcher.labels[0])
            known = {unit: [(unit, label, pyoxigraph.Literal(names[unit.value]))] for unit in new_units if unit.value in names}
            self._units |= {unit: known.get(unit, []) for unit in new_units}
            if unlabelled := [unit.value for unit in new_units if unit not in known]:
                for row in self.select(fetcher.labels_of(unlabelled))[0]:
                    self._units[row["x"]] = [*self._units[row["x"]], (row["x"], label, row["z"])]
        return [triple for unit in units for triple in self._units[unit]]

    def _graph_of(self, terms: Iterable[tuple[Any, ...]]) -> Snapshot:
        import pyoxigraph

        triples: list[pyoxigraph.Quad] = []
        nodes: list[Any] = []
        classes: dict[str, None] = {}
        concepts = self.mapping.concepts
        if not self.mapping.apart:
            # Here the default graph also has the triples of named graphs.
            terms = list(terms)
            in_graphs = {triple[:3] for triple in terms if len(triple) > 3}
            terms = [triple for triple in terms if len(triple) > 3 or triple not in in_graphs]
        for a, b, c, *graph in terms:
            if b.value == TYPE and getattr(c, "value", "") in self.mapping.hidden:
                continue
            if b.value == NODE_EXISTS:
                nodes.append(a)
            else:
                triples.append(pyoxigraph.Quad(a, b, c, *graph))
            for term in (a, c):
                if isinstance(term, pyoxigraph.NamedNode) and term.value in concepts:
                    classes[term.value] = None
        return self._build(self.mapping, self.place, triples, nodes, list(classes))

    # -- asking ------------------------------------------------------------------------------------

    def _local(self, plans: Sequence[Node]) -> tuple[Snapshot, str]:
        """Return the evidence of some plans as a small graph, and the query that fetched it."""
        parts = [part for plan in map(self._resolved, plans) for part in (*fetched(plan), *shown(plan, self.schema))]
        direct = [part for part in parts if part.named is None]
        snapshot, text = self._fetched(direct)
        if len(direct) < len(parts):
            # Entities whose names only the first query reveals.
            names = {snapshot.name(number) for number in range(snapshot.entities)}
            for part in (part for plan in plans for part in postorder(plan)):
                if isinstance(part, alg.Constants):
                    names |= {value for value in part.values if isinstance(value, str)}
            names |= _texts(snapshot)
            by_name = [Unit(alg.ByName(tuple(chunk))) for chunk in cut(sorted(names), 200)]
            snapshot, text = self._fetched([*direct, *by_name])
        return snapshot, text

    def _resolved(self, plan: Node) -> Node:
        """Return a plan with names that only the client can compute replaced by these names.

        Otherwise, what depends on them would be fetched for all entities.
        """

        def resolved(node: Any) -> Any:
            operand = node.values if isinstance(node, alg.Referents) else node.of if isinstance(node, alg.SameName) else None
            if operand is None:
                return node
            values = plan_answer(
                cast("QueryStore", self), operand if isinstance(operand, alg.Values) else alg.Names(operand)
            ).values
            names = {value.id if isinstance(value, Entity) else value for value in values if isinstance(value, (str, Entity))}
            return node if len(names) > _MAX_NAMES else alg.ByName(tuple(sorted(names)))

        return cast("Node", remade(plan, resolved))

    def answer(self, request: Request) -> EndpointAnswer:
        """Answer a program with one query, which also shows that its names exist."""
        schema, answer = self.schema.assuming(), None
        try:
            answer = self._answer(request, schema)
        except CondgraphError:
            check()
            if not schema.assumed or self.schema.confirm(schema, None):
                raise
        if answer is None or not self.schema.confirm(schema, answer.run.snapshot):
            # Some name does not exist, so its program is read differently or is an error that names it.
            return self._answer(request, self.schema)
        return answer

    def _answer(self, request: Request, schema: EndpointSchema) -> EndpointAnswer:
        lowered = request.lowered(schema)
        fetcher = self._fetcher()
        text, complete = fetcher.counting(lowered.plan), False
        if text is not None:
            run = Run(self._graph_of(()))
            run.results[id(lowered.plan)] = self._number(text)
        else:
            parts = fetcher.answering(lowered.plan)
            complete = parts is None
            snapshot, text = self._local([lowered.plan]) if parts is None else self._gathered(fetcher, parts, bare=True)
            run = Run(snapshot)
            run.execute(lowered.plan)
        run.notes.update(lowered.notes)
        keys = keys_read(lowered.plan) if self._unread else set()
        for key in sorted(self._unread if keys is None else self._unread & keys):
            run.warnings.append(f"values of {key!r} are read by those that the query met: a 2 where others are 2.5 is an integer")
        names = {name for node in postorder(lowered.plan) if isinstance(node, alg.ByName) for name in node.names}
        for name in sorted(self._unlisted & names):
            unlisted = f"more than {LISTED} classes, or some without an IRI"
            run.warnings.append(f"below {name!r} are {unlisted}: this store may lose rows that they are joined with")
        return EndpointAnswer(self, request, lowered, run, text, whole=complete)

    def explain(self, request: Request) -> str:
        """Return the SPARQL of a program, without running it."""
        plan, fetcher = request.lowered(self.schema).plan, self._fetcher()
        if (counting := fetcher.counting(plan)) is not None:
            return counting
        parts = fetcher.answering(plan)
        return fetcher.union(fetcher.parts([part for part in fetched(plan) if part.named is None]) if parts is None else parts)

    def witness(self, plan: Node) -> Run:
        """Run a plan in process on its evidence."""
        run = Run(self._local([plan])[0])
        run.execute(plan)
        return run

    def steady(self, ask: Any) -> Any:
        """Return what `ask` gives: nobody tells when others change their triples."""
        return ask()

    def sizes(self, nodes: Sequence[Node], most: int = 3, *, statements: bool = False) -> list[Size | None]:
        """Return the size of each operator."""
        return [(size, ()) for size in self.counted(nodes, lambda _: [])]

    def counted(self, nodes: Sequence[Node], known: KnownIds) -> list[int]:
        """Return how many statements or entities each operator gives.

        That takes one query for all of them, and one for each count of all entities of a kind.
        """
        totals = {id(node): self.number_of(node) or int(self.has(node)) for node in nodes if isinstance(node, alg.AllEntities)}
        remaining = [node for node in nodes if id(node) not in totals]
        snapshot = self._local(remaining)[0] if remaining else None
        return [totals[id(node)] if id(node) in totals else count(snapshot, [node])[0] for node in nodes]  # type: ignore[arg-type]

    def gather(self, units: Sequence[Unit], *, ends: bool = False) -> Snapshot:
        """Return the statements, sets and memberships of some units, by one query.

        With `ends`, names and qualifiers may be missing.
        """
        fetcher = self._fetcher()
        parts = fetcher.ends(units) if ends else None
        return self._fetched(units)[0] if parts is None else self._gathered(fetcher, parts, bare=True)[0]

    @property
    def label_names(self) -> frozenset[str]:
        """The predicates that name nodes."""
        return frozenset(predicate.name for predicate in self.mapping.predicates if predicate.iri in self._fetcher().labels)

    def literals(self, predicates: Sequence[str]) -> Snapshot:
        """Return the distinct literals of some predicates, as a graph that has each of them."""
        fetcher, names = self._fetcher(), tuple(predicates)
        if not names:
            return self._graph_of(())
        parts = fetcher.literals(names)
        if parts is None:
            return self.gather([Unit(alg.Scan(None, names, family="attribute"))], ends=True)
        return self._gathered(fetcher, parts)[0]

    def around(self, ids: Sequence[str], names: Sequence[str], most: int, *, values: bool, concepts: bool = False) -> Snapshot:
        """Return the statements around entities, for chains, by one query."""
        anchors, scans = around_of(ids, names, values=values)
        return self._fetched([Unit(anchors), *map(Unit, scans)])[0]

    def match(self, pattern: Any, *, exact: bool = True, **options: Any) -> Matches:
        """Return the subgraphs nearest to a pattern; plans fetch the statements that the search reaches."""
        if not exact:
            raise UnsupportedError(
                TARGET, ["an approximate index of triples that condgraph did not write"], hint="leave `exact` out"
            )
        from condgraph.patterns.remote.planned import planned
        from condgraph.sparql.native.patterns import TriplePatterns

        patterns = planned(cast("QueryStore", self), self.place, SOURCE, changing=True, kind=TriplePatterns)
        return patterns.match(pattern, **options)

    # -- looking -----------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Return True: an endpoint that answers exists."""
        return True

    def left(self) -> Snapshot | None:
        """Return None: nothing is loaded here."""
        return None

    def under_way(self) -> tuple[list[str], bool] | None:
        """Return None: nothing is loaded here."""
        return None

    def abandon(self) -> bool:
        """Return False: nothing is loaded here."""
        return False

    def delete(self) -> bool:
        """Raise `UnsupportedError`: nothing is written here."""
        raise UnsupportedError(TARGET, ["removing triples that condgraph did not write"])

    def sources(self) -> tuple[Source, ...]:
        """Return the endpoint as the only source."""
        return (Source(SOURCE, self.place, "sparql"),)

    def counts(self) -> dict[str, int]:
        """Return the counts of what the endpoint is known to hold."""
        mapping = self.mapping
        return {
            "entities": 0,
            "concepts": len(mapping.concepts),
            "rows": 0,
            "relations": sum(predicate.relations for predicate in mapping.predicates),
            "attributes": sum(sum(predicate.values.values()) for predicate in mapping.predicates),
            "qualifiers": sum(predicate.relations + sum(predicate.values.values()) for predicate in mapping.qualifiers),
            "predicates": len(mapping.predicates),
            "sources": 1,
        }

    def survey(self) -> Survey:
        """Return the survey of what the endpoint is known to hold."""
        return partial_survey(self.schema, self.counts())

    def snapshot(self) -> Snapshot:
        """Return all triples, copied into process; raise `StoreError` if the endpoint has a limit."""
        triples = self.endpoint.triples("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", graphs=self.mapping.graphs, whole=True)
        rows = [(triple.subject, triple.predicate, triple.object) for triple in watched(triples)]
        counting = "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }"
        counted = list(self.endpoint.query(counting, graphs=self.mapping.graphs))  # type: ignore[arg-type]
        total = int(counted[0]["n"].value)
        if total > len(rows):
            raise StoreError(f"{self.place} gives {len(rows):,} of {total:,} triples", hint="a limit of the endpoint")
        return self._graph_of(rows)


def _texts(snapshot: Snapshot) -> set[str]:
    numbers = np.arange(snapshot.statements, dtype=np.int32)
    return {item.object for item, _ in statements(snapshot, numbers) if isinstance(item.object, str)}

"""From a program to an answer on an RDF store: one query, its rows read as typed values in the same order as in process.

A `Place` is whatever holds a graph as `layout` says and answers SELECT and ASK: the embedded store, or an endpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cached_property
from threading import Event
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote

from condgraph.engine.algebra import Best, Node, Qualifiers, Scan, Where, WhereQualifier, postorder
from condgraph.engine.answer import Answer, EvidenceList, Step
from condgraph.engine.bounds import check_bounds
from condgraph.engine.describe import describe, tree
from condgraph.engine.errors import StoreError
from condgraph.engine.execute import Run
from condgraph.engine.execute.bags import order_key
from condgraph.engine.execute.run import describe_kinds
from condgraph.engine.execute.tests import compared_kinds
from condgraph.engine.facts import Entity
from condgraph.engine.languages import detect, lower
from condgraph.engine.passes import optimise
from condgraph.engine.values import Kind, Quantity, Value, text_of
from condgraph.sparql.compile_gather import Gathered, finish
from condgraph.sparql.compile_group import Target
from condgraph.sparql.compile_plan import Compiled, compile_kinds, compile_plan, compile_sizes, compile_told
from condgraph.sparql.dialect import cut
from condgraph.sparql.layout import ENTITY_CLASSES, PRED, VALUE, Names, read_number, value_named

if TYPE_CHECKING:
    from pyoxigraph import QuerySolution

#: Entities that one further query is asked about.
_TOLD: Final = 200


class Place(Protocol):
    """A graph in an RDF store."""

    @property
    def target(self) -> Target:
        """What compiling knows of the graph."""

    def select(self, text: str, *, timeout: float | None = None, cancelled: Event | None = None) -> Iterable[QuerySolution]:
        """The solutions of a SELECT over the graph."""

    def ask(self, text: str, *, timeout: float | None = None, cancelled: Event | None = None) -> bool:
        """The answer of an ASK over the graph."""


def answer(
    place: Place,
    program: Any,
    language: str | None = None,
    *,
    timeout: float | None = None,
    limit: int | None = None,
    cancelled: Event | None = None,
    twin: Callable[[], Answer] | None = None,
    **options: Any,
) -> Answer:
    """Answer a program with one query. `twin` gives the same answer in process, where the graph is: for evidence and warnings."""
    check_bounds(timeout, limit)
    language = language or detect(program)
    schema: Any = place.target.schema
    lowered = lower(schema, program, language, options)
    plan, _ = optimise(lowered.plan)
    compiled = compile_plan(plan, place.target)
    about: dict[str, Any] = {
        "program": program, "language": language, "steps": lowered.steps, "warnings": lowered.warnings, "limit": limit,
    }  # fmt: skip
    if compiled.shape == "truth":
        return SparqlAnswer(place, plan, compiled, place.ask(compiled.text, timeout=timeout, cancelled=cancelled), twin, **about)
    until = None if timeout is None else time.monotonic() + timeout
    rows = place.select(compiled.text, timeout=timeout, cancelled=cancelled)
    if compiled.shape == "gathered":
        names = place.target.names
        gathered = Gathered(_gathered_rows(rows), names, _sources(plan))
        run = Run(gathered.snapshot, timeout=None if until is None else until - time.monotonic(), cancelled=cancelled)
        finish(run, plan, gathered, compiled.leaves)
        run.notes.update(getattr(lowered, "notes", {}))
        return FinishedAnswer(place, run, plan, compiled, twin, **about)
    if compiled.shape == "best":
        return SparqlAnswer(place, plan, compiled, list(_ties(rows)), twin, **about)
    return SparqlAnswer(place, plan, compiled, list(rows), twin, **about)


def _ties(rows: Iterable[QuerySolution]) -> Iterable[QuerySolution]:
    """The first solution and those that tie with it; what comes then is not read."""
    best, seen = None, set()
    for row in rows:
        if best is None:
            best = row["x"].value
        elif row["x"].value != best:
            return
        if row["e"].value not in seen:
            seen.add(row["e"].value)
            yield row


def tied(rows: Any, names: Names) -> list[tuple[str, str]]:
    """The IRIs and names of the entities in the one row of a query with that shape, each once."""
    found: dict[str, str] = {}
    for row in rows:
        told = row["tied"].value.split(" ")
        if len(told) % 2 or not all(iri.startswith(names.base) for iri in told[::2]):
            raise StoreError("the store gives back another text than the query makes", hint="it may cut long texts")
        found.update(zip(told[::2], map(unquote, told[1::2]), strict=True))
    return list(found.items())


def _gathered_rows(rows: Iterable[QuerySolution]) -> Iterable[tuple[str, str, str, str, str]]:
    for row in rows:
        leaf, n, s, p, o = (row[name].value for name in ("leaf", "n", "s", "p", "o"))
        yield leaf, n, s, p, o


def _sources(plan: Node) -> list[str]:
    return sorted({source for node in postorder(plan) if (source := getattr(node, "source", None))})


class _Sparql(Answer):
    """What answers of RDF stores share."""

    def _at(self, place: Place, compiled: Compiled, twin: Callable[[], Answer] | None) -> None:
        self._place, self._compiled, self._twin = place, compiled, twin
        self.sparql = compiled.text

    @cached_property
    def evidence(self) -> EvidenceList:
        """The statements the answer rests on, with their sources."""
        return self._witness.evidence if self._twin is None else self._twin().evidence

    @cached_property
    def _witness(self) -> Answer:
        """The answer in process, on the statements it rests on: one further query, of a graph that is elsewhere."""
        from condgraph.sparql.witness import compile_witness, run_witness, wanted

        target, fetched = self._place.target, wanted(self.plan)
        rows = self._place.select(compile_witness(fetched, target))
        run = run_witness(self.plan, fetched, _gathered_rows(rows), target.names)
        return Answer(run, self.plan, program=self._program, language=self.language, steps=self._steps, limit=self._limit)

    def _competed(self) -> list[str]:
        """What is warned of operators in whose sets several types or units compete: only a look at the values tells."""
        schema = self._place.target.schema
        several = any(isinstance(node, Best) and len(schema.attribute_kinds(node.key)) > 1 for node in postorder(self.plan))
        return self._witness.run.warnings if several else []

    @cached_property
    def warnings(self) -> list[str]:
        """What a user should know: where the graph is here, what the engine says of the same program."""
        return super().warnings if self._twin is None else self._twin().warnings

    def _sizes(self, nodes: list[Node]) -> dict[int, tuple[int, tuple[str, ...]]]:
        """How many results each operator gives, and the names of the first: one query for all that are patterns."""
        text = compile_sizes(nodes, self._place.target)
        sizes: dict[int, int] = {}
        names: dict[int, list[str]] = {}
        for row in self._place.select(text) if text else ():
            step = int(row["step"].value)
            if row["size"] is not None:
                sizes[step] = int(row["size"].value)
            elif row["name"] is not None:
                names.setdefault(step, []).append(row["name"].value)
        return {step: (size, tuple(sorted(names.get(step, ())))) for step, size in sizes.items()}

    def explain(self) -> str:
        """The program, its plan, the SPARQL, and what each step gave."""
        steps = [str(step) for step in self.trace]
        warnings = [f"warning: {warning}" for warning in self.warnings]
        parts = [self.program, tree(self.plan), self.sparql or "", "\n".join([*steps, *warnings])]
        return "\n\n".join(part for part in parts if part)


class SparqlAnswer(_Sparql):
    """The answer to one program, with the SPARQL that gave it. The trace is one further query, asked when it is looked at."""

    def __init__(
        self,
        place: Place,
        plan: Node,
        compiled: Compiled,
        rows: bool | list[QuerySolution],
        twin: Callable[[], Answer] | None,
        **about: Any,
    ) -> None:
        nothing: Any = None
        super().__init__(nothing, plan, **about)
        self._at(place, compiled, twin)
        self._rows = rows

    def _work_out(self) -> tuple[list[Any], list[str]]:
        pairs = sorted(self._pairs, key=lambda pair: (order_key(pair[0]), pair[1]))
        if self._limit is not None and len(pairs) > self._limit:
            self._cut = len(pairs) - self._limit
            pairs = pairs[: self._limit]
        values = [value.name if self._compiled.shape in ("entities", "best", "tied") else value for value, _ in pairs]
        return values, [text for _, text in pairs]

    @cached_property
    def _pairs(self) -> list[tuple[Any, str]]:
        shape, names, rows = self._compiled.shape, self._place.target.names, self._rows
        if isinstance(rows, bool):
            return [(rows, text_of(rows))]
        entities = self._place.target.entities
        if entities is not None and shape in ("entities", "best"):
            return [(entity, entity.name) for entity in entities([names.name_of(row["e"].value) for row in rows])]
        if shape == "entities":
            named = (row["named"].value.partition(" ") for row in rows)
            return [(Entity(names.name_of(iri), name), name) for iri, _, name in named]
        if shape == "tied":
            return [(Entity(names.name_of(iri), name), name) for iri, name in tied(rows, names)]
        if shape == "count":
            count = int(rows[0]["count"].value)
            return [(count, str(count))]
        if shape == "predicates":
            predicates = [names.name_of(iri) for row in rows if (iri := row["p"].value).startswith(names.base)]
            return [(name, name) for name in predicates]
        values = [read_row(row, names) for row in rows]
        return [(value, value.name if isinstance(value, Entity) else text_of(value)) for value in values]

    @cached_property
    def entities(self) -> list[Entity]:
        """The entities of the answer, in order; of a query for entities, by one further query for their kinds."""
        if self._compiled.shape == "entities" and not self._place.target.local:
            rows = self._place.select(compile_kinds(self._compiled))
            every = [read_entity(row["e"].value, row, self._place.target.names) for row in rows]
            return sorted(every, key=lambda entity: (entity.name, entity.id))[: self._limit]
        if self._compiled.shape == "tied":
            names = self._place.target.names
            iris = [iri for iri, _ in tied(self._rows, names)]
            told = (row for some in cut(iris, _TOLD) for row in self._place.select(compile_told(some)))
            every = [read_entity(row["e"].value, row, names) for row in told]
            return sorted(every, key=lambda entity: (entity.name, entity.id))[: self._limit]
        if any(isinstance(node, Qualifiers) for node in (self.plan, *self.plan.inputs())):
            return []
        found = {value.id: value for value, _ in self._pairs if isinstance(value, Entity)}
        return sorted(found.values(), key=lambda entity: (entity.name, entity.id))[: self._limit]

    @cached_property
    def trace(self) -> list[Step]:
        """What each step of the program gave, in its order: one further query for all of them."""
        steps = self._steps or [(type(self.plan).__name__, self.plan)]
        sizes = self._sizes([node for _, node in steps])
        last = len(steps) - 1
        own = len(self._outcome()[0]) + self._cut, tuple(self._outcome()[1][:3])
        return [
            Step(function, describe(node), *(own if i == last else sizes.get(i, (0, ()))))
            for i, (function, node) in enumerate(steps)
        ]

    def _noticed(self) -> list[str]:
        return [*left_out(self.plan, self._place.target), *self._competed()]


class FinishedAnswer(_Sparql):
    """An answer of which one query gathered the statements, and the engine worked out the rest on them."""

    def __init__(
        self, place: Place, run: Run, plan: Node, compiled: Compiled, twin: Callable[[], Answer] | None, **about: Any
    ) -> None:
        super().__init__(run, plan, **about)
        self._at(place, compiled, twin)

    def _noticed(self) -> list[str]:
        return list(dict.fromkeys([*left_out(self.plan, self._place.target), *self.run.warnings, *self._competed()]))

    @cached_property
    def trace(self) -> list[Step]:
        """What each step of the program gave: those below the query's leaves by one further query."""
        nodes = [node for _, node in self._steps]
        below = [i for i, node in enumerate(nodes) if id(node) not in self.run.results]
        sizes = self._sizes([nodes[i] for i in below])
        found = {i: sizes[at] for at, i in enumerate(below) if at in sizes}
        return [
            Step(function, describe(node), *(found[i] if i in found else self._size(node)), self.run.notes.get(id(node), ""))
            for i, (function, node) in enumerate(self._steps)
        ]


def left_out(plan: Node, target: Target) -> list[str]:
    """What the schema knows to be left out: values of other types and units than a test compares with."""
    found = []
    for node in postorder(plan):
        if isinstance(node, Where) and isinstance(node.facts, Scan) and node.facts.predicates is not None:
            names = node.facts.predicates
            kinds = {kind for name in names for kind in target.schema.attribute_kinds(name)}
        elif isinstance(node, WhereQualifier):
            names = (node.key,)
            kinds = set(target.schema.qualifier_kinds(node.key))
        else:
            continue
        wanted = compared_kinds(node.test)
        others = {kind for kind in kinds if kind[0] is not Kind.UNKNOWN} - wanted
        if wanted and others:
            told = f"values of {', '.join(names)} that are {describe_kinds(others)} cannot be compared with"
            found.append(f"{told} {describe_kinds(wanted)} and are left out")
    return found


def read_row(row: QuerySolution, names: Names) -> Value | Entity:
    """A value, or an entity, from a solution of a query with the shape "values"."""
    node = row[0].value
    if not names.is_value(node):
        return read_entity(node, row, names)
    value = value_named(node[len(names.base) + len(VALUE) :])
    if value is not None:
        return value
    # Only texts and numbers are ever longer than a name.
    if (unit := _term(row, "unit")) is not None:
        exact = _term(row, "exact")
        return Quantity(read_number(_term(row, "x").value, None if exact is None else exact.value), unit.value)
    text: str = _term(row, "x").value
    return text


def _term(row: QuerySolution, variable: str) -> Any:
    try:
        return row[variable]
    except KeyError:
        return None


def read_entity(node: str, row: QuerySolution, names: Names) -> Entity:
    """An entity from a solution with ?name, ?kind and ?row."""
    kind, at = row["kind"].value, _term(row, "row")
    return Entity(names.name_of(node), row["name"].value, _KINDS[kind], 0 if at is None else int(at.value))


_KINDS = {f"{PRED}{name}": kind for kind, name in ENTITY_CLASSES.items()}

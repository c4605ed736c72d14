"""Answers programs on an RDF store with one query, whose rows are the answer, or the statements from which the engine
computes it.

An `RdfStore` holds a graph in the layout of `layout` and answers SELECT and ASK: the embedded store, or an endpoint.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, Qualifiers, postorder
from condgraph.engine.bounds import cached, kept, timed, watched
from condgraph.engine.describe import describe, tree
from condgraph.engine.errors import StoreError
from condgraph.engine.execute import Run
from condgraph.engine.execute.conditions import compared_kinds
from condgraph.engine.execute.left_out import LeftOut, left_out, left_out_warnings
from condgraph.engine.execute.sets import order_key
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, Entity, Ref, shown
from condgraph.engine.iris import PRED, VALUE, value_named
from condgraph.engine.kinds import all_comparable, condition_of, kinds_tested, may_warn
from condgraph.engine.lowered import Step
from condgraph.engine.passes import mark, rewrite
from condgraph.engine.row_shapes import Name, Sort, naming_products, row_tests, shapes_of
from condgraph.engine.row_shapes import Row as TermRow
from condgraph.engine.store import sized
from condgraph.engine.stored_answer import StoredAnswer
from condgraph.engine.values import NO_UNIT, Kind, Quantity, Time, Value, text_of
from condgraph.sparql.compile.conditions import Group, Target
from condgraph.sparql.compile.operators import Compiler
from condgraph.sparql.compile.plan import (
    Compiled,
    compile_descriptions,
    compile_kinds,
    compile_sizes,
    gather_parts,
    has_patterns,
    native,
    value_rows,
    values_are_native,
)
from condgraph.sparql.compile.solutions import rows as row_patterns
from condgraph.sparql.compile.solutions import variable
from condgraph.sparql.dialect import cut
from condgraph.sparql.gathered import (
    Gathered,
    LostRowsError,
    Row,
    around,
    compile_ends,
    compile_whole,
    compile_witness,
    counted,
    finish,
    rows_of,
    run_witness,
    wanted,
)
from condgraph.sparql.layout import ENTITY_CLASSES, TYPE, GraphIris, integer, read_number

if TYPE_CHECKING:
    from pyoxigraph import QuerySolution

    from condgraph.engine.answer import Answer
    from condgraph.engine.check import KnownIds
    from condgraph.engine.execute.witness_plan import Unit
    from condgraph.engine.lowered import Lowered
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.engine.store import EndPart, KnownSchema, Request, Size
    from condgraph.patterns.remote.catalogue import Tally
    from condgraph.patterns.remote.planned import EndRow


# -- answers -----------------------------------------------------------------------------------------
# Rows as typed values, and warnings.


# -- warnings ----------------------------------------------------------------------------------------
# The store counts values that a test could not compare, when someone reads the warnings. The schema has
# the types of each predicate, so that most answers need no query for this. What the client computes is
# counted on the way (`engine.execute.run`).


Select = Callable[[str], Iterable["QuerySolution"]]
_KINDS: Final = {
    f"{PRED}Text": Kind.TEXT,
    f"{PRED}Quantity": Kind.QUANTITY,
    f"{PRED}Time": Kind.TIME,
    f"{PRED}Unknown": Kind.UNKNOWN,
}
#: Long values in one query.
_LONG: Final = 200


def count_left_out(plan: Node, target: Target, select: Select) -> LeftOut:
    """Return the values that the tests of the query could not compare, by their type and the type compared with."""
    compiler = Compiler(target)
    nodes: list[Node] = [node for node in postorder(plan) if _may_omit(node, plan, target)]
    nodes += [node for node in row_tests(plan) if native(node) and compared_kinds(node.condition)]
    if not nodes:
        return LeftOut()
    branches = " UNION ".join(f"{{ {_tally(compiler, i, node)} }}" for i, node in enumerate(nodes))
    rows = [(int(row["step"].value), row["o"].value, int(row["count"].value)) for row in select(_TALLIES % branches)]
    kinds = _kinds_of({o for _, o, _ in rows}, target.names, select)
    result = LeftOut()
    for step, o, count in rows:
        left_out(result, *kinds[o], count, compared_kinds(condition_of(nodes[step])))
    return result


_TALLIES: Final = "SELECT ?step ?o ?count WHERE { %s }"


def _may_omit(node: Node, plan: Node, target: Target) -> bool:
    """Tell whether the query evaluates a test that may meet values it cannot compare."""
    if isinstance(node, alg.AnySatisfies):
        if node is not plan or not values_are_native(_undistinct(node.values)):
            return False
    elif node.facets.tests == "nothing" or not native(node):
        return False
    wanted = compared_kinds(condition_of(node))
    kinds = _possible(node, target)
    return bool(wanted) and (kinds is None or not all_comparable(kinds, wanted))


def _undistinct(values: alg.Values) -> alg.Values:
    return values.values if isinstance(values, alg.Distinct) else values


def _possible(node: Node, target: Target) -> set[tuple[Kind, str]] | None:
    """Return the types of values that a test may meet; None if the schema does not tell."""
    schema = target.schema
    facts = node
    if isinstance(node, alg.WhereRows):
        return None
    while not isinstance(facts, (alg.Scan, alg.Qualifiers)):
        facts = facts.inputs()[0]
    if isinstance(facts, alg.Qualifiers) or node.facets.tests in ("qualifiers", "validity"):
        kinds = kinds_tested(node, schema)
        return None if kinds is None else set(kinds)
    # Without a predicate, the schema does not tell which statements there are.
    if facts.predicates is None:
        return None
    found = {kind for name in facts.predicates for kind in schema.attribute_kinds(name)} if facts.family != "relation" else set()
    entities = facts.family != "attribute" and any(map(schema.has_relation, facts.predicates))
    return found | {(Kind.ENTITY, NO_UNIT)} if entities else found


def _tally(compiler: Compiler, i: int, node: Node) -> str:
    """Return the query that counts how often each value is tested."""
    out = Group()
    count = "COUNT(*)"
    if isinstance(node, alg.WhereRows):
        v = variable(compiler, node.variable)
        out.append(f"{{ {row_patterns(compiler, node.of)} }} FILTER(BOUND({v}))")
    elif isinstance(node, alg.AnySatisfies):
        v, _, _ = value_rows(compiler, _undistinct(node.values), out, whole=True)
        if isinstance(node.values, alg.Distinct):
            return f"SELECT DISTINCT ({integer(i)} AS ?step) ({v} AS ?o) ({integer(1)} AS ?count) WHERE {{ {out.text()} }}"
    else:
        assert isinstance(node, (alg.Where, alg.WhereQualifier, alg.WhereValidity))
        rows = compiler.facts(node.facts, out, whole=True)
        v = rows.object
        if isinstance(node, alg.Where):
            count = f"COUNT(DISTINCT {rows.statement})"
        else:
            v, p = compiler.variable("q"), compiler.variable("p")
            keys = [node.key] if isinstance(node, alg.WhereQualifier) else [START_TIME if node.part == "start" else END_TIME]
            keys += [POINT_IN_TIME] if isinstance(node, alg.WhereValidity) else []
            out.append(f"VALUES {p} {{ {' '.join(map(compiler.iris.predicate, keys))} }} {rows.statement} {p} {v} .")
            if isinstance(node, alg.WhereValidity):
                out.append(f"{v} {TYPE} <pred:Time> .")
            count = f"COUNT(DISTINCT CONCAT(STR({rows.statement}), STR({p})))"
    return f"SELECT ({integer(i)} AS ?step) ({v} AS ?o) ({count} AS ?count) WHERE {{ {out.text()} }} GROUP BY {v}"


def _kinds_of(nodes: set[str], names: GraphIris, select: Select) -> dict[str, tuple[Kind, str]]:
    """Return the type and unit of each value, from its IRI; for long values from the store."""
    result: dict[str, tuple[Kind, str]] = {}
    long_nodes = []
    for node in nodes:
        if not names.is_value(node):
            result[node] = Kind.ENTITY, NO_UNIT
            continue
        value = value_named(node[len(names.base) + len(VALUE) :])
        if value is None:
            long_nodes.append(node)
        elif isinstance(value, Quantity):
            result[node] = Kind.QUANTITY, value.unit
        else:
            kind = Kind.TEXT if isinstance(value, str) else Kind.TIME if isinstance(value, Time) else Kind.UNKNOWN
            result[node] = kind, NO_UNIT
    for batch in cut(sorted(long_nodes), _LONG):
        listed = ", ".join(f"<{node}>" for node in batch)
        text = f"SELECT ?o ?kind ?unit WHERE {{ ?o {TYPE} ?kind . OPTIONAL {{ ?o <pred:unit> ?unit }} FILTER(?o IN ({listed})) }}"
        for row in select(text):
            result[row["o"].value] = _KINDS[row["kind"].value], NO_UNIT if row["unit"] is None else row["unit"].value
    return result


# -- answer ------------------------------------------------------------------------------------------


#: Most entities that one further query describes.
_DESCRIBED: Final = 200


def tied(rows: Any, names: GraphIris) -> list[tuple[str, str]]:
    """Return the distinct IRIs and names of the entities in the one row of a query with the shape "tied"."""
    names_by_iri: dict[str, str] = {}
    for row in rows:
        words = row["tied"].value.split(" ")
        if len(words) % 2 or not all(iri.startswith(names.base) for iri in words[::2]):
            raise StoreError("the store gives back another text than the query makes", hint="it may cut long texts")
        names_by_iri.update(zip(words[::2], map(unquote, words[1::2]), strict=True))
    return list(names_by_iri.items())


class _Sparql(StoredAnswer):
    """The common part of answers of RDF stores."""

    _store: RdfStore

    def __init__(self, place: RdfStore, request: Request, lowered: Lowered, compiled: Compiled) -> None:
        super().__init__(place, request, lowered)
        self._compiled, self.sparql = compiled, compiled.text

    @property
    def _telling(self) -> Mapping[str, str]:
        return self._store.target.schema.telling

    def _count_results(self, nodes: Sequence[Node], timeout: float | None = None) -> list[int]:
        return self._local._count_results(nodes) if self._store.target.local else self.recounted(nodes, timeout)

    def _query_warnings(self, left: LeftOut) -> list[str]:
        """Return the warnings of the query's operators, some of which need the inputs of the operators.

        `left` counts values that were left out elsewhere.
        """
        schema, nodes = self._store.target.schema, postorder(self.plan)
        messages: list[str] = []
        if any(has_patterns(node) and may_warn(node, schema, not self._outcome()[0]) for node in nodes):
            messages = self._witness.warnings
        return messages + left_out_warnings(left + count_left_out(self.plan, self._store.target, self._store.select))

    @kept
    def warnings(self) -> list[str]:
        """Warnings for the user; if the graph is in this process, the engine's warnings for the same program."""
        return self._local.warnings if self._store.target.local else super().warnings

    @timed
    def explain(self) -> str:
        """Return the program, its plan, the SPARQL, and the results of each step."""
        steps = [str(step) for step in self.trace]
        warnings = [f"warning: {warning}" for warning in self.warnings]
        parts = [self.program, tree(self.plan), self.sparql or "", "\n".join([*steps, *warnings])]
        return "\n\n".join(part for part in parts if part)


class SparqlAnswer(_Sparql):
    """The answer to one program, with its SPARQL. The trace takes one further query, sent when it is read."""

    def __init__(
        self, place: RdfStore, request: Request, lowered: Lowered, compiled: Compiled, rows: bool | list[QuerySolution]
    ) -> None:
        super().__init__(place, request, lowered, compiled)
        self._rows = rows

    def _compute(self) -> tuple[list[Any], list[str]]:
        pairs = sorted(self._pairs, key=lambda pair: (order_key(pair[0]), pair[1]))
        if self._limit is not None and len(pairs) > self._limit:
            self._omitted = len(pairs) - self._limit
            pairs = pairs[: self._limit]
        values = [value.name if self._compiled.shape in ("entities", "best", "tied") else value for value, _ in pairs]
        return values, [text for _, text in pairs]

    @cached
    def _pairs(self) -> list[tuple[Any, str]]:
        shape, names, rows = self._compiled.shape, self._store.target.names, self._rows
        if isinstance(rows, bool):
            return [(rows, text_of(rows))]
        entities = self._store.target.entities
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
        return [(value, shown(value)) for value in values]

    @kept
    def entities(self) -> list[Entity]:
        """The entities of the answer, in order; a query for entities needs a further one for their kinds."""
        if self._compiled.shape == "entities" and not self._store.target.local:
            rows = self._store.select(compile_kinds(self._compiled))
            described_entities = [read_entity(row["e"].value, row, self._store.target.names) for row in rows]
            return sorted(described_entities, key=lambda entity: (entity.name, entity.id))[: self._limit]
        if self._compiled.shape == "tied":
            names = self._store.target.names
            iris = [iri for iri, _ in tied(self._rows, names)]
            described = (row for batch in cut(iris, _DESCRIBED) for row in self._store.select(compile_descriptions(batch)))
            described_entities = [read_entity(row["e"].value, row, names) for row in described]
            return sorted(described_entities, key=lambda entity: (entity.name, entity.id))[: self._limit]
        if any(isinstance(node, Qualifiers) for node in (self.plan, *self.plan.inputs())):
            return []
        by_id = {value.id: value for value, _ in self._pairs if isinstance(value, Entity)}
        return sorted(by_id.values(), key=lambda entity: (entity.name, entity.id))[: self._limit]

    @kept
    def trace(self) -> list[Step]:
        """The results of each step of the program, in order: one further query for all."""
        steps = self._steps or [(type(self.plan).__name__, self.plan)]
        sizes = self._store.sizes([node for _, node in steps])
        last = len(steps) - 1
        own = len(self._outcome()[0]) + self._omitted, tuple(self._outcome()[1][:3])
        return [
            Step(function, describe(node), *(own if i == last else sizes[i] or (0, ()))) for i, (function, node) in enumerate(steps)
        ]

    def _noticed(self) -> list[str]:
        return self._query_warnings(LeftOut())


class FinishedAnswer(_Sparql):
    """An answer in two steps: one query gathered the statements, and the engine computed the rest on them."""

    def __init__(self, place: RdfStore, request: Request, lowered: Lowered, compiled: Compiled, run: Run) -> None:
        super().__init__(place, request, lowered, compiled)
        self.run = run

    def _noticed(self) -> list[str]:
        return list(dict.fromkeys([*self.run.warnings, *self._query_warnings(self.run.left_out)]))

    def _size_of(self, node: Node) -> tuple[int, tuple[str, ...]]:
        # Operators below the rows of the store are evaluated on the statements that the rows rest on.
        below = self._compiled.core is not None and id(node) not in self.run.results
        return self._local._size(node) if below else self._size(node)

    @kept
    def trace(self) -> list[Step]:
        """The results of each step of the program; those below the query's leaves take one further query."""
        # A step that a pass merged into another operator counts as that operator.
        by_mark = {mark(node): node for node in postorder(self.plan)}
        known = self.run.results
        nodes = [node if id(node) in known else rewrite(node, lambda one: by_mark.get(mark(one), one)) for _, node in self._steps]
        rows = self._compiled.core is not None
        below = [i for i, node in enumerate(nodes) if id(node) not in self.run.results and not rows]
        sizes = zip(below, self._store.sizes([nodes[i] for i in below]), strict=True)
        sizes_below = {i: size for i, size in sizes if size is not None}
        return [
            Step(
                function,
                describe(node),
                *(sizes_below[i] if i in sizes_below else self._size_of(nodes[i])),
                self.run.notes.get(id(node), ""),
            )
            for i, (function, node) in enumerate(self._steps)
        ]


def read_row(row: QuerySolution, names: GraphIris) -> Value | Entity:
    """Return a value, or an entity, from a solution of a query with the shape "values"."""
    node = row[0].value
    if not names.is_value(node):
        return read_entity(node, row, names)
    value = value_named(node[len(names.base) + len(VALUE) :])
    if value is not None:
        return value
    # Only texts and numbers can be longer than a name.
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


def read_entity(node: str, row: QuerySolution, names: GraphIris) -> Entity:
    """Return an entity from a solution with ?name, ?kind and ?row."""
    kind, row_number = row["kind"].value, _term(row, "row")
    return Entity(names.name_of(node), row["name"].value, _KIND_OF_CLASS[kind], 0 if row_number is None else int(row_number.value))


class RowTerms:
    """Reads the terms of rows, and caches the entities among them."""

    def __init__(self, target: Target, columns: Sequence[tuple[str, Sort]]) -> None:
        self._target, self._columns = target, columns
        self._entities: dict[str, Entity | None] = {}

    def read(self, row: QuerySolution) -> TermRow:
        """Return the terms of a row, with entities by id."""
        return tuple([self._term(row, column, sort) for column, sort in self._columns])

    def _term(self, row: QuerySolution, column: str, sort: Sort) -> Value | Ref | Name | bool | int | None:
        term, names = _term(row, column), self._target.names
        if term is None:
            return None
        if sort == "truth":
            return bool(term.value in ("true", "1"))
        if sort == "count":
            return int(term.value)
        if sort == "name":
            return Name(names.name_of(term.value))
        node = term.value
        if not names.is_value(node):
            ident = names.name_of(node)
            if ident not in self._entities:
                self._entities[ident] = None if self._target.local else self._described(row, column, ident)
            return Ref(ident)
        value = value_named(node[len(names.base) + len(VALUE) :])
        if value is not None:
            return value
        # Only texts and numbers can be longer than a name.
        if (unit := _term(row, f"{column}u")) is not None:
            exact = _term(row, f"{column}e")
            return Quantity(read_number(_term(row, f"{column}x").value, None if exact is None else exact.value), unit.value)
        text: str = _term(row, f"{column}x").value
        return text

    @staticmethod
    def _described(row: QuerySolution, column: str, ident: str) -> Entity:
        row_number = _term(row, f"{column}r")
        kind = _KIND_OF_CLASS[_term(row, f"{column}k").value]
        return Entity(ident, _term(row, f"{column}n").value, kind, 0 if row_number is None else int(row_number.value))

    def entities(self) -> Sequence[Entity]:
        """Return the entities of all rows that were read."""
        lookup = self._target.entities
        if lookup is not None:
            return lookup(list(self._entities))
        return [entity for entity in self._entities.values() if entity is not None]


_KIND_OF_CLASS = {f"{PRED}{name}": kind for kind, name in ENTITY_CLASSES.items()}


# -- stores ------------------------------------------------------------------------------------------


T = TypeVar("T")


class RdfStore(ABC):
    """A graph in an RDF store that answers programs (`engine.store`)."""

    declared: tuple[str, ...] = ()

    @property
    @abstractmethod
    def target(self) -> Target:
        """The graph, as the compiler uses it."""

    @abstractmethod
    def select(self, text: str) -> Iterable[QuerySolution]:
        """Return the solutions of a SELECT over the graph."""

    @abstractmethod
    def ask(self, text: str) -> bool:
        """Return the answer of an ASK over the graph."""

    @property
    def naming_schema(self) -> KnownSchema:
        """The schema, which looks up names."""
        return self.target.schema

    linking_schema = naming_schema

    def _lowered(self, request: Request) -> Lowered:
        return request.lowered(self.target.schema)

    def answer(self, request: Request) -> Answer:
        """Answer a program with one query."""
        lowered = self._lowered(request)
        with naming_products(lowered.plan):
            return self._answer(request, lowered)

    def _answer(self, request: Request, lowered: Lowered) -> Answer:
        plan, compiled = lowered.plan, compile_whole(lowered.plan, self.target)
        if compiled.shape == "truth":
            return SparqlAnswer(self, request, lowered, compiled, self.ask(compiled.text))
        if compiled.shape == "witness":
            return FinishedAnswer(self, request, lowered, compiled, self.witness(plan))
        rows = watched(self.select(compiled.text))
        if compiled.core is not None:
            from condgraph.engine.execute.stored_rows import run_rows

            shape = shapes_of(compiled.core)[id(compiled.core)]
            terms = RowTerms(self.target, [(column, shape[name].sort) for name, column in compiled.columns])
            read, bound = list(map(terms.read, rows)), [name for name, _ in compiled.columns]
            run = run_rows(plan, compiled.core, bound, read, terms.entities())
            run.notes.update(lowered.notes)
            return FinishedAnswer(self, request, lowered, compiled, run)
        if compiled.shape == "gathered":
            names = self.target.names
            try:
                gathered = Gathered(rows_of(rows), names, _sources(plan))
            except LostRowsError:
                parts = gather_parts(plan, self.target) if self.target.dialect.gathers_in_parts else [_replanned(compiled.text)]
                gathered = Gathered(self._gathered(parts), names, _sources(plan))
            run = Run(gathered.snapshot)
            finish(run, plan, gathered, compiled.leaves)
            run.notes.update(lowered.notes)
            return FinishedAnswer(self, request, lowered, compiled, run)
        if compiled.shape == "best":
            return SparqlAnswer(self, request, lowered, compiled, list(_ties(rows)))
        return SparqlAnswer(self, request, lowered, compiled, list(rows))

    def explain(self, request: Request) -> str:
        """Return the SPARQL of a program, without running it."""
        return compile_whole(self._lowered(request).plan, self.target).text

    def witness(self, plan: Node) -> Run:
        """Run a plan in process on its evidence."""
        target = self.target
        fetched = wanted(plan, target)
        texts = compile_witness(fetched, target)
        try:
            return run_witness(plan, fetched, self._gathered(texts), target.names)
        except LostRowsError:
            return run_witness(plan, fetched, self._gathered(map(_replanned, texts)), target.names)

    def gather(self, units: Sequence[Unit]) -> Snapshot:
        """Fetch the statements, sets and memberships of some units."""
        target = self.target
        texts = compile_witness(units, target)
        try:
            return Gathered(self._gathered(texts), target.names, ()).snapshot
        except LostRowsError:
            return Gathered(self._gathered(map(_replanned, texts)), target.names, ()).snapshot

    @property
    def ends_of(self) -> int:
        """As many as the store takes in one list."""
        return self.target.dialect.list_length

    def ends(self, parts: Sequence[EndPart], tally: Tally, *, statements: bool) -> list[EndRow]:
        """Return the ends of statements, with nodes by IRI (`patterns.remote.planned.EndStore`)."""
        text, names = compile_ends(parts, self.target, statements=statements), self.target.names
        tally.sparql.append(text)
        rows = ((_term(row, name) for name in "xpyf") for row in self.select(text))
        return [(x.value, p and p.value, y.value, None, 0 if f is None else names.sid_of(f.value)) for x, p, y, f in rows]

    def node_keys(self, ids: Sequence[str], texts: Sequence[str]) -> dict[str, int]:
        """Return the positions of entities and texts by their IRIs."""
        names = self.target.names
        return {iri[1:-1]: position for position, iri in enumerate((*map(names.entity, ids), *map(names.value, texts)))}

    def predicate_of(self, kind: str) -> str:
        """Return the predicate of an IRI."""
        return self.target.names.name_of(kind)

    def _gathered(self, texts: Iterable[str]) -> Iterable[Row]:
        return (row for text in texts for row in rows_of(self.select(text)))

    def around(self, ids: Sequence[str], names: Sequence[str], most: int, *, values: bool, concepts: bool = False) -> Snapshot:
        """Return the statements around entities, for chains, with one query."""
        return around(self.target, self.select, ids, names, most, values=values, concepts=concepts)

    def counted(self, nodes: Sequence[Node], known: KnownIds) -> list[int]:
        """Count the statements, or entities, of each operator; `known` has the ids of results that only the client can compute."""
        return counted(self.target, self.select, nodes, known)

    def steady(self, ask: Callable[[], T]) -> T:
        """Run `ask` on one state of the graph."""
        return ask()

    def sizes(self, nodes: Sequence[Node], most: int = 3, *, statements: bool = False) -> list[Size | None]:
        """Return the size and first names of each operator's results, with one query; None for operators that are not patterns."""
        text = compile_sizes(list(nodes), self.target, most, statements=statements)
        sizes: dict[int, int] = {}
        names: dict[int, list[str]] = {}
        for row in self.select(text) if text else ():
            step = int(row["step"].value)
            if row["size"] is not None:
                sizes[step] = int(row["size"].value)
            elif row["name"] is not None:
                names.setdefault(step, []).append(row["name"].value)
        return [sized(node, sizes.get(step), names.get(step, ())) for step, node in enumerate(nodes)]


def _ties(rows: Iterable[QuerySolution]) -> Iterable[QuerySolution]:
    """Yield the first solution and its ties; later rows are not read."""
    best, seen = None, set()
    for row in rows:
        if best is None:
            best = row["x"].value
        elif row["x"].value != best:
            return
        if row["e"].value not in seen:
            seen.add(row["e"].value)
            yield row


def _replanned(text: str) -> str:
    """Change the text of a query but not its meaning, so that a server makes a new plan."""
    return f"{text}\n# again"


def _sources(plan: Node) -> list[str]:
    return sorted({source for node in postorder(plan) if (source := getattr(node, "source", None))})

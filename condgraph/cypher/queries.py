"""Queries of a program on a Neo4j database in any layout: one for the answer, others for details read later.

`cypher.store` implements this for graphs that condgraph writes, `cypher.native.store` for existing databases; both provide
the layout, the schema, and how names are read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from condgraph.cypher.answer import Neo4jAnswer, Records, pasteable
from condgraph.cypher.compile.plan import (
    Compiled,
    compile_counts,
    compile_plan,
    compile_sizes,
    compile_units,
    compile_witness,
    lowered,
    restore,
    run_witness,
)
from condgraph.cypher.compile.values import PlanCompiler
from condgraph.cypher.connection import Connection
from condgraph.cypher.layout.base import Layout
from condgraph.cypher.layout.schema import CONDGRAPH
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, carried, fields_of, postorder
from condgraph.engine.algebra.operators import Entities, around_of, named_of
from condgraph.engine.errors import ParseError, PlanError, UnsupportedError
from condgraph.engine.execute.searched import countable
from condgraph.engine.facts import Source
from condgraph.engine.lowered import Lowered
from condgraph.engine.row_shapes import naming_products
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.store import sized
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.values import Kind
from condgraph.names.linking import LinkingSchema, NameReader

if TYPE_CHECKING:
    from condgraph.cypher.shapes import BackgroundWarmUp, Shapes
    from condgraph.engine.check import KnownIds
    from condgraph.engine.execute import Run
    from condgraph.engine.execute.witness_plan import Unit
    from condgraph.engine.store import Request, Size


# -- Programs on their way to the server -----------------------------------------------------------
# Turns a program into its query, together with the names of entities that the query looks up.
#
# A name that the graph does not have is an error. Most programs give an empty answer if a name does not
# exist, so an answer that is not empty proves that it does. Where a program may give an answer all the
# same (a union, a superlative of two), its query also looks up the names, which makes planning it a third
# slower.


_NOTHING: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Query:
    """A lowered program with its query; `names` are the names of entities that were not looked up before."""

    lowered: Lowered
    compiled: Compiled
    names: Sequence[str]
    _again: Callable[[], Query]

    def check(self, missing: Sequence[str], named: LinkingSchema) -> Query | None:
        """Return the program with missing names resolved otherwise (as the key of a row), or None if none are missing.

        Names that the graph does not have are an error, as in process: lowering reports them with similar names.
        """
        if not missing:
            return None
        named.forget(missing)
        return self._again()


def query_of(
    request: Request,
    graph: str,
    schema: StoredSchema,
    named: Callable[[], LinkingSchema],
    layout_of: Callable[[Node], Layout] = lambda _: CONDGRAPH,
) -> Query:
    """Compile a program into its query.

    For KoPL, the query itself reports which names of entities exist. Other languages look names up before, in the schema of
    `named`; so does a program with a mistake, so that its first error is reported. `layout_of` gives the layout for a plan.
    """

    def prepared(known: StoredSchema, *, looks_up: bool) -> Query:
        lowered = request.lowered(known)
        all_names, uncertain = names_of(lowered, schema) if looks_up else ([], [])
        layout = layout_of(lowered.plan)
        compiled = compile_plan(lowered.plan, graph, schema, uncertain, layout=layout)
        if remarks := layout.remarks(lowered.plan):
            lowered = replace(lowered, warnings=[*lowered.warnings, *remarks])
        return Query(lowered, compiled, all_names, lambda: prepared(named(), looks_up=False))

    if request.language == "kopl" and request.options.get("on_unknown", "error") == "error":
        with suppress(ParseError, PlanError, UnsupportedError):
            return prepared(schema, looks_up=True)
    return prepared(named(), looks_up=False)


def names_of(lowered: Lowered, schema: StoredSchema) -> tuple[list[str], list[str]]:
    """Return the sorted names of entities in a program that may not exist: all, and those that its query looks up.

    The others exist if the answer is anything but empty, 0 or false.
    """
    nodes = postorder(lowered.plan)
    # The optimiser may have dropped a step that does not change the answer.
    steps = [node for _, node in lowered.steps]
    candidates = {name for node in (*steps, *nodes) if isinstance(node, alg.ByName) for name in node.names}
    candidates = {name for name in candidates if not schema.has_concept(name)}
    return sorted(candidates), sorted(candidates - _needed(nodes)) if candidates else []


def _needed(nodes: list[Node]) -> frozenset[str]:
    """Return the names without which the last operator (inputs come first) gives nothing."""
    needs: dict[int, frozenset[str]] = {}
    for node in nodes:
        strict = fields_of(node, node.facets.strict)
        if isinstance(node, alg.ByName):
            result = frozenset(node.names) if len(node.names) == 1 else _NOTHING
        elif strict:
            result = _NOTHING.union(*(needs[id(item)] for item in strict))
            if isinstance(node, alg.Where) and isinstance(node.condition, alg.Among):
                result |= needs[id(node.condition.entities)]
        else:
            # Any of several bags or sets may supply the result.
            result = reduce(frozenset.intersection, [needs[id(entry)] for entry in carried(node)] or [_NOTHING])
        needs[id(node)] = result
    return needs[id(nodes[-1])]


# -- The store -------------------------------------------------------------------------------------


T = TypeVar("T")


class CypherStore(ABC):
    """A graph of a Neo4j database that can be queried, with its connection, name and layout."""

    declared: tuple[str, ...] = ()

    def __init__(self, connection: Connection, name: str, layout: Layout) -> None:
        self.connection, self.name, self._layout = connection, name, layout
        self.place = connection.place
        self._warming: BackgroundWarmUp | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._warming is not None:
            self._warming.end()
        self.connection.close()

    def warm(self, *, seconds: float | None = None) -> int:
        """Have the server plan the commonest shapes of queries, for at most `seconds`; return the number of planned queries."""
        from condgraph.cypher.shapes import warm

        return warm(self.connection, self._shapes, seconds=seconds)

    def warm_behind(self) -> BackgroundWarmUp:
        """Start `warm` in the background."""
        from condgraph.cypher.shapes import BackgroundWarmUp

        self._warming = BackgroundWarmUp(self.connection, self._shapes)
        return self._warming

    def _shapes(self) -> Shapes:
        """Return the likely shapes of queries."""
        from condgraph.cypher.shapes import Shapes

        return Shapes(self.name, self.schema, self.layout)

    @property
    def timeout(self) -> float | None:
        """The default deadline of calls, in seconds."""
        return self.connection.timeout

    @property
    def layout(self) -> Layout:
        """The present layout of the graph."""
        return self._layout

    def _layout_of(self, plan: Node) -> Layout:
        return self.layout

    def _layout_for(self, plans: Sequence[Node]) -> Layout:
        """Return the layout for follow-up queries of an answer, about its steps or evidence."""
        return self.layout

    # -- what there is -----------------------------------------------------------------------------

    @property
    @abstractmethod
    def schema(self) -> StoredSchema:
        """The schema, as lowering uses it."""

    @property
    @abstractmethod
    def known_sources(self) -> tuple[Source, ...]:
        """The sources in the order of loading."""

    @abstractmethod
    def names(self) -> NameReader:
        """Return the reader of names."""

    @abstractmethod
    def steady(self, ask: Callable[[], T]) -> T:
        """Run `ask` on one state of the graph."""

    @property
    def naming_schema(self) -> LinkingSchema:
        """The schema with names looked up."""
        named: LinkingSchema | None = self.schema.kept.get("named")
        if named is None:
            named = self.schema.kept["named"] = LinkingSchema(self.schema, self.names())
        return named

    linking_schema = naming_schema

    # -- asking ------------------------------------------------------------------------------------

    def answer(self, request: Request) -> Neo4jAnswer:
        """Answer a program with one query, which also tells whether names exist."""
        return self._answer(request, lambda: self._query(request))

    def _answer(self, request: Request, made: Callable[[], Query]) -> Neo4jAnswer:
        """Answer a program by the query that `made` returns."""

        def ask() -> tuple[Query, list[dict[str, Any]]]:
            query = made()
            with naming_products(query.lowered.plan):
                return query, self.run(query.compiled)

        def build_answer(query: Query, rows: list[dict[str, Any]]) -> Neo4jAnswer:
            return Neo4jAnswer(self, request, query.lowered, query.compiled, rows)

        query, rows = self.steady(ask)
        resolved = query.check(query.compiled.unknown(rows), self.naming_schema)
        if resolved is None:
            answer = build_answer(query, rows)
            if query.names and (not answer.values or answer.values in ([0], [False])):
                resolved = query.check(self.naming_schema.missing(query.names), self.naming_schema)
        if resolved is not None:
            answer = build_answer(resolved, self.steady(lambda: self.run(resolved.compiled)))
        return answer

    def explain(self, request: Request) -> str:
        """Return the Cypher of a program with its parameters, for pasting into Browser, without running it."""
        return pasteable(self._query(request).compiled)

    def _query(self, request: Request) -> Query:
        return query_of(request, self.name, self.schema, lambda: self.naming_schema, self._layout_of)

    def run(self, compiled: Compiled) -> list[dict[str, Any]]:
        return self.connection.read(compiled.text, compiled.parameters)

    def sizes(self, nodes: Sequence[Node], most: int = 3, *, statements: bool = False) -> list[Size | None]:
        """Return the size and first results of each operator, with one query; None for those the query cannot compute."""
        layout = self._layout_for(nodes)
        compiled = compile_sizes(list(nodes), self.name, self.schema, layout=layout, most=most, statements=statements)
        sizes: dict[int, Size] = {}
        for row in self.run(compiled):
            step, size, sample = row["step"], row["size"], row["sample"]
            if sample is None:
                if (known := sized(nodes[step], size, ())) is not None:
                    sizes[step] = known
                continue
            # Names are sorted as in answers if all are there; a sample keeps the server's order.
            is_whole = len(sample) == size and isinstance(nodes[step], Entities)
            sizes[step] = size, tuple(sorted(sample) if is_whole else sample)
        return [sizes.get(step) for step in range(len(nodes))]

    def statements_of(self, plan: Node) -> Compiled:
        """Return the query for the statements of a table, which the client groups."""
        return compile_plan(plan, self.name, self.schema, layout=self._layout_for([plan]), grouped=False)

    def witness(self, plan: Node) -> Run:
        """Run a plan in process on its evidence."""
        layout = self._layout_for([plan])
        rows = self.run(compile_witness(plan, self.name, self.schema, layout=layout))
        return run_witness(plan, rows, self.known_sources, layout)

    def gather(self, units: Sequence[Unit]) -> Snapshot:
        """Fetch the statements, sets and memberships of some units with one query."""
        layout = self._layout_for([unit.compiled for unit in units])
        rows = self.run(compile_units(units, self.name, self.schema, layout=layout))
        return restore(rows, self.known_sources, layout)

    def around(self, ids: Sequence[str], names: Sequence[str], most: int, *, values: bool, concepts: bool = False) -> Snapshot:
        """Return the entities with these ids and names and their statements, as a snapshot.

        For each entity in it, one other entity with the same name is added, if there is one. `concepts` adds memberships.
        """
        of, scans = around_of(ids, names, values=values)
        kinds = {kind for key in self.schema.qualifiers for kind, _ in self.schema.qualifier_kinds(key)}
        parts = named_of(of, scans, qualified=Kind.ENTITY in kinds)
        layout = self._layout_for([of])
        compiler = PlanCompiler(self.name, self.schema, [of, *scans, *parts], layout)
        branches: list[list[str]] = []
        for number, scan in enumerate(scans):
            facts = compiler.facts(scan)
            row = layout.statement(compiler, facts.fact, facts.subject, facts.thing, facts.family)
            branches.append([*facts.render(), f"RETURN {number} AS unit, {row} AS row LIMIT {int(most)}"])
        rows = compiler.entities(of)
        described = layout.described(rows.variable)
        branches.append([*rows.clauses, f"RETURN {len(scans)} AS unit, {{e: {described}}} AS row"])
        for part in parts:
            branches.append(
                [*_namesakes(compiler, part, most), f"RETURN {len(scans)} AS unit, {{e: {layout.described('other')}}} AS row"]
            )
        if concepts:
            branches += layout.memberships_of(compiler, compiler.set_of(of), most)
        compiled = Compiled(compiler.whole(branches, ("unit", "row")), compiler.parameters, "witness", layout=layout)
        return self.steady(lambda: restore(self.run(compiled), self.known_sources, layout))

    def counted(self, nodes: Sequence[Node], known: KnownIds) -> list[int]:
        """Count the statements, or entities, of each operator with one query; `known` has the ids that the client computed."""
        plans = [countable(node, lambda item: id(item) in lowered(item), known) for node in nodes]
        compiled = compile_counts(plans, self.name, self.schema, layout=self._layout_for(plans))
        sizes = {row["step"]: row["size"] for row in self.run(compiled)}
        return [sizes.get(step, 0) for step in range(len(plans))]

    def cypher(self, text: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        """Run a reading query written by a user or a model, after its text and the server's plan were checked."""
        self.connection.check_reading(text, parameters)
        return Records(self.connection.pass_on(text, parameters))


def _namesakes(compiler: PlanCompiler, part: Entities, most: int) -> list[str]:
    """Return clauses that leave, as `other`, one entity with the same name for each entity of a part."""
    rows, layout = compiler.entities(part), compiler.layout
    n, k, e = rows.variable, compiler.name("k"), compiler.name("e")
    result = "\n".join(layout.by_name(e, f"= {k}"))
    look_up = f"{result}\nWITH {e}, {n} WHERE {e} <> {n}\nRETURN {e} AS other LIMIT 1"
    bound = [f"WITH DISTINCT {n} LIMIT {int(most)}", f"WITH {n}, {layout.name_key(n)} AS {k}"]
    return [*rows.clauses, *bound, compiler.call(look_up, n, k), "WITH DISTINCT other"]

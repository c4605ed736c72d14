"""Answers of Neo4j: rows read as typed values, groups aggregated by the server, and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from condgraph.cypher.compile.compiler import Compiler
from condgraph.cypher.compile.plan import HALF, Columns, Compiled, group_of, lowered, run_witness
from condgraph.cypher.compile.sets import written
from condgraph.cypher.compile.solutions import compared
from condgraph.cypher.compile.values import PlanCompiler, qualified
from condgraph.cypher.layout.base import KINDS, Layout, value_of
from condgraph.cypher.layout.schema import CONDGRAPH, quote
from condgraph.engine import algebra as alg
from condgraph.engine import html
from condgraph.engine.algebra import Condition, Count, Node, Scalar, Shown, postorder
from condgraph.engine.algebra.grouped import ValuePath
from condgraph.engine.answer import Answer
from condgraph.engine.bounds import cached, kept, timed, watched
from condgraph.engine.describe import describe, tree
from condgraph.engine.execute.aggregates import median_of
from condgraph.engine.execute.conditions import compared_kinds
from condgraph.engine.execute.grid import Column, Grid, Members, grid_size, text_cell
from condgraph.engine.execute.grouped import in_fixed_order, warn_of_empty
from condgraph.engine.execute.left_out import LeftOut, left_out, left_out_warnings
from condgraph.engine.execute.number_texts import summed_numbers
from condgraph.engine.execute.run import Run
from condgraph.engine.execute.series import Cell
from condgraph.engine.execute.sets import order_key
from condgraph.engine.execute.sums import Aggregate, zeros
from condgraph.engine.facts import Entity, EntityKind, Item, Ref, Sourced
from condgraph.engine.kinds import all_comparable, condition_of, kinds_tested, may_warn
from condgraph.engine.lowered import Step
from condgraph.engine.row_shapes import Name, row_tests
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.stored_answer import StoredAnswer
from condgraph.engine.values import NO_UNIT, UNKNOWN, Kind, Quantity, Time, Value, exact, text_of

if TYPE_CHECKING:
    from condgraph.cypher.queries import CypherStore
    from condgraph.engine.lowered import Lowered
    from condgraph.engine.store import Request
    from condgraph.engine.stored_schema import StoredSchema


# -- Records -----------------------------------------------------------------------------------------


class Records(list[dict[str, Any]]):
    """The rows of a Cypher query, each a dict by column."""

    def _repr_html_(self) -> str:
        """Return the first rows as HTML, for notebooks."""
        columns = list(self[0]) if self else []
        rows = [["" if cell is None else str(cell) for cell in record.values()] for record in self[: html.MAX_ROWS]]
        return html.page(f"{len(self):,} rows", [html.table("rows", columns, rows, len(self) - len(rows))] if self else [])


def entity_of(ident: str, name: str, kind: int | None = None, row: int | None = None) -> Entity:
    """Build an entity from a record: id and name, and kind and row unless it is a plain entity."""
    return Entity(ident, name, EntityKind(kind or 0), row or 0)


# -- Groups that the server summed up ----------------------------------------------------------------
# The table of groups that the server aggregated (`compile_groups`); it is filtered, ordered and cut in
# process.


def tables_of(plan: Node, columns: Columns, rows: Sequence[list[Any]]) -> Run | None:
    """Return a run that has every table of a plan; None if some value had an unexpected type. `Columns` describes the rows."""
    if any(row[0] for row in watched(rows)):
        return None
    group = group_of(plan)
    assert group is not None
    run = Run(Snapshot.of(*lay_out(Builder())))
    run.results[id(group)] = _grid(run, group, columns, rows)
    above: list[Node] = []
    while plan is not group:
        above.append(plan)
        (plan,) = plan.inputs()
    for node in reversed(above):
        run.results[id(node)] = run.operators[type(node)](run, node)
    return run


def _grid(run: Run, group: alg.Group, columns: Columns, rows: Sequence[list[Any]]) -> Grid:
    width = len(columns.keys)
    cells = [Column.of([_cell(kind, row[1 + index]) for row in watched(rows)]) for index, kind in enumerate(columns.keys)]
    for index, (measure, kind) in enumerate(zip(group.measures, columns.measures, strict=True), 1 + width):
        aggregate = Aggregate(run, measure)
        sums = Column.of([_summed(aggregate, kind, row[index]) for row in watched(rows)])
        aggregate.warn()
        cells.append(zeros(sums) if measure.function == "sum" else sums)
    expressions = [*(key.of for key in group.keys), *(measure.of for measure in group.measures)]
    for step in group.unsure if rows else ():
        columns_of = [index for index, way in enumerate(expressions, 1) if isinstance(way, ValuePath) and way.steps[:1] == (step,)]
        parts = [row[index] for row in watched(rows) for index in columns_of]
        if parts and not any(cell[0] if isinstance(cell, list) else cell is not None for cell in parts):
            warn_of_empty(run, group.facts[step])
    names = (*(key.name for key in group.keys), *(measure.name for measure in group.measures))
    grid = Grid(names, len(names) - group.hidden, cells, Members.unknown(len(rows)))
    return grid.take(in_fixed_order(cells[:width])) if width else grid


def _cell(kind: str, value: Any) -> Cell | None:
    """A key, or an extreme."""
    if value is None:
        return None
    if kind == "entity":
        entity = entity_of(*value)
        return Cell(entity, entity.name)
    if kind == "day":
        day = Time.parse(value.removeprefix("+"))
        return Cell(day, value if text_of(day) != value else text_of(day))
    return text_cell(value if isinstance(value, str) else Quantity(value))


def _summed(aggregate: Aggregate, kind: str, parts: list[Any]) -> Cell | None:
    count, *more = parts
    function = aggregate.measure.function
    if function in ("sum", "mean"):
        # Integers come as sums in two parts, floats as the list of all.
        return aggregate.of_summed(count, more[0] * HALF + more[1] if kind == "integer" else _exact(more[0]))
    return aggregate.of_summed(count, best=_cell(kind, more[0]) if more else None)


def _exact(numbers: list[Any]) -> Fraction:
    """Return the exact sum of numbers as written."""
    return sum((exact(number) * times for number, times in watched(Counter(numbers).items())), Fraction(0))


# -- Warnings ----------------------------------------------------------------------------------------
# Warnings about values that a test could not compare, counted by the server when someone reads the
# warnings.
#
# Most questions need no query for this: the schema tells the types of a predicate. Warnings of aggregates
# come from running the plan on its evidence (`compile_witness`).


def tested(plan: Node, schema: StoredSchema) -> list[Node]:
    """Return the operators whose tests may meet values they cannot compare, except those computed by the client."""
    beyond = lowered(plan)
    result: list[Node] = []
    for node in postorder(plan):
        tests = node.facets.tests
        if tests != "nothing" and not (tests == "values" and id(node.inputs()[0]) in beyond):
            wanted = compared_kinds(condition_of(node))
            kinds = kinds_tested(node, schema)
            if wanted and (kinds is None or not all_comparable(kinds, wanted)):
                result.append(node)
    return result + [node for node in row_tests(plan) if compared_kinds(node.condition)]


def of_concepts(plan: Node, nodes: list[Node]) -> list[Node]:
    """Restrict operators that test statements of any entity to the members of concepts.

    This applies where the plan intersects with these concepts, so that statements of other entities do not matter.
    """
    members: dict[int, list[alg.Entities]] = {}
    order = postorder(plan)
    takers = Counter(id(child) for node in order for child in node.inputs())
    for node in order:
        if isinstance(node, alg.Intersect):
            concepts = [part for part in node.parts if isinstance(part, alg.Members) and isinstance(part.concepts, alg.ByName)]
            for part in node.parts if concepts else ():
                below: alg.Entities | alg.Facts | None = part
                while below is not None and takers[id(below)] == 1:
                    members[id(below)] = [*concepts]
                    below = (
                        below.facts
                        if isinstance(below, alg.Reached)
                        else alg.passed(below)
                        if isinstance(below, alg.Facts)
                        else None
                    )
    return [_of(node, members[id(node)]) if id(node) in members and isinstance(node, alg.Facts) else node for node in nodes]


def _of(facts: alg.Facts, concepts: list[alg.Entities]) -> alg.Facts:
    inner = alg.passed(facts)
    if inner is not None:
        return alg.passing(facts, _of(inner, concepts))
    if not isinstance(facts, alg.Scan) or facts.anchor != "subject" or facts.reach != "subject":
        return facts
    whole = facts.of is None or (isinstance(facts.of, alg.AllEntities) and facts.of.source is None)
    return replace(facts, of=concepts[0] if len(concepts) == 1 else alg.Intersect(tuple(concepts))) if whole else facts


def placed(part: Any, beyond: set[int], run: Run) -> Any:
    """Return a part of a plan as the server can run it: results replace the operators computed by the client."""
    if isinstance(part, tuple):
        return tuple(placed(item, beyond, run) for item in part)
    if not isinstance(part, Node | Condition) or (isinstance(part, Node) and id(part) not in beyond):
        return part
    if isinstance(part, alg.Entities):
        return alg.ById(tuple(run.snapshot.entity(number).id for number in run.entities(part).tolist()))
    if isinstance(part, alg.Values):
        values: list[Any] = [value.name if isinstance(value, Entity) else value for value in run.values(part).values()]
        return alg.Constants(tuple(value for value in values if value is not UNKNOWN))
    replaced = {field.name: placed(getattr(part, field.name), beyond, run) for field in fields(part) if field.init}  # type: ignore[arg-type]
    return replace(part, **replaced)  # type: ignore[type-var]


def values_may_warn(plan: Node, schema: StoredSchema, empty: bool, *, tables: bool = True) -> bool:
    """Tell whether some operator may have to warn of values, which only reading them shows;

    `tables` includes operators of tables.
    """
    return any(may_warn(node, schema, empty) for node in postorder(plan) if tables or not isinstance(node, alg.Table))


def compile_tallies(nodes: list[Node], graph: str, schema: StoredSchema, *, layout: Layout = CONDGRAPH) -> Compiled:
    """Compile one query that counts the values each operator looks at by type and unit: `step`, `kind`, `unit`, `count`."""

    compiler = PlanCompiler(graph, schema, [child for node in nodes for child in node.inputs()], layout)
    branches: list[list[str]] = []
    for step, node in enumerate(nodes):
        for clauses, kind, unit in _tested_values(compiler, node):
            grouped = f"RETURN {step} AS step, {kind} AS kind, {unit} AS unit, count(*) AS count"
            branches.append([*clauses, grouped])
    return Compiled(compiler.whole(branches, ("step", "kind", "unit", "count")), compiler.parameters, "values", layout=layout)


def _tested_values(compiler: Compiler, node: Node) -> list[tuple[list[str], str, str]]:
    """Return clauses that leave the values an operator tests, with their kind and unit."""
    if isinstance(node, (alg.FilterValues, alg.AnySatisfies)):
        rows = compiler.values(node.values)
        return [(rows.clauses, rows.cell.kind, rows.cell.unit)]
    if isinstance(node, alg.WhereRows):
        return [compared(compiler, node)]
    assert isinstance(node, (alg.Where, alg.WhereQualifier, alg.WhereValidity))
    facts = compiler.facts(node.facts)
    if isinstance(node, alg.Where):
        if facts.family == "relation":
            return [(facts.render(), "'entity'", "null")]
        return [(facts.render(), compiler.layout.kind_of_object(facts.thing), facts.cell.unit)]
    q, layout = compiler.name("q"), compiler.layout
    if isinstance(node, alg.WhereQualifier):
        test = f"{layout.qualifier_name(q)} = {compiler.parameter(node.key)}"
    else:
        test = written(compiler, facts, q, node.part)
    return [(qualified(compiler, facts, q, test), layout.qualifier(q).kind, layout.qualifier(q).unit)]


def counted(nodes: list[Node], rows: list[dict[str, Any]]) -> LeftOut:
    """Return the values that were left out."""
    result = LeftOut()
    for row in rows:
        node, kind = nodes[row["step"]], KINDS[row["kind"]]
        left_out(result, kind, row["unit"] if kind is Kind.QUANTITY else NO_UNIT, row["count"], compared_kinds(condition_of(node)))
    return result


# -- Answers -----------------------------------------------------------------------------------------


class Neo4jAnswer(StoredAnswer):
    """The answer to one program, with its Cypher.

    The trace takes one further query; so do the evidence and the warnings about values that were left out. Each runs when
    first read. If the plan is finished in process (`cypher.compile.plan.lowered`), `_rows` are the statements it rests on, and
    `_local` is the answer from these.
    """

    _store: CypherStore

    def __init__(
        self, store: CypherStore, request: Request, lowered: Lowered, compiled: Compiled, rows: Sequence[dict[str, Any]]
    ) -> None:
        super().__init__(store, request, lowered)
        self._compiled, self._rows = compiled, rows
        self.cypher = pasteable(compiled)
        if compiled.core is not None:
            self.run = _run_of_rows(self.plan, compiled.core, compiled.names, rows[0]["rows"])

    # -- values ------------------------------------------------------------------------------------

    def _compute(self) -> tuple[list[Any], list[str]]:
        if self._grouped is not None:
            values, texts = self._grid().values_and_texts()
            if self._limit is not None and len(values) > self._limit:
                self._omitted = len(values) - self._limit
            return values[: self._limit], texts[: self._limit]
        if self._compiled.shape == "rows":
            return super()._compute()
        if self._compiled.shape == "witness":
            local = self._local
            result = local._outcome()
            self._omitted = local._omitted
            return result
        pairs = sorted(self._pairs(), key=lambda pair: (order_key(pair[0]), pair[1]))
        if self._compiled.distinct:
            pairs = list({(repr(value), text): (value, text) for value, text in pairs}.values())
        if self._limit is not None and len(pairs) > self._limit:
            self._omitted = len(pairs) - self._limit
            pairs = pairs[: self._limit]
        values = [value.name if self._compiled.shape == "entities" else value for value, _ in pairs]
        return values, [text for _, text in pairs]

    @kept
    def _grouped(self) -> Run | None:
        """The tables of groups that the server aggregated; None for other answers, or if it met values of unexpected types."""
        if self._compiled.columns is None:
            return None

        result = tables_of(self.plan, self._compiled.columns, self._rows[0]["rows"])
        if result is None:
            self._compiled = self._store.statements_of(self.plan)
            self._rows = self._store.run(self._compiled)
            self.cypher = pasteable(self._compiled)
        return result

    def _grid(self) -> Grid:
        if self._compiled.shape == "rows":
            return Answer._grid(self)
        grouped = self._grouped
        return super()._grid() if grouped is None else grouped.results[id(self.plan)]

    def _pairs(self) -> list[tuple[Any, str]]:
        shape, rows = self._compiled.shape, self._rows
        if shape == "entities":
            return [(entity_of(*row), row[1]) for row in rows[0]["rows"]]
        if shape == "values":
            return list(map(_cell_value, self._cells))
        if shape == "count":
            return [(row["count"], str(row["count"])) for row in rows]
        if shape == "median":
            return [(result, text_of(result)) for row in rows if (result := self._median(row)) is not None]
        if shape == "predicates":
            return [(name, name) for name in (self._compiled.layout.predicate_of(row["type"]) for row in rows)]
        truths = [row["satisfied"] > 0 if shape == "some" else row["found"] for row in rows]
        return [(truth, text_of(truth)) for truth in truths]

    def _median(self, row: dict[str, Any]) -> Quantity | None:
        """Return the median of the middle numbers, or, if no value is a number, of all texts."""
        if not row["numbers"]:
            numbers = summed_numbers(row["rows"])
            return None if numbers is None else median_of(numbers, NO_UNIT)
        cells = [dict(zip(self._compiled.fields, cell, strict=True)) | {"kind": self._compiled.kind} for cell in row["rows"]]
        result: list[Any] = list(map(value_of, cells))
        return median_of([value.number for value in result], result[0].unit)

    @cached
    def _cells(self) -> list[dict[str, Any]]:
        """The values as returned by the server."""
        fields, kind = self._compiled.fields, self._compiled.kind
        listed = next(row["rows"] for row in self._rows if not row.get("held"))
        cells = [dict(zip(fields, cell, strict=True)) for cell in listed]
        if kind is not None:
            for cell in cells:
                cell["kind"] = kind
        return cells

    @kept
    def entities(self) -> list[Entity]:
        """The entities of the answer, in order."""
        shape = self._compiled.shape
        if shape == "rows":
            return super().entities
        if shape in ("witness", "groups"):
            return self._local.entities
        result: dict[str, Entity] = {}
        if shape == "entities" or isinstance(self.plan, Shown):
            listed = next(row["rows"] for row in self._rows if row.get("held", True))
            result = {row[0]: entity_of(*row) for row in listed}
        elif shape == "values":
            held = [cell for cell in self._cells if cell.get("held")]
            if self._compiled.distinct:
                # Of several entities with one name, the first stays.
                held.sort(key=lambda cell: str(cell["id"]), reverse=True)
                held = list({(cell["kind"] == "entity" and cell["id"], cell["text"]): cell for cell in held}.values())
            result = {cell["id"]: _entity_in(cell) for cell in held}
        return sorted(result.values(), key=lambda entity: (entity.name, entity.id))[: self._limit]

    @property
    def _telling(self) -> Mapping[str, str]:
        return self._store.schema.telling

    # -- how it came about -------------------------------------------------------------------------

    @kept
    def _witness(self) -> Run:
        """The plan run in process on its evidence: one further query, unless the statements were fetched before."""
        if self._compiled.shape != "witness":
            return self._store.witness(self.plan)

        return run_witness(self.plan, self._rows, self._store.known_sources, self._compiled.layout)

    @kept
    def trace(self) -> list[Step]:
        """The result of each step of the program, in order: one further query for all."""
        steps = self._steps or [(type(self.plan).__name__, self.plan)]
        grouped = self._grouped
        sizes = self._store.sizes([node for _, node in steps])
        result = []
        for (function, node), size in zip(steps, sizes, strict=True):
            # Results that were computed in process are counted there.
            if size is None and grouped is not None and id(node) in grouped.results:
                known = grid_size(grouped.results[id(node)])
            else:
                known = self._local._size(node) if size is None else size
            result.append(Step(function, describe(node), *known, self._notes.get(id(node), "")))
        return result

    def _is_of_nothing(self, node: Scalar, values: list[Any]) -> bool:
        return (
            super()._is_of_nothing(node, values)
            if node is self.plan and isinstance(node, Count)
            else self._local._is_of_nothing(node, values)
        )

    def _noticed(self) -> list[str]:

        schema = self._store.schema
        result, left_out = list[str](), LeftOut()
        empty, grouped = not self._outcome()[0], self._grouped
        if grouped is not None and not values_may_warn(self.plan, schema, empty, tables=False):
            result = list(grouped.warnings)
        elif self._compiled.shape == "rows":
            result, left_out = list(self.run.warnings), self.run.left_out
        elif self._compiled.shape in ("witness", "groups") or values_may_warn(self.plan, schema, empty):
            result, left_out = list(self._witness.warnings), self._witness.left_out
        nodes = tested(self.plan, schema)
        if nodes:
            beyond = lowered(self.plan)
            # In an existing database, values under other labels are no mistake.
            apart = of_concepts(self.plan, nodes) if self._compiled.layout.parallel else nodes
            there = [node if beyond.isdisjoint(map(id, node.inputs())) else placed(node, beyond, self._witness) for node in apart]
            tallies = compile_tallies(there, self._store.name, schema, layout=self._compiled.layout)
            left_out = left_out + counted(nodes, self._store.run(tallies))
        return result + left_out_warnings(left_out)

    @timed
    def explain(self) -> str:
        """Return the program, its plan, the Cypher, and the result of each step."""
        steps = [str(step) for step in self.trace]
        parts = [self.program, tree(self.plan), self.cypher or "", "\n".join(steps)]
        return "\n\n".join(part for part in parts if part)


def _run_of_rows(plan: alg.Node, core: alg.Solutions, names: Sequence[str], rows: Sequence[list[Any]]) -> Run:
    """Run a plan in process on the rows that the server returned for one of its operators."""
    from condgraph.engine.execute.stored_rows import run_rows

    entities: dict[str, Entity] = {}
    sources: dict[str, str] = {}

    def term(cell: Any) -> Value | Ref | Name | bool | int | None:
        if not isinstance(cell, dict):
            return Name(cell) if isinstance(cell, str) else cell
        if "id" not in cell:
            return value_of(cell)
        entity_id: str = cell["id"]
        if entity_id not in entities:
            entities[entity_id] = entity_of(entity_id, cell["name"], cell["kind"], cell["row"])
            if cell["source"] is not None:
                sources[entity_id] = cell["source"]
        return Ref(entity_id)

    read = [tuple(map(term, row)) for row in watched(rows)]
    return run_rows(plan, core, names, read, [_sourced(entity, sources.get(entity_id)) for entity_id, entity in entities.items()])


def _sourced(entity: Entity, source: str | None) -> Item:
    return entity if source is None else Sourced(entity, ((source, entity.row),))


def _entity_in(cell: dict[str, Any]) -> Entity:
    return entity_of(cell["id"], cell["text"], cell["of"], cell["row"])


def _cell_value(cell: dict[str, Any]) -> tuple[Any, str]:
    """Return the value of a cell, with its text."""
    if cell["kind"] == "entity":
        return _entity_in(cell), cell["text"]
    value = value_of(cell)
    raw = cell.get("raw")
    return value, text_of(value) if raw is None else raw


def pasteable(compiled: Compiled) -> str:
    """Return the query with its parameters, for pasting into Browser."""
    return pasted(compiled.text, compiled.parameters)


def pasted(text: str, parameters: Mapping[str, Any]) -> str:
    """Return a query and its parameters, for pasting into Browser."""
    return "\n".join([*(f":param {name} => {literal(value)};" for name, value in parameters.items()), text])


def literal(value: Any) -> str:
    """Return a parameter as a Cypher literal."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
        return f"'{escaped}'"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(name)}: {literal(item)}" for name, item in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    if isinstance(value, date):
        # A datetime is also a date.
        name = "date" if not isinstance(value, datetime) else "localdatetime" if value.tzinfo is None else "datetime"
        return f"{name}('{value.isoformat()}')"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    # The smallest integer cannot be written as a literal.
    return "-9223372036854775807 - 1" if value == -(2**63) else repr(value)


def _key(name: str) -> str:
    """Return a key of a map, in backticks where needed."""
    if not name:
        return "/* Cypher has no word for an empty key */ empty"
    return name if name.isascii() and name.isidentifier() else quote(name)

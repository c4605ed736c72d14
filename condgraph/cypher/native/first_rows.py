"""Programs whose rows are cut without an order (LIMIT without ORDER BY), on large databases.

In process, such rows are cut in the fixed order of rows, which takes all of them. If the part of the plan that is cut has more
than `MAX_ROWS` rows, the database chooses instead: one query fetches the first rows of that part, and the program is
asked only about the entities in them. All resulting rows are also rows of the whole program, and the answer warns that there
are more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from condgraph.cypher.compile.plan import lowered
from condgraph.cypher.compile.solutions import rows
from condgraph.cypher.compile.values import PlanCompiler
from condgraph.cypher.layout.base import Layout
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, Solutions
from condgraph.engine.lowered import Lowered
from condgraph.engine.stored_schema import StoredSchema

#: Above this many rows, the database chooses which are kept; otherwise all are fetched.
MAX_ROWS: Final = 10_000
#: The factor by which more rows are taken if the rows so far gave too few.
_GROWTH: Final = 8
#: Operators over one input, each of whose rows comes from one input row, or from equal ones.
_OF_ROWS: Final = (alg.Filter, alg.WhereRows, alg.BoundRows, alg.Extend, alg.Unwind, alg.Project, alg.DistinctRows)
#: Operators over two inputs, each of whose rows comes from one row of the left input.
_OF_LEFT: Final = (alg.Join, alg.LeftJoin, alg.SemiJoin, alg.AntiJoin, alg.MarkJoin, alg.MinusRows)


@dataclass(frozen=True, slots=True)
class FirstRows:
    """A query that returns one row, `rows`: lists of the ids that some variables are bound to."""

    text: str
    parameters: dict[str, Any]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CutPlan:
    """A plan whose rows are cut without an order.

    `path` has the operators from the root down to `part`, each with the field that leads to the next one. The database is asked
    for the first rows of `part`.
    """

    path: tuple[tuple[Solutions, str], ...]
    part: Solutions
    #: How many rows the answer has, if there are enough; and how many are skipped before them.
    number: int
    start: int

    @staticmethod
    def of(plan: Node) -> CutPlan | None:
        """Return the cut plan, or None if no rows are cut, they are ordered first, or the cut is not at the end."""
        path, node, sliced = list[tuple[Solutions, str]](), plan, False
        while not sliced and isinstance(node, alg.Project | alg.Extend | alg.SliceRows):
            sliced = isinstance(node, alg.SliceRows)
            path.append((node, "of"))
            node = node.of
        if not sliced:
            return None
        cut, lowered_ids = path[-1][0], lowered(plan)
        assert isinstance(cut, alg.SliceRows)
        if cut.number is None or cut.number <= 0 or cut.start < 0 or cut.start + cut.number > MAX_ROWS:
            return None
        while isinstance(node, alg.Project | alg.DistinctRows) or id(node) in lowered_ids:
            if not isinstance(node, (*_OF_ROWS, *_OF_LEFT)):
                return None
            path.append((node, "of" if isinstance(node, _OF_ROWS) else "left"))
            node = getattr(node, path[-1][1])
        return CutPlan(tuple(path), node, cut.number, cut.start) if isinstance(node, Solutions) else None

    def query(self, graph: str, schema: StoredSchema, layout: Layout) -> FirstRows | None:
        """Return the query of the part's first rows, at most `MAX_ROWS` plus one; None if they bind no entities."""
        compiler = PlanCompiler(graph, schema, [self.part], layout)
        compiled = rows(compiler, self.part, {})
        # Concepts may have no nodes.
        terms = {
            name: term.text for name, term in compiled.terms.items() if term.sort == "entity" and term.certain and not term.labels
        }
        if not terms:
            return None
        ending = [f"WITH {', '.join(dict.fromkeys(terms.values()))} LIMIT {MAX_ROWS + 1}"]
        ending.append(f"RETURN collect([{', '.join(map(layout.id, terms.values()))}]) AS rows")
        return FirstRows(compiler.whole([[*compiled.clauses, *ending]], ("rows",)), compiler.parameters, tuple(terms))

    def attempts(self, names: Sequence[str], rows: Sequence[Sequence[str]], lowered: Lowered) -> Iterator[Lowered]:
        """Yield the program restricted to the entities in the part's first rows, with more rows each time."""
        size = self.start + self.number
        while size <= MAX_ROWS:
            yield self._restricted(names, rows[:size], lowered)
            size *= _GROWTH

    def _restricted(self, names: Sequence[str], rows: Sequence[Sequence[str]], lowered: Lowered) -> Lowered:
        ids = {name: list(dict.fromkeys(row[index] for row in rows)) for index, name in enumerate(names)}
        # Starting from the variable with the most entities leaves the fewest ways to other rows; the others are tests.
        first, *remaining = sorted(ids, key=lambda name: -len(ids[name]))
        node: Solutions = alg.Join(_rows_of(first, ids), self.part)
        for name in remaining:
            node = alg.Join(node, _rows_of(name, ids))
        changed: dict[int, Node] = {id(self.part): node}
        for operator, field in reversed(self.path):
            node = replace(operator, **{field: node})  # type: ignore[type-var]
            changed[id(operator)] = node
        steps = [(name, changed.get(id(step), step)) for name, step in lowered.steps]
        notes = lowered.notes | {id(changed[key]): note for key, note in lowered.notes.items() if key in changed}
        warning = (
            f"there are more than {MAX_ROWS:,} rows, and nothing orders them: these {self.number:,} are those that the database "
            "gave first; ORDER BY decides which"
        )
        return Lowered(node, steps, [*lowered.warnings, warning], notes)


def _rows_of(name: str, ids: Mapping[str, Sequence[str]]) -> alg.EntityRows:
    return alg.EntityRows(name, alg.ById(tuple(ids[name])))

"""Programs whose rows are cut without an order (LIMIT without ORDER BY), on large databases.

In process such rows are cut in the fixed order of rows, for which all of them are needed. Where the part of the plan that is
cut has more than `MOST_WHOLE` rows, the database chooses instead: one query gives the first rows of that part, and the program
is asked of the entities in these alone. All of its rows are then rows of the whole program, and the answer says that they are
some of many.
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

#: Of parts with more rows the database chooses which are kept; of others all are fetched.
MOST_WHOLE: Final = 10_000
#: How many times as many rows are taken where the rows before gave too few.
_GROWTH: Final = 8
#: Operators over one input, each of whose rows comes from one row of it, or from equal ones.
_OF_ROWS: Final = (alg.Filter, alg.WhereRows, alg.BoundRows, alg.Extend, alg.Unwind, alg.Project, alg.DistinctRows)
#: Operators over two inputs whose rows come each from one row of the left.
_OF_LEFT: Final = (alg.Join, alg.LeftJoin, alg.SemiJoin, alg.AntiJoin, alg.MarkJoin, alg.MinusRows)


@dataclass(frozen=True, slots=True)
class FirstRows:
    """A query that gives one row `rows`: lists of the ids that some variables are bound to."""

    text: str
    parameters: dict[str, Any]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CutPlan:
    """A plan whose rows are cut without an order: the operators from its root down to the `part` that the database is asked for
    first rows of, each with the field that leads to the next one.
    """

    path: tuple[tuple[Solutions, str], ...]
    part: Solutions
    #: How many rows the answer has, if there are enough; and how many before them are left out.
    number: int
    start: int

    @staticmethod
    def of(plan: Node) -> CutPlan | None:
        """None of a plan whose rows are not cut, or ordered before, or not at its end."""
        path, node, sliced = list[tuple[Solutions, str]](), plan, False
        while not sliced and isinstance(node, alg.Project | alg.Extend | alg.SliceRows):
            sliced = isinstance(node, alg.SliceRows)
            path.append((node, "of"))
            node = node.of
        if not sliced:
            return None
        cut, beyond = path[-1][0], lowered(plan)
        assert isinstance(cut, alg.SliceRows)
        if cut.number is None or cut.number <= 0 or cut.start < 0 or cut.start + cut.number > MOST_WHOLE:
            return None
        while isinstance(node, alg.Project | alg.DistinctRows) or id(node) in beyond:
            if not isinstance(node, (*_OF_ROWS, *_OF_LEFT)):
                return None
            path.append((node, "of" if isinstance(node, _OF_ROWS) else "left"))
            node = getattr(node, path[-1][1])
        return CutPlan(tuple(path), node, cut.number, cut.start) if isinstance(node, Solutions) else None

    def query(self, graph: str, schema: StoredSchema, layout: Layout) -> FirstRows | None:
        """The query of the first rows of the part, one more than `MOST_WHOLE` at most; None where they bind no entities."""
        compiler = PlanCompiler(graph, schema, [self.part], layout)
        found = rows(compiler, self.part, {})
        # Concepts may have no nodes.
        terms = {
            name: term.text for name, term in found.terms.items() if term.sort == "entity" and term.certain and not term.labels
        }
        if not terms:
            return None
        ending = [f"WITH {', '.join(dict.fromkeys(terms.values()))} LIMIT {MOST_WHOLE + 1}"]
        ending.append(f"RETURN collect([{', '.join(map(layout.id, terms.values()))}]) AS rows")
        return FirstRows(compiler.whole([[*found.clauses, *ending]], ("rows",)), compiler.parameters, tuple(terms))

    def attempts(self, names: Sequence[str], found: Sequence[Sequence[str]], made: Lowered) -> Iterator[Lowered]:
        """The program of the entities that some variables are bound to in the first rows of the part, of more rows each time."""
        size = self.start + self.number
        while size <= MOST_WHOLE:
            yield self._within(names, found[:size], made)
            size *= _GROWTH

    def _within(self, names: Sequence[str], found: Sequence[Sequence[str]], made: Lowered) -> Lowered:
        ids = {name: list(dict.fromkeys(row[at] for row in found)) for at, name in enumerate(names)}
        # From the most of them there are the fewest ways to other rows; the others are tests.
        first, *others = sorted(ids, key=lambda name: -len(ids[name]))
        node: Solutions = alg.Join(_rows_of(first, ids), self.part)
        for name in others:
            node = alg.Join(node, _rows_of(name, ids))
        changed: dict[int, Node] = {id(self.part): node}
        for above, field in reversed(self.path):
            node = replace(above, **{field: node})  # type: ignore[type-var]
            changed[id(above)] = node
        steps = [(name, changed.get(id(step), step)) for name, step in made.steps]
        notes = made.notes | {id(changed[key]): note for key, note in made.notes.items() if key in changed}
        warning = (
            f"there are more than {MOST_WHOLE:,} rows, and nothing orders them: these {self.number:,} are those that the database "
            "gave first; ORDER BY decides which"
        )
        return Lowered(node, steps, [*made.warnings, warning], notes)


def _rows_of(name: str, ids: Mapping[str, Sequence[str]]) -> alg.EntityRows:
    return alg.EntityRows(name, alg.ById(tuple(ids[name])))

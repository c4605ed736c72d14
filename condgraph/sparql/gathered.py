"""Runs a plan in process on triples from a server: rows as a small snapshot, the witness of an answer, and the statements
around entities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.algebra.operators import around_of
from condgraph.engine.errors import StoreError
from condgraph.engine.execute.searched import countable
from condgraph.engine.execute.sets import FactSet
from condgraph.engine.execute.witness_plan import Unit, WitnessRun, shown, units
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.identity import statement_ids
from condgraph.engine.iris import PRED, RDF, VALUE
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Value
from condgraph.sparql.compile.conditions import FactNeeds, Group
from condgraph.sparql.compile.operators import Compiler, reach_of
from condgraph.sparql.compile.plan import (
    Compiled,
    branch_of,
    collect,
    compile_plan,
    counting,
    gathering,
    lowered,
    memberships,
    memberships_of,
    namesakes,
    native,
    other_namesakes,
    over_rows,
)
from condgraph.sparql.layout import MEMBER, STATEMENT, SUBCLASS, TYPE, GraphIris, exactly, integer, read_value

if TYPE_CHECKING:
    from condgraph.engine.check import KnownIds
    from condgraph.engine.execute.run import Run
    from condgraph.engine.store import EndPart
    from condgraph.sparql.compile.conditions import Target


# -- rows as a snapshot ------------------------------------------------------------------------------
# Each row is (leaf, a result of the leaf, a triple about it). The snapshot is small and complete for its
# plan; the engine continues from the results of the leaves as if it had computed them.


Row = tuple[str, str, str, str, str]
#: Returns the solutions of a SELECT over the graph.
Select = Callable[[str], Iterable[Any]]


def rows_of(solutions: Iterable[Any]) -> Iterator[Row]:
    """Yield the rows of a gathering query."""
    for row in solutions:
        leaf, n, s, p, o = (row[name].value for name in ("leaf", "n", "s", "p", "o"))
        yield leaf, n, s, p, o


class LostRowsError(StoreError):
    """A store left out rows of its answer."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="Virtuoso does so with some of its plans, soon after a load; a restart makes it plan anew")


class Gathered:
    """The rows of a gathering query as a snapshot, with the results of each leaf."""

    def __init__(self, rows: Iterable[Row], names: GraphIris, sources: Iterable[str]) -> None:
        self.names = names
        self.given: dict[int, set[str]] = {}
        self._about: dict[str, dict[str, list[str]]] = {}
        leading = tuple(f"{names.base}{kind}" for kind in (STATEMENT, MEMBER, SUBCLASS))
        for leaf, n, s, p, o in rows:
            self.given.setdefault(int(leaf), set()).add(n)
            if (s != n or p.startswith(names.base)) and not n.startswith(leading):
                continue
            values = self._about.setdefault(s, {}).setdefault(p, [])
            if o not in values:
                values.append(o)
        builder = Builder()
        builder.begin(Source(""))
        try:
            builder.add(self._items(sources))
        except (KeyError, IndexError) as error:
            raise LostRowsError(f"the store left out rows of its answer: nothing of {error}") from None
        except ValueError as error:
            raise LostRowsError(f"the store put a value into another row of its answer: {error}") from None
        self.snapshot = Snapshot.of(*lay_out(builder))
        self._numbers = {sid: number for number, sid in enumerate(statement_ids(self.snapshot).tolist())}

    def seed(self, run: Run, leaves: tuple[Node, ...]) -> None:
        """Give the leaves their results."""
        names, snapshot = self.names, self.snapshot
        bounds = [(0, snapshot.relations), (snapshot.relations, snapshot.statements)]
        for i, leaf in enumerate(leaves):
            iris = self.given.get(i, ())
            if isinstance(leaf, alg.Facts):
                sorted_numbers = sorted(self._numbers[names.sid_of(iri)] for iri in iris)
                numbers = np.array(sorted_numbers, np.int32)
                ranges = [bound for bound in bounds if bound[0] < bound[1]]
                run.results[id(leaf)] = FactSet(run, reach_of(leaf), numbers=numbers, runs=ranges)
            else:
                sorted_numbers = sorted(snapshot.identified(names.name_of(iri)) for iri in iris)
                run.results[id(leaf)] = np.array(sorted_numbers, np.int32)

    def _items(self, sources: Iterable[str]) -> Iterator[Item]:
        names, prefix = self.names, self.names.base + ".s/"
        described = [about for about in self._about.values() if f"{PRED}place" in about]
        for about in sorted(described, key=lambda about: int(about[f"{PRED}place"][0])):
            yield Source(*(about[f"{PRED}{term}"][0] for term in ("label", "location", "format")))
        for source in () if described else sources:
            yield Source(source)
        for node, about in self._about.items():
            kind = next((_KINDS[t] for t in about.get(f"{RDF}type", ()) if t in _KINDS), None)
            if kind is None:
                continue
            row = int(about.get(f"{PRED}row", ["0"])[0])
            entity = Entity(names.name_of(node), about[f"{PRED}name"][0], kind, row)
            place = about.get(f"{PRED}source")
            yield Sourced(entity, ((names.source_of(place[0]), row),)) if place else entity
        for node, about in self._about.items():
            if node.startswith(prefix):
                yield self._statement(about)
            for build, left, right in ((Member, "member", "concept"), (Subclass, "subclass", "superclass")):
                if f"{PRED}{left}" in about:
                    row = int(about.get(f"{PRED}row", ["0"])[0])
                    ends = [names.name_of(about[f"{PRED}{end}"][0]) for end in (left, right)]
                    yield Sourced(build(ends[0], ends[1], row), ((names.source_of(about[f"{PRED}source"][0]), row),))

    def _statement(self, about: dict[str, list[str]]) -> Item:
        names = self.names
        qualifiers = tuple(
            (names.name_of(key), self._thing(value))
            for key, values in about.items()
            if key.startswith(names.base)
            for value in values
        )
        raw = about.get(f"{PRED}raw")
        statement = Statement(
            names.name_of(about[f"{PRED}fact_h"][0]),
            names.name_of(about[f"{PRED}fact_r"][0]),
            self._thing(about[f"{PRED}fact_t"][0]),
            qualifiers,
            raw=raw[0] if raw else None,
        )
        records = about.get(f"{PRED}record")
        if records is None:
            row = int(about.get(f"{PRED}row", ["0"])[0])
            return Sourced(statement, tuple((names.source_of(source), row) for source in about.get(f"{PRED}source", ())))
        places = []
        for record in sorted(records, key=lambda iri: int(iri.rpartition(".")[2])):
            place = self._about[record]
            places.append((names.source_of(place[f"{PRED}source"][0]), int(place[f"{PRED}row"][0])))
        return Sourced(statement, tuple(places))

    def _thing(self, node: str) -> Ref | Value:
        if not self.names.is_value(node):
            return Ref(self.names.name_of(node))
        about = self._about[node]
        found = {term.removeprefix(PRED): values[0] for term, values in about.items()}
        value = read_value(found | {"type": found[f"{RDF}type"].removeprefix(PRED)})
        return exactly(value, node[len(self.names.base) + len(VALUE) :])


_KINDS: Final = {f"{PRED}Entity": EntityKind.ENTITY, f"{PRED}Concept": EntityKind.CONCEPT, f"{PRED}Row": EntityKind.ROW}


def finish(run: Run, plan: Node, gathered: Gathered, leaves: tuple[Node, ...]) -> None:
    """Run the operators above the leaves."""
    gathered.seed(run, leaves)
    order, seen = [], set(run.results)
    for node in postorder(plan):
        if id(node) not in seen and _above(plan, node, seen):
            order.append(node)
    run.execute(plan, order)


def _above(plan: Node, wanted: Node, leaves: set[int]) -> bool:
    stack, seen = [plan], set(leaves)
    while stack:
        node = stack.pop()
        if node is wanted:
            return True
        if id(node) not in seen:
            seen.add(id(node))
            stack.extend(node.inputs())
    return False


# -- witness -----------------------------------------------------------------------------------------
# The evidence of an answer: the statements it rests on, fetched with one further query (on Virtuoso one
# for each part) and queried in process.
#
# The query fetches the statements that pass the filters of each scan, the sets that the plan names and
# the memberships in between; the engine then runs the same plan on them (`engine.execute.witness_plan`),
# so that evidence and warnings of aggregates equal those of the graph in process.


#: Entities that one part of a query names.
_TOGETHER: Final = 200


def wanted(plan: Node, target: Target) -> list[Unit]:
    """Return what has to be fetched for a plan."""
    return [*units(plan, lowered(postorder(plan))), *shown(plan, target.schema)]


def compile_witness(fetched: Sequence[Unit], target: Target) -> list[str]:
    """Return the queries that fetch some units: one, or one for each part if a store needs that.

    Each unit is the leaf with its number; sources and memberships are leaf -1.
    """
    branches = _branches(fetched, target)
    parts = [[branch] for branch in branches] if target.dialect.gathers_in_parts else [branches]
    return [gathering(part, target, stated=True) for part in parts]


def compile_ends(parts: Sequence[EndPart], target: Target, *, statements: bool) -> str:
    """Return the query for the ends of statements and stated memberships: subject, predicate and object as `?x`, `?p` and
    `?y`, and with `statements` also `?f`, the statement; without, equal triples share a row.
    """
    compiler, queries = Compiler(target), list[str]()
    for part in parts:
        out = Group()
        if isinstance(part, alg.Facts):
            facts = compiler.bound(part, out, FactNeeds(statements, "?x", "?y"))
            columns = f"?x ({facts.predicate} AS ?p) ?y" + (f" ({facts.statement} AS ?f)" if statements else "")
        else:
            for node, e in ((part.member, "?x"), (part.concept, "?y")):
                if isinstance(node, Node):
                    compiler.entities(node, e, out)
            out.append(f"?m {TYPE} <pred:Membership> ; <pred:member> ?x ; <pred:concept> ?y .")
            columns = "?x ?y"
        queries.append(f"SELECT {'' if statements else 'DISTINCT '}{columns} WHERE {{ {out.text()} }}")
    if len(queries) == 1:
        return queries[0]
    return f"SELECT ?x ?p ?y ?f WHERE {{ {' UNION '.join(f'{{ {query} }}' for query in queries)} }}"


def compile_whole(plan: Node, target: Target) -> Compiled:
    """Return the query of a plan (`compile_plan`), or the query of its evidence."""
    compiled = compile_plan(plan, target)
    if compiled.shape != "witness":
        return compiled
    return replace(compiled, text="\n".join(compile_witness(wanted(plan, target), target)))


def _branches(fetched: Sequence[Unit], target: Target) -> list[str]:
    compiler = Compiler(target)
    branches = ["SELECT DISTINCT (-1 AS ?leaf) (?source AS ?n) WHERE { ?source <pred:place> ?place . }"]
    for i, unit in enumerate(fetched):
        if unit.named is not None:
            below: list[Node] = []
            collect(unit.named, below, below, set())
            branches.extend(namesakes(compiler, i, unit.named, below))
            continue
        branches.append(branch_of(compiler, i, unit.compiled))
        if unit.concepts is not None:
            everything = unit.compiled if unit.known else None
            branches.extend(memberships(compiler, everything, unit.concepts))  # type: ignore[arg-type]
    return branches


def counted(target: Target, select: Select, nodes: Sequence[Node], known: KnownIds) -> list[int]:
    """Count the statements, or entities, of each operator with one query; `known` has the ids that only the client computes."""
    steps: list[tuple[int, Node]] = []
    for step, node in enumerate(nodes):
        steps.extend((step, part) for part in _parted(countable(node, lambda one: not native(one), known)))
    compiler = Compiler(target)
    parts = []
    for step, node in steps:
        out = Group()
        if isinstance(node, alg.Facts):
            counted = compiler.facts(node, out, whole=True).statement
        else:
            counted = compiler.variable("e")
            compiler.settled(node, counted, out)
        parts.append(counting(integer(step), counted, out))
    sizes = [0] * len(nodes)
    for row in select(f"SELECT ?step ?size WHERE {{ {' UNION '.join(parts)} }}"):
        sizes[int(row["step"].value)] += int(row["size"].value)
    return sizes


def _parted(node: Node) -> list[Node]:
    """Split long lists of entities or names into pieces, whose statements do not overlap."""
    of = node.of if isinstance(node, alg.Scan) else node
    if not isinstance(of, (alg.ById, alg.ByName)):
        return [node]
    listed = of.ids if isinstance(of, alg.ById) else of.names
    pieces = [type(of)(listed[start : start + _TOGETHER]) for start in range(0, len(listed), _TOGETHER)]
    return [replace(node, of=piece) if isinstance(node, alg.Scan) else piece for piece in pieces]


def run_witness(plan: Node, fetched: Sequence[Unit], rows: Iterable[Row], names: GraphIris) -> WitnessRun:
    """Run a plan on what was fetched for it."""
    gathered = Gathered(rows, names, ())
    snapshot = gathered.snapshot
    known = {}
    for i, unit in enumerate(fetched):
        for node in unit.known:
            numbers = [snapshot.identified(names.name_of(iri)) for iri in gathered.given.get(i, ())]
            known[id(node)] = np.unique(np.array(numbers, np.int32))
    order = postorder(plan)
    run = WitnessRun(snapshot, known, lowered(order) if over_rows(order) else ())
    run.execute(plan)
    return run


# -- around ------------------------------------------------------------------------------------------
# The statements around some entities, for chains: one query, with a limit for each direction.


def around(
    target: Target, select: Select, ids: Sequence[str], names: Sequence[str], most: int, *, values: bool, concepts: bool = False
) -> Snapshot:
    """Return the entities with these ids and names and their statements, as a snapshot.

    Others with the name of an entity in it are added, up to the limit; `concepts` adds memberships.
    """
    compiler = Compiler(target)
    of, scans = around_of(ids, names, values=values)
    branches = ["SELECT DISTINCT (-1 AS ?leaf) (?source AS ?n) WHERE { ?source <pred:place> ?place . }"]
    branches += [f"{branch_of(compiler, number, scan)} LIMIT {int(most)}" for number, scan in enumerate(scans)]
    branches.append(branch_of(compiler, len(scans), of))
    branches += other_namesakes(compiler, len(scans) + 1, of, scans, most)
    if concepts:
        branches += memberships_of(compiler, of, most)
    text = gathering(branches, target, stated=True)
    try:
        return Gathered(rows_of(select(text)), target.names, ()).snapshot
    except LostRowsError:
        # Shorter queries get other plans.
        parts = [row for branch in branches for row in rows_of(select(gathering([branch], target, stated=True)))]
        return Gathered(parts, target.names, ()).snapshot

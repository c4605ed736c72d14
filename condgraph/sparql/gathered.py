"""What a gathering query gave (`compile.gather`), as a snapshot on which the client runs the rest of
a plan.

Each row is (leaf, what the leaf gave, a triple about it). The snapshot is small and complete for
its plan; the engine goes on from the leaves' results as if it had worked them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.errors import StoreError
from condgraph.engine.execute.factset import FactSet
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.identity import statement_ids
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Value
from condgraph.sparql.compile.facts import reach_of
from condgraph.sparql.layout import MEMBER, PRED, RDF, STATEMENT, SUBCLASS, VALUE, GraphIris, exactly, read_value

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run

Row = tuple[str, str, str, str, str]


class LostRowsError(StoreError):
    """An answer of a store that is not whole."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="Virtuoso does so with some of its plans, soon after a load; a restart makes it plan anew")


class Gathered:
    """The rows of a gathering query as a snapshot, with what each leaf gave."""

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
            given = self.given.get(i, ())
            if isinstance(leaf, alg.Facts):
                found = sorted(self._numbers[names.sid_of(iri)] for iri in given)
                numbers = np.array(found, np.int32)
                runs = [bound for bound in bounds if bound[0] < bound[1]]
                run.results[id(leaf)] = FactSet(run, reach_of(leaf), numbers=numbers, runs=runs)
            else:
                found = sorted(snapshot.identified(names.name_of(iri)) for iri in given)
                run.results[id(leaf)] = np.array(found, np.int32)

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
    """Run what is above the leaves."""
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

"""Plans that the client finishes: one query for the statements and entities that the rest of the plan is run on.

The largest parts that are patterns become `leaves`. A scan above them, whose entities only the client will know, is gathered for
all entities. Each row is (leaf, what the leaf gave, a triple about it): statements with their qualifiers and places, entities with
their names and rows, value nodes. `graph_of` makes a snapshot of the triples, small and complete for this plan, and the engine goes
on from the leaves' results as if it had worked them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.execute.factset import FactSet
from condgraph.engine.facts import Entity, EntityKind, Item, Ref, Source, Sourced, Statement
from condgraph.engine.identity import statement_ids
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Value
from condgraph.sparql.compile import Compiler
from condgraph.sparql.compile_facts import reach_of
from condgraph.sparql.compile_group import TARGET, Group, Target
from condgraph.sparql.compile_plan import Compiled, native
from condgraph.sparql.layout import PRED, RDF, VALUE, Names, exactly, integer, read_value

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run

#: What is said of an entity, a value node, or a record, that a statement leads to.
_ABOUT: Final = (
    "name", "value", "unit", "exact", "start", "end", "precision", "source", "row", "position",
)  # fmt: skip
Row = tuple[str, str, str, str, str]


def gather(plan: Node, target: Target) -> Compiled:
    """The query that gathers what the plan is finished on."""
    leaves: list[Node] = []
    extra: list[Node] = []
    _collect(plan, leaves, extra, set())
    compiler = Compiler(target)
    branches = []
    everything = [*leaves, *extra]
    for i, leaf in enumerate(everything):
        branches.append(_branch(compiler, i, leaf))
    for i, (node, below) in enumerate(_renamed(plan), len(everything)):
        branches.extend(_namesakes(compiler, i, node, below))
    if not branches:
        # A plan of given values alone needs nothing of the graph, where no triple has this predicate; it stays one query.
        return Compiled("SELECT ?leaf ?n ?s ?p ?o WHERE { ?n <pred:nothing> ?o }", "gathered", ())
    about = " ".join(f"<{PRED}{term}>" for term in _ABOUT) + f" <{RDF}type>"
    text = (
        "SELECT DISTINCT ?leaf ?n ?s ?p (STR(?x) AS ?o) WHERE { { SELECT DISTINCT ?leaf ?n WHERE { "
        + " UNION ".join(f"{{ {branch} }}" for branch in branches)
        + " } } { ?n ?p ?x . FILTER(?p IN (<pred:fact_h>, <pred:fact_r>, <pred:fact_t>, <pred:source>, <pred:row>, <pred:raw>, "
        f'<pred:record>, <pred:name>, <pred:position>, <{RDF}type>) || (STRSTARTS(STR(?n), "{target.names.base}.s/") && '
        f'STRSTARTS(STR(?p), "{target.names.base}"))) BIND(?n AS ?s) }} UNION {{ ?n <pred:fact_h>|<pred:fact_t>|<pred:record> ?s . '
        f"VALUES ?p {{ {about} }} ?s ?p ?x . }} UNION {{ ?n <pred:fact_h> ?h . ?n ?k ?s . "
        f'FILTER(STRSTARTS(STR(?k), "{target.names.base}")) VALUES ?p {{ {about} }} ?s ?p ?x . }} }}'
    )
    return Compiled(text, "gathered", tuple(everything))


def _collect(node: Node, leaves: list[Node], extra: list[Node], seen: set[int]) -> None:
    """The largest native parts, and what scans and neighbours of computed entities need."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, (alg.Entities, alg.Facts)) and native(node):
        leaves.append(node)
        return
    if isinstance(node, alg.Scan):
        extra.append(replace(node, of=None, reach="subject"))
    elif isinstance(node, alg.Neighbour):
        sources = {part.source for part in postorder(node) if isinstance(part, (alg.Scan, alg.Every)) and part.source}
        extra.extend(alg.Every((EntityKind.ROW,), source) for source in sorted(sources))
        if not sources:
            extra.append(alg.Every((EntityKind.ROW,)))
    elif isinstance(node, alg.Members):
        raise UnsupportedError(TARGET, ["Members of concepts that an earlier step works out"])
    elif isinstance(node, alg.Best):
        extra.append(alg.Scan(None, (node.key,), family="attribute"))
    for child in node.inputs():
        _collect(child, leaves, extra, seen)


def _branch(compiler: Compiler, i: int, leaf: Node) -> str:
    out = Group()
    if isinstance(leaf, alg.Facts):
        rows = compiler.facts(leaf, out, whole=True)
        n = rows.statement
    else:
        n = compiler.variable("e")
        compiler.settled(leaf, n, out)
    return f"SELECT DISTINCT ({integer(i)} AS ?leaf) ({n} AS ?n) WHERE {{ {out.text()} }}"


def _renamed(plan: Node) -> Iterator[tuple[Node, list[Node]]]:
    """Operators that meet entities by name, outside of the native parts, with the native parts below them."""
    seen: set[int] = set()
    stack = [plan]
    while stack:
        node = stack.pop()
        if id(node) in seen or (isinstance(node, (alg.Entities, alg.Facts)) and native(node)):
            continue
        seen.add(id(node))
        if isinstance(node, (alg.Referents, alg.Namesakes)):
            below: list[Node] = []
            _collect(node, below, below, set())
            if any(isinstance(part, (alg.Apply, alg.External)) for part in postorder(node)):
                raise UnsupportedError(TARGET, ["entities by names that an earlier step works out"])
            yield node, below
        stack.extend(node.inputs())


def _namesakes(compiler: Compiler, i: int, node: Node, below: list[Node]) -> Iterator[str]:
    """The entities that are named like something the parts below give."""
    select = f"SELECT DISTINCT ({integer(i)} AS ?leaf) (?n1 AS ?n) WHERE {{ %s }}"
    texts = sorted({v for part in postorder(node) if isinstance(part, alg.Given) for v in part.values if isinstance(v, str)})
    if texts:
        out = Group()
        compiler.named(alg.Named(tuple(texts)), "?n1", out)
        yield select % out.text()
    for leaf in below:
        out = Group()
        t = compiler.variable("t")
        if isinstance(leaf, alg.Facts):
            rows = compiler.facts(leaf, out, whole=True)
            k, v = compiler.variable("k"), compiler.variable("v")
            out.append(f'{rows.statement} {k} {v} . FILTER({k} IN (<pred:fact_h>, <pred:fact_t>) || STRSTARTS(STR({k}), "')
            out[-1] += f'{compiler.iris.base}")) {v} <pred:name>|<pred:value> {t} .'
        else:
            e = compiler.variable("e")
            compiler.entities(leaf, e, out)
            out.append(f"{e} <pred:name> {t} .")
        out.append(f"?n1 <pred:name> {t} .")
        yield select % out.text()


# -- from rows to a snapshot ----------------------------------------------------------------------------------------------


class Gathered:
    """The rows of a gathering query as a snapshot, with what each leaf gave."""

    def __init__(self, rows: Iterable[Row], names: Names, sources: Iterable[str]) -> None:
        self.names = names
        self.given: dict[int, set[str]] = {}
        self._about: dict[str, dict[str, list[str]]] = {}
        for leaf, n, s, p, o in rows:
            self.given.setdefault(int(leaf), set()).add(n)
            values = self._about.setdefault(s, {}).setdefault(p, [])
            if o not in values:
                values.append(o)
        builder = Builder()
        builder.begin(Source(""))
        builder.add(self._items(sources))
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
        for source in sources:
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

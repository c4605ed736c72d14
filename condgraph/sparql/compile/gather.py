"""Plans that the client finishes: one query for the statements and entities that the rest of the
plan is run on.

The largest parts that are patterns become `leaves`. A scan above them, whose entities only the
client will know, is gathered for all entities. Each row is (leaf, what the leaf gave, a triple
about it): statements with their qualifiers and places, entities with their names and rows, value
nodes. `graph_of` makes a snapshot of the triples, small and complete for this plan, and the engine
goes on from the leaves' results as if it had worked them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

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
from condgraph.sparql.compile.compiled import Compiled, native
from condgraph.sparql.compile.entities import Compiler
from condgraph.sparql.compile.facts import reach_of
from condgraph.sparql.compile.group import Group, Target
from condgraph.sparql.dialect import VIRTUOSO
from condgraph.sparql.layout import PRED, RDF, VALUE, GraphIris, exactly, read_value
from condgraph.sparql.literals import integer

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run

#: What is said of an entity, a value node, or a record, that a statement leads to.
_ABOUT: Final = (
    "name", "value", "unit", "exact", "start", "end", "precision", "source", "row", "position",
)  # fmt: skip
#: What is said of what a branch gives itself, and what leads on to others; with memberships and
#: sources more.
_OWN: Final = ("fact_h", "fact_r", "fact_t", "source", "row", "raw", "record", "name", "position")
_LEAD: Final = ("fact_h", "fact_t", "record")
_ENDS: Final = ("member", "concept", "subclass", "superclass")
_STATED: Final = (*_ENDS, "label", "location", "format", "place")
#: As many results as there may be.
_ANY: Final = 10**9
Row = tuple[str, str, str, str, str]


def gather(plan: Node, target: Target) -> Compiled:
    """The query that gathers what the plan is finished on."""
    leaves: list[Node] = []
    extra: list[Node] = []
    collect(plan, leaves, extra, set())
    compiler = Compiler(target)
    branches = []
    everything = [*leaves, *extra]
    for i, leaf in enumerate(everything):
        branches.append(branch_of(compiler, i, leaf))
    for i, (node, below) in enumerate(_renamed(plan), len(everything)):
        branches.extend(namesakes(compiler, i, node, below))
    stated = any(isinstance(node, alg.Members) for node in extra_of(plan))
    if stated:
        branches.extend(memberships(compiler))
    if not branches:
        # A plan of given values alone needs nothing of the graph, where no triple has this
        # predicate; it stays one query.
        return Compiled("SELECT ?leaf ?n ?s ?p ?o WHERE { ?n <pred:nothing> ?o }", "gathered", ())
    text = gathering(branches, target, stated)
    return Compiled(text, "gathered", tuple(everything))


def gathering(branches: Iterable[str], target: Target, stated: bool = False) -> str:
    """The query of rows (leaf, what the branch gave, a triple about it); `stated` branches give
    sources and memberships as well.

    The limit is more than any graph has. Oxigraph looks up what is said of each node where it
    expects few of them; where a long pattern, or a list of values, makes it expect more, it reads
    the whole store. Virtuoso is given the list: of the condition it makes plans that lose rows, or
    put another row's value in.
    """
    base, about = target.names.base, [f"<{PRED}{term}>" for term in _ABOUT] + [f"<{RDF}type>"]
    own, lead = [*_OWN, *(_STATED if stated else ())], [*_LEAD, *(_ENDS if stated else ())]
    listed, path = ", ".join(f"<{PRED}{term}>" for term in own), ", ".join(f"<{PRED}{term}>" for term in lead)
    if target.dialect is VIRTUOSO:
        limit, there = "", f"VALUES ?p {{ {' '.join(about)} }} ?s ?p ?x ."
    else:
        limit, there = f"LIMIT {_ANY} ", f"?s ?p ?x . FILTER(?p IN ({', '.join(about)}))"
    return (
        "SELECT DISTINCT ?leaf ?n ?s ?p (STR(?x) AS ?o) WHERE { { SELECT DISTINCT ?leaf ?n WHERE { "
        + " UNION ".join(f"{{ {branch} }}" for branch in branches)
        + f' }} {limit}}} {{ ?n ?p ?x . FILTER(?p IN ({listed}, <{RDF}type>) || (STRSTARTS(STR(?n), "{base}.s/") && '
        f'STRSTARTS(STR(?p), "{base}"))) BIND(?n AS ?s) }} UNION {{ ?n ?k ?s . FILTER(?k IN ({path}) || '
        f'(STRSTARTS(STR(?n), "{base}.s/") && STRSTARTS(STR(?k), "{base}"))) {there} }} }}'
    )


def collect(node: Node, leaves: list[Node], extra: list[Node], seen: set[int]) -> None:
    """The largest native parts, and what scans and neighbours of computed entities need."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, (alg.Entities, alg.Facts)) and native(node):
        leaves.append(node)
        return
    if type(node) in READ:
        extra.extend(READ[type(node)](node))
    for child in node.inputs():
        collect(child, leaves, extra, seen)


def _every_statement(node: alg.Scan) -> Iterator[Node]:
    yield replace(node, of=None, reach="subject")


def _every_value(node: alg.ArgExtreme) -> Iterator[Node]:
    yield alg.Scan(None, (node.key,), family="attribute")


def _every_row(node: alg.Neighbour) -> Iterator[Node]:
    sources = {part.source for part in postorder(node) if isinstance(part, (alg.Scan, alg.AllEntities)) and part.source}
    listed: list[str | None] = [*sorted(sources)] or [None]
    for source in listed:
        yield alg.AllEntities((EntityKind.ROW,), source)


def _every_member(node: alg.Members) -> Iterator[Node]:
    """Which concepts they are the client will know: everything that may be in one; `gather` adds
    all memberships.
    """
    yield alg.AllEntities((EntityKind.ENTITY, EntityKind.CONCEPT, EntityKind.ROW))


#: What is gathered for operators that read the graph (`Facets.reads`) where only the client will
#: know their inputs.
READ: Final[dict[type[Node], Callable[[Any], Iterator[Node]]]] = {
    alg.Scan: _every_statement,
    alg.ArgExtreme: _every_value,
    alg.Neighbour: _every_row,
    alg.Members: _every_member,
}
#: Those that meet entities by name; `namesakes` gathers these.
BY_NAME: Final = (alg.Referents, alg.SameName)


def extra_of(plan: Node) -> Iterator[Node]:
    """The operators that no pattern says."""
    return (node for node in postorder(plan) if not native(node))


def memberships(compiler: Compiler, members: alg.Entities | None = None, concepts: alg.Entities | None = None) -> Iterator[str]:
    """Memberships and subclasses as they were stated: all, or those that put `members` under
    `concepts`, with what lies between.
    """
    for ends in (("member", "concept"), ("subclass", "superclass")):
        out = Group()
        m, end, c = (compiler.variable(prefix) for prefix in "mec")
        if concepts is not None:
            above = compiler.variable("c")
            compiler.entities(concepts, above, out)
            out.append(f"{c} <pred:subclass_of>* {above} .")
        out.append(f"{m} <pred:{ends[1]}> {c} . {m} <pred:{ends[0]}> {end} .")
        if members is not None and ends[0] == "member":
            compiler.entities(members, end, out)
        # A path in a group that gives nothing is an error of Virtuoso's planner.
        if not out.empty:
            yield f"SELECT DISTINCT (-1 AS ?leaf) ({m} AS ?n) WHERE {{ {out.text()} }}"


def branch_of(compiler: Compiler, i: int, leaf: Node) -> str:
    """The part of the query that gives the statements, or the entities, of a leaf."""
    out = Group()
    if isinstance(leaf, alg.Facts):
        rows = compiler.facts(leaf, out, whole=True)
        n = rows.statement
    else:
        n = compiler.variable("e")
        compiler.settled(leaf, n, out)
    return f"SELECT DISTINCT ({integer(i)} AS ?leaf) ({n} AS ?n) WHERE {{ {out.text()} }}"


def _renamed(plan: Node) -> Iterator[tuple[Node, list[Node]]]:
    """Operators that meet entities by name, outside of the native parts, with the native parts
    below them.
    """
    seen: set[int] = set()
    stack = [plan]
    while stack:
        node = stack.pop()
        if id(node) in seen or (isinstance(node, (alg.Entities, alg.Facts)) and native(node)):
            continue
        seen.add(id(node))
        if isinstance(node, BY_NAME):
            below: list[Node] = []
            collect(node, below, below, set())
            yield node, below
        stack.extend(node.inputs())


def namesakes(compiler: Compiler, i: int, node: Node, below: list[Node]) -> Iterator[str]:
    """The entities that are named like something the parts below give; all, where the client works
    the names out.
    """
    select = f"SELECT DISTINCT ({integer(i)} AS ?leaf) (?n1 AS ?n) WHERE {{ %s }}"
    if any(isinstance(part, (alg.Apply, alg.External)) for part in postorder(node)):
        yield select % "?n1 <pred:name> ?n2 ."
        return
    texts = sorted({v for part in postorder(node) if isinstance(part, alg.Constants) for v in part.values if isinstance(v, str)})
    if texts:
        out = Group()
        compiler.named(alg.ByName(tuple(texts)), "?n1", out)
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


# -- from rows to a snapshot -----------------------------------------------------------------------


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
        for leaf, n, s, p, o in rows:
            self.given.setdefault(int(leaf), set()).add(n)
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

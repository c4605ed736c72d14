"""Plans that the client finishes: one query for the statements and entities that the rest of the
plan is run on.

The largest parts that are patterns become `leaves`. A scan above them, whose entities only the
client will know, is gathered for all entities. Each row is (leaf, what the leaf gave, a triple
about it): statements with their qualifiers and places, entities with their names and rows, value
nodes. `sparql.gathered` makes a snapshot of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.facts import EntityKind
from condgraph.sparql.compile.compiled import Compiled, native
from condgraph.sparql.compile.entities import Compiler
from condgraph.sparql.compile.group import Group, Target
from condgraph.sparql.dialect import cut
from condgraph.sparql.layout import PRED, RDF
from condgraph.sparql.literals import integer

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


def gather(plan: Node, target: Target) -> Compiled:
    """The query that gathers what the plan is finished on."""
    branches, leaves, stated = _branches(plan, target)
    if not branches:
        # A plan of given values alone needs nothing of the graph, where no triple has this
        # predicate; it stays one query.
        return Compiled("SELECT ?leaf ?n ?s ?p ?o WHERE { ?n <pred:nothing> ?o }", "gathered", ())
    return Compiled(gathering(branches, target, stated), "gathered", tuple(leaves))


def gather_parts(plan: Node, target: Target) -> list[str]:
    """The same in a query for each part."""
    branches, _, stated = _branches(plan, target)
    return [gathering([branch], target, stated) for branch in branches]


def _branches(plan: Node, target: Target) -> tuple[list[str], list[Node], bool]:
    """The parts of the query, the leaves by their numbers, and whether the parts give memberships
    as well.
    """
    leaves: list[Node] = []
    extra: list[Node] = []
    collect(plan, leaves, extra, set())
    compiler = Compiler(target)
    everything = [*leaves, *extra]
    branches = [branch_of(compiler, i, leaf) for i, leaf in enumerate(everything)]
    for i, (node, below) in enumerate(_renamed(plan), len(everything)):
        branches.extend(namesakes(compiler, i, node, below))
    stated = any(isinstance(node, alg.Members) for node in extra_of(plan))
    if stated:
        branches.extend(memberships(compiler))
    return branches, everything, stated


def gathering(branches: Iterable[str], target: Target, stated: bool = False) -> str:
    """The query of rows (leaf, what the branch gave, a triple about it); `stated` branches give
    sources and memberships as well.

    Qualifiers are told by their names: a statement's predicates in the graph's own base. Where a
    store `names_predicates`, they are those of the schema; then entities give what they say with a
    qualifier's predicate as well, which `Gathered` leaves out.
    """
    base, about = target.names.base, [f"<{PRED}{term}>" for term in _ABOUT] + [f"<{RDF}type>"]
    own = [f"<{PRED}{term}>" for term in (*_OWN, *(_STATED if stated else ()))] + [f"<{RDF}type>"]
    lead = [f"<{PRED}{term}>" for term in (*_LEAD, *(_ENDS if stated else ()))]
    given = "SELECT DISTINCT ?leaf ?n WHERE { " + " UNION ".join(f"{{ {branch} }}" for branch in branches) + " }"
    head = "SELECT DISTINCT ?leaf ?n ?s ?p (STR(?x) AS ?o) WHERE "
    if target.dialect.names_predicates:
        keys = [target.names.predicate(key) for key in target.schema.qualifiers]
        size = target.dialect.list_length
        parts = [f"{{ ?n ?p ?x . FILTER(?p IN ({', '.join(some)})) BIND(?n AS ?s) }}" for some in cut([*own, *keys], size)]
        there = f"VALUES ?p {{ {' '.join(about)} }} ?s ?p ?x ."
        parts += [f"{{ ?n ?k ?s . FILTER(?k IN ({', '.join(some)})) {there} }}" for some in cut([*lead, *keys], size)]
        return f"{head}{{ {{ {given} }} {' UNION '.join(parts)} }}"
    # The limit is more than any graph has: Oxigraph looks up what is said of each node where it
    # expects few of them. Where a long pattern, or a list of values, makes it expect more, it reads
    # the whole store.
    first, second = (
        f'FILTER({one} IN ({", ".join(listed)}) || (STRSTARTS(STR(?n), "{base}.s/") && STRSTARTS(STR({one}), "{base}")))'
        for one, listed in (("?p", own), ("?k", lead))
    )
    return (
        f"{head}{{ {{ {given} LIMIT {_ANY} }} {{ ?n ?p ?x . {first} BIND(?n AS ?s) }} UNION "
        f"{{ ?n ?k ?s . {second} ?s ?p ?x . FILTER(?p IN ({', '.join(about)})) }} }}"
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


def memberships_of(compiler: Compiler, of: alg.Entities, most: int) -> Iterator[str]:
    """The memberships, as they were stated, that some entities are an end of: at most so many a side."""
    for end in ("member", "concept"):
        out = Group()
        m, e = compiler.variable("m"), compiler.variable("e")
        out.append(f"{m} <pred:{end}> {e} .")
        compiler.entities(of, e, out)
        yield f"SELECT DISTINCT (-1 AS ?leaf) ({m} AS ?n) WHERE {{ {out.text()} }} LIMIT {int(most)}"


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
            out.append(f"{rows.statement} {k} {v} . {_leading_to(compiler, k)} {v} <pred:name>|<pred:value> {t} .")
        else:
            e = compiler.variable("e")
            compiler.entities(leaf, e, out)
            out.append(f"{e} <pred:name> {t} .")
        out.append(f"?n1 <pred:name> {t} .")
        yield select % out.text()


def others(compiler: Compiler, i: int, of: alg.Entities, scans: Iterable[alg.Scan], most: int) -> Iterator[str]:
    """The other entities that have the name of an entity of a part, or of one that stands in its scans: the
    first `most` of each branch.

    One a name would do, but what an aggregate gives may be unbound for all that Oxigraph knows: it
    then compares each with every triple of the store (6,000 around a hub took a minute).
    """
    select = f"SELECT DISTINCT ({integer(i)} AS ?leaf) ?n WHERE {{ {{ SELECT DISTINCT ?v WHERE {{ %s }} LIMIT {int(most)} }} "
    select += f"?v <pred:name> ?t . ?n <pred:name> ?t . FILTER(?n != ?v) }} LIMIT {int(most)}"
    out = Group()
    compiler.settled(of, "?v", out)
    yield select % out.text()
    for scan in scans:
        out = Group()
        rows = compiler.facts(scan, out, whole=True)
        k = compiler.variable("k")
        out.append(f"{rows.statement} {k} ?v . {_leading_to(compiler, k)}")
        if scan.family == "attribute":
            out.append("?v <pred:name> ?held .")
        yield select % out.text()


def _leading_to(compiler: Compiler, k: str) -> str:
    """The condition that a predicate of a statement leads to an end or a qualifier."""
    ends, target = ["<pred:fact_h>", "<pred:fact_t>"], compiler.target
    keys = [target.names.predicate(key) for key in target.schema.qualifiers]
    if target.dialect.names_predicates and len(keys) < target.dialect.list_length:
        return f"FILTER({k} IN ({', '.join([*ends, *keys])}))"
    return f'FILTER({k} IN ({", ".join(ends)}) || STRSTARTS(STR({k}), "{target.names.base}"))'

"""The part of a graph that a plan rests on, fetched with one query and asked in process.

The statements that leave the filters of each scan, and the sets that the plan names, are fetched with qualifiers and sources
and make a small snapshot; on it the same plan is run by the same code as in process. That finishes the operators that are lowered
(`support`), and gives the evidence of an answer. Where a filter itself needs a function of the client, the statements are fetched
without it, which is more and not less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from condgraph.cypher import paths
from condgraph.cypher.compiler import Compiler, FactRows
from condgraph.cypher.layout import predicate_of, value_of
from condgraph.cypher.support import lowered
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.execute.run import _OPERATORS, Outcome, Run
from condgraph.engine.execute.sets import Numbers
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Value

if TYPE_CHECKING:
    from condgraph.cypher.compile import Compiled
    from condgraph.engine.stored_schema import StoredSchema

_FILTERS = (alg.Where, alg.WhereQualifier, alg.During, alg.DuringAny, alg.WhereValidity, alg.Turn)


@dataclass(frozen=True, slots=True)
class Unit:
    """Something to fetch: facts, or a set of entities, which stands for the outcome of the operators `known`.

    `compiled` is what the server runs, which is less filtered than the operator of the plan where that needs the client. Of members
    `concepts` says which memberships are fetched as well.
    """

    compiled: Node
    known: tuple[Node, ...] = ()
    concepts: alg.Entities | None = None


def units(plan: Node) -> list[Unit]:
    """What has to be fetched for a plan."""
    order = postorder(plan)
    beyond = lowered(plan)
    takers: dict[int, list[Node]] = {}
    for node in order:
        for child in node.inputs():
            takers.setdefault(id(child), []).append(node)
    found: list[Unit] = []
    for node in order:
        taken_by = takers.get(id(node), [])
        if isinstance(node, alg.Facts):
            through = [taker for taker in taken_by if isinstance(taker, _FILTERS) and taker.facts is node]
            if len(through) < len(taken_by) or node is plan:
                found.append(Unit(_relaxed(node, beyond)))
        elif isinstance(node, alg.Best):
            found.append(Unit(_relaxed(alg.Scan(node.of, (node.key,), family="attribute"), beyond)))
        elif isinstance(node, alg.Members):
            within = [taker for taker in taken_by if isinstance(taker, alg.Intersect)]
            whole: Node = within[0] if len(within) == len(taken_by) == 1 and id(within[0]) not in beyond else node
            if id(whole) not in beyond:
                found.append(Unit(whole, (node,), node.concepts))
        elif isinstance(node, (alg.Named, alg.Known, alg.Referents, alg.Namesakes, alg.Neighbour)):
            if id(node) not in beyond:
                found.append(Unit(node, (node,)))
            elif isinstance(node, alg.Neighbour):
                found.append(Unit(alg.Every((EntityKind.ROW,))))
        elif isinstance(node, alg.Every) and not (taken_by and all(_bounds(taker, node) for taker in taken_by)):
            found.append(Unit(node, (node,)))
    return found


def _bounds(taker: Node, every: alg.Every) -> bool:
    """Whether it takes no more of every entity than what statements or other sets lead to."""
    if isinstance(taker, alg.Intersect):
        return any(part is not every and not isinstance(part, alg.Every) for part in taker.parts)
    return isinstance(taker, alg.Scan) or (isinstance(taker, alg.Minus) and taker.right is every)


def _relaxed(facts: alg.Facts, beyond: set[int]) -> alg.Facts:
    """The same facts without what needs the client."""
    if beyond.isdisjoint(map(id, postorder(facts))):
        return facts
    if isinstance(facts, alg.Scan):
        return replace(facts, of=None)
    assert isinstance(facts, _FILTERS)
    inner = _relaxed(facts.facts, beyond)
    if isinstance(facts, alg.Turn):
        return replace(facts, facts=inner)
    others = [child for child in facts.inputs() if child is not facts.facts]
    if any(not beyond.isdisjoint(map(id, postorder(child))) for child in others):
        return inner
    return replace(facts, facts=inner)


def compile_witness(plan: Node, graph: str, schema: StoredSchema) -> Compiled:
    """The query that fetches what a plan rests on: rows of a unit's number and a record."""
    from condgraph.cypher.compile import Compiled

    wanted = units(plan)
    compiler = Compiler(graph, schema, [unit.compiled for unit in wanted])
    branches: list[list[str]] = []
    for number, unit in enumerate(wanted):
        if isinstance(unit.compiled, alg.Facts):
            facts = compiler.facts(unit.compiled)
            branches.append([*facts.render(), f"RETURN {number} AS unit, {_record(compiler, facts)} AS row"])
            continue
        rows = compiler.entities(unit.compiled)
        branches.append([*rows.clauses, f"RETURN {number} AS unit, {{e: {paths.described(rows.variable)}}} AS row"])
        if unit.concepts is not None:
            branches.extend(_memberships(compiler, unit))
    empty = [["UNWIND [] AS unit RETURN unit, null AS row"]]
    return Compiled(compiler.whole(branches or empty, ("unit", "row")), compiler.parameters, "witness")


def _record(compiler: Compiler, facts: FactRows) -> str:
    """A statement with all that is kept of it."""
    f, s, o = facts.fact, facts.subject, facts.thing
    q, x = compiler.name("q"), compiler.name("e")
    value = "null" if facts.family == "relation" else paths.fields(o)
    thing = "null" if facts.family == "attribute" else paths.described(o)
    if facts.family == "any":
        value, thing = f"CASE WHEN {o}:Value THEN {value} END", f"CASE WHEN {o}:Entity THEN {thing} END"
    owners = []
    if facts.family != "relation":
        owners.append(paths.owner_of_value(o))
    if facts.family != "attribute":
        owners.append(paths.owner_of_relation(f))
    qualifiers = " + ".join(
        f"COLLECT {{ MATCH {paths.qualifier(owner, q)} OPTIONAL MATCH {paths.referred(q, x)} "
        f"RETURN {paths.fields(q, 'name')[:-1]}, ref: {paths.described(x)}}} }}"
        for owner in owners
    )
    places = [f"{f}.{name}" if facts.family == "relation" else f"coalesce({f}.{name}, {o}.{name})" for name in ("sources", "rows")]
    return (
        f"{{s: {paths.described(s)}, p: type({f}), id: {f}.sid, o: {thing}, v: {value}, sources: {places[0]}, rows: {places[1]}, "
        f"q: {qualifiers}}}"
    )


def _memberships(compiler: Compiler, unit: Unit) -> list[list[str]]:
    """The memberships, as they were stated, that put entities under concepts, and the subclasses between."""
    assert unit.concepts is not None
    concepts = compiler.set_of(unit.concepts)
    members = compiler.set_of(unit.compiled)  # type: ignore[arg-type]
    e, c, d, p, m = (compiler.name(prefix) for prefix in ("e", "c", "c", "c", "m"))
    below = f"UNWIND {concepts} AS {c} MATCH ({d}:Concept)-[:SUBCLASS_OF*0..]->({c}) WITH DISTINCT {d}"
    places = f"sources: {m}.sources, rows: {m}.rows"
    ends = "a: {a}, b: {b}".format
    return [
        [
            below,
            f"MATCH ({e}:Entity)-[{m}:MEMBER_OF]->({d}) WHERE size({m}.sources) > 0 AND {e} IN {members}",
            f"RETURN -1 AS unit, {{m: {{{ends(a=paths.described(e), b=paths.described(d))}, {places}}}}} AS row",
        ],
        [
            below,
            f"MATCH ({p}:Concept)-[{m}:SUBCLASS_OF]->({d})",
            f"RETURN -1 AS unit, {{c: {{{ends(a=paths.described(p), b=paths.described(d))}, {places}}}}} AS row",
        ],
    ]


# -- reading --------------------------------------------------------------------------------------------------------------


def restore(rows: Sequence[dict[str, Any]], sources: Sequence[Source]) -> Snapshot:
    """A snapshot of what was fetched."""
    builder = Builder()
    builder.begin(Source(""))
    builder.add(_items(rows, sources))
    builder.finish()
    return Snapshot.of(*lay_out(builder))


def _items(rows: Sequence[dict[str, Any]], sources: Sequence[Source]) -> list[Item]:
    entities: dict[str, Item] = {}
    links: dict[Any, Item] = {}
    statements: dict[int, Item] = {}

    def ident(entity: dict[str, Any]) -> str:
        found: str = entity["id"]
        if found not in entities:
            one = Entity(found, entity["name"], EntityKind(entity["kind"]), entity["row"] or 0)
            entities[found] = one if entity["source"] is None else Sourced(one, ((entity["source"], one.row),))
        return found

    for record in rows:
        row = record["row"]
        if "e" in row:
            ident(row["e"])
        elif "p" in row:
            if row["id"] in statements:
                continue
            thing: Ref | Value = Ref(ident(row["o"])) if row["v"] is None else value_of(row["v"])
            raw = None if row["v"] is None else row["v"].get("raw")
            qualifiers = tuple((q["name"], value_of(q) if q["ref"] is None else Ref(ident(q["ref"]))) for q in row["q"])
            statement = Statement(ident(row["s"]), predicate_of(row["p"]), thing, qualifiers, raw=raw)
            statements[row["id"]] = Sourced(statement, tuple(zip(row["sources"], row["rows"], strict=True)))
        else:
            link = row.get("m") or row["c"]
            build = Member if "m" in row else Subclass
            key = build, ident(link["a"]), ident(link["b"])
            links[key] = Sourced(build(*key[1:]), tuple(zip(link["sources"], link["rows"], strict=True)))
    return [*sources, *entities.values(), *links.values(), *statements.values()]


class WitnessRun(Run):
    """An execution in which sets that the server gave are known."""

    __slots__ = ("_known",)

    def __init__(self, snapshot: Snapshot, plan: Node, rows: Sequence[dict[str, Any]]) -> None:
        super().__init__(snapshot)
        wanted = units(plan)
        members: dict[int, list[int]] = {}
        for record in rows:
            if "e" in record["row"]:
                members.setdefault(record["unit"], []).append(snapshot.identified(record["row"]["e"]["id"]))
        self._known: dict[int, Numbers] = {}
        for number, unit in enumerate(wanted):
            for node in unit.known:
                self._known[id(node)] = np.unique(np.array(members.get(number, []), np.int32))

    def execute(self, plan: Node, order: list[Node] | None = None) -> Outcome:
        """Run a plan; what the server gave is taken as it is."""
        self.order = order = postorder(plan) if order is None else order
        for node in order:
            known = self._known.get(id(node))
            self.results[id(node)] = _OPERATORS[type(node)](self, node) if known is None else known
        outcome: Outcome = self.results[id(plan)]
        return outcome


def run_witness(plan: Node, rows: Sequence[dict[str, Any]], sources: Sequence[Source]) -> WitnessRun:
    """The plan run on what was fetched for it."""
    run = WitnessRun(restore(rows, sources), plan, rows)
    run.execute(plan)
    return run

"""The part of a graph that a plan rests on, fetched with one query and asked in process.

The statements that leave the filters of each scan, and the sets that the plan names, are fetched with qualifiers and sources
and make a small snapshot; on it the same plan is run by the same code as in process. That finishes the operators that are lowered
(`support`), and gives the evidence of an answer. Where a filter itself needs a function of the client, the statements are fetched
without it, which is more and not less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from condgraph.cypher import paths
from condgraph.cypher.compiler import Compiler, FactRows
from condgraph.cypher.layout import predicate_of, value_of
from condgraph.cypher.support import lowered
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node
from condgraph.engine.execute.rests import Unit, WitnessRun, units
from condgraph.engine.execute.sets import Numbers
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Value

if TYPE_CHECKING:
    from condgraph.cypher.compile import Compiled
    from condgraph.engine.stored_schema import StoredSchema


def compile_witness(plan: Node, graph: str, schema: StoredSchema) -> Compiled:
    """The query that fetches what a plan rests on: rows of a unit's number and a record."""
    from condgraph.cypher.compile import Compiled

    wanted = units(plan, lowered(plan))
    compiler = Compiler(graph, schema, [unit.compiled for unit in wanted])
    branches: list[list[str]] = []
    for number, unit in enumerate(wanted):
        if isinstance(unit.compiled, alg.Facts):
            facts = compiler.facts(unit.compiled)
            branches.append([*facts.render(), f"RETURN {number} AS unit, {record(compiler, facts)} AS row"])
            continue
        rows = compiler.entities(unit.compiled)
        branches.append([*rows.clauses, f"RETURN {number} AS unit, {{e: {paths.described(rows.variable)}}} AS row"])
        if unit.concepts is not None:
            branches.extend(_memberships(compiler, unit))
    empty = [["UNWIND [] AS unit RETURN unit, null AS row"]]
    return Compiled(compiler.whole(branches or empty, ("unit", "row")), compiler.parameters, "witness")


def record(compiler: Compiler, facts: FactRows) -> str:
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


def run_witness(plan: Node, rows: Sequence[dict[str, Any]], sources: Sequence[Source]) -> WitnessRun:
    """The plan run on what was fetched for it."""
    snapshot = restore(rows, sources)
    members: dict[int, list[int]] = {}
    for record in rows:
        if "e" in record["row"]:
            members.setdefault(record["unit"], []).append(snapshot.identified(record["row"]["e"]["id"]))
    known: dict[int, Numbers] = {}
    for number, unit in enumerate(units(plan, lowered(plan))):
        for node in unit.known:
            known[id(node)] = np.unique(np.array(members.get(number, []), np.int32))
    run = WitnessRun(snapshot, known)
    run.execute(plan)
    return run

"""The parts of a graph that were searched, for answers that depend on there being no more: counts, extremes,
differences, "no", empty answers.

The plan is walked as for evidence, for operators that must be complete. They search the statements of predicates, the
members of concepts, or the entities with a name: each becomes a `SearchRecord`, an operator that counts them, on any
store and at any later time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, monotone, postorder, whole_inputs
from condgraph.engine.errors import PlanError
from condgraph.engine.execute.sets import Bag
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.engine.execute.evidence import EvidenceTrail
    from condgraph.engine.execute.run import Run

What = Literal["statements", "members", "entities", "rows"]


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """Something that was searched: the operator that returns it, and the one it started from."""

    what: What
    names: tuple[str, ...]
    direction: Literal["", "forward", "backward"]
    source: str | None
    counted: Node
    start: alg.Entities | None = None


def looks(trail: EvidenceTrail, plan: Node) -> list[SearchRecord]:
    """Return each thing that had to be searched for an answer; nothing if the evidence alone proves it."""
    run = trail.run
    if monotone(plan) and not nothing(run.results[id(plan)]):
        return []
    complete: set[int] = {id(plan)} if nothing(run.results[id(plan)]) else set()
    records: dict[tuple[Any, ...], SearchRecord] = {}
    bounded = _bounded(run.order)
    for node in reversed(run.order):
        if id(node) not in trail.demands:
            continue
        whole_ids = {id(child) for child in whole_inputs(node)}
        # A "yes" is proved by the values that satisfy the condition.
        is_complete = id(node) in complete and not (node.needs.shown and run.results[id(node)])
        complete.update(id(child) for child in node.inputs() if is_complete or id(child) in whole_ids)
        if (is_complete and id(node) not in bounded) or node.needs.graph:
            for look in _records(run, node):
                family = getattr(look.counted, "family", "")
                records.setdefault((look.what, look.names, look.direction, look.source, id(look.start), family), look)
    return [look if look.start is None else replace(look, start=_with_names(run, look.start)) for look in records.values()]


def _with_names(run: Run, start: alg.Entities) -> alg.Entities:
    """Return a set with the names that values give in place of these values: a run on what a store fetched knows only
    those entities with such a name that have statements.
    """
    if isinstance(start, alg.SameName):
        return alg.SameName(renamed) if (renamed := _with_names(run, start.of)) is not start.of else start
    if not isinstance(start, alg.Referents):
        return start
    bag, snapshot, entities = run.values(start.values), run.snapshot, run.entities(start)
    names = _texts(run, Bag(bag.scope, [part for part in bag.parts if part.kind not in ("ent", "name")]))
    if not names:
        return start
    ids, entity_names = (snapshot.texts.take(texts.take(entities)) for texts in (snapshot.entity_id, snapshot.entity_name))
    searched_names = set(names)
    other_ids = tuple(ident for ident, name in zip(ids, entity_names, strict=True) if name not in searched_names)
    return alg.Union((alg.ById(other_ids), alg.ByName(names))) if other_ids else alg.ByName(names)


def _bounded(order: list[Node]) -> set[int]:
    """Return the operators "all entities" that are restricted by statements or other sets: they were not searched."""
    unrestricted: set[int] = {id(order[-1])}
    for node in order:
        parts = node.parts if isinstance(node, alg.Intersect) else ()
        if not isinstance(node, alg.Scan) and not any(not isinstance(part, alg.AllEntities) for part in parts):
            unrestricted.update(map(id, node.inputs()))
    return {id(node) for node in order if isinstance(node, alg.AllEntities) and id(node) not in unrestricted}


def nothing(found: Any) -> bool:
    """Return whether a result is empty, or a "no"."""
    if isinstance(found, np.ndarray):
        return not len(found)
    return found is None or found is False or (hasattr(found, "__len__") and not len(found))


def _records(run: Run, node: Node) -> Iterator[SearchRecord]:
    """Yield what an operator reads from the graph, apart from its inputs (`Facets.reads`)."""
    if node.facets.reads == "nothing":
        return iter(())
    return _of_rows(node) if isinstance(node, alg.Solutions) else RECORDERS[type(node)](run, node)


def _of_rows(node: Any) -> Iterator[SearchRecord]:
    """Yield the statements and members that a pattern, or a path, searches."""
    if isinstance(node, alg.Path):
        for hop in node.hops:
            scan = alg.Scan(None, hop.predicates, family="relation")
            yield SearchRecord(
                "statements", hop.predicates or (), "backward" if hop.direction == "backward" else "forward", None, scan
            )
        return
    for part in node.statements:
        predicates = part.predicate if isinstance(part.predicate, tuple) else None
        start = part.subject if isinstance(part.subject, alg.Entities) else None
        yield SearchRecord("statements", predicates or (), "forward", None, alg.Scan(start, predicates, family=part.family), start)
    for part in node.memberships:
        if isinstance(part.concept, alg.Entities):
            names = part.concept.names if isinstance(part.concept, alg.ByName) else ()
            yield SearchRecord("members", names, "", None, alg.Members(part.concept))


def _scan(run: Run, node: alg.Scan) -> Iterator[SearchRecord]:
    everywhere = node.of is None or node.of == alg.AllEntities()
    direction: Literal["forward", "backward"] = "backward" if node.anchor == "object" else "forward"
    yield SearchRecord("statements", node.predicates or (), direction, node.source, node, None if everywhere else node.of)


def _extreme_records(run: Run, node: alg.ArgExtreme) -> Iterator[SearchRecord]:
    scan = alg.Scan(node.of, (node.key,), family="attribute")
    yield SearchRecord("statements", (node.key,), "forward", None, scan, None if node.of == alg.AllEntities() else node.of)


def _members(run: Run, node: alg.Members) -> Iterator[SearchRecord]:
    concepts = run.entities(node.concepts)
    kinds = run.snapshot.entity_kind[concepts] == EntityKind.CONCEPT
    names = node.concepts.names if isinstance(node.concepts, alg.ByName) else _sorted_names(run, concepts[kinds])
    yield SearchRecord("members", names, "", None, node)


def _rows(run: Run, node: alg.Neighbour) -> Iterator[SearchRecord]:
    sources = {part.source for part in postorder(node) if isinstance(part, (alg.Scan, alg.AllEntities)) and part.source}
    listed: list[str | None] = [*sorted(sources)] or [None]
    for source in listed:
        yield SearchRecord("rows", (), "", source, alg.AllEntities((EntityKind.ROW,), source))


def _every(run: Run, node: alg.AllEntities) -> Iterator[SearchRecord]:
    yield SearchRecord("rows" if node.kinds == (EntityKind.ROW,) else "entities", (), "", node.source, node)


def _name_records(names: tuple[str, ...]) -> Iterator[SearchRecord]:
    if names:
        yield SearchRecord("entities", names, "", None, alg.ByName(names))


#: Every operator that reads the graph; a test compares it with the algebra. By id nothing is searched: an id has at most
#: one entity.
RECORDERS: Final[dict[type[Node], Callable[[Run, Any], Iterator[SearchRecord]]]] = {
    alg.Scan: _scan,
    alg.ArgExtreme: _extreme_records,
    alg.Members: _members,
    alg.Neighbour: _rows,
    alg.AllEntities: _every,
    alg.ById: lambda run, node: iter(()),
    alg.ByName: lambda run, node: iter((SearchRecord("entities", node.names, "", None, node),)),
    alg.SameName: lambda run, node: _name_records(_sorted_names(run, run.entities(node.of))),
    alg.Referents: lambda run, node: _name_records(_texts(run, run.values(node.values))),
}


def _sorted_names(run: Run, entities: Any) -> tuple[str, ...]:
    return tuple(sorted(set(run.snapshot.texts.take(run.snapshot.entity_name.take(entities)))))


def _texts(run: Run, bag: Bag) -> tuple[str, ...]:
    """Return the texts of a bag, which may be names."""
    cells = bag.cells()
    refs = np.unique(cells["ref"][cells["kind"] == Kind.TEXT]).tolist()
    return tuple(sorted({run.snapshot.texts[ref] if ref >= 0 else run.scope.given_text(ref) for ref in refs if ref != -1}))


def countable(node: Node, beyond: Callable[[Node], bool], known: Callable[[alg.Entities], Sequence[str]]) -> Node:
    """Return an operator in a form that a store can count: an operator for which `beyond` holds is replaced by the
    ids that `known` returns. Raise `PlanError` for statements that only the client can select.
    """
    if not beyond(node):
        return node
    if isinstance(node, alg.Scan) and node.of is not None:
        return replace(node, of=alg.ById(tuple(known(node.of))))
    if isinstance(node, alg.Members):
        return alg.Members(alg.ById(tuple(known(node.concepts))))
    if not isinstance(node, alg.Entities):
        raise PlanError(f"{type(node).__name__} is worked out by the client")
    return alg.ById(tuple(known(node)))

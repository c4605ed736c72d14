"""Operators that give sets of entities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.errors import numbered
from condgraph.engine.execute.sets import EMPTY, Numbers, distinct, intersect, minus, union
from condgraph.engine.facts import EntityKind
from condgraph.engine.pieces import watched
from condgraph.engine.snapshot.snapshot import ranges
from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run
    from condgraph.engine.snapshot.snapshot import Snapshot


def every(run: Run, node: alg.AllEntities) -> Numbers:
    """All entities of the kinds; of one source those that are rows of it or subject or object of
    its statements, or its own rows.
    """
    snapshot = run.snapshot
    found = snapshot.every(node.kinds)
    if node.source is None:
        return found
    source = run.source(node.source)
    keys = snapshot.arrays.get("row.key")
    first, last = keys.searchsorted((source << 32, (source + 1) << 32))
    parts = [snapshot.arrays.get("row.entity")[first:last]]
    if not node.own:
        statements = snapshot.sourced(source)
        relations = statements[: int(np.searchsorted(statements, snapshot.relations))]
        parts += [snapshot.subjects(statements), snapshot.relation_object[relations]]
    return intersect(distinct(np.concatenate(parts), snapshot.entities), found, snapshot.entities)


def known(run: Run, node: alg.ById) -> Numbers:
    """Entities by id; ids that the graph does not have are left out (lowering has looked)."""
    found = {number for ident in node.ids if (number := run.snapshot.identified(ident)) >= 0}
    return np.array(sorted(found), np.int32)


def named(run: Run, node: alg.ByName) -> Numbers:
    """Entities and concepts by exact name."""
    if len(node.names) == 1:
        return run.snapshot.named(node.names[0])
    return union([run.snapshot.named(name) for name in node.names], run.snapshot.entities)


def members(run: Run, node: alg.Members) -> Numbers:
    """The entities in any of the concepts."""
    return run.snapshot.members(_concepts(run, node))


def _concepts(run: Run, node: alg.Members) -> tuple[int, ...]:
    concepts = node.concepts
    if isinstance(concepts, alg.ByName) and len(concepts.names) == 1:
        return run.snapshot.concepts_named(concepts.names[0])
    found = run.entities(concepts)
    return tuple(found[run.snapshot.entity_kind[found] == EntityKind.CONCEPT].tolist())


def union_of(run: Run, node: alg.Union) -> Numbers:
    """Entities in any part."""
    return union([run.entities(part) for part in node.parts], run.snapshot.entities)


def intersect_of(run: Run, node: alg.Intersect) -> Numbers:
    """Entities in all parts, the smallest first; concepts by their masks."""
    # A program may name one set a thousand times.
    parts = {id(part): part for part in map(run.entities, node.parts)}
    found, *others = sorted(parts.values(), key=len)
    for other in watched(others, 64):
        found = found[run.among(found, other)]
    return found


def minus_of(run: Run, node: alg.Minus) -> Numbers:
    """Entities of the left that are not in the right."""
    return minus(run.entities(node.left), run.entities(node.right), run.snapshot.entities)


def neighbour(run: Run, node: alg.Neighbour) -> Numbers:
    """Rows at a distance in the order of their source; entities that are no rows have none, and are
    counted in a warning.
    """
    snapshot = run.snapshot
    found = run.entities(node.of)
    places, rows = snapshot.arrays.get("ent.source"), snapshot.arrays.get("ent.row")
    keys, entities = snapshot.arrays.get("row.key"), snapshot.arrays.get("row.entity")
    in_table = found[places[found] >= 0] if len(places) else EMPTY
    if len(in_table) < len(found):
        others = numbered(len(found) - len(in_table), "entity is no table row and has", "entities are no table rows and have")
        run.warn(f"{others} no neighbours")
    if not len(in_table):
        return EMPTY
    place: Any = places[in_table].astype(np.int64)
    at = np.searchsorted(keys, place << 32 | rows[in_table]) + node.distance
    inside = (at >= 0) & (at < len(keys))
    at, place = at[inside], place[inside]
    at = at[keys[at] >> 32 == place]
    return distinct(entities[at], snapshot.entities)


def reached(run: Run, node: alg.Reached) -> Numbers:
    """The distinct ends of the facts."""
    return run.facts(node.facts).ends()


def holders(run: Run, node: alg.SubjectsOf) -> Numbers:
    """The subjects of the carriers."""
    snapshot = run.snapshot
    parts = []
    for part in run.values(node.values).parts:
        if part.kind in ("name", "row"):
            parts.append(distinct(part.carriers, snapshot.entities))
        elif part.kind != "given":
            parts.append(distinct(snapshot.subjects(part.carriers), snapshot.entities))
    return union(parts, snapshot.entities)


def named_runs(snapshot: Snapshot, names: Numbers) -> Numbers:
    """The entities of these names, given as sorted numbers of texts: entities are numbered by name,
    so each name is a run.
    """
    first = snapshot.entity_name.searchsorted(names)
    last = snapshot.entity_name.searchsorted(names, side="right")
    return ranges(first, last).astype(np.int32)


def referents(run: Run, node: alg.Referents) -> Numbers:
    """The entities the values are, or are the names of; other values are counted in a warning."""
    snapshot = run.snapshot
    parts = []
    other = 0
    for part in run.values(node.values).parts:
        if part.kind == "ent":
            parts.append(distinct(part.ids.astype(np.int32), snapshot.entities))
        elif part.kind == "name":
            parts.append(distinct(part.carriers, snapshot.entities))
    rest = [part for part in run.values(node.values).parts if part.kind not in ("ent", "name")]
    for part in rest:
        cells = run.values(node.values).part_cells(part)
        entity = cells["kind"] == Kind.ENTITY
        parts.append(distinct(cells["ref"][entity].astype(np.int32), snapshot.entities))
        texts = cells["ref"][cells["kind"] == Kind.TEXT]
        # Texts that the graph does not have are no names in it.
        texts = distinct(texts[texts >= 0].astype(np.int32), len(snapshot.texts))
        parts.append(named_runs(snapshot, texts))
        other += int(((cells["kind"] != Kind.ENTITY) & (cells["kind"] != Kind.TEXT)).sum())
    if other:
        run.warn(numbered(other, "value is no entity, and no name of one", "values are no entities, and no names of any"))
    return union(parts, snapshot.entities)

"""What stands around some entities, as operators: those entities, and the statements that have one
of them at an end; and the entities that stand in these.
"""

from __future__ import annotations

from collections.abc import Sequence

from condgraph.engine.algebra.entities import ById, ByName, Reached, Referents, Union
from condgraph.engine.algebra.facts import Scan
from condgraph.engine.algebra.sorts import Entities
from condgraph.engine.algebra.values import Qualifiers


def around_of(ids: Sequence[str], names: Sequence[str], *, values: bool) -> tuple[Entities, tuple[Scan, ...]]:
    """The entities of these ids and names, and scans of their statements: with `values`, relations
    and attributes from them; and relations to them.
    """
    parts: list[Entities] = []
    if ids:
        parts.append(ById(tuple(ids)))
    if names:
        parts.append(ByName(tuple(names)))
    of: Entities = parts[0] if len(parts) == 1 else Union(tuple(parts))
    scans = [Scan(of, None, reach="object", family="relation"), Scan(of, None, anchor="object", reach="subject", family="relation")]
    if values:
        scans.append(Scan(of, None, family="attribute"))
    return of, tuple(scans)


def named_of(of: Entities, scans: Sequence[Scan], *, qualified: bool) -> list[Entities]:
    """The entities that stand in scans of `around_of`: those they begin at, their other ends, and
    those that are qualifiers, where a graph has such (`qualified`).
    """
    parts: list[Entities] = [of, *(Reached(scan) for scan in scans if scan.family == "relation")]
    return [*parts, *(Referents(Qualifiers(scan, None)) for scan in scans)] if qualified else parts

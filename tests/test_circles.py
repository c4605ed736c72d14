"""Circles of imports, those for types included: those that are left are known by name, and why
stands in `docs/explanation/decisions.md`. A new one fails, and so does one that is gone and still
named here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pytest

#: The modules of each circle, below `condgraph`.
KNOWN: Final[tuple[frozenset[str], ...]] = (
    # A deadline that passed is an error, and an error that names what is near keeps to the deadline.
    frozenset({"engine.bounds", "engine.errors"}),
    # A snapshot is built from the one before it, and has a schema that reads it.
    frozenset(
        {
            "engine.origins",
            "engine.schema",
            *(f"engine.snapshot.{name}" for name in ("build", "layout", "readback", "readings", "snapshot")),
        }
    ),
    # Stores, their answers and their patterns.
    frozenset({"cypher.answer", "cypher.queries"}),
    frozenset({"cypher.patterns.match", "cypher.store"}),
    *(frozenset({f"{kind}.native.patterns", f"{kind}.native.store"}) for kind in ("cypher", "sparql")),
)


def circles(imports: Mapping[str, Sequence[str]]) -> list[frozenset[str]]:
    """The strongly connected components of more than one module (Tarjan's algorithm, without
    recursion).
    """
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    open_: set[str] = set()
    found: list[frozenset[str]] = []
    for start in imports:
        if start in number:
            continue
        work = [(start, iter(imports[start]))]
        number[start] = lowest[start] = len(number)
        path.append(start)
        open_.add(start)
        while work:
            module, rest = work[-1]
            for other in rest:
                if other not in number:
                    number[other] = lowest[other] = len(number)
                    path.append(other)
                    open_.add(other)
                    work.append((other, iter(imports[other])))
                    break
                if other in open_:
                    lowest[module] = min(lowest[module], number[other])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    lowest[above] = min(lowest[above], lowest[module])
                if lowest[module] == number[module]:
                    at = path.index(module)
                    members, path = path[at:], path[:at]
                    open_.difference_update(members)
                    if len(members) > 1:
                        found.append(frozenset(members))
    return found


def test_circles_are_found() -> None:
    assert circles({"a": ["b"], "b": ["c"], "c": []}) == []
    assert circles({"a": ["b"], "b": ["a", "c"], "c": ["d"], "d": ["e"], "e": ["c"]}) == [frozenset("cde"), frozenset("ab")]


def test_no_circle_but_those_that_are_known() -> None:
    grimp = pytest.importorskip("grimp")
    graph = grimp.build_graph("condgraph", exclude_type_checking_imports=False)
    imports = {module: sorted(graph.find_modules_directly_imported_by(module)) for module in sorted(graph.modules)}
    found = {frozenset(name.removeprefix("condgraph.") for name in circle) for circle in circles(imports)}
    assert found == set(KNOWN)

"""A program on its way to the server: its query, and the names of entities that the query looks up
as well.

A name that the graph does not have is an error. Most programs give nothing where a name is not
there: an answer that is not empty says that it is. Where a program gives something all the same (a
union, a superlative among two), its one query looks the names up as well, which makes planning it a
third slower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Final

from condgraph.cypher.compile.compiled import Compiled
from condgraph.cypher.compile.plan import compile_plan
from condgraph.cypher.layout.base import Layout
from condgraph.cypher.layout.paths import CONDGRAPH
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, carried, fields_of, postorder
from condgraph.engine.errors import ParseError, PlanError, UnsupportedError
from condgraph.engine.lowered import Lowered

if TYPE_CHECKING:
    from condgraph.engine.store import Request
    from condgraph.engine.stored_schema import StoredSchema
    from condgraph.names.remote import LinkingSchema

_NOTHING: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Asked:
    """A program, lowered, with its query; `names` are the names of entities that were not looked up
    before.
    """

    lowered: Lowered
    compiled: Compiled
    names: Sequence[str]
    _again: Callable[[], Asked]

    def check(self, missing: Sequence[str], named: LinkingSchema) -> Asked | None:
        """Names that the graph does not have are an error, as in process: lowering says where, and
        what is near to them. Where they mean something else (the key of a row), the program with that.
        """
        if not missing:
            return None
        named.forget(missing)
        return self._again()


def ask(
    request: Request, graph: str, schema: StoredSchema, named: Callable[[], LinkingSchema], layout: Layout = CONDGRAPH
) -> Asked:
    """A program as its query. KoPL learns from the query which names of entities there are. Other
    languages look names up before, in the schema that `named` gives; so does a program with a
    mistake, so that the first of its errors is reported.
    """

    def prepared(known: StoredSchema, *, looks_up: bool) -> Asked:
        lowered = request.lowered(known)
        every, some = names_of(lowered, schema) if looks_up else ([], [])
        compiled = compile_plan(lowered.plan, graph, schema, some, layout=layout)
        if remarks := layout.remarks(lowered.plan):
            lowered = replace(lowered, warnings=[*lowered.warnings, *remarks])
        return Asked(lowered, compiled, every, lambda: prepared(named(), looks_up=False))

    if request.language == "kopl" and request.options.get("on_unknown", "error") == "error":
        with suppress(ParseError, PlanError, UnsupportedError):
            return prepared(schema, looks_up=True)
    return prepared(named(), looks_up=False)


def names_of(lowered: Lowered, schema: StoredSchema) -> tuple[list[str], list[str]]:
    """The names of entities in a program that may not be in the graph, sorted: all of them, and
    those that its query looks up.

    The others are needed for any answer that is more than nothing, 0 or false.
    """
    nodes = postorder(lowered.plan)
    # A step may be gone from the plan, where it makes no difference to the answer.
    steps = [node for _, node in lowered.steps]
    every = {name for node in (*steps, *nodes) if isinstance(node, alg.ByName) for name in node.names}
    every = {name for name in every if not schema.has_concept(name)}
    return sorted(every), sorted(every - _needed(nodes)) if every else []


def _needed(nodes: list[Node]) -> frozenset[str]:
    """The names without which the last of the operators (inputs come first) gives nothing."""
    needs: dict[int, frozenset[str]] = {}
    for node in nodes:
        strict = fields_of(node, node.facets.strict)
        if isinstance(node, alg.ByName):
            found = frozenset(node.names) if len(node.names) == 1 else _NOTHING
        elif strict:
            found = _NOTHING.union(*(needs[id(one)] for one in strict))
            if isinstance(node, alg.Where) and isinstance(node.condition, alg.Among):
                found |= needs[id(node.condition.entities)]
        else:
            # One of several bags or sets is enough.
            found = reduce(frozenset.intersection, [needs[id(one)] for one in carried(node)] or [_NOTHING])
        needs[id(node)] = found
    return needs[id(nodes[-1])]

"""Options of a search for a pattern, validated once for every store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from condgraph.engine.errors import OptionError, UnsupportedError, nearest
from condgraph.engine.facts import Entity, Ref

if TYPE_CHECKING:
    from condgraph.engine.period import Period
    from condgraph.languages.pattern.pattern import Pattern

#: How many solutions (or groups of them) are returned; the paper's k.
K: Final = 3
#: The most solutions returned with `k=None`.
MAX_SOLUTIONS: Final = 100_000
#: The cost, in millionths, of an edge against the pattern's direction, if direction is neither required nor ignored.
AGAINST: Final = 50_000
#: The cost of an edge that stands for a path of two, and of one left out; and the distance of the best subgraph from which on
#: leaving out an edge is tried.
STRETCHED: Final = 250_000
LEFT_OUT: Final = 1_000_000
NEAR: Final = 1_000_000
#: The limits that `fast=True` sets: the paper's values for MetaQA, and its number of types.
FAST_NODES: Final = 16
FAST_RELATIONS: Final = 16
FAST_TYPES: Final = 16

#: An entity that a node must not be: its name (all entities of that name), a `Ref` with its id, or an `Entity`.
Excluded: TypeAlias = str | Ref | Entity


@dataclass(frozen=True, slots=True)
class MatchOptions:
    """Options of a search; `options_for` makes them and checks them against the pattern.

    `k` is how many solutions, or groups of them, are returned; None means all at the best distance. `group_by` are
    numbers of nodes: solutions with the same nodes there form a group, of which the best is returned. `distinct_from`
    lists, by number of a node, what it must not be. `k_nodes`, `k_relations` and `k_types` limit the candidates of a
    known node, a known relation and a hint to the nearest; None means all. Edges that meet take different statements,
    while nodes may be the same; `injective` also keeps nodes different (Definition 1), `free` requires neither. If
    `directed` is None, an edge against the pattern costs `AGAINST`. With `stretch`, an edge may become a path of two
    edges (`STRETCHED`); with `leave_out`, a named edge may be left out if nothing is near (`LEFT_OUT`).
    """

    k: int | None = K
    injective: bool = False
    free: bool = False
    induced: bool = False
    directed: bool | None = None
    group_by: tuple[int, ...] = ()
    distinct_from: tuple[tuple[int, tuple[Excluded, ...]], ...] = ()
    k_nodes: int | None = None
    k_relations: int | None = None
    k_types: int | None = None
    stretch: bool = False
    leave_out: bool = False

    @property
    def approximate(self) -> bool:
        """Whether candidates are limited, so that nearer subgraphs may be missed."""
        return self.k_nodes is not None or self.k_relations is not None or self.k_types is not None


def check_timed(period: Period | None, chosen: MatchOptions, place: str) -> None:
    """Raise `UnsupportedError` for a search of a period on a server that limits candidates to names and types.

    Only those of the period should count, but the server has those of all times.
    """
    limits = {name: getattr(chosen, name) for name in ("k_nodes", "k_relations", "k_types", "leave_out")}
    limiting = [name for name, value in limits.items() if value]
    if period is not None and limiting:
        raise UnsupportedError(
            f"a search of {period.interval} on {place}",
            [f"{name}=" for name in limiting],
            hint="search in process, graph.at(...).snapshot().match(...), or leave it out",
        )


#: The options of `match` besides the pattern.
NAMES: Final = (
    "k", "injective", "free", "induced", "directed", "group_by", "distinct_from", "k_nodes", "k_relations", "k_types", "fast",
    "stretch", "leave_out",
)  # fmt: skip


def options_for(pattern: Pattern, **given: Any) -> MatchOptions:
    """Return options for a pattern; raise `OptionError` for a meaningless option, `PlanError` for an unknown node."""
    for name in given:
        if name not in NAMES:
            raise OptionError(
                f"match takes no option {name!r}", candidates=nearest(name, NAMES), hint=f"it takes: {', '.join(NAMES)}"
            )
    k = given.get("k", K)
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
        raise OptionError(f"k is how many solutions to give, from 1, or None for all of the best, not {k!r}")
    limits = {name: given.get(name) for name in ("k_nodes", "k_relations", "k_types")}
    for name, limit in limits.items():
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise OptionError(f"{name} is how many candidates are looked at, from 1, or None for all, not {limit!r}")
    truths = {name: given.get(name, False) for name in ("injective", "free", "induced", "fast", "stretch", "leave_out")}
    for name, truth in truths.items():
        if not isinstance(truth, bool):
            raise OptionError(f"{name} is True or False, not {truth!r}")
    directed = given.get("directed")
    if directed is not None and not isinstance(directed, bool):
        raise OptionError(f"directed is True, False, or None for a small term, not {directed!r}")
    if truths["injective"] and truths["free"]:
        raise OptionError("injective=True keeps nodes apart and free=True nothing: give one of them")
    if truths.pop("fast"):
        fast = {"k_nodes": FAST_NODES, "k_relations": FAST_RELATIONS, "k_types": FAST_TYPES}
        limits = {name: fast[name] if limit is None else limit for name, limit in limits.items()}
    return MatchOptions(
        k=k,
        injective=truths["injective"],
        free=truths["free"],
        induced=truths["induced"],
        directed=directed,
        stretch=truths["stretch"],
        leave_out=truths["leave_out"],
        **limits,
        group_by=_groups(pattern, given.get("group_by")),
        distinct_from=_distinct(pattern, given.get("distinct_from")),
    )


def _groups(pattern: Pattern, given: Any) -> tuple[int, ...]:
    if given is None:
        return ()
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise OptionError(f"group_by is the name of a node of the pattern, or several, not {given!r}")
    return tuple(dict.fromkeys(_node(pattern, name, "group_by") for name in names))


def _node(pattern: Pattern, name: str, option: str) -> int:
    """Return the number of a node that is not a value; raise `OptionError` for one that is."""
    number = pattern.number(name)
    if number >= pattern.things:
        names = ", ".join(node.name for node in pattern.nodes[: pattern.things])
        raise OptionError(
            f"{option} takes nodes, and {name!r} is a value, a condition on what it is of", hint=f"nodes are: {names}"
        )
    return number


def _distinct(pattern: Pattern, given: Any) -> tuple[tuple[int, tuple[Excluded, ...]], ...]:
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        # Without a node, it applies to every unknown one.
        excluded = _excluded(given)
        return tuple((number, excluded) for number, node in enumerate(pattern.nodes) if not node.known)
    by_node: dict[int, tuple[Excluded, ...]] = {}
    for name, value in given.items():
        number = _node(pattern, name, "distinct_from")
        by_node[number] = by_node.get(number, ()) + _excluded(value)
    return tuple(sorted(by_node.items()))


def _excluded(given: Any) -> tuple[Excluded, ...]:
    items = [given] if isinstance(given, str | Ref | Entity) else given
    if not isinstance(items, Sequence | set | frozenset) or not all(isinstance(item, str | Ref | Entity) for item in items):
        raise OptionError(
            f"distinct_from is a name, an Entity or a Ref, or several, or these by node, not {given!r}",
            hint="distinct_from={'film 1': 'Kill Bill'} keeps one node from being that, distinct_from='Kill Bill' every unknown",
        )
    return tuple(items)

"""Attributes of other people's databases: which properties of which labels a predicate stands for,
and the clauses that read them.

A property of one type is asked as it is, one query a label. One that has lists, that is read from
texts, or a predicate that stands for several properties is read first and tested then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from condgraph.cypher.layout.base import Bound, Direct, Match, Wanted, Writing
from condgraph.cypher.layout.schema import quote
from condgraph.cypher.native.cells import Held, direct_of, likeness, together
from condgraph.cypher.native.expressions import each
from condgraph.cypher.native.identity import node_of, within_labels
from condgraph.cypher.native.ids import foreign
from condgraph.cypher.native.kinds import is_list
from condgraph.cypher.native.mapping import Mapping, Property

#: Queries that stand one after the other, of a label or a property each. Of more the server's planner takes
#: seconds: then labels that no index tells apart are looked through together, and the keys of each node.
MOST_BRANCHES: Final = 8


@dataclass(frozen=True, slots=True)
class Holding:
    """A property that a predicate stands for, on the nodes of some labels (`everywhere`: of all), of
    which some are known to have no index of it.
    """

    predicate: str
    held: Property
    labels: tuple[str, ...]
    everywhere: bool
    unindexed: frozenset[str]

    def value(self, e: str) -> str:
        """The property."""
        return f"{e}.{quote(self.held.key)}"

    def there(self, e: str) -> str:
        """A condition: a node has it."""
        return f"{self.value(e)} IS NOT NULL"

    @property
    def lists(self) -> bool:
        """Whether it can have several values."""
        return any(is_list(kind) for kind, _ in self.held.types)

    @property
    def plain(self) -> bool:
        """Whether it is one value, which is what it is."""
        return not self.lists and self.held.reading == "itself"


class Holdings:
    """The attributes of one mapping."""

    __slots__ = ("_all", "_by_predicate")

    def __init__(self, mapping: Mapping) -> None:
        found: dict[tuple[str, str, str, str | None], list[tuple[str, Property]]] = {}
        for node in mapping.nodes:
            for one in filter(lambda one: one.key not in node.hidden, node.properties):
                found.setdefault((one.predicate, one.key, one.reading, one.format), []).append((node.label, one))
        every = {node.label for node in mapping.nodes}
        self._by_predicate: dict[str, list[Holding]] = {}
        for (predicate, *_), places in found.items():
            labels = tuple(dict.fromkeys(label for label, _ in places))
            unindexed = frozenset(labels) - {label for label, one in places if not one.unindexed}
            everywhere = not mapping.unlabelled and every <= set(labels)
            holding = Holding(predicate, together(one for _, one in places), labels, everywhere, unindexed)
            self._by_predicate.setdefault(predicate, []).append(holding)
        self._all = [one for several in self._by_predicate.values() for one in several]

    def of(self, predicates: Sequence[str] | None) -> list[Holding]:
        """The properties of some predicates, or of all."""
        if predicates is None:
            return self._all
        return [one for name in dict.fromkeys(predicates) for one in self._by_predicate.get(name, ())]

    def direct(self, e: str, predicate: str, labels: Collection[str]) -> Direct | None:
        """A predicate that is one property, of one plain type; of nodes that have one of some labels."""
        found = self.of((predicate,))
        if len(found) != 1:
            return None
        (one,) = found
        sure = one.everywhere or (labels and set(labels) <= set(one.labels))
        value = one.value(e) if sure else f"CASE WHEN {within_labels(e, one.labels)} THEN {one.value(e)} END"
        return direct_of(value, one.held)

    def match(self, writing: Writing, wanted: Wanted, labels_of: Callable[[Collection[str]], list[str]]) -> Match:
        """What gives the statements of a scan of attributes; `labels_of` says the labels of concepts."""
        e, v, f = wanted.anchor, wanted.other, wanted.fact
        found = self.of(wanted.predicates)
        if len(found) != 1 or not found[0].plain:
            return self._read_first(writing, wanted)
        (one,) = found
        cell = Held(one.value(e), one.held)
        fact = _fact(e, writing.parameter(one.predicate), one.value(e))
        after = [f"WITH *, {cell.whole} AS {v}, {fact} AS {f}"]
        if wanted.bound:
            labels = [] if one.everywhere else [within_labels(e, one.labels)]
            return Match(f"({e})", [one.there(e), *labels, *wanted.conditions], cell, after=after)

        def branches(concepts: Collection[str] | None) -> list[tuple[str, str]]:
            own = "" if one.everywhere else within_labels(e, one.labels)
            labels = one.labels if concepts is None else labels_of(concepts) or one.labels
            return [
                (pattern, " AND ".join(filter(None, (test, "" if set(some) <= set(one.labels) else own))))
                for some, pattern, test in apart(e, labels, one.unindexed)
            ]

        return Match(None, [one.there(e), *wanted.conditions], cell, after=after, branches=branches, kept=(e,))

    def _read_first(self, writing: Writing, wanted: Wanted) -> Match:
        e, v, f = wanted.anchor, wanted.other, wanted.fact
        if wanted.bound or wanted.predicates is None:
            start = [] if wanted.bound else [f"MATCH ({e}) WHERE {foreign(e)}"]
            queries = [f"{text} RETURN {v}, {f}" for text in self.queries(writing, e, v, f, wanted.predicates)]
            nothing = f"UNWIND [] AS {v} RETURN {v}, null AS {f}"
            text = "\nUNION ALL\n".join(queries) or nothing
            return Match(None, wanted.conditions, Bound(v), before=[*start, f"CALL ({e}) {{\n{text}\n}}"])
        found = self.of(wanted.predicates)
        return Match(None, wanted.conditions, Bound(v), before=[self._whole(writing, e, v, f, found)])

    def _whole(self, writing: Writing, e: str, v: str, f: str, some: Sequence[Holding]) -> str:
        """All values of some properties, label by label, or of more than a few node by node."""
        nothing = f"UNWIND [] AS {e} RETURN {e}, null AS {v}, null AS {f}"
        if sum(len(one.labels) for one in some) <= MOST_BRANCHES:
            queries = []
            for one in some:
                for _, pattern, own in apart(e, one.labels):
                    where = " AND ".join(filter(None, (own, one.there(e))))
                    queries.append(f"MATCH {pattern} WHERE {where} {self._read(writing, one, e, v, f)} RETURN {e}, {v}, {f}")
            text = "\nUNION ALL\n".join(queries) or nothing
        else:
            queries = [f"{text} RETURN {v}, {f}" for text in self._by_keys(writing, some, e, v, f)]
            each_node = "\nUNION ALL\n".join(queries)
            text = f"{self._nodes(e, some)} CALL ({e}) {{\n{each_node}\n}} RETURN {e}, {v}, {f}"
        return f"CALL () {{\n{text}\n}}"

    def _nodes(self, e: str, some: Sequence[Holding]) -> str:
        """A MATCH of the nodes that may have some properties."""
        labels = dict.fromkeys(label for one in some for label in one.labels)
        if "" in labels or any(one.everywhere for one in some):
            return f"MATCH ({e}) WHERE {foreign(e)}"
        return f"MATCH ({e}:{'|'.join(map(quote, labels))})"

    def whole(self, writing: Writing, e: str, v: str, f: str, predicates: Sequence[str] | None) -> str | None:
        """Clauses that leave all values of some predicates, or of all; None where there are none."""
        some = self.of(predicates)
        return self._whole(writing, e, v, f, some) if some else None

    def with_text(self, writing: Writing, e: str, text: str) -> list[str]:
        """Queries that find the nodes one of whose values is a text: those that an index answers, and
        one of all others.
        """
        plain = [one for one in self._all if one.plain and {kind for kind, _ in one.held.types} == {"STRING"}]
        plain = [one for one in plain if not one.held.untidy]
        found = [
            f"MATCH {node_of(e, label)} WHERE {one.value(e)} = {text} RETURN {e}"
            for one in plain
            for label in one.labels
            if label not in one.unindexed
        ]
        scanned = [one for one in plain if one.unindexed]
        if scanned:
            known = f"any(a IN coalesce({writing.parameter(_keyed(scanned))}[k], []) WHERE {_has_labels(e, 'a', scanned)})"
            same = f"any(k IN keys({e}) WHERE {e}[k] = {text} AND {known})"
            found.append(f"{self._nodes(e, scanned)} WITH {e} WHERE {same} RETURN {e}")
        read = [one for one in self._all if one not in plain]
        if read:
            v, f = writing.name("v"), writing.name("f")
            found.append(f"{self._whole(writing, e, v, f, read)} WITH {e}, {v} WHERE {Bound(v).key} = {text} RETURN {e}")
        return found

    def queries(self, writing: Writing, e: str, v: str, f: str, predicates: Sequence[str] | None) -> list[str]:
        """Queries that go on from a node and bind values `v` and statements `f`; a RETURN follows."""
        some = self.of(predicates)
        if predicates is None or len(some) > MOST_BRANCHES:
            return self._by_keys(writing, some, e, v, f)
        return [
            f"WITH {e} WHERE {' AND '.join([one.there(e), *([] if one.everywhere else [within_labels(e, one.labels)])])} "
            f"{self._read(writing, one, e, v, f)}"
            for one in some
        ]

    def _by_keys(self, writing: Writing, some: Sequence[Holding], e: str, v: str, f: str) -> list[str]:
        """The same by the keys of the node, a query for properties that are read alike."""
        alike: dict[Any, list[Holding]] = {}
        for one in some:
            alike.setdefault(likeness(one.held), []).append(one)
        found = []
        for several in alike.values():
            k, a = writing.name("k"), writing.name("a")
            found.append(
                f"WITH {e} UNWIND keys({e}) AS {k} UNWIND {writing.parameter(_keyed(several))}[{k}] AS {a} "
                f"WITH {e}, {a} WHERE {_has_labels(e, a, several)} "
                + _each(writing, together(one.held for one in several), f"{e}[{a}[0]]", e, f"{a}[1]", v, f)
            )
        return found

    def _read(self, writing: Writing, one: Holding, e: str, v: str, f: str) -> str:
        return _each(writing, one.held, one.value(e), e, writing.parameter(one.predicate), v, f)


def _keyed(some: Sequence[Holding]) -> dict[str, list[list[Any]]]:
    """By the key of a property its key, what its predicate is called, and the labels of the nodes (none: of
    any) that have it.
    """
    found: dict[str, list[list[Any]]] = {}
    for one in some:
        found.setdefault(one.held.key, []).append([one.held.key, one.predicate, None if one.everywhere else list(one.labels)])
    return found


def _has_labels(e: str, a: str, some: Sequence[Holding]) -> str:
    """A condition: a node has one of the labels that such a list says."""
    if all(one.everywhere for one in some):
        return "true"
    none = f" OR (size(labels({e})) = 0 AND '' IN {a}[2])" if any("" in one.labels for one in some) else ""
    return f"({a}[2] IS NULL OR any(l IN labels({e}) WHERE l IN {a}[2]){none})"


def apart(e: str, labels: Sequence[str], unindexed: Collection[str] = ()) -> list[tuple[list[str], str, str]]:
    """Some labels one by one, each with a pattern and a condition that leaves out the nodes of those
    before. Where they are many, those that are said to have no index come first, together.
    """
    scanned = [label for label in labels if label and label in unindexed] if len(labels) > MOST_BRANCHES else []
    found = [(scanned, f"({e}:{'|'.join(map(quote, scanned))})", "")] if scanned else []
    before = list(scanned)
    for label in labels:
        if label not in before:
            found.append(([label], node_of(e, label), f"NOT {within_labels(e, before)}" if before else ""))
            before.append(label)
    return found


def _fact(e: str, predicate: str, value: str) -> str:
    """What tells a statement from others: as the field of a map, so that the server takes it for
    anything that it may be.
    """
    return f"{{f: [{e}, {predicate}, {value}]}}.f"


def _each(writing: Writing, one: Property, held: str, e: str, predicate: str, v: str, f: str) -> str:
    """Clauses that bind each value of a property once, with its statement."""
    x, y = writing.name("x"), writing.name("y")
    several = any(is_list(kind) for kind, _ in one.types)
    found = f"COLLECT {{ UNWIND {each(held, one)} AS {y} RETURN DISTINCT {y} }}" if several else f"[{held}]"
    # As the field of a map, since the server refuses what it takes for no node where one may stand.
    cell = f"{{v: {Held(x, one).whole}}}.v"
    return f"UNWIND {found} AS {x} WITH {e}, {cell} AS {v}, {_fact(e, predicate, x)} AS {f}"

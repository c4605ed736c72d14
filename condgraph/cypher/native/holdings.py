"""Attributes of other people's databases: which properties of which labels a predicate stands for,
and the clauses that read them.

A property of one type is asked as it is, one query a label. One that has lists, that is read from
texts, or a predicate that stands for several properties is read first and tested then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from condgraph.cypher.layout.cells import Bound
from condgraph.cypher.layout.quote import quote
from condgraph.cypher.layout.scan import Match, Wanted, Writing
from condgraph.cypher.native.cells import Held, likeness, together
from condgraph.cypher.native.expressions import each
from condgraph.cypher.native.identity import node_of, within_labels
from condgraph.cypher.native.ids import foreign
from condgraph.cypher.native.kinds import is_list
from condgraph.cypher.native.mapping import Mapping, Property


@dataclass(frozen=True, slots=True)
class Holding:
    """A property that a predicate stands for, on the nodes of some labels (`everywhere`: of all)."""

    predicate: str
    held: Property
    labels: tuple[str, ...]
    everywhere: bool

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
            holding = Holding(
                predicate, together(one for _, one in places), labels, not mapping.unlabelled and every <= set(labels)
            )
            self._by_predicate.setdefault(predicate, []).append(holding)
        self._all = [one for several in self._by_predicate.values() for one in several]

    def of(self, predicates: Sequence[str] | None) -> list[Holding]:
        """The properties of some predicates, or of all."""
        if predicates is None:
            return self._all
        return [one for name in dict.fromkeys(predicates) for one in self._by_predicate.get(name, ())]

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
                (pattern, " AND ".join(filter(None, (test, "" if label in one.labels else own))))
                for label, (pattern, test) in zip(labels, apart(e, labels), strict=True)
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
        return Match(None, wanted.conditions, Bound(v), before=[self._whole(writing, e, v, f, wanted.predicates)])

    def _whole(self, writing: Writing, e: str, v: str, f: str, predicates: Sequence[str]) -> str:
        """All values of some predicates, label by label."""
        queries = []
        for one in self.of(predicates):
            for pattern, own in apart(e, one.labels):
                where = " AND ".join(filter(None, (own, one.there(e))))
                queries.append(f"MATCH {pattern} WHERE {where} {self._read(writing, one, e, v, f)} RETURN {e}, {v}, {f}")
        text = "\nUNION ALL\n".join(queries) or f"UNWIND [] AS {e} RETURN {e}, null AS {v}, null AS {f}"
        return f"CALL () {{\n{text}\n}}"

    def whole(self, writing: Writing, e: str, v: str, f: str, predicates: Sequence[str] | None) -> str | None:
        """Clauses that leave all values of some predicates, or of all; None where there are none."""
        names = list(self._by_predicate) if predicates is None else [name for name in predicates if name in self._by_predicate]
        return self._whole(writing, e, v, f, names) if names else None

    def with_text(self, e: str, text: str) -> list[str]:
        """Queries that find the nodes one of whose values is a text."""
        found = []
        for one in self._all:
            held = one.value(e)
            if one.plain and {kind for kind, _ in one.held.types} == {"STRING"} and not one.held.untidy:
                found += [f"MATCH {node_of(e, label)} WHERE {held} = {text}" for label in one.labels]
            else:
                key = Held("x", one.held).key
                found += [
                    f"MATCH {node_of(e, label)} WHERE {one.there(e)} AND any(x IN {each(held, one.held)} WHERE {key} = {text})"
                    for label in one.labels
                ]
        return found

    def queries(self, writing: Writing, e: str, v: str, f: str, predicates: Sequence[str] | None) -> list[str]:
        """Queries that go on from a node and bind values `v` and statements `f`; a RETURN follows."""
        if predicates is not None:
            return [
                f"WITH {e} WHERE {' AND '.join([one.there(e), *([] if one.everywhere else [within_labels(e, one.labels)])])} "
                f"{self._read(writing, one, e, v, f)}"
                for one in self.of(predicates)
            ]
        alike: dict[Any, list[Holding]] = {}
        for one in self._all:
            alike.setdefault(likeness(one.held), []).append(one)
        found = []
        for several in alike.values():
            a = writing.name("a")
            listed = [[one.held.key, one.predicate, None if one.everywhere else list(one.labels)] for one in several]
            labelled = f"({a}[2] IS NULL OR any(l IN {a}[2] WHERE l IN labels({e}) OR (l = '' AND size(labels({e})) = 0)))"
            found.append(
                f"WITH {e} UNWIND {writing.parameter(listed)} AS {a} WITH {e}, {a} WHERE {e}[{a}[0]] IS NOT NULL AND {labelled} "
                + _each(writing, together(one.held for one in several), f"{e}[{a}[0]]", e, f"{a}[1]", v, f)
            )
        return found

    def _read(self, writing: Writing, one: Holding, e: str, v: str, f: str) -> str:
        return _each(writing, one.held, one.value(e), e, writing.parameter(one.predicate), v, f)


def apart(e: str, labels: Sequence[str]) -> list[tuple[str, str]]:
    """A pattern for each of some labels, with a condition that leaves out the nodes of those before."""
    return [(node_of(e, label), f"NOT {within_labels(e, labels[:at])}" if at else "") for at, label in enumerate(labels)]


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

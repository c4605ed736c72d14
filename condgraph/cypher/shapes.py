"""The commonest shapes of queries over a graph, for the server to plan ahead: nearly every query of a person or a model is
new to it, and planning is most of the cost of a first run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from condgraph.cypher.compile.plan import Compiled, compile_plan
from condgraph.cypher.layout.base import Layout
from condgraph.engine.errors import CondgraphError
from condgraph.engine.passes import optimise
from condgraph.engine.values import NO_UNIT, Kind
from condgraph.languages.kopl.lower import lower

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection
    from condgraph.engine.stored_schema import StoredSchema


# -- Shapes ------------------------------------------------------------------------------------------
# A shape is a short program with some predicates of the graph. Names, values, comparisons and, where that
# is cheap, relationship types are parameters, so that one query text serves all programs of a shape. The
# texts depend on the graph: whether the objects of a predicate are entities or values, of what kinds, and
# how many. Steps that lead to the same texts are represented by one of them, with the weight of all: how
# often their predicates occur in the graph, and how often such a question is asked, by the questions of
# KQA Pro. The weight of a program is the product of the weights of its parts.


#: A step of a program: a function with its inputs. Those that take two results, or none, are known by
#: name.
Step = tuple[str, ...]
Steps = tuple[Step, ...]
#: Steps with their weights.
Weighted = list[tuple[float, Steps]]
#: A name that no entity has: queries that are only planned give nothing.
NOBODY: Final = "\x01 nobody"
#: Numbers of predicates of a sort, of concepts, and of sets of entities of each form that are considered.
_RELATIONS, _ATTRIBUTES, _CONCEPTS, _SETS = 30, 40, 6, 40
_PAIRS: Final = frozenset(("And", "Or", "QueryRelation", "QueryRelationQualifier", "SelectBetween"))
_STARTS: Final = frozenset(("Find", "FindAll"))
_VALUES: Final = {Kind.TEXT: ("Str", "x"), Kind.QUANTITY: ("Num", "7"), Kind.TIME: ("Year", "1999")}
#: Comparisons with their weights; where all but `!=` share one text, `<` represents them.
_ALL_SIGNS: Final = ((0.4, "="), (0.25, "<"), (0.2, ">"), (0.15, "!="))
_ONE_TEXT: Final = ((0.85, "<"), (0.15, "!="))
_FIND: Final[Step] = ("Find",)
_ONE: Final[Weighted] = [(1.0, (_FIND,))]
_ALL: Final[Weighted] = [(1.0, (("FindAll",),))]


class Shapes:
    """The shapes of one graph; `texts` gives them, the commonest first."""

    def __init__(self, graph: str, schema: StoredSchema, layout: Layout) -> None:
        self._graph, self._schema, self._layout = graph, schema, layout
        self._signs = _ONE_TEXT if layout.floats and not schema.inexact else _ALL_SIGNS

    def texts(self, most: int) -> list[Compiled]:
        """Return at most `most` queries with different texts."""
        return list(islice(self._distinct(), most))

    def _distinct(self) -> Iterator[Compiled]:
        seen: set[str] = set()
        for _, steps in sorted(self._programs(), key=lambda program: -program[0]):
            result = self._compiled(steps)
            if result is not None and result.text not in seen:
                seen.add(result.text)
                yield result

    def _compiled(self, steps: Steps) -> Compiled | None:
        try:
            plan = optimise(lower(program(steps), self._schema).plan)[0]  # type: ignore[arg-type]
            return compile_plan(plan, self._graph, self._schema, layout=self._layout)
        except CondgraphError:
            # The graph does not have this shape.
            return None

    # -- representatives ---------------------------------------------------------------------------

    def _grouped(self, some: Weighted, probes: Iterable[Steps], most: int) -> Weighted:
        """Group steps that lead to the same texts, and return the heaviest groups with weights that sum up to 1.

        `probes` are the steps added to get a text.
        """
        result: dict[tuple[str, ...], tuple[float, Steps]] = {}
        for weight, steps in sorted(some, key=lambda entry: -entry[0]):
            queries = [self._compiled((*steps, *probe)) for probe in probes]
            if queries[0] is not None:
                texts = tuple("" if item is None else item.text for item in queries)
                before, first = result.get(texts, (0.0, steps))
                result[texts] = before + weight, first
        return _even(sorted(result.values(), key=lambda group: -group[0])[:most])

    def _relations(self) -> Weighted:
        """Return steps along relations, in both directions."""
        sizes = self._schema.sizes
        names = sorted(self._schema.relations, key=lambda name: -sizes.get(name, 0))[:_RELATIONS]
        directions = ("forward", "backward")
        return _even(
            [((sizes.get(name, 0) + 1) ** 0.7, (("Relate", name, direction),)) for name in names for direction in directions]
        )

    def _concepts(self) -> Weighted:
        """Return concepts of all sizes, including the largest: the query depends on the size of a concept."""
        members = self._schema.members
        ordered = sorted((name for name in members if members[name]), key=lambda name: -members[name])
        slice_size = -(-len(ordered[1:]) // (_CONCEPTS - 1)) or 1
        slices = [ordered[:1], *(ordered[index : index + slice_size] for index in range(1, len(ordered), slice_size))]
        return _even(
            [(sum(members[name] for name in names), (("FilterConcept", names[len(names) // 2]),)) for names in slices if names]
        )

    def _valued(self, of: Callable[[str], dict[tuple[Kind, str], int]], names: Iterable[str]) -> list[_ValueKey]:
        """Return keys with the commonest kind and unit of their values, the commonest first."""
        result = []
        for name in names:
            (kind, unit), _ = max(kinds.items(), key=lambda entry: entry[1]) if (kinds := of(name)) else ((Kind.UNKNOWN, ""), 0)
            if kind in _VALUES:
                result.append(_ValueKey(sum(kinds.values()) ** 0.5, name, kind, unit, self._signs))
        return sorted(result, key=lambda item: -item.weight)

    def _asked_of(self, found: Steps, attributes: list[_ValueKey]) -> list[_ValueKey]:
        """Return attributes that represent others when queried for a set."""
        by_name = {attribute.name: attribute for attribute in attributes}
        queries: Weighted = [(item.weight, (*found, ("QueryAttr", item.name))) for item in attributes]
        return [by_name[steps[-1][1]].of(weight) for weight, steps in self._grouped(queries, [()], _ATTRIBUTES)]

    def _spells(self, some: Steps, attribute: str) -> bool:
        """Tell whether the query of an attribute of a set has the predicate in its text."""
        queries = self._compiled((*some, ("QueryAttr", attribute))), self._compiled((*some, ("Count",)))
        return None not in queries and len({item.text.count("`") for item in queries if item is not None}) == 2

    # -- shapes ------------------------------------------------------------------------------------

    def _sets(self, about: _SampleSteps) -> Weighted:
        """Return sets of entities that represent others: their own texts, and those of queries on them, are the same."""
        probes: list[Steps] = [(("QueryName",),), *((("QueryAttr", entry.name),) for entry in about.few[:1])]

        def grouped(most: int, *some: Weighted) -> Weighted:
            return self._grouped([element for part in some for element in part], probes, most)

        tests = _even(
            [
                steps
                for attribute in about.attributes
                for steps in _part(attribute.weight, _tests("Filter", attribute.name, attribute))
            ]
        )
        qualifier_tests = _even(
            [
                steps
                for qualifier in about.qualifiers
                for steps in _part(qualifier.weight, _tests("QFilter", qualifier.name, qualifier))
            ]
        )
        concept: Weighted = [(0.5, ()), *_part(0.5, about.concepts)]
        # Only a few common steps where many follow each other.
        common, few_concepts = about.relations[:6], concept[:3]
        neighbours = grouped(_SETS, _then(_ONE, about.relations, concept))
        filtered = grouped(_SETS, _then(_ALL, tests, concept), _part(0.3, _then(_ALL, about.concepts)))
        qualified = grouped(_SETS, _then(_ONE, common, qualifier_tests, few_concepts))
        further = grouped(
            2 * _SETS,
            _part(0.7, _then(neighbours[:8], common, few_concepts)),
            _part(0.3, _then(filtered[:5], common, few_concepts)),
        )
        either = [*_part(0.6, neighbours[:8]), *_part(0.4, filtered[:5])]
        both = grouped(2 * _SETS, _then(either, either, [(0.6, (("And",),)), (0.4, (("Or",),))]))
        parts = ((0.4, neighbours), (0.3, filtered), (0.08, qualified), (0.1, further), (0.12, both))
        return [item for share, part in parts for item in _part(share, part)]

    def _programs(self) -> Iterator[tuple[float, Steps]]:
        """Yield programs with their weights."""
        schema = self._schema
        attributes = self._valued(schema.attribute_kinds, schema.attributes)[:_ATTRIBUTES]
        qualifiers = _firsts(self._valued(schema.qualifier_kinds, schema.qualifiers))
        few = self._asked_of((_FIND,), attributes)
        sample = _SampleSteps(self._relations(), self._concepts(), attributes, few, qualifiers)
        sets = self._sets(sample)
        many = self._asked_of(sets[0][1], attributes) if sets else few
        for weight, steps in sets:
            attribute_keys = many if few and self._spells(steps, few[0].name) else few
            yield 0.27 * weight, (*steps, ("QueryName",))
            yield 0.17 * weight, (*steps, ("Count",))
            for key in attribute_keys:
                if key.kind is Kind.QUANTITY:
                    for direction in ("largest", "smallest"):
                        yield 0.2 * weight * key.weight, (*steps, ("SelectAmong", key.name, direction))
            yield from _asked(0.5 * weight, steps, attribute_keys, qualifiers)
            yield from _paired(0.5 * weight, (*steps, _FIND), sample)
            yield from _paired(0.25 * weight, (_FIND, *steps), sample)
        yield from _asked(0.5, (_FIND,), few, qualifiers)
        yield from _paired(0.3, (_FIND, _FIND), sample)


@dataclass(frozen=True, slots=True)
class _ValueKey:
    """A key of values with their commonest kind and unit."""

    weight: float
    name: str
    kind: Kind
    unit: str
    signs: tuple[tuple[float, str], ...]

    def of(self, weight: float) -> _ValueKey:
        return replace(self, weight=weight)

    @property
    def value(self) -> str:
        """A value as written in a program."""
        return _VALUES[self.kind][1] + (f" {self.unit}" if self.kind is Kind.QUANTITY and self.unit != NO_UNIT else "")


@dataclass(frozen=True, slots=True)
class _SampleSteps:
    """Steps of a graph that represent others."""

    relations: Weighted
    concepts: Weighted
    attributes: list[_ValueKey]
    few: list[_ValueKey]
    qualifiers: list[_ValueKey]


def _firsts(some: list[_ValueKey]) -> list[_ValueKey]:
    """Return the commonest key of each kind, weighted with the share of the kind."""
    total = sum(item.weight for item in some)
    return [
        next(key for key in some if key.kind is kind).of(sum(other.weight for other in some if other.kind is kind) / total)
        for kind in dict.fromkeys(member.kind for member in some)
    ]


def _even(some: Weighted) -> Weighted:
    """Scale weights to a sum of 1."""
    total = sum(weight for weight, _ in some) or 1.0
    return [(weight / total, steps) for weight, steps in some]


def _part(part: float, some: Weighted) -> Weighted:
    """Scale weights by a factor."""
    return [(part * weight, steps) for weight, steps in some]


def _then(*parts: Weighted) -> Weighted:
    """Combine steps in all ways, one after the other."""
    result: Weighted = [(1.0, ())]
    for part in parts:
        result = [(weight * factor, (*steps, *following)) for weight, steps in result for factor, following in part]
    return result


def _asked(weight: float, found: Steps, attributes: list[_ValueKey], qualifiers: list[_ValueKey]) -> Iterator[tuple[float, Steps]]:
    """Yield programs that query the attributes of a set."""
    for attribute in attributes:
        share = weight * attribute.weight
        yield 0.32 * share, (*found, ("QueryAttr", attribute.name))
        tests = _tests("Verify", None, attribute)
        for part, step in tests:
            yield 0.28 * share * part, (*found, ("QueryAttr", attribute.name), *step)
        for key in qualifiers:
            part = share * key.weight
            condition = ("QueryAttrUnderCondition", attribute.name, key.name, key.value)
            yield 0.12 * part, (*found, condition)
            for factor, step in tests:
                yield 0.1 * part * factor, (*found, condition, *step)
            yield 0.18 * part, (*found, ("QueryAttrQualifier", attribute.name, attribute.value, key.name))


def _paired(weight: float, two: Steps, about: _SampleSteps) -> Iterator[tuple[float, Steps]]:
    """Yield programs that query two sets."""
    yield 0.35 * weight, (*two, ("QueryRelation",))
    for share, ((_, relation, direction),) in about.relations:
        for key in about.qualifiers if direction == "forward" else ():
            yield 0.6 * weight * share * key.weight, (*two, ("QueryRelationQualifier", relation, key.name))
    for item in about.few:
        if item.kind is Kind.QUANTITY:
            for which in ("greater", "less"):
                yield 0.35 * weight * item.weight, (*two, ("SelectBetween", item.name, which))


def _tests(function: str, name: str | None, of: _ValueKey) -> Weighted:
    """Return the tests of a value that have texts of their own."""
    key = () if name is None else (name,)
    if of.kind is Kind.TEXT:
        return [(1.0, ((f"{function}Str", *key, of.value),))]
    return [(share, ((function + _VALUES[of.kind][0], *key, of.value, sign),)) for share, sign in of.signs]


def program(steps: Steps) -> list[dict[str, Any]]:
    """Build a KoPL program from steps, each of which takes the results not used yet."""
    unused: list[int] = []
    result = []
    for number, (function, *inputs) in enumerate(steps):
        takes = 0 if function in _STARTS else 2 if function in _PAIRS else 1
        taken = unused[len(unused) - takes :] if takes else []
        del unused[len(unused) - takes :]
        unused.append(number)
        # Each with another name, since two equal names would be merged.
        inputs = [f"{NOBODY} {number}"] if function == "Find" else inputs
        result.append({"function": function, "dependencies": taken, "inputs": inputs})
    return result


# -- Warming -----------------------------------------------------------------------------------------
# The server is asked to explain each text: it then plans it and runs nothing, however large the graph is.


#: Queries planned ahead, of the thousand whose plans a server caches.
TEXTS: Final = 600
#: Graphs with fewer statements are loaded faster than their shapes are planned.
WORTH: Final = 10_000
#: Share of a load's time for planning ahead after it, and its limit in seconds.
_PART, _MAX_SECONDS = 0.2, 20.0

#: Function that returns the shapes of a graph when needed.
ShapesOf: TypeAlias = "Callable[[], Shapes]"


def warm(
    connection: Connection, shapes: ShapesOf, *, texts: int = TEXTS, seconds: float | None = None, stop: Event | None = None
) -> int:
    """Have the server plan up to `texts` queries, the commonest first, for up to `seconds`; return how many it planned.

    Raises the errors of the queries.
    """
    until = None if seconds is None else time.monotonic() + seconds
    done = 0
    for shape in shapes().texts(texts):
        if (stop is not None and stop.is_set()) or (until is not None and time.monotonic() > until):
            break
        connection.read(f"EXPLAIN {shape.text}", shape.parameters)
        done += 1
    return done


def warm_after(connection: Connection, shapes: ShapesOf, statements: int, took: float) -> None:
    """Call `warm` after a load, ignoring errors."""
    if statements >= WORTH:
        with suppress(CondgraphError):
            warm(connection, shapes, seconds=min(_MAX_SECONDS, took * _PART))


class BackgroundWarmUp:
    """Runs `warm` in the background, until `end`."""

    def __init__(self, connection: Connection, shapes: ShapesOf) -> None:
        self._connection, self._shapes, self._stop = connection, shapes, Event()
        self._thread = Thread(target=self._run, name="condgraph-neo4j-warming", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # The server's errors go to callers, and there is none here.
        with suppress(CondgraphError):
            warm(self._connection, self._shapes, stop=self._stop)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is done; return whether it is."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def end(self) -> None:
        """Stop after the present query."""
        self._stop.set()

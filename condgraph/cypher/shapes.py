"""The commonest shapes of queries over a graph: texts that a server may plan before anybody asks them, since nearly all that
a person or a model asks is new to it, and planning is most of what a first run costs.
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
# A shape is a program of a few steps with some predicates of the graph in it. Names, values,
# comparisons and, where it is no work, the types of relationships are parameters of a text, so that
# one text serves all programs of its shape. Which texts there are depends on what the graph holds:
# whether a predicate's objects are entities or values, of which kinds, how many there are. So steps
# that lead to the same texts represent each other, with the weight of all of them: how often their
# predicates occur in the graph, and how often such a question is asked, as the questions of KQA Pro
# show. A program is as common as its parts are together.


#: A step of a program: a function with its inputs. Those that take two results, and those that take
#: none, are known by their names.
Step = tuple[str, ...]
Steps = tuple[Step, ...]
#: Steps with how common they are among others.
Weighted = list[tuple[float, Steps]]
#: A name that no entity has: what is asked for the sake of its plan gives nothing.
NOBODY: Final = "\x01 nobody"
#: Predicates of a sort, concepts, and sets of entities of each form that are looked at.
_RELATIONS, _ATTRIBUTES, _CONCEPTS, _SETS = 30, 40, 6, 40
_PAIRS: Final = frozenset(("And", "Or", "QueryRelation", "QueryRelationQualifier", "SelectBetween"))
_STARTS: Final = frozenset(("Find", "FindAll"))
_VALUES: Final = {Kind.TEXT: ("Str", "x"), Kind.QUANTITY: ("Num", "7"), Kind.TIME: ("Year", "1999")}
#: Comparisons with how common they are; where all but `!=` have one text, one represents the others.
_ALL_SIGNS: Final = ((0.4, "="), (0.25, "<"), (0.2, ">"), (0.15, "!="))
_ONE_TEXT: Final = ((0.85, "<"), (0.15, "!="))
_FIND: Final[Step] = ("Find",)
_ONE: Final[Weighted] = [(1.0, (_FIND,))]
_ALL: Final[Weighted] = [(1.0, (("FindAll",),))]


class Shapes:
    """The shapes of one graph. `texts` gives them, the commonest first."""

    def __init__(self, graph: str, schema: StoredSchema, layout: Layout) -> None:
        self._graph, self._schema, self._layout = graph, schema, layout
        self._signs = _ONE_TEXT if layout.floats and not schema.inexact else _ALL_SIGNS

    def texts(self, most: int) -> list[Compiled]:
        """At most so many queries, no two of one text."""
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
            # A shape that this graph does not have.
            return None

    # -- representatives ---------------------------------------------------------------------------

    def _grouped(self, some: Weighted, probes: Iterable[Steps], most: int) -> Weighted:
        """One of those that lead to the same texts, with the weight of all of them: the weightiest,
        whose weights are one together. `probes` are what the texts are of.
        """
        result: dict[tuple[str, ...], tuple[float, Steps]] = {}
        for weight, steps in sorted(some, key=lambda entry: -entry[0]):
            made = [self._compiled((*steps, *probe)) for probe in probes]
            if made[0] is not None:
                texts = tuple("" if item is None else item.text for item in made)
                before, first = result.get(texts, (0.0, steps))
                result[texts] = before + weight, first
        return _even(sorted(result.values(), key=lambda one: -one[0])[:most])

    def _relations(self) -> Weighted:
        """Steps along relations, in both ways."""
        sizes = self._schema.sizes
        names = sorted(self._schema.relations, key=lambda name: -sizes.get(name, 0))[:_RELATIONS]
        ways = ("forward", "backward")
        return _even([((sizes.get(name, 0) + 1) ** 0.7, (("Relate", name, way),)) for name in names for way in ways])

    def _concepts(self) -> Weighted:
        """Concepts of all sizes, the largest among them: how one is met depends on its size."""
        members = self._schema.members
        ordered = sorted((name for name in members if members[name]), key=lambda name: -members[name])
        each = -(-len(ordered[1:]) // (_CONCEPTS - 1)) or 1
        slices = [ordered[:1], *(ordered[at : at + each] for at in range(1, len(ordered), each))]
        return _even([(sum(members[name] for name in some), (("FilterConcept", some[len(some) // 2]),)) for some in slices if some])

    def _valued(self, of: Callable[[str], dict[tuple[Kind, str], int]], names: Iterable[str]) -> list[_ValueKey]:
        """Keys of values with the kind and unit that most of them have, the commonest first."""
        result = []
        for name in names:
            (kind, unit), _ = max(kinds.items(), key=lambda entry: entry[1]) if (kinds := of(name)) else ((Kind.UNKNOWN, ""), 0)
            if kind in _VALUES:
                result.append(_ValueKey(sum(kinds.values()) ** 0.5, name, kind, unit, self._signs))
        return sorted(result, key=lambda item: -item.weight)

    def _asked_of(self, found: Steps, attributes: list[_ValueKey]) -> list[_ValueKey]:
        """Attributes that represent others where they are asked of a set."""
        every = {attribute.name: attribute for attribute in attributes}
        asked: Weighted = [(item.weight, (*found, ("QueryAttr", item.name))) for item in attributes]
        return [every[steps[-1][1]].of(weight) for weight, steps in self._grouped(asked, [()], _ATTRIBUTES)]

    def _spells(self, some: Steps, attribute: str) -> bool:
        """Whether what is asked of a set names its predicate in the text."""
        made = self._compiled((*some, ("QueryAttr", attribute))), self._compiled((*some, ("Count",)))
        return None not in made and len({item.text.count("`") for item in made if item is not None}) == 2

    # -- shapes ------------------------------------------------------------------------------------

    def _sets(self, about: _SampleSteps) -> Weighted:
        """Sets of entities that represent others: where what they are, and what is asked of them, is
        the same text.
        """
        probes: list[Steps] = [(("QueryName",),), *((("QueryAttr", entry.name),) for entry in about.few[:1])]

        def grouped(most: int, *some: Weighted) -> Weighted:
            return self._grouped([element for part in some for element in part], probes, most)

        tests = _even(
            [
                found
                for attribute in about.attributes
                for found in _part(attribute.weight, _tests("Filter", attribute.name, attribute))
            ]
        )
        qualifier_tests = _even(
            [
                found
                for qualifier in about.qualifiers
                for found in _part(qualifier.weight, _tests("QFilter", qualifier.name, qualifier))
            ]
        )
        concept: Weighted = [(0.5, ()), *_part(0.5, about.concepts)]
        # Few of what is common, where many steps follow each other.
        common, some = about.relations[:6], concept[:3]
        around = grouped(_SETS, _then(_ONE, about.relations, concept))
        kept = grouped(_SETS, _then(_ALL, tests, concept), _part(0.3, _then(_ALL, about.concepts)))
        qualified = grouped(_SETS, _then(_ONE, common, qualifier_tests, some))
        further = grouped(2 * _SETS, _part(0.7, _then(around[:8], common, some)), _part(0.3, _then(kept[:5], common, some)))
        either = [*_part(0.6, around[:8]), *_part(0.4, kept[:5])]
        both = grouped(2 * _SETS, _then(either, either, [(0.6, (("And",),)), (0.4, (("Or",),))]))
        parts = ((0.4, around), (0.3, kept), (0.08, qualified), (0.1, further), (0.12, both))
        return [item for share, part in parts for item in _part(share, part)]

    def _programs(self) -> Iterator[tuple[float, Steps]]:
        """Programs with how common they are."""
        schema = self._schema
        attributes = self._valued(schema.attribute_kinds, schema.attributes)[:_ATTRIBUTES]
        qualifiers = _firsts(self._valued(schema.qualifier_kinds, schema.qualifiers))
        few = self._asked_of((_FIND,), attributes)
        about = _SampleSteps(self._relations(), self._concepts(), attributes, few, qualifiers)
        sets = self._sets(about)
        many = self._asked_of(sets[0][1], attributes) if sets else few
        for weight, result in sets:
            own = many if few and self._spells(result, few[0].name) else few
            yield 0.27 * weight, (*result, ("QueryName",))
            yield 0.17 * weight, (*result, ("Count",))
            for best in own:
                if best.kind is Kind.QUANTITY:
                    for which in ("largest", "smallest"):
                        yield 0.2 * weight * best.weight, (*result, ("SelectAmong", best.name, which))
            yield from _asked(0.5 * weight, result, own, qualifiers)
            yield from _paired(0.5 * weight, (*result, _FIND), about)
            yield from _paired(0.25 * weight, (_FIND, *result), about)
        yield from _asked(0.5, (_FIND,), few, qualifiers)
        yield from _paired(0.3, (_FIND, _FIND), about)


@dataclass(frozen=True, slots=True)
class _ValueKey:
    """A key of values with the kind and unit that most of them have."""

    weight: float
    name: str
    kind: Kind
    unit: str
    signs: tuple[tuple[float, str], ...]

    def of(self, weight: float) -> _ValueKey:
        """The same with another weight."""
        return replace(self, weight=weight)

    @property
    def value(self) -> str:
        """A value as it is written in a program."""
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
    """The commonest of each kind, with the part that its kind has of all."""
    total = sum(item.weight for item in some)
    return [
        next(element for element in some if element.kind is kind).of(sum(one.weight for one in some if one.kind is kind) / total)
        for kind in dict.fromkeys(entry.kind for entry in some)
    ]


def _even(some: Weighted) -> Weighted:
    """With weights that are one together."""
    total = sum(weight for weight, _ in some) or 1.0
    return [(weight / total, steps) for weight, steps in some]


def _part(part: float, some: Weighted) -> Weighted:
    """With less weight."""
    return [(part * weight, steps) for weight, steps in some]


def _then(*parts: Weighted) -> Weighted:
    """One after the other, in all ways."""
    result: Weighted = [(1.0, ())]
    for part in parts:
        result = [(weight * more, (*steps, *behind)) for weight, steps in result for more, behind in part]
    return result


def _asked(weight: float, found: Steps, attributes: list[_ValueKey], qualifiers: list[_ValueKey]) -> Iterator[tuple[float, Steps]]:
    """What is asked of the attributes of a set."""
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
            for some, step in tests:
                yield 0.1 * part * some, (*found, condition, *step)
            yield 0.18 * part, (*found, ("QueryAttrQualifier", attribute.name, attribute.value, key.name))


def _paired(weight: float, two: Steps, about: _SampleSteps) -> Iterator[tuple[float, Steps]]:
    """What is asked of two sets."""
    yield 0.35 * weight, (*two, ("QueryRelation",))
    for share, ((_, relation, way),) in about.relations:
        for key in about.qualifiers if way == "forward" else ():
            yield 0.6 * weight * share * key.weight, (*two, ("QueryRelationQualifier", relation, key.name))
    for item in about.few:
        if item.kind is Kind.QUANTITY:
            for which in ("greater", "less"):
                yield 0.35 * weight * item.weight, (*two, ("SelectBetween", item.name, which))


def _tests(function: str, name: str | None, of: _ValueKey) -> Weighted:
    """A test of a value as steps: those that have texts of their own."""
    key = () if name is None else (name,)
    if of.kind is Kind.TEXT:
        return [(1.0, ((f"{function}Str", *key, of.value),))]
    return [(share, ((function + _VALUES[of.kind][0], *key, of.value, sign),)) for share, sign in of.signs]


def program(steps: Steps) -> list[dict[str, Any]]:
    """Steps as a program of KoPL, each of which takes the results that are left over."""
    left: list[int] = []
    result = []
    for number, (function, *inputs) in enumerate(steps):
        takes = 0 if function in _STARTS else 2 if function in _PAIRS else 1
        taken = left[len(left) - takes :] if takes else []
        del left[len(left) - takes :]
        left.append(number)
        # Two that are the same entity would be one.
        inputs = [f"{NOBODY} {number}"] if function == "Find" else inputs
        result.append({"function": function, "dependencies": taken, "inputs": inputs})
    return result


# -- Warming -----------------------------------------------------------------------------------------
# It is asked to explain each text: it plans it then, and runs nothing, however large the graph is.


#: Texts that a server plans ahead, of the thousand that it keeps the plans of.
TEXTS: Final = 600
#: Fewer statements are loaded more quickly than their shapes are planned.
WORTH: Final = 10_000
#: After a load its server plans ahead for this part of the time that the load took, and no longer
#: than so many seconds.
_PART, _LONGEST = 0.2, 20.0

#: The shapes of queries over a graph, read when they are needed.
ShapesOf: TypeAlias = "Callable[[], Shapes]"


def warm(
    connection: Connection, shapes: ShapesOf, *, texts: int = TEXTS, seconds: float | None = None, stop: Event | None = None
) -> int:
    """Have the server plan so many texts at most, the commonest first, for so many seconds at most;
    how many it planned. Raises what asking raises.
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
    """The same after a load, which goes well whatever becomes of this."""
    if statements >= WORTH:
        with suppress(CondgraphError):
            warm(connection, shapes, seconds=min(_LONGEST, took * _PART))


class BackgroundWarmUp:
    """The same in the background, until `end`."""

    def __init__(self, connection: Connection, shapes: ShapesOf) -> None:
        self._connection, self._shapes, self._stop = connection, shapes, Event()
        self._thread = Thread(target=self._run, name="condgraph-neo4j-warming", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # Errors of the server are reported to callers; there is none here.
        with suppress(CondgraphError):
            warm(self._connection, self._shapes, stop=self._stop)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is done; whether it is."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def end(self) -> None:
        """Let it end with the text that it is at."""
        self._stop.set()

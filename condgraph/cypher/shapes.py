"""The commonest shapes of queries over a graph: texts that a server may plan before anybody asks
them, since nearly all that a person or a model asks is new to it, and planning is most of what a
first run costs.

A shape is a program of a few steps with some predicates of the graph in it. Names, values and, where
it is no work, the types of relationships are parameters of a text, so that one text serves all
programs of its shape. Which texts there are depends on what the graph holds: whether a predicate's
objects are entities or values, of which kinds, how many there are. So predicates that lead to the
same text stand for each other, and a few of each sort make all shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.compile.compiled import Compiled
from condgraph.cypher.compile.plan import compile_plan
from condgraph.cypher.layout.base import Layout
from condgraph.engine.errors import CondgraphError
from condgraph.engine.passes import optimise
from condgraph.engine.values import NO_UNIT, Kind
from condgraph.languages.kopl.lower import lower

if TYPE_CHECKING:
    from condgraph.engine.stored_schema import StoredSchema

#: A step of a program: a function with its inputs. Those that take two results, and those that take
#: none, are told by their names.
Step = tuple[str, ...]
Steps = tuple[Step, ...]
#: A name that no entity has: what is asked for the sake of its plan gives nothing.
NOBODY: Final = "\x01 nobody"
#: Predicates of one sort that are looked at, and sorts of which shapes are made.
_LOOKED, _SORTS = 500, 3
_PAIRS: Final = frozenset(("And", "Or", "QueryRelation", "QueryRelationQualifier", "SelectBetween"))
_STARTS: Final = frozenset(("Find", "FindAll"))
_VALUES: Final = {Kind.TEXT: ("Str", "x"), Kind.QUANTITY: ("Num", "7"), Kind.TIME: ("Year", "1999")}


class Shapes:
    """The shapes of one graph. `texts` gives them, the commonest first."""

    def __init__(self, graph: str, schema: StoredSchema, layout: Layout) -> None:
        self._graph, self._schema, self._layout = graph, schema, layout

    def texts(self, most: int) -> list[Compiled]:
        """At most so many queries, no two of one text."""
        return list(islice(self._distinct(), most))

    def _distinct(self) -> Iterator[Compiled]:
        seen: set[str] = set()
        # The commonest of each sort first, then what is said otherwise of the others.
        for steps in chain(self._programs(1), self._programs(_SORTS)):
            found = self._compiled(steps)
            if found is not None and found.text not in seen:
                seen.add(found.text)
                yield found

    def _compiled(self, steps: Steps) -> Compiled | None:
        try:
            plan = optimise(lower(program(steps), self._schema).plan)[0]  # type: ignore[arg-type]
            return compile_plan(plan, self._graph, self._schema, layout=self._layout)
        except CondgraphError:
            # A shape that this graph does not have.
            return None

    # -- what stands for others --------------------------------------------------------------------

    def _sorts(self, most: int, names: list[str], tried: Callable[[str], Steps]) -> list[str]:
        """One name of each text that a step makes of them, the one that comes first; texts that other
        predicates can have before those that name their own.
        """
        found: dict[str, str] = {}
        for name in names[:_LOOKED]:
            made = self._compiled(tried(name))
            if made is not None:
                found.setdefault(made.text, name)
        return [found[text] for text in sorted(found, key=lambda text: "`" in text)][:most]

    def _relations(self, sorts: int) -> list[Step]:
        schema = self._schema
        names = sorted(schema.relations, key=lambda name: -schema.sizes.get(name, 0))
        found = []
        for direction in ("forward", "backward"):
            some = self._sorts(sorts, names, partial(_related, direction))
            found.append([("Relate", name, direction) for name in some])
        # By turns, as either way is as common.
        return [step for pair in zip_longest(*found) for step in pair if step is not None]

    def _attributes(self, sorts: int) -> list[tuple[str, Kind, str]]:
        """Attributes with the kind and unit that most of their values have."""
        schema, about = self._schema, list[tuple[int, str, Kind, str]]()
        for name in schema.attributes:
            kinds = schema.attribute_kinds(name)
            if kinds:
                (kind, unit), _ = max(kinds.items(), key=lambda one: one[1])
                about.append((-sum(kinds.values()), name, kind, unit))
        found = []
        for kind in _VALUES:
            of_kind = {name: unit for _, name, one, unit in sorted(about) if one is kind}
            some = self._sorts(sorts, list(of_kind), lambda name: (("Find",), ("QueryAttr", name)))
            found += [(name, kind, of_kind[name]) for name in some]
        return found

    def _qualifiers(self) -> list[tuple[str, Kind, str]]:
        found: dict[Kind, tuple[str, Kind, str]] = {}
        schema = self._schema
        for name in sorted(schema.qualifiers, key=lambda name: -sum(schema.qualifier_kinds(name).values())):
            kinds = schema.qualifier_kinds(name)
            if kinds:
                (kind, unit), _ = max(kinds.items(), key=lambda one: one[1])
                found.setdefault(kind, (name, kind, unit))
        return [one for kind, one in found.items() if kind in _VALUES]

    def _concepts(self) -> list[Step]:
        """A small concept, and the largest, which is met in another way."""
        members = self._schema.members
        ordered = sorted((name for name in members if members[name]), key=lambda name: members[name])
        return [("FilterConcept", name) for name in dict.fromkeys((ordered[len(ordered) // 2], ordered[-1]))] if ordered else []

    # -- shapes ------------------------------------------------------------------------------------

    def _programs(self, sorts: int) -> Iterator[Steps]:
        """Programs, the commonest shapes first, with so many predicates of each kind."""
        about = _About(self._relations(sorts), self._attributes(sorts), self._qualifiers())
        relations, concepts = about.relations, self._concepts()
        find: Step = ("Find",)
        every: Step = ("FindAll",)
        filters = [step for one in about.attributes for step in _tests("Filter", *one)]
        where = [step for one in about.qualifiers for step in _tests("QFilter", *one)]
        one: list[Steps] = [(find,)]
        around: list[Steps] = [(find, step) for step in relations]
        around += [(find, step, concept) for concept in concepts for step in relations]
        kept: list[Steps] = [(every, concept) for concept in concepts]
        kept += [(every, step) for step in filters]
        kept += [(every, step, concept) for concept in concepts for step in filters]
        said: list[Steps] = [(find, relation, step) for step in where for relation in relations]
        said += [(*found, concept) for concept in concepts for found in said]
        longer: list[Steps] = [(find, *concepts[:0], first, second) for first in relations for second in relations]
        longer += [(find, first, *concepts[:1], second, *concepts[:1]) for first in relations for second in relations]
        longer += [(every, step, *concepts[:1], relation, *concepts[:1]) for step in filters for relation in relations]
        both: list[Steps] = [
            (*left, *right, (name,)) for name in ("And", "Or") for left in around for right in around if len(left) == len(right)
        ]
        yield from _pairs(one, about)
        # What is asked of one entity, conditions and qualifiers too, before what is asked of many.
        yield from _ends(one, about, first=True)
        yield from _ends(one, about, first=False)
        yield from _ends(around, about, first=True)
        yield from _ends(kept, about, first=True)
        yield from _pairs(around, about)
        for sets in (said, longer, both):
            yield from _ends(sets, about, first=True)
        yield from _ends(around, about, first=False)
        yield from _pairs(kept, about)
        yield from _ends(kept, about, first=False)


def _related(direction: str, name: str) -> Steps:
    return (("Find",), ("Relate", name, direction), ("QueryName",))


@dataclass(frozen=True, slots=True)
class _About:
    """Predicates that stand for others: relations as steps, attributes and qualifiers with kind and
    unit.
    """

    relations: list[Step]
    attributes: list[tuple[str, Kind, str]]
    qualifiers: list[tuple[str, Kind, str]]


def _ends(sets: list[Steps], about: _About, *, first: bool) -> Iterator[Steps]:
    """What is asked of a set of entities: what is asked most (`first`), or the rest."""
    for found in sets:
        if first:
            if len(found) > 1:
                yield (*found, ("QueryName",))
                yield (*found, ("Count",))
            for name, kind, unit in about.attributes:
                yield (*found, ("QueryAttr", name))
                if kind is Kind.QUANTITY and len(found) > 1:
                    for which in ("largest", "smallest"):
                        yield (*found, ("SelectAmong", name, which))
                for step in _tests("Verify", None, kind, unit):
                    yield (*found, ("QueryAttr", name), step)
            continue
        for name, kind, unit in about.attributes:
            for key, of, one in about.qualifiers:
                condition = ("QueryAttrUnderCondition", name, key, _value(of, one))
                yield (*found, condition)
                yield (*found, ("QueryAttrQualifier", name, _value(kind, unit), key))
                for step in _tests("Verify", None, kind, unit):
                    yield (*found, condition, step)


def _pairs(sets: list[Steps], about: _About) -> Iterator[Steps]:
    """What is asked of two sets, the second of them an entity."""
    find: Step = ("Find",)
    for found in sets:
        yield (*found, find, ("QueryRelation",))
    for found in sets:
        for _, relation, way in about.relations:
            for key, *_ in about.qualifiers if way == "forward" else ():
                yield (*found, find, ("QueryRelationQualifier", relation, key))
        for name, kind, _ in about.attributes:
            if kind is Kind.QUANTITY:
                for which in ("greater", "less"):
                    yield (*found, find, ("SelectBetween", name, which))


def _tests(function: str, name: str | None, kind: Kind, unit: str) -> list[Step]:
    """A test of a value as steps: by equality, and by more and less."""
    word, _ = _VALUES[kind]
    said = () if name is None else (name,)
    value = _value(kind, unit)
    if kind is Kind.TEXT:
        return [(function + word, *said, value)]
    return [(function + word, *said, value, sign) for sign in ("=", "<", ">", "!=")]


def _value(kind: Kind, unit: str) -> str:
    return _VALUES[kind][1] + (f" {unit}" if kind is Kind.QUANTITY and unit != NO_UNIT else "")


def program(steps: Steps) -> list[dict[str, Any]]:
    """Steps as a program of KoPL, each of which takes the results that are left over."""
    left: list[int] = []
    found = []
    for number, (function, *inputs) in enumerate(steps):
        takes = 0 if function in _STARTS else 2 if function in _PAIRS else 1
        taken = left[len(left) - takes :] if takes else []
        del left[len(left) - takes :]
        left.append(number)
        # Two that are the same entity would be one.
        inputs = [f"{NOBODY} {number}"] if function == "Find" else inputs
        found.append({"function": function, "dependencies": taken, "inputs": inputs})
    return found

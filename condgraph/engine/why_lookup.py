"""What explanations of empty answers ask of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from condgraph.engine.algebra import Entities, Facts, Names, Node, Values, postorder
from condgraph.engine.execute.evidence import inputs_asked, whole
from condgraph.engine.execute.run import Run
from condgraph.engine.execute.sets import EMPTY
from condgraph.engine.pieces import each_once, watched
from condgraph.engine.why_not import MOST_ENTITIES, folded

if TYPE_CHECKING:
    from condgraph.engine.schema import Schema
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.engine.why_not import Lookup

#: The texts of an operator's result, at most so many, in the order of answers.
TextsOf: TypeAlias = Callable[[Run, Node, int], list[str]]


def local_lookup(run: Run, texts_of: TextsOf) -> Lookup:
    """What an explanation of the answer of a run asks."""
    return _LocalLookup(run, texts_of)


class _LocalLookup:
    """What an explanation asks of a snapshot: results of the answer's own run are used again."""

    batch = 1

    def __init__(self, run: Run, texts_of: TextsOf) -> None:
        self._texts_of = texts_of
        self._run = Run(run.snapshot)
        # Terms that rows give are known by their numbers in the scope.
        self._run.scope = run.scope
        self._run.results = dict(run.results)
        # The operators that these are the results of.
        self._answered = run
        self._alike: dict[int, list[str]] = {}
        # Operators are known by identity, so that these must stay alive.
        self._made: list[Node] = []

    @property
    def schema(self) -> Schema:
        return self._run.snapshot.schema

    def counts(self, nodes: Sequence[Node]) -> list[int]:
        return [self._run.size(node) for node in nodes]

    def values(self, node: Values, most: int) -> list[Any]:
        bag: Any = self._run.outcome(node)
        return list(bag.values()[:most])

    def texts(self, node: Node, most: int) -> list[str]:
        found: Any = self._run.outcome(node)
        if isinstance(node, Names):
            found = self._run.outcome(node.entities)
        if isinstance(node, Entities | Names):
            snapshot = self._run.snapshot
            return each_once(snapshot.texts.take(snapshot.entity_name[found[:most]]))
        return self._texts_of(self._run, node, most)

    def near(self, name: str) -> list[str]:
        return self.schema.nearest_entities(name)

    def predicates(self, of: Entities, most: int) -> dict[str, list[str]]:
        snapshot, entities = self._run.snapshot, self._entities(of)
        parts: dict[str, Any] = {}
        if len(entities) == 1:
            entity, relations = int(entities[0]), snapshot.relations
            parts["forward"] = snapshot.outgoing(entity, 0, relations)
            parts["backward"] = snapshot.incoming(entity, 0, relations)
            parts["value"] = snapshot.outgoing(entity, relations, snapshot.statements)
        else:
            outgoing = snapshot.touching(entities)
            forward = outgoing < snapshot.relations
            parts["forward"], parts["backward"] = outgoing[forward], snapshot.touching(entities, backward=True)
            parts["value"] = outgoing[~forward]
        result = {}
        for way, facts in parts.items():
            base, offsets = (snapshot.relations, "att.offsets") if way == "value" else (0, "rel.offsets")
            numbers = set((snapshot.arrays.get(offsets).searchsorted(facts - base, side="right") - 1).tolist())
            result[way] = sorted(map(self._predicates.__getitem__, numbers))[:most]
        return result

    def behind(self, plan: Node, facts: Facts) -> Facts | None:
        run, order = self._run, postorder(plan)
        leads, demands = {id(facts)}, {id(plan): whole(run, plan)}
        for node in order:
            if any(id(child) in leads for child in node.inputs()):
                if not isinstance(node, Entities | Facts | Values):
                    return None
                leads.add(id(node))
        for node in reversed(order):
            demand = demands.get(id(node))
            if demand is None or node is facts:
                continue
            for child, asked in inputs_asked(run, node, demand, EMPTY):
                if id(child) in leads:
                    known = demands.get(id(child))
                    demands[id(child)] = asked if known is None else known.joined(asked, run.snapshot)
        demand = demands.get(id(facts))
        if demand is None:
            return None
        fresh: Any = copy(facts)
        run.results[id(fresh)] = run.facts(facts).keep(demand.statements)
        self._made.append(fresh)
        return fresh  # type: ignore[no-any-return]

    def alike(self, of: Entities) -> list[str]:
        # Several changes ask it of the same entities.
        result = self._alike.get(id(of))
        if result is None:
            result = self._alike[id(of)] = self._alike_of(of)
        return result

    def _entities(self, of: Entities) -> Any:
        return self._run.outcome(of)

    def _alike_of(self, of: Entities) -> list[str]:
        snapshot, names = self._run.snapshot, self._folded
        entities = self._entities(of)
        forms = names.form.take(entities)
        if not len(forms) or forms.max() < 0:
            return []
        shared = np.flatnonzero(forms >= 0)[:MOST_ENTITIES]
        entities, forms = entities[shared], forms[shared]
        same = dict.fromkeys(name for form in dict.fromkeys(forms.tolist()) for name in names.spellings[form])
        for name in snapshot.texts.take(snapshot.entity_name[entities]):
            if name not in names.several:
                same.pop(name, None)
        return list(same)

    @property
    def _predicates(self) -> list[str]:
        """The names of all predicates, by number."""
        kept = self.schema.kept
        result: list[str] | None = kept.get("predicate names")
        if result is None:
            snapshot = self._run.snapshot
            result = kept["predicate names"] = list(map(snapshot.predicate_name, range(snapshot.predicate_count)))
        return result

    @property
    def _folded(self) -> _FoldedNames:
        """The names of the snapshot that are alike; worked out once."""
        names: _FoldedNames | None = self.schema.kept.get("folded names")
        if names is None:
            names = self.schema.kept["folded names"] = _FoldedNames.of(self._run.snapshot)
        return names


@dataclass(frozen=True, slots=True)
class _FoldedNames:
    """Names of a snapshot's entities that are one but for their spelling: `form` has for each entity the place of its names
    in `spellings`, -1 where no other entity has one of these, and `several` are names that several entities have.
    """

    form: Any
    spellings: list[list[str]]
    several: frozenset[str]

    @classmethod
    def of(cls, snapshot: Snapshot) -> _FoldedNames:
        numbers, place, counts = np.unique(snapshot.entity_name, return_inverse=True, return_counts=True)
        names = snapshot.texts.take(numbers)
        groups = dict[str, list[int]]()
        for at, name in enumerate(watched(names, 256)):
            groups.setdefault(folded(name), []).append(at)
        shared = [members for members in groups.values() if len(members) > 1 or counts[members[0]] > 1]
        form = np.full(len(numbers), -1, np.int32)
        for number, members in enumerate(shared):
            form[members] = number
        spellings = [[names[at] for at in members] for members in shared]
        return cls(form[place], spellings, frozenset(names[at] for at in np.flatnonzero(counts > 1).tolist()))

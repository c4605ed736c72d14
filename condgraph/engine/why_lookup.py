"""What explanations of empty answers ask of a snapshot."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from condgraph.engine.algebra import Entities, Facts, Names, Node, Values, postorder
from condgraph.engine.execute.bags import Bag
from condgraph.engine.execute.evidence import inputs_asked, whole
from condgraph.engine.execute.run import Run
from condgraph.engine.execute.sets import EMPTY, Numbers
from condgraph.engine.passes import rebuild
from condgraph.engine.pieces import each_once, watched
from condgraph.engine.why_not import MOST_ENTITIES, folded

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.engine.why_not import Lookup, Program

#: The texts of an operator's result, at most so many, in the order of answers.
TextsOf: TypeAlias = Callable[[Run, Node, int], list[str]]


def local_lookup(run: Run, texts_of: TextsOf) -> Lookup:
    """What an explanation of the answer of a run asks."""
    return _LocalLookup(run, texts_of)


class _LocalLookup:
    """What an explanation asks of a snapshot: results of the answer's own run are used again."""

    batch = 1

    def __init__(self, run: Run, texts_of: TextsOf) -> None:
        self._texts_of, self.schema = texts_of, run.snapshot.schema
        # Terms that rows give are known by their numbers in the scope.
        self._run = Run(run.snapshot, run.scope)
        self._run.results = dict(run.results)
        # The operators that these are the results of.
        self._answered = run
        self._alike: dict[int, list[str]] = {}
        # How many results a program gives with an operator in the place of another.
        self._changed: dict[tuple[int, int], int] = {}
        # Operators are known by identity, so that these must stay alive.
        self._made: list[Node] = []

    def counts(self, nodes: Sequence[Node]) -> list[int]:
        return [self._run.size(node) for node in nodes]

    def changed(self, program: Program, changes: Sequence[tuple[Node, Node]]) -> list[int]:
        sizes = []
        for node, fresh in changes:
            size = self._changed.get((id(node), id(fresh)))
            if size is None:
                self._made.append(fresh)
                size = self._changed[id(node), id(fresh)] = self._run_changed(program, node, fresh)
            sizes.append(size)
        return sizes

    def _run_changed(self, program: Program, node: Node, fresh: Node) -> int:
        """What is above the operator is made and run, until one gives nothing as it did before: so does then the program."""
        run, done = self._run, {id(node): fresh}
        above = program.above(node)
        if not above:
            return run.size(fresh)
        nothing = [run.step(part) for part in run.missing(fresh)][-1:] == [True]
        for before, part in zip([node, *above], above, strict=False):
            if nothing and program.size(before) == 0:
                return 0
            done[id(part)] = rebuild(part, done)
            nothing = run.step(done[id(part)])
        plan = program.plans[id(node), id(fresh)] = done[id(program.root)]
        return run.size(plan)

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
        if isinstance(found, Bag) and len(found) and found.in_order():
            return each_once(found.take(np.arange(min(most, len(found)))).values_and_texts()[1])
        return self._texts_of(self._run, node, most)

    def near(self, name: str) -> list[str]:
        return self.schema.nearest_entities(name)

    def predicates(self, of: Entities, most: int) -> dict[str, list[str]]:
        snapshot, entities = self._run.snapshot, self._entities(of)
        if len(entities) == 1:
            entity = int(entities[0])
            outgoing, incoming = snapshot.outgoing(entity, 0, snapshot.statements), snapshot.incoming(entity, 0, snapshot.relations)
        else:
            outgoing, incoming = (np.sort(snapshot.touching(entities, backward=way)) for way in (False, True))
        split = snapshot.split(outgoing)
        result = {
            "forward": self._predicates_of(outgoing[:split], 0, snapshot.relation_offsets),
            "backward": self._predicates_of(incoming, 0, snapshot.relation_offsets),
            "value": self._predicates_of(outgoing[split:], snapshot.relations, snapshot.attribute_offsets),
        }
        return {way: sorted(names)[:most] for way, names in result.items()}

    def _predicates_of(self, statements: Numbers, first: int, offsets: memoryview) -> list[str]:
        """The predicates of sorted statements of a family, which begins at `first`: those of each are one run."""
        names, numbers, at, found = self._predicates, statements.data, 0, []
        while at < len(numbers):
            predicate = bisect_right(offsets, numbers[at] - first) - 1
            found.append(names[predicate])
            at = bisect_left(numbers, offsets[predicate + 1] + first, at)
        return found

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
        # Most often one entity, or none: of these an array costs more than it saves.
        if not len(entities) or (len(entities) == 1 and names.form[entities[0]] < 0):
            return []
        forms = names.form.take(entities)
        shared = (forms >= 0).nonzero()[0][:MOST_ENTITIES]
        if not len(shared):
            return []
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

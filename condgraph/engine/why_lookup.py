"""Lookups in a snapshot for explanations of empty answers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from condgraph.engine.algebra import Entities, Facts, Names, Node, Solutions, Table, Values, postorder
from condgraph.engine.bounds import watched
from condgraph.engine.execute.evidence import inputs_asked, whole
from condgraph.engine.execute.run import Run
from condgraph.engine.execute.sets import EMPTY, Bag, FactSet, Numbers
from condgraph.engine.passes import rebuild
from condgraph.engine.schema import MAX_COMPARED
from condgraph.engine.why_not import MAX_ENTITIES, folded

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.engine.why_not import Lookup, Program

#: Returns the texts of an operator's result, up to a number, in the order of answers.
TextsOf: TypeAlias = Callable[[Run, Node, int], list[str]]


#: Operators that look at the operators below them, so that these have to be rebuilt.
_LOOKING: Final = (Table, Solutions)


def local_lookup(run: Run, texts_of: TextsOf) -> Lookup:
    """Return the lookup for explanations of the answer of a run."""
    return _LocalLookup(run, texts_of)


class _LocalLookup:
    """Lookups in a snapshot that reuse the results of the answer's own run."""

    batch = 1

    def __init__(self, run: Run, texts_of: TextsOf) -> None:
        self._texts_of, self.schema = texts_of, run.snapshot.schema
        self.order: Sequence[Node] = run.order
        # Terms of rows are identified by their numbers in the scope.
        self._run, self._swapped_run = Run(run.snapshot, run.scope), Run(run.snapshot, run.scope)
        self._run.results = dict(run.results)
        # Keeps alive the operators that have these results.
        self._answer_run = run
        self._similar: dict[int, list[str]] = {}
        # The results of a program in which one operator replaces another, by the program's operators; None if it is empty.
        self._changed: dict[tuple[int, int], dict[int, Any] | None] = {}
        # Operators are identified by id(), so these must stay alive.
        self._created: list[Node] = []

    def size(self, node: Node) -> int:
        return self._run.size(node)

    def counts(self, nodes: Sequence[Node]) -> list[int]:
        return [self._run.size(node) for node in nodes]

    def changed(self, program: Program, changes: Sequence[tuple[Node, Node]]) -> list[int]:
        return [0 if (results := self._with(program, *change)) is None else len(results[id(program.root)]) for change in changes]

    def sample(self, program: Program, node: Node, fresh: Node, most: int) -> list[str]:
        self._swapped_run.results = self._with(program, node, fresh) or {}
        return self._texts(self._swapped_run, program.root, most)

    def _with(self, program: Program, node: Node, fresh: Node) -> dict[int, Any] | None:
        change = id(node), id(fresh)
        if change not in self._changed:
            self._created.append(fresh)
            self._changed[change] = self._run_with(program, node, fresh)
        return self._changed[change]

    def _run_with(self, program: Program, node: Node, fresh: Node) -> dict[int, Any] | None:
        """Run the operators above the replaced one, until one is empty as it was before: then the program is empty,
        too, and the result is None.
        """
        outcome, run = self._outcome(fresh), self._swapped_run
        results = run.results = {**self._run.results, id(node): outcome, id(fresh): outcome}
        previous, empty = node, type(outcome) is not FactSet and not len(outcome)
        for part in program.above(node):
            if empty and program.size(previous) == 0:
                return None
            if isinstance(part, _LOOKING):
                results[id(program.root)] = self._outcome(program.changed(node, fresh))
                break
            # An operator may look at its input: whether that is every entity, or a name.
            rebuilt = rebuild(part, {id(node): fresh}) if any(child is node for child in program.inputs[id(part)]) else part
            empty = run.step(rebuilt)
            results[id(part)] = results[id(rebuilt)]
            previous = part
        return results

    def values(self, node: Values, most: int) -> list[Any]:
        return list(self._outcome(node).values()[:most])

    def texts(self, node: Node, most: int) -> list[str]:
        self._outcome(node.entities if isinstance(node, Names) else node)
        return self._texts(self._run, node, most)

    def _texts(self, run: Run, node: Node, most: int) -> list[str]:
        result = run.results[id(node.entities if isinstance(node, Names) else node)]
        if isinstance(node, Entities | Names):
            snapshot = run.snapshot
            return list(dict.fromkeys(watched(snapshot.texts.take(snapshot.entity_name[result[:most]]))))
        if isinstance(result, Bag) and (size := len(result)) and (size == 1 or result.in_order()):
            return list(dict.fromkeys(watched((result.take(np.arange(most)) if size > most else result).texts())))
        return self._texts_of(run, node, most)

    def near(self, name: str) -> list[str]:
        return self.schema.nearest_entities(name)

    def predicates(self, of: Entities, most: int) -> dict[str, list[str]]:
        snapshot, entities = self._run.snapshot, self._outcome(of)
        if len(entities) == 1:
            entity = int(entities[0])
            outgoing, incoming = snapshot.outgoing(entity, 0, snapshot.statements), snapshot.incoming(entity, 0, snapshot.relations)
        else:
            outgoing, incoming = (np.sort(snapshot.touching(entities, backward=way)) for way in (False, True))
        split = bisect_left(outgoing.data, snapshot.relations)
        result = {
            "forward": self._predicates_of(outgoing[:split], 0, snapshot.relation_offsets),
            "backward": self._predicates_of(incoming, 0, snapshot.relation_offsets),
            "value": self._predicates_of(outgoing[split:], snapshot.relations, snapshot.attribute_offsets),
        }
        return {way: sorted(names)[:most] for way, names in result.items()}

    def _predicates_of(self, statements: Numbers, first: int, offsets: memoryview) -> list[str]:
        """Return the predicates of sorted statements of a family that begins at `first`; the statements of each
        predicate are one run.
        """
        names, numbers, at, result = self._predicates, statements.data, 0, []
        while at < len(numbers):
            predicate = bisect_right(offsets, numbers[at] - first) - 1
            result.append(names[predicate])
            at = bisect_left(numbers, offsets[predicate + 1] + first, at)
        return result

    def behind(self, plan: Node, facts: Facts) -> Facts | None:
        self._outcome(plan)
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
            for child, needed in inputs_asked(run, node, demand, EMPTY):
                if id(child) in leads:
                    known = demands.get(id(child))
                    demands[id(child)] = needed if known is None else known.joined(needed, run.snapshot)
        demand = demands.get(id(facts))
        if demand is None:
            return None
        fresh: Any = copy(facts)
        run.results[id(fresh)] = run.facts(facts).keep(demand.statements)
        self._created.append(fresh)
        return fresh  # type: ignore[no-any-return]

    def alike(self, of: Entities) -> list[str]:
        # Several changes need it for the same entities.
        result = self._similar.get(id(of))
        if result is None:
            result = self._similar[id(of)] = self._similar_to(of)
        return result

    def _outcome(self, node: Node) -> Any:
        for part in self._run.missing(node):
            self._run.step(part)
        return self._run.results[id(node)]

    def _similar_to(self, of: Entities) -> list[str]:
        snapshot = self._run.snapshot
        if snapshot.entities > MAX_COMPARED:
            # Folding millions of names would take longer than the program did.
            return []
        names = self._folded
        entities = self._outcome(of)
        # Usually there is one entity or none, where an array costs more than it saves.
        if not len(entities) or (len(entities) == 1 and names.form[entities[0]] < 0):
            return []
        forms = names.form.take(entities)
        shared = (forms >= 0).nonzero()[0][:MAX_ENTITIES]
        if not len(shared):
            return []
        entities, forms = entities[shared], forms[shared]
        similar = dict.fromkeys(name for form in dict.fromkeys(forms.tolist()) for name in names.spellings[form])
        for name in snapshot.texts.take(snapshot.entity_name[entities]):
            if name not in names.several:
                similar.pop(name, None)
        return list(similar)

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
        """The groups of similar names of the snapshot, computed once."""
        names: _FoldedNames | None = self.schema.kept.get("folded names")
        if names is None:
            names = self.schema.kept["folded names"] = _FoldedNames.of(self._run.snapshot)
        return names


@dataclass(frozen=True, slots=True)
class _FoldedNames:
    """Names of entities that differ only in spelling: `form` has, for each entity, the index of its group in
    `spellings`, or -1 if no other entity has a name of the group; `several` are names that several entities share.
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

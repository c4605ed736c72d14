"""Answers that a store computed with a query of its own. Evidence and explanations are fetched from the store on
first use and computed in process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.algebra import ById, ByName, Entities, Facts, Names, Objects, Scan, around
from condgraph.engine.algebra.operators import fields_of
from condgraph.engine.answer import Answer, labels_of_table, labels_plan
from condgraph.engine.bounds import check, kept, watched, within
from condgraph.engine.check import known_ids
from condgraph.engine.errors import DeadlineError
from condgraph.engine.evidence import EvidenceList
from condgraph.engine.execute import Run
from condgraph.engine.execute.evidence import trace_back
from condgraph.engine.store import plan_answer
from condgraph.engine.why_not import MAX_ENTITIES, folded

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node, Values
    from condgraph.engine.execute.grid import Grid
    from condgraph.engine.lowered import Lowered
    from condgraph.engine.store import KnownSchema, QueryStore, Request
    from condgraph.engine.why_not import Lookup, Program, WhyNot

#: Seconds for the explanations among the warnings of an answer: twice what the answer took, within these limits, and at
#: most a quarter of its timeout.
EXPLAINING: Final = (3.0, 30.0)
#: The most names fetched along with a count, and the most statements fetched around entities.
_MAX_NAMED: Final = 100
_MAX_FETCHED: Final = 1_000
#: In a large graph on a server, the number of names for which similar ones are looked up.
_MAX_SIMILAR: Final = 3


class ExplainedAnswer(Answer):
    """An answer whose explanations query a store."""

    def __init__(self, store: QueryStore, request: Request, lowered: Lowered, run: Any = None) -> None:
        super().__init__(
            run, lowered.plan, program=request.program, language=request.language, steps=lowered.steps,
            warnings=lowered.warnings, limit=request.limit,
        )  # fmt: skip
        self._store, self._notes = store, lowered.notes
        #: How long the answer took.
        self._seconds = monotonic() - request.begun

    def _contradicted(self) -> list[str]:
        """Report what contradicts the supporting statements, for declared predicates: one query for their subjects,
        besides the one for the evidence.
        """
        if not self._store.declared:
            return []
        seconds = self._part_of_timeout(EXPLAINING[1])
        try:
            with within(seconds):
                return _contradictions(self, self._store, self._store.declared)
        except DeadlineError:
            check()
            return [f"the search for contradicting statements did not end within {seconds:.3g} s"]

    @property
    def _explaining(self) -> float:  # type: ignore[override]
        least, most = EXPLAINING
        return self._part_of_timeout(min(max(least, 2 * self._seconds), most))

    def _part_of_timeout(self, seconds: float) -> float:
        return seconds if self._timeout is None else min(seconds, self._timeout / 4)

    def why_not(self, expected: Any = None, *, timeout: float | None = None) -> WhyNot:
        """Explain a missing value as answers in process do, from one state of the graph."""
        return self._store.steady(lambda: super(ExplainedAnswer, self).why_not(expected, timeout=timeout))

    def _searched(self, plan: Node, seconds: float | None, *, changes: bool, empty: bool) -> WhyNot | None:
        def search() -> WhyNot | None:
            return super(ExplainedAnswer, self)._searched(plan, seconds, changes=changes, empty=empty)

        return self._store.steady(search)

    def _lookup(self) -> Lookup:
        return _StoreLookup(self._store)


class StoredAnswer(ExplainedAnswer):
    """The answer to one program from a store that is not a snapshot.

    Its supporting statements are one further query, for evidence, checks, and steps that only the client can compute.
    """

    def _query(self, language: str) -> None:
        """Return None: a store has only the query that it ran."""

    @kept
    def _witness(self) -> Run:
        """The plan, run in process on its supporting statements."""
        return self._store.witness(self.plan)

    @kept
    def _local(self) -> Answer:
        """The answer computed from the supporting statements."""
        return self.replayed(self._witness)

    def ready(self, timeout: float | None = None) -> None:
        """Fetch the supporting statements of the answer within `timeout` seconds."""
        with within(timeout):
            self._witness  # noqa: B018 - it is kept

    @kept
    def evidence(self) -> EvidenceList:
        """The evidence of the answer: one further query, and one for the numbers of statements searched."""
        return EvidenceList(trace_back(self._witness, self.plan), self.plan, self._count_results)

    def evidence_of(self, row: int) -> EvidenceList:
        """Return the evidence of one row of a table."""
        return self._evidence_of(self._witness, row)

    def _grid(self) -> Grid:
        return self._local._grid()

    def _labels(self, source: str, column: str, names: Sequence[str]) -> Mapping[str, str]:
        """Return the labels of rows, by one further query."""
        plan = labels_plan(column, names)
        grid = plan_answer(self._store, plan)._grid()
        return labels_of_table(grid.values(), grid.cell_texts(), names)

    def _count_results(self, nodes: Sequence[Node], timeout: float | None = None) -> list[int]:
        return self.recounted(nodes, timeout)

    def recounted(self, nodes: Sequence[Node], timeout: float | None = None) -> list[int]:
        """Count the statements, or entities, that each operator yields on the store."""
        with within(timeout):
            return self._store.counted(nodes, known_ids(self._witness))


def _contradictions(answer: Answer, store: QueryStore, declared: Sequence[str]) -> list[str]:
    from condgraph.engine.conflicts import MAX_SUBJECTS, notices, same_in, statements_of

    trail = answer.evidence.trail
    snapshot = trail.run.snapshot
    statements = statements_of(snapshot, trail.statements, declared)
    owners = list(dict.fromkeys(watched(snapshot.subjects(statements).tolist())))
    if not owners:
        return []
    subjects = ById(tuple(snapshot.ident(owner) for owner in owners[:MAX_SUBJECTS]))
    neighbourhood = store.witness(Objects(Scan(subjects, tuple(declared)))).snapshot
    result = notices(neighbourhood, same_in(neighbourhood, snapshot, statements), declared, empty=False)
    if len(owners) > MAX_SUBJECTS:
        result.append(f"only {MAX_SUBJECTS:,} of {len(owners):,} subjects were searched for contradicting statements")
    return result


class _StoreLookup:
    """What an explanation looks up in a store. One query counts the results of any number of operators and returns
    the names of small results, one fetches the statements around entities, and each list of values is one more.
    """

    batch = 12
    order: Sequence[Node] = ()

    def __init__(self, store: QueryStore) -> None:
        self._store = store
        # Operators are identified by id(), so they must stay alive.
        self._pending: list[Node] = []
        self._sizes: dict[int, int] = {}
        # All texts of small results that the client computes.
        self._texts: dict[int, list[str]] = {}
        # All names of small results.
        self._names: dict[int, list[str]] = {}
        # Names by their folded form, and whether several entities share a name.
        self._similar: dict[str, list[str]] | None = None
        self._several: dict[str, bool] = {}

    @property
    def schema(self) -> KnownSchema:
        return self._store.naming_schema

    def size(self, node: Node) -> int:
        return self.counts((node,))[0]

    def counts(self, nodes: Sequence[Node]) -> list[int]:
        self._count([node for node in nodes if id(node) not in self._sizes])
        return [self._sizes[id(node)] for node in nodes]

    def _count(self, nodes: Sequence[Node]) -> None:
        # Statements count by their objects, which may be values.
        countable = [Objects(node) if isinstance(node, Facts) else node for node in nodes]
        counts = self._store.sizes(countable, _MAX_NAMED, statements=True) if nodes else ()
        self._pending += nodes
        sizes = self._sizes
        uncounted: list[Node] = []
        for node, size in zip(nodes, counts, strict=True):
            if size is None:
                uncounted.append(node)
                continue
            sizes[id(node)] = size[0]
            if isinstance(node, Entities) and len(size[1]) == size[0]:
                self._names[id(node)] = list(size[1])
        for node in uncounted:
            needed = fields_of(node, node.facets.strict)
            sizes[id(node)] = 0 if any(sizes.get(id(field)) == 0 for field in needed) else self._computed_count(node)

    def changed(self, program: Program, changes: Sequence[tuple[Node, Node]]) -> list[int]:
        return self.counts([program.changed(*change) for change in changes])

    def sample(self, program: Program, node: Node, fresh: Node, most: int) -> list[str]:
        return self.texts(program.changed(node, fresh), most)

    def _computed_count(self, node: Node) -> int:
        """Count the results of an operator that the client computes."""
        answer = plan_answer(self._store, node)
        if len(answer.values) <= _MAX_NAMED:
            self._texts[id(node)] = list(answer.plain_texts)
        return len(answer.values)

    def values(self, node: Values, most: int) -> list[Any]:
        return list(plan_answer(self._store, node, most).values)

    def texts(self, node: Node, most: int) -> list[str]:
        if id(node) in self._texts:
            return self._texts[id(node)][:most]
        known = self._names.get(id(node.entities if isinstance(node, Names) else node))
        return list(plan_answer(self._store, node, most).plain_texts) if known is None else list(dict.fromkeys(known[:most]))

    def near(self, name: str) -> list[str]:
        return self.schema.nearest_entities(name)

    def predicates(self, of: Entities, most: int) -> dict[str, list[str]]:
        lookup = self._local_lookup(of)
        if lookup is not None:
            return lookup.predicates(of, most)
        return {way: self.texts(node, most) for way, node in around(of).items()}

    def _local_lookup(self, of: Entities) -> Lookup | None:
        """Fetch the statements around entities that the program names, by one query; None if there may be many."""
        from condgraph.engine.why_lookup import local_lookup

        fetch = getattr(self._store, "around", None)
        if fetch is None or not isinstance(of, ById | ByName):
            return None
        ids, names = (of.ids, ()) if isinstance(of, ById) else ((), of.names)
        snapshot = fetch(ids, names, _MAX_FETCHED, values=True)
        return None if snapshot.statements >= _MAX_FETCHED else local_lookup(Run(snapshot), lambda *_: [])

    def behind(self, plan: Node, facts: Facts) -> Facts | None:
        return None

    def alike(self, of: Entities) -> list[str]:
        names = self._names.get(id(of))
        if names is None:
            names = (
                list(filter(self.schema.has_entity, of.names)) if isinstance(of, ByName) else self.texts(Names(of), MAX_ENTITIES)
            )
            self._names[id(of)] = names
            self._pending.append(of)
        names = list(dict.fromkeys(watched(names)))
        first = names[: self.batch]
        if names and self._similar is None:
            self._similar, several = self._every_folded()
            self._several.update(several)
        if any(name not in self._several for name in first):
            # One query counts the entities of each of these names and of the other names the program led to.
            other_names = [name for several in self._names.values() if len(several) < self.batch for name in several]
            unknown = [name for name in dict.fromkeys([*first, *other_names]) if name not in self._several][: 2 * self.batch]
            counts = self._store.sizes([ByName((name,)) for name in unknown])
            self._several.update((name, size is not None and size[0] > 1) for name, size in zip(unknown, counts, strict=True))
        matches = dict.fromkeys(name for name in first if self._several[name])
        own_names = set(names)
        for name in names if self._similar else names[:_MAX_SIMILAR]:
            form = folded(name)
            similar = self._similar.get(form, ()) if self._similar else self._similar_names(name)
            matches.update(dict.fromkeys(other for other in similar if other not in own_names and folded(other) == form))
        return list(matches)

    def _every_folded(self) -> tuple[dict[str, list[str]], dict[str, bool]]:
        """Return all names of a small graph by folded form, and whether several entities share each, where known;
        computed once per content of the graph.
        """
        schema = self.schema
        result: tuple[dict[str, list[str]], dict[str, bool]] | None = schema.kept.get("folded names")
        if result is None:
            alike, counts = dict[str, list[str]](), Counter(schema.every_name())
            for name in counts:
                alike.setdefault(folded(name), []).append(name)
            several = {name: number > 1 for name, number in counts.items()} if getattr(schema, "names_repeat", False) else {}
            result = schema.kept["folded names"] = alike, several
        return result

    def _similar_names(self, name: str) -> list[str]:
        """Return similar names from a large graph, which are looked up by prefix."""
        return [*self.near(name), *self.near(name.rpartition("/")[2].replace("_", " "))]

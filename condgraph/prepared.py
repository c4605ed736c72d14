"""Prepared programs: read once, run with other values each time (`Graph.prepare`).

Values go into the program that was read, never into a text (`languages.parameters`), so that every
store runs them as it runs any program. In process the plan is kept as well: names of entities make
no difference to it, and are left open (`snapshot_store`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.bounds import current, within
from condgraph.engine.tracing import collected, traced
from condgraph.languages.parameters import GivenText, given
from condgraph.languages.registry import PATTERN, answer, check_options, explain, template
from condgraph.query_options import QueryOptions
from condgraph.snapshot_store import OpenPlan, QuickAnswer, SnapshotStore, open_plan

if TYPE_CHECKING:
    from condgraph.engine.answer import Answer
    from condgraph.engine.conflicts import Prefer
    from condgraph.engine.execute.paths import Path
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.engine.store import Store
    from condgraph.languages.parameters import Template

#: Plans that are kept of one prepared program: one for each of the values that are no names of
#: entities.
_MOST_PLANS: Final = 256
#: The types of values that are all texts.
_TEXTS: Final = {str}


def prepare(graph: Any, program: Any, options: QueryOptions) -> PreparedProgram:
    """`Graph.prepare`."""
    prefer, options.prefer = options.prefer, None
    # A version stays as it is; what a preference decides changes with the graph.
    graph = graph._view(options)
    view = graph if prefer is None else graph._view(QueryOptions(prefer=prefer))
    view._store_of(options.engine)
    read, of_language = template(program, options.language), options.of_language()
    check_options(read.language, of_language)
    if (table := of_language.get("table")) is not None:
        from condgraph.languages.table.builder import clause_of

        clause_of(table)
    return PreparedProgram(graph, read, program, options.engine, of_language, prefer)


def run(graph: Any, program: Any, options: QueryOptions) -> Answer:
    """The answer to a program, which is prepared where it has parameters."""
    if options.parameters:
        prepared = prepare(graph, program, options)
        return prepared.run(options.parameters, timeout=options.timeout, limit=options.limit, cancelled=options.cancelled)
    answer: Answer = graph._ask(program, options)
    return answer


def explained(graph: Any, program: Any, options: QueryOptions) -> str:
    """What a program becomes with these options, as `Graph.explain` shows it."""
    with within(graph.timeout if options.timeout is None else options.timeout):
        if options.parameters:
            return prepare(graph, program, options).explain(**options.parameters)
        graph = graph._view(options)
        return explain(graph._store_of(options.engine), program, options.language, options.of_language())


class PreparedProgram:
    """A program of a graph with its parameters; call it with their values. Use it from any thread.

    It follows its graph: after a load, the next call is answered from what the graph holds then.
    """

    def __init__(
        self, graph: Any, read: Template, program: Any, engine: str | None, options: dict[str, Any], prefer: Prefer | None = None
    ) -> None:
        self._prefer = prefer
        self.graph, self.language, self.engine = graph, read.language, engine
        self.program: str = program if isinstance(program, str) else json.dumps(program, ensure_ascii=False, default=str)
        self._template, self._options = read, options
        self._open: dict[tuple[str, ...], OpenPlan | None] = {}
        self._of: Snapshot | None = None
        self._path: Path | None = None
        self._asked = frozenset(read.parameters)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters, in the order of their first mention."""
        return self._template.parameters

    def __repr__(self) -> str:
        return f"<PreparedProgram of {', '.join(self.parameters) or 'no parameters'}: {self.program[:80]}>"

    def __call__(self, /, **values: Any) -> Answer:
        """The answer with these values, within the timeout of the graph; all of them. Raises
        `OptionError` for values that are missing, not asked for, or of a type that is no name and
        no value.
        """
        path = self._path
        graph = self.graph
        # The short way: nothing but names, which are all there, and nobody who waits.
        if (
            path is not None and graph._storage.snapshot is path.snapshot and graph.timeout is None
            and current() is None and not collected()
        ):  # fmt: skip
            asked = self._asked
            if values.keys() == asked and set(map(type, values.values())) == _TEXTS:
                found = path.run(values)
                if found is not None:
                    return self._of_path(path, found, values)
        return self.run(values)

    def _of_path(self, path: Path, found: list[int], values: dict[str, Any]) -> Answer:
        def whole() -> Answer:
            return self._plainly(SnapshotStore(path.snapshot), given(self.parameters, values), None)

        quick = QuickAnswer(found, path.snapshot, whole, self.language, counted=path.counted)
        quick._program, quick.parameters = self.program, values
        return quick

    def run(
        self,
        values: Mapping[str, Any],
        *,
        timeout: float | None = None,
        limit: int | None = None,
        cancelled: Event | None = None,
    ) -> Answer:
        """The answer with these values; `timeout` (seconds), `limit` and `cancelled` as for
        `Graph.query`.
        """
        if timeout is None:
            timeout = self.graph.timeout

        def ask() -> Answer:
            if timeout is None and cancelled is None:
                return self._run(values, limit)
            with within(timeout, cancelled):
                return self._run(values, limit).keep_to(timeout)

        # The search for a pattern has a span of its own.
        return ask() if self.language == PATTERN else traced(self.graph, self.language, self.program, ask)

    def explain(self, /, **values: Any) -> str:
        """What the program becomes with these values, as `Graph.explain` shows it."""
        bound = self._template.bind(given(self.parameters, values))
        return explain(self._view()._store_of(self.engine), bound, self.language, self._options)

    def _view(self) -> Any:
        """The graph as it is now, as the preference leaves it."""
        return self.graph if self._prefer is None else self.graph._view(QueryOptions(prefer=self._prefer))

    def _run(self, values: Mapping[str, Any], limit: int | None) -> Answer:
        texts = given(self._template.parameters, values)
        store = self._view()._store_of(self.engine)
        found = None
        if type(store) is SnapshotStore and self._template.entities and limit is None:
            found = self._quickly(store, texts)
        if found is None:
            found = self._plainly(store, texts, limit)
        return found.asked_with(self.program, dict(values))

    def _plainly(self, store: Store, texts: dict[str, GivenText], limit: int | None) -> Answer:
        bound = self._template.bind(texts)
        if self.language == PATTERN:
            # Names in a pattern need not exist.
            options = {name: value for name, value in self._options.items() if name not in ("on_unknown", "period")}
            period = self._options.get("period")
            matches: Answer = self._view().match(bound, limit=limit, engine=self.engine, at=period, **options)
            return matches
        return answer(store, bound, self.language, limit, self._options)

    # -- with a plan that is kept ------------------------------------------------------------------

    def _quickly(self, store: SnapshotStore, texts: dict[str, GivenText]) -> Answer | None:
        """The answer by a plan that leaves names open; None where there is no such plan, or a name
        is not known.
        """
        snapshot, names = store.snapshot, self._template.entities
        if self._of is not snapshot:
            self._of, self._open, self._path = snapshot, {}, None
        plans = self._open
        others = tuple([text for name, text in texts.items() if name not in names])
        if others in plans:
            plan = plans[others]
        else:
            plan = open_plan(self._template, snapshot, texts, self._options)
            if len(plans) >= _MOST_PLANS:
                plans.clear()
            plans[others] = plan
        if plan is None or plan.snapshot is not snapshot:
            return None
        answer = plan.answer(texts, lambda: self._plainly(store, texts, None), self.language)
        if len(names) == len(texts):
            self._path = plan.path
        return answer

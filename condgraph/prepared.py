"""Prepared programs: parsed once, run many times with different values (`Graph.prepare`).

Values are bound in the parsed program and never pasted into a text (`languages.parameters`), so that every store runs
the result like any program. In process the plan is reused as well: names of entities do not affect it and remain open
until each run (`snapshot_store`).
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

#: The number of cached plans of a prepared program: one for each combination of values other than names of entities.
_MAX_PLANS: Final = 256
#: The set of types of values that are all texts.
_TEXTS: Final = {str}


def prepare(graph: Any, program: Any, options: QueryOptions) -> PreparedProgram:
    """`Graph.prepare`."""
    prefer, options.prefer = options.prefer, None
    # A version never changes, but the result of a preference changes with the graph.
    graph = graph._view(options)
    view = graph if prefer is None else graph._view(QueryOptions(prefer=prefer))
    view._store_of(options.engine)
    parsed, of_language = template(program, options.language), options.of_language()
    check_options(parsed.language, of_language)
    if (table := of_language.get("table")) is not None:
        from condgraph.languages.table.builder import clause_of

        clause_of(table)
    return PreparedProgram(graph, parsed, program, options.engine, of_language, prefer)


def run(graph: Any, program: Any, options: QueryOptions) -> Answer:
    """Return the answer to a program, which is prepared if it has parameters."""
    if options.parameters:
        prepared = prepare(graph, program, options)
        return prepared.run(options.parameters, timeout=options.timeout, limit=options.limit, cancelled=options.cancelled)
    answer: Answer = graph._ask(program, options)
    return answer


def explained(graph: Any, program: Any, options: QueryOptions) -> str:
    """Return the plan or the query of a program with these options, as `Graph.explain` does."""
    with within(graph.timeout if options.timeout is None else options.timeout):
        if options.parameters:
            return prepare(graph, program, options).explain(**options.parameters)
        graph = graph._view(options)
        return explain(graph._store_of(options.engine), program, options.language, options.of_language())


class PreparedProgram:
    """A parsed program with parameters. Call it with their values, from any thread.

    It follows its graph: after a load, the next call uses the new state. It is made by `Graph.prepare`.
    """

    def __init__(
        self, graph: Any, read: Template, program: Any, engine: str | None, options: dict[str, Any], prefer: Prefer | None = None
    ) -> None:
        self._prefer = prefer
        self.graph, self.language, self.engine = graph, read.language, engine
        self.program: str = program if isinstance(program, str) else json.dumps(program, ensure_ascii=False, default=str)
        self._template, self._options = read, options
        self._plans: dict[tuple[str, ...], OpenPlan | None] = {}
        self._of: Snapshot | None = None
        self._path: Path | None = None
        self._parameters = frozenset(read.parameters)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters, in the order of their first use."""
        return self._template.parameters

    def __repr__(self) -> str:
        return f"<PreparedProgram of {', '.join(self.parameters) or 'no parameters'}: {self.program[:80]}>"

    def __call__(self, /, **values: Any) -> Answer:
        """Run the program with parameter values given as keywords, and return the answer with all its values, within
        the timeout of the graph. Raises `OptionError` if values are missing or unknown, or have a type that is
        neither a name nor a value.
        """
        path = self._path
        graph = self.graph
        # The fast path: all values are texts, and there is no deadline and no tracing.
        if (
            path is not None and graph._storage.snapshot is path.snapshot and graph.timeout is None
            and current() is None and not collected()
        ):  # fmt: skip
            names = self._parameters
            if values.keys() == names and set(map(type, values.values())) == _TEXTS:
                entities = path.run(values)
                if entities is not None:
                    return self._of_path(path, entities, values)
        return self.run(values)

    def _of_path(self, path: Path, found: list[int], values: dict[str, Any]) -> Answer:
        def complete_answer() -> Answer:
            return self._plainly(SnapshotStore(path.snapshot), given(self.parameters, values), None)

        quick = QuickAnswer(found, path.snapshot, complete_answer, self.language, counted=path.counted)
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
        """Run the program with parameter values. `timeout` (in seconds), `limit` and `cancelled` are as for
        `Graph.query`.
        """
        if timeout is None:
            timeout = self.graph.timeout

        def ask() -> Answer:
            if timeout is None and cancelled is None:
                return self._run(values, limit)
            with within(timeout, cancelled):
                return self._run(values, limit).keep_to(timeout)

        # A search for a pattern is traced by `match`.
        return ask() if self.language == PATTERN else traced(self.graph, self.language, self.program, ask)

    def explain(self, /, **values: Any) -> str:
        """Return the plan of the program with these values, or its query, as `Graph.explain` does."""
        bound = self._template.bind(given(self.parameters, values))
        return explain(self._view()._store_of(self.engine), bound, self.language, self._options)

    def _view(self) -> Any:
        """Return the current graph, with the conflicts resolved that the preference decides."""
        return self.graph if self._prefer is None else self.graph._view(QueryOptions(prefer=self._prefer))

    def _run(self, values: Mapping[str, Any], limit: int | None) -> Answer:
        texts = given(self._template.parameters, values)
        store = self._view()._store_of(self.engine)
        result = None
        if type(store) is SnapshotStore and self._template.entities and limit is None:
            result = self._quickly(store, texts)
        if result is None:
            result = self._plainly(store, texts, limit)
        return result.asked_with(self.program, dict(values))

    def _plainly(self, store: Store, texts: dict[str, GivenText], limit: int | None) -> Answer:
        bound = self._template.bind(texts)
        if self.language == PATTERN:
            # A pattern may contain names that the graph does not have.
            options = {name: value for name, value in self._options.items() if name not in ("on_unknown", "period")}
            period = self._options.get("period")
            matches: Answer = self._view().match(bound, limit=limit, engine=self.engine, at=period, **options)
            return matches
        return answer(store, bound, self.language, limit, self._options)

    # -- with a cached plan ------------------------------------------------------------------------

    def _quickly(self, store: SnapshotStore, texts: dict[str, GivenText]) -> Answer | None:
        """Answer by a cached plan with open names. Returns None if there is no such plan or a name is unknown."""
        snapshot, names = store.snapshot, self._template.entities
        if self._of is not snapshot:
            self._of, self._plans, self._path = snapshot, {}, None
        plans = self._plans
        fixed = tuple([text for name, text in texts.items() if name not in names])
        if fixed in plans:
            plan = plans[fixed]
        else:
            plan = open_plan(self._template, snapshot, texts, self._options)
            if len(plans) >= _MAX_PLANS:
                plans.clear()
            plans[fixed] = plan
        if plan is None or plan.snapshot is not snapshot:
            return None
        answer = plan.answer(texts, lambda: self._plainly(store, texts, None), self.language)
        if len(names) == len(texts):
            self._path = plan.path
        return answer

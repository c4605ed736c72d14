"""Asking questions whose answers are known, one after the other, and judging what comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from condgraph.engine.bounds import check, within
from condgraph.engine.errors import OptionError, nearest
from condgraph.evaluate.cases import Case, Cases
from condgraph.evaluate.control import Control
from condgraph.evaluate.measures import judge
from condgraph.evaluate.report import AskReport, Row

if TYPE_CHECKING:
    from condgraph.graph import Graph
    from condgraph.models.base import ChatModel


def evaluate_ask(
    graph: Graph,
    cases: Sequence[Case],
    llm: Any,
    *,
    on_row: Callable[[Row], object] | None = None,
    timeout: float | None = None,
    **options: Any,
) -> AskReport:
    """Ask every question of `cases` (`read_cases` reads them), and judge the answers, beside a
    control without a model: the program of the nearest demonstration with its things swapped.

    `llm` and `options` are those of `Graph.ask`, but `transcript`: record with a `Recording` as the
    model. Demonstrations are those of the graph. A question's source, where it says one, scopes it;
    it may be told by the end of its path. `timeout` is in seconds, of all questions; `on_row` is
    called after each one. Only `DeadlineError` and `CancelledError` end an evaluation early, and
    errors of options: what a model does wrong is counted.
    """
    from condgraph.models.adapters import model_of

    model = model_of(llm)
    if "transcript" in options:
        raise OptionError("transcript is not an option of an evaluation", hint="llm=Recording(model_of(...), path)")
    control = Control(graph)
    rows: list[Row] = []
    with within(timeout):
        sources = [one.name for one in graph.schema().sources]
        for case in cases:
            check()
            source = _source(case.source, sources)
            row = _asked(graph, case, source, model, control, options)
            rows.append(row)
            if on_row is not None:
                on_row(row)
    plain = {name: value for name, value in options.items() if isinstance(value, str | int | float | bool)}
    dataset, left_out = (cases.dataset, cases.left_out) if isinstance(cases, Cases) else ("", ())
    return AskReport(model.name, dataset, tuple(rows), left_out, len(graph.demos), plain)


def _source(wanted: str | None, sources: Sequence[str]) -> str | None:
    """The source of a graph that a question means: by its name, or by the end of its path."""
    if wanted is None or wanted in sources:
        return wanted
    parts = wanted.removesuffix(".csv").removesuffix(".tsv").split("/")
    for many in range(len(parts)):
        end = "/".join(parts[many:])
        found = [name for name in sources if name.removesuffix(".csv").removesuffix(".tsv") in (end, end.replace("/", "-"))]
        if len(found) == 1:
            return found[0]
    raise OptionError(
        f"the graph has no source {wanted!r}, which a question is about",
        candidates=nearest(wanted, sources),
        hint="load it by that name",
    )


def _asked(graph: Graph, case: Case, source: str | None, model: ChatModel, control: Control, options: dict[str, Any]) -> Row:
    begin = time.perf_counter()
    found = graph.ask(case.question, model, **{**options, **({} if source is None else {"source": source})})
    seconds = time.perf_counter() - begin
    given = None if found.answer is None else tuple(found.answer.texts)
    without, program = control.answer(case.question, source)
    last = next((one for one in reversed(found.attempts) if one.answer is found.answer), None) or (found.attempts or (None,))[-1]
    return Row(
        case.question,
        case.answers,
        given,
        found.status,
        judge(given, case.answers),
        None if without is None else tuple(without),
        judge(without, case.answers),
        "" if last is None else last.program,
        program,
        found.source if source is None else source,
        tuple(one.stage for one in found.attempts if one.stage is not None),
        len(found.attempts),
        found.calls,
        found.usage.prompt_tokens,
        found.usage.completion_tokens,
        seconds,
        "" if found.answer is not None or not found.attempts else found.attempts[-1].error,
    )

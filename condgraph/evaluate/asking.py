"""Evaluation of questions whose answers are known, with a model or with the control without one."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from condgraph.ask.prompt import Known, Mention, known_of, masked, mentions_in
from condgraph.engine.bounds import check, within
from condgraph.engine.errors import CondgraphError, InterruptedQueryError, OptionError, nearest
from condgraph.evaluate.measures import judge
from condgraph.evaluate.readers import Case, Cases
from condgraph.evaluate.report import AskReport, Row

if TYPE_CHECKING:
    from condgraph.graph import Graph
    from condgraph.models.chat import ChatModel


# -- control -----------------------------------------------------------------------------------------
# The control: no model, but the program of the nearest demonstration, with its things swapped for
# those of the question. What a model adds is what it is better than this.


#: Demonstrations that are looked at until one has things that can be swapped.
_LOOKED_AT = 8
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Control:
    """Answers questions by the demonstrations of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def answer(self, question: str, source: str | None = None) -> tuple[list[str] | None, str]:
        """The texts of the answer, None where there is none, and the program that was run. The
        question's own demonstration, if it has one, is not looked at.
        """
        known = known_of(self._graph._store_of(None), self._graph._survey())
        found = mentions_in(question, known)
        for similar in self._graph.demos.similar(masked(question, found), _LOOKED_AT, without=" ".join(question.split())):
            demo = similar.demo
            program = swapped(demo.program, demo.question, _things(demo.question, known), question, found)
            if program is None:
                continue
            where = source if source is not None else demo.source
            options: dict[str, Any] = {} if where is None or demo.language != "query" else {"source": where}
            try:
                return self._graph.query(program, **options).texts, program
            except InterruptedQueryError:
                raise
            except CondgraphError:
                return None, program
        return None, ""


def _things(question: str, known: Known) -> list[Mention]:
    return mentions_in(question, known)


def swapped(program: str, old: str, old_things: Sequence[Mention], new: str, new_things: Sequence[Mention]) -> str | None:
    """The program of one question with the things and numbers of another in place of its own, in
    their order; None where they are not as many, or none of them stands in the program.
    """
    if len(old_things) != len(new_things):
        return None
    swaps: dict[str, str] = {}
    for before, after in zip(old_things, new_things, strict=True):
        name = after.names[0] if after.names else after.text
        for text in (*before.names, before.text):
            swaps.setdefault(text.casefold(), name)
    numbers = _outside(old, old_things), _outside(new, new_things)
    if len(numbers[0]) == len(numbers[1]):
        for before_number, after_number in zip(*numbers, strict=True):
            swaps.setdefault(before_number, after_number)
    if not swaps:
        # The two ask the same of nothing in particular.
        return program
    found = 0

    def swap(match: re.Match[str]) -> str:
        nonlocal found
        found += 1
        name = swaps[match[0].casefold()]
        quote = program[match.start() - 1 : match.start()]
        return name.replace("\\", "\\\\").replace(quote, "\\" + quote) if quote in ("'", '"') else name

    texts = sorted(swaps, key=len, reverse=True)
    result = re.sub(rf"(?<!\w)(?:{'|'.join(map(re.escape, texts))})(?!\w)", swap, program, flags=re.IGNORECASE)
    return result if found else None


def _outside(question: str, things: Sequence[Mention]) -> list[str]:
    """The numbers of a question that are no part of the things it names."""
    return [found[0] for found in _NUMBER.finditer(question) if not any(one.start <= found.start() < one.end for one in things)]


# -- asking ------------------------------------------------------------------------------------------


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

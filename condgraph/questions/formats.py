"""Questions as files: the data set's JSON, JSON lines with everything, CSV."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import IO, Any, Final

from condgraph.engine.delimited import csv_line
from condgraph.engine.errors import LoadError, OptionError, nearest
from condgraph.questions.record import Question

FORMATS: Final = ("jsonl", "json", "csv", "text")
_COLUMNS: Final = ("id", "question", "answer", "choices", "kind", "hops", "kopl", "sparql", "cypher", "llm_query")


def kqapro(question: Question) -> dict[str, Any]:
    """A record as the data set has it, which the tools of its baselines read."""
    return {
        "question": question.question,
        "choices": list(question.choices),
        "program": question.program,
        "sparql": question.sparql or "",
        "answer": question.answer,
    }


def write(questions: Iterable[Question], to: IO[str], form: str = "jsonl") -> int:
    """Write questions as they come; how many there were.

    "json" is the data set's list, "jsonl" has one record with everything a line, "csv" the texts of
    a record in columns, choices with semicolons between them, "text" question and answer with a tab
    between them.
    """
    if form not in FORMATS:
        raise OptionError(f"questions are written as {', '.join(FORMATS)}, not {form!r}", candidates=nearest(form, FORMATS))
    count = 0
    if form == "csv":
        to.write(csv_line(_COLUMNS))
    elif form == "json":
        to.write("[")
    for count, question in enumerate(questions, 1):
        if form == "csv":
            found = {**question.as_dict(), "choices": ";".join(question.choices)}
            to.write(csv_line(found[name] for name in _COLUMNS))
        elif form == "json":
            to.write(("" if count == 1 else ",") + "\n" + json.dumps(kqapro(question), ensure_ascii=False))
        elif form == "text":
            to.write(f"{question.question}\t{question.answer}\n")
        else:
            to.write(json.dumps(question.as_dict(), ensure_ascii=False) + "\n")
    if form == "json":
        to.write("\n]\n")
    return count


def read(lines: Iterable[str]) -> Iterator[Question]:
    """The questions of JSON lines; raises `LoadError`, with the line, for what is none."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found = Question.of(json.loads(line))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                raise LoadError(f"it is no question: {type(error).__name__} {error}", row=number) from None
            yield found

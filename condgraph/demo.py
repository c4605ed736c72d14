"""The demonstration (`condgraph demo`): load the sample data, query across a table, a knowledge graph and a temporal
one, and show answers with evidence.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import condgraph
from condgraph.samples import FOLDER, SAMPLES, copy_to
from condgraph.samples.recording import ask_recorded

#: The number of facts shown below an answer.
SHOWN_EVIDENCE = 8
#: The question in plain words, which is one of the recorded run.
ASKED = "How high is Annapurna I?"


@dataclass(frozen=True, slots=True)
class Question:
    """A question in English, the kinds of data it combines, and its program."""

    text: str
    crosses: str
    program: str


QUESTIONS = (
    Question(
        "Which mountains are higher than 7,000 m?",
        "the table",
        "FindAll() FilterNum(height, 7000 m, >) QueryName()",
    ),
    Question(
        "Which European members of NATO drive on the left?",
        "the knowledge graph",
        "Find(NATO) Relate(member of, backward) FilterStr(driving side, left)"
        " Find(Europe) Relate(continent, backward) And() QueryName()",
    ),
    Question(
        "Who was head of government of the United Kingdom in 1974?",
        "the temporal knowledge graph",
        "Find(United Kingdom) Relate(head of government, forward) QFilterYear(start time, 1974, <=) QFilterYear(end time, 1974, >=)"
        " QueryName()",
    ),
    Question(
        "Who went to the University of Oxford and was in 1984 head of government of a country with a mountain above 4,000 m?",
        "all three",
        "FindAll() FilterNum(height, 4000 m, >) Relate(country, forward) Relate(head of government, forward)"
        " QFilterYear(start time, 1984, <=) QFilterYear(end time, 1984, >=)"
        " Find(University of Oxford) Relate(educated at, backward) And() QueryName()",
    ),
)


def run_demo(out: TextIO, keep: Path | None = None) -> None:
    """Write the demonstration to `out`. With `keep`, leave the sample files and their store in that folder.

    Raises `FileExistsError` if the folder contains other files with the same names.
    """
    if keep is None:
        with condgraph.open("memory:") as graph:
            _show(graph, FOLDER, out)
        return
    copy_to(keep)
    store = keep / "store"
    with condgraph.open(store) as graph:
        _show(graph, keep, out)
    out.write(f"\nThe files and their store are kept:\n  condgraph query -d {shlex.quote(str(store))} '{QUESTIONS[0].program}'\n")


def _show(graph: condgraph.Graph, folder: Path, out: TextIO) -> None:
    for sample in SAMPLES:
        report = graph.load(folder / sample.file, format=sample.format, **sample.options)
        out.write(f"{sample.about}: {report}\n")
    for question in QUESTIONS:
        answer = graph.kopl(question.program)
        out.write(f"\n{question.text}  (asked of {question.crosses})\n  {question.program}\n")
        for warning in answer.warnings:
            out.write(f"  warning: {warning}\n")
        for text in answer.texts:
            out.write(f"  = {text}\n")
        for fact in answer.evidence[:SHOWN_EVIDENCE]:
            out.write(f"    because {fact}\n")
        if len(answer.evidence) > SHOWN_EVIDENCE:
            out.write(f"    and {len(answer.evidence) - SHOWN_EVIDENCE} more facts\n")
    _ask(graph, out)


def _ask(graph: condgraph.Graph, out: TextIO) -> None:
    """Ask one question in plain words, with the recorded calls of a language model."""
    outcome = ask_recorded(graph, ASKED)
    out.write(f"\n{ASKED}  (asked in words; {outcome.model} wrote the program, a recording of it plays here)\n")
    for attempt in outcome.attempts:
        for line in attempt.program.splitlines():
            out.write(f"  {line}\n")
    for text in outcome.texts:
        out.write(f"  = {text}\n")
    for fact in [] if outcome.answer is None else outcome.answer.evidence[:SHOWN_EVIDENCE]:
        out.write(f"    because {fact}\n")

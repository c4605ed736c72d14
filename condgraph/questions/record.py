"""Generated questions as records and as files: the data set's JSON, JSON lines, CSV."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Final

from condgraph.engine.delimited import csv_line
from condgraph.engine.errors import LoadError, OptionError, nearest
from condgraph.questions.description import Call

# -- record ------------------------------------------------------------------------------------------


#: The categories of KQA Pro's Table 5; "Zero-shot" depends on a split (`splits`).
CATEGORIES: Final = ("Multi-hop", "Qualifier", "Comparison", "Logical", "Count", "Verify")

#: The types of answers.
ANSWERS: Final = ("entity", "relation", "count", "yes or no", "number", "time", "text")


@dataclass(frozen=True, slots=True)
class Question:
    """A question that one answer is right for.

    `program` is KoPL as the data set's JSON, `kopl` its text, `serial` the serialisation of the
    baselines; they are empty where only an LLM query asks the question (sums of a table, say).
    `sparql` and `cypher` (with `parameters`) are what `explain` gives for RDF stores and Neo4j,
    `pattern` the triples of a graph pattern; None where there is none. `hops` counts relations,
    attributes, qualifiers and comparisons. `canonical` is the question in template words, where
    `question` is a paraphrase of it. `fewer` says why fewer than ten choices are known, where that
    is so; "unknown" stands for the others. `answer_type` is one of `ANSWERS`.
    """

    id: str
    question: str
    answer: str
    kind: str
    hops: int
    categories: tuple[str, ...]
    choices: tuple[str, ...]
    program: list[dict[str, Any]] = field(default_factory=list)
    sparql: str | None = None
    cypher: str | None = None
    parameters: dict[str, Any] | None = None
    llm_query: str | None = None
    pattern: tuple[tuple[str, str, str], ...] | None = None
    entities: tuple[str, ...] = ()
    canonical: str | None = None
    fewer: str | None = None
    answer_type: str = ""

    @property
    def language(self) -> str:
        """The language of the program that gave the answer: "kopl" or "llm_query"."""
        return "kopl" if self.program else "llm_query"

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions of the program in order; of an LLM query those of its lines."""
        if self.program:
            return tuple(step["function"] for step in self.program)
        lines = (self.llm_query or "").splitlines()
        return tuple(line.partition('"')[2].partition("(")[0] for line in lines)

    @property
    def kopl(self) -> str:
        """The program in KoPL's text form, every text quoted."""
        return " ".join(
            f"{step['function']}({', '.join(json.dumps(text, ensure_ascii=False) for text in step['inputs'])})"
            for step in self.program
        )

    @property
    def serial(self) -> str:
        """The program as the data set's baselines write it; empty where a text of it has one of
        their marks.
        """
        texts = [text for step in self.program for text in step["inputs"]]
        if any("<arg>" in text or "<func>" in text for text in texts):
            return ""
        return " <func> ".join(" <arg> ".join([step["function"], *step["inputs"]]) for step in self.program)

    def as_dict(self) -> dict[str, Any]:
        """Everything, as JSON has it."""
        return {
            "id": self.id,
            "question": self.question,
            **({} if self.canonical is None else {"canonical": self.canonical}),
            "answer": self.answer,
            "answer_type": self.answer_type,
            "choices": list(self.choices),
            **({} if self.fewer is None else {"fewer": self.fewer}),
            "kind": self.kind,
            "hops": self.hops,
            "categories": list(self.categories),
            "program": self.program,
            "kopl": self.kopl,
            "serial": self.serial,
            "sparql": self.sparql,
            "cypher": self.cypher,
            "parameters": self.parameters,
            "llm_query": self.llm_query,
            "pattern": None if self.pattern is None else [list(triple) for triple in self.pattern],
            "entities": list(self.entities),
        }

    @classmethod
    def of(cls, found: dict[str, Any]) -> Question:
        """The question that `as_dict` wrote."""
        names = ("id", "question", "answer", "kind", "hops", "program", "sparql", "cypher", "parameters", "llm_query")
        pattern = found.get("pattern")
        return cls(
            **{name: found[name] for name in names},
            categories=tuple(found["categories"]),
            choices=tuple(found["choices"]),
            pattern=None if pattern is None else tuple((s, p, o) for s, p, o in pattern),
            entities=tuple(found["entities"]),
            canonical=found.get("canonical"),
            fewer=found.get("fewer"),
            answer_type=found.get("answer_type", ""),
        )


def categories_of(calls: Sequence[Call], hops: int) -> tuple[str, ...]:
    """The categories that a program falls into."""
    functions = {function for function, _ in calls}
    compares = functions & {"SelectBetween", "SelectAmong"} or any(
        function.startswith(("Filter", "QFilter", "Verify")) and texts[-1] in ("<", ">", "<=", ">=", "!=")
        for function, texts in calls
    )
    there = {
        "Multi-hop": hops > 1,
        "Qualifier": any(
            "Qualifier" in function or function.startswith("QFilter") or function.endswith("Condition") for function in functions
        ),
        "Comparison": bool(compares),
        "Logical": bool(functions & {"And", "Or"}),
        "Count": "Count" in functions,
        "Verify": any(function.startswith("Verify") for function in functions),
    }
    return tuple(name for name in CATEGORIES if there[name])


# -- formats -----------------------------------------------------------------------------------------
# Questions as files: the data set's JSON, JSON lines with everything, CSV.


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

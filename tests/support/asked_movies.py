"""Questions over Movies with answers that two language models agreed on, writing Cypher of their own, and KoPL or
pattern programs for them (`tests/native/movies_questions.toml`), to run on any graph of Movies.

Nodes are compared by name, numbers by value, lists by their items (a list of one item as that item). The agreed answer
is either all rows, in any order, or the set of values of the first column; a program with more columns returns them in
the same order.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from condgraph.graph import Graph
from tests.support.plain_rows import rows_of

_FILE = Path(__file__).parents[1] / "native" / "movies_questions.toml"


@dataclass(frozen=True)
class Question:
    """A question, the program that answers it, and its options. `columns` are nodes of a pattern, `cells` the wanted
    columns of a table if not all; `distinct`: the agreed rows repeat, and the program's set does not.
    """

    text: str
    program: str
    language: str
    table: str | None = None
    columns: tuple[str, ...] = ()
    cells: tuple[int, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    distinct: bool = False

    def rows(self, graph: Graph) -> list[tuple[Any, ...]]:
        """Return the answer of a graph, as rows of plain values."""
        if self.language == "pattern":
            # All exact matches, and nothing else.
            matches = graph.match(self.program, k=None, directed=True, **self.options)
            assert all(solution.total == 0 for solution in matches.solutions)
            return [tuple(solution[name].name for name in self.columns) for solution in matches.solutions]
        table = {} if self.table is None else {"table": self.table}
        answer = graph.query(self.program, language=self.language, **table, **self.options)
        rows = rows_of(answer)
        return [tuple(row[column] for column in self.cells) for row in rows] if self.cells else rows


def questions() -> list[Question]:
    """Return all questions of the file."""
    with _FILE.open("rb") as file:
        records = tomllib.load(file)["question"]
    return [
        Question(**{key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}) for record in records
    ]


def agreed(data: Path) -> dict[str, dict[str, Any]]:
    """Return the agreed answers without LIMIT, by question; `data` is the folder of data sets."""
    with (data / "text2cypher_movies" / "questions.jsonl").open(encoding="utf-8") as lines:
        return {record["question"]: record for record in map(json.loads, lines) if not record["limited"]}


def difference(question: Question, record: dict[str, Any], rows: Sequence[tuple[Any, ...]]) -> str:
    """Describe how rows differ from the agreed answer; return an empty text if they do not."""
    if record["rows"] is None:
        expected: Any = {read_value(value) for value in record["answer"]}
        actual: Any = {row[0] for row in rows}
    else:
        expected = Counter(tuple(map(read_value, row)) for row in record["rows"])
        actual = Counter(rows)
        if question.distinct:
            expected = Counter(set(expected))
    if actual == expected:
        return ""
    return f"{question.text}: {sorted(map(str, actual))[:5]}, and the agreed answer is {sorted(map(str, expected))[:5]}"


def read_value(value: Any) -> Any:
    """Read a value of an agreed answer: lists are written as JSON, nodes as `node:NAME`."""
    if isinstance(value, str):
        if value.startswith("node:"):
            return value.removeprefix("node:")
        if value.startswith('["'):
            items = tuple(sorted(json.loads(value)))
            return items if len(items) > 1 else items[0]
    return value

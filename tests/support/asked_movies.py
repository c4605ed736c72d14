"""Questions over Movies whose answers two language models agreed on, in Cypher of their own, and
programs of ours for them (`tests/native/movies_questions.toml`), to be asked of any graph that holds
Movies.

Nodes are compared by name, numbers by value, lists as what they hold (one value where they hold
one). What two results agree on is either all rows, in any order, or the values of the first column
as a set; a program that is about more columns gives the same ones in the same order.
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
    """A question, the program that answers it, and how the program is asked. `columns` are nodes of a
    pattern, `cells` columns of a table where not all are asked for; `distinct`: the agreed rows
    repeat, and a set of ours does not.
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
        """What a graph answers, as rows of plain values."""
        if self.language == "pattern":
            # Only what is written exactly so, and all of it.
            found = graph.match(self.program, k=None, directed=True, **self.options)
            assert all(solution.total == 0 for solution in found.solutions)
            return [tuple(solution[name].name for name in self.columns) for solution in found.solutions]
        table = {} if self.table is None else {"table": self.table}
        answer = graph.query(self.program, language=self.language, **table, **self.options)
        rows = rows_of(answer)
        return [tuple(row[at] for at in self.cells) for row in rows] if self.cells else rows


def questions() -> list[Question]:
    """All questions of the file."""
    with _FILE.open("rb") as file:
        read = tomllib.load(file)["question"]
    return [Question(**{key: tuple(value) if isinstance(value, list) else value for key, value in one.items()}) for one in read]


def agreed(data: Path) -> dict[str, dict[str, Any]]:
    """The records that have no LIMIT, by question; `data` is the folder of data sets."""
    with (data / "text2cypher_movies" / "questions.jsonl").open(encoding="utf-8") as lines:
        return {record["question"]: record for record in map(json.loads, lines) if not record["limited"]}


def difference(question: Question, record: dict[str, Any], rows: Sequence[tuple[Any, ...]]) -> str:
    """What is wrong with rows that answer a question; empty where nothing is."""
    if record["rows"] is None:
        wanted: Any = {read_value(value) for value in record["answer"]}
        found: Any = {row[0] for row in rows}
    else:
        wanted = Counter(tuple(map(read_value, row)) for row in record["rows"])
        found = Counter(rows)
        if question.distinct:
            wanted = Counter(set(wanted))
    if found == wanted:
        return ""
    return f"{question.text}: {sorted(map(str, found))[:5]}, and the agreed answer is {sorted(map(str, wanted))[:5]}"


def read_value(value: Any) -> Any:
    """A value of an agreed answer: lists are written as JSON, nodes as `node:NAME`."""
    if isinstance(value, str):
        if value.startswith("node:"):
            return value.removeprefix("node:")
        if value.startswith('["'):
            found = tuple(sorted(json.loads(value)))
            return found if len(found) > 1 else found[0]
    return value

"""Runs a Bolt query in a worker process and returns its rows as packed records, with their metadata.

A reply is a map as JSON (`fields`, `warnings`, `generation`, possibly `plan`), then each record as a packed list, each
after its length.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from condgraph.bolt.catalog import procedures, shown, visualization
from condgraph.bolt.packstream import packed, unpacked
from condgraph.bolt.remote import RemoteValues
from condgraph.bolt.terms import Terms, Values, parameter
from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError, ParseError, StoreBusyError
from condgraph.engine.execute.rowset import RowSet, python_terms
from condgraph.languages.cypher.parse import all_branches
from condgraph.languages.cypher.procedures import CallingQuery
from condgraph.languages.cypher.tokens import WRITE_CLAUSES

if TYPE_CHECKING:
    from condgraph.engine.answer import Answer
    from condgraph.graph import Graph

_LENGTH: Final = struct.Struct(">I")
_COMMENT: Final = r"(?:\s++|//[^\n]*+(?:\n|\Z)|/\*(?:[^*]|\*(?!/))*+\*/)*+"
_EXPLAIN: Final = re.compile(rf"{_COMMENT}EXPLAIN\b", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W\d]\w*")
#: Most repetitions of a query if the graph is loaded between its parts.
_REPEATS: Final = 3
#: Rows that are packed between two checks of the deadline.
_CHUNK: Final = 256


def answered(graph: Graph, arguments: dict[str, Any]) -> bytes:
    """Return the reply to a query (`_answered`).

    Rows of graphs on servers are read in several queries: they are read again if the graph was loaded in between, and
    `StoreBusyError` is raised if that happens each time.
    """
    if "://" not in graph.place:
        snapshot = graph.current
        terms = Terms(snapshot, element_ids=arguments["element_ids"], utc=arguments["utc"])
        return _reply(graph, arguments, terms, str(snapshot.folder or ""))
    for _ in range(_REPEATS):
        generation = _generation(graph)
        reply = _reply(
            graph, arguments, RemoteValues(graph, element_ids=arguments["element_ids"], utc=arguments["utc"]), generation
        )
        if _generation(graph) == generation:
            return reply
    raise StoreBusyError("the graph was loaded while the query was read", hint="ask again")


def _generation(graph: Graph) -> str:
    """Return a name for the content of a graph on a server."""
    status = graph.status()
    about = repr([sorted(status.counts.items()), [(source.name, source.content) for source in status.sources]])
    return blake2b(about.encode(), digest_size=12).hexdigest()


def _reply(graph: Graph, arguments: dict[str, Any], terms: Terms | RemoteValues, generation: str) -> bytes:
    """Return the reply to a query.

    `arguments` has its `program` and `parameters` (PackStream in base 64), the most rows (`limit`) and bytes (`bytes`),
    `element_ids` and `utc` (`terms.Terms`), and data for procedures about the connection (`client`).
    """
    text: str = arguments["program"]
    meta: dict[str, Any] = {"generation": generation, "warnings": []}
    if (drawn := visualization(text, graph, arguments["element_ids"])) is not None:
        return _framed(meta | {"fields": ["nodes", "relationships"]}, [packed(list(drawn))])
    parameters = {name: parameter(value) for name, value in unpacked(base64.b64decode(arguments["parameters"])).items()}
    catalogued = procedures(graph, arguments["client"])
    explained = _EXPLAIN.match(text)
    if explained is not None:
        # Keeps the positions in messages.
        text = " " * explained.end() + text[explained.end() :]
    query = CallingQuery(shown(text), parameters, catalogued)
    try:
        if explained is not None:
            plan = graph.explain(query, language="cypher", on_unknown="empty")
            steps = {"operatorType": "ProduceResults", "args": {"Details": str(plan)}, "identifiers": [], "children": []}
            return _framed(meta | {"fields": [], "plan": steps}, [])
        answers = _answers(graph, query, arguments["limit"])
    except ParseError as error:
        if error.span is not None and (word := _WORD.match(query.text, error.span[0])) and word[0].lower() in WRITE_CLAUSES:
            raise WriteError(error.message, hint=error.hint, span=error.span) from None
        raise
    warnings = list(dict.fromkeys(warning for answer in answers for warning in answer.warnings))
    if query.text != text or (len(answers) > 1 and any(len(answer.values) for answer in answers)):
        # The query was replaced by a procedure, or another branch has rows.
        warnings = [warning for warning in warnings if not warning.startswith("the answer is empty")]
    if isinstance(terms, RemoteValues):
        rows: Iterable[Sequence[Any]] = [row for answer in answers if answer.columns for row in answer.values]
        terms.load(list(rows))
    else:
        rows = chain.from_iterable(map(_terms_of, answers))
    return _rows(rows, terms, meta | {"fields": list(answers[0].columns)}, warnings, arguments["bytes"])


def _answers(graph: Graph, query: CallingQuery, limit: int) -> list[Answer]:
    """Return the answers to the branches of `UNION ALL`, whose rows come one branch after the other, as tools expect.

    Other queries have one answer; so do branches with different columns, which is an error, or with too many rows.
    """

    def answer(text: str) -> Answer:
        return graph.query(replace(query, text=text), language="cypher", limit=limit, on_unknown="empty")

    branches = all_branches(query.text)
    if len(branches) > 1:
        answers = list(map(answer, branches))
        if len({part.columns for part in answers}) == 1 and sum(len(part.values) for part in answers) < limit:
            return answers
    return [answer(query.text)]


class WriteError(ParseError):
    """A query that writes or administers."""

    code = "write"


def _rows(rows: Iterable[Sequence[Any]], terms: Values, meta: dict[str, Any], warnings: list[str], most: int) -> bytes:
    records: list[bytes] = []
    size = 0
    for row in rows:
        if len(records) % _CHUNK == 0:
            check()
        record = packed([terms.value(term) for term in row])
        size += len(record) + _LENGTH.size
        if size > most:
            raise OptionError(
                f"the rows have more than {most >> 20} MiB", hint="return less of them: LIMIT, or properties of nodes"
            )
        records.append(record)
    return _framed(meta | {"warnings": [*warnings, *terms.warnings]}, records)


def _terms_of(answer: Answer) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of an answer in process, in their order, up to its limit."""
    rows = answer.run.results[id(answer.plan)]
    assert isinstance(rows, RowSet)
    ordered = rows.in_fixed_order()
    count = len(answer.values)
    if not answer.columns or not count:
        return iter(())
    first = ordered.take(list(range(count)))  # type: ignore[arg-type]
    columns = [python_terms(first.scope, first.column(name)) for name in answer.columns]
    return islice(zip(*columns, strict=True), count)


def _framed(meta: dict[str, Any], records: list[bytes]) -> bytes:
    head = json.dumps(meta, ensure_ascii=False).encode("utf-8", "replace")
    return b"".join(part for data in (head, *records) for part in (_LENGTH.pack(len(data)), data))

"""Answers of every language as one JSON document or as CSV and Arrow files, and values, entities and
statements as JSON.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.addresses import NEO4J_SCHEMES, SQL_SCHEMES
from condgraph.engine.answer import Answer
from condgraph.engine.delimited import csv_line
from condgraph.engine.errors import CondgraphError, InterruptedQueryError, UnsupportedError
from condgraph.engine.evidence import EvidenceList
from condgraph.engine.facts import Entity
from condgraph.engine.records import Evidence
from condgraph.engine.stored_answer import StoredAnswer
from condgraph.engine.values import UNKNOWN, FormedText, Quantity, Time, bound_text, text_of
from condgraph.patterns.matches import Matches

if TYPE_CHECKING:
    import pyarrow

    from condgraph.graph import Graph
    from condgraph.sparql.text.table import Table


# -- values, entities and statements -----------------------------------------------------------------


def entity(entity: Entity) -> dict[str, Any]:
    """Return an entity as JSON: its id, name and kind ("entity", "concept" or "row")."""
    return {"type": "entity", "text": entity.name, "id": entity.id, "name": entity.name, "kind": entity.kind.name.lower()}


def cell(value: Any) -> dict[str, Any] | None:
    """Return a value as JSON.

    A value has a `text` and a `type`. Depending on the type, it also has `number` and `unit`,
    `precision`, `start` and `end`, or `id`, `name` and `kind`. None stays None. A number that JSON
    cannot express is null, but has its text.
    """
    if value is None:
        return None
    if isinstance(value, Entity):
        return entity(value)
    if isinstance(value, bool):
        return {"type": "truth", "text": text_of(value), "truth": value}
    if isinstance(value, int):
        return {"type": "count", "text": str(value), "number": value}
    if isinstance(value, Quantity):
        return {"type": "quantity", "text": text_of(value), "number": _number(value.number), "unit": value.unit}
    if isinstance(value, Time):
        bounds = {"start": bound_text(value.start), "end": bound_text(value.end)}
        return {"type": "time", "text": text_of(value), "precision": value.precision.name.lower(), **bounds}
    if isinstance(value, FormedText):
        return {"type": value.form, "text": str(value)}
    if isinstance(value, str):
        kind = {"Iri": "iri", "Blank": "blank"}.get(type(value).__name__, "text")
        return {"type": kind, "text": str(value)}
    if value is UNKNOWN:
        return {"type": "unknown", "text": text_of(value)}
    try:
        return {"type": "number", "text": str(value), "number": _number(value)}
    except (TypeError, ValueError, OverflowError):
        return {"type": "other", "text": str(value)}


def table_cell(value: Any, text: str) -> dict[str, Any] | None:
    """Return a cell of a table as JSON. Several values become one text of the type "list"."""
    return {"type": "list", "text": text} if isinstance(value, tuple) else cell(value)


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def record_cells(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """Convert a record of `Answer.data` to the form of `cell`."""
    cells = dict(record)
    if "count" in cells:
        cells["number"] = cells.pop("count")
    return cells


def fact(statement: Evidence) -> dict[str, Any]:
    """Return a statement as JSON, with its qualifiers and every source and row that contains it.

    The row is null if it is unknown. The paths of files on the server are left out.
    """
    return {
        "kind": statement.kind,
        "subject": entity(statement.subject),
        "predicate": statement.predicate,
        "object": cell(statement.object),
        "qualifiers": [{"key": key, "value": cell(value)} for key, value in statement.qualifiers],
        "sources": [{"name": source.name, "row": row or None} for source, row in statement.sources],
        "raw": statement.raw,
        "text": str(statement),
    }


# -- answers -----------------------------------------------------------------------------------------


#: The kinds of stores.
IN_A_FOLDER, ON_NEO4J, IN_AN_RDF_STORE, IN_A_SQL_DATABASE = "in a folder", "on Neo4j", "in an RDF store", "in a SQL database"
_AT: Final = re.compile(r"\(at character (\d{1,9})\)")


def warned(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return warnings, each with its place in the program if that is known."""
    warnings = []
    for text in texts:
        at = _AT.search(text)
        warnings.append({"text": text, "span": None if at is None else [int(at[1]) - 1, int(at[1])]})
    return warnings


def answered(answer: Answer, *, most: int, facts: int, compiled: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return an answer as JSON.

    It has at most `most` records, the trace, at most `facts` statements of the evidence, the
    warnings, and the queries of the program: the answer's own, or else those of `compiled`.
    """
    # A table has its own cells. For everything else `data` has one record per value.
    records: Sequence[Any] = answer.values if answer.columns else answer.data()
    warnings = list(answer.warnings)
    if isinstance(answer, Matches):
        columns = [*(node.text for node in answer.pattern.nodes), "distance"]
        rows: list[list[Any]] = [
            [
                *(cell(node.value) for node in match.nodes),
                {"type": "number", "text": f"{match.distance:.6f}", "number": match.distance},
            ]
            for match in answer.shown[:most]
        ]
    elif answer.columns:
        columns = list(answer.columns)
        rows = [list(map(table_cell, *row)) for row in islice(zip(answer.values, answer.cells, strict=True), most)]
    else:
        columns, rows = ["answer"], [[record_cells(record)] for record in records[:most]]
    if len(records) > most:
        warnings.append(f"{len(records) - most} more values are not shown (limit {most})")
    queries = {"cypher": answer.cypher, "sparql": answer.sparql} if isinstance(answer, StoredAnswer | Matches) else {}
    return {
        "language": answer.language,
        "program": answer.program,
        "columns": columns,
        "rows": rows,
        "total": len(records) + (0 if isinstance(answer, Matches) else answer.cut),
        "warnings": warned(warnings),
        **explored(answer, facts),
        "compiled": {name: queries.get(name) or (compiled or {}).get(name) for name in ("cypher", "sparql")},
    }


def explored(answer: Answer, most: int) -> dict[str, Any]:
    """Return an answer's trace, and at most `most` statements of evidence with the steps that read them."""
    evidence: Any = answer.evidence
    names, searches = [], []
    if isinstance(evidence, EvidenceList):
        names = [
            {"entity": entity(names.entity), "source": None if names.source is None else names.source.name}
            for names in evidence.entities[:most]
        ]
        searches = [str(search) for search in evidence.searched]
    facts = list(map(fact, islice(evidence, most)))
    by_step = [[index for index in places if index < most] for places in answer.evidence_by_step]
    return {
        "trace": [asdict(step) | {"sample": list(step.sample)} for step in answer.trace],
        "evidence": {"facts": facts, "total": len(evidence), "by_step": by_step, "named": names, "searched": searches},
    }


def tabled(table: Table, language: str, program: str) -> dict[str, Any]:
    """Return the result of a SPARQL or Cypher query as JSON."""
    columns = list(table.columns) if table.truth is None else ["truth"]
    rows = table.rows if table.truth is None else [(table.truth,)]
    return _rows(columns, rows, language, program, table.warnings, table.sparql if language == "sparql" else None)


def _rows(
    columns: list[str], rows: Sequence[Sequence[Any]], language: str, program: str, warnings: Sequence[str], sparql: str | None
) -> dict[str, Any]:
    return {
        "language": language,
        "program": program,
        "columns": columns,
        "rows": [list(map(cell, row)) for row in rows],
        "total": len(rows),
        "warnings": warned(warnings),
        "trace": [],
        "evidence": {"facts": [], "total": 0, "by_step": [], "named": [], "searched": []},
        "compiled": {"cypher": program if language == "cypher" else None, "sparql": sparql},
    }


def recorded(records: Sequence[dict[str, Any]], program: str, most: int) -> dict[str, Any]:
    """Return the records of a Cypher query as JSON."""
    columns = list(records[0]) if records else []
    left_out = len(records) - most
    warnings = [f"{left_out} more rows are not shown (limit {most})"] if left_out > 0 else []
    return _rows(columns, [[record.get(name) for name in columns] for record in records[:most]], "cypher", program, warnings, None)


def store_of(graph: Graph) -> str:
    """Return the kind of a graph's store, without its address."""
    scheme, mark, _ = graph.place.partition("://")
    if not mark:
        return IN_A_FOLDER
    scheme = scheme.lower()
    return ON_NEO4J if scheme in NEO4J_SCHEMES else IN_A_SQL_DATABASE if scheme in SQL_SCHEMES else IN_AN_RDF_STORE


def compiled(graph: Graph, program: Any, language: str, options: dict[str, Any] | None = None) -> dict[str, str | None]:
    """Return the queries that a program with its options becomes for Neo4j and for an RDF store.

    A query is None if the program cannot be compiled, or this graph does not have the means.
    """
    from condgraph.remote import RemoteGraph

    options = options or {}
    queries: dict[str, str | None] = {"cypher": None, "sparql": None}
    if language not in ("kopl", "llm_query", "logic"):
        return queries
    if isinstance(graph, RemoteGraph):
        own = {ON_NEO4J: "cypher", IN_AN_RDF_STORE: "sparql"}.get(store_of(graph))
        if own is None:
            return queries
        with suppress(CondgraphError):
            queries[own] = graph.explain(program, language=language, **options)
        return queries
    from condgraph.languages.registry import lower
    from condgraph.snapshot_store import SnapshotStore

    store = graph._store_of(None)
    if not isinstance(store, SnapshotStore) or store.snapshot.translate is None:
        return queries
    snapshot, translate = store.snapshot, store.snapshot.translate
    try:
        plan = lower(snapshot.schema, program, language, options).plan
        for name in queries:
            with suppress(UnsupportedError):
                queries[name] = translate(snapshot, plan, name)
    except InterruptedQueryError:
        raise
    except CondgraphError:
        return queries  # the answer itself reports the error
    return queries


# -- files -----------------------------------------------------------------------------------------

#: First characters that make a spreadsheet read a cell as a formula, including full-width (East Asian) ones.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
#: A number, alone or with a unit that cannot be part of a formula.
_HARMLESS: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?: [\w °%·²³/]*)?")


def as_csv(document: dict[str, Any]) -> bytes:
    """Return the rows of an answer as CSV, with extra columns for the ids of entities.

    A text that a spreadsheet would run as a formula gets a quote in front, even a date before Christ,
    which a spreadsheet would subtract. Numbers stay unchanged.
    """
    columns = document["columns"]
    with_id = [any(row[i] is not None and row[i]["type"] == "entity" for row in document["rows"]) for i in range(len(columns))]
    lines = [
        csv_line(_safe(name) for i, column in enumerate(columns) for name in ([column, f"{column} id"] if with_id[i] else [column]))
    ]
    for row in document["rows"]:
        cells: list[str] = []
        for i, value in enumerate(row):
            cells.append("" if value is None else _safe(value["text"]))
            if with_id[i]:
                cells.append(_safe(value.get("id", "")) if value is not None else "")
        lines.append(csv_line(cells))
    return "".join(lines).encode("utf-8", "replace")


def _safe(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) and not _HARMLESS.fullmatch(text) else text


def as_arrow(table: pyarrow.Table) -> bytes:
    """Return a table as an Arrow stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue().to_pybytes())

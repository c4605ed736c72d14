"""Answers, their evidence and their trace as a table, JSON, CSV or Arrow.

A table of one column is one line an answer. In the table and in JSON the evidence and the trace are part of the result; beside CSV
and Arrow, which programs read, they go to standard error.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import typer

from condgraph.engine.values import Quantity, Time, Unknown

#: Columns that are aligned to the right.
_NUMBERS: Final = frozenset({"rows", "ms"})


class Format(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"


def write_answer(answer: Any, form: Format, *, evidence: bool = False, trace: bool = False) -> None:
    """Write an answer to standard output, and its warnings to standard error.

    Raises `typer.BadParameter` when Arrow's bytes would go to a terminal.
    """
    for warning in answer.warnings:
        typer.echo(f"warning: {printable(warning)}", err=True)
    if form is Format.JSON:
        typer.echo(json.dumps(_document(answer, evidence=evidence, trace=trace), ensure_ascii=False, indent=2))
        return
    columns, rows = answer_rows(answer)
    if form is Format.ARROW:
        _write_arrow(answer)
    elif form is Format.CSV:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    elif len(columns) == 1:
        for (text,) in rows:
            typer.echo(printable(text))
    else:
        _write_table(columns, rows)
    beside = form is not Format.TABLE
    if trace:
        typer.echo("\ntrace:", err=beside)
        _write_table(("step", "rows", "ms", "sample"), _trace_rows(answer), err=beside)
    if evidence:
        typer.echo("\nevidence:", err=beside)
        for fact in answer.evidence:
            typer.echo("  " + printable(str(fact)), err=beside)
        if not answer.evidence:
            typer.echo("  none", err=beside)


def answer_rows(answer: Any) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Column names and rows of an answer: names, with ids where they say more, or the texts of its values."""
    if answer.entities and len(answer.entities) == len(answer.texts):
        if any(entity.id != entity.name for entity in answer.entities):
            return ("name", "id"), [(entity.name, entity.id) for entity in answer.entities]
        return ("name",), [(entity.name,) for entity in answer.entities]
    return ("value",), [(text,) for text in answer.texts]


def json_value(value: Any) -> Any:
    """A value as JSON: numbers with a unit and times are objects, so that nothing of them is lost."""
    if isinstance(value, Quantity):
        return {"number": json_value(value.number), "unit": value.unit}
    if isinstance(value, Time):
        return {"time": str(value), "precision": value.precision.name.lower()}
    if isinstance(value, Unknown):
        return {"unknown": True}
    if isinstance(value, Decimal):
        # A JSON number would lose digits in most readers.
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    return str(value)


def printable(text: str) -> str:
    """Text without control characters, which would steer the terminal; they are written as escapes."""
    return re.sub(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]", lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def _document(answer: Any, *, evidence: bool, trace: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "answers": list(answer.texts),
        "values": [json_value(value) for value in answer.values],
        "entities": [{"id": entity.id, "name": entity.name} for entity in answer.entities],
        "warnings": list(answer.warnings),
    }
    if trace:
        document["trace"] = [
            {
                "operator": str(step.operator),
                "rows": step.size,
                "milliseconds": round(step.seconds * 1000, 3),
                "sample": [str(item) for item in step.sample],
            }
            for step in answer.trace
        ]
    if evidence:
        document["evidence"] = [
            {
                "subject": str(fact.subject),
                "predicate": str(fact.predicate),
                "object": json_value(fact.object),
                "qualifiers": [[str(key), json_value(value)] for key, value in fact.qualifiers],
                "sources": [str(source) for source in fact.sources],
            }
            for fact in answer.evidence
        ]
    return document


def _trace_rows(answer: Any) -> list[tuple[str, ...]]:
    return [
        (str(step.operator), str(step.size), f"{step.seconds * 1000:.2f}", ", ".join(str(item) for item in step.sample))
        for step in answer.trace
    ]


def _write_arrow(answer: Any) -> None:
    if sys.stdout.isatty():
        raise typer.BadParameter("arrow is binary: send the output to a file or another program", param_hint="--format")
    import pyarrow as pa

    table = answer.to_arrow()
    with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as stream:
        stream.write_table(table)
    sys.stdout.buffer.flush()


def _write_table(columns: Sequence[str], rows: Sequence[tuple[str, ...]], *, err: bool = False) -> None:
    """Aligned columns; the last is as long as it is, and a terminal wraps it: no value is ever cut."""
    from rich.cells import cell_len

    stream = sys.stderr if err else sys.stdout
    cells = [tuple(columns), *(tuple(printable(cell) for cell in row) for row in rows)]
    widths = [max(cell_len(row[column]) for row in cells) for column in range(len(columns))]
    for number, row in enumerate(cells):
        aligned = []
        for column, cell in enumerate(row):
            gap = " " * (widths[column] - cell_len(cell))
            aligned.append(gap + cell if columns[column] in _NUMBERS else cell + gap)
        line = "  ".join(aligned).rstrip()
        typer.echo(typer.style(line, bold=True) if number == 0 and stream.isatty() else line, err=err)

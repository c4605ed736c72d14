"""The output of commands: answers, evidence and traces as a table, JSON, CSV or Arrow.

A table has one line for each answer, with the ids of entities if names repeat. In tables and JSON, the
evidence and the trace are part of the result. With CSV and Arrow, which programs read, they go to
standard error.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal

import typer

from condgraph.engine.algebra import Entities, Facts, Names
from condgraph.engine.answer import Answer
from condgraph.engine.delimited import csv_line
from condgraph.engine.facts import Entity
from condgraph.engine.lowered import Step
from condgraph.engine.values import FORMS, UNKNOWN, FormedText, Quantity, Time

if TYPE_CHECKING:
    import pyarrow

    from condgraph.engine.check import Checked


# -- answers and tables ------------------------------------------------------------------------------


#: The columns that are aligned to the right.
_NUMBERS: Final = frozenset({"results", "statements", "rows", "members", "values"})


#: How an answer is written.
Format = Literal["table", "json", "csv", "arrow"]


def write_answer(
    answer: Answer, form: Format, *, evidence: bool = False, trace: bool = False, checked: Checked | None = None
) -> None:
    """Write an answer to standard output, and its warnings to standard error.

    Raises `typer.BadParameter` if Arrow data would go to a terminal.
    """
    refuse_terminal(form)
    for warning in answer.warnings:
        typer.echo(f"warning: {printable(warning)}", err=True)
    if form == "json":
        typer.echo(json.dumps(_document(answer, evidence=evidence, trace=trace, checked=checked), ensure_ascii=False, indent=2))
        return
    columns, rows = answer_rows(answer)
    if form == "arrow":
        write_stream(answer.to_arrow())
    elif form == "csv":
        sys.stdout.writelines(map(csv_line, (columns, *rows)))
    elif answer.columns or len(answer.texts) < len(rows):
        # Ids distinguish repeated names.
        write_table(columns, rows, right=_numeric(answer))
    else:
        for row in rows:
            typer.echo(printable(row[0]))
    aside = form != "table"
    if trace:
        steps = [(step.function, str(step.size), step.operator, _sample(step)) for step in answer.trace]
        typer.echo("\ntrace:", err=aside)
        write_table(("step", "results", "operator", "sample"), steps, err=aside)
    if evidence:
        typer.echo("\nevidence:", err=aside)
        for fact in answer.evidence:
            typer.echo("  " + printable(str(fact)), err=aside)
        for entity in answer.evidence.entities:
            typer.echo("  " + printable(str(entity)), err=aside)
        if not answer.evidence and not answer.evidence.entities:
            typer.echo("  none", err=aside)
        if answer.evidence.searched:
            typer.echo("\nlooked through:", err=aside)
        for item in answer.evidence.searched:
            typer.echo("  " + printable(str(item)), err=aside)


def write_check(checked: Checked, form: Format) -> None:
    """Write the result of checking an answer below it."""
    aside = form != "table"
    typer.echo("\ncheck:", err=aside)
    for line in str(checked).splitlines():
        typer.echo("  " + printable(line), err=aside)


def answer_rows(answer: Answer) -> tuple[tuple[str, ...], Sequence[tuple[str, ...]]]:
    """Return the column names and rows of an answer.

    They are the cells of a table, the names and ids of entities, or the texts of values.
    """
    if answer.columns:
        return answer.columns, answer.cells
    records = answer.data()
    # An empty answer has the same columns as one with results.
    has_names = bool(records) or isinstance(answer.plan, Entities | Facts | Names)
    if any("id" in record for record in records) and any("id" not in record for record in records):
        # Among other values, ids distinguish entities from texts and from each other.
        return ("value", "id"), list(dict.fromkeys((record["text"], record.get("id", "")) for record in records))
    if not has_names or any("id" not in record for record in records):
        return ("value",), [(text,) for text in answer.texts]
    return ("name", "id"), [(record["name"], record["id"]) for record in records]


def json_value(value: Any) -> Any:
    """Convert a value to JSON. Numbers with units, times and entities become objects, so nothing is lost."""
    if isinstance(value, Quantity):
        return {"number": json_value(value.number), "unit": value.unit}
    if isinstance(value, Time):
        return {"time": str(value), "precision": value.precision.name.lower()}
    if isinstance(value, Entity):
        return {"id": value.id, "name": value.name}
    if isinstance(value, FormedText):
        return {value.form: str(value), **FORMS[value.form].record(value)}
    if value is UNKNOWN:
        return {"unknown": True}
    if isinstance(value, tuple):
        # A row of a table, or a cell with several values.
        return [json_value(item) for item in value]
    if isinstance(value, Decimal):
        # A JSON number would lose digits in most readers.
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a value of type {type(value).__name__} has no form in JSON")


def printable(text: str) -> str:
    """Return a text with its control characters written as escapes, since they would control the terminal."""
    return re.sub(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]", lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def _numeric(answer: Answer) -> frozenset[str]:
    """Return the columns of a table that contain only numbers."""
    result = set()
    for index, name in enumerate(answer.columns):
        cells = [row[index] for row in answer.values if row[index] is not None]
        if cells and all(isinstance(cell, Quantity | int) for cell in cells):
            result.add(name)
    return frozenset(result)


def write_table(
    columns: Sequence[str], rows: Sequence[tuple[str, ...]], *, err: bool = False, right: frozenset[str] = _NUMBERS
) -> None:
    """Write aligned columns, those in `right` to the right.

    No value is ever cut. If the last column is long, the terminal wraps it.
    """
    from rich.cells import cell_len

    stream = sys.stderr if err else sys.stdout
    cells = [tuple(columns), *(tuple(printable(cell) for cell in row) for row in rows)]
    widths = [max(cell_len(row[column]) for row in cells) for column in range(len(columns))]
    for number, row in enumerate(cells):
        aligned = []
        for column, cell in enumerate(row):
            gap = " " * (widths[column] - cell_len(cell))
            aligned.append(gap + cell if columns[column] in right else cell + gap)
        line = "  ".join(aligned).rstrip()
        typer.echo(typer.style(line, bold=True) if number == 0 and stream.isatty() else line, err=err)


def _sample(step: Step) -> str:
    texts = ", ".join(step.sample) + (", ..." if step.size > len(step.sample) else "")
    return "; ".join(part for part in (texts, step.note) if part)


def _document(answer: Answer, *, evidence: bool, trace: bool, checked: Checked | None = None) -> dict[str, Any]:
    document: dict[str, Any] = {
        **({"columns": list(answer.columns)} if answer.columns else {}),
        "answers": answer.texts,
        "values": [json_value(value) for value in answer.values],
        "entities": [json_value(entity) for entity in answer.entities],
        "warnings": answer.warnings,
    }
    if trace:
        document["trace"] = [asdict(step) for step in answer.trace]
    if evidence:
        document["evidence"] = [
            {
                "kind": fact.kind,
                "subject": json_value(fact.subject),
                "predicate": fact.predicate,
                "object": json_value(fact.object),
                "qualifiers": [[key, json_value(value)] for key, value in fact.qualifiers],
                "sources": [{"source": source.name, "row": row or None} for source, row in fact.sources],
            }
            for fact in answer.evidence
        ]
        document["named"] = [
            json_value(entity.entity)
            | ({"source": entity.source.name, "row": entity.entity.row} if entity.source is not None else {})
            for entity in answer.evidence.entities
        ]
        document["searched"] = [asdict(item) for item in answer.evidence.searched]
    if checked is not None:
        document["check"] = asdict(checked)
    return document


def refuse_terminal(form: Format) -> None:
    """Raise `typer.BadParameter` if Arrow data would go to a terminal."""
    if form == "arrow" and sys.stdout.isatty():
        raise typer.BadParameter("arrow is binary: send the output to a file or another program", param_hint="--format")


def write_stream(table: pyarrow.Table) -> None:
    """Write a table to standard output as an Arrow stream."""
    import pyarrow as pa

    with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as stream:
        stream.write_table(table)
    sys.stdout.buffer.flush()

"""What commands write: answers, evidence and traces as a table, JSON, CSV or Arrow.

A table is one line an answer, with the ids of entities where their names repeat. In the table and in
JSON the evidence and the trace are part of the result; with CSV and Arrow, which programs read, they
go to standard error.
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


#: Columns that are aligned to the right.
_NUMBERS: Final = frozenset({"results", "statements", "rows", "members", "values"})


#: How an answer is written.
Format = Literal["table", "json", "csv", "arrow"]


def write_answer(
    answer: Answer, form: Format, *, evidence: bool = False, trace: bool = False, checked: Checked | None = None
) -> None:
    """Write an answer to standard output, and its warnings to standard error.

    Raises `typer.BadParameter` when Arrow's bytes would go to a terminal.
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
        # Names that repeat are distinguished by their ids.
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
    """What a check of an answer found, below it."""
    aside = form != "table"
    typer.echo("\ncheck:", err=aside)
    for line in str(checked).splitlines():
        typer.echo("  " + printable(line), err=aside)


def answer_rows(answer: Answer) -> tuple[tuple[str, ...], Sequence[tuple[str, ...]]]:
    """Column names and rows of an answer: the cells of a table, the names and ids of its entities, or
    the texts of its values.
    """
    if answer.columns:
        return answer.columns, answer.cells
    records = answer.data()
    # An empty answer has the columns that it would have otherwise.
    named = bool(records) or isinstance(answer.plan, Entities | Facts | Names)
    if any("id" in record for record in records) and any("id" not in record for record in records):
        # Entities among values: their ids distinguish them from texts and from each other.
        return ("value", "id"), list(dict.fromkeys((record["text"], record.get("id", "")) for record in records))
    if not named or any("id" not in record for record in records):
        return ("value",), [(text,) for text in answer.texts]
    return ("name", "id"), [(record["name"], record["id"]) for record in records]


def json_value(value: Any) -> Any:
    """A value as JSON: numbers with a unit, times and entities are objects, so that nothing of them
    is lost.
    """
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
        # A row of a table, or what a cell of it lists.
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
    """Text without control characters, which would steer the terminal; they are written as escapes."""
    return re.sub(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]", lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def _numeric(answer: Answer) -> frozenset[str]:
    """The columns of a table that have nothing but numbers."""
    sources = set()
    for at, name in enumerate(answer.columns):
        cells = [row[at] for row in answer.values if row[at] is not None]
        if cells and all(isinstance(cell, Quantity | int) for cell in cells):
            sources.add(name)
    return frozenset(sources)


def write_table(
    columns: Sequence[str], rows: Sequence[tuple[str, ...]], *, err: bool = False, right: frozenset[str] = _NUMBERS
) -> None:
    """Aligned columns, those named in `right` to the right; the last is as long as it is, and a
    terminal wraps it: no value is ever cut.
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
    shown = ", ".join(step.sample) + (", ..." if step.size > len(step.sample) else "")
    return "; ".join(part for part in (shown, step.note) if part)


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
    """Raise `typer.BadParameter` when Arrow's bytes would go to a terminal."""
    if form == "arrow" and sys.stdout.isatty():
        raise typer.BadParameter("arrow is binary: send the output to a file or another program", param_hint="--format")


def write_stream(table: pyarrow.Table) -> None:
    """Write a table to standard output as a stream of Arrow."""
    import pyarrow as pa

    with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as stream:
        stream.write_table(table)
    sys.stdout.buffer.flush()

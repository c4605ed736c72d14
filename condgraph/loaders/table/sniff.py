"""How table files are recognised: what speaks for a header, and what for triples, an export, or no
table at all.

Scores: a Parquet file 100; a file called .csv, .tsv or .tab that has a header and several columns
70, or 60 where they are two or three; JSON lines 60; less without the extension, a header, or even
records. Three columns without a header are left to triples.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from condgraph.engine.reading.shapes import shape
from condgraph.engine.values import collapse
from condgraph.loaders.files import HEAD_BYTES, head_text, suffix_of
from condgraph.loaders.table.cells import Profile
from condgraph.loaders.table.dialect import evenness, padded, sample_rows

_TABS: Final = (".tsv", ".tab")
_NAMED: Final = (".csv", ".psv")
_LINES: Final = (".jsonl", ".ndjson")
_DOCUMENTS: Final = (".json", ".geojson")
#: How a list of objects, or an object with a key, begins.
_DOCUMENT: Final = re.compile(r"(?:\[\s*)?\{\s*(?:\"|\}\s*[,\]])|\[\s*\[\s*\"").match
_MOST: Final = 500
#: What programs call columns.
_IDENTIFIER: Final = re.compile(r"[^\W\d][\w.-]*").fullmatch


def sniff_csv(path: Path, head: bytes) -> int:
    """How much a file looks like a table with other marks than tabs between its fields, or is
    called .csv: 0 to 70.
    """
    suffix = suffix_of(path)
    delimiter, rows = sample_rows(head, "\t" if suffix in _TABS else ",;\t|")
    if delimiter == "\t" and suffix != ".csv":
        return 0
    return _likeness(head, rows, suffix in _NAMED)


def sniff_tsv(path: Path, head: bytes) -> int:
    """How much a file looks like a table with tabs between its fields: 0 to 70."""
    suffix = suffix_of(path)
    if suffix == ".csv":
        return 0
    delimiter, rows = sample_rows(head, "\t" if suffix in _TABS else ",;\t|")
    return _likeness(head, rows, suffix in _TABS) if delimiter == "\t" else 0


def _likeness(head: bytes, rows: Sequence[Sequence[str]], named: bool) -> int:
    if not rows:
        return 0
    if is_page(head):
        return 0
    if head.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] in (b"{", b"[", b"<", b"@"):
        # JSON, XML, N-Triples, Turtle: lines of those may have even numbers of commas.
        return 5 if named else 0
    width = len(rows[0])
    if width < 2:
        # One column, whose texts may hold any mark.
        return 40 if named else 0
    programs = all(map(_IDENTIFIER, rows[0]))
    if len(rows) == 1 and not named and not programs:
        return 0
    if named or (width > 2 and programs):
        rows = [padded(row, width) for row in rows]
    even = evenness(rows) >= 0.95
    headed = has_header(rows)
    if not even:
        # A name that says so is believed last, so that the error is about the record that is bad.
        return (40 if headed and evenness(rows) > 0.5 else 15) if named else 0
    if not headed:
        return 0 if not named else 25 if width == 3 else 40
    return 45 if not named else 60 if width < 4 else 70


def is_page(head: bytes) -> bool:
    """Whether a file is a page of HTML, as servers send in place of data."""
    return head.lstrip(b"\xef\xbb\xbf \r\n\t")[:14].lower().startswith((b"<!doctype html", b"<html"))


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first record names columns: texts that are all there and different, above cells
    that are of another kind.

    Where all columns are texts, the names must not come again as cells.
    """
    headers = [collapse(cell) for cell in rows[0]]
    named = [header for header in headers if header]
    if not named or len(set(named)) * 2 < len(headers):
        return False
    body = [row for row in rows[1:_MOST] if len(row) == len(headers)]
    if not body:
        return not any(map(shape, named))
    typed = unlike = 0
    again = False
    for header, column in zip(headers, zip(*body, strict=True), strict=True):
        profile = Profile()
        profile.add(column)
        if profile.decide(header).kind != "text":
            typed += 1
            unlike += not shape(header)
        elif header and header in map(collapse, column):
            again = True
    # A table may have years or numbers for some headers, but not over every column of numbers.
    return unlike > 0 if typed else not again and (len(body) > 1 or _heads_one(headers, body[0]))


def _heads_one(headers: Sequence[str], row: Sequence[str]) -> bool:
    """Whether the names of columns stand above a single row of texts. Three columns may be a fact
    above another.
    """
    if not all(map(_IDENTIFIER, headers)):
        return False
    like = all(_IDENTIFIER(cell) and cell.islower() for cell in row)
    return len(headers) != 3 or ("".join(headers).islower() and not like)


def sniff_jsonl(path: Path, head: bytes) -> int:
    """How much a file looks like one JSON object a line that is no export of a graph: 0 to 60."""
    text = head_text(head)
    if not text or not text.lstrip().startswith("{"):
        return 0
    lines = [line for line in text.split("\n") if line.strip()]
    if len(head) >= HEAD_BYTES and len(lines) > 1:
        lines.pop()
    records: list[dict[str, object]] = []
    for line in lines[:20]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return 20 if records and suffix_of(path) in _LINES else 0
        if not isinstance(record, dict):
            return 0
        records.append(record)
    if "condgraph" in records[0]:
        return 0
    if suffix_of(path) in _LINES:
        return 60
    # One object alone is as likely a document.
    return 50 if len(records) > 1 else 10


def sniff_json(path: Path, head: bytes) -> int:
    """How much a file looks like a JSON document of objects that is no lines: 0 to 60."""
    text = (head_text(head) or "").lstrip("\ufeff \t\r\n")
    named = suffix_of(path) in _DOCUMENTS
    if not _DOCUMENT(text):
        return 0
    if text.startswith("["):
        return 60 if named else 50
    try:
        document, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        # Cut short, or damaged, which only its own reader can say well.
        return 44 if named else 8 if len(head) >= HEAD_BYTES else 0
    if "condgraph" in document or text[end:].strip():
        return 0
    return 55 if named else 45


def sniff_parquet(path: Path, head: bytes) -> int:
    """Whether a file is a Parquet file, or a folder the pieces of one: 0 or 100."""
    if path.is_dir():
        from condgraph.loaders.folder.arrow import is_pieces

        return 100 if is_pieces(path) else 0
    return 100 if head[:4] == b"PAR1" else 0

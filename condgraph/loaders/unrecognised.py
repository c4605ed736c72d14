"""Why a file has no format that is known: what it was tried as, and what spoke against it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Final

from condgraph.engine.errors import shortened
from condgraph.loaders.files import HEAD_BYTES, head_lines, head_text
from condgraph.loaders.statements.shape import MARKS, split
from condgraph.loaders.table.dialect import Layout, is_page, rows_of

#: How files begin that hold no data for a graph, or that a program has to unpack.
_MAGIC: Final = (
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture (PNG)"),
    (b"\xff\xd8\xff", "a picture (JPEG)"),
    (b"GIF8", "a picture (GIF)"),
    (b"PK\x03\x04", "a zip archive, which only its own path loads, or a damaged one"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"BZh", "packed with bzip2"),
    (b"\xfd7zXZ\x00", "packed with xz"),
    (b"\x28\xb5\x2f\xfd", "packed with zstandard"),
    (b"ARROW1", "an Arrow file, which pyarrow opens as a table"),
    (b"\x93NUMPY", "an array of NumPy"),
    (b"\x80\x04\x95", "a pickle of Python"),
)
_NAMES: Final = {"\t": "tabs", "": "white space"}
#: Lines that are looked at.
_MOST: Final = 200


def why_not(path: Path, head: bytes) -> str:
    """What a file with this head was tried as, and why it is none of these, as one text."""
    known = next((what for magic, what in _MAGIC if head.startswith(magic)), None)
    if known is None and is_page(head):
        known = "a page of HTML, as servers send in place of data"
    if known is not None:
        return f"it looks like {known}"
    text = head_text(head, damaged=True)
    if text is None:
        zero = head.find(0)
        what = f"it has the byte 0x00 at {zero + 1}" if zero >= 0 else "most of its bytes are no UTF-8"
        return f"it is no text: {what} (encoding= names another encoding)"
    reasons = []
    if head_text(head) is None:
        reasons.append(_bad_byte(head))
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        reasons.append(_as_json(text, len(head) >= HEAD_BYTES))
    reasons.append(_as_table(text, len(head) < HEAD_BYTES))
    reasons.append(_as_facts(head_lines(text.encode(), _MOST)))
    return "; ".join(reasons)


def _bad_byte(head: bytes) -> str:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        return f"byte 0x{head[error.start]:02x} in line {line} is no UTF-8 (encoding= names another encoding)"
    return "it is no UTF-8 (encoding= names another encoding)"


def _as_json(text: str, cut: bool) -> str:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if cut:
            return "as JSON, its first 64 KiB hold no object or list of objects"
        return f"as JSON, line {error.lineno} is wrong ({error.msg})"
    except RecursionError:
        return "as JSON, it is nested too deeply"
    return "as JSON, it is no object, no list of objects and no list of rows with a header"


def _as_table(text: str, complete: bool) -> str:
    """The mark that comes nearest to a table, and the first records that do not fit."""
    best: tuple[float, str] | None = None
    for mark in ",;\t|":
        rows = rows_of(text, Layout(mark, "excel"), complete) if mark in text else None
        if not rows or max(map(len, rows)) < 2:
            continue
        usual, times = Counter(map(len, rows)).most_common(1)[0]
        share = times / len(rows) if usual > 1 else 0.0
        if best is None or share > best[0]:
            widths = [len(row) for row in rows]
            other = next((at for at, width in enumerate(widths) if width != widths[0]), None)
            between = _NAMES.get(mark, repr(mark))
            what = f"as a table with {between} between fields, record 1 has {_fields(widths[0])}"
            if other is not None:
                what += f" and record {other + 1} has {_fields(widths[other])}"
            elif len(rows) == 1:
                what += " and there is no other"
            else:
                what += f" as all {len(rows)} have, and nothing shows that it is a header"
            best = share, what
    return "as a table, no line has two fields" if best is None else best[1]


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


def _as_facts(lines: list[str]) -> str:
    best, name = 0, ""
    for mark in MARKS:
        fitting = sum(len(split(line, mark)) in (3, 4, 5) for line in lines)
        if fitting > best:
            best, name = fitting, _NAMES.get(mark, repr(mark))
    if not best:
        return "as facts, no line has three fields"
    first = shortened(lines[0], 60)
    return f"as facts, {best} of {len(lines)} lines have three to five fields with {name} between them; the first line is {first!r}"

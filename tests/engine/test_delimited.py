"""Lines of CSV are read back by Python and by pandas as they were written."""

from __future__ import annotations

import csv
import io

import pandas

from condgraph.engine.delimited import csv_line

CELLS = ("a\rb", "a\nb", "a\r\nb", 'say "x"', "a,b", "a;b", "a\tb", " padded ", "plain", "", "\u2028", "'")


def test_cells_are_read_back() -> None:
    rows = [["head", "other"], *([cell, "x"] for cell in CELLS), ["", ""]]
    text = "".join(map(csv_line, rows))
    assert list(csv.reader(io.StringIO(text, newline=""))) == rows
    frame = pandas.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    assert frame.to_numpy().tolist() == rows[1:]


def test_one_empty_cell_is_a_row() -> None:
    text = csv_line(["head"]) + csv_line([""]) + csv_line([None]) + csv_line([7])
    assert list(csv.reader(io.StringIO(text))) == [["head"], [""], [""], ["7"]]

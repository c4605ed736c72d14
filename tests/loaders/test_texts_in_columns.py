"""Cells that stay text in a column of numbers or times are told of, with how many, the first and
its row; `encoding=` is used to recognise a file as well as to read it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import condgraph
from condgraph.engine.errors import LoadError
from tests.support.lanes import sample

CONTENTS = (
    "name,größe\nÄnn,5\nBob,6\n",
    "Änn\tknows\tBob\nBob\tknows\tÄnn\n",
    '{"name": "Änn"}\n{"name": "Bob"}\n',
)


@pytest.mark.parametrize("cell", ["inf", "-inf", "Infinity", "oops", "(1234)", "1,2,3", "+", "1/0", "12..5", "0x10", "5 apples"])
def test_a_text_among_numbers(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("size;name\n" + "".join(f"{i};r{i}\n" for i in range(10)) + f"{cell};x\n7;y\n")
    report = condgraph.open("memory:").load(path)
    (problem,) = [one for one in report.problems if "separated" not in one.message]
    assert problem.message == f"a cell stays text in a column of numbers: {cell!r}"
    assert (problem.row, problem.field, problem.skipped) == (11, "size", False)


def test_several_texts_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("size,born\n" + "".join(f"{i},19{i}-01-01\n" for i in range(10, 30)) + "inf,\noops,soon\n")
    report = condgraph.open("memory:").load(path)
    assert [(one.message, one.row, one.field) for one in report.problems] == [
        ("2 cells stay text in a column of numbers: such as 'inf'", 21, "size"),
        ("a cell stays text in a column of times: 'soon'", 22, "born"),
    ]


@pytest.mark.parametrize("cell", ["", "-", "--", "n/a", "NaN", "NA", "1e+400", "1e-400", "5 %", "1,234", "7[1]"])
def test_what_is_missing_or_a_number_is_no_text(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("size\tname\n" + "".join(f"{i}\tr{i}\n" for i in range(10)) + f"{cell}\tx\n")
    assert not condgraph.open("memory:").load(path, format="tsv").problems


@pytest.mark.parametrize("encoding", sample(["latin-1", "cp1252", "utf-16-le", "utf-16", "utf-32-be"], 2))
@pytest.mark.parametrize("content", CONTENTS)
def test_the_encoding_reaches_the_recogniser(encoding: str, content: str, tmp_path: Path) -> None:
    """Whatever the text is, and however long: the head is cut where the encoding allows."""
    path = tmp_path / "t.txt"
    for times in (1, 5_000):
        head, _, rest = content.partition("\n")
        path.write_bytes((f"{head}\n" + rest * times).encode(encoding))
        encoded = condgraph.open("memory:")
        encoded.load(path, encoding=encoding)
        plain = tmp_path / "u.txt"
        plain.write_text(f"{head}\n" + rest * times, encoding="utf-8")
        known = condgraph.open("memory:")
        known.load(plain, name="t")
        assert encoded.status().counts == known.status().counts
    path.write_bytes(content.encode("latin-1"))
    guessed = condgraph.open("memory:")
    if content.startswith("name,"):
        assert "read as cp1252" in guessed.load(path).problems[0].message
    else:
        # Only tables guess; what else has another encoding says so where it is read.
        with pytest.raises(LoadError, match="encoding"):
            guessed.load(path)


def test_a_folder_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "stadt.csv").write_bytes("id,name\n1,Köln\n2,Ulm\n".encode("cp1252"))
    (tmp_path / "leute.csv").write_bytes("id,name,stadt_id\n1,Änn,1\n2,Bob,2\n".encode("cp1252"))
    graph = condgraph.open("memory:")
    report = graph.load(tmp_path, encoding="cp1252")
    assert report.formats == ("folder",)

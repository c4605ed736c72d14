"""The page "From SQL": every question gives what the page shows, and what DuckDB gives for the SQL
above it.
"""

from __future__ import annotations

import contextlib
import io
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.sql_questions import same

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "from-sql.md"
_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def test_every_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = _BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(blocks[0][1], names)
    asked: list[Any] = []
    query = names["graph"].query
    monkeypatch.setattr(names["graph"], "query", lambda *given, **options: asked.append(query(*given, **options)) or asked[-1])
    tables = _tables(tmp_path / "shop")
    pairs = [(one[1], other[1]) for one, other in pairwise(blocks) if one[0] == "sql"]
    assert len(pairs) == 21
    for sql, text in pairs:
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            exec(text, names)
        shown = [line.removeprefix("#").removeprefix(" ") for line in text.splitlines() if line.startswith("#")]
        assert [line.rstrip() for line in written.getvalue().splitlines()] == [line.rstrip() for line in shown], text
        if tables is None:
            continue
        theirs = tables.execute(sql).fetchall()
        if "PARTITION BY kind" in sql:
            kinds = dict.fromkeys(kind for kind, _ in theirs)
            theirs = [(kind, [name for one, name in theirs if one == kind]) for kind in kinds]
        assert same(asked[-1].values, theirs, ordered="order by" in text), (sql, theirs)


def _tables(folder: Path) -> Any:
    """The same files in DuckDB; None where it is not installed."""
    try:
        import duckdb
    except ImportError:
        return None
    found = duckdb.connect()
    for path in folder.glob("*.csv"):
        found.execute(f"CREATE TABLE {path.stem} AS SELECT * FROM read_csv('{path}', header=true)")
    return found

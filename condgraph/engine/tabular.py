"""Answers as tables of other libraries, all made from one pyarrow Table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from condgraph.engine.errors import MissingExtraError
from condgraph.engine.pieces import pieces, watched

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow


class Tabular:
    """What can be had as a table."""

    __slots__ = ()

    def to_arrow(self) -> pyarrow.Table:
        """A pyarrow Table."""
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a pandas DataFrame."""
        try:
            import pandas  # noqa: F401
        except ImportError:
            raise MissingExtraError("pandas", "pandas") from None
        found: pandas.DataFrame = self.to_arrow().to_pandas()
        return found

    def to_polars(self) -> polars.DataFrame:
        """The same as a polars DataFrame."""
        try:
            import polars
        except ImportError:
            raise MissingExtraError("polars", "polars") from None
        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """The same as a relation of DuckDB, in a connection (the default one of the module), to be
        joined with what else is there: `answer.to_duckdb().filter("number > 8000")`.
        """
        try:
            import duckdb
        except ImportError:
            raise MissingExtraError("duckdb", "duckdb") from None
        return duckdb.from_arrow(self.to_arrow(), connection=connection or duckdb.default_connection())


def arrow_table(records: Sequence[Mapping[str, Any]], kinds: Mapping[str, str]) -> pyarrow.Table:
    """Records as a pyarrow Table: columns in the order in which they first come, of the types that
    `kinds` names, else of texts.

    Every column is nullable; a record that has no such field gives a null. Without records it is
    one empty column "text".
    """
    import pyarrow

    names = list(dict.fromkeys(name for record in watched(records) for name in record)) or ["text"]
    columns = {}
    for name in names:
        kind = pyarrow.type_for_alias(kinds.get(name, "string"))
        parts = [pyarrow.array([record.get(name) for record in some], kind) for some in pieces(records)]
        columns[name] = parts[0] if len(parts) == 1 else pyarrow.chunked_array(parts)
    return pyarrow.table(columns)

"""Tables and views of Spark as somebody else's database has them: what the catalogue says, and how cells are read."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from condgraph.sql.catalogue import WHOLE, Bound, Column, DuckDbCells, Sort, Table, call, fitting, no_end
from condgraph.sql.connections import Engine
from condgraph.sql.spark import Spark
from condgraph.sql.tables import PREFIX
from condgraph.sql.terms import both, case, cast, double, known, literal, name

#: Bytes of a row, where Spark has not counted the rows of a table.
_ROW: Final = 100
_SORTS: Final[dict[str, Sort]] = {
    **dict.fromkeys(("tinyint", "smallint", "int"), "integer"), "bigint": "long", "float": "single", "double": "double",
    "date": "date", "timestamp": "time", "timestamp_ntz": "time", "binary": "bytes", "string": "text",
}  # fmt: skip


def of_spark(engine: Engine) -> list[Table]:
    """The tables and views of the current database, and the temporary views; Spark declares no keys."""
    assert isinstance(engine, Spark)
    tables = []
    for item in engine.listed():
        if item.name.startswith(PREFIX):
            continue
        schema = "" if item.isTemporary else item.namespace[-1]
        fields, size = engine.described(item.name, schema)
        is_view = item.isTemporary or item.tableType == "VIEW"
        table = Table(item.name, schema, item.name, 1 if is_view else max(1, size // _ROW), is_view=is_view)
        table.columns = [_column(field.name, field.dataType.simpleString()) for field in fields]
        tables.append(table)
    return sorted(tables, key=lambda table: table.name)


def _column(real: str, kind: str) -> Column:
    word = re.split(r"[(< ]", kind, maxsplit=1)[0]
    if word == "decimal":
        width, scale = map(int, kind[8:-1].split(","))
        return Column(real, real, kind, "decimal", (width, scale))
    text = word in ("char", "varchar")
    sort: Sort = "nested" if word in ("array", "map", "struct") else "text" if text else _SORTS.get(word, "other")
    return Column(real, real, kind, sort, None, word == "string" and "collate" in kind)


class SparkCells(DuckDbCells):
    """Cells of Spark, in a session in UTC."""

    def bytewise(self, text: exp.Expr) -> exp.Expr:
        """By code point."""
        return exp.Collate(this=exp.Paren(this=text), expression=name("UTF8_BINARY"))

    def is_given(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """Times are finite."""
        if isinstance(item, Bound) and not item.whole:
            return both([known(cell), exp.LT(this=cell.copy(), expression=no_end(item))])
        return super().is_given(item, cell)

    def is_finite(self, item: Column, cell: exp.Expr) -> exp.Expr | None:
        """Floats may be infinite."""
        if item.sort not in ("single", "double"):
            return None
        return exp.NEQ(this=exp.Abs(this=cell.copy()), expression=cast(literal("Infinity"), "double"))

    def seconds(self, cell: exp.Expr) -> exp.Expr:
        """With fractions, as a decimal number."""
        moment = exp.Cast(this=cell, to=exp.DataType.build("timestamp"))
        return exp.Div(this=_decimal(call("UNIX_MICROS", moment), 19), expression=_decimal(literal(1_000_000), 7))

    def number(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """A single float is the number that its text is; a cast of any other number gives the nearest float."""
        return cast(cast(cell, "text") if item.sort == "single" else cell, "double")

    def nearest(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """An integer of 64 bits, or a decimal number of as many places: of larger floats by their halves of 64 bits, since a cast
        takes the digits that a float is written with.
        """
        number = self.number(item, cell)
        whole, is_long = cast(number.copy(), "bigint"), exp.LT(this=number.copy(), expression=double(2.0**63))
        if item.whole:
            return exp.Case(ifs=[exp.If(this=is_long, true=whole)])
        assert item.digits is not None
        kind = exp.DataType.build(f"decimal(38, {item.digits[1]})")
        size = exp.Abs(this=number.copy())
        high = exp.Floor(this=exp.Div(this=size.copy(), expression=double(2.0**64)))
        rest = exp.Paren(this=exp.Sub(this=size.copy(), expression=exp.Mul(this=high.copy(), expression=double(2.0**64))))
        low = cast(exp.Div(this=rest, expression=double(2.0**11)), "bigint")
        upper, lower = (_times(part, of) for part, of in ((high, 2**64), (low, 2**11)))
        sign = _decimal(call("SIGN", number.copy()), 1)
        large = exp.Mul(this=exp.Paren(this=exp.Add(this=upper, expression=lower)), expression=sign)
        printed = exp.TryCast(this=cast(number.copy(), "text"), to=kind)
        short = exp.LT(this=size, expression=double(2.0**63))
        otherwise = case([(short, exp.TryCast(this=whole, to=kind.copy()))], exp.TryCast(this=large, to=kind.copy()))
        return case([(fitting(number, WHOLE), printed)], otherwise)


def _times(cell: exp.Expr, number: int) -> exp.Mul:
    return exp.Mul(this=_decimal(cell, 19), expression=_decimal(literal(str(number)), 20))


def _decimal(cell: exp.Expr, digits: int) -> exp.Cast:
    return exp.Cast(this=cell, to=exp.DataType.build(f"decimal({digits}, 0)"))

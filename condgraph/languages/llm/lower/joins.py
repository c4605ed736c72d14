"""Rows of one table where another one is asked: themselves where a column refers to them, else
their values of a shared column.

Which it is comes from the vocabularies of the columns: whether the objects of a column are rows of
the table, or have the names of its rows, and which columns have values in common. No fact is looked
at.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from condgraph.engine import algebra as alg
from condgraph.engine.errors import PlanError
from condgraph.engine.values import Kind
from condgraph.languages.llm.lower.context import Lowering, Result
from condgraph.names.linking import Column
from condgraph.vectors.encoders import fold


def themselves(lowering: Lowering, result: Result, column: Column, name: str) -> alg.Entities | None:
    """The rows of a result, where a column refers to their table; None elsewhere."""
    if not isinstance(result.node, alg.Entities) or result.table is None:
        return None
    how = _refers(lowering, column, result.table)
    if how is None:
        return None
    lowering.context.remark(f"rows of {result.table!r} stand for themselves: {name!r} refers to them{_BY[how]}")
    return result.node if how == "row" else alg.SameName(result.node)


def _refers(lowering: Lowering, column: Column, table: str) -> Literal["row", "name"] | None:
    """How a column refers to a table: its objects are rows of it, or entities named like them; None
    where it does not.
    """
    if not any(kind is Kind.ENTITY for kind, _ in column.kinds):
        return None
    if column.refers_to(table):
        return "row"
    names = lowering.context.linker.heads(tuple(_names(lowering, table))).names
    return None if column.values.isdisjoint(names) else "name"


#: How a remark says that rows are referred to.
_BY: Final = {"row": "", "name": " by their names"}


def keyed(lowering: Lowering, text: str, column: Column, name: str) -> alg.Entities | None:
    """The rows that a key means, in a column that refers to their table: who asks knows the keys,
    as in SQL. Where an object of the column is called so, too, both are meant. None where no row
    has the key.
    """
    context = lowering.context
    result: dict[str, str] = {}
    for table in sorted(context.linker.tables):
        # Rows of a folder have no name of it in front; those that something referred to before they
        # came may have their key alone; and an id is as good.
        idents = (f"{table}/{text}", f"{table.rpartition('/')[2]}/{text}", text)
        known = [ident for ident in idents if context.schema.has_id(ident)]
        if known and column.refers_to(table):
            result.update(dict.fromkeys(known, table))
    if not result:
        return None
    tables = " and ".join(map(repr, dict.fromkeys(result.values())))
    if context.schema.has_entity(text) and fold(text) in column.folded:
        context.warn(f"{text!r} is a name and the key of a row of {tables}, to which {name!r} refers; both are taken")
        return alg.union(alg.ByName((text,)), alg.ById(tuple(result)))
    context.warn(f"{text!r} is taken as the key of a row of {tables}, to which {name!r} refers")
    return alg.ById(tuple(result))


def shared_values(lowering: Lowering, result: Result, column: Column, name: str) -> alg.Values:
    """The values by which rows are known in a column of another source: those of the column that
    shares most with it.
    """
    assert isinstance(result.node, alg.Entities)
    assert result.table is not None
    shared = _nearest(lowering, result.table, column, name, result.column)
    if shared is None:
        used = lowering.shown_column(result)
        if used is None:
            raise PlanError(f"rows of {result.table!r} have no column to show", span=result.span)
        reason = f"no column of {result.table!r} shares a value with {name!r}"
        lowering.context.warn(f"{reason}; rows of {result.table!r} stand for their values of {used!r}")
    else:
        used = shared
        lowering.context.warn(f"rows of {result.table!r} stand for their values of {used!r}, which {name!r} has as well")
    return alg.Objects(alg.Scan(result.node, (used,)))


def joined_rows(lowering: Lowering, result: Result, table: str) -> alg.Entities | None:
    """The rows of a table that belong to what came from another one: they refer to each other, or
    share values of a column.
    """
    context = lowering.context
    if result.table is None or result.table == table:
        return None
    if not isinstance(result.node, alg.Entities):
        if result.column is None or not result.carried or not isinstance(result.node, alg.Values):
            return None
        how = _refers(lowering, _column(lowering, result.table, result.column), table)
        if how is None:
            return None
        context.remark(f"{result.column!r} refers to rows of {table!r}{_BY[how]}")
        return alg.intersect(alg.SameName(alg.Referents(result.node)), context.rows(table))
    there = [name for name in _names(lowering, table) if _refers(lowering, _column(lowering, table, name), result.table)]
    here = [name for name in _names(lowering, result.table) if _refers(lowering, _column(lowering, result.table, name), table)]
    if there or here:
        context.remark(f"rows of {result.table!r} and {table!r} refer to each other by {', '.join(map(repr, (*there, *here)))}")
        parts: list[alg.Entities] = []
        if there:
            parts.append(
                alg.Reached(
                    alg.Where(
                        alg.Scan(None, tuple(there), "subject", "subject", source=table), alg.Among(alg.SameName(result.node))
                    )
                )
            )
        if here:
            referred = alg.Referents(alg.Objects(alg.Scan(result.node, tuple(here), family="relation")))
            parts.append(alg.intersect(alg.SameName(referred), context.rows(table)))
        return alg.union(*parts)
    pairs = [
        (_likeness(lowering, result.table, own, _column(lowering, table, name), name, result.column, table), -at, own, name)
        for at, name in enumerate(_names(lowering, table))
        for own in _names(lowering, result.table)
    ]
    best = max((pair for pair in pairs if pair[0][0]), default=None)
    if best is None:
        return None
    _, _, own, name = best
    context.warn(f"rows of {result.table!r} mean the rows of {table!r} whose {name!r} is their {own!r}")
    values = alg.Objects(alg.Scan(result.node, (own,)))
    return alg.Reached(alg.Where(alg.Scan(None, (name,), "subject", "subject", source=table), alg.Equals(values)))


def _nearest(lowering: Lowering, table: str, column: Column, name: str, used: str | None) -> str | None:
    """The column of a table that has most of another column's values; None where none has any."""
    names = _names(lowering, table)
    ranked = [(_likeness(lowering, table, own, column, name, used, None), -at, own) for at, own in enumerate(names)]
    best = max((item for item in ranked if item[0][0]), default=None)
    return None if best is None else best[2]


#: How well two columns go together: shared values, the same header, a header that names the other
#: table, how much of one is in the other, whether that one has each value once, whether it is the
#: column in use. The first is 0 where they do not.
_Likeness: TypeAlias = tuple[bool, bool, bool, float, bool, bool]


def _likeness(lowering: Lowering, table: str, own: str, column: Column, name: str, used: str | None, of: str | None) -> _Likeness:
    """How well the column `own` of a table goes with `column`, which is called `name` and is one of
    the table `of`.
    """
    mine = _column(lowering, table, own)
    shared = len(column.values & mine.values)
    if not shared:
        return False, False, False, 0.0, False, False
    kin = _names_it(name, table, own) or (of is not None and _names_it(own, of, name))
    inside, around = sorted((mine, column), key=lambda item: len(item.values))
    return True, own == name, kin, shared / len(inside.values), len(around.values) == len(around), own == used


def _names_it(header: str, table: str, key: str) -> bool:
    """Whether a header names a table, or a table and its key: "customer", "customer_id" and
    "customers" of customers.
    """
    said, wanted = _plain(header), _plain(table.rpartition("/")[2])
    single = wanted[:-3] + "y" if wanted.endswith("ies") else wanted.removesuffix("s")
    return said in {item + end for item in (wanted, single) for end in ("", "id", "key", "no", "number", "name", _plain(key))}


def _plain(text: str) -> str:
    return "".join(character for character in fold(text) if character.isalnum())


def _names(lowering: Lowering, table: str) -> list[str]:
    return [name for several in lowering.context.linker.predicates(table).values() for name in several]


def _column(lowering: Lowering, table: str, name: str) -> Column:
    return lowering.context.linker.column((name,), table)

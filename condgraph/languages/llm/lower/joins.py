"""Joins of rows with another table: by a column that refers to them, else by a shared column.

The vocabularies of the columns decide: whether the objects of a column are rows of the table or have
the names of its rows, and which columns have values in common. No fact is read.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from condgraph.engine import algebra as alg
from condgraph.engine.errors import PlanError
from condgraph.engine.values import Kind, fold
from condgraph.languages.llm.lower.context import Lowering, Result
from condgraph.names.linking import Column


def themselves(lowering: Lowering, result: Result, column: Column, name: str) -> alg.Entities | None:
    """Return the rows of a result, if a column refers to their table; else None."""
    if not isinstance(result.node, alg.Entities) or result.table is None:
        return None
    reference = _refers(lowering, column, result.table)
    if reference is None:
        return None
    lowering.context.remark(f"rows of {result.table!r} are compared as rows: {name!r} refers to them{_BY[reference]}")
    return result.node if reference == "row" else alg.SameName(result.node)


def _refers(lowering: Lowering, column: Column, table: str) -> Literal["row", "name"] | None:
    """Return how a column refers to a table: by its rows, or by entities with their names; else None."""
    if not any(kind is Kind.ENTITY for kind, _ in column.kinds):
        return None
    if column.refers_to(table):
        return "row"
    names = lowering.context.linker.heads(tuple(_names(lowering, table))).names
    return None if column.values.isdisjoint(names) else "name"


#: How remarks describe each kind of reference.
_BY: Final = {"row": "", "name": " by their names"}


def keyed(lowering: Lowering, text: str, column: Column, name: str) -> alg.Entities | None:
    """Return the rows with a key, in a column that refers to their table; None if no row has it.

    Users know the keys, as in SQL. If an object of the column has that name, too, both are meant.
    """
    context = lowering.context
    result: dict[str, str] = {}
    for table in sorted(context.linker.tables):
        # Ids of rows may begin with the table's path or its last part. A row that was referred to
        # before it was loaded may have its key alone, and the text may be an id itself.
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
    """Return the values that identify rows in another source: those of the column that shares most with it."""
    assert isinstance(result.node, alg.Entities)
    assert result.table is not None
    shared = _most_shared(lowering, result.table, column, name, result.column)
    if shared is None:
        own_column = lowering.shown_column(result)
        if own_column is None:
            raise PlanError(f"rows of {result.table!r} have no column to show", span=result.span)
        reason = f"no column of {result.table!r} shares a value with {name!r}"
        lowering.context.warn(f"{reason}; rows of {result.table!r} are read as their values of {own_column!r}")
    else:
        own_column = shared
        lowering.context.warn(f"rows of {result.table!r} are read as their values of {own_column!r}, which {name!r} has as well")
    return alg.Objects(alg.Scan(result.node, (own_column,)))


def joined_rows(lowering: Lowering, result: Result, table: str) -> alg.Entities | None:
    """Return the rows of a table that belong to a result of another one.

    One table refers to the other, or two columns share values.
    """
    context = lowering.context
    if result.table is None or result.table == table:
        return None
    if not isinstance(result.node, alg.Entities):
        if result.column is None or not result.carried or not isinstance(result.node, alg.Values):
            return None
        reference = _refers(lowering, _column(lowering, result.table, result.column), table)
        if reference is None:
            return None
        context.remark(f"{result.column!r} refers to rows of {table!r}{_BY[reference]}")
        return alg.intersect(alg.SameName(alg.Referents(result.node)), context.rows(table))
    their_columns = [name for name in _names(lowering, table) if _refers(lowering, _column(lowering, table, name), result.table)]
    own_columns = [
        name for name in _names(lowering, result.table) if _refers(lowering, _column(lowering, result.table, name), table)
    ]
    if their_columns or own_columns:
        context.remark(
            f"rows of {result.table!r} and {table!r} refer to each other by {', '.join(map(repr, (*their_columns, *own_columns)))}"
        )
        parts: list[alg.Entities] = []
        if their_columns:
            parts.append(
                alg.Reached(
                    alg.Where(
                        alg.Scan(None, tuple(their_columns), "subject", "subject", source=table),
                        alg.Among(alg.SameName(result.node)),
                    )
                )
            )
        if own_columns:
            referred = alg.Referents(alg.Objects(alg.Scan(result.node, tuple(own_columns), family="relation")))
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


def _most_shared(lowering: Lowering, table: str, column: Column, name: str, used: str | None) -> str | None:
    """Return the column of a table that shares most values with another column, or None."""
    names = _names(lowering, table)
    ranked = [(_likeness(lowering, table, own, column, name, used, None), -at, own) for at, own in enumerate(names)]
    best = max((item for item in ranked if item[0][0]), default=None)
    return None if best is None else best[2]


#: How well two columns match: shared values, equal headers, a header that names the other table, the
#: share of the smaller one's values in the larger, whether the larger has unique values, whether the
#: column is in use. The first is False if they do not match.
_Likeness: TypeAlias = tuple[bool, bool, bool, float, bool, bool]


def _likeness(lowering: Lowering, table: str, own: str, column: Column, name: str, used: str | None, of: str | None) -> _Likeness:
    """Return how well the column `own` of a table matches `column`, called `name`, of the table `of`."""
    own_values = _column(lowering, table, own)
    shared = len(column.values & own_values.values)
    if not shared:
        return False, False, False, 0.0, False, False
    names_other = _is_reference(name, table, own) or (of is not None and _is_reference(own, of, name))
    smaller, larger = sorted((own_values, column), key=lambda item: len(item.values))
    return True, own == name, names_other, shared / len(smaller.values), len(larger.values) == len(larger), own == used


def _is_reference(header: str, table: str, key: str) -> bool:
    """Whether a header names a table and perhaps its key: "customer", "customer_id", "customers"."""
    plain_header, plural = _alphanumeric(header), _alphanumeric(table.rpartition("/")[2])
    singular = plural[:-3] + "y" if plural.endswith("ies") else plural.removesuffix("s")
    return plain_header in {
        item + end for item in (plural, singular) for end in ("", "id", "key", "no", "number", "name", _alphanumeric(key))
    }


def _alphanumeric(text: str) -> str:
    return "".join(character for character in fold(text) if character.isalnum())


def _names(lowering: Lowering, table: str) -> list[str]:
    return [name for several in lowering.context.linker.predicates(table).values() for name in several]


def _column(lowering: Lowering, table: str, name: str) -> Column:
    return lowering.context.linker.column((name,), table)

"""The options of tables, checked: what all table formats take, and how an option that is a list, a
text or a truth is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from condgraph.engine.errors import OptionError, nearest
from condgraph.engine.values import collapse
from condgraph.loaders.base import Options
from condgraph.loaders.table.cells import DECLARED, MISSING, Declared
from condgraph.loaders.table.joined_columns import To, join_option

#: Options of every table format.
TABLE_OPTIONS: Final[Mapping[str, str]] = {
    "types": 'how columns are read, whatever their cells say: {column: "text", "number", "time" or "auto"}, or one for all',
    "key": "the column that identifies the rows: ids and names of the rows are its cells",
    "name_column": "the column that names the rows",
    "missing": "further texts that stand for a missing cell",
    "refs": "columns whose cells are names of entities rather than values",
    "join": "columns that refer to rows of other sources: {'country': 'countries.country'}, in any order; False: ask nothing",
    "day_first": "whether 03/05/2010 is the third of May (default: decided by column, text where undecided)",
    "decimal": "what stands before decimals, a comma or a point (default: decided by column and file)",
    "seasons": "whether 2004-05 is the years 2004 and 2005 rather than May 2004 (default: decided by column)",
}
#: Those that say how cells are read, which tables inside a source share.
CELL_OPTIONS: Final = ("missing", "day_first", "decimal", "seasons")
_TYPES: Final = "types are: " + ", ".join(DECLARED)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of `TABLE_OPTIONS`, checked; columns are by name until `Table` finds them."""

    types: Mapping[str, Declared]
    every_type: Declared
    key: str | None
    name_column: str | None
    missing: frozenset[str]
    refs: tuple[str, ...]
    day_first: bool | None
    decimal: str | None = None
    seasons: bool | None = None
    join: Mapping[str, To] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Options) -> TableOptions:
        """Check the options; raises `OptionError`."""
        types = options.get("types") or {}
        every: Declared = "auto"
        if isinstance(types, str):
            every, types = _declared(types), {}
        if not isinstance(types, Mapping):
            raise OptionError("types= is a mapping of columns to types, or one type for all columns", hint=_TYPES)
        return cls(
            types={str(column): _declared(kind) for column, kind in types.items()},
            every_type=every,
            key=_name(options, "key"),
            name_column=_name(options, "name_column"),
            missing=MISSING | {collapse(marker).casefold() for marker in texts_option(options, "missing")},
            refs=tuple(texts_option(options, "refs")),
            day_first=truth_option(options, "day_first"),
            decimal=_decimal(options.get("decimal")),
            seasons=truth_option(options, "seasons"),
            join=join_option(options.get("join")),
        )


def _declared(kind: Any) -> Declared:
    if kind not in DECLARED:
        raise OptionError(f"there is no column type {kind!r}", candidates=nearest(str(kind), DECLARED), hint=_TYPES)
    return cast(Declared, kind)


def _decimal(mark: Any) -> str | None:
    if mark not in (None, ",", "."):
        raise OptionError(f"decimal= is a comma or a point, not {mark!r}")
    return cast("str | None", mark)


def _name(options: Options, option: str) -> str | None:
    found = options.get(option)
    if found is not None and not isinstance(found, str):
        raise OptionError(f"{option}= is the name of a column, not {type(found).__name__}")
    return None if found is None else collapse(found)


def texts_option(options: Options, option: str) -> list[str]:
    """An option that is a list of texts; one text is a list of one. Raises `OptionError`."""
    found = options.get(option)
    if found is None:
        return []
    if isinstance(found, str):
        return [found]
    if not isinstance(found, Iterable) or isinstance(found, Mapping):
        raise OptionError(f"{option}= is a list of texts, not {type(found).__name__}")
    texts = list(found)
    if not all(isinstance(text, str) for text in texts):
        raise OptionError(f"{option}= is a list of texts")
    return texts


def truth_option(options: Options, option: str) -> bool | None:
    """An option that is true, false or not given; raises `OptionError`."""
    found = options.get(option)
    if found is None or isinstance(found, bool):
        return found
    raise OptionError(f"{option}= is true or false, not {found!r}")

"""How a program is to be run: one record, whether Python, a command, an HTTP request or an agent asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any

from condgraph.engine.bounds import check_bounds
from condgraph.engine.errors import OptionError
from condgraph.names.words import OnUnknown

if TYPE_CHECKING:
    from condgraph.engine.conflicts import Prefer
    from condgraph.engine.period import Period, TimeLike
    from condgraph.versions import AsOf


# Not frozen, as that costs a short query 5 % of its time; nobody changes one.
@dataclass(slots=True)
class QueryOptions:
    """The options of a query, each None where it is not specified. Raises `OptionError` for a value
    that no query takes.

    `timeout` is in seconds, `limit` the most values to give, `parameters` the values of `$name` in
    the program, `table` a clause over its rows, `further` what only its language takes. `at` is the
    time, or `between` the two times, at which statements have to hold, with `certain` for certain. `as_of` names
    the version of the graph that is asked, `prefer` what resolves conflicts of declared predicates, or of those that it names.
    """

    language: str | None = None
    engine: str | None = None
    timeout: float | None = None
    limit: int | None = None
    cancelled: Event | None = None
    on_unknown: OnUnknown = "error"
    table: Any = None
    parameters: Mapping[str, Any] | None = None
    further: Mapping[str, Any] | None = None
    at: TimeLike | Period | None = None
    between: Sequence[TimeLike | None] | None = None
    certain: bool = False
    as_of: AsOf | None = None
    prefer: Prefer | None = None

    def __post_init__(self) -> None:
        if self.timeout is not None or self.limit is not None:
            check_bounds(self.timeout, self.limit)
        if self.on_unknown not in ("error", "empty", "nearest"):
            raise OptionError(f"on_unknown is 'error', 'empty' or 'nearest', not {self.on_unknown!r}")

    def of_language(self) -> dict[str, Any]:
        """Those that the language of the program takes."""
        options = dict(self.further) if self.further else {}
        if self.on_unknown != "error":
            options["on_unknown"] = self.on_unknown
        if self.table is not None:
            options["table"] = self.table
        if (period := self.period) is not None:
            options["period"] = period
        return options

    @property
    def period(self) -> Period | None:
        """The time that the query asks about; raises `OptionError` for what is none."""
        if self.at is None and self.between is None and self.certain is False:
            return None
        from condgraph.engine.period import Period

        return Period.of(self.at, self.between, self.certain)

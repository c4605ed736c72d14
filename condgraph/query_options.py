"""The options of a query as one record, shared by the Python API, the commands, HTTP requests and agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.bounds import check_bounds
from condgraph.engine.errors import OptionError
from condgraph.names.words import OnUnknown

if TYPE_CHECKING:
    from condgraph.engine.conflicts import Prefer
    from condgraph.engine.period import Period, TimeLike
    from condgraph.versions import AsOf


@dataclass(frozen=True, slots=True)
class Option:
    """What an option means, the bounds of a number, and the word for its value on the command line."""

    about: str
    least: int | None = None
    most: int | None = None
    value: str | None = None


#: The options that the command line, HTTP and agents share, by name.
ABOUT: Final[Mapping[str, Option]] = {
    "at": Option("Only statements that may hold at this time: 1984, 1984-05-03.", value="TIME"),
    "between": Option("Only statements that may hold between two times.", value="FROM TO"),
    "certain": Option("Only statements that certainly hold in all of that time."),
    "as_of": Option("Query an earlier version, by its id or a time: g000003, 2026-11-27.", value="VERSION"),
    "engine": Option("Engine for a local graph: in process, or its RDF store."),
    "on_unknown": Option("For an unknown name: an error that lists the nearest, an empty answer, or the nearest predicate."),
    "group_by": Option("Return each value of this node once; may be repeated.", value="NODE"),
    "injective": Option("Different nodes must match different entities."),
    "free": Option("A statement may be used for any edges: free walks."),
    "induced": Option("Allow no further edges between the nodes; if directed, none against the pattern's either."),
    "fast": Option("Use the paper's numbers of candidates; the answer is approximate."),
    "stretch": Option("An edge may match a path of two statements; this costs 0.25."),
    "leave_out": Option("If nothing is near, one named edge may be left out; this costs 1."),
    "k_nodes": Option("Number of candidates for each known node.", 1, 100_000),
    "k_relations": Option("Number of candidates for each known relation.", 1, 100_000),
    "k_types": Option("Number of types that match a hint.", 1, 100_000),
    "via": Option("The language that the model writes."),
    "source": Option("Use only this source."),
    "samples": Option("Number of programs that vote.", 1, 9),
    "aware": Option("Write KoPL, restricted to the predicates of the question's entities, if the model's server accepts grammars."),
    "verbalise": Option("Let the model put the answer into words."),
    "parts": Option("When to split it into parts: if its answer is empty or doubtful, or always."),
}


# Not frozen, because that costs a short query 5 % of its time.
@dataclass(slots=True)
class QueryOptions:
    """The options of a query; most are None if not given. Raises `OptionError` for an invalid value.

    - `language`: the language of the program; by default it is recognised
    - `engine`: the engine of the store (`storage.ENGINES`)
    - `timeout`: in seconds
    - `limit`: the maximum number of values shown
    - `cancelled`: an event that ends the query when it is set
    - `on_unknown`: "error", "empty" (unknown names match nothing) or "nearest" (an unknown predicate is replaced)
    - `table`: a clause that is applied to the program's rows
    - `parameters`: the values of `$name` in the program
    - `further`: options of the language only
    - `at`, `between`: the time, or two times, at which statements must hold; with `certain`, they must certainly hold
    - `as_of`: the version of the graph to query
    - `prefer`: the preference that resolves conflicts of the declared predicates, or a mapping by predicate
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
        """Return the options that are passed to the language of the program."""
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
        """The time that `at`, `between` and `certain` name, or None. Raises `OptionError` for an invalid time."""
        if self.at is None and self.between is None and self.certain is False:
            return None
        from condgraph.engine.period import Period

        return Period.of(self.at, self.between, self.certain)

"""The connection to a Neo4j server: drivers, sessions, deadlines that bind even if the server is silent, and errors as
condgraph's own types.
"""

from __future__ import annotations

import os
import re
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4

from condgraph.cypher.dialect import translated
from condgraph.cypher.guard import check_plan, check_read_whole, check_text
from condgraph.cypher.servers import NEO4J, TOO_OLD, Engine, engine_of
from condgraph.engine.addresses import NEO4J_SCHEMES, parse, shown
from condgraph.engine.bounds import LONGER, Budget, Workers, bounded_by, check_bounds, current, late, merged
from condgraph.engine.errors import (
    CancelledError,
    DeadlineError,
    OptionError,
    StoreError,
    StoreMissingError,
    StoreVersionError,
    requiring,
)

if TYPE_CHECKING:
    import neo4j


# -- Sessions and transactions -----------------------------------------------------------------------
# Objects used by a worker thread while its caller waits: a session that can be cut off, and a writing
# transaction.


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a query: its rows, and the numbers of nodes and relationships created or deleted."""

    rows: list[dict[str, Any]]
    nodes: int
    edges: int
    deleted: int


class Transaction:
    """A writing transaction; `Connection.transaction` commits it."""

    def __init__(self, transaction: neo4j.Transaction) -> None:
        self._transaction = transaction

    def run(self, text: str, parameters: dict[str, Any]) -> Outcome:
        """Run a query and read all of its result."""
        result = self._transaction.run(text, parameters)
        rows = [record.data() for record in result]
        counters = result.consume().counters
        deleted = counters.nodes_deleted + counters.relationships_deleted
        return Outcome(rows, counters.nodes_created, counters.relationships_created, deleted)

    def rollback(self) -> None:
        """Undo everything."""
        self._transaction.rollback()


class Line:
    """The session of a worker thread, which another thread can cut off."""

    __slots__ = ("over", "session")

    def __init__(self) -> None:
        self.session: neo4j.Session | None = None
        self.over = False

    def cut(self) -> None:
        """Close the connection of the session, if any: a thread that reads from it gets an error at once.

        A session that is not connected yet ends by the driver's own timeouts.
        """
        self.over = True
        # The driver has no public way to do this; without it, the thread ends when the server responds.
        connection = getattr(self.session, "_connection", None)
        kill = getattr(connection, "kill", None)
        if kill is not None:
            with suppress(Exception):
                kill()


# -- Opening a driver --------------------------------------------------------------------------------


def opened(place: Any, user: str | None, password: str | None, patience: float) -> tuple[neo4j.Driver, str, str | None]:
    """Return a driver for an address, the address without passwords, and the database named in it.

    `patience` is the timeout of a connection, in seconds. Raises `OptionError` for an invalid address.
    """
    import neo4j

    if not isinstance(place, str):
        place, user, password = _profile(place)
    elif place.partition("://")[2].partition("/")[0] == "":
        place = os.environ.get("NEO4J_URI") or os.environ.get("NEO4J_URL") or place
    address = parse(place, NEO4J_SCHEMES, example="neo4j://localhost:7687")
    if not address.host:
        raise OptionError(f"{shown(place)!r} names no server", hint="such as neo4j://localhost:7687, or NEO4J_URI")
    user = user or address.user or os.environ.get("NEO4J_USERNAME") or os.environ.get("NEO4J_USER")
    password = password or address.password or os.environ.get("NEO4J_PASSWORD")
    if password and not user:
        user = "neo4j"
    plain = address._replace(path="").plain
    try:
        driver = neo4j.GraphDatabase.driver(
            plain,
            auth=(user, password) if user and password is not None else None,
            # An idle connection is checked first, so that a restart of the server fails no query.
            liveness_check_timeout=5.0,
            notifications_min_severity="OFF",
            connection_timeout=patience,
            connection_acquisition_timeout=patience,
        )
    except (ValueError, neo4j.exceptions.ConfigurationError) as error:
        raise OptionError(f"{plain!r} is not an address: {error}") from None
    return driver, plain, address.path.strip("/") or None


def _profile(place: Any) -> tuple[str, str | None, str | None]:
    """Return the address, user and password of a `py2neo.Graph`."""
    profile = getattr(getattr(place, "service", None), "profile", None)
    if profile is None:
        raise OptionError(f"{type(place).__name__} is neither an address, a neo4j.Driver nor a py2neo.Graph")
    user, password = tuple(profile.auth) if getattr(profile, "auth", None) else (None, None)
    return str(profile.uri), user or None, password or None


# -- Failures ----------------------------------------------------------------------------------------
# Errors of the driver and the server: which are temporary and retried, and which of condgraph's errors
# the others become.


T = TypeVar("T")
#: Returned when two clients create the same index at once, in spite of `IF NOT EXISTS`. The index exists
#: afterwards.
_RACED: Final = "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists"


def retried(work: Callable[[], T], patience: float, line: Line) -> T:
    """Run `work`, and repeat it for `patience` seconds after temporary failures.

    After a dead connection it is repeated at once, later if the server reports a temporary error; not if the server ran out of
    memory, as it would again. Raises the driver's errors.
    """
    from neo4j import exceptions

    until, lost, pause = time.monotonic() + patience, False, 0.05
    while True:
        try:
            return work()
        except (exceptions.ServiceUnavailable, exceptions.SessionExpired):
            if lost or line.over:
                raise
            lost = True
        except exceptions.Neo4jError as error:
            passes = error.code == _RACED or (error.is_retryable() and "OutOfMemory" not in (error.code or ""))
            again = passes and not line.over
            if not again or time.monotonic() + pause > until:
                raise
            time.sleep(pause)
            pause *= 2


@contextmanager
def as_own_errors(place: str, database: str | None) -> Iterator[None]:
    """Turn errors of the driver into condgraph's own, naming the address and the database."""
    from neo4j import exceptions

    try:
        yield
    except exceptions.AuthError as error:
        raise StoreError(f"{place} refuses the user or the password", hint="set NEO4J_USERNAME and NEO4J_PASSWORD") from error
    except (exceptions.ServiceUnavailable, exceptions.SessionExpired) as error:
        raise _unreachable(place, error) from error
    except exceptions.Neo4jError as error:
        code = error.code or ""
        if "TransactionTimedOut" in code or "Terminated" in code:
            raise DeadlineError("the query did not end before its deadline", hint="a longer timeout= may help") from error
        if "DatabaseNotFound" in code:
            raise StoreMissingError(f"{place} has no database {database!r}") from error
        if ".Security." in code:
            raise StoreError(f"{place} refuses: {error.message}", hint="set NEO4J_USERNAME and NEO4J_PASSWORD") from error
        raise StoreError(f"the server says: {error.message}") from error
    except exceptions.DriverError as error:
        raise StoreError(f"{place}: {error}") from error


def _unreachable(place: str, error: Exception) -> StoreError:
    """Return the error for a server that could not be reached, or whose TLS failed."""
    scheme, mark, host = place.partition("://")
    tls = next((cause for cause in _causes(error) if isinstance(cause, ssl.SSLError)), None)
    if tls is None or "+s" not in scheme:
        return StoreError(f"no server answers at {place}", hint="is it running, and is the address right?")
    if isinstance(tls, ssl.SSLCertVerificationError):
        hint = f"{scheme.partition('+')[0]}+ssc{mark}{host} accepts an untrusted one"
        return StoreError(f"the certificate of {place} is not accepted: {tls.verify_message}", hint=hint)
    plain = f"{scheme.partition('+')[0]}{mark}{host}"
    return StoreError(f"the server at {place} does not use TLS, which +s in its address requires", hint=f"{plain} asks without")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all that caused it."""
    pending: list[BaseException | None] = [error]
    while pending:
        cause = pending.pop()
        if cause is not None:
            yield cause
            pending += [cause.__cause__ or cause.__context__, *getattr(cause, "exceptions", ())]


# -- The connection ----------------------------------------------------------------------------------
# Whatever waits for the server under a deadline does so in a thread (`engine.bounds`), so that the caller
# is free at the deadline even if the server is silent. Requests that a healthy server answers at once (a
# connection, the state of a graph, a plan) have a timeout of their own, `patience`, if the call has no
# deadline; writing has ten times that for each transaction.


#: Default of `patience=`: seconds for requests that a healthy server answers at once.
PATIENCE: Final = 30.0
#: Factor on `patience` for a writing transaction.
_WRITING: Final = 10
#: Seconds to reach a server when a graph is opened.
_REACH: Final = 2.0
#: Seconds after the deadline in which the server may end a query itself, before its connection is cut.
_LINGER: Final = 5.0
#: Seconds for the query that terminates another one.
_ENDING: Final = 30.0
#: Seconds in which temporary failures (a deadlock, a new leader) are retried.
_RETRY: Final = 15.0
#: Seconds that the server may take for an index.
_INDEXES: Final = 660.0
#: The first version of Neo4j for which all queries are written.
_OLDEST: Final = (5, 26)
#: Rows that the server sends at once.
_FETCH: Final = 10_000
_END: Final = (
    "SHOW TRANSACTIONS YIELD transactionId AS id, metaData WHERE metaData.condgraph = $token "
    "TERMINATE TRANSACTIONS id YIELD message RETURN message"
)


class Connection:
    """A driver with the database to use, opened from an address or around an existing driver, which is then not closed here.

    `patience` is how many seconds the server may be silent on small requests; `timeout` is the default deadline of calls, in
    seconds.
    """

    def __init__(
        self,
        place: Any,
        *,
        user: str | None = None,
        password: str | None = None,
        database: str | None = None,
        patience: float | None = None,
        timeout: float | None = None,
    ) -> None:
        check_bounds(timeout)
        self.patience, self.timeout = PATIENCE if patience is None else patience, timeout
        if not self.patience > 0:
            raise OptionError(f"patience is in seconds and more than 0, not {patience}")
        self.database = database or os.environ.get("NEO4J_DATABASE")
        self._workers = Workers("condgraph-neo4j", linger=_LINGER)
        self._version: tuple[int, ...] | None = None
        self._engine = NEO4J
        with requiring("the neo4j driver", "neo4j"):
            import neo4j
        # Bookmarks of writes only: after a restore from a backup, readers do not wait for a state that
        # the database never had.
        self._bookmarks = neo4j.GraphDatabase.bookmark_manager()
        self.owned = not isinstance(place, neo4j.Driver)
        if isinstance(place, neo4j.Driver):
            self.driver, self.place = place, repr(place)
            return
        self.driver, self.place, path = opened(place, user, password, self.patience)
        self.database = database or path or self.database

    def close(self) -> None:
        """Close the driver."""
        self._workers.close()
        if self.owned:
            # Closing says goodbye to the server, which may not respond.
            with suppress(DeadlineError):
                self._workers.run(self.driver.close, patience=min(self.patience, _LINGER), silent=self._silent)

    @property
    def engine(self) -> Engine:
        """The kind of server, with its capabilities; asked once."""
        if self._version is None:
            self.ask("RETURN 1 AS one", {})
        return self._engine

    # -- reading -----------------------------------------------------------------------------------

    def read(
        self, text: str, parameters: dict[str, Any], *, timeout: float | None = None, cancelled: Event | None = None
    ) -> list[dict[str, Any]]:
        """Run one reading query in a read transaction, and return its rows.

        The caller gets an answer or `DeadlineError` by the deadline (its own, or that of the surrounding call), and
        `CancelledError` soon after cancellation; in both cases the server is told to terminate the query.
        """
        return self._waited(text, parameters, merged(timeout, cancelled), lambda record: record.data())

    def pass_on(self, text: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        """Like `read`, for a user's query after `check_reading`: it is sent unchanged."""
        return self._waited(text, parameters, current(), lambda record: record.data(), own=False)

    def rows(self, text: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        """Like `read`, for a query that returns no nodes or relationships, which are then not searched for."""
        return self._waited(text, parameters, current(), lambda record: dict(zip(record.keys(), record.values(), strict=True)))

    def values(
        self, text: str, parameters: dict[str, Any], *, timeout: float | None = None, cancelled: Event | None = None
    ) -> list[list[Any]]:
        """Like `read`, with rows as lists, for values that are not nodes or relationships."""
        return self._waited(text, parameters, merged(timeout, cancelled), lambda record: record.values())

    def ask(self, text: str, parameters: dict[str, Any], *, patience: float | None = None) -> list[dict[str, Any]]:
        """Run a small reading query, with a timeout of `patience` seconds in any case."""
        enough = self.patience if patience is None else min(patience, self.patience)
        return self._waited(text, parameters, current(), lambda record: record.data(), enough)

    def reach(self) -> None:
        """Raise `StoreError` if no server answers, or it has no such database. A silent server fails at the first query."""
        with suppress(DeadlineError):
            self.ask("RETURN 1 AS one", {}, patience=_REACH)

    def _waited(
        self,
        text: str,
        parameters: dict[str, Any],
        budget: Budget | None,
        shaped: Callable[[neo4j.Record], T],
        patience: float | None = None,
        *,
        own: bool = True,
    ) -> list[T]:
        line = Line()
        if budget is None and patience is None:
            return self._run(text, parameters, None, None, shaped, line, own=own)
        token = uuid4().hex if budget is not None and budget.events else None
        remaining = None if budget is None else budget.left()
        timeout = remaining if patience is None else patience if remaining is None else min(remaining, patience)
        with bounded_by(budget):
            try:
                return self._patient(lambda: self._run(text, parameters, timeout, token, shaped, line, own=own), line, patience)
            except CancelledError:
                ending = Line()
                self._workers.leave(
                    lambda: self._run(_END, {"token": token}, _ENDING, None, lambda record: None, ending), ending.cut
                )
                raise

    def _patient(self, work: Callable[[], T], line: Line, patience: float | None) -> T:
        """Run work in a thread, within the deadline of the call and, if given, within `patience` seconds."""
        hint = f"the server was told to end it; {LONGER}"
        return self._workers.run(work, hint=hint, patience=patience, silent=self._silent, cut=line.cut)

    def _silent(self) -> DeadlineError:
        return DeadlineError(
            f"{self.place} does not answer", hint="it may be stopped or very busy; patience= sets how long to wait for it"
        )

    def _run(
        self,
        text: str,
        parameters: dict[str, Any],
        timeout: float | None,
        token: str | None,
        shaped: Callable[[neo4j.Record], T],
        line: Line,
        *,
        own: bool = True,
    ) -> list[T]:
        import neo4j

        # The server treats 0 as no deadline.
        limit = None if timeout is None else max(timeout, 0.001)

        def work() -> list[T]:
            # The kind of server is known once it is connected.
            sent = translated(text, self._engine) if own else text
            query = neo4j.Query(sent, timeout=limit, metadata=None if token is None else {"condgraph": token})
            with self._session(line, **self._reading(), fetch_size=_FETCH) as session:
                return [shaped(record) for record in session.run(query, parameters)]

        return self._retrying(work, min(_RETRY, timeout) if timeout is not None else _RETRY, line)

    def _reading(self) -> dict[str, Any]:
        """Return session options for reading, so that any member of a cluster has seen the writes of this connection."""
        from neo4j import Bookmarks

        return {"default_access_mode": "READ", "bookmarks": Bookmarks.from_raw_values(self._bookmarks.get_bookmarks())}

    @contextmanager
    def _session(self, line: Line, **options: Any) -> Iterator[neo4j.Session]:
        """Open a session that `line` can cut off."""
        if line.over:
            raise late()
        # Also for a driver opened by the caller: queries name labels that may not exist yet.
        with self.driver.session(database=self.database, notifications_min_severity="OFF", **options) as session:
            line.session = session
            try:
                yield session
            finally:
                line.session = None

    def stream(self, text: str, parameters: dict[str, Any]) -> Iterator[list[Any]]:
        """Yield the rows of one reading query as lists, as they come; if the call has a deadline, once all are there."""
        if current() is not None:
            yield from self.values(text, parameters)
            return
        with self._errors():
            self._patient(self._check_version, Line(), self.patience)
            options = {"notifications_min_severity": "OFF", **self._reading(), "fetch_size": _FETCH}
            with self.driver.session(database=self.database, **options) as session:
                for record in session.run(translated(text, self._engine), parameters):
                    yield record.values()

    def check_reading(self, text: str, parameters: dict[str, Any]) -> None:
        """Raise `ReadOnlyError` unless both a user's query and the server's plan of it only read."""
        check_text(text)
        if not self.engine.guards_reading:
            check_read_whole(text, self.engine.name)
            return
        line = Line()

        def work() -> tuple[neo4j.ResultSummary, tuple[str, ...]]:
            with self._session(line, **self._reading()) as session:
                result = session.run("EXPLAIN " + text, parameters)
                columns = result.keys()
                return result.consume(), columns

        summary, columns = self._patient(lambda: self._retrying(work, _RETRY, line), line, self.patience)
        check_plan(summary.query_type, summary.plan, columns)

    # -- writing -----------------------------------------------------------------------------------

    def transaction(self, work: Callable[[Transaction], T], *, patience: float | None = None) -> T:
        """Run `work` in one writing transaction and commit it.

        It is repeated after temporary failures, so it must be idempotent: a commit whose response was lost may have
        succeeded. The same holds after `DeadlineError`, raised when the server is silent for `patience` seconds (by
        default ten times that of the connection).
        """
        line = Line()

        def attempt() -> T:
            with self._session(line, bookmark_manager=self._bookmarks) as session, session.begin_transaction() as transaction:
                result = work(Transaction(transaction))
                if not transaction.closed():
                    transaction.commit()
                return result

        return self._patient(lambda: self._retrying(attempt, _RETRY, line), line, patience or _WRITING * self.patience)

    def write(self, text: str, parameters: dict[str, Any], *, patience: float | None = None) -> Outcome:
        """Run one writing query, which may be repeated, in a transaction of its own."""
        return self.transaction(lambda transaction: transaction.run(text, parameters), patience=patience)

    def schema(self, *texts: str) -> None:
        """Run statements that create constraints or indexes, in one transaction."""

        def work(transaction: Transaction) -> None:
            for text in texts:
                transaction.run(text, {})

        # Waiting for an index has a timeout of its own, on the server.
        self.transaction(work, patience=max(_WRITING * self.patience, _INDEXES))

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Run `work` in a thread of this connection."""
        return self._workers.submit(work)

    # -- failures ----------------------------------------------------------------------------------

    def _retrying(self, work: Callable[[], T], patience: float, line: Line) -> T:
        """Run `work`, repeat it after temporary failures, and raise others as condgraph's own errors."""
        with self._errors():
            self._check_version()
            return retried(work, patience, line)

    def _errors(self) -> AbstractContextManager[None]:
        return as_own_errors(self.place, self.database)

    def _check_version(self) -> None:
        if self._version is not None:
            return
        agent = self.driver.get_server_info().agent
        match = re.search(r"(\d+)\.(\d+)", agent)
        version = tuple(map(int, match.groups())) if match else (0, 0)
        engine = engine_of(agent)
        if engine.refusal:
            raise StoreVersionError(f"{self.place} is {engine.name}: {engine.refusal}", hint="Neo4j and ArcadeDB are targets")
        if version < _OLDEST:
            needed = f"Neo4j {'.'.join(map(str, _OLDEST))} or later is needed"
            raise StoreVersionError(f"{self.place} is {agent}; {needed}", hint=TOO_OLD.get(version))
        self._engine, self._version = engine, version

"""The connection to a server: sessions, deadlines kept towards the caller in any case, errors in condgraph's own types."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from condgraph.cypher.guard import check_plan, check_text
from condgraph.engine.errors import (
    CancelledError,
    DeadlineError,
    MissingExtraError,
    OptionError,
    StoreError,
    StoreMissingError,
    StoreVersionError,
)
from condgraph.engine.workers import Workers

if TYPE_CHECKING:
    import neo4j

T = TypeVar("T")
#: How long the caller waits beyond a deadline for the server to end a query by itself.
_GRACE: Final = 0.5
#: How long a query may take that ends another.
_ENDING: Final = 30.0
#: How long failures that pass (a deadlock, a new leader) are tried again.
_RETRY: Final = 15.0
#: The first version of Neo4j that all texts are written for.
_OLDEST: Final = (5, 26)
#: Rows that the server sends at once.
_FETCH: Final = 10_000
_END: Final = (
    "SHOW TRANSACTIONS YIELD transactionId AS id, metaData WHERE metaData.condgraph = $token "
    "TERMINATE TRANSACTIONS id YIELD message RETURN message"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a text gave: its rows, and how many nodes and relationships it made or deleted."""

    rows: list[dict[str, Any]]
    nodes: int
    edges: int
    deleted: int


class Transaction:
    """A writing transaction; `Connection.transaction` commits it."""

    def __init__(self, transaction: neo4j.Transaction) -> None:
        self._transaction = transaction

    def run(self, text: str, parameters: dict[str, Any]) -> Outcome:
        """Run a text to its end."""
        result = self._transaction.run(text, parameters)
        rows = [record.data() for record in result]
        counters = result.consume().counters
        deleted = counters.nodes_deleted + counters.relationships_deleted
        return Outcome(rows, counters.nodes_created, counters.relationships_created, deleted)

    def rollback(self) -> None:
        """Undo everything."""
        self._transaction.rollback()


class Connection:
    """A driver with the database to use. Opened from an address, or around an existing driver, which then is not closed here."""

    def __init__(self, place: Any, *, user: str | None = None, password: str | None = None, database: str | None = None) -> None:
        self.database = database or os.environ.get("NEO4J_DATABASE")
        self._workers = Workers("condgraph-neo4j")
        self._version: tuple[int, ...] | None = None
        try:
            import neo4j
        except ImportError:
            raise MissingExtraError("the neo4j driver", "neo4j") from None
        self.owned = not isinstance(place, neo4j.Driver)
        if isinstance(place, neo4j.Driver):
            self.driver, self.place = place, repr(place)
            return
        if not isinstance(place, str):
            place, user, password = _profile(place)
        elif not urlsplit(place).netloc:
            place = os.environ.get("NEO4J_URI") or os.environ.get("NEO4J_URL") or place
        try:
            parts = urlsplit(place)
            named = parts.hostname, parts.port
        except ValueError as error:
            raise OptionError(f"{place!r} is no address: {error}") from None
        if not named[0]:
            raise OptionError(f"{place!r} names no server", hint="such as neo4j://localhost:7687, or NEO4J_URI")
        user = user or unquote(parts.username or "") or os.environ.get("NEO4J_USERNAME") or os.environ.get("NEO4J_USER")
        password = password or unquote(parts.password or "") or os.environ.get("NEO4J_PASSWORD")
        if password and not user:
            user = "neo4j"
        if parts.path.strip("/"):
            self.database = database or parts.path.strip("/")
        self.place = parts._replace(netloc=parts.netloc.rpartition("@")[2], path="").geturl()
        try:
            self.driver = neo4j.GraphDatabase.driver(
                self.place,
                auth=(user, password) if user and password is not None else None,
                # A connection that was idle is asked whether it is alive, so that a restarted server costs nobody a query.
                liveness_check_timeout=5.0,
                notifications_min_severity="OFF",
                connection_acquisition_timeout=30.0,
            )
        except (ValueError, neo4j.exceptions.ConfigurationError) as error:
            raise OptionError(f"{self.place!r} is no address: {error}") from None

    def close(self) -> None:
        """Let go of the driver."""
        if self.owned:
            self.driver.close()

    # -- reading ----------------------------------------------------------------------------------------------------------

    def read(
        self, text: str, parameters: dict[str, Any], *, timeout: float | None = None, cancelled: Event | None = None
    ) -> list[dict[str, Any]]:
        """Run one reading query in a read transaction; its rows.

        The caller has an answer or `DeadlineError` at the deadline, and `CancelledError` soon after `cancelled` is set; the server
        is told to end the query in both cases.
        """
        return self._waited(text, parameters, timeout, cancelled, lambda record: record.data())

    def values(
        self, text: str, parameters: dict[str, Any], *, timeout: float | None = None, cancelled: Event | None = None
    ) -> list[list[Any]]:
        """The same with rows as lists, of values that are no nodes and no relationships: what is in them is not looked through."""
        return self._waited(text, parameters, timeout, cancelled, lambda record: record.values())

    def _waited(
        self,
        text: str,
        parameters: dict[str, Any],
        timeout: float | None,
        cancelled: Event | None,
        shaped: Callable[[neo4j.Record], T],
    ) -> list[T]:
        if timeout is None and cancelled is None:
            return self._read(text, parameters, None, None, shaped)
        token = None if cancelled is None else uuid4().hex
        try:
            return self._workers.run(
                lambda: self._read(text, parameters, timeout, token, shaped),
                None if timeout is None else timeout + _GRACE,
                cancelled,
                late="the server was told to end it; a longer timeout= may help",
            )
        except CancelledError:
            self._workers.submit(lambda: self._read(_END, {"token": token}, _ENDING, None, lambda record: None))
            raise

    def _read(
        self,
        text: str,
        parameters: dict[str, Any],
        timeout: float | None,
        token: str | None,
        shaped: Callable[[neo4j.Record], T],
    ) -> list[T]:
        import neo4j

        query = neo4j.Query(text, timeout=timeout, metadata=None if token is None else {"condgraph": token})

        def work() -> list[T]:
            with self.driver.session(database=self.database, default_access_mode="READ", fetch_size=_FETCH) as session:
                return [shaped(record) for record in session.run(query, parameters)]

        return self._retrying(work, min(_RETRY, timeout) if timeout is not None else _RETRY)

    def stream(self, text: str, parameters: dict[str, Any]) -> Iterator[list[Any]]:
        """The rows of one reading query as lists, as they come: what is read is never held whole."""
        with self._errors():
            self._check_version()
            with self.driver.session(database=self.database, default_access_mode="READ", fetch_size=_FETCH) as session:
                for record in session.run(text, parameters):
                    yield record.values()

    def check_reading(self, text: str, parameters: dict[str, Any]) -> None:
        """Raise `ReadOnlyError` unless the server's own plan of a text that people wrote reads the graph and nothing else."""
        check_text(text)

        def work() -> neo4j.ResultSummary:
            with self.driver.session(database=self.database, default_access_mode="READ") as session:
                return session.run("EXPLAIN " + text, parameters).consume()

        summary = self._retrying(work, _RETRY)
        check_plan(summary.query_type, summary.plan)

    # -- writing ----------------------------------------------------------------------------------------------------------

    def transaction(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one writing transaction and commit it. It is run again where it failed for a reason that passes, so it must
        do nothing twice: a commit whose answer was lost may have been one.
        """

        def once() -> T:
            with self.driver.session(database=self.database) as session, session.begin_transaction() as transaction:
                found = work(Transaction(transaction))
                if not transaction.closed():
                    transaction.commit()
                return found

        return self._retrying(once, _RETRY)

    def write(self, text: str, parameters: dict[str, Any]) -> Outcome:
        """Run one writing query, which may be run twice, in a transaction of its own."""
        return self.transaction(lambda transaction: transaction.run(text, parameters))

    def schema(self, *texts: str) -> None:
        """Run texts that make constraints or indexes, all in one transaction."""

        def work(transaction: Transaction) -> None:
            for text in texts:
                transaction.run(text, {})

        self.transaction(work)

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Run `work` in a thread of this connection."""
        return self._workers.submit(work)

    # -- failures ---------------------------------------------------------------------------------------------------------

    def _retrying(self, work: Callable[[], T], patience: float) -> T:
        """The result of `work`, tried again after a failure that passes: at once where a connection had died, later where the
        server says that it may work then. Not where the server ran out of memory: it would again.
        """
        from neo4j import exceptions

        until, lost, pause = time.monotonic() + patience, False, 0.05
        with self._errors():
            self._check_version()
            while True:
                try:
                    return work()
                except (exceptions.ServiceUnavailable, exceptions.SessionExpired):
                    if lost:
                        raise
                    lost = True
                except exceptions.Neo4jError as error:
                    if not error.is_retryable() or "OutOfMemory" in (error.code or "") or time.monotonic() + pause > until:
                        raise
                    time.sleep(pause)
                    pause *= 2

    def _check_version(self) -> None:
        if self._version is not None:
            return
        agent = self.driver.get_server_info().agent
        found = re.search(r"(\d+)\.(\d+)", agent)
        version = tuple(map(int, found.groups())) if found else (0, 0)
        if version < _OLDEST:
            raise StoreVersionError(f"{self.place} is {agent}; Neo4j {'.'.join(map(str, _OLDEST))} or later is needed")
        self._version = version

    @contextmanager
    def _errors(self) -> Iterator[None]:
        from neo4j import exceptions

        try:
            yield
        except exceptions.AuthError as error:
            raise StoreError(
                f"{self.place} refuses the user or the password", hint="NEO4J_USERNAME and NEO4J_PASSWORD say them"
            ) from error
        except (exceptions.ServiceUnavailable, exceptions.SessionExpired) as error:
            raise StoreError(f"no server answers at {self.place}", hint="is it running, and is the address right?") from error
        except exceptions.Neo4jError as error:
            code = error.code or ""
            if "TransactionTimedOut" in code or "Terminated" in code:
                raise DeadlineError("the query did not end before its deadline", hint="a longer timeout= may help") from error
            if "DatabaseNotFound" in code:
                raise StoreMissingError(f"{self.place} has no database {self.database!r}") from error
            if ".Security." in code:
                raise StoreError(
                    f"{self.place} refuses: {error.message}", hint="NEO4J_USERNAME and NEO4J_PASSWORD say who asks"
                ) from error
            raise StoreError(f"the server says: {error.message}") from error
        except exceptions.DriverError as error:
            raise StoreError(f"{self.place}: {error}") from error


def _profile(place: Any) -> tuple[str, str | None, str | None]:
    """Address, user and password of a `py2neo.Graph`."""
    profile = getattr(getattr(place, "service", None), "profile", None)
    if profile is None:
        raise OptionError(f"{place!r} is no address, no neo4j.Driver and no py2neo.Graph")
    user, password = tuple(profile.auth) if getattr(profile, "auth", None) else (None, None)
    return str(profile.uri), user or None, password or None

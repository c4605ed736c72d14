"""The connection to a server: sessions, deadlines kept towards the caller in any case, errors in condgraph's own types."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from condgraph.engine.errors import (
    CancelledError,
    DeadlineError,
    MissingExtraError,
    OptionError,
    ReadOnlyError,
    StoreError,
    StoreMissingError,
)

if TYPE_CHECKING:
    import neo4j

#: How long the caller waits beyond a deadline for the server to end a query by itself.
_GRACE: Final = 0.5
#: Operators of a plan that read or change more than the graph, whatever the query type says.
_FORBIDDEN: Final = (
    "LoadCSV",
    "Terminate",
    "Show",
    "Administration",
    "Create",
    "Delete",
    "Merge",
    "Set",
    "Remove",
    "Drop",
    "Alter",
)
_PROCEDURES: Final = (
    "db.labels",
    "db.relationshipTypes",
    "db.propertyKeys",
    "db.index.vector.queryNodes",
    "db.schema.visualization",
)


class Connection:
    """A driver with the database to use. Opened from an address, or around an existing driver, which then is not closed here."""

    def __init__(self, place: Any, *, user: str | None = None, password: str | None = None, database: str | None = None) -> None:
        self.database = database or os.environ.get("NEO4J_DATABASE")
        self._pool: ThreadPoolExecutor | None = None
        self.owned = isinstance(place, str)
        if not self.owned:
            self.driver, self.place = _existing(place), repr(place)
            return
        try:
            import neo4j
        except ImportError:
            raise MissingExtraError("the neo4j driver", "neo4j") from None
        parts = urlsplit(place)
        if not parts.hostname:
            raise OptionError(f"{place!r} names no server", hint="such as neo4j://localhost:7687")
        user = user or parts.username or os.environ.get("NEO4J_USERNAME") or os.environ.get("NEO4J_USER")
        password = password or parts.password or os.environ.get("NEO4J_PASSWORD")
        self.place = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        self.driver = neo4j.GraphDatabase.driver(
            self.place,
            auth=(user, password) if user and password is not None else None,
            # A connection that was idle is asked whether it is alive, so that a restarted server costs nobody a query.
            liveness_check_timeout=5.0,
            notifications_min_severity="OFF",
            connection_acquisition_timeout=30.0,
            max_transaction_retry_time=15.0,
        )

    def close(self) -> None:
        """Let go of the driver."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        if self.owned:
            self.driver.close()

    def read(
        self, text: str, parameters: dict[str, Any], *, timeout: float | None = None, cancelled: Event | None = None
    ) -> list[dict[str, Any]]:
        """Run one reading query in a read transaction; its rows.

        The caller has an answer or `DeadlineError` at the deadline, and `CancelledError` soon after `cancelled` is set; the server
        ends the query at its deadline.
        """
        if timeout is None and cancelled is None:
            return self._read(text, parameters, None)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(32, thread_name_prefix="condgraph-neo4j")
        future: Future[list[dict[str, Any]]] = self._pool.submit(self._read, text, parameters, timeout)
        until = None if timeout is None else time.monotonic() + timeout + _GRACE
        while True:
            left = None if until is None else max(until - time.monotonic(), 0.0)
            step = left if cancelled is None else 0.05 if left is None else min(0.05, left)
            try:
                return future.result(step)
            except FutureTimeout:
                if cancelled is not None and cancelled.is_set():
                    future.cancel()
                    raise CancelledError("the query was cancelled") from None
                if until is not None and time.monotonic() >= until:
                    future.cancel()
                    raise DeadlineError(
                        "the query did not end before its deadline",
                        hint="the server was told to end it; a longer timeout= may help",
                    ) from None

    def _read(self, text: str, parameters: dict[str, Any], timeout: float | None) -> list[dict[str, Any]]:
        import neo4j

        query = neo4j.Query(text, timeout=timeout)
        with self._errors(), self.driver.session(database=self.database, default_access_mode="READ") as session:
            return [record.data() for record in session.run(query, parameters)]

    def write(self, text: str, parameters: dict[str, Any]) -> None:
        """Run one writing query in a transaction of its own; transient failures are tried again by the driver."""
        with self._errors(), self.driver.session(database=self.database) as session:
            if text.startswith(("CREATE INDEX", "CREATE CONSTRAINT", "CALL db.await")):
                session.run(text, parameters).consume()
            else:
                session.execute_write(lambda transaction: transaction.run(text, parameters).consume())

    def check_reading(self, text: str, parameters: dict[str, Any]) -> None:
        """Raise `ReadOnlyError` unless the server's own plan of a text that people wrote reads the graph and nothing else."""
        if text.lstrip()[:8].upper().startswith(("EXPLAIN", "PROFILE")):
            raise ReadOnlyError("a query that begins with EXPLAIN or PROFILE cannot be checked")
        with self._errors(), self.driver.session(database=self.database, default_access_mode="READ") as session:
            summary = session.run("EXPLAIN " + text, parameters).consume()
        if summary.query_type != "r":
            raise ReadOnlyError(f"the query is of type {summary.query_type!r}; only reading is allowed")
        for operator, arguments in _operators(summary.plan):
            name = operator.partition("@")[0]
            if name.startswith(_FORBIDDEN) or any(word in name for word in ("LoadCSV", "Terminate")):
                raise ReadOnlyError(f"the query does more than read the graph: {name}")
            if "ProcedureCall" in name:
                details = str(arguments.get("Details", ""))
                if not details.startswith(_PROCEDURES):
                    raise ReadOnlyError(f"the query calls a procedure that is not on the list: {details.partition('(')[0]}")

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
            raise StoreError(f"the server says: {error.message}") from error
        except exceptions.DriverError as error:
            raise StoreError(f"{self.place}: {error}") from error


def _operators(plan: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    stack = [plan] if plan else []
    while stack:
        node = stack.pop()
        yield node["operatorType"], node.get("args", {})
        stack.extend(node.get("children", ()))


def _existing(place: Any) -> neo4j.Driver:
    """The driver of an object that a user has already: a driver itself, or a `py2neo.Graph`."""
    try:
        import neo4j
    except ImportError:
        raise MissingExtraError("the neo4j driver", "neo4j") from None
    if isinstance(place, neo4j.Driver):
        return place
    profile = getattr(getattr(place, "service", None), "profile", None)
    if profile is None:
        raise OptionError(f"{place!r} is no address, no neo4j.Driver and no py2neo.Graph")
    auth = getattr(profile, "auth", None)
    return neo4j.GraphDatabase.driver(profile.uri, auth=tuple(auth) if auth and all(auth) else None)

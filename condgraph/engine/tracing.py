"""OpenTelemetry spans and `logging` lines for queries, where the application uses either.

Neither package is imported here: an application that collects spans or lines has imported it. A span, and a line of
the logger `condgraph.query` at level DEBUG, have the language, the kind of store, the number of rows and the
duration, and the code of an error. The text of a program and the message of an error contain values; they are added
only if the environment has `CONDGRAPH_TRACE_PROGRAMS=1`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, Final, TypeVar

from condgraph.engine.errors import CondgraphError, shortened

T = TypeVar("T")

#: The logger of queries, and the level of its lines (`logging.DEBUG`).
LOGGER: Final = "condgraph.query"
_DEBUG: Final = 10
#: The name in OpenTelemetry's conventions for databases.
_ROWS: Final = "db.response.returned_rows"
#: Keeps a span from recording errors by itself: their messages contain values.
_SILENT: Final[dict[str, Any]] = {"record_exception": False, "set_status_on_exception": False}
#: The kind of store by URL scheme, where the scheme is not its name.
_SERVERS: Final = {"http": "sparql", "https": "sparql", "bolt": "neo4j", "postgres": "postgresql"}


def traced(graph: Any, language: str | None, program: Any, call: Callable[[], T]) -> T:
    """Return the result of `call`, which answers a program of a graph, with a span and a log line where these are
    collected.
    """
    tracer, logger, records = _tracer(), _logger(), _found.get("records")
    if tracer is None and logger is None and records is None:
        return call()
    store = getattr(graph, "store_kind", None) or _store_kind(graph.place)
    attributes = {"db.system.name": "condgraph", "db.namespace": graph.name, "condgraph.store": store}
    with_values = os.environ.get("CONDGRAPH_TRACE_PROGRAMS") == "1"
    if with_values:
        attributes["db.query.text"] = shortened(program if isinstance(program, str) else repr(program))
    with (
        nullcontext()
        if tracer is None
        else tracer.start_as_current_span("condgraph query", attributes=attributes, **_SILENT) as span
    ):
        begin, began = time.perf_counter(), time.time_ns()
        outcome: dict[str, Any] = {}
        message: str | None = None
        try:
            answer = call()
            language, result = str(getattr(answer, "language", "") or language), "answered"
            with suppress(CondgraphError):
                outcome[_ROWS] = len(answer)  # type: ignore[arg-type]
                result = f"{outcome[_ROWS]} rows"
            return answer
        except Exception as error:
            outcome["error.type"] = code = error.code if isinstance(error, CondgraphError) else type(error).__name__
            message = str(error) if with_values else None
            result = f"error {code}" + (f" ({error})" if with_values else "")
            raise
        finally:
            outcome["condgraph.language"] = language or "unknown"
            if span is not None:
                _set_attributes(span, outcome, message)
            if records is not None:
                records.append({"about": attributes | outcome, "message": message, "begin": began, "end": time.time_ns()})
            if logger is not None:
                ms, text = (time.perf_counter() - begin) * 1e3, attributes.get("db.query.text", "")
                logger.debug("%s on %s: %s in %.1f ms%s", language or "unknown", store, result, ms, text and f": {text}")


def _set_attributes(span: Any, about: dict[str, Any], message: str | None) -> None:
    span.set_attributes(about)
    if "error.type" in about:
        span.set_status(sys.modules["opentelemetry.trace"].StatusCode.ERROR, message)


# -- servers -----------------------------------------------------------------------------------------
# The worker processes of a server export nothing: they record their queries, and the server makes the spans.

#: The known methods of HTTP; a client may send any other text.
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


def spans_wanted() -> bool:
    """Return whether the application collects spans."""
    return _tracer() is not None


def record(records: list[dict[str, Any]] | None) -> None:
    """Record the queries of this process in a list from now on, for `replay` in another process; None stops it."""
    _found["records"] = records


def replay(records: Iterable[dict[str, Any]]) -> None:
    """Make spans of recorded queries, within the current span."""
    if (tracer := _tracer()) is None:
        return
    for query in records:
        span = tracer.start_span("condgraph query", start_time=query["begin"])
        _set_attributes(span, query["about"], query["message"])
        span.end(query["end"])


@contextmanager
def request_span(method: str, route: str, headers: Sequence[tuple[bytes, bytes]]) -> Iterator[Callable[[int], None]]:
    """Open the span of an HTTP request, in the trace that its headers name; yield a function that takes the status of
    the response (0: none was sent).
    """
    if (tracer := _tracer()) is None:
        yield lambda status: None
        return
    from opentelemetry import propagate
    from opentelemetry.trace import SpanKind

    parent = propagate.extract({key.decode("latin-1"): value.decode("latin-1") for key, value in headers})
    name = method if method in _METHODS else "_OTHER"
    attributes = {"http.request.method": name, "http.route": route}
    with tracer.start_as_current_span(f"{name} {route}", parent, SpanKind.SERVER, attributes, **_SILENT) as span:

        def ended(status: int) -> None:
            failure = {"error.type": str(status or "disconnected")} if not 0 < status < 500 else {}
            _set_attributes(span, {"http.response.status_code": status, **failure} if status else failure, None)

        yield ended


@contextmanager
def results_span(language: str, store: str) -> Iterator[None]:
    """Open the span of a query whose results are sent without being counted."""
    if (tracer := _tracer()) is None:
        yield
        return
    attributes = {"db.system.name": "condgraph", "condgraph.store": store, "condgraph.language": language}
    with tracer.start_as_current_span("condgraph query", attributes=attributes, **_SILENT) as span:
        try:
            yield
        except Exception as error:
            code = error.code if isinstance(error, CondgraphError) else type(error).__name__
            _set_attributes(span, {"error.type": code}, None)
            raise


def collected() -> bool:
    """Return whether spans, lines or records are collected: a cheap test for calls that are too short for more."""
    return _tracer() is not None or _logger() is not None or _found.get("records") is not None


#: The application's provider, its tracer for this package, the logger, and the records of `record`.
_found: dict[str, Any] = {}


def _tracer() -> Any:
    """Return the tracer, if the application has set a provider."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    provider = api.get_tracer_provider()
    if isinstance(provider, api.ProxyTracerProvider):
        return None
    if _found.get("provider") is not provider:
        _found.update(provider=provider, tracer=provider.get_tracer("condgraph"))
    return _found["tracer"]


def _logger() -> Any:
    """Return the logger, if its lines are wanted."""
    logger = _found.get("logger")
    if logger is None:
        if "logging" not in sys.modules:
            return None
        logger = _found["logger"] = sys.modules["logging"].getLogger(LOGGER)
    return logger if logger.isEnabledFor(_DEBUG) else None


def _store_kind(place: str) -> str:
    """Return the kind of store: `memory`, `folder`, `sparql`, `neo4j`, or the scheme of another address."""
    scheme, separator, _ = place.partition("://")
    return _SERVERS.get(scheme.partition("+")[0], scheme) if separator else "memory" if place.startswith("memory:") else "folder"

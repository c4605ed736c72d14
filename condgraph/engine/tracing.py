"""Spans of OpenTelemetry and lines of `logging` for queries, where the application has either.

Neither package is imported here: an application that collects spans or lines has imported it. A span, and a line
of the logger `condgraph.query` at level DEBUG, have the language, the kind of store, the number of rows, and how long
it took; of an error its code. The text of a program, and the message of an error, contain values; they are added only
where the environment has `CONDGRAPH_TRACE_PROGRAMS=1`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, Final, TypeVar

from condgraph.engine.errors import CondgraphError, shortened

T = TypeVar("T")

#: The logger of queries, and the level of its lines (`logging.DEBUG`).
LOGGER: Final = "condgraph.query"
_DEBUG: Final = 10
#: Names of OpenTelemetry's conventions for databases, where they have one.
_ROWS: Final = "db.response.returned_rows"
#: What is at the addresses of schemes that do not say it.
_SERVERS: Final = {"http": "sparql", "https": "sparql", "bolt": "neo4j", "postgres": "postgresql"}


def traced(graph: Any, language: str | None, program: Any, call: Callable[[], T]) -> T:
    """What a call gives that answers a program of a graph; with a span and a line, where they are collected."""
    tracer, logger = _tracer(), _logger()
    if tracer is None and logger is None:
        return call()
    store = getattr(graph, "store_kind", None) or _kind(graph.place)
    about = {"db.system.name": "condgraph", "db.namespace": graph.name, "condgraph.store": store}
    values = os.environ.get("CONDGRAPH_TRACE_PROGRAMS") == "1"
    if values:
        about["db.query.text"] = shortened(program if isinstance(program, str) else repr(program))
    # An error is recorded below, without its message.
    options = {"attributes": about, "record_exception": False, "set_status_on_exception": False}
    with nullcontext() if tracer is None else tracer.start_as_current_span("condgraph query", **options) as span:
        begin = time.perf_counter()
        what: dict[str, Any] = {}
        try:
            answer = call()
            language, result = str(getattr(answer, "language", "") or language), "answered"
            with suppress(CondgraphError):
                what[_ROWS] = len(answer)  # type: ignore[arg-type]
                result = f"{what[_ROWS]} rows"
            return answer
        except Exception as error:
            what["error.type"] = code = error.code if isinstance(error, CondgraphError) else type(error).__name__
            result = f"error {code}" + (f" ({error})" if values else "")
            if span is not None:
                span.set_status(sys.modules["opentelemetry.trace"].StatusCode.ERROR, str(error) if values else None)
            raise
        finally:
            if span is not None:
                span.set_attributes({"condgraph.language": language or "unknown", **what})
            if logger is not None:
                ms, text = (time.perf_counter() - begin) * 1e3, about.get("db.query.text", "")
                logger.debug("%s on %s: %s in %.1f ms%s", language or "unknown", store, result, ms, text and f": {text}")


def collected() -> bool:
    """Whether spans or lines are collected, for calls that are too short for more."""
    return _tracer() is not None or _logger() is not None


#: The provider of the application, and its tracer for us; the logger.
_found: dict[str, Any] = {}


def _tracer() -> Any:
    """What makes spans, where the application has set a provider of them."""
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
    """The logger, where the application wants its lines."""
    logger = _found.get("logger")
    if logger is None:
        if "logging" not in sys.modules:
            return None
        logger = _found["logger"] = sys.modules["logging"].getLogger(LOGGER)
    return logger if logger.isEnabledFor(_DEBUG) else None


def _kind(place: str) -> str:
    """The kind of store: `memory`, `folder`, `sparql`, `neo4j`, or the scheme of another address."""
    scheme, separator, _ = place.partition("://")
    return _SERVERS.get(scheme.partition("+")[0], scheme) if separator else "memory" if place.startswith("memory:") else "folder"

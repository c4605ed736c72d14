"""One request to a SPARQL endpoint as SPARQLWrapper sends it, and its reply as it is read: the body,
piece by piece; solutions, one after the other.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.errors import MissingExtraError

if TYPE_CHECKING:
    import pyoxigraph

_CHUNK: Final = 1 << 18


def wrapper_class() -> Any:
    """SPARQLWrapper with an opener of its own, where SPARQLWrapper would set one for the whole
    process to do a digest.
    """
    try:
        from SPARQLWrapper import SPARQLWrapper
    except ImportError:
        raise MissingExtraError("SPARQLWrapper", "sparql") from None

    class Wrapper(SPARQLWrapper):
        """A request."""

        opener: urllib.request.OpenerDirector

        def _query(self) -> tuple[Any, str]:
            request = self._createRequest()
            if self.timeout is None:
                return self.opener.open(request), self.returnFormat
            return self.opener.open(request, timeout=self.timeout), self.returnFormat

    return Wrapper


class Solutions:
    """The solutions of a SELECT, parsed one after the other, and their variables."""

    __slots__ = ("_found", "_readable", "variables")

    def __init__(self, found: pyoxigraph.QuerySolutions, readable: Callable[[], AbstractContextManager[None]]) -> None:
        self._found, self._readable, self.variables = found, readable, found.variables

    def __iter__(self) -> Iterator[pyoxigraph.QuerySolution]:
        with self._readable():
            yield from self._found


def chunks(response: Any) -> Iterator[bytes]:
    """The body, piece by piece."""
    while data := response.read(_CHUNK):
        yield data


class Reader:
    """A response as a file, for each part of which somebody waits."""

    def __init__(self, response: Any, waited: Callable[[Callable[[], bytes]], bytes]) -> None:
        self._response, self._waited = response, waited
        #: The part that came last, and was not empty.
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes."""
        part = self._waited(lambda: bytes(self._response.read1(size)))
        self.last = part or self.last
        return part

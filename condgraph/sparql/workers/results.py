"""A query for a worker, and its results as they come, in a thread or in an event loop."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Any, Literal

from condgraph.sparql.text.prologue import occurring
from condgraph.sparql.workers.handle import Wait, frame

Solutions = Literal["json", "xml", "csv", "tsv"]
Triples = Literal["turtle", "ntriples", "jsonld", "rdfxml", "trig", "nquads"]


@dataclass(frozen=True, slots=True)
class Query:
    """A query, its data set, and how its results are to be written.

    `default_graphs` and `named_graphs` are the data set (None: the store's, or what the query says;
    given, they count and not what the query says; without default graphs, named ones that are given
    leave the default graph empty). `union` makes the default graph all graphs.
    `limit` is the most solutions, or triples, that are given. `graph` asks for a named graph as it
    is, `dataset` for all graphs with their names, and there is no text then.
    """

    text: str
    solutions: Solutions = "json"
    triples: Triples = "turtle"
    base: str | None = None
    default_graphs: Sequence[str] | None = None
    named_graphs: Sequence[str] | None = None
    union: bool = False
    limit: int | None = None
    prefixes: Mapping[str, str] | None = None
    output_prefixes: Mapping[str, str] | None = None
    graph: str | None = None
    dataset: bool = False

    def request(self) -> bytes:
        """As it goes to a worker."""
        said: dict[str, Any] = {"query": self.text, "solutions": self.solutions, "triples": self.triples}
        for name in ("base", "limit", "union", "graph", "dataset"):
            if value := getattr(self, name):
                said[name] = value
        for name in ("default_graphs", "named_graphs"):
            if (graphs := getattr(self, name)) is not None:
                said[name] = list(graphs)
        if self.prefixes and (used := occurring(self.prefixes, self.text)):
            said["prefixes"] = dict(used)
        if self.output_prefixes:
            said["output_prefixes"] = dict(self.output_prefixes)
        return frame(json.dumps(said).encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class File:
    """A file to load into a store in memory: where it is, its media type, and the graph and base of
    its triples.
    """

    path: Path
    media_type: str
    graph: str | None = None
    base: str | None = None


@dataclass(slots=True)
class Head:
    """What a query is, known before its first result; `cut` is known behind the last: whether the
    limit cut the results.
    """

    kind: Literal["solutions", "boolean", "triples"]
    variables: tuple[str, ...] = ()
    cut: bool = False


Steps = Generator[Wait | Head | bytes, bool, None]


class _Conversation:
    """A query and its worker, for threads and event loops: steps that are waited for, and the parts
    of the results.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.head = Head("boolean")

    @property
    def cut(self) -> bool:
        """Whether there were more results than the limit; known when the last part was given."""
        return self.head.cut

    def _end(self) -> None:
        self._steps.close()


class Results(_Conversation, Iterator[bytes]):
    """Results of a query, part by part; close them, or read them to the end."""

    def __init__(self, steps: Steps, cancelled: Event | None) -> None:
        super().__init__(steps)
        self._cancelled = cancelled
        self.head = self._next()  # type: ignore[assignment]

    def _next(self) -> Head | bytes:
        answer = None
        while True:
            step = self._steps.send(answer) if answer is not None else next(self._steps)
            if not isinstance(step, Wait):
                return step
            try:
                answer = step.block(self._cancelled)
            except BaseException:
                self._end()
                raise

    def __next__(self) -> bytes:
        return self._next()  # type: ignore[return-value]

    def read(self) -> bytes:
        """All parts."""
        return b"".join(self)

    def close(self) -> None:
        """End the query, if it still runs."""
        self._end()

    def __enter__(self) -> Results:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class AsyncResults(_Conversation, AsyncIterator[bytes]):
    """Results of a query, part by part, in an event loop; close them, or read them to the end."""

    async def begin(self) -> AsyncResults:
        """Wait for the head."""
        self.head = await self._next()  # type: ignore[assignment]
        return self

    async def _next(self) -> Head | bytes | None:
        answer = None
        while True:
            try:
                step = self._steps.send(answer) if answer is not None else next(self._steps)
            except StopIteration:
                return None
            if not isinstance(step, Wait):
                return step
            try:
                answer = await step.wait()
            except BaseException:
                self._end()
                raise

    async def __anext__(self) -> bytes:
        step = await self._next()
        if step is None:
            raise StopAsyncIteration
        return step  # type: ignore[return-value]

    async def read(self) -> bytes:
        """All parts."""
        return b"".join([part async for part in self])

    def close(self) -> None:
        """End the query, if it still runs."""
        self._end()

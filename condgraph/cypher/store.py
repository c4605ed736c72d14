"""A graph in Neo4j: load, ask with one query, look, and pull it into process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from condgraph.cypher.connection import Connection
from condgraph.cypher.layout.schema import CONDGRAPH, FORMAT, GRAPH, make_indexes, prepare
from condgraph.cypher.load.lock import delete, unfinished
from condgraph.cypher.load.push import LEASE, NOTHING, abandon, check_graph, check_layout, graph_sources, look, pull, push
from condgraph.cypher.load.write import OnProgress
from condgraph.cypher.patterns.vectors import drop
from condgraph.cypher.queries import CypherStore
from condgraph.cypher.shapes import warm_after
from condgraph.engine.bounds import allowed, cached
from condgraph.engine.errors import (
    ReadOnlyError,
    StoreBusyError,
    StoreMissingError,
    StoreVersionError,
    nearest,
)
from condgraph.engine.facts import Source
from condgraph.engine.owner import Owner
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.stored_schema import StoredSchema
from condgraph.overview.survey import Survey, stored_survey

if TYPE_CHECKING:
    from condgraph.cypher.names import Neo4jNames
    from condgraph.cypher.patterns.match import Neo4jPatterns
    from condgraph.engine.changes import Change
    from condgraph.patterns.matches import Matches

T = TypeVar("T")
#: Seconds that the last look at the graph's node may take beyond a deadline.
_LAST: Final = 0.2


class Neo4jStore(CypherStore):
    """One graph of a Neo4j database. `place` is an address (`neo4j://host:7687`), a `neo4j.Driver`,
    or a `py2neo.Graph`. `labels` says whether entities carry their concepts as labels after the next
    load; None, that it stays as it was decided, for a new graph by what else is in the database.
    """

    def __init__(
        self, place: Any, *, graph: str = "default", read_only: bool = False, labels: bool | None = None, **options: Any
    ) -> None:
        super().__init__(Connection(place, **options), check_graph(graph), CONDGRAPH)
        self.read_only, self.labels = read_only, labels
        #: Remarks of the last load on concepts that are no labels.
        self.remarks: list[str] = []
        self._schema: StoredSchema | None = None
        self._current: dict[str, Any] | None = None
        self._looked = 0.0

    def __repr__(self) -> str:
        return f"<Neo4jStore {self.name!r} at {self.place}>"

    # -- the graph's node --------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        """What the graph's node says; empty where there is none."""
        return look(self.connection, self.name)[0]

    def _about(self) -> dict[str, Any]:
        """What the graph's node says; raises where there is none, or a load is not finished."""
        about, now = look(self.connection, self.name)
        if not about:
            check_layout(self.connection, self.name)
            rows = self.connection.ask(f"MATCH (g:{GRAPH}) WHERE g.complete RETURN g.name AS name", {})
            others = sorted(row["name"] for row in rows)
            raise StoreMissingError(
                f"there is no graph {self.name!r} at {self.place}",
                candidates=nearest(self.name, others),
                hint=f"the graphs here are {', '.join(others[:20])}" if others else "load something first",
            )
        if about.get("format") != FORMAT:
            raise StoreVersionError(
                f"graph {self.name!r} has layout {about.get('format')}, this version reads {FORMAT}",
                hint="export it with the version that wrote it, and load the export",
            )
        if about.get("bulk"):
            # Filled by the import tool, which makes no indexes.
            prepare(self.connection)
            make_indexes(self.connection)
            self.connection.write(f"MATCH (g:{GRAPH} {{name: $graph}}) REMOVE g.bulk", {"graph": self.name})
        if not about.get("complete"):
            if about.get("owner") and not Owner.gone(about["owner"], (now - about.get("beat", 0)) / 1000):
                raise StoreBusyError(f"graph {self.name!r} is being loaded", hint="ask again when that is finished")
            raise unfinished(self.name, about)
        return about

    def _known(self) -> dict[str, Any]:
        """The state of the graph, at most `LEASE` seconds old. A load that adds to a graph waits
        for longer before it writes, so that no reader who looked before it meets half of it.
        """
        at = time.monotonic()
        if self._current is None or at - self._looked > LEASE:
            about = self._about()
            if self._current is None or about["content"] != self._current["content"]:
                self._schema = None
            self._current, self._looked = about, at
        return self._current

    @property
    def schema(self) -> StoredSchema:
        """What lowering knows; read once, and again after any load."""
        about = self._known()
        if self._schema is None:
            self._schema = StoredSchema(json.loads(about["schema"]))
        return self._schema

    @property
    def content(self) -> str:
        """A name for what the graph holds, at most a second old: the same content has the same
        name.
        """
        result: str = self._known()["content"]
        return result

    def refresh(self) -> None:
        """Forget the schema, which another process may have changed."""
        self._schema = self._current = None

    def steady(self, ask: Callable[[], T]) -> T:
        """What `ask` gives, of one state of the graph: asked once more where a load began and ended
        meanwhile.
        """
        for _ in range(2):
            before = self._known()["content"]
            result = ask()
            # What came just in time, or as the best so far, is not lost for this look.
            with allowed(_LAST):
                if self._known()["content"] == before:
                    return result
        raise StoreBusyError(f"graph {self.name!r} was loaded while it was asked", hint="ask again")

    # -- loading -----------------------------------------------------------------------------------

    def push(
        self,
        snapshot: Snapshot,
        *,
        wait: float = 0.0,
        on_progress: OnProgress = lambda written, part: None,
        change: Change | None = None,
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Write a snapshot as this graph, next to what the graph holds already except for what `change`
        takes away; what it held, and holds now.

        The same content twice changes nothing. `wait` is how many seconds to wait for other
        processes that are writing; `on_progress` hears how many records are written so far, and which part
        of all that is (None where it is not known).
        """
        self._check_writable()
        self.refresh()
        self.remarks = []
        begin = time.monotonic()
        result = push(
            self.connection,
            self.name,
            snapshot,
            wait=wait,
            on_progress=on_progress,
            change=NOTHING if change is None else change,
            labels=self.labels,
            on_remark=self.remarks.append,
        )
        self.refresh()
        if result[0] != result[1]:
            statements = result[1].get("relations", 0) + result[1].get("attributes", 0)
            warm_after(self.connection, self._shapes, statements, time.monotonic() - begin)
        return result

    def label(self, on: bool) -> None:
        """Give entities their concepts as labels, or take these away; nothing else changes. One that
        was ended goes on.
        """
        state = self._state()
        if state.get("complete") or not state:
            self._about()
        # Nothing is added: what others take away meanwhile does not come back.
        kept, self.labels = self.labels, on
        try:
            self.push(Snapshot.of(*lay_out(Builder())))
        except BaseException:
            self.labels = kept
            raise

    def carried(self) -> dict[str, int] | None:
        """The concepts that entities carry as labels, and how many entities each has, the commonest
        first; None where they carry none.
        """
        stated = self._about().get("labels")
        if stated is None:
            return None
        counts: dict[str, int] = json.loads(stated)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def under_way(self) -> tuple[list[str], bool] | None:
        """The sources of a load that is not finished, and whether its writer is gone."""
        about, now = look(self.connection, self.name)
        if "loading" not in about:
            return None
        silent = (now - about.get("beat", 0)) / 1000
        return list(about.get("what") or ()), not about.get("owner") or Owner.gone(about["owner"], silent)

    def abandon(self) -> bool:
        """Take back a load that was not finished: the graph holds what it held before. Whether
        there was one.
        """
        self._check_writable()
        about = self._state()
        self.refresh()
        if "loading" not in about:
            return False
        abandon(self.connection, self.name, about)
        return True

    def _check_writable(self) -> None:
        if self.read_only:
            raise ReadOnlyError.at(self.place)

    def delete(self) -> bool:
        """Remove the graph from the database, in batches; whether there was one. Nothing that is
        not condgraph's is touched.
        """
        self._check_writable()
        result = bool(self._state())
        self.refresh()
        drop(self.connection, self.name)
        delete(self.connection, self.name)
        return result

    # -- asking ------------------------------------------------------------------------------------

    def names(self) -> Neo4jNames:
        """Names read from the graph."""
        from condgraph.cypher.names import Neo4jNames

        return Neo4jNames(self.connection, self.name, self.schema)

    def match(self, pattern: Any, **options: Any) -> Matches:
        """Joined and ranked by the server. With `exact=False` candidates come from its vector
        index, which may miss some.
        """
        return self.patterns.match(pattern, **options)

    @property
    def known_sources(self) -> tuple[Source, ...]:
        """The sources in the order they were loaded, read once."""
        result: tuple[Source, ...] | None = self.schema.kept.get("sources")
        if result is None:
            by_name = {source.name: source for source in self.sources()}
            result = self.schema.kept["sources"] = tuple(by_name[name] for name in self.schema.sources if name in by_name)
        return result

    @cached
    def patterns(self) -> Neo4jPatterns:
        """Patterns on this graph; what the client has to know for them is fetched when one is
        asked.
        """
        from condgraph.cypher.patterns.match import Neo4jPatterns

        return Neo4jPatterns(self)

    # -- looking -----------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether the graph is there, and its load is finished."""
        return bool(self._state().get("complete"))

    def sources(self) -> tuple[Source, ...]:
        """The sources of the graph."""
        return graph_sources(self.connection, self.name)

    def counts(self) -> dict[str, int]:
        """What the graph holds."""
        result: dict[str, int] = json.loads(self._about()["counts"])
        return result

    def survey(self) -> Survey:
        """What the graph holds, as it was counted when it was loaded; read once for each content."""

        def ask() -> Survey:
            kept = self.schema.kept
            if "survey" not in kept:
                text = f"MATCH (g:{GRAPH} {{name: $graph}}) RETURN g.survey AS survey, g.content AS content, g.counts AS counts"
                for row in self.connection.read(text, {"graph": self.name}):
                    kept["survey"] = stored_survey(row["survey"], row["content"], self.schema, json.loads(row["counts"]))
            result: Survey = kept["survey"]
            return result

        return self.steady(ask)

    def snapshot(self) -> Snapshot:
        """The whole graph pulled into process, with its sources; raises `StoreBusyError` where it
        is loaded meanwhile.
        """
        return self.steady(lambda: pull(self.connection, self.name))

    def left(self) -> Snapshot | None:
        """What a load that was ended half way left in the graph; None where that is nothing."""
        return pull(self.connection, self.name) if "content" in self._state() else None

"""A graph in Neo4j: load, ask with one query, look, and pull it into process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import cached_property
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4

from condgraph.cypher.answer import Neo4jAnswer, pasteable
from condgraph.cypher.compile import Compiled, compile_plan, compile_sizes
from condgraph.cypher.connection import Connection
from condgraph.cypher.delete import delete
from condgraph.cypher.layout import FORMAT
from condgraph.cypher.load import Loading, Told, busy_error, content_id, make_indexes, prepare, write_snapshot
from condgraph.cypher.pull import pull
from condgraph.cypher.vectors import drop
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node
from condgraph.engine.bounds import check_bounds
from condgraph.engine.errors import (
    OptionError,
    ReadOnlyError,
    StoreBusyError,
    StoreMissingError,
    StoreVersionError,
    UnknownNameError,
    nearest,
)
from condgraph.engine.facts import Source
from condgraph.engine.languages import Lowered, detect
from condgraph.engine.languages import lower as lower_program
from condgraph.engine.passes import optimise
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.stored_schema import StoredSchema

if TYPE_CHECKING:
    from condgraph.cypher.match import Neo4jPatterns

T = TypeVar("T")
#: Seconds for which a reader trusts what it last read of the graph's node.
LEASE: Final = 1.0


class Neo4jStore:
    """One graph of a Neo4j database. `place` is an address (`neo4j://host:7687`), a `neo4j.Driver`, or a `py2neo.Graph`."""

    def __init__(self, place: Any, *, graph: str = "default", read_only: bool = False, **login: str | None) -> None:
        if not graph:
            raise OptionError("the name of a graph is empty")
        self.name, self.read_only = graph, read_only
        self.connection = Connection(place, **login)
        self.place = self.connection.place
        self._schema: StoredSchema | None = None
        self._current: dict[str, Any] | None = None
        self._looked = 0.0

    def __enter__(self) -> Neo4jStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self.connection.close()

    def __repr__(self) -> str:
        return f"<Neo4jStore {self.name!r} at {self.place}>"

    # -- the graph's node -------------------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        """What the graph's node says; empty where there is none."""
        rows = self.connection.read("MATCH (g:Graph {name: $graph}) RETURN properties(g) AS about", {"graph": self.name})
        return rows[0]["about"] if rows else {}

    def _about(self) -> dict[str, Any]:
        """What the graph's node says; raises where there is none, or a load is not finished."""
        about = self._state()
        if not about:
            rows = self.connection.read("MATCH (g:Graph) WHERE g.complete RETURN g.name AS name", {})
            others = sorted(row["name"] for row in rows)
            raise StoreMissingError(
                f"there is no graph {self.name!r} at {self.place}",
                candidates=nearest(self.name, others),
                hint=f"the graphs here are {', '.join(others[:20])}" if others else "load something first",
            )
        if about.get("format") != FORMAT:
            raise StoreVersionError(
                f"graph {self.name!r} has format {about.get('format')}, this version reads {FORMAT}", hint="load it again"
            )
        if about.get("bulk"):
            # Filled by the import tool, which makes no indexes.
            prepare(self.connection)
            make_indexes(self.connection, lambda: None)
            self.connection.write("MATCH (g:Graph {name: $graph}) REMOVE g.bulk", {"graph": self.name})
        if not about.get("complete"):
            raise StoreBusyError(
                f"graph {self.name!r} is being loaded, or its load was ended", hint="the same load again goes on where it stopped"
            )
        return about

    def _known(self) -> dict[str, Any]:
        """The state of the graph, at most `LEASE` seconds old. A load that adds to a graph waits for longer before it writes, so
        that no reader who looked before it meets half of it.
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
        """What lowering knows; read once, and again after a load, by whomever."""
        about = self._known()
        if self._schema is None:
            self._schema = StoredSchema(json.loads(about["schema"]))
        return self._schema

    @property
    def content(self) -> str:
        """A name for what the graph holds, at most a second old: the same content has the same name."""
        found: str = self._known()["content"]
        return found

    def refresh(self) -> None:
        """Forget the schema, which another process may have changed."""
        self._schema = self._current = None

    def steady(self, ask: Callable[[], T]) -> T:
        """What `ask` gives, of one state of the graph: asked once more where a load began and ended meanwhile."""
        for _ in range(2):
            before = self._known()["content"]
            found = ask()
            if self._known()["content"] == before:
                return found
        raise StoreBusyError(f"graph {self.name!r} was loaded while it was asked", hint="ask again")

    # -- loading ----------------------------------------------------------------------------------------------------------

    def push(self, snapshot: Snapshot, *, wait: float = 0.0, told: Told = lambda written, part: None) -> None:
        """Write a snapshot as this graph, beside what the graph holds already. The same content twice changes nothing.

        `wait` is how many seconds to wait for another process that is writing; `told` hears how many records are written so far,
        and which part of all that is (None where it is not known).
        """
        self._check_writable()
        adds = content_id(snapshot)
        about = self._wait_for_others(adds, wait)
        if about.get("content") == adds and about.get("complete"):
            return
        self.refresh()
        complete = prepare(self.connection)
        with Loading(self.connection, self.name) as loading:
            loading.begin(adds, wait=wait, seen=about)
            previous, attempt = None, ""
            if "content" in about:
                if about.get("complete"):
                    # Readers who looked before hold on to what they saw for so long.
                    time.sleep(LEASE * 1.2)
                from condgraph.engine.snapshot.build import Builder
                from condgraph.engine.snapshot.layout import lay_out
                from condgraph.engine.snapshot.readback import items

                # Also of a load that was ended: what it wrote is there, each statement with all that belongs to it.
                previous, attempt = pull(self.connection, self.name), f"{uuid4().hex} "
                builder = Builder(previous)
                builder.add(items(snapshot))
                snapshot = Snapshot.of(*lay_out(builder))
            write_snapshot(snapshot, loading, self.connection, previous=previous, told=told, attempt=attempt)
            if not complete:
                make_indexes(self.connection, loading.beat)
            loading.finish(content_id(snapshot), snapshot)
        self.refresh()

    def _wait_for_others(self, load: str, wait: float) -> dict[str, Any]:
        """The state of the graph once nobody writes it; raises `StoreBusyError` after `wait` seconds."""
        until = time.monotonic() + wait
        while True:
            rows = self.connection.read(
                "MATCH (g:Graph {name: $graph}) RETURN properties(g) AS about, timestamp() AS now", {"graph": self.name}
            )
            about: dict[str, Any] = rows[0]["about"] if rows else {}
            busy = busy_error(self.name, about, rows[0]["now"], load) if rows else None
            if busy is None:
                return about
            if time.monotonic() >= until:
                raise busy
            time.sleep(min(0.25, max(until - time.monotonic(), 0.0)))

    def _check_writable(self) -> None:
        if self.read_only:
            raise ReadOnlyError.at(self.place)

    def delete(self) -> None:
        """Remove the graph from the database, in batches."""
        self._check_writable()
        self.refresh()
        drop(self.connection, self.name)
        delete(self.connection, self.name)

    # -- asking -----------------------------------------------------------------------------------------------------------

    def kopl(
        self, program: Any, *, timeout: float | None = None, limit: int | None = None, on_unknown: str = "error"
    ) -> Neo4jAnswer:
        """Answer a KoPL program with one query."""
        return self.query(program, language="kopl", timeout=timeout, limit=limit, on_unknown=on_unknown)

    def query(
        self,
        program: Any,
        *,
        language: str | None = None,
        timeout: float | None = None,
        limit: int | None = None,
        on_unknown: str = "error",
        cancelled: Event | None = None,
        **options: Any,
    ) -> Neo4jAnswer:
        """Answer a program in any language with one query."""
        check_bounds(timeout, limit)
        language = language or detect(program)
        given = {"on_unknown": on_unknown, **options}

        def ask() -> tuple[Lowered, Node, list[Node], Compiled, list[dict[str, Any]]]:
            lowered = self._lower(program, language, given)
            plan, order = optimise(lowered.plan)
            compiled = compile_plan(plan, self.name, self.schema)
            rows = self.connection.read(compiled.text, compiled.parameters, timeout=timeout, cancelled=cancelled)
            return lowered, plan, order, compiled, rows

        lowered, plan, order, compiled, rows = self.steady(ask)
        answer = Neo4jAnswer(
            self,
            plan,
            compiled,
            rows,
            program=program,
            language=language,
            steps=lowered.steps,
            warnings=lowered.warnings,
            limit=limit,
            notes=getattr(lowered, "notes", None),
        )
        if language == "kopl" and on_unknown == "error" and (not answer.values or answer.values in ([0], [False])):
            self._check_names(order)
        return answer

    def _check_names(self, order: list[Node]) -> None:
        """After an empty answer: an entity that the graph does not have is an error, as it is in process."""
        names = sorted({name for node in order if isinstance(node, alg.Named) for name in node.names})
        text = (
            "UNWIND $names AS name OPTIONAL MATCH (e:Entity {graph: $graph, key: name}) "
            "WITH name, count(e) AS found WHERE found = 0 RETURN name"
        )
        for row in self.connection.read(text, {"graph": self.name, "names": names}):
            raise UnknownNameError("entity", row["name"])

    def explain(self, program: Any, *, language: str | None = None, on_unknown: str = "error", **options: Any) -> str:
        """The Cypher of a program as Browser takes it, with its parameters, without running it."""
        language = language or detect(program)
        lowered = self._lower(program, language, {"on_unknown": on_unknown, **options})
        return pasteable(compile_plan(optimise(lowered.plan)[0], self.name, self.schema))

    def _lower(self, program: Any, language: str, options: dict[str, Any]) -> Lowered:
        """The plan of a program. KoPL finds out about names of entities by its query; others look them up before, and so does what
        is said of a name that is not known.
        """
        if language != "kopl" or options["on_unknown"] != "error":
            return lower_program(self._named_schema, program, language, options)
        try:
            return lower_program(self.schema, program, language, options)  # type: ignore[arg-type]
        except UnknownNameError:
            return lower_program(self._named_schema, program, language, options)

    @property
    def _named_schema(self) -> Any:
        """The schema with names looked up."""
        named = self.schema.kept.get("named")
        if named is None:
            from condgraph.cypher.names import Neo4jNames
            from condgraph.engine.linking.remote import NamedSchema

            named = self.schema.kept["named"] = NamedSchema(self.schema, Neo4jNames(self.connection, self.name, self.schema))
        return named

    def run(self, compiled: Compiled) -> list[dict[str, Any]]:
        """The rows of a compiled query."""
        return self.connection.read(compiled.text, compiled.parameters)

    def sizes(self, nodes: list[Node]) -> list[tuple[int, tuple[str, ...]] | None]:
        """How many results each operator gives, and the first of them: one query for all. None for those it does not give."""
        found = {row["step"]: (row["size"], tuple(row["sample"])) for row in self.run(compile_sizes(nodes, self.name, self.schema))}
        return [found.get(i) for i in range(len(nodes))]

    @property
    def known_sources(self) -> tuple[Source, ...]:
        """The sources in the order they were loaded, read once."""
        found: tuple[Source, ...] | None = self.schema.kept.get("sources")
        if found is None:
            by_name = {source.name: source for source in self.sources()}
            found = self.schema.kept["sources"] = tuple(by_name[name] for name in self.schema.sources if name in by_name)
        return found

    def cypher(self, text: str, parameters: dict[str, Any] | None = None, *, timeout: float | None = 60.0) -> list[dict[str, Any]]:
        """Run a reading query that a person (or a model) wrote, after the server's plan of it was checked."""
        check_bounds(timeout)
        self.connection.check_reading(text, parameters or {})
        return self.connection.read(text, parameters or {}, timeout=timeout)

    @cached_property
    def patterns(self) -> Neo4jPatterns:
        """Patterns on this graph; what the client has to know for them is fetched when one is asked."""
        from condgraph.cypher.match import Neo4jPatterns

        return Neo4jPatterns(self)

    # -- looking ----------------------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether the graph is there, and its load is finished."""
        return bool(self._state().get("complete"))

    def sources(self) -> tuple[Source, ...]:
        """The sources of the graph."""
        text = (
            "MATCH (s:Source {graph: $graph}) RETURN s.name AS name, s.location AS location, s.format AS format ORDER BY s.number"
        )
        return tuple(
            Source(row["name"], row["location"], row["format"]) for row in self.connection.read(text, {"graph": self.name})
        )

    def counts(self) -> dict[str, int]:
        """What the graph holds."""
        found: dict[str, int] = json.loads(self._about()["counts"])
        return found

    def snapshot(self) -> Snapshot:
        """The whole graph pulled into process, with its sources; raises `StoreBusyError` where it is loaded meanwhile."""
        return self.steady(lambda: pull(self.connection, self.name))

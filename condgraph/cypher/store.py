"""A graph in Neo4j: load, ask with one query, look, read names, and pull it into process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from condgraph.cypher.connection import Connection
from condgraph.cypher.layout.base import KINDS, Bound, Layout, value_of
from condgraph.cypher.layout.schema import CONDGRAPH, FORMAT, GRAPH, CondgraphLayout, layout_on, make_indexes, prepare
from condgraph.cypher.load import push
from condgraph.cypher.load.lock import delete, unfinished
from condgraph.cypher.load.pull import Neo4jParts, graph_sources, pull
from condgraph.cypher.load.push import stated
from condgraph.cypher.patterns.vectors import drop
from condgraph.cypher.queries import CypherStore
from condgraph.engine import errors
from condgraph.engine.bounds import allowed, cached
from condgraph.engine.facts import EntityKind, Source
from condgraph.engine.owner import Owner
from condgraph.engine.schema import AROUND, MOST_COMPARED, Kinds
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.store import held, holding
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.values import NO_UNIT, Kind, Value
from condgraph.overview.survey import Survey, stored_survey

if TYPE_CHECKING:
    from condgraph.cypher.patterns.match import Neo4jPatterns
    from condgraph.edits import RemoteEdit
    from condgraph.engine.changes import Change, OnWritten
    from condgraph.overview.adjusted import GraphSummary
    from condgraph.patterns.matches import Matches


# -- Names -----------------------------------------------------------------------------------------


_FIELDS: Final = "{.kind, .text, .number, .exact, .unit, .start, .end, .precision, .raw, .key}"


class Neo4jNames:
    """The names of one graph: what `names.linking.NameReader` asks."""

    def __init__(self, connection: Connection, graph: str, schema: StoredSchema, layout: Layout = CONDGRAPH) -> None:
        self._connection, self._graph, self._schema, self._layout = connection, graph, schema, layout

    def _rows(self, text: str, **parameters: Any) -> list[dict[str, Any]]:
        return self._connection.read(text, {**self._layout.parameters(self._graph), **parameters})

    def _split(self, predicates: tuple[str, ...] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Which of the predicates lead to entities, and which to values."""
        asked = self._schema.predicates if predicates is None else predicates
        relations = tuple(name for name in asked if self._schema.has_relation(name))
        return relations, tuple(name for name in asked if self._schema.has_attribute(name))

    def _matches(self, predicates: tuple[str, ...] | None, source: str | None) -> list[tuple[str, bool]]:
        """A MATCH for the relations and one for the attributes, as far as there are any; whether it
        leads to values.
        """
        relations, attributes = self._split(predicates)
        given, table = None if source is None else "$source", source in self._schema.tabular
        result = []
        # All predicates are not spelled out.
        if relations:
            text = self._layout.relations_to(None if predicates is None else relations, given, table=table)
            result.append((text, False))
        if attributes:
            text = self._layout.values_of(None if predicates is None else attributes, given, table=table)
            result.append((text, True))
        return result

    def _entity(self, test: str) -> str:
        """A MATCH of entities and concepts `e` under a test of their names."""
        return f"MATCH {self._layout.entity('e')[0]} WHERE {self._layout.named('e', test)}"

    def _asked(self, predicates: tuple[str, ...] | None, source: str | None) -> dict[str, Any]:
        return {"source": source, "attributes": list(map(self._layout.predicate_key, self._split(predicates)[1]))}

    def kinds(self, predicates: tuple[str, ...] | None, source: str | None) -> Kinds:
        """How many objects there are of each type and unit."""
        result: Kinds = {}
        o = Bound("o")
        for match, values in self._matches(predicates, source):
            grouped = f"{o.kind} AS kind, {o.unit} AS unit" if values else "'entity' AS kind, null AS unit"
            for row in self._rows(f"{match}RETURN {grouped}, count(*) AS count", **self._asked(predicates, source)):
                kind = KINDS[row["kind"]]
                unit = row["unit"] if kind is Kind.QUANTITY else NO_UNIT
                result[kind, unit] = result.get((kind, unit), 0) + row["count"]
        return result

    def refers(self, predicates: tuple[str, ...] | None, source: str | None, table: str) -> bool:
        """Whether some object is a row of a table."""
        result = (match for match, values in self._matches(predicates, source) if not values)
        row, of, ident = self._layout.row("o"), self._layout.source("o"), self._layout.id("o")
        rows = f"AND {of} = $table AND {row} IS NOT NULL RETURN {ident} AS id LIMIT 1"
        return any(self._rows(f"{match}{rows}", table=table, **self._asked(predicates, source)) for match in result)

    def objects(self, predicates: tuple[str, ...] | None, source: str | None) -> Iterator[tuple[str, Value | str, str | None]]:
        """Every distinct object: its predicate, its value (an entity by its name, without a
        predicate), and its raw text.
        """
        names = {self._layout.predicate_key(name): name for name in self._schema.attributes}
        for match, values in self._matches(predicates, source):
            if not values:
                for row in self._rows(
                    f"{match}RETURN DISTINCT {self._layout.name('o')} AS name", **self._asked(predicates, source)
                ):
                    yield "", row["name"], None
                continue
            text = f"{match}RETURN DISTINCT o.predicate AS predicate, o {_FIELDS} AS value"
            for row in self._rows(text, **self._asked(predicates, source)):
                yield names[row["predicate"]], value_of(row["value"]), row["value"]["raw"]

    def heads(self, predicates: tuple[str, ...]) -> Iterator[str]:
        """The names of subjects."""
        if not predicates:
            return iter(())
        text = f"{self._layout.subjects_of(predicates)} RETURN DISTINCT {self._layout.name('s')} AS name"
        return (row["name"] for row in self._rows(text))

    def names(self) -> Iterator[str]:
        """The names of all entities and concepts that are no table rows."""
        pattern, inside = self._layout.entity("e")
        kinds = self._layout.any_kind("e", (EntityKind.ENTITY, EntityKind.CONCEPT))
        text = f"MATCH {pattern} WHERE {inside} AND {kinds} RETURN DISTINCT {self._layout.name('e')} AS name"
        return (row["name"] for row in self._rows(text))

    def has_name(self, name: str) -> bool:
        """Some entity or concept has exactly this name."""
        text = f"{self._entity('= $key')} RETURN {self._layout.id('e')} AS id LIMIT 1"
        return bool(self._rows(text, key=self._layout.key(name)))

    def has_text(self, text: str) -> bool:
        """Some entity has this name or id, or some attribute this text."""
        if self.has_name(text) or self.name_of(text) is not None:
            return True
        layout, o = self._layout, Bound("o")
        query = f"{layout.values_of(None, None, table=False)}AND {o.key} = $key RETURN {layout.value_id('o')} AS sid LIMIT 1"
        return bool(self._rows(query, key=layout.key(text), attributes=list(map(layout.predicate_key, self._schema.attributes))))

    def name_of(self, ident: str) -> str | None:
        """The name of the entity that has this id; None where none has."""
        layout = self._layout
        text = f"MATCH {layout.entity('e')[0]} WHERE {layout.identified('e', '= $handle')} RETURN {layout.name('e')} AS name"
        rows = self._rows(text, handle=layout.handle(ident))
        return rows[0]["name"] if rows else None

    def without(self, names: Sequence[str]) -> list[str]:
        """Those of the names that no entity or concept has: one query."""
        keys = {self._layout.key(name): name for name in names}
        text = f"UNWIND $keys AS key OPTIONAL {self._entity('= key')} WITH key, count(e) AS found WHERE found = 0 RETURN key"
        return [keys[row["key"]] for row in self._rows(text, keys=list(keys))]

    names_repeat = True

    def all_names(self, around: Sequence[str]) -> list[str]:
        """The names of all entities, concepts and rows; in a large graph those in order around
        some texts.
        """
        name, key = self._layout.name("e"), self._layout.name_key("e")
        every = f"{self._entity('IS NOT NULL')} "
        if self._rows(f"{every}RETURN count(e) AS count")[0]["count"] <= MOST_COMPARED:
            return [name for row in self._rows(f"{every}RETURN collect({name}) AS names") for name in row["names"]]
        result = []
        for text in around:
            for side, way in ((">=", ""), ("<", " DESC")):
                near = f"{self._entity(f'{side} $near')} WITH DISTINCT {key} AS key ORDER BY key{way}"
                rows = self._rows(f"{near} LIMIT $most RETURN collect(key) AS names", near=text, most=AROUND)
                result += [name for row in rows for name in row["names"]]
        return result


# -- The store ---------------------------------------------------------------------------------------


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
        super().__init__(Connection(place, **options), push.check_graph(graph), CONDGRAPH)
        self.read_only, self.labels = read_only, labels
        #: Remarks of the last load on concepts that are no labels.
        self.remarks: list[str] = []
        self._schema: StoredSchema | None = None
        self._current: dict[str, Any] | None = None
        self._looked = 0.0

    def __repr__(self) -> str:
        return f"<Neo4jStore {self.name!r} at {self.place}>"

    @property
    def layout(self) -> CondgraphLayout:
        """The layout in the words of the server."""
        return layout_on(self.connection.engine)

    # -- the graph's node --------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        """What the graph's node says; empty where there is none."""
        return push.look(self.connection, self.name)[0]

    def _about(self) -> dict[str, Any]:
        """What the graph's node says; raises where there is none, or a load is not finished."""
        about, now = push.look(self.connection, self.name)
        if not about:
            push.check_layout(self.connection, self.name)
            rows = self.connection.ask(f"MATCH (g:{GRAPH}) WHERE g.complete RETURN g.name AS name", {})
            others = sorted(row["name"] for row in rows)
            raise errors.StoreMissingError(
                f"there is no graph {self.name!r} at {self.place}",
                candidates=errors.nearest(self.name, others),
                hint=f"the graphs here are {', '.join(others[:20])}" if others else "load something first",
            )
        if about.get("format") != FORMAT:
            raise errors.StoreVersionError(
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
                raise errors.StoreBusyError(f"graph {self.name!r} is being loaded", hint="ask again when that is finished")
            raise unfinished(self.name, about)
        return about

    def _known(self) -> dict[str, Any]:
        """The state of the graph, at most `LEASE` seconds old. A load that adds to a graph waits
        for longer before it writes, so that no reader who looked before it meets half of it.
        """
        at = time.monotonic()
        if self._current is not None and held(self) is not None:
            return self._current
        # Single changes do not wait for readers, as loads do.
        if self._current is None or self._current.get("edited") or at - self._looked > push.LEASE:
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
        if held(self) is not None:
            return ask()
        for _ in range(2):
            before = self._known()["content"]
            with holding(self):
                result = ask()
            # What came just in time, or as the best so far, is not lost for this look.
            with allowed(_LAST):
                if self._known()["content"] == before:
                    return result
        raise errors.StoreBusyError(f"graph {self.name!r} was loaded while it was asked", hint="ask again")

    # -- loading -----------------------------------------------------------------------------------

    def push(
        self,
        snapshot: Snapshot,
        *,
        wait: float = 0.0,
        on_progress: OnWritten = lambda written, part: None,
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
        result = push.push(
            self.connection,
            self.name,
            snapshot,
            wait=wait,
            on_progress=on_progress,
            change=push.NOTHING if change is None else change,
            labels=self.labels,
            on_remark=self.remarks.append,
        )
        self.refresh()
        if result[0] != result[1]:
            from condgraph.cypher.shapes import warm_after

            statements = result[1].get("relations", 0) + result[1].get("attributes", 0)
            warm_after(self.connection, self._shapes, statements, time.monotonic() - begin)
        return result

    def content_now(self) -> str:
        """The name of what the graph holds, read now."""
        self.refresh()
        return self.content

    def edit_records(self) -> list[str]:
        """The records of single changes, in order."""
        return push.edit_records(self.connection, self.name) if self._state() else []

    def stated(self) -> GraphSummary | None:
        """What the graph's node states of its content, read now; None where changes are made of the whole graph."""
        return stated(self.connection, self.name) if self.connection.engine.parts else None

    def totals(self, snapshot: Snapshot) -> dict[str, int]:
        """The counts of a snapshot."""
        return snapshot.counts

    @property
    def parts(self) -> Neo4jParts:
        """Parts of the graph, for single changes."""
        return Neo4jParts(self.connection, self.name)

    def last_edit(self) -> int:
        """The number of the last single change."""
        return push.last_edit(self.connection, self.name)

    def write_edit(self, change: RemoteEdit, wait: float) -> str:
        """Write one single change, in one transaction; the content then."""
        self._check_writable()
        try:
            content, self.remarks = push.write_edit(self.connection, self.name, change, self._about())
            return content
        finally:
            self.refresh()

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
        about, now = push.look(self.connection, self.name)
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
        push.abandon(self.connection, self.name, about)
        return True

    def _check_writable(self) -> None:
        if self.read_only:
            raise errors.ReadOnlyError.at(self.place)

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

        return Neo4jNames(self.connection, self.name, self.schema, self.layout)

    def match(self, pattern: Any, **options: Any) -> Matches:
        """Joined and ranked by the server. With `exact=False` candidates come from its vector
        index, which may miss some. Where the server reads no texts of patterns, plans fetch the statements
        that the search reaches.
        """
        engine = self.connection.engine
        if engine.scored:
            return self.patterns.match(pattern, **options)
        if not options.pop("exact", True):
            raise errors.UnsupportedError(engine.name, ["an approximate index of names"], hint="ask with exact=True")
        from condgraph.patterns.remote.planned import planned

        return self.steady(lambda: planned(self, self.place, self.name).match(pattern, **options))

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

        engine = self.connection.engine
        if not engine.scored:
            raise errors.UnsupportedError(engine.name, ["an index for patterns"], hint="graph.match(...) finds them without")
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

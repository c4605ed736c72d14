"""A graph in Neo4j: loading, queries, names, and reading it into process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from condgraph.cypher.answer import pasted
from condgraph.cypher.compile.plan import compile_ends, compile_ends_on
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
from condgraph.engine.schema import MAX_COMPARED, NEARBY, Kinds
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.store import held, holding
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.values import NO_UNIT, Kind, Value
from condgraph.overview.survey import Survey, stored_survey

if TYPE_CHECKING:
    from condgraph.cypher.compile.plan import Compiled
    from condgraph.cypher.patterns.match import Neo4jPatterns
    from condgraph.edits import RemoteEdit
    from condgraph.engine.algebra import End, Entities
    from condgraph.engine.changes import Change, OnWritten
    from condgraph.engine.store import EndPart
    from condgraph.overview.adjusted import GraphSummary
    from condgraph.patterns.matches import Matches
    from condgraph.patterns.remote.catalogue import Tally
    from condgraph.patterns.remote.planned import EndRow


# -- Names -----------------------------------------------------------------------------------------


_FIELDS: Final = "{.kind, .text, .number, .exact, .unit, .start, .end, .precision, .raw, .key}"


class Neo4jNames:
    """Names of one graph, for `names.linking.NameReader`."""

    def __init__(self, connection: Connection, graph: str, schema: StoredSchema, layout: Layout = CONDGRAPH) -> None:
        self._connection, self._graph, self._schema, self._layout = connection, graph, schema, layout

    def _rows(self, text: str, **parameters: Any) -> list[dict[str, Any]]:
        return self._connection.read(text, {**self._layout.parameters(self._graph), **parameters})

    def _split(self, predicates: tuple[str, ...] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Split predicates into those with entities as objects and those with values."""
        chosen = self._schema.predicates if predicates is None else predicates
        relations = tuple(name for name in chosen if self._schema.has_relation(name))
        return relations, tuple(name for name in chosen if self._schema.has_attribute(name))

    def _matches(self, predicates: tuple[str, ...] | None, source: str | None) -> list[tuple[str, bool]]:
        """Return the MATCH clauses for relations and for attributes, each with whether its objects are values."""
        relations, attributes = self._split(predicates)
        source_parameter, table = None if source is None else "$source", source in self._schema.tabular
        result = []
        # All predicates need no list.
        if relations:
            text = self._layout.relations_to(None if predicates is None else relations, source_parameter, table=table)
            result.append((text, False))
        if attributes:
            text = self._layout.values_of(None if predicates is None else attributes, source_parameter, table=table)
            result.append((text, True))
        return result

    def _entity(self, test: str) -> str:
        """Return a MATCH of entities and concepts `e` whose names pass a test."""
        return f"MATCH {self._layout.entity('e')[0]} WHERE {self._layout.named('e', test)}"

    def _parameters(self, predicates: tuple[str, ...] | None, source: str | None) -> dict[str, Any]:
        return {"source": source, "attributes": list(map(self._layout.predicate_key, self._split(predicates)[1]))}

    def kinds(self, predicates: tuple[str, ...] | None, source: str | None) -> Kinds:
        """Count the objects by type and unit."""
        result: Kinds = {}
        o = Bound("o")
        for match, values in self._matches(predicates, source):
            grouped = f"{o.kind} AS kind, {o.unit} AS unit" if values else "'entity' AS kind, null AS unit"
            for row in self._rows(f"{match}RETURN {grouped}, count(*) AS count", **self._parameters(predicates, source)):
                kind = KINDS[row["kind"]]
                unit = row["unit"] if kind is Kind.QUANTITY else NO_UNIT
                result[kind, unit] = result.get((kind, unit), 0) + row["count"]
        return result

    def refers(self, predicates: tuple[str, ...] | None, source: str | None, table: str) -> bool:
        """Tell whether some object is a row of a table."""
        matches = (match for match, values in self._matches(predicates, source) if not values)
        row, table_of, entity_id = self._layout.row("o"), self._layout.source("o"), self._layout.id("o")
        rows = f"AND {table_of} = $table AND {row} IS NOT NULL RETURN {entity_id} AS id LIMIT 1"
        return any(self._rows(f"{match}{rows}", table=table, **self._parameters(predicates, source)) for match in matches)

    def objects(self, predicates: tuple[str, ...] | None, source: str | None) -> Iterator[tuple[str, Value | str, str | None]]:
        """Yield every distinct object: its predicate, its value (for an entity, the name and no predicate), and its raw text."""
        names = {self._layout.predicate_key(name): name for name in self._schema.attributes}
        for match, values in self._matches(predicates, source):
            if not values:
                for row in self._rows(
                    f"{match}RETURN DISTINCT {self._layout.name('o')} AS name", **self._parameters(predicates, source)
                ):
                    yield "", row["name"], None
                continue
            text = f"{match}RETURN DISTINCT o.predicate AS predicate, o {_FIELDS} AS value"
            for row in self._rows(text, **self._parameters(predicates, source)):
                yield names[row["predicate"]], value_of(row["value"]), row["value"]["raw"]

    def heads(self, predicates: tuple[str, ...]) -> Iterator[str]:
        """Yield the names of subjects."""
        if not predicates:
            return iter(())
        text = f"{self._layout.subjects_of(predicates)} RETURN DISTINCT {self._layout.name('s')} AS name"
        return (row["name"] for row in self._rows(text))

    def names(self) -> Iterator[str]:
        """Yield the names of all entities and concepts except table rows."""
        pattern, inside = self._layout.entity("e")
        kinds = self._layout.any_kind("e", (EntityKind.ENTITY, EntityKind.CONCEPT))
        text = f"MATCH {pattern} WHERE {inside} AND {kinds} RETURN DISTINCT {self._layout.name('e')} AS name"
        return (row["name"] for row in self._rows(text))

    def has_name(self, name: str) -> bool:
        """Tell whether an entity or concept has exactly this name."""
        text = f"{self._entity('= $key')} RETURN {self._layout.id('e')} AS id LIMIT 1"
        return bool(self._rows(text, key=self._layout.key(name)))

    def has_text(self, text: str) -> bool:
        """Tell whether an entity has this name or id, or an attribute this text."""
        if self.has_name(text) or self.name_of(text) is not None:
            return True
        layout, o = self._layout, Bound("o")
        query = f"{layout.values_of(None, None, table=False)}AND {o.key} = $key RETURN {layout.value_id('o')} AS sid LIMIT 1"
        return bool(self._rows(query, key=layout.key(text), attributes=list(map(layout.predicate_key, self._schema.attributes))))

    def name_of(self, ident: str) -> str | None:
        """Return the name of the entity with this id, or None."""
        layout = self._layout
        text = f"MATCH {layout.entity('e')[0]} WHERE {layout.identified('e', '= $handle')} RETURN {layout.name('e')} AS name"
        rows = self._rows(text, handle=layout.handle(ident))
        return rows[0]["name"] if rows else None

    def without(self, names: Sequence[str]) -> list[str]:
        """Return those of the names that no entity or concept has, with one query."""
        keys = {self._layout.key(name): name for name in names}
        text = f"UNWIND $keys AS key OPTIONAL {self._entity('= key')} WITH key, count(e) AS found WHERE found = 0 RETURN key"
        return [keys[row["key"]] for row in self._rows(text, keys=list(keys))]

    names_repeat = True

    def all_names(self, around: Sequence[str]) -> list[str]:
        """Return the names of all entities, concepts and rows; in a large graph, only those that sort next to some texts."""
        name, key = self._layout.name("e"), self._layout.name_key("e")
        match_all = f"{self._entity('IS NOT NULL')} "
        if self._rows(f"{match_all}RETURN count(e) AS count")[0]["count"] <= MAX_COMPARED:
            return [name for row in self._rows(f"{match_all}RETURN collect({name}) AS names") for name in row["names"]]
        result = []
        for text in around:
            for side, direction in ((">=", ""), ("<", " DESC")):
                matched = f"{self._entity(f'{side} $near')} WITH DISTINCT {key} AS key ORDER BY key{direction}"
                rows = self._rows(f"{matched} LIMIT $most RETURN collect(key) AS names", near=text, most=NEARBY)
                result += [name for row in rows for name in row["names"]]
        return result


# -- The store ---------------------------------------------------------------------------------------


T = TypeVar("T")
#: Seconds that the last look at the graph's node may take beyond a deadline.
_LAST_LOOK: Final = 0.2


class Neo4jStore(CypherStore):
    """One graph of a Neo4j database.

    `place` is an address (`neo4j://host:7687`), a `neo4j.Driver`, or a `py2neo.Graph`. `labels` tells whether entities
    carry their concepts as labels after the next load; with None, the present state is kept, and for a new graph it
    depends on what else is in the database.
    """

    def __init__(
        self, place: Any, *, graph: str = "default", read_only: bool = False, labels: bool | None = None, **options: Any
    ) -> None:
        super().__init__(Connection(place, **options), push.check_graph(graph), CONDGRAPH)
        self.read_only, self.labels = read_only, labels
        #: Remarks of the last load about concepts that are not labels.
        self.remarks: list[str] = []
        self._schema: StoredSchema | None = None
        self._current: dict[str, Any] | None = None
        self._looked_at = 0.0

    def __repr__(self) -> str:
        return f"<Neo4jStore {self.name!r} at {self.place}>"

    @property
    def layout(self) -> CondgraphLayout:
        """The layout in the words of the server."""
        return layout_on(self.connection.engine)

    # -- the graph's node --------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        """Return the state of the graph's node; empty if there is none."""
        return push.look(self.connection, self.name)[0]

    def _about(self) -> dict[str, Any]:
        """Return the state of the graph's node; raises if there is none, or a load is unfinished."""
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
            # Written by the import tool, which creates no indexes.
            prepare(self.connection)
            make_indexes(self.connection)
            self.connection.write(f"MATCH (g:{GRAPH} {{name: $graph}}) REMOVE g.bulk", {"graph": self.name})
        if not about.get("complete"):
            if about.get("owner") and not Owner.gone(about["owner"], (now - about.get("beat", 0)) / 1000):
                raise errors.StoreBusyError(f"graph {self.name!r} is being loaded", hint="ask again when that is finished")
            raise unfinished(self.name, about)
        return about

    def _known(self) -> dict[str, Any]:
        """Return the state of the graph, at most `LEASE` seconds old.

        A load that adds to a graph waits longer than that before it writes, so that no reader sees half of it.
        """
        now = time.monotonic()
        if self._current is not None and held(self) is not None:
            return self._current
        # Single changes do not wait for readers, as loads do.
        if self._current is None or self._current.get("edited") or now - self._looked_at > push.LEASE:
            about = self._about()
            if self._current is None or about["content"] != self._current["content"]:
                self._schema = None
            self._current, self._looked_at = about, now
        return self._current

    @property
    def schema(self) -> StoredSchema:
        """The schema, as lowering uses it; read once, and again after any load."""
        about = self._known()
        if self._schema is None:
            self._schema = StoredSchema(json.loads(about["schema"]))
        return self._schema

    @property
    def content(self) -> str:
        """The name of the graph's content, at most a second old; equal contents have equal names."""
        result: str = self._known()["content"]
        return result

    def refresh(self) -> None:
        """Discard the schema, which another process may have changed."""
        self._schema = self._current = None

    def steady(self, ask: Callable[[], T]) -> T:
        """Run `ask` on one state of the graph; it is repeated once if a load began and ended in between."""
        if held(self) is not None:
            return ask()
        for _ in range(2):
            before = self._known()["content"]
            with holding(self):
                result = ask()
            # A result obtained just in time, or the best so far, is not lost to this check.
            with allowed(_LAST_LOOK):
                if self._known()["content"] == before:
                    return result
        raise errors.StoreBusyError(f"graph {self.name!r} was loaded while it was queried", hint="ask again")

    # -- loading -----------------------------------------------------------------------------------

    def push(
        self,
        snapshot: Snapshot,
        *,
        wait: float = 0.0,
        on_progress: OnWritten = lambda written, part: None,
        change: Change | None = None,
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Write a snapshot into this graph, remove what `change` removes; return the counts before and after.

        Loading the same content twice changes nothing. `wait` is how many seconds to wait for other writers;
        `on_progress` is called with the number of records written so far, and their share of all (None if unknown).
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
            change=push.NO_CHANGE if change is None else change,
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
        """Return the name of the present content, read now."""
        self.refresh()
        return self.content

    def edit_records(self) -> list[str]:
        """Return the records of single changes, in order."""
        return push.edit_records(self.connection, self.name) if self._state() else []

    def stated(self) -> GraphSummary | None:
        """Return what the graph's node states about its content; None if changes are computed from the whole graph."""
        return stated(self.connection, self.name) if self.connection.engine.parts else None

    def totals(self, snapshot: Snapshot) -> dict[str, int]:
        return snapshot.counts

    @property
    def parts(self) -> Neo4jParts:
        return Neo4jParts(self.connection, self.name)

    def last_edit(self) -> int:
        """Return the number of the last single change."""
        return push.last_edit(self.connection, self.name)

    def write_edit(self, change: RemoteEdit, wait: float) -> str:
        """Write one single change, in one transaction; return the name of the new content."""
        self._check_writable()
        try:
            content, self.remarks = push.write_edit(self.connection, self.name, change, self._about())
            return content
        finally:
            self.refresh()

    def label(self, on: bool) -> None:
        """Add the labels of concepts to all entities, or remove them; an interrupted change is continued."""
        state = self._state()
        if state.get("complete") or not state:
            self._about()
        # An empty load: what others remove meanwhile is not added again.
        before, self.labels = self.labels, on
        try:
            self.push(Snapshot.of(*lay_out(Builder())))
        except BaseException:
            self.labels = before
            raise

    def carried(self) -> dict[str, int] | None:
        """Return the concepts that are labels with the number of entities of each, commonest first; None without labels."""
        stated = self._about().get("labels")
        if stated is None:
            return None
        counts: dict[str, int] = json.loads(stated)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def under_way(self) -> tuple[list[str], bool] | None:
        """Return the sources of an unfinished load, and whether its writer is gone."""
        about, now = push.look(self.connection, self.name)
        if "loading" not in about:
            return None
        silent = (now - about.get("beat", 0)) / 1000
        return list(about.get("what") or ()), not about.get("owner") or Owner.gone(about["owner"], silent)

    def abandon(self) -> bool:
        """Take back an unfinished load, and return whether there was one: the graph gets its earlier content."""
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
        """Delete the graph in batches, and return whether there was one. Other data is not touched."""
        self._check_writable()
        result = bool(self._state())
        self.refresh()
        drop(self.connection, self.name)
        delete(self.connection, self.name)
        return result

    # -- asking ------------------------------------------------------------------------------------

    def names(self) -> Neo4jNames:
        return Neo4jNames(self.connection, self.name, self.schema, self.layout)

    def match(self, pattern: Any, **options: Any) -> Matches:
        """Match a pattern; the server joins and ranks.

        With `exact=False`, candidates come from its vector index, which may miss some. If the server does not support
        patterns, plans fetch the statements that the search reaches.
        """
        engine = self.connection.engine
        if engine.scored:
            return self.patterns.match(pattern, **options)
        if not options.pop("exact", True):
            raise errors.UnsupportedError(engine.name, ["an approximate index of names"], hint="ask with exact=True")
        from condgraph.patterns.remote.planned import planned

        return self.steady(lambda: planned(self, self.place, self.name).match(pattern, **options))

    ends_of = 5_000

    def ends(self, parts: Sequence[EndPart], tally: Tally, *, statements: bool) -> list[EndRow]:
        """Return the ends of statements, with entities by id (`patterns.remote.planned.EndStore`)."""
        rows = self._asked(compile_ends(parts, self.name, self.schema, self.layout), tally)
        return [row for (part,) in rows for row in part]

    def ends_on(
        self, parts: Sequence[EndPart], end: End, few: int | None, here: Entities, then: Sequence[EndPart], tally: Tally
    ) -> tuple[list[EndRow], list[EndRow], bool]:
        """Return the ends of statements and of those that lead on from them (`patterns.remote.planned.JoinedEnds`)."""
        compiled = compile_ends_on(parts, end, few, here, then, self.name, self.schema, self.layout)
        ((groups,),) = self._asked(compiled, tally)
        first, second = ([row for group in groups for row in group[at]] for at in (0, 1))
        return first, second, few is None or len(groups) <= few

    def node_keys(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Return None, since rows name entities by id."""

    def _asked(self, compiled: Compiled, tally: Tally) -> list[list[Any]]:
        tally.cypher.append((compiled.text, compiled.parameters))
        tally.pasted = pasted
        return self.connection.values(compiled.text, compiled.parameters)

    def predicate_of(self, kind: str) -> str:
        """Return the predicate of a relationship type."""
        return self.layout.predicate_of(kind)

    @property
    def known_sources(self) -> tuple[Source, ...]:
        """The sources in the order of loading, read once."""
        result: tuple[Source, ...] | None = self.schema.kept.get("sources")
        if result is None:
            by_name = {source.name: source for source in self.sources()}
            result = self.schema.kept["sources"] = tuple(by_name[name] for name in self.schema.sources if name in by_name)
        return result

    @cached
    def patterns(self) -> Neo4jPatterns:
        """Patterns on this graph; the client's part is fetched when the first one is matched."""
        from condgraph.cypher.patterns.match import Neo4jPatterns

        engine = self.connection.engine
        if not engine.scored:
            raise errors.UnsupportedError(engine.name, ["an index for patterns"], hint="graph.match(...) finds them without")
        return Neo4jPatterns(self)

    # -- looking -----------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Tell whether the graph exists and its load is finished."""
        return bool(self._state().get("complete"))

    def sources(self) -> tuple[Source, ...]:
        return graph_sources(self.connection, self.name)

    def counts(self) -> dict[str, int]:
        """Return the counts of the graph."""
        result: dict[str, int] = json.loads(self._about()["counts"])
        return result

    def survey(self) -> Survey:
        """Return the survey of the graph, computed by the load; read once for each content."""

        def ask() -> Survey:
            cache = self.schema.kept
            if "survey" not in cache:
                text = f"MATCH (g:{GRAPH} {{name: $graph}}) RETURN g.survey AS survey, g.content AS content, g.counts AS counts"
                for row in self.connection.read(text, {"graph": self.name}):
                    cache["survey"] = stored_survey(row["survey"], row["content"], self.schema, json.loads(row["counts"]))
            result: Survey = cache["survey"]
            return result

        return self.steady(ask)

    def snapshot(self) -> Snapshot:
        """Read the whole graph into process, with its sources; raises `StoreBusyError` if it is loaded meanwhile."""
        return self.steady(lambda: pull(self.connection, self.name))

    def left(self) -> Snapshot | None:
        """Return what an interrupted load left in the graph; None if nothing."""
        return pull(self.connection, self.name) if "content" in self._state() else None

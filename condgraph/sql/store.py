"""A graph in a SQL database: load it, ask with one query, look up names, and pull it into process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlglot import exp

from condgraph.edits import Edit, Key, RemoteEdit, Removed, SourceUse, joined, key_of, named_in, normal
from condgraph.engine import algebra as alg
from condgraph.engine import errors
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.algebra.operators import around_of
from condgraph.engine.bounds import kept, timed
from condgraph.engine.changes import Change, OnWritten, OvertakenError
from condgraph.engine.describe import describe, tree
from condgraph.engine.execute.conditions import compared_kinds
from condgraph.engine.execute.left_out import LeftOut, left_out, left_out_warnings
from condgraph.engine.execute.run import Run
from condgraph.engine.execute.sets import order_key
from condgraph.engine.facts import Entity, EntityKind, Item, Source, Sourced, Statement
from condgraph.engine.identity import content_digest, statement_ids
from condgraph.engine.kinds import all_comparable, condition_of, kinds_tested, may_warn
from condgraph.engine.lowered import Step
from condgraph.engine.passes import mark, rewrite
from condgraph.engine.row_shapes import naming_products, row_tests
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.store import held, holding, sized, valued
from condgraph.engine.stored_answer import StoredAnswer
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.values import NO_UNIT, Kind, Value, collapse, text_of
from condgraph.names.linking import LinkingSchema
from condgraph.overview.adjusted import GraphSummary
from condgraph.overview.survey import Survey, packed, stored_survey, unpacked
from condgraph.sql import tables as layout
from condgraph.sql.compiler import beyond, is_native
from condgraph.sql.connections import Engine, Writer, schema_query, table_query
from condgraph.sql.names import SqlNames
from condgraph.sql.plan import (
    Compiled,
    OwnPlans,
    Plans,
    compile_plan,
    compile_units,
    compile_witness,
    counted,
    finish_counted,
    native,
)
from condgraph.sql.rows import plain_facts
from condgraph.sql.tables import TABLES, Columns, Graph, Row, columns
from condgraph.sql.terms import both, check_text, column, either, is_text, literal, one_of, select, table_of

if TYPE_CHECKING:
    from condgraph.engine.answer import Answer
    from condgraph.engine.check import KnownIds
    from condgraph.engine.execute.witness_plan import Unit
    from condgraph.engine.lowered import Lowered
    from condgraph.engine.store import EndPart, Request, Size
    from condgraph.patterns.matches import Matches
    from condgraph.patterns.remote.catalogue import Tally
    from condgraph.patterns.remote.planned import PlannedPatterns

# -- Parts of a graph --------------------------------------------------------------------------------

# Parts of a graph in a SQL database: what a single change reads, and the rows that it changes.


Read = Callable[[exp.Query], list[Row]]


class SqlParts:
    """Parts of the graph in one schema. See `condgraph.remote.PartStore`."""

    def __init__(self, read: Read, place: str) -> None:
        self._read, self._in = read, place
        #: The statements read so far, with their numbers in the database.
        self._numbers: dict[Key, int] = {}
        self._sources: list[Source] | None = None

    def _rows(self, table: str, test: exp.Expr, names: Iterable[str] = (), limit: int | None = None) -> list[Row]:
        query = select(*(column(name) for name in names or TABLES[table])).from_(table_of(table, self._in), copy=False)
        query = query.where(test, copy=False)
        return self._read(query if limit is None else query.limit(limit, copy=False))

    def sources(self) -> list[Source]:
        """Return the sources in the order they were loaded."""
        if self._sources is None:
            self._sources = [Source(*fields) for _, *fields in sorted(self._rows("source", exp.true()))]
        return self._sources

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of entities by their ids."""
        return dict(self._rows("entity", one_of(column("id"), ids), ("id", "e"))) if ids else {}

    def called(self, text: str) -> list[Entity]:
        """Return the entities that have a text as their id or name."""
        if not is_text(text):
            return []
        test = either(exp.EQ(this=column(name), expression=literal(text)) for name in ("id", "name"))
        rows = self._rows("entity", test, ("id", "name", "kind", "row"))
        return [Entity(entity_id, name, EntityKind(kind), row or 0) for entity_id, name, kind, row in rows]

    def some_names(self, most: int) -> list[str]:
        """Return the names of all entities, or nothing if there are more than `most`."""
        rows = self._rows("entity", exp.true(), ("name",), most + 1)
        return [name for (name,) in rows] if len(rows) <= most else []

    def entities_about(self, ids: Sequence[str], sources: Sequence[str]) -> list[Item]:
        """Return entities by their ids, and the concepts that they are stated to belong to."""
        numbers = sorted(self.numbers([entity_id for entity_id in ids if is_text(entity_id)]).values())
        if not numbers:
            return []
        rows = {
            "membership": self._rows("membership", one_of(column("e"), numbers)),
            "subclass": self._rows("subclass", one_of(column("concept"), numbers)),
        }
        entities = sorted({*numbers, *(concept for memberships in rows.values() for _, concept, *_ in memberships)})
        rows |= {table: self._rows(table, one_of(column("e"), entities)) for table in ("entity", "declared")}
        return [item for item in Graph(rows, self.sources()).items() if not isinstance(item, Source)]

    def statements_about(self, subject: str, predicate: str) -> list[Sourced]:
        """Return the statements of a subject and a predicate."""
        return self._statements(subject, [one_of(column("predicate"), [predicate])]) if is_text(predicate) else []

    def some_about(self, subject: str) -> list[Statement]:
        """Return at most 100 statements of a subject."""
        return [sourced.item for sourced in self._statements(subject, [], 100) if isinstance(sourced.item, Statement)]

    def _statements(self, subject: str, tests: list[exp.Expr], limit: int | None = None) -> list[Sourced]:
        subjects = self.numbers([subject] if is_text(subject) else [])
        if not subjects:
            return []
        rows = {"statement": self._rows("statement", both([one_of(column("s"), list(subjects.values())), *tests]), limit=limit)}
        if not rows["statement"]:
            return []
        numbers = sorted(row[0] for row in rows["statement"])
        rows |= {table: self._rows(table, one_of(column("f"), numbers)) for table in ("qualifier", "place")}
        ends = {row[3] for table in ("statement", "qualifier") for row in rows[table]} - {None}
        rows["entity"] = self._rows("entity", one_of(column("e"), sorted({*ends, *subjects.values()})))
        graph = Graph(rows, self.sources())
        numbered = list(graph.statements())
        self._numbers |= {key_of(normal(sourced.item)): f for f, sourced in numbered if isinstance(sourced.item, Statement)}
        return [sourced for _, sourced in numbered]

    def number(self, statement: Statement) -> int:
        """Return the number of a statement of the graph, which must be in normal form (`normal`)."""
        if key_of(statement) not in self._numbers:
            self.statements_about(statement.subject, statement.predicate)
        return self._numbers[key_of(statement)]

    def uses(self, ident: str, without: Removed) -> Iterable[SourceUse]:
        """Yield a source that uses an entity in statements other than those `without`, and one that uses it as a concept."""
        entities = list(self.numbers([ident] if is_text(ident) else []).values())
        if not entities:
            return
        removed = [self.number(statement) for statement in without.statements]
        unless_removed = [exp.not_(one_of(column("f"), removed), copy=False)] if removed else []
        for table, end in (("statement", "s"), ("statement", "o"), ("qualifier", "o")):
            if rows := self._rows(table, both([one_of(column(end), entities), *unless_removed]), ("f",), 1):
                ((source,),) = self._rows(
                    "place", both([one_of(column("f"), list(rows[0])), one_of(column("n"), [0])]), ("source",)
                )
                yield SourceUse(self.sources()[source].name, False)
                break
        for table, end in (("membership", "concept"), ("subclass", "concept"), ("subclass", "parent")):
            if rows := self._rows(table, one_of(column(end), entities), ("source",), 1):
                yield SourceUse(self.sources()[rows[0][0]].name, True)
                break

    def value_used(self, value: Value, without: Removed) -> bool:
        """Return False: each statement has its own row for its value."""
        return False

    def unused(self, most: int) -> list[str]:
        """Return an empty list: each declaration of an entity has its own row."""
        return []

    def has_several(self, name: str, qualifier: bool, subjects: Sequence[str], without: Removed) -> bool:
        """Tell whether some entity outside `subjects` has several values of an attribute, or some statement of a qualifier."""
        table, key, owner = ("qualifier", "key", "f") if qualifier else ("statement", "predicate", "s")
        excluded = (
            [self.number(statement) for statement in without.statements] if qualifier else sorted(self.numbers(subjects).values())
        )
        tests = [one_of(column(key), [name])] + ([exp.not_(one_of(column(owner), excluded), copy=False)] if excluded else [])
        if not qualifier:
            tests.append(exp.NEQ(this=column("kind"), expression=literal(int(Kind.ENTITY))))
        several = exp.GT(this=exp.Count(this=exp.Star()), expression=literal(1))
        query = select(column(owner)).from_(table_of(table, self._in), copy=False).where(both(tests), copy=False)
        return bool(self._read(query.group_by(column(owner), copy=False).having(several, copy=False).limit(1, copy=False)))


# -- Rows --------------------------------------------------------------------------------------------


class Changes:
    """The rows that a change adds and deletes, by the numbers of the database."""

    def __init__(self, before: Snapshot, after: Snapshot, parts: SqlParts, edit: Edit) -> None:
        self._parts = parts
        self._of = [_of(snapshot) for snapshot in (before, after)]
        self._ids = [list(tables["entity"]["id"]) for tables in self._of]
        sids = [statement_ids(snapshot).tolist() for snapshot in (before, after)]
        #: Statements that are added, by their numbers in the part; and the ids of entities that are removed and added.
        self._added = [number for number, sid in enumerate(sids[1]) if sid not in set(sids[0])]
        id_sets = [set(ids) for ids in self._ids]
        self._removed_ids, self._added_ids = sorted(id_sets[0] - id_sets[1]), sorted(id_sets[1] - id_sets[0])
        self._edit = edit

    def write(self, writer: Writer, place: str) -> None:
        """Write the changed rows."""
        tables, parts = self._of, self._parts
        removed = [parts.number(part) for part in self._edit.removed if isinstance(part, Statement)]
        for table in ("statement", "qualifier", "place") if removed else ():
            writer.execute(_deleted(place, table, column("f"), removed))
        declared = [_declared(tables[position], self._ids[position]) for position in (0, 1)]
        redeclared = sorted(
            entity_id
            for entity_id in declared[0].keys() | declared[1].keys()
            if declared[0].get(entity_id) != declared[1].get(entity_id)
        )
        named = sorted({*redeclared, *self._removed_ids, *(self._ids[1][e] for e in self._ends())} - set(self._added_ids))
        numbers = parts.numbers(named)
        if ends := [numbers[entity_id] for entity_id in sorted({*redeclared, *self._removed_ids}) if entity_id in numbers]:
            writer.execute(_deleted(place, "declared", column("e"), ends))
        if self._removed_ids:
            writer.execute(_deleted(place, "entity", column("e"), [numbers[entity_id] for entity_id in self._removed_ids]))
        last_e, last_f = (_last(writer, place, table, name) for table, name in (("entity", "e"), ("statement", "f")))
        numbers |= {entity_id: last_e + position for position, entity_id in enumerate(self._added_ids, 1)}
        e = {position: numbers[entity_id] for position, entity_id in enumerate(self._ids[1]) if entity_id in numbers}
        f = {number: last_f + position for position, number in enumerate(self._added, 1)}
        new_ids = set(self._added_ids)
        sources = set(tables[0]["source"]["name"])
        chosen: dict[str, Callable[[Mapping[str, Any]], bool]] = {
            "source": lambda row: row["name"] not in sources,
            "entity": lambda row: self._ids[1][row["e"]] in new_ids,
            "declared": lambda row: self._ids[1][row["e"]] in redeclared,
            **dict.fromkeys(("statement", "qualifier", "place"), lambda row: row["f"] in f),
        }
        for table, is_written in chosen.items():
            rows = [row for row in _rows(tables[1][table]) if is_written(row)]
            for row in rows:
                for name, numbers_of in (("e", e), ("s", e), ("o", e), ("f", f)):
                    if row.get(name) is not None:
                        row[name] = numbers_of[row[name]]
            if rows:
                kinds = TABLES[table]
                writer.insert(place, table, [(name, kind, [row[name] for row in rows]) for name, kind in kinds.items()])

    def texts(self) -> Iterable[tuple[str, str, list[str | None]]]:
        """Yield the texts of the added rows: table, column, texts."""
        for part in self._edit.added:
            if isinstance(part, Statement):
                yield "statement", "predicate", list(named_in(part))
        yield "entity", "id", list(self._added_ids)
        yield "entity", "name", [self._of[1]["entity"]["name"][self._ids[1].index(ident)] for ident in self._added_ids]
        fresh = set(self._added)
        for table in ("statement", "qualifier"):
            for name in ("text", "unit"):
                values = zip(self._of[1][table]["f"], self._of[1][table][name], strict=True)
                yield table, name, [text for f, text in values if f in fresh]

    def _ends(self) -> set[int]:
        """Return the entities that new statements name, by their numbers in the part."""
        rows = [row for table in ("statement", "qualifier") for row in _rows(self._of[1][table]) if row["f"] in set(self._added)]
        return {row[name] for row in rows for name in ("s", "o") if row.get(name) is not None}


def _of(snapshot: Snapshot) -> dict[str, Columns]:
    """Return the columns of each table up to `place`; those after it describe the whole graph."""
    result = {}
    for table, values in columns(snapshot, ""):
        result[table] = values
        if table == "place":
            break
    return result


def _rows(values: Columns) -> list[dict[str, Any]]:
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def _declared(of: dict[str, Columns], ids: list[str]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the declarations of each entity."""
    result: dict[str, list[tuple[Any, ...]]] = {}
    for e, *declaration in zip(*of["declared"].values(), strict=True):
        result.setdefault(ids[e], []).append(tuple(declaration))
    return result


def _deleted(place: str, table: str, of: exp.Expr, numbers: list[int]) -> exp.Delete:
    return exp.Delete(this=table_of(table, place), where=exp.Where(this=one_of(of, numbers)))


def _last(writer: Writer, place: str, table: str, name: str) -> int:
    """Return the last number of a table, or -1 if it is empty."""
    ((last,),) = writer.read(select(exp.Max(this=column(name))).from_(table_of(table, place), copy=False))
    return -1 if last is None else int(last)


# -- Answers -----------------------------------------------------------------------------------------


T = TypeVar("T")
#: The most bytes of a name that PostgreSQL keeps.
_MAX_NAME: Final = 63
#: For how many seconds the known state of a graph is trusted, since others may load it.
_LEASE: Final = 1.0
#: How many rows are written at once; progress is reported after each batch.
_AT_ONCE: Final = 100_000


class SqlAnswer(StoredAnswer):
    """The answer to one program, with its SQL (`sql`). The trace takes one more query, sent when it is read."""

    _store: SqlStore

    def __init__(self, store: SqlStore, request: Request, lowered: Lowered, compiled: Compiled, rows: list[layout.Row]) -> None:
        super().__init__(store, request, lowered)
        self._compiled, self._rows = compiled, rows
        if not self._finished:
            return
        if compiled.shape == "counted rows":
            (group,) = compiled.leaves
            assert isinstance(group, alg.GroupRows)
            run = finish_counted(self.plan, group, rows[0][0])
        else:
            records = store.plans.records(rows, store.known_sources)
            gathered = compiled.shape == "gathered"
            run = records.run(self.plan, compiled.leaves) if gathered else records.witness(self.plan, compiled.fetched)
        run.notes.update(lowered.notes)
        self.run: Run = run
        self._rows = []

    @property
    def sql(self) -> str:
        """The query, as any client of the engine takes it."""
        return self._store.engine.text(self._compiled.query, pretty=True)

    @property
    def _finished(self) -> bool:
        """Whether the client finished the plan."""
        return self._compiled.shape in ("gathered", "witness", "counted rows")

    def _compute(self) -> tuple[list[Any], list[str]]:
        if self._finished:
            return super()._compute()
        if self._compiled.shape == "entities":
            entities = sorted(self._entities(), key=lambda entity: (order_key(entity), entity.name))
            if self._limit is not None and len(entities) > self._limit:
                self._omitted = len(entities) - self._limit
            names = [entity.name for entity in entities[: self._limit]]
            return list(names), names
        if self._compiled.shape == "values":
            pairs = sorted(self._pairs(), key=lambda pair: (order_key(pair[0]), pair[1]))
            if self._limit is not None and len(pairs) > self._limit:
                self._omitted = len(pairs) - self._limit
            return [value for value, _ in pairs[: self._limit]], [text for _, text in pairs[: self._limit]]
        value = self._rows[0][0] if self._compiled.shape == "count" else bool(self._rows)
        if self._limit == 0:
            self._omitted = 1
            return [], []
        return [value], [text_of(value)]

    def _pairs(self) -> list[tuple[Any, str]]:
        pairs: list[tuple[Any, str]] = []
        spaced: dict[str, list[str]] = {}
        for row in self._rows:
            cells: dict[str, Any] = dict(zip(self._compiled.columns, row, strict=True))
            entity_id = cells.get("id")
            cell = [cells.get(part) for part in layout.CELL]
            if entity_id is not None:
                name = cells["name"]
                pairs.append((Entity(entity_id, name, EntityKind(cells["at"]), cells.get("row") or 0), name))
                continue
            value = layout.value_of(cell)
            if type(value) is str and (plain := collapse(value)) != value:
                # Tables of an existing database keep texts as typed. Each value counts once, with the first of its texts.
                spaced.setdefault(plain, []).append(value)
            else:
                pairs.append((value, text_of(value)))
        if spaced:
            unspaced = {value for value, _ in pairs if type(value) is str}
            pairs += [(plain, min(texts)) for plain, texts in spaced.items() if plain not in unspaced]
        return pairs

    def _entities(self) -> list[Entity]:
        return [Entity(entity_id, name, EntityKind(kind), row or 0) for entity_id, name, kind, row in self._rows]

    @kept
    def entities(self) -> list[Entity]:
        """The entities of the answer, in order."""
        if self._finished:
            return super().entities
        if self._compiled.shape == "values" and not any(isinstance(node, alg.Qualifiers) for node in self.plan.inputs()):
            by_id = {value.id: value for value, _ in self._pairs() if isinstance(value, Entity)}
            return sorted(by_id.values(), key=lambda entity: (entity.name, entity.id))[: self._limit]
        if self._compiled.shape != "entities":
            return []
        return sorted(self._entities(), key=lambda entity: (entity.name, entity.id))[: self._limit]

    @property
    def _telling(self) -> Mapping[str, str]:
        return self._store.schema.telling

    @kept
    def _witness(self) -> Run:
        return self.run if self._compiled.shape == "witness" else self._store.witness(self.plan)

    def _grid(self) -> Any:
        return super(StoredAnswer, self)._grid() if self._finished else super()._grid()

    @kept
    def trace(self) -> list[Step]:
        """What each step of the program gave; steps below what the client finished take one more query."""
        steps = self._steps or [(type(self.plan).__name__, self.plan)]
        # An optimiser pass may have merged equal operators into one.
        merged = {mark(node): node for node in postorder(self.plan)}
        known: Mapping[int, Any] = self.run.results if self._finished else {}
        nodes = [node if id(node) in known else rewrite(node, lambda part: merged.get(mark(part), part)) for _, node in steps]
        unknown = [i for i, node in enumerate(nodes) if id(node) not in known]
        sizes = dict(zip(unknown, self._store.sizes([nodes[i] for i in unknown]), strict=True))
        last, result = len(steps) - 1, []
        for i, (function, node) in enumerate(steps):
            size = sizes.get(i)
            if size is None and i == last and not self._finished:
                size = len(self._outcome()[0]) + self._omitted, tuple(self._outcome()[1][:3])
            elif size is None:
                size = self._size(nodes[i]) if id(nodes[i]) in known else self._local._size(nodes[i])
            result.append(Step(function, describe(node), *size, self._notes.get(id(node), "")))
        return result

    def _noticed(self) -> list[str]:
        schema, empty = self._store.schema, not self._outcome()[0]
        warnings, skipped = (list(self.run.warnings), self.run.left_out) if self._finished else ([], LeftOut())
        if any(is_native(node) and may_warn(node, schema, empty) for node in postorder(self.plan)):
            warnings += self._witness.warnings
        if self._compiled.shape == "truth" and isinstance(self.plan, alg.AnySatisfies) and _leaves_out(self.plan, schema):
            skipped += self._witness.left_out
        skipped_warnings = left_out_warnings(skipped + self._store.left_out(self.plan))
        return list(dict.fromkeys([*warnings, *skipped_warnings]))

    @timed
    def explain(self) -> str:
        """Return the program, its plan, the SQL, and the results of each step."""
        steps = [str(step) for step in self.trace]
        warnings = [f"warning: {warning}" for warning in self.warnings]
        parts = [self.program, tree(self.plan), self.sql, "\n".join([*steps, *warnings])]
        return "\n\n".join(part for part in parts if part)


# -- The store ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _State:
    """What is known of the graph's content, and since when."""

    content: str
    schema: StoredSchema
    sources: tuple[Source, ...]
    counts: dict[str, int]
    checked_at: float
    #: As long as `Engine.unchanged` returns this, nothing has changed.
    unchanged: object | None
    survey: Survey | None = None


class SqlStore:
    """One graph in a SQL database, in a schema of its own; only `push`, `delete` and single changes write to it."""

    declared: tuple[str, ...] = ()
    ends_of = 1_000

    def __init__(self, engine: Engine, *, graph: str, read_only: bool, timeout: float | None) -> None:
        if not graph:
            raise errors.OptionError("the name of a graph is empty")
        check_text(graph)
        self.engine, self.name, self.read_only, self.timeout = engine, graph, read_only, timeout
        self.place, self._in = engine.place, engine.schema(graph)
        if len(self._in.encode()) > _MAX_NAME:
            limit = _MAX_NAME - len(engine.schema(""))
            raise errors.OptionError(f"the name of a graph has at most {limit} bytes in a SQL database, not {len(graph.encode())}")
        self._state: _State | None = None
        #: What the last load reported about single changes.
        self.remarks: list[str] = []

    def __repr__(self) -> str:
        return f"<SqlStore {self.name!r} at {self.place}>"

    def close(self) -> None:
        """Close the connections."""
        self.engine.close()

    # -- what there is -----------------------------------------------------------------------------

    def _table(self, name: str) -> exp.Table:
        return table_of(name, self._in)

    def _all(self, table: str, *names: str) -> exp.Select:
        return select(*(column(name) for name in names or layout.TABLES[table])).from_(self._table(table), copy=False)

    def exists(self) -> bool:
        """Tell whether the graph exists."""
        return self.engine.has_schema(self._in)

    def refresh(self) -> None:
        """Forget what is known, since another process may have changed the graph."""
        self.engine.refresh()
        self._state = None

    def content(self) -> str:
        """Return the name of the graph's content; raise `StoreMissingError` if there is no graph."""
        query = self._all("about", "format", "content")
        try:
            ((form, content),) = self.engine.read(query)
        except errors.StoreError:
            if self.engine.writes and not self.exists():
                raise errors.StoreMissingError(
                    f"there is no graph {self.name!r} at {self.place}", hint="load something first"
                ) from None
            # A writer may just have replaced the table that the server was about to read.
            ((form, content),) = self.engine.read(query)
        if form != layout.FORMAT:
            raise errors.StoreVersionError(
                f"graph {self.name!r} has layout {form}, this version reads {layout.FORMAT}",
                hint="export it with the version that wrote it, and load the export",
            )
        return str(content)

    def _current(self) -> _State:
        state, now = self._state, time.monotonic()
        if state is not None and (held(self) is not None or now - state.checked_at < _LEASE or self._unchanged(state.unchanged)):
            return state
        unchanged, content = self.engine.unchanged(), self.content()
        if state is None or state.content != content:
            # The first query opens a file.
            unchanged = self.engine.unchanged()
            ((_, content, counts, schema, _),) = self.engine.read(self._all("about"))
            sources = _sources(self.engine.read(self._all("source")))
            state = self._state = _State(content, StoredSchema(json.loads(schema)), sources, json.loads(counts), now, None)
        state.checked_at = now
        state.unchanged = unchanged if self._unchanged(unchanged) else None
        return state

    def _unchanged(self, since: object | None) -> bool:
        """Tell whether the engine reports no change since it returned `since`."""
        return since is not None and since is self.engine.unchanged()

    def steady(self, ask: Callable[[], T]) -> T:
        """Return what `ask` gives for one state of the graph; ask again if somebody loaded meanwhile."""
        if held(self) is not None:
            return ask()
        for _ in range(2):
            before = self._current()
            unchanged = before.unchanged
            try:
                with holding(self):
                    result = ask()
            except errors.StoreError:
                # Queries of two states do not fit together, and tables are missing for a moment while they are rewritten.
                if self._unchanged(unchanged) or self.content() == before.content:
                    raise
            else:
                if self._unchanged(unchanged) or self.content() == before.content:
                    return result
            self._state = None
        raise errors.StoreBusyError(f"graph {self.name!r} was loaded while it was queried", hint="ask again")

    @property
    def schema(self) -> StoredSchema:
        """The schema that lowering uses; read once for each content."""
        return self._current().schema

    @property
    def known_sources(self) -> tuple[Source, ...]:
        """The sources in the order they were loaded."""
        return self._current().sources

    @property
    def naming_schema(self) -> LinkingSchema:
        """The schema with name lookup."""
        schema = self.schema
        named: LinkingSchema | None = schema.kept.get("named")
        if named is None:
            named = schema.kept["named"] = LinkingSchema(schema, self._names(schema))
        return named

    linking_schema = naming_schema

    def _names(self, schema: StoredSchema) -> SqlNames:
        return SqlNames(self.engine.read, OwnPlans(self._in, schema))

    @property
    def plans(self) -> Plans:
        """The queries of this layout."""
        return OwnPlans(self._in, self.schema, self.engine.close_subclasses)

    def sources(self) -> tuple[Source, ...]:
        """Return the sources of the graph."""
        return self.known_sources

    def counts(self) -> dict[str, int]:
        """Return the counts of what the graph holds."""
        return dict(self._current().counts)

    def survey(self) -> Survey:
        """Return the survey of the graph, counted when it was loaded."""
        state = self._current()
        if state.survey is None:
            ((text,),) = self.engine.read(self._all("about", "survey"))
            state.survey = stored_survey(text, state.content, state.schema, state.counts)
        return state.survey

    def snapshot(self) -> Snapshot:
        """Return the whole graph, as it was pushed."""
        return self.steady(lambda: self._pulled(self.engine.read))

    def _pulled(self, read: Callable[[exp.Query], list[layout.Row]]) -> Snapshot:
        sources = _sources(read(self._all("source")))
        tables = ("entity", "declared", "membership", "subclass", "statement", "qualifier", "place")
        rows = {table: read(self._all(table)) for table in tables}
        rows["statement"].sort(key=lambda row: row[0])
        return layout.Graph(rows, sources).snapshot()

    # -- asking ------------------------------------------------------------------------------------

    def answer(self, request: Request) -> Answer:
        """Answer a program with one query."""

        def ask() -> SqlAnswer:
            lowered = request.lowered(self.naming_schema)
            self.check_plan(lowered.plan)
            compiled = self.compiled(lowered.plan)
            with naming_products(lowered.plan):
                return SqlAnswer(self, request, lowered, compiled, self.engine.read(compiled.query))

        return self.steady(ask)

    def explain(self, request: Request) -> str:
        """Return the SQL of a program, without running it."""
        plan = request.lowered(self.naming_schema).plan
        self.check_plan(plan)
        return self.engine.text(self.compiled(plan).query, pretty=True)

    def compiled(self, plan: Node) -> Compiled:
        """Return the query of a plan."""
        return compile_plan(plan, self.plans)

    def check_plan(self, plan: Node) -> None:
        """Raise `UnsupportedError` for a plan that cannot run on this graph."""
        return

    def match(self, pattern: Any, *, exact: bool = True, **options: Any) -> Matches:
        """Return the subgraphs nearest to a pattern; plans fetch the statements that the search reaches."""
        if not exact:
            raise errors.OptionError("a SQL database has no approximate index", hint="ask with exact=True")
        return self.steady(lambda: self._patterns().match(pattern, **options))

    def _patterns(self) -> PlannedPatterns:
        from condgraph.patterns.remote.planned import planned

        return planned(self, self.place, self.name, counts=self._current().counts, ends=self)

    def ends(self, parts: Sequence[EndPart], tally: Tally, *, statements: bool) -> list[Row]:
        """Return the ends of statements, with entities by their numbers (`patterns.remote.planned.EndStore`)."""
        text = self.engine.text(OwnPlans(self._in, self.schema).ends(parts))
        tally.sql.append(text)
        return self.engine.read(text)

    def node_keys(self, ids: Sequence[str], texts: Sequence[str]) -> dict[int, int]:
        """Return the positions of entities by their numbers."""
        numbers: dict[str, int] = dict(self.engine.read(self._all("entity", "id", "e")))
        return {numbers[ident]: position for position, ident in enumerate(ids)}

    def predicate_of(self, kind: str) -> str:
        """Return a predicate as it is."""
        return kind

    def witness(self, plan: Node) -> Run:
        """Run a plan in process on its evidence."""

        def ask() -> Run:
            compiled = compile_witness(plan, self.plans)
            return self.plans.records(self.engine.read(compiled.query), self.known_sources).witness(plan, compiled.fetched)

        return self.steady(ask)

    def gather(self, units: Sequence[Unit]) -> Snapshot:
        """Return the statements, sets and memberships of some units, with one query."""

        def ask() -> Snapshot:
            compiled = compile_units(tuple(units), self.plans)
            return self.plans.records(self.engine.read(compiled.query), self.known_sources).snapshot

        return self.steady(ask)

    def around(self, ids: Sequence[str], names: Sequence[str], most: int, *, values: bool, concepts: bool = False) -> Snapshot:
        """Return the entities of these ids and names with the statements at either end of them, with one query.

        Chains read them (`chains.place.AroundStore`). With `concepts`, also return the memberships that they are an end of.
        """

        def ask() -> Snapshot:
            anchors, scans = around_of(list(filter(is_text, ids)), list(filter(is_text, names)), values=values)
            members = [(anchors, alg.AllEntities((EntityKind.CONCEPT,))), (alg.AllEntities(), anchors)] if concepts else []
            query = self.plans.gathered(list(enumerate((anchors, *scans))), members, most=most)
            return self.plans.records(self.engine.read(query), self.known_sources).snapshot

        return self.steady(ask)

    def counted(self, nodes: Sequence[Node], known: KnownIds) -> list[int]:
        """Return how many statements or entities each operator gives; `known` has the ids that the client computed."""
        if not nodes:
            return []
        sizes: dict[int, int] = dict(self.engine.read(self.plans.counts(list(enumerate(counted(nodes, known))))))
        return [sizes.get(step, 0) for step in range(len(nodes))]

    def sizes(self, nodes: Sequence[Node], most: int = 3, *, statements: bool = False) -> list[Size | None]:
        """Return how many entities each operator gives, with the first names, by one query; None for those the client computes."""
        sets: list[tuple[int, Node]] = []
        for step, node in enumerate(nodes):
            countable = alg.Reached(node) if isinstance(node, alg.Facts) else node.entities if isinstance(node, alg.Names) else node
            if isinstance(countable, alg.Entities) and native(countable):
                sets.append((step, countable))
            elif statements and (facts := valued(node)) is not None and native(facts):
                sets.append((step, facts))
        sizes: dict[int, int] = {}
        names: dict[int, list[str]] = {}
        for step, size, name in self.engine.read(self.plans.sizes(sets, most)) if sets else []:
            if size is None:
                names.setdefault(step, []).append(name)
            else:
                sizes[step] = size
        return [sized(node, sizes.get(step), names.get(step, ())) for step, node in enumerate(nodes)]

    def left_out(self, plan: Node) -> LeftOut:
        """Return the values that the query's tests could not compare. For most tests the schema says that there are none."""
        nodes: list[Node] = []
        for node in postorder(plan):
            tests = isinstance(node, alg.Where | alg.WhereQualifier | alg.WhereValidity) and native(node)
            if tests and _leaves_out(node, self.schema):
                nodes.append(node)
        for test in row_tests(plan):
            if isinstance(test.facts, alg.FactsOf) and compared_kinds(test.condition) and not beyond(postorder(test.facts.of)):
                nodes += [replace(test, facts=facts) for facts in plain_facts(test.facts)]
        result = LeftOut()
        if not nodes:
            return result
        for step, number, unit, count in self.engine.read(self.plans.tallies(list(enumerate(map(_tested, nodes))))):
            kind = Kind(number)
            left_out(result, kind, unit if kind is Kind.QUANTITY else NO_UNIT, count, compared_kinds(condition_of(nodes[step])))
        return result

    # -- loading -----------------------------------------------------------------------------------

    def push(
        self,
        snapshot: Snapshot,
        *,
        wait: float = 0.0,
        change: Change = Change(),  # noqa: B008 - it is frozen
        on_progress: OnWritten = lambda written, part: None,
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Add a snapshot to what the graph holds, minus what `change` removes; return the counts before and after.

        `on_progress` is called with the number of rows written so far and the current part. Everything is one
        transaction: readers, also those after a crash, see the graph either before or after it.
        """
        self._check_writable()
        with self.engine.writing(wait) as writer:
            exists = bool(writer.read(schema_query(self._in)))
            previous = self._pulled(writer.read) if exists else None
            change.check(_sources(writer.read(self._all("source"))) if exists else (), snapshot)
            records = self._records(writer.read) if exists else []
            after, self.remarks = joined(change, records, previous, snapshot)
            before = {} if previous is None else previous.counts
            if previous is None or content_digest(previous) != content_digest(after):
                self._write(writer, after, content_digest(after), records, on_progress)
        self._state = None
        return dict(before), dict(after.counts)

    def content_now(self) -> str:
        """Return the current content name, read now."""
        return self.content()

    def edit_records(self) -> list[str]:
        """Return the records of the single changes, in order."""
        return self._records(self.engine.read) if self.exists() else []

    def last_edit(self) -> int:
        """Return the number of the last single change."""
        return self._last(self.engine.read)

    def _has_edits(self, read: Callable[[exp.Query], list[layout.Row]]) -> bool:
        # Graphs written by an earlier version have no table of changes.
        return self.engine.writes and bool(read(table_query(self._in, layout.EDITS)))

    def _last(self, read: Callable[[exp.Query], list[layout.Row]]) -> int:
        if not self._has_edits(read):
            return 0
        ((last,),) = read(select(exp.Max(this=column("n"))).from_(self._table(layout.EDITS), copy=False))
        return last or 0

    def stated(self) -> GraphSummary | None:
        """Return what the graph states about its content, read now."""
        if not self._has_edits(self.engine.read):
            return None
        ((_, content, counts, schema, text),) = self.engine.read(self._all("about"))
        survey = unpacked(text, content)
        return None if survey is None else GraphSummary(content, json.loads(counts), json.loads(schema), survey)

    def totals(self, snapshot: Snapshot) -> dict[str, int]:
        """Return the counts of a snapshot."""
        return snapshot.counts

    @property
    def parts(self) -> SqlParts:
        """Parts of the graph, for single changes."""
        return SqlParts(self.engine.read, self._in)

    def _records(self, read: Callable[[exp.Query], list[layout.Row]]) -> list[str]:
        if not self._has_edits(read):
            return []
        return [record for _, record in sorted(read(self._all(layout.EDITS, *layout.EDIT_COLUMNS)))]

    def write_edit(self, change: RemoteEdit, wait: float) -> str:
        """Write one single change in one transaction: only the rows it changes, or all tables again."""
        self._check_writable()
        summary = change.stated
        content = content_digest(change.after) if summary is None else summary.content
        with self.engine.writing(wait) as writer:
            if not writer.read(schema_query(self._in)):
                raise OvertakenError(f"graph {self.name!r} was removed meanwhile")
            ((stored,),) = writer.read(self._all("about", "content"))
            if stored != change.content or self._last(writer.read) != change.number - 1:
                raise OvertakenError(f"graph {self.name!r} was changed by somebody else meanwhile", hint="make the change again")
            if summary is None:
                self._write(writer, change.after, content, [*self._records(writer.read), change.record], lambda written, part: None)
            else:
                self._write_part(writer, change, summary)
        self._state = None
        return content

    def _write_part(self, writer: Writer, change: RemoteEdit, now: GraphSummary) -> None:
        changes = Changes(change.before, change.after, SqlParts(writer.read, self._in), change.edit)
        for table, name, texts in changes.texts():
            _check_texts(table, name, texts)
        _check_texts(layout.EDITS, "record", [change.record])
        changes.write(writer, self._in)
        about = layout.FORMAT, now.content, json.dumps(now.counts), json.dumps(now.schema), packed(now.survey, now.content)
        writer.execute(exp.Delete(this=self._table("about")))
        writer.insert(
            self._in, "about", [(*column, [part]) for column, part in zip(layout.TABLES["about"].items(), about, strict=True)]
        )
        record = change.number, change.record
        writer.insert(
            self._in, layout.EDITS, [(*column, [part]) for column, part in zip(layout.EDIT_COLUMNS.items(), record, strict=True)]
        )

    def _check_writable(self) -> None:
        if self.read_only:
            raise errors.ReadOnlyError(f"graph {self.name!r} at {self.place} was opened to be read")

    def _write(self, writer: Writer, snapshot: Snapshot, content: str, records: list[str], on_progress: OnWritten) -> None:
        schema = exp.Table(db=exp.to_identifier(self._in, quoted=True))
        self._drop(writer)
        writer.execute(exp.Create(this=schema, kind="SCHEMA"))
        edits: layout.Columns = dict(zip(layout.EDIT_COLUMNS, (range(1, len(records) + 1), records), strict=True))
        tables = {**layout.TABLES, layout.EDITS: layout.EDIT_COLUMNS}
        written, total = 0, layout.row_count(snapshot) + len(records)
        for table, kinds in tables.items():
            column_definitions = [
                exp.ColumnDef(
                    this=exp.to_identifier(name, quoted=True),
                    kind=self.engine.data_type(kind),
                    constraints=self.engine.constraints(kind),
                )
                for name, kind in kinds.items()
            ]
            writer.execute(exp.Create(this=exp.Schema(this=self._table(table), expressions=column_definitions), kind="TABLE"))
        for table, values in chain(layout.columns(snapshot, content, _AT_ONCE), [(layout.EDITS, edits)]):
            kinds = tables[table]
            for name, kind in kinds.items():
                if kind == "text":
                    _check_texts(table, name, values[name])
            if rows := len(next(iter(values.values()))):
                writer.insert(self._in, table, [(name, kind, values[name]) for name, kind in kinds.items()])
                written += rows
                on_progress(written, written / total)
        for table, names in layout.INDEXES:
            index = self.engine.index(self._in, table, names, [layout.TABLES[table][name] for name in names])
            if index is not None:
                writer.execute(index)
        for view, query in layout.views(self._table):
            writer.execute(exp.Create(this=self._table(view), kind="VIEW", expression=query))
        for table in layout.TABLES:
            self.engine.analyze(writer, self._table(table))

    def _drop(self, writer: Writer) -> None:
        schema = exp.Table(db=exp.to_identifier(self._in, quoted=True))
        writer.execute(exp.Drop(tables=[schema], kind="SCHEMA", exists=True, cascade=True))

    def left(self) -> None:
        """Return None: a load is one transaction, which leaves nothing half done."""
        return

    def under_way(self) -> None:
        """Return None: a load is one transaction, which nobody else sees before its end."""
        return

    def abandon(self) -> bool:
        """Return False: there is nothing to take back."""
        return False

    def delete(self) -> bool:
        """Remove the graph and nothing else; tell whether there was one."""
        self._check_writable()
        if not self.exists():
            return False
        with self.engine.writing(0.0) as writer:
            self._drop(writer)
        self._state = None
        return True


def _leaves_out(node: Node, schema: StoredSchema) -> bool:
    """Return whether a test may meet values that it cannot compare."""
    compared, kinds = compared_kinds(condition_of(node)), kinds_tested(node, schema)
    return bool(compared) and (kinds is None or not all_comparable(kinds, compared))


def _tested(node: Node) -> alg.Values:
    """Return the values that a test compares."""
    assert isinstance(node, alg.Where | alg.WhereQualifier | alg.WhereValidity)
    if isinstance(node, alg.WhereQualifier):
        return alg.Qualifiers(node.facts, node.key)
    return alg.Validity(node.facts, node.part) if isinstance(node, alg.WhereValidity) else alg.Objects(node.facts)


def _sources(rows: list[layout.Row]) -> tuple[Source, ...]:
    return tuple(Source(*fields) for _, *fields in sorted(rows))


def _check_texts(table: str, name: str, texts: Sequence[str | None]) -> None:
    """Raise `LoadError` for a text that no SQL database can store."""
    for text in texts:
        if text is not None and ("\x00" in text or not text.isascii()):
            try:
                check_text(text)
            except errors.UnsupportedError:
                raise errors.LoadError(
                    f"the {name} of a {table} has a NUL character or half a surrogate pair: {text[:40]!r}",
                    hint="a graph in a folder has such texts",
                ) from None

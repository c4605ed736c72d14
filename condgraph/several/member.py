"""One of several stores: its schema, names and sources, and the parts of it that a plan needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node
from condgraph.engine.errors import StoreError
from condgraph.engine.execute import Run
from condgraph.engine.execute.sets import FactSet
from condgraph.engine.execute.witness_plan import Unit, units
from condgraph.engine.facts import Entity, Item, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.facts import Member as Membership
from condgraph.engine.lowered import Lowered
from condgraph.engine.passes import rewrite
from condgraph.engine.schema import MAX_COMPARED, Kinds, below
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.readback import items, some_items, statements
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.store import Request, plan_answer
from condgraph.engine.stored_schema import StoredSchema, describe_schema
from condgraph.engine.values import Value
from condgraph.names.linking import Linker, NameReader
from condgraph.snapshot_store import SnapshotStore

if TYPE_CHECKING:
    from condgraph.engine.answer import Answer
    from condgraph.engine.store import QueryStore, Store

T = TypeVar("T")
#: Seconds for which a version is relied on.
_LEASE: Final = 1.0
#: Names and ids whose entities are cached.
_MAX_CACHED: Final = 100_000


class Member:
    """A store with its name.

    `store` returns the store that answers now, `version` a name for its content (None if changes cannot be noticed),
    `counts` the counts of its content.
    """

    def __init__(
        self,
        name: str,
        place: str,
        store: Callable[[], Store],
        version: Callable[[], str | None],
        counts: Callable[[], dict[str, int]],
    ) -> None:
        self.name, self.place, self._store = name, place, store
        self._version, self._counts = version, counts
        #: The version last read, and when; entities looked up by name or id.
        self._known: str | None = None
        self._read_at = -_LEASE
        self._cache: dict[tuple[str, str], list[Entity]] = {}
        #: Common ids for the entities of this store, where they differ.
        self.same: Mapping[str, str] = {}

    def forget(self) -> None:
        """Discard what is cached."""
        self._read_at, self._cache = -_LEASE, {}

    def __repr__(self) -> str:
        return f"<Member {self.name!r} at {self.place}>"

    def asked(self, ask: Callable[[], T]) -> T:
        """Run `ask`; an error of the store names it."""
        try:
            return ask()
        except StoreError as error:
            note = f"store {self.name!r}: "
            if not error.message.startswith(note):
                error.message = f"{note}{error.message}"
                error.args = (error.message, *error.args[1:])
            raise

    def version(self) -> str | None:
        """Return a name for the content, at most a second old; None if changes cannot be noticed."""
        now = time.monotonic()
        if now - self._read_at >= _LEASE:
            version = self.asked(self._version)
            if version is None or version != self._known:
                self._cache = {}
            self._known, self._read_at = version, now
        return self._known

    def look_up(self, names: Sequence[str], idents: Sequence[str]) -> list[Entity]:
        """Return the entities with some names and ids; cached while the content stays the same."""
        keys = [*(("name", name) for name in names), *(("id", ident) for ident in idents)]
        # In process, a look-up costs less than checking for changes.
        in_process = isinstance(self._store(), SnapshotStore)
        known = self._cache if not in_process and self.version() is not None else {}
        lacking = [key for key in keys if key not in known]
        if lacking:
            texts = {sort: tuple(text for kind, text in lacking if kind == sort) for sort in ("name", "id")}
            parts = [node(texts[sort]) for sort, node in (("name", alg.ByName), ("id", alg.ById)) if texts[sort]]
            entities = self.entities(parts[0] if len(parts) == 1 else alg.Union(tuple(parts)))
            if len(known) + len(lacking) > _MAX_CACHED:
                known.clear()
            for sort, text in lacking:
                known[sort, text] = [one for one in entities if text == (one.name if sort == "name" else one.id)]
            # Cached entities may just have been cleared.
            return list({one.id: one for one in [*entities, *(one for key in keys for one in known.get(key, ()))]}.values())
        return [one for key in keys for one in known[key]]

    def counts(self) -> dict[str, int]:
        return self.asked(self._counts)

    @property
    def schema(self) -> StoredSchema:
        """The schema of the store, as lowering uses it."""
        return self.asked(self._schema)

    def _schema(self) -> StoredSchema:
        store = self._store()
        if isinstance(store, SnapshotStore):
            schema = store.snapshot.schema
            if "stored" not in schema.kept:
                schema.kept["stored"] = StoredSchema({**describe_schema(store.snapshot), "keyed": sorted(schema.keyed_tables)})
            return cast("StoredSchema", schema.kept["stored"])
        return cast("StoredSchema", cast("QueryStore", store).naming_schema)

    @property
    def reader(self) -> NameReader:
        """The reader of its names."""
        store = self._store()
        if isinstance(store, SnapshotStore):
            return SnapshotNames(store.snapshot)
        return cast("NameReader", cast("Any", store).naming_schema.reader)

    def sources(self) -> tuple[Source, ...]:
        """Return its sources in order."""
        store = self._store()
        if isinstance(store, SnapshotStore):
            return tuple(map(store.snapshot.source_of, range(len(store.snapshot.schema.sources))))
        return self.asked(cast("Any", store).sources)

    def _local(self, plan: Node) -> Node:
        """Translate common ids in a plan to those of the store."""
        if not self.same:
            return plan
        own_ids: dict[str, list[str]] = {}
        for own, common in self.same.items():
            own_ids.setdefault(common, []).append(own)

        def known(part: Node) -> Node:
            if not isinstance(part, alg.ById):
                return part
            ids = [one for ident in part.ids for one in own_ids.get(ident, () if ident in self.same else (ident,))]
            return alg.ById(tuple(ids))

        return rewrite(plan, known)

    def answer(self, plan: Node) -> Answer:
        """Return the store's own answer to a plan, with the store's ids."""
        own = self._local(plan)
        return self.asked(lambda: plan_answer(self._store(), own))

    def entities(self, plan: Node) -> list[Entity]:
        """Return the entities that a plan gives in the store."""
        return [replace(entity, id=self.same.get(entity.id, entity.id)) for entity in self.answer(plan).entities]

    def text(self, plan: Node) -> str:
        """Return the query that the store would run for a plan."""
        plan = self._local(plan)
        lowered = Lowered(plan, [("", plan)])
        return self.asked(lambda: self._store().explain(Request("", "kopl", {}, None, lambda *_: lowered)))

    def piece(self, plan: Node) -> tuple[list[Any], list[Entity]]:
        """Return the evidence of a plan as items (`engine.facts.Item`), and all entities in it."""
        store, plan = self._store(), self._local(plan)
        if isinstance(store, SnapshotStore):
            piece_items: list[Any] = list(_items_of(store.snapshot, units(plan, set())))
            entries = (item.item if isinstance(item, Sourced) else item for item in piece_items)
            entities = [item for item in entries if isinstance(item, Entity)]
        else:
            snapshot = self.asked(lambda: cast("QueryStore", store).witness(plan)).snapshot
            piece_items, entities = list(items(snapshot)), [snapshot.entity(number) for number in range(snapshot.entities)]
        if not self.same:
            return piece_items, entities
        return [common(item, self.same) for item in piece_items], [common(entity, self.same) for entity in entities]

    def gather(self, units: Sequence[Unit]) -> Iterator[Any]:
        """Yield the parts of the store in some units, as items."""
        store = self._store()
        own: list[Unit] = []
        for unit in units:
            concepts = None if unit.concepts is None else cast("alg.Entities", self._local(unit.concepts))
            own.append(replace(unit, compiled=self._local(unit.compiled), concepts=concepts))
        if isinstance(store, SnapshotStore):
            gathered = _items_of(store.snapshot, own)
        else:
            gathered = items(self.asked(lambda: cast("QueryStore", store).gather(own)))
        return (common(item, self.same) for item in gathered)

    def whole(self) -> Iterator[Any]:
        """Yield the whole store as items."""
        store = self._store()
        snapshot = store.snapshot if isinstance(store, SnapshotStore) else self.asked(cast("Any", store).snapshot)
        return (common(item, self.same) for item in items(snapshot))


def common(item: Any, same: Mapping[str, str]) -> Any:
    """Return an item, or a value in one, with the ids of some entities replaced."""
    if isinstance(item, Sourced):
        return replace(item, item=common(item.item, same))
    if isinstance(item, Entity | Ref):
        return replace(item, id=same[item.id]) if item.id in same else item
    if isinstance(item, Statement):
        qualifiers = tuple((key, common(value, same)) for key, value in item.qualifiers)
        return replace(item, subject=same.get(item.subject, item.subject), object=common(item.object, same), qualifiers=qualifiers)
    if isinstance(item, Membership):
        return replace(item, entity=same.get(item.entity, item.entity), concept=same.get(item.concept, item.concept))
    if isinstance(item, Subclass):
        return replace(item, concept=same.get(item.concept, item.concept), parent=same.get(item.parent, item.parent))
    return item


# -- A store in this process -------------------------------------------------------------------------


def built(items: Iterable[Item], about: Mapping[str, Any] | None = None) -> Snapshot:
    """Return items as a graph of their own; `about` is added to its description."""
    builder = Builder()
    builder.begin(Source(""))
    builder.add(items)
    builder.finish()
    snapshot = Snapshot.of(*lay_out(builder))
    snapshot.about.update(about or {})
    return snapshot


def _items_of(snapshot: Snapshot, fetched: Iterable[Unit]) -> Iterator[Any]:
    """Yield the parts of a snapshot in some units."""
    run, facts, entities = Run(snapshot), [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    links: dict[str, list[Any]] = {"mem": [], "sub": []}
    for unit in fetched:
        outcome = run.execute(unit.compiled)
        if isinstance(outcome, FactSet):
            facts.append(outcome.all())
            continue
        entities.append(cast("Any", outcome))
        if unit.concepts is not None:
            _add_links(snapshot, cast("Any", outcome), cast("Any", run.execute(unit.concepts)), links)
    indices = {key: np.unique(np.concatenate(arrays)) if arrays else np.empty(0, np.int64) for key, arrays in links.items()}
    return some_items(
        snapshot, np.unique(np.concatenate(facts)), np.unique(np.concatenate(entities)), indices["mem"], indices["sub"]
    )


def _add_links(snapshot: Snapshot, members: Any, concepts: Any, links: dict[str, list[Any]]) -> None:
    """Add the memberships that put entities under concepts, and the subclasses in between, as indices of their columns."""
    get = snapshot.arrays.get
    under = np.array(below(concepts.tolist(), get("sub.c"), get("sub.p")), np.int64)
    owners = get("mem.c")
    for concept in under.tolist():
        low, high = np.searchsorted(owners, [concept, concept + 1])
        links["mem"].append(np.flatnonzero(np.isin(get("mem.e")[low:high], members)) + low)
    links["sub"].append(np.flatnonzero(np.isin(get("sub.p"), under)))


class SnapshotNames:
    """Names of a snapshot, for `names.linking.NameReader`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @cached_property
    def _linker(self) -> Linker:
        return Linker.of(self._snapshot.schema)

    def _has_source(self, source: str | None) -> bool:
        return source is None or source in self._snapshot.schema.sources

    def kinds(self, predicates: tuple[str, ...] | None, source: str | None) -> Kinds:
        """Count the objects by type and unit."""
        return self._linker.column(predicates, source).kinds if self._has_source(source) else {}

    def refers(self, predicates: tuple[str, ...] | None, source: str | None, table: str) -> bool:
        """Tell whether some object is a row of a table."""
        return self._has_source(source) and self._linker.column(predicates, source).refers_to(table)

    def objects(self, predicates: tuple[str, ...] | None, source: str | None) -> Iterator[tuple[str, Value | str, str | None]]:
        """Yield every distinct object: its predicate, its value (for an entity, the name), and its raw text."""
        if not self._has_source(source):
            return
        run = Run(self._snapshot)
        facts = cast("FactSet", run.execute(alg.Scan(None, predicates, source=source)))
        seen = set()
        for statement, _ in statements(self._snapshot, facts.all()):
            thing: Any = statement.object
            if isinstance(thing, Ref):
                cell: Any = "", self._snapshot.name(self._snapshot.identified(thing.id)), None
            else:
                cell = statement.predicate, thing, statement.raw
            if cell not in seen:
                seen.add(cell)
                yield cell

    def heads(self, predicates: tuple[str, ...]) -> Iterable[str]:
        """Return the names of subjects."""
        return self._linker.heads(predicates).names

    def names(self) -> Iterable[str]:
        """Return the names of all entities and concepts except table rows."""
        return self._linker.entities.names

    def has_name(self, name: str) -> bool:
        """Tell whether an entity or concept has exactly this name."""
        return len(self._snapshot.named(name)) > 0

    def has_text(self, text: str) -> bool:
        """Tell whether an entity has this name or id, or an attribute this text."""
        return self._snapshot.schema.has_text(text)

    def name_of(self, ident: str) -> str | None:
        """Return the name of the entity with this id, or None."""
        number = self._snapshot.identified(ident)
        return None if number < 0 else self._snapshot.name(number)

    def without(self, names: Sequence[str]) -> list[str]:
        """Return those of the names that no entity or concept has."""
        return [name for name in names if not self.has_name(name)]

    names_repeat = False

    def all_names(self, around: Sequence[str]) -> list[str]:
        """Return the names of all entities, concepts and rows; in a large graph, only those near some texts."""
        snapshot = self._snapshot
        if snapshot.entities <= MAX_COMPARED:
            return snapshot.texts.take(np.unique(snapshot.entity_name))
        return [name for text in around for name in snapshot.schema.nearest_entities(text)]


def as_entities(found: Iterable[Any]) -> dict[str, Entity]:
    """Return the entities among values, by id."""
    return {value.id: value for value in found if isinstance(value, Entity)}

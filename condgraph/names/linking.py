"""Linking of names in programs to the entities, cells and predicates of a graph: in a snapshot (`Linker`), and on
servers that look names up themselves (`RemoteLinker`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import built, cached, different, shared
from condgraph.engine.reading.shapes import written_with_comma
from condgraph.engine.schema import Kinds, Schema, beginnings, ids_of_key, offered
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.values import NO_UNIT, Kind, Quantity, Value, fold, text_of
from condgraph.names.vocabulary import THRESHOLD, Resolution, Vocabulary, entity_index, resolve
from condgraph.names.words import Forms

# -- In a snapshot -----------------------------------------------------------------------------------
# A `Linker` belongs to one generation and is cached with it (`Linker.of`). Vocabularies are made on first use.


Numbers: TypeAlias = NDArray[np.int32]
#: The least similarity at which a name among all entities of a graph counts as another spelling. With more names, chance
#: matches are more frequent.
ENTITY_THRESHOLD: Final = 0.6
#: Columns with more statements are looked up by exact text first.
LARGE: Final = 20_000
#: Columns with more statements are not searched for the values of other columns.
MAX_JOINED: Final = 200_000
#: The most columns in the cache; the oldest are removed.
_MAX_CACHED: Final = 4096
#: The most vocabularies of heads in the cache.
_HEADS: Final = 64


class Column:
    """The objects of some predicates, of one source or of all: their types and texts.

    Entities are represented by their names, values by the texts of their cells.
    """

    def __init__(self, snapshot: Snapshot, statements: Numbers) -> None:
        self._snapshot = snapshot
        self._statements = statements
        self._split = snapshot.split(statements)

    def __len__(self) -> int:
        return len(self._statements)

    @cached
    def kinds(self) -> Kinds:
        """The types and units of the objects, with the number of each."""
        result: Kinds = {(Kind.ENTITY, NO_UNIT): self._split} if self._split else {}
        attributes = self._attributes
        if len(attributes):
            get, texts = self._snapshot.arrays.get, self._snapshot.texts
            pairs = get("att.kind").take(attributes).astype(np.int64) << 32 | (
                get("att.unit").take(attributes).astype(np.int64) + 1
            )
            for pair, count in zip(*(part.tolist() for part in np.unique(pairs, return_counts=True)), strict=True):
                unit = (pair & 0xFFFFFFFF) - 1
                result[Kind(pair >> 32), texts[unit] if unit >= 0 else NO_UNIT] = count
        return result

    @built
    def cells(self) -> dict[str, list[Value]]:
        """The values by the text of their cells; entities are represented by their names."""
        snapshot = self._snapshot
        get, texts = snapshot.arrays.get, snapshot.texts
        cells: dict[str, dict[Value, None]] = {}
        if self._split:
            names = different(snapshot.entity_name.take(snapshot.relation_object.take(self._statements[: self._split])))
            for name in texts.take(names):
                cells.setdefault(name, {})[name] = None
        attributes = self._attributes
        raws = get("att.raw").take(attributes).tolist() if len(get("att.raw")) else [-1] * len(attributes)
        for number, raw in zip(attributes.tolist(), raws, strict=True):
            value: Any = snapshot.value("att", number)
            if not isinstance(value, (str, int)) and hasattr(value, "id"):
                value = snapshot.name(snapshot.identified(value.id))
            text = texts[raw] if raw >= 0 else text_of(value)
            cells.setdefault(text, {})[value] = None
        return {text: list(values) for text, values in cells.items()}

    @built
    def folded(self) -> dict[str, list[str]]:
        """The texts of cells by their folded form."""
        result: dict[str, list[str]] = {}
        for text in self.cells:
            result.setdefault(fold(text), []).append(text)
        return result

    @built
    def values(self) -> frozenset[Value]:
        """The distinct values, entities by name; empty for columns too large to compare."""
        return frozenset(value for values in self.cells.values() for value in values) if len(self) <= MAX_JOINED else frozenset()

    def refers_to(self, table: str) -> bool:
        """Return whether some object is a row of a table."""
        places, sources = self._snapshot.arrays.get("ent.source"), self._snapshot.schema.sources
        if not len(places) or not self._split or table not in sources:
            return False
        objects = self._snapshot.relation_object.take(self._statements[: self._split])
        return bool((places.take(objects) == sources.index(table)).any())

    @built
    def european(self) -> bool:
        """Whether numbers have a decimal comma here: some cell shows one, in a column that is not large."""
        if len(self) > LARGE:
            return False
        return any(
            written_with_comma(text, [value for value in values if isinstance(value, Quantity)])
            for text, values in self.cells.items()
            if any(isinstance(value, Quantity) for value in values)
        )

    @built
    def vocabulary(self) -> Vocabulary:
        """The texts of the cells, for look-up by similarity."""
        return Vocabulary(list(self.cells))

    def resolve(self, name: str, *, threshold: float = THRESHOLD) -> Resolution:
        """Look up a name among the texts of the cells."""
        return resolve(name, self.vocabulary, threshold=threshold)

    @property
    def _attributes(self) -> Numbers:
        return self._statements[self._split :] - np.int32(self._snapshot.relations)


class Linker:
    """The names of one generation. Get it from `of`, which caches it with the schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.snapshot = schema.snapshot
        # Graphs are used from any thread; making a value twice is harmless.
        self._lock = Lock()
        self._columns: dict[tuple[tuple[str, ...] | None, str | None], Column] = {}
        self._heads: dict[tuple[str, ...], Vocabulary] = {}
        self._predicates: dict[str | None, dict[str, list[str]]] = {}
        self._vocabularies: dict[str | None, Vocabulary] = {}
        self._forms: dict[str | None, Forms] = {}
        self._sources: dict[str, tuple[str, ...]] = {}

    @classmethod
    def of(cls, schema: Schema) -> Linker:
        """Return the linker of an open generation."""
        result = schema.kept.get("linker")
        if result is None:
            result = schema.kept["linker"] = cls(schema)
        assert isinstance(result, Linker)
        return result

    # -- sources -----------------------------------------------------------------------------------

    @cached
    def tables(self) -> frozenset[str]:
        """The sources that have table rows."""
        numbers = np.unique(self.snapshot.arrays.get("row.key") >> 32).tolist()
        return frozenset(self.schema.sources[number] for number in numbers)

    @cached
    def temporal(self) -> bool:
        """Whether any statement has a validity."""
        return len(self.snapshot.arrays.get("val.stmt")) > 0

    def sources_of(self, predicate: str) -> tuple[str, ...]:
        """Return the sources that have statements of a predicate, in the order of loading."""
        result = self._sources.get(predicate)
        if result is None:
            result = self._sources[predicate] = self.schema.sources_of(predicate)
        return result

    # -- predicates --------------------------------------------------------------------------------

    def predicates(self, source: str | None) -> dict[str, list[str]]:
        """Return the predicates of a source (None: of all) by their folded names."""
        result = self._predicates.get(source)
        if result is None:
            get, snapshot = self.snapshot.arrays.get, self.snapshot
            owners = get("sch.s.pred")
            if source is not None:
                owners = owners[get("sch.s.src") == self.schema.sources.index(source)]
            result = {}
            for number in np.unique(owners).tolist():
                name = snapshot.predicate_name(number)
                result.setdefault(fold(name), []).append(name)
            self._predicates[source] = result
        return result

    def forms(self, source: str | None) -> Forms:
        """Return the predicates of a source (None: of all), indexed by the forms of their names."""
        result = self._forms.get(source)
        if result is None:
            result = self._forms[source] = Forms(name for names in self.predicates(source).values() for name in names)
        return result

    def nearest_predicates(self, name: str, source: str | None, *, threshold: float = THRESHOLD) -> Resolution:
        """Return the predicates of a source (None: of all) with the most similar names."""
        vocabulary = self._vocabularies.get(source)
        if vocabulary is None:
            names = [predicate for spellings in self.predicates(source).values() for predicate in spellings]
            vocabulary = self._vocabularies[source] = Vocabulary(names)
        return resolve(name, vocabulary, threshold=threshold, names=False)

    # -- columns and heads -------------------------------------------------------------------------

    def column(self, predicates: tuple[str, ...] | None, source: str | None) -> Column:
        """Return the objects of predicates (None: of all), in one source or in all."""
        key = predicates, source
        result = self._columns.get(key)
        if result is None:
            result = Column(self.snapshot, self._statements(predicates, source))
            with self._lock:
                while len(self._columns) >= _MAX_CACHED:
                    del self._columns[next(iter(self._columns))]
                self._columns[key] = result
        return result

    def heads(self, predicates: tuple[str, ...] | None) -> Vocabulary:
        """Return the names of the subjects of predicates (None: of all entities)."""
        if predicates is None:
            return self.entities
        if len(self._heads) >= _HEADS and predicates not in self._heads:
            self._heads.clear()

        def make() -> Vocabulary:
            statements = self._statements(predicates, None)
            names = different(self.snapshot.entity_name.take(self.snapshot.subjects(statements)))
            return Vocabulary(self.snapshot.texts.take(names))

        result: Vocabulary = shared(self._heads, predicates, make)
        return result

    @built
    def entities(self) -> Vocabulary:
        """The names of all entities and concepts that are not table rows."""
        return entity_index(self.snapshot)

    def _statements(self, predicates: tuple[str, ...] | None, source: str | None) -> Numbers:
        snapshot = self.snapshot
        base = snapshot.relations
        runs: list[tuple[int, int]] = []
        for number in _numbers(snapshot, predicates):
            low, high = snapshot.relation_offsets[number], snapshot.relation_offsets[number + 1]
            if low < high:
                runs.append((low, high))
        for number in _numbers(snapshot, predicates):
            low, high = snapshot.attribute_offsets[number], snapshot.attribute_offsets[number + 1]
            if low < high:
                runs.append((base + low, base + high))
        if source is None:
            parts = [np.arange(low, high, dtype=np.int32) for low, high in runs]
        else:
            scoped = snapshot.sourced(self.schema.sources.index(source))
            bounds = scoped.searchsorted(np.array(runs, np.int32).ravel()).tolist()
            parts = [scoped[low:high] for low, high in zip(bounds[::2], bounds[1::2], strict=True)]
        return np.concatenate(parts) if parts else np.empty(0, np.int32)


def _numbers(snapshot: Snapshot, predicates: tuple[str, ...] | None) -> Sequence[int]:
    if predicates is None:
        return range(snapshot.predicate_count)
    return sorted({number for name in predicates if (number := snapshot.predicate(name)) >= 0})


# -- On a server -------------------------------------------------------------------------------------
# The same look-ups over vocabularies that are read from the server on first use. They are cached with the schema, so that
# later programs cost one query each. A store implements `NameReader` to read its names.


#: The most names in the cache of look-ups.
_REMEMBERED = 100_000
#: The most tables in which keys are looked up.
_MAX_TABLES = 100


class NameReader(Protocol):
    """How a store reads names. `predicates` None means all, `source` None means any."""

    def kinds(self, predicates: tuple[str, ...] | None, source: str | None) -> Kinds:
        """Return the number of objects of each type and unit."""

    def refers(self, predicates: tuple[str, ...] | None, source: str | None, table: str) -> bool:
        """Return whether some object is a row of a table."""

    def objects(self, predicates: tuple[str, ...] | None, source: str | None) -> Iterable[tuple[str, Value | str, str | None]]:
        """Yield every distinct object: its predicate, its value (an entity by its name), and its raw text if it has
        one.
        """

    def heads(self, predicates: tuple[str, ...]) -> Iterable[str]:
        """Yield the names of subjects."""

    def names(self) -> Iterable[str]:
        """Yield the names of all entities and concepts that are not table rows."""

    def has_name(self, name: str) -> bool:
        """Return whether some entity or concept has exactly this name."""

    def has_text(self, text: str) -> bool:
        """Return whether some entity has this name or id, or some attribute this text."""

    def name_of(self, ident: str) -> str | None:
        """Return the name of the entity with an id; None if there is none."""

    def without(self, names: Sequence[str]) -> Iterable[str]:
        """Return the names that no entity or concept has."""

    #: Whether `all_names` repeats a name of a small graph for each entity that has it.
    names_repeat: bool

    def all_names(self, around: Sequence[str]) -> Iterable[str]:
        """Yield the names of all entities, concepts and rows; in a large graph, those around some texts."""


class LinkingSchema(StoredSchema):
    """A stored schema that also looks up names on its server, for languages whose lowering needs them."""

    def __init__(self, stored: StoredSchema, reader: NameReader) -> None:
        self.__dict__.update(stored.__dict__)
        self.kept = {}
        self.reader = reader
        self._names: dict[tuple[str, str], bool] = {}
        self.kept["linker"] = RemoteLinker(self, reader)

    def _remembered(self, what: str, text: str) -> bool:
        result = self._names.get((what, text))
        if result is None:
            result = self._remember(what, text, bool(getattr(self.reader, what)(text)))
        return result

    def _remember(self, what: str, text: str, found: bool) -> bool:
        if len(self._names) >= _REMEMBERED:
            self._names.clear()
        self._names[what, text] = found
        return found

    def has_entity(self, name: str) -> bool:
        """Return whether some entity or concept has exactly this name."""
        return self._remembered("has_name", name)

    def missing(self, names: Sequence[str]) -> list[str]:
        """Return the names that no entity or concept has, by one look-up."""
        unknown = [name for name in names if not self._names.get(("has_name", name))]
        result = list(self.reader.without(unknown)) if unknown else []
        for name in unknown:
            self._remember("has_name", name, name not in result)
        return result

    def keyed(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return the rows, id and name, with a text as key; nothing if there are too many tables to look in."""
        idents = ids_of_key(key, self.keyed_tables) if len(self.keyed_tables) <= _MAX_TABLES else []
        return tuple((ident, name) for ident in idents if (name := self.reader.name_of(ident)) is not None)

    def forget(self, names: Sequence[str]) -> None:
        """Forget that these names exist: their query reported that they are missing."""
        self.kept.pop("plans", None)
        for name in names:
            self._names.pop(("has_name", name), None)

    def nearest_entities(self, name: str, *, most: int = 5) -> list[str]:
        """Return the entity names most similar to `name`, as `engine.schema.Schema` does."""
        own = self.reader.name_of(name)
        names = dict.fromkeys(self.reader.all_names(beginnings(name)))
        return offered(name, [] if own is None else [own], names, most)

    @property
    def names_repeat(self) -> bool:  # type: ignore[override]
        """Whether `every_name` repeats a name for each entity that has it."""
        return self.reader.names_repeat

    def every_name(self) -> list[str]:
        """Return the names of all entities, concepts and rows at the first look-up; none for a large graph."""
        result: list[str] | None = self.kept.get("every name")
        if result is None:
            result = self.kept["every name"] = list(self.reader.all_names(()))
        return result

    def has_text(self, text: str) -> bool:
        """Return whether something in the graph is exactly this text."""
        return self._remembered("has_text", text)

    def has_id(self, ident: str) -> bool:
        """Return whether some entity has this id."""
        known = self._names.get(("has_id", ident))
        return self._remember("has_id", ident, self.reader.name_of(ident) is not None) if known is None else known


class RemoteColumn(Column):
    """A column whose types and cells are read on first use."""

    def __init__(self, reader: NameReader, predicates: tuple[str, ...] | None, source: str | None) -> None:
        self._reader, self._of = reader, (predicates, source)
        self._refers: dict[str, bool] = {}

    def __len__(self) -> int:
        return sum(self.kinds.values())

    @built
    def kinds(self) -> Kinds:
        """The types and units of the objects, with the number of each."""
        return self._reader.kinds(*self._of)

    def refers_to(self, table: str) -> bool:
        """Return whether some object is a row of a table."""
        result = self._refers.get(table)
        if result is None:
            result = self._refers[table] = (Kind.ENTITY, NO_UNIT) in self.kinds and self._reader.refers(*self._of, table)
        return result

    @built
    def cells(self) -> dict[str, list[Value]]:
        """The values by the text of their cells; entities are represented by their names."""
        entities: dict[str, dict[Value, None]] = {}
        values: list[tuple[tuple[Any, ...], str, Value]] = []
        for predicate, value, raw in self._reader.objects(*self._of):
            if raw is None and predicate == "":
                entities[str(value)] = {value: None}
            else:
                values.append(((predicate, *_order(value)), text_of(value) if raw is None else raw, value))
        # The order of statements in a snapshot: entities by name, values by predicate, type and value.
        cells = {name: entities[name] for name in sorted(entities)}
        values.sort(key=lambda item: item[0])
        for _, text, value in values:
            cells.setdefault(text, {})[value] = None
        return {text: list(values) for text, values in cells.items()}


def _order(value: Any) -> tuple[Any, ...]:
    from condgraph.engine.execute.sets import order_key

    kind = Kind.TEXT if isinstance(value, str) else Kind.UNKNOWN
    if hasattr(value, "number"):
        kind = Kind.QUANTITY
    elif hasattr(value, "precision"):
        kind = Kind.TIME
    unit = getattr(value, "unit", "")
    return (int(kind), "" if unit == NO_UNIT else unit, order_key(value))


class RemoteLinker(Linker):
    """The names of one graph on a server."""

    def __init__(self, schema: LinkingSchema, reader: NameReader) -> None:
        self.schema = schema  # type: ignore[assignment]
        self._stored, self._reader = schema, reader
        self._lock = Lock()
        self._columns = {}
        self._heads = {}
        self._predicates = {}
        self._vocabularies = {}
        self._forms = {}
        self._sources = {}

    @cached
    def tables(self) -> frozenset[str]:
        """The sources that have table rows."""
        return self._stored.tables

    @cached
    def temporal(self) -> bool:
        """Whether any statement has a validity."""
        return self._stored.temporal

    def predicates(self, source: str | None) -> dict[str, list[str]]:
        """Return the predicates of a source (None: of all) by their folded names."""
        result = self._predicates.get(source)
        if result is None:
            result = {}
            for name in self._stored.predicates:
                if source is None or source in self._stored.sources_of(name):
                    result.setdefault(fold(name), []).append(name)
            self._predicates[source] = result
        return result

    def column(self, predicates: tuple[str, ...] | None, source: str | None) -> Column:
        """Return the objects of predicates (None: of all), in one source or in all."""
        result: Column = self._cached(
            self._columns, (predicates, source), lambda: RemoteColumn(self._reader, predicates, source), 4096
        )
        return result

    def heads(self, predicates: tuple[str, ...] | None) -> Vocabulary:
        """Return the names of the subjects of predicates (None: of all entities)."""
        if predicates is None:
            return self.entities
        if len(self._heads) >= _HEADS and predicates not in self._heads:
            self._heads.clear()
        result: Vocabulary = shared(self._heads, predicates, lambda: Vocabulary(sorted(set(self._reader.heads(predicates)))))
        return result

    @built
    def entities(self) -> Vocabulary:
        """The names of all entities and concepts that are not table rows."""
        return Vocabulary(sorted(set(self._reader.names())))

    def _cached(self, among: dict[Any, Any], key: Any, make: Any, most: int) -> Any:
        result = among.get(key)
        if result is None:
            result = make()
            with self._lock:
                while len(among) >= most:
                    del among[next(iter(among))]
                among[key] = result
        return result

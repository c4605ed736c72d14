"""Links names in programs to the entities, cells and predicates of a graph: in a snapshot (`Linker`),
and on servers that look names up themselves (`RemoteLinker`).
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
# A `Linker` belongs to one generation and is stored with it (`Linker.of`). Every vocabulary is made
# when it is first needed.


Numbers: TypeAlias = NDArray[np.int32]
#: The least similarity at which a name among all entities of a graph is taken for another spelling.
#: More names, more accidents.
ENTITY_THRESHOLD: Final = 0.6
#: Columns of more statements are looked up by exact text before anything else.
LARGE: Final = 20_000
#: Columns of more statements are not searched for the values of other columns.
JOINED: Final = 200_000
#: Columns in the cache; the oldest are removed.
_KEPT: Final = 4096
#: Vocabularies of heads in the cache.
_HEADS: Final = 64


class Column:
    """The objects of some predicates, of one source or of all: their types, and their texts.

    The texts of entities are their names, those of values the texts of their cells.
    """

    def __init__(self, snapshot: Snapshot, statements: Numbers) -> None:
        self._snapshot = snapshot
        self._statements = statements
        self._split = snapshot.split(statements)

    def __len__(self) -> int:
        return len(self._statements)

    @cached
    def kinds(self) -> Kinds:
        """The types and units of the objects, with how many there are."""
        result: Kinds = {(Kind.ENTITY, NO_UNIT): self._split} if self._split else {}
        at = self._attributes
        if len(at):
            get, texts = self._snapshot.arrays.get, self._snapshot.texts
            both = get("att.kind").take(at).astype(np.int64) << 32 | (get("att.unit").take(at).astype(np.int64) + 1)
            for pair, count in zip(*(part.tolist() for part in np.unique(both, return_counts=True)), strict=True):
                unit = (pair & 0xFFFFFFFF) - 1
                result[Kind(pair >> 32), texts[unit] if unit >= 0 else NO_UNIT] = count
        return result

    @built
    def cells(self) -> dict[str, list[Value]]:
        """The values by the text of their cells; an entity is its name."""
        snapshot = self._snapshot
        get, texts = snapshot.arrays.get, snapshot.texts
        found: dict[str, dict[Value, None]] = {}
        if self._split:
            names = different(snapshot.entity_name.take(snapshot.relation_object.take(self._statements[: self._split])))
            for name in texts.take(names):
                found.setdefault(name, {})[name] = None
        at = self._attributes
        raws = get("att.raw").take(at).tolist() if len(get("att.raw")) else [-1] * len(at)
        for number, raw in zip(at.tolist(), raws, strict=True):
            value: Any = snapshot.value("att", number)
            if not isinstance(value, (str, int)) and hasattr(value, "id"):
                value = snapshot.name(snapshot.identified(value.id))
            text = texts[raw] if raw >= 0 else text_of(value)
            found.setdefault(text, {})[value] = None
        return {text: list(values) for text, values in found.items()}

    @built
    def folded(self) -> dict[str, list[str]]:
        """Texts of cells by their folded form."""
        result: dict[str, list[str]] = {}
        for text in self.cells:
            result.setdefault(fold(text), []).append(text)
        return result

    @built
    def values(self) -> frozenset[Value]:
        """The values, each once, an entity as its name; empty for a column with more statements
        than are compared.
        """
        return frozenset(item for several in self.cells.values() for item in several) if len(self) <= JOINED else frozenset()

    def refers_to(self, table: str) -> bool:
        """Whether some object is a row of a table."""
        places, sources = self._snapshot.arrays.get("ent.source"), self._snapshot.schema.sources
        if not len(places) or not self._split or table not in sources:
            return False
        objects = self._snapshot.relation_object.take(self._statements[: self._split])
        return bool((places.take(objects) == sources.index(table)).any())

    @built
    def european(self) -> bool:
        """Whether numbers have a decimal comma here: some cell shows it, in a column that is not
        large.
        """
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
        """What a name means among the texts of the cells."""
        return resolve(name, self.vocabulary, threshold=threshold)

    @property
    def _attributes(self) -> Numbers:
        return self._statements[self._split :] - np.int32(self._snapshot.relations)


class Linker:
    """The names of one generation. Use `of`, which caches it with the schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.snapshot = schema.snapshot
        # Graphs are used from any thread; what is made twice is the same.
        self._lock = Lock()
        self._columns: dict[tuple[tuple[str, ...] | None, str | None], Column] = {}
        self._heads: dict[tuple[str, ...], Vocabulary] = {}
        self._predicates: dict[str | None, dict[str, list[str]]] = {}
        self._vocabularies: dict[str | None, Vocabulary] = {}
        self._forms: dict[str | None, Forms] = {}
        self._sources: dict[str, tuple[str, ...]] = {}

    @classmethod
    def of(cls, schema: Schema) -> Linker:
        """The linker of an open generation."""
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
        """The sources that have statements of a predicate, in the order they were loaded."""
        result = self._sources.get(predicate)
        if result is None:
            result = self._sources[predicate] = self.schema.sources_of(predicate)
        return result

    # -- predicates --------------------------------------------------------------------------------

    def predicates(self, source: str | None) -> dict[str, list[str]]:
        """The predicates of a source (None: of all) by their folded names."""
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
        """The predicates of a source (None: of all), by how their names may be written."""
        result = self._forms.get(source)
        if result is None:
            result = self._forms[source] = Forms(item for several in self.predicates(source).values() for item in several)
        return result

    def nearest_predicates(self, name: str, source: str | None, *, threshold: float = THRESHOLD) -> Resolution:
        """The predicates of a source (None: of all) whose names are most similar."""
        vocabulary = self._vocabularies.get(source)
        if vocabulary is None:
            names = [item for several in self.predicates(source).values() for item in several]
            vocabulary = self._vocabularies[source] = Vocabulary(names)
        return resolve(name, vocabulary, threshold=threshold, names=False)

    # -- columns and heads -------------------------------------------------------------------------

    def column(self, predicates: tuple[str, ...] | None, source: str | None) -> Column:
        """The objects of predicates (None: of all), in one source or in all."""
        key = predicates, source
        result = self._columns.get(key)
        if result is None:
            result = Column(self.snapshot, self._statements(predicates, source))
            with self._lock:
                while len(self._columns) >= _KEPT:
                    del self._columns[next(iter(self._columns))]
                self._columns[key] = result
        return result

    def heads(self, predicates: tuple[str, ...] | None) -> Vocabulary:
        """The names of subjects of predicates; of None, of all entities."""
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
        """The names of all entities and concepts that are no table rows."""
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
# The same look-ups over vocabularies that are read from the server when first needed. They stay with
# the schema, so that a program costs look-ups once and then its one query. A store defines by
# `NameReader` how its names are read.


#: Names in the cache of look-ups.
_REMEMBERED = 100_000
#: The most tables in which keys are looked up.
_MOST_TABLES = 100


class NameReader(Protocol):
    """How a store reads names. `predicates` None means all of them, `source` None any."""

    def kinds(self, predicates: tuple[str, ...] | None, source: str | None) -> Kinds:
        """How many objects there are of each type and unit."""

    def refers(self, predicates: tuple[str, ...] | None, source: str | None, table: str) -> bool:
        """Whether some object is a row of a table."""

    def objects(self, predicates: tuple[str, ...] | None, source: str | None) -> Iterable[tuple[str, Value | str, str | None]]:
        """Every distinct object: its predicate, its value (an entity by its name), and its raw text
        if it has one.
        """

    def heads(self, predicates: tuple[str, ...]) -> Iterable[str]:
        """The names of subjects."""

    def names(self) -> Iterable[str]:
        """The names of all entities and concepts that are no table rows."""

    def has_name(self, name: str) -> bool:
        """Some entity or concept has exactly this name."""

    def has_text(self, text: str) -> bool:
        """Some entity has this name or id, or some attribute this text."""

    def name_of(self, ident: str) -> str | None:
        """The name of the entity that has this id; None where none has."""

    def without(self, names: Sequence[str]) -> Iterable[str]:
        """Those of the names that no entity or concept has."""

    #: Whether all names of a small graph are given as often as there are entities of them.
    names_repeat: bool

    def all_names(self, around: Sequence[str]) -> Iterable[str]:
        """The names of all entities, concepts and rows; in a large graph those around some texts."""


class LinkingSchema(StoredSchema):
    """A stored schema that also looks up names on its server, for languages whose lowering needs
    them.
    """

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
        """Some entity or concept has exactly this name."""
        return self._remembered("has_name", name)

    def missing(self, names: Sequence[str]) -> list[str]:
        """The names that no entity or concept has, looked up at once."""
        asked = [name for name in names if not self._names.get(("has_name", name))]
        result = list(self.reader.without(asked)) if asked else []
        for name in asked:
            self._remember("has_name", name, name not in result)
        return result

    def keyed(self, key: str) -> tuple[tuple[str, str], ...]:
        """The rows, id and name, that a text is the key of; not looked for in too many tables."""
        idents = ids_of_key(key, self.keyed_tables) if len(self.keyed_tables) <= _MOST_TABLES else []
        return tuple((ident, name) for ident in idents if (name := self.reader.name_of(ident)) is not None)

    def forget(self, names: Sequence[str]) -> None:
        """Look these names up again: their query reported that they are missing."""
        self.kept.pop("plans", None)
        for name in names:
            self._names.pop(("has_name", name), None)

    def nearest_entities(self, name: str, *, most: int = 5) -> list[str]:
        """Entity names most like `name`, as `engine.schema.Schema` gives them."""
        own = self.reader.name_of(name)
        names = dict.fromkeys(self.reader.all_names(beginnings(name)))
        return offered(name, [] if own is None else [own], names, most)

    @property
    def names_repeat(self) -> bool:  # type: ignore[override]
        """As its reader gives them."""
        return self.reader.names_repeat

    def every_name(self) -> list[str]:
        """The names of all entities, concepts and rows, as of the first look; none of a large graph."""
        result: list[str] | None = self.kept.get("every name")
        if result is None:
            result = self.kept["every name"] = list(self.reader.all_names(()))
        return result

    def has_text(self, text: str) -> bool:
        """Something in the graph is exactly this text."""
        return self._remembered("has_text", text)

    def has_id(self, ident: str) -> bool:
        """Some entity has this id."""
        found = self._names.get(("has_id", ident))
        return self._remember("has_id", ident, self.reader.name_of(ident) is not None) if found is None else found


class RemoteColumn(Column):
    """A column whose types and cells are read when they are needed."""

    def __init__(self, reader: NameReader, predicates: tuple[str, ...] | None, source: str | None) -> None:
        self._reader, self._of = reader, (predicates, source)
        self._refers: dict[str, bool] = {}

    def __len__(self) -> int:
        return sum(self.kinds.values())

    @built
    def kinds(self) -> Kinds:
        """The types and units of the objects, with how many there are."""
        return self._reader.kinds(*self._of)

    def refers_to(self, table: str) -> bool:
        """Whether some object is a row of a table."""
        result = self._refers.get(table)
        if result is None:
            result = self._refers[table] = (Kind.ENTITY, NO_UNIT) in self.kinds and self._reader.refers(*self._of, table)
        return result

    @built
    def cells(self) -> dict[str, list[Value]]:
        """The values by the text of their cells; an entity is its name."""
        entities: dict[str, dict[Value, None]] = {}
        found: list[tuple[tuple[Any, ...], str, Value]] = []
        for predicate, value, raw in self._reader.objects(*self._of):
            if raw is None and predicate == "":
                entities[str(value)] = {value: None}
            else:
                found.append(((predicate, *_order(value)), text_of(value) if raw is None else raw, value))
        # The order of statements in a snapshot: entities by name, values by predicate, type and
        # size.
        cells = {name: entities[name] for name in sorted(entities)}
        found.sort(key=lambda item: item[0])
        for _, text, value in found:
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
        """The predicates of a source (None: of all) by their folded names."""
        result = self._predicates.get(source)
        if result is None:
            result = {}
            for name in self._stored.predicates:
                if source is None or source in self._stored.sources_of(name):
                    result.setdefault(fold(name), []).append(name)
            self._predicates[source] = result
        return result

    def column(self, predicates: tuple[str, ...] | None, source: str | None) -> Column:
        """The objects of predicates (None: of all), in one source or in all."""
        result: Column = self._kept(
            self._columns, (predicates, source), lambda: RemoteColumn(self._reader, predicates, source), 4096
        )
        return result

    def heads(self, predicates: tuple[str, ...] | None) -> Vocabulary:
        """The names of subjects of predicates; of None, of all entities."""
        if predicates is None:
            return self.entities
        if len(self._heads) >= _HEADS and predicates not in self._heads:
            self._heads.clear()
        result: Vocabulary = shared(self._heads, predicates, lambda: Vocabulary(sorted(set(self._reader.heads(predicates)))))
        return result

    @built
    def entities(self) -> Vocabulary:
        """The names of all entities and concepts that are no table rows."""
        return Vocabulary(sorted(set(self._reader.names())))

    def _kept(self, among: dict[Any, Any], key: Any, make: Any, most: int) -> Any:
        result = among.get(key)
        if result is None:
            result = make()
            with self._lock:
                while len(among) >= most:
                    del among[next(iter(among))]
                among[key] = result
        return result

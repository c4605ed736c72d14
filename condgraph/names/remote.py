"""Names of a graph on a server: the same look-ups as `graph_names`, over vocabularies that are read
from the server when first asked for.

What is read stays with the schema, so that a program costs look-ups once and then its one query. A
store says by `NameReader` how its names are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any, Protocol

from condgraph.engine.bounds import cached
from condgraph.engine.schema import Kinds, beginnings, ids_of_key, offered
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.values import NO_UNIT, Kind, Value, text_of
from condgraph.engine.workers import built, shared
from condgraph.names.graph_names import Column, Linker
from condgraph.names.vocabulary import Vocabulary
from condgraph.vectors.encoder import fold

#: Names whose being there or not is remembered.
_REMEMBERED = 100_000
#: Vocabularies of heads that are kept.
_HEADS = 64
#: Of more tables keys are not looked for.
_MOST_TABLES = 100


class NameReader(Protocol):
    """How a store reads names. `predicates` None stands for all of them, `source` None for any."""

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

    def all_names(self, around: Sequence[str]) -> Iterable[str]:
        """The names of all entities, concepts and rows; in a large graph those that stand around
        some texts.
        """


class LinkingSchema(StoredSchema):
    """A kept schema that also knows names, by asking; for languages whose lowering needs to."""

    def __init__(self, stored: StoredSchema, reader: NameReader) -> None:
        self.__dict__.update(stored.__dict__)
        self.kept = {}
        self.reader = reader
        self._names: dict[tuple[str, str], bool] = {}
        self.kept["linker"] = RemoteLinker(self, reader)

    def _remembered(self, what: str, text: str) -> bool:
        found = self._names.get((what, text))
        if found is None:
            found = self._remember(what, text, bool(getattr(self.reader, what)(text)))
        return found

    def _remember(self, what: str, text: str, found: bool) -> bool:
        if len(self._names) >= _REMEMBERED:
            self._names.clear()
        self._names[what, text] = found
        return found

    def has_entity(self, name: str) -> bool:
        """Some entity or concept has exactly this name."""
        return self._remembered("has_name", name)

    def missing(self, names: Sequence[str]) -> list[str]:
        """Those of the names that no entity or concept has, all asked at once."""
        asked = [name for name in names if not self._names.get(("has_name", name))]
        found = list(self.reader.without(asked)) if asked else []
        for name in asked:
            self._remember("has_name", name, name not in found)
        return found

    def keyed(self, key: str) -> tuple[tuple[str, str], ...]:
        """The rows, id and name, that a text is the key of; not looked for in too many tables."""
        idents = ids_of_key(key, self.keyed_tables) if len(self.keyed_tables) <= _MOST_TABLES else []
        return tuple((ident, name) for ident in idents if (name := self.reader.name_of(ident)) is not None)

    def forget(self, names: Sequence[str]) -> None:
        """Look these names up again: their query says that they are not there."""
        self.kept.pop("plans", None)
        for name in names:
            self._names.pop(("has_name", name), None)

    def nearest_entities(self, name: str, *, most: int = 5) -> list[str]:
        """Entity names most like `name`, as `engine.schema.Schema` gives them."""
        own = self.reader.name_of(name)
        names = dict.fromkeys(self.reader.all_names(beginnings(name)))
        return offered(name, [] if own is None else [own], names, most)

    def has_text(self, text: str) -> bool:
        """Something in the graph is exactly this text."""
        return self._remembered("has_text", text)

    def has_id(self, ident: str) -> bool:
        """Some entity has this id."""
        found = self._names.get(("has_id", ident))
        return self._remember("has_id", ident, self.reader.name_of(ident) is not None) if found is None else found


class RemoteColumn(Column):
    """A column whose types and cells are read when they are asked for."""

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
        found = self._refers.get(table)
        if found is None:
            found = self._refers[table] = (Kind.ENTITY, NO_UNIT) in self.kinds and self._reader.refers(*self._of, table)
        return found

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
        found.sort(key=lambda one: one[0])
        for _, text, value in found:
            cells.setdefault(text, {})[value] = None
        return {text: list(values) for text, values in cells.items()}


def _order(value: Any) -> tuple[Any, ...]:
    from condgraph.engine.execute.bags import order_key

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
        found = self._predicates.get(source)
        if found is None:
            found = {}
            for name in self._stored.predicates:
                if source is None or source in self._stored.sources_of(name):
                    found.setdefault(fold(name), []).append(name)
            self._predicates[source] = found
        return found

    def column(self, predicates: tuple[str, ...] | None, source: str | None) -> Column:
        """The objects of predicates (None: of all), in one source or in all."""
        found: Column = self._kept(
            self._columns, (predicates, source), lambda: RemoteColumn(self._reader, predicates, source), 4096
        )
        return found

    def heads(self, predicates: tuple[str, ...] | None) -> Vocabulary:
        """The names of subjects of predicates; of None, of all entities."""
        if predicates is None:
            return self.entities
        if len(self._heads) >= _HEADS and predicates not in self._heads:
            self._heads.clear()
        found: Vocabulary = shared(self._heads, predicates, lambda: Vocabulary(sorted(set(self._reader.heads(predicates)))))
        return found

    @built
    def entities(self) -> Vocabulary:
        """The names of all entities and concepts that are no table rows."""
        return Vocabulary(sorted(set(self._reader.names())))

    def _kept(self, among: dict[Any, Any], key: Any, make: Any, most: int) -> Any:
        found = among.get(key)
        if found is None:
            found = make()
            with self._lock:
                while len(among) >= most:
                    del among[next(iter(among))]
                among[key] = found
        return found

"""Joins between tables that are loaded one by one: a column of references and the key of a table are one predicate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from condgraph.engine.errors import OptionError
from condgraph.engine.facts import EntityKind
from condgraph.engine.snapshot.sources import Rest, without_sources
from condgraph.engine.values import collapse, text_of
from condgraph.loaders.folder.spelling import key_names, plain

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


#: Rows of a table that are looked at to find which column is its key: from the first to the last.
_LOOKED_AT: Final = 50
#: Of more tables it is not looked for keys that columns of another one have.
_MOST_TABLES: Final = 100


def called_alike(column: str, key: str, table: str) -> bool:
    """Whether a column is called like the key of a table, or like that table."""
    mine, stem = plain(column), table.rpartition("/")[2]
    return mine != "id" and bool(mine) and (mine == plain(key) or mine in key_names(stem))


class To(NamedTuple):
    """What `join=` says that a column refers to: a source, and the column that is its key (nothing
    where it is not said).
    """

    table: str
    key: str


def join_option(join: Any) -> dict[str, To]:
    """`join=` of one table, checked, by column. Raises `OptionError`."""
    if join is None or join is False:
        return {}
    if not isinstance(join, Mapping) or not all(isinstance(one, str) and isinstance(to, str) and to for one, to in join.items()):
        raise OptionError(
            "join= is a mapping of columns to tables, as {'country': 'countries.country'} or {'country': 'countries'}"
        )
    found = {}
    for column, target in join.items():
        table, _, key = target.rpartition(".")
        found[collapse(column)] = To(table, collapse(key)) if table else To(target, "")
    return found


class Meeting:
    """What a graph has that columns of the table `own` may refer to: rows, and what was referred
    to; without what the sources `gone` say.
    """

    def __init__(self, known: Callable[[], Snapshot | None] | None, own: str = "", gone: Collection[str] = ()) -> None:
        self._known, self.own, self._gone = known, own, gone
        self._called: dict[tuple[str, str], frozenset[str]] = {}

    def of(self, own: str) -> Meeting:
        """The same for another table, in the same graph."""
        found = Meeting(self._known, own, self._gone)
        found.__dict__.update(snapshot=self.snapshot, _rest=self._rest, _tables=self._tables)
        return found

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The graph as it is; None where it is empty, or cannot be asked."""
        return None if self._known is None else self._known()

    @cached_property
    def _rest(self) -> Rest | None:
        """What is left of the graph; None where that is all of it."""
        snapshot = self.snapshot
        if snapshot is None or not self._gone:
            return None
        numbers = range(len(snapshot.arrays.get("src.name")))
        gone = [number for number in numbers if snapshot.source_of(number).name in self._gone]
        return without_sources(snapshot, gone) if gone else None

    @cached_property
    def _tables(self) -> list[tuple[str, Any]]:
        """The tables of the graph: the source, and the numbers of its rows."""
        snapshot = self.snapshot
        if snapshot is None:
            return []
        owner = snapshot.arrays.get("ent.source")
        if not len(owner):
            return []
        rows = np.flatnonzero((owner >= 0) & (snapshot.entity_kind == EntityKind.ROW))
        of = owner[rows]
        return [(snapshot.source_of(source).name, rows[of == source]) for source in np.unique(of).tolist()]

    @cached_property
    def _sources(self) -> list[tuple[str, Any, frozenset[str] | None]]:
        """The tables that are left: source, numbers of their rows, names of the columns that may be
        the key; None where the rows have no key.
        """
        snapshot = self.snapshot
        if snapshot is None:
            return []
        return [(name, rows, self._key_columns(snapshot, rows, name)) for name, rows in self._tables if name not in self._gone]

    def _key_columns(self, snapshot: Snapshot, rows: Any, source: str) -> frozenset[str] | None:
        columns: set[str] | None = None
        raws = snapshot.arrays.get("att.raw")
        keyed = False
        for number in rows[np.unique(np.linspace(0, len(rows) - 1, _LOOKED_AT).astype(np.int64))].tolist():
            entity = snapshot.entity(number)
            if entity.name == f"{source} row {entity.row}":
                return None
            if entity.id.startswith(f"{source}+"):
                # A row without a key that was added.
                continue
            key = _key_of(entity.id, source)
            keyed = keyed or key != str(entity.row)
            here = set()
            for statement in snapshot.outgoing(number, snapshot.relations, snapshot.statements).tolist():
                at = statement - snapshot.relations
                raw = int(raws[at]) if len(raws) else -1
                text = text_of(snapshot.value("att", at)) if raw < 0 else snapshot.texts[raw]  # type: ignore[arg-type]
                if collapse(text) == key:
                    here.add(snapshot.predicate_name(snapshot.predicate_of(statement)))
            columns = here if columns is None else columns & here
        return frozenset(columns) if columns else frozenset() if keyed else None

    def tables(self, column: str) -> list[str]:
        """The tables that a column is called like, but for its own."""
        return [
            name
            for name, _, keys in self._sources
            if name != self.own and any(called_alike(column, key, name) for key in keys or ())
        ]

    def keyed(self) -> list[tuple[str, frozenset[str]]]:
        """The tables whose rows have keys, but for its own, with the names of the columns that may be
        these; none of too many tables.
        """
        if len(self._tables) > _MOST_TABLES:
            return []
        return [(name, keys) for name, _, keys in self._sources if keys is not None and name != self.own]

    def inside(self, table: str, cells: Collection[str], least: float) -> int:
        """How many cells are keys of rows of a table; 0 where more than a part of them are none, which
        ends the search.
        """
        snapshot, prefix, found = self.snapshot, self.ident(table, ""), 0
        assert snapshot is not None
        for at, cell in enumerate(cells):
            number = snapshot.identified(prefix + cell)
            if number < 0 and not cell.startswith(prefix):
                # A row has the id by which it was referred to before.
                number = snapshot.identified(cell)
            found += number >= 0 and snapshot.entity_kind[number] == EntityKind.ROW and self._row_of(snapshot, number) == table
            if at + 1 - found > (1 - least) * len(cells):
                return 0
        return found

    def _row_of(self, snapshot: Snapshot, number: int) -> str:
        owner = int(snapshot.arrays.get("ent.source")[number])
        return snapshot.source_of(owner).name if owner >= 0 else ""

    def called(self, table: str) -> str:
        """The source that `join=` names: the one of that name, or the one table of a folder."""
        keyed = [name for name, _, keys in self._sources if keys is not None]
        found = [name for name in keyed if name.rpartition("/")[2] == table]
        return found[0] if len(found) == 1 and all(name != table for name, _, _ in self._sources) else table

    def rows(self, table: str) -> dict[str, str]:
        """The ids of the rows of a table by their keys; none where it is not there, or its rows have
        no key.
        """
        for name, numbers, keys in self._sources:
            if name == table and keys is not None:
                return self._by_key(name, numbers)
        return {}

    def check(self, table: str, key: str, column: str) -> None:
        """Raise `OptionError` where a table is there, and its rows have no key or another one than
        `key` (nothing: any).
        """
        for name, _, keys in self._sources:
            if name != table:
                continue
            if keys is None:
                raise OptionError(
                    f"join= says that {column!r} refers to rows of {table!r}, which was loaded without a key",
                    hint="load that with key= (replace=True puts it in the place of what is there)",
                )
            if key and keys and key not in keys:
                raise OptionError(
                    f"join= says that {column!r} refers to {key!r} of {table!r}, whose key is {min(keys)!r}",
                    hint=f"join= with {table!r} alone refers to its key; key= of that says another one",
                )

    def _by_key(self, source: str, numbers: Any) -> dict[str, str]:
        assert self.snapshot is not None
        return {_key_of(ident, source): ident for ident in self.snapshot.texts.take(self.snapshot.entity_id[numbers])}

    @cached_property
    def former(self) -> Mapping[str, str]:
        """The ids that rows of this table have already, by their keys: of all of them where it is
        added to, of those that others mention where it is replaced.
        """
        rest = self._rest
        for name, numbers in self._tables:
            if name == self.own:
                left = numbers if rest is None or name not in self._gone else numbers[rest.entities[numbers]]
                return self._by_key(name, left)
        return {}

    def holds(self, ident: str) -> bool:
        """Whether an entity is there."""
        snapshot, rest = self.snapshot, self._rest
        number = -1 if snapshot is None else snapshot.identified(ident)
        return number >= 0 and (rest is None or bool(rest.entities[number]))

    def wanted(self) -> list[str]:
        """The keys of rows of this table that other sources mention, and that no row has yet."""
        snapshot, rest = self.snapshot, self._rest
        if snapshot is None:
            return []
        prefix = f"{self.own}/"
        kinds, owner = snapshot.entity_kind, snapshot.arrays.get("ent.source")
        found = list(self.former) if self.own in self._gone else []
        # Texts that begin alike stand together.
        low, high = snapshot.texts.rank(prefix), snapshot.texts.rank(prefix[:-1] + "0")
        named = (snapshot.entity_id >= low) & (snapshot.entity_id < high) & (kinds == EntityKind.ENTITY)
        if len(owner):
            named &= owner < 0
        if rest is not None:
            named &= rest.entities
        found += [ident[len(prefix) :] for ident in snapshot.texts.take(snapshot.entity_id[named])]
        return found

    def place(self, table: str, key: str, cell: str) -> str:
        """The id of the row of a table that is not there yet: what columns that are called like its
        key refer to already, or what the table calls it.
        """
        ident = self.ident(table, cell)
        return cell if cell in self.referred(key, table) and not self.holds(ident) else ident

    def ident(self, table: str, cell: str) -> str:
        """The id that a table gives the row of a key: those of a folder go without its name."""
        for name, numbers, _ in self._sources:
            stem = name.rpartition("/")[2]
            if name == table and stem != name and self.snapshot is not None:
                first = self.snapshot.entity(int(numbers[0])).id
                return f"{stem}/{cell}" if first.startswith(f"{stem}/") and not first.startswith(f"{name}/") else f"{name}/{cell}"
        return f"{table}/{cell}"

    def referred(self, key: str, table: str) -> frozenset[str]:
        """The ids of entities that are called alike and that columns of other tables refer to, but
        for rows of other tables: what rows of this table may be.
        """
        found = self._called.get((key, table))
        if found is None:
            found = self._called[key, table] = self._referred(key, table)
        return found

    def _referred(self, key: str, table: str) -> frozenset[str]:
        snapshot, rest = self.snapshot, self._rest
        if snapshot is None:
            return frozenset()
        names = [snapshot.predicate_name(number) for number in range(snapshot.predicate_count)]
        alike = tuple(name for name in names if called_alike(name, key, table))
        if not alike:
            return frozenset()
        sources = [snapshot.source_of(number).name for number in range(len(snapshot.arrays.get("src.name")))]
        # A table does not refer to its own rows by a name.
        own = sources.index(table) if table in sources else -1
        numbers: set[int] = set()
        if rest is None:
            for low, high in snapshot.runs(alike, True, False):
                others = snapshot.source[low:high] != own
                numbers |= set(np.unique(snapshot.relation_object[low:high][others]).tolist())
                places = snapshot.arrays.get("prov.stmt")
                first, last = np.searchsorted(places, [low, high])
                also = places[first:last][snapshot.arrays.get("prov.src")[first:last] != own]
                numbers |= set(np.unique(snapshot.relation_object[also]).tolist())
        elif len(rest.relations["p"]):
            texts, entities = np.flatnonzero(rest.texts), np.flatnonzero(rest.entities)
            predicates = [text for text in np.unique(rest.relations["p"]).tolist() if snapshot.texts[int(texts[text])] in alike]
            some = np.isin(rest.relations["p"], predicates) & (rest.relations["src"] != own)
            further = rest.places[0][rest.places[1] != own]
            some |= np.isin(rest.relations["p"], predicates) & np.isin(rest.relations["sid"], further)
            numbers = set(entities[np.unique(rest.relations["o"][some])].tolist())
        owner = snapshot.arrays.get("ent.source")
        kinds = snapshot.entity_kind
        return frozenset(
            snapshot.ident(number)
            for number in numbers
            if kinds[number] == EntityKind.ENTITY
            or (kinds[number] == EntityKind.ROW and len(owner) and self._free(sources[int(owner[number])], table))
        )

    def _free(self, owner: str, table: str) -> bool:
        """Whether a row of one table may be a row of another: it is the same, or not there."""
        return owner == table or owner in self._gone


def _key_of(ident: str, source: str) -> str:
    """The key of a row, from its id."""
    for prefix in (f"{source}/", f"{source.rpartition('/')[2]}/"):
        if ident.startswith(prefix):
            return ident[len(prefix) :]
    return ident

"""Names for the ids in graph files: name tables, unique names of predicates, and prefixes of ids."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from condgraph.engine.errors import OptionError
from condgraph.engine.facts import Entity, EntityKind
from condgraph.loaders.base import Options, Reading, option_text
from condgraph.loaders.files import blocks

#: The options of this module.
NAME_OPTIONS: Final[Mapping[str, str]] = {
    "names": "file of id<TAB>name lines (or a mapping) that names the entities",
    "relation_names": "file of id<TAB>name lines (or a mapping) that names the relations",
    "id_prefix": "text put before every entity id, so that sources with ids of their own kind (numbers) do not collide",
}


class Table:
    """Names by id, from a mapping or a file of two columns.

    A file has id and name, or name and id: the first ids that are looked up decide, and the second case
    gives a warning.
    """

    def __init__(self, names: Mapping[str, str], swapped: Mapping[str, str], file: str) -> None:
        self._names = names
        self._swapped = swapped
        self._file = file
        self._decided = not swapped

    def settle(self, ids: Iterable[str], reading: Reading) -> None:
        """Decide from ids of the data which column holds the ids; later calls do nothing."""
        if self._decided:
            return
        known = list(ids)
        in_first = sum(item in self._names for item in known)
        in_second = sum(item in self._swapped for item in known)
        if in_first == in_second:
            return
        self._decided = True
        if in_second > in_first:
            self._names = self._swapped
            reading.warn(
                f"the second column holds the ids, so the file is read as name, id ({in_second} ids found there)", file=self._file
            )
        self._swapped = {}

    def get(self, ident: str) -> str | None:
        return self._names.get(ident)

    @property
    def file(self) -> str:
        """The file of the names; empty for a mapping."""
        return self._file


def read_table(source: Any, reading: Reading, option: str) -> Table:
    """Return names from a mapping, or from a file of two columns, separated by a tab, comma or `|`.

    A name may contain the separator again. An id with two different names keeps the first, with a warning.
    A line without the separator is `bad`; a number alone in the first line is a count, and skipped.
    """
    if isinstance(source, Mapping):
        table = {str(ident): str(name) for ident, name in source.items()}
        return Table(table, {}, "")
    if not isinstance(source, (str, os.PathLike)):
        raise OptionError(f"{option}= is a file or a mapping of ids to names, not {type(source).__name__}")
    path = Path(source)
    names: dict[str, str] = {}
    swapped: dict[str, str] = {}
    counts: list[int] = []
    quiet = Reading(reading.source, reading.on_error, problems=reading.problems)
    mark: str | None = None
    for first, lines in blocks(path, quiet):
        if mark is None:
            mark = next((item for item in "\t,|" if sum(item in line for line in lines[:100]) * 2 > len(lines[:100])), "\t")
        for at, line in enumerate(lines, first):
            if not line.strip():
                continue
            ident, separator, name = _two(line, mark)
            if not separator:
                if at == 1 and line.strip().isdecimal():
                    counts.append(int(line))
                    continue
                reading.bad(f"a line of names has two fields with {mark!r} between them, this one has one", row=at, file=str(path))
                continue
            first_name = names.setdefault(ident, name)
            if first_name != name:
                reading.warn(
                    f"{ident!r} is named {first_name!r} before and {name!r} here; the first is kept", row=at, file=str(path)
                )
            swapped.setdefault(name, ident)
    reading.skipped += quiet.skipped
    if counts and counts[0] != len(names):
        reading.warn(f"the first line announces {counts[0]} names, and there are {len(names)}", row=1, file=str(path))
    return Table(names, swapped, str(path))


def _two(line: str, mark: str) -> tuple[str, str, str]:
    if mark == "," and '"' in line:
        fields = next(csv.reader([line]), [])
        if len(fields) >= 2:
            return fields[0].strip(), mark, " ".join(",".join(fields[1:]).split())
    first, separator, name = line.partition(mark)
    return first.strip(), separator, " ".join(name.split())


class EntityNames:
    """Declares the entities of a graph file as they appear: with names from a table, and prefixed ids.

    Without a table and a prefix nothing needs to be declared, and nothing is stored.
    """

    def __init__(self, options: Options, reading: Reading) -> None:
        names = options.get("names")
        self._table = None if names is None else read_table(names, reading, "names")
        self.prefix = option_text(options, "id_prefix")
        self._reading = reading
        self._seen: set[str] = set()
        self._concepts: set[str] = set()
        self._nameless = 0
        self._first_nameless = ""

    def declare(self, *columns: Sequence[str]) -> Iterator[Entity]:
        """Yield the entities of these columns of ids (without prefix) that have a name or prefix, each once."""
        if self._table is None and not self.prefix:
            return
        seen, table, prefix = self._seen, self._table, self.prefix
        fresh = dict.fromkeys(item for column in columns for item in column if item not in seen)
        if table is not None:
            table.settle(fresh, self._reading)
        for item in fresh:
            seen.add(item)
            name = None if table is None else table.get(item)
            if name is None and table is not None:
                self._first_nameless = self._first_nameless or item
                self._nameless += 1
            if name is not None or prefix:
                yield Entity(prefix + item, item if name is None else name)

    def concept(self, ident: str) -> Iterator[Entity]:
        """Yield the entity of an id (without prefix) as a concept, the first time."""
        if ident in self._concepts:
            return
        self._concepts.add(ident)
        name = None if self._table is None else self._table.get(ident)
        yield Entity(self.prefix + ident, ident if name is None else name, EntityKind.CONCEPT)

    def finish(self) -> None:
        """Warn of entities without a name in the table."""
        if self._nameless and self._table is not None:
            self._reading.warn(
                f"{self._nameless} entities have no name there and are named by their ids, the first is {self._first_nameless!r}",
                file=self._table.file or None,
            )


class PredicateNames:
    """One name for each predicate, from a table or the data; ids with the same name are distinguished.

    The first id keeps the name, others get `name (id)` (or just the id with `whole=True`), with a warning.
    """

    def __init__(self, reading: Reading, table: Table | None = None, *, whole: bool = False) -> None:
        self._reading = reading
        self._table = table
        self._whole = whole
        self._by_id: dict[str, str] = {}
        self._by_name: dict[str, str] = {}

    def __contains__(self, ident: str) -> bool:
        return ident in self._by_id

    def keep(self, ident: str, name: str) -> None:
        """Record the existing name of a predicate."""
        self._by_id[ident] = name
        self._by_name[name] = ident

    def name(self, ident: str, label: str | None = None, *, row: int | None = None) -> str:
        """Return the name of a predicate's id; `label` is its name in the data, used at the first occurrence."""
        known = self._by_id.get(ident)
        if known is not None:
            return known
        if self._table is not None:
            label = self._table.get(ident) or label
        name = label or ident
        owner = self._by_name.setdefault(name, ident)
        if owner != ident:
            unique = ident if self._whole else f"{name} ({ident})"
            self._reading.warn(
                f"the predicates {owner!r} and {ident!r} are both called {name!r}; the second is {unique!r} here", row=row
            )
            name = unique
            self._by_name.setdefault(name, ident)
        self._by_id[ident] = name
        return name

    def settle(self, ids: Iterable[str]) -> None:
        """Decide how the table is read from ids of the data."""
        if self._table is not None:
            self._table.settle(ids, self._reading)

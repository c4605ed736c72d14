"""GTFS: the timetables of public transport, a folder of tables with the extension `.txt` whose names
and keys the specification says.

Its keys are what is declared of the folder. A service that only `calendar_dates` has, and what
several rows have in common (the shape of a trip, a fare zone), is a row of a table of its own:
`service`, `shape`, `zone`. Ids, names and codes are texts; dates are days.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from condgraph.loaders.base import Reading
from condgraph.loaders.files import read_head, stem_of, suffix_of
from condgraph.loaders.folder.declared import Declared, Headers, Join
from condgraph.loaders.table.dialect import sample_rows
from condgraph.loaders.table.text import Chunk, TextTable

#: Tables and the columns that identify their rows.
KEYS: Final[Mapping[str, str]] = {
    "agency": "agency_id",
    "stops": "stop_id",
    "routes": "route_id",
    "trips": "trip_id",
    "calendar": "service_id",
    "fare_attributes": "fare_id",
    "levels": "level_id",
    "pathways": "pathway_id",
    "areas": "area_id",
    "networks": "network_id",
    "attributions": "attribution_id",
    "booking_rules": "booking_rule_id",
    "location_groups": "location_group_id",
    "fare_media": "fare_media_id",
    "rider_categories": "rider_category_id",
}
#: Tables that the specification names and whose rows have no key of one column.
_OTHERS: Final = frozenset(
    (
        *("stop_times", "calendar_dates", "shapes", "frequencies", "transfers", "translations", "feed_info", "timeframes"),
        *("fare_rules", "fare_products", "fare_leg_rules", "fare_leg_join_rules", "fare_transfer_rules"),
        *("stop_areas", "route_networks", "location_group_stops"),
    )
)
#: Tables of which a feed has some, and a column that each of them has.
_CORE: Final[Mapping[str, str]] = {"stops": "stop_id", "routes": "route_id", "trips": "trip_id", "stop_times": "trip_id"}
#: What several rows have in common, by column, and is a table of its own.
_GROUPS: Final[Mapping[str, str]] = {"service_id": "service", "shape_id": "shape", "zone_id": "zone"}
_GROUP_ALIASES: Final = {
    **{column: column for column in _GROUPS},
    **dict.fromkeys(("origin_id", "destination_id", "contains_id"), "zone_id"),
}
#: Columns that refer to a key, beside those that are called like it.
_REFERENCES: Final[Mapping[str, str]] = {
    "parent_station": "stop_id",
    "from_stop_id": "stop_id",
    "to_stop_id": "stop_id",
    "from_trip_id": "trip_id",
    "to_trip_id": "trip_id",
    "from_route_id": "route_id",
    "to_route_id": "route_id",
    "from_area_id": "area_id",
    "to_area_id": "area_id",
    "pickup_booking_rule_id": "booking_rule_id",
    "drop_off_booking_rule_id": "booking_rule_id",
}
_DATES: Final = frozenset(("date", "start_date", "end_date", "feed_start_date", "feed_end_date"))
_TEXTS: Final = ("_id", "_name", "_code", "_desc", "_headsign", "_color", "_phone", "parent_station")


def files_of(folder: Path) -> dict[str, Path]:
    """The tables of a feed by name; none where the folder is no feed."""
    named: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        stem = stem_of(path).casefold()
        if suffix_of(path) in (".txt", ".csv") and path.is_file() and (stem in KEYS or stem in _OTHERS):
            named.setdefault(stem, path)
    core = [table for table, column in _CORE.items() if table in named and column in _header(named[table])]
    return named if len(core) > 1 else {}


def _header(path: Path) -> list[str]:
    rows = sample_rows(read_head(path), ",;\t|")[1]
    return [cell.strip() for cell in rows[0]] if rows else []


@dataclass(slots=True)
class GroupCells:
    """The different cells of a column of several tables, without those that are keys already; the
    column is the only header.
    """

    headers: list[str]
    tables: list[tuple[TextTable, int]]
    keys: list[tuple[TextTable, int]]

    def chunks(self, report: Reading | None, names: Sequence[str]) -> Iterator[tuple[Chunk, float]]:
        """The rows, all at once."""
        found: dict[str, None] = {}
        for table, at in self.tables:
            for chunk, _ in table.chunks(None, table.headers):
                found.update(dict.fromkeys(cell.strip() for cell in set(chunk.columns[at])))
        known = {
            cell.strip() for table, at in self.keys for chunk, _ in table.chunks(None, table.headers) for cell in chunk.columns[at]
        }
        cells = [cell for cell in found if cell and cell not in known]
        if cells:
            yield Chunk(range(1, len(cells) + 1), [cells]), 1.0


def groups_of(files: Mapping[str, Path], opens: Callable[[Path], TextTable]) -> dict[str, GroupCells]:
    """The tables of what rows have in common."""
    places: dict[str, list[tuple[str, int]]] = {}
    for name, path in files.items():
        for at, header in enumerate(_header(path)):
            if header in _GROUP_ALIASES:
                places.setdefault(_GROUP_ALIASES[header], []).append((name, at))
    found = {}
    for column, tables in places.items():
        group, keyed = _GROUPS[column], [(name, at) for name, at in tables if KEYS.get(name) == column]
        others = [(name, at) for name, at in tables if (name, at) not in keyed]
        # A column of one table alone joins nothing.
        if group in files or len(others) < (2 if not keyed else 1):
            continue
        cells = GroupCells(
            [column], [(opens(files[name]), at) for name, at in others], [(opens(files[name]), at) for name, at in keyed]
        )
        if next(cells.chunks(None, cells.headers), None) is not None:
            found[group] = cells
    return found


def declared(headers: Headers) -> Declared:
    """The keys, references and types of the tables of a feed."""
    said = Declared(guess_joins=False, of_source=frozenset(headers))
    said.keys = {table: (column,) for table, column in KEYS.items() if column in headers.get(table, ())}
    said.keys |= {group: (column,) for column, group in _GROUPS.items() if group in headers}
    targets: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for table, (column,) in said.keys.items():
        targets.setdefault(column, []).append((table, (column,)))
    for table, names in headers.items():
        for name in names:
            column = _REFERENCES.get(name, _GROUP_ALIASES.get(name, name))
            reached = targets.get(column, [])
            if reached and said.keys.get(table) != (name,):
                said.joins.append(Join(table, (name,), tuple(reached), of_source=True))
            kind = "time" if name in _DATES else "text" if name.endswith(_TEXTS) else None
            if kind is not None:
                said.types.setdefault(table, {})[name] = kind
    return said

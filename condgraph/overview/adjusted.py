"""Adjust the stored summary of a graph on a server to a single change.

A change affects a few statements. The counts of a part of the graph that contains everything affected differ before
and after the change as those of the whole graph do, so that the differences are added to the summary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from condgraph.engine.schema import Shown
from condgraph.engine.values import NO_UNIT, Number, parse_number
from condgraph.overview.survey import EXAMPLES, Ends, Survey, described, survey

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Returns whether some entity has several values of an attribute, or, with True, some statement of a qualifier.
Several: TypeAlias = Callable[[str, bool], bool]
#: The key of a kind in a survey: sort, name, id.
KindKey: TypeAlias = tuple[str, str, str]
#: The prefix of the name of a content that resulted from a change.
CHANGED: Final = "change-"
#: The name of the count of long texts. They may also be used elsewhere in the graph, so that it cannot be adjusted.
_TEXTS: Final = "long"
#: The entry of a key without numbers and texts.
_UNREAD: Final = ([False, []], [False, []])
#: The largest number of statements that decide how the values of a key are read (`engine.schema.ShownKey`). Each change may add
#: one; beyond this number they are determined anew from the whole graph.
_MAX_SHOWN: Final = 50
#: The parts of a stored schema that are needed here; an earlier release lacks some.
_REQUIRED: Final = frozenset(
    ("relations", "attributes", "qualifiers", "sources", "on", "predicates", "temporal", "raw", "several", "shown", "sizes",
     "degrees", "hubs", "classes", "ends", "rows")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GraphSummary:
    """The stored summary of a graph's content: the name of the content, counts, the stored schema and the survey."""

    content: str
    counts: dict[str, int]
    schema: dict[str, Any]
    survey: Survey

    @property
    def adjustable(self) -> bool:
        """Whether the summary has all parts that `after` adjusts."""
        return "note" not in self.survey and self.schema.keys() >= _REQUIRED and "inexact" in self.counts

    def statements(self, predicate: str) -> tuple[int, int]:
        """Return the numbers of relations and attributes of a predicate."""
        for name, relations, attributes, *_ in self.survey["predicates"]:
            if name == predicate:
                return relations, attributes
        return 0, 0

    def qualifiers(self, key: str) -> int:
        """Return the number of qualifiers with a key."""
        return sum(count for *_, count in self.schema["qualifiers"].get(key, ()))

    def after(
        self, record: bytes, before: Snapshot, after: Snapshot, counted: Callable[[Snapshot], dict[str, int]], several: Several
    ) -> GraphSummary | None:
        """Return the summary after a change with a stored `record`.

        `before` and `after` are the affected part of the graph before and after the change; `counted` returns the
        counts in the summary of a snapshot. Returns None if the part does not determine the summary.
        """
        counts_before, counts_after = counted(before), counted(after)
        totals = {name: self.counts.get(name, 0) + count - counts_before[name] for name, count in counts_after.items()}
        if counts_before.get(_TEXTS) != counts_after.get(_TEXTS) or bool(totals["inexact"]) != bool(self.counts["inexact"]):
            return None
        changes = _Changes(self, before, after)
        if changes.hides:
            return None
        new_survey = changes.survey(totals)
        content = CHANGED + blake2b(self.content.encode() + b" " + record, digest_size=12).hexdigest()
        return GraphSummary(content, totals, changes.schema(new_survey, totals, several), new_survey)


class _Changes:
    """The differences of a part of a graph before and after a change."""

    def __init__(self, stated: GraphSummary, before: Snapshot, after: Snapshot) -> None:
        self._stated, self._changed = stated, after
        self._surveys = survey(before), survey(after)
        self._schemas = described(before), described(after)

    # -- the survey --------------------------------------------------------------------------------

    def survey(self, totals: dict[str, int]) -> Survey:
        """Return the survey of the graph after the change."""
        old, (before, after) = self._stated.survey, self._surveys
        kinds, numbers = self._changed_kinds()
        predicates = {row[0]: row for row in old["predicates"]}
        ends = {side: dict(_by_predicate(old, side)) for side in ("subjects", "objects")}
        parts = [({row[0]: row for row in part_survey["predicates"]}, part_survey) for part_survey in (before, after)]
        for name in parts[0][0].keys() | parts[1][0].keys():
            rows = [rows.get(name, [name, 0, 0, [], [], [], []]) for rows, _ in parts]
            stated_row = predicates.get(name, [name, 0, 0, [], [], [], []])
            row = [name, *(stated_row[at] + rows[1][at] - rows[0][at] for at in (1, 2))]
            if not row[1] and not row[2]:
                predicates.pop(name, None)
                continue
            row.append(_values(stated_row[3], rows[0][3], rows[1][3]))
            row.append(_keys(stated_row[4], rows[0][4], rows[1][4]))
            row.append(_added(stated_row[5], rows[0][5], rows[1][5], 1))
            row.append(_examples(stated_row[6], rows[0][6], rows[1][6], row[1] + row[2]))
            predicates[name] = row
        for side in ends:
            for sign, part_survey in ((-1, before), (1, after)):
                for name, counted in _by_predicate(part_survey, side):
                    counts = ends[side].setdefault(name, {})
                    for key, count in counted.items():
                        counts[key] = counts.get(key, 0) + sign * count
        rows_in_order = [predicates[name] for name in sorted(predicates)]
        sources = {name: [name, form, count] for name, form, count in old["sources"]}
        for sign, part_survey in ((-1, before), (1, after)):
            for name, form, count in part_survey["sources"]:
                sources.setdefault(name, [name, form, 0])[2] += sign * count
        return {
            "counts": {name: totals.get(name, 0) for name in old["counts"]},
            "sources": sorted(sources.values(), key=lambda row: (-row[2], row[0])),
            "kinds": kinds,
            "predicates": rows_in_order,
            **{side: _ends(rows_in_order, ends[side], numbers) for side in ends},
        }

    def _changed_kinds(self) -> tuple[list[list[Any]], dict[KindKey, int]]:
        """Return all kinds, and the number of each. A change may add a source, and change the number of entities in
        no concept.
        """
        rows = {_key(row): list(row) for row in self._stated.survey["kinds"]}
        for sign, part_survey in zip((-1, 1), self._surveys, strict=True):
            for row in part_survey["kinds"]:
                key = _key(row)
                if key[0] == "table" and key not in rows:
                    rows[key] = ["table", key[1], "", 0, [], []]
                if key[0] == "entities":
                    rows[key][3] += sign * row[3]
        tables = sorted(key for key in rows if key[0] == "table")
        concepts = [key for key in rows if key[0] == "concept"]
        order = [*concepts, *tables, ("concepts", "", ""), ("entities", "", "")]
        return [rows[key] for key in order], {key: number for number, key in enumerate(order)}

    # -- the schema --------------------------------------------------------------------------------

    def schema(self, now: Survey, totals: dict[str, int], several: Several) -> dict[str, Any]:
        """Return the schema of the graph after the change, given its survey and counts."""
        old, (before, after) = self._stated.schema, self._schemas
        result = dict(old)
        relations = {row[0]: row[1] for row in now["predicates"] if row[1]}
        result["relations"] = list(relations)
        result["sizes"] = relations
        result["sources"] = old["sources"] + [name for name in after["sources"] if name not in old["sources"]]
        source_numbers = {name: number for number, name in enumerate(result["sources"])}
        result["predicates"] = {row[0]: sorted(source_numbers[name] for name, _ in row[5]) for row in now["predicates"]}
        for part in ("attributes", "qualifiers"):
            result[part] = _summed(old[part], before[part], after[part])
        owners_by_key = {}
        for key in sorted(old["on"].keys() | after["on"].keys()):
            owners = _summed(*(schema["on"].get(key, {}) for schema in (old, before, after)))
            if owners:
                owners_by_key[key] = owners
        result["on"] = owners_by_key
        for part in ("temporal", "raw"):
            result[part] = old[part] or after[part]
        result["inexact"] = totals.get("inexact", 0) > 0
        for part in ("concept_subjects", "concept_attributes"):
            result[part] = totals.get(part, 0) > 0
        result["several"] = {sort: self._several(sort, result[sort], several) for sort in ("attributes", "qualifiers")}
        result["shown"] = self._shown(result)
        # Estimates for planning keep their last counted values.
        for part, names in (("degrees", relations), ("hubs", result["predicates"])):
            result[part] = {name: old[part].get(name, after[part].get(name)) for name in names}
            result[part] = {name: numbers for name, numbers in result[part].items() if numbers is not None}
        keys = [(sort, name) for sort, name, *_ in now["kinds"]]
        ends = {side: dict(_numbers(now, side)) for side in ("subjects", "objects")}
        result["classes"] = [[sort, name, above] for sort, name, _, _, _, above in now["kinds"]]
        result["ends"] = {row[0]: [ends["subjects"].get(row[0], []), ends["objects"].get(row[0], [])] for row in now["predicates"]}
        old_keys = [(sort, name) for sort, name, _ in old["classes"]]
        places = {key: number for number, key in enumerate(keys)}
        result["rows"] = {table: sorted(places[old_keys[number]] for number in numbers) for table, numbers in old["rows"].items()}
        return result

    def _readings(self) -> Iterator[tuple[str, str, int, bool, list[list[Any]] | None]]:
        """Yield how the numbers (0) and texts (1) of each key are read: whether the reading of some depends on
        others, and the statements that decide it (`engine.schema.ShownKey`). The latter are None if the change
        removed the first one.
        """
        schemas = [self._stated.schema["shown"], *(schema["shown"] for schema in self._schemas)]
        for sort in ("attributes", "qualifiers"):
            for name in sorted({name for schema in schemas for name in schema[sort]}):
                for sort_of_value in (0, 1):
                    old, before, after = (schema[sort].get(name, _UNREAD)[sort_of_value] for schema in schemas)
                    places = old[1]
                    if places:
                        remaining = [place for place in places if place not in before[1] or place in after[1]]
                        least = min(place[2] for place in places)
                        places = remaining if any(place[2] == least for place in remaining) else None
                    if places is not None:
                        places = [*places, *(place for place in after[1] if place not in places)]
                    yield sort, name, sort_of_value, old[0] or after[0], places

    @property
    def hides(self) -> bool:
        """Whether the change removed the first statement that decides how values are read, or there are too many such
        statements.
        """
        return any(len(places or ()) > _MAX_SHOWN or (depends and places is None) for *_, depends, places in self._readings())

    def _shown(self, names: dict[str, Any]) -> Shown:
        """Return how the values of keys are read, with the known statements that decide it."""
        result: Shown = {"attributes": {}, "qualifiers": {}}
        for sort, name, sort_of_value, depends, places in self._readings():
            if name in names[sort]:
                result[sort].setdefault(name, [_UNREAD[0], _UNREAD[1]])[sort_of_value] = [depends, places]
        return result

    def _several(self, sort: str, names: dict[str, Any], several: Several) -> list[str]:
        """Return the attributes, or qualifiers, with several values somewhere."""
        old, (before, after) = set(self._stated.schema["several"][sort]), self._schemas
        names_after, names_before = (set(schema["several"][sort]) for schema in (after, before))
        single_now = [name for name in names_before - names_after if name in names and not several(name, sort == "qualifiers")]
        return sorted(((old | names_after) - set(single_now)) & names.keys())


def _key(row: list[Any]) -> KindKey:
    return row[0], row[1], row[2]


def _by_predicate(of: Survey, side: str) -> Iterator[tuple[str, dict[KindKey, int]]]:
    """Yield each predicate with its number of ends of each kind."""
    ends, keys = of[side], list(map(_key, of["kinds"]))
    starts, kinds, counts = ends.starts.tolist(), ends.kinds.tolist(), ends.counts.tolist()
    for at, row in enumerate(of["predicates"]):
        run = slice(starts[at], starts[at + 1])
        yield row[0], {keys[kind]: count for kind, count in zip(kinds[run], counts[run], strict=True)}


def _numbers(of: Survey, side: str) -> Iterator[tuple[str, list[int]]]:
    ends = of[side]
    for at, row in enumerate(of["predicates"]):
        yield row[0], ends.kinds[ends.starts[at] : ends.starts[at + 1]].tolist()


def _ends(predicates: list[list[Any]], counted: dict[str, dict[KindKey, int]], of: dict[KindKey, int]) -> Ends:
    starts, kinds, counts = [0], list[int](), list[int]()
    for row in predicates:
        kind_counts = [(-count, of[key]) for key, count in counted.get(row[0], {}).items() if count]
        for count, kind in sorted(kind_counts):
            kinds.append(kind)
            counts.append(-count)
        starts.append(len(kinds))
    return Ends(np.array(starts, np.int64), np.array(kinds, np.int64), np.array(counts, np.int64))


def _added(known: list[list[Any]], before: list[list[Any]], after: list[list[Any]], at: int) -> list[list[Any]]:
    """Add the differences to rows with a name and a count."""
    rows = {row[0]: list(row) for row in known}
    for sign, part_rows in ((-1, before), (1, after)):
        for row in part_rows:
            rows.setdefault(row[0], [row[0], 0])[at] += sign * row[at]
    return sorted((row for row in rows.values() if row[at]), key=lambda row: (-row[at], row[0]))


def _values(known: list[list[Any]], before: list[list[Any]], after: list[list[Any]]) -> list[list[Any]]:
    """Return values by type and unit, with the differences added: [type, unit, number, first, last, first second,
    last second].

    If a first or last value was removed, it is unknown, unless the part has all values.
    """
    rows = {(row[0], row[1]): row for row in known}
    parts = [{(row[0], row[1]): row for row in part_rows} for part_rows in (before, after)]
    result = []
    for key in rows.keys() | parts[1].keys():
        old, row_before, row_after = rows.get(key), parts[0].get(key), parts[1].get(key)
        count = sum(sign * row[2] for sign, row in ((1, old), (-1, row_before), (1, row_after)) if row is not None)
        if not count:
            continue
        if row_after is not None and count == row_after[2]:
            result.append(list(row_after))
        elif old is None or row_before == row_after:
            result.append(list(old if old is not None else row_after or ()))
        else:
            result.append([*key, count, *_span(old, row_before, row_after)])
            continue
        result[-1][2] = count
    return sorted(result, key=lambda row: (-row[2], row[0], row[1]))


def _span(old: list[Any], before: list[Any] | None, after: list[Any] | None) -> list[Any]:
    nothing = ["", "", None, None]
    if old[3] == "" and old[4] == "":
        return nothing
    if before is not None:
        for at in (3, 4):
            # The part had the first or last value of the graph, and lost it.
            if before[at] == old[at] and (after is None or after[at] != old[at]) and not _beyond(old, after, at):
                return nothing
    if after is None or (after[3] == "" and after[4] == ""):
        return old[3:]
    first, last = (after if _beyond(old, after, at) else old for at in (3, 4))
    return [first[3], last[4], first[5], last[6]]


def _beyond(old: list[Any], after: list[Any] | None, at: int) -> bool:
    """Return whether the first (`at` 3) or last (`at` 4) value of a part lies beyond that of the graph."""
    if after is None or after[at] == "":
        return False
    if old[5] is None:
        of_part, of_graph = _number(after[at]), _number(old[at])
    else:
        of_part, of_graph = after[at + 2], old[at + 2]
    return of_part < of_graph if at == 3 else of_part > of_graph


def _number(text: str) -> Number:
    """Return the number at the beginning of a quantity as text."""
    return parse_number(text.partition(" ")[0])


def _keys(known: list[Any], before: list[Any], after: list[Any]) -> list[Any]:
    """Return qualifier keys with their values, with the differences added."""
    rows, parts = dict(known), (dict(before), dict(after))
    result = []
    for key in rows.keys() | parts[1].keys():
        values = _values(rows.get(key, []), parts[0].get(key, []), parts[1].get(key, []))
        if values:
            result.append([key, values])
    return sorted(result, key=lambda item: (-sum(value[2] for value in item[1]), item[0]))


def _examples(known: list[Any], before: list[Any], after: list[Any], count: int) -> list[Any]:
    """Return the examples without removed ones, and with new ones if there are too few."""
    result = [example for example in known if example not in before or example in after]
    new_examples = [example for example in after if example not in result and example not in before]
    if not result:
        new_examples = [example for example in after if example not in result]
    return (result + new_examples)[: min(EXAMPLES, count)]


def _summed(*parts: dict[str, list[list[Any]]]) -> dict[str, list[list[Any]]]:
    """Return the types and units of values by name, with the differences added. `parts` are those of the graph, and
    of the part before and after.
    """
    old, before, after = parts
    result = dict(old)
    for name in before.keys() | after.keys():
        counts: dict[tuple[int, str], int] = {}
        for sign, rows in ((1, old), (-1, before), (1, after)):
            for kind, unit, count in rows.get(name, ()):
                counts[kind, unit] = counts.get((kind, unit), 0) + sign * count
        rows_left = sorted((kind, unit != NO_UNIT, unit, count) for (kind, unit), count in counts.items() if count)
        result[name] = [[kind, unit, count] for kind, _, unit, count in rows_left]
        if not rows_left:
            del result[name]
    return {name: result[name] for name in sorted(result)}

"""What a graph on a server states of its content, adjusted to a single change.

A change touches a few statements. Counts of a part of the graph before and after the change, which has everything
that the change is about, differ as those of the whole graph do: the differences are added to what the graph states.
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

#: Whether some entity has several values of an attribute, or some statement of a qualifier (True).
Several: TypeAlias = Callable[[str, bool], bool]
#: A kind of `Survey`: sort, name, id.
KindKey: TypeAlias = tuple[str, str, str]
#: How the name of a content begins that a change gave.
CHANGED: Final = "change-"
#: The count of long texts, which may be elsewhere in the graph as well.
_TEXTS: Final = "long"
#: A key without numbers and texts.
_UNREAD: Final = ([False, []], [False, []])
#: Places that show how a key is read are looked for anew beyond so many: each change may add one.
_MOST_SHOWN: Final = 50
#: Parts of a stored schema that are read here; an earlier version left some out.
_NEEDED: Final = frozenset(
    ("relations", "attributes", "qualifiers", "sources", "on", "predicates", "temporal", "raw", "several", "shown", "sizes",
     "degrees", "hubs", "classes", "ends", "rows")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GraphSummary:
    """What a graph states of its content: the name of that, counts, the schema as it is stored, the survey."""

    content: str
    counts: dict[str, int]
    schema: dict[str, Any]
    survey: Survey

    @property
    def adjustable(self) -> bool:
        """Whether everything is there that `after` adjusts."""
        return "note" not in self.survey and self.schema.keys() >= _NEEDED and "inexact" in self.counts

    def statements(self, predicate: str) -> tuple[int, int]:
        """How many relations and attributes a predicate has."""
        for name, relations, attributes, *_ in self.survey["predicates"]:
            if name == predicate:
                return relations, attributes
        return 0, 0

    def qualifiers(self, key: str) -> int:
        """How many qualifiers a key has."""
        return sum(count for *_, count in self.schema["qualifiers"].get(key, ()))

    def after(
        self, record: bytes, before: Snapshot, after: Snapshot, counted: Callable[[Snapshot], dict[str, int]], several: Several
    ) -> GraphSummary | None:
        """What the graph states after a change, of which a `record` is stored: what the change is about is `before` it and
        `after` it; `counted` gives the counts that are stated of a snapshot. None where a part does not say it.
        """
        fewer, more = counted(before), counted(after)
        totals = {name: self.counts.get(name, 0) + count - fewer[name] for name, count in more.items()}
        if fewer.get(_TEXTS) != more.get(_TEXTS) or bool(totals["inexact"]) != bool(self.counts["inexact"]):
            return None
        changes = _Changes(self, before, after)
        if changes.hides:
            return None
        now = changes.survey(totals)
        content = CHANGED + blake2b(self.content.encode() + b" " + record, digest_size=12).hexdigest()
        return GraphSummary(content, totals, changes.schema(now, totals, several), now)


class _Changes:
    """What a part of a graph has before and after a change, as differences."""

    def __init__(self, stated: GraphSummary, before: Snapshot, after: Snapshot) -> None:
        self._stated, self._after = stated, after
        self._surveys = survey(before), survey(after)
        self._schemas = described(before), described(after)

    # -- the survey --------------------------------------------------------------------------------

    def survey(self, totals: dict[str, int]) -> Survey:
        """The survey of the graph."""
        old, (before, after) = self._stated.survey, self._surveys
        kinds, of = self._kinds()
        predicates = {row[0]: row for row in old["predicates"]}
        ends = {side: dict(_by_predicate(old, side)) for side in ("subjects", "objects")}
        parts = [({row[0]: row for row in one["predicates"]}, one) for one in (before, after)]
        for name in parts[0][0].keys() | parts[1][0].keys():
            rows = [rows.get(name, [name, 0, 0, [], [], [], []]) for rows, _ in parts]
            known = predicates.get(name, [name, 0, 0, [], [], [], []])
            row = [name, *(known[at] + rows[1][at] - rows[0][at] for at in (1, 2))]
            if not row[1] and not row[2]:
                predicates.pop(name, None)
                continue
            row.append(_values(known[3], rows[0][3], rows[1][3]))
            row.append(_keys(known[4], rows[0][4], rows[1][4]))
            row.append(_added(known[5], rows[0][5], rows[1][5], 1))
            row.append(_examples(known[6], rows[0][6], rows[1][6], row[1] + row[2]))
            predicates[name] = row
        for side in ends:
            for sign, one in ((-1, before), (1, after)):
                for name, counted in _by_predicate(one, side):
                    counts = ends[side].setdefault(name, {})
                    for key, count in counted.items():
                        counts[key] = counts.get(key, 0) + sign * count
        listed = [predicates[name] for name in sorted(predicates)]
        sources = {name: [name, form, count] for name, form, count in old["sources"]}
        for sign, one in ((-1, before), (1, after)):
            for name, form, count in one["sources"]:
                sources.setdefault(name, [name, form, 0])[2] += sign * count
        return {
            "counts": {name: totals.get(name, 0) for name in old["counts"]},
            "sources": sorted(sources.values(), key=lambda row: (-row[2], row[0])),
            "kinds": kinds,
            "predicates": listed,
            **{side: _ends(listed, ends[side], of) for side in ends},
        }

    def _kinds(self) -> tuple[list[list[Any]], dict[KindKey, int]]:
        """All kinds, and the number of each. Of these a source is new, or entities in no concept more or fewer."""
        rows = {_key(row): list(row) for row in self._stated.survey["kinds"]}
        for sign, one in zip((-1, 1), self._surveys, strict=True):
            for row in one["kinds"]:
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
        """The schema of the graph with a survey and counts."""
        old, (before, after) = self._stated.schema, self._schemas
        result = dict(old)
        relations = {row[0]: row[1] for row in now["predicates"] if row[1]}
        result["relations"] = list(relations)
        result["sizes"] = relations
        result["sources"] = old["sources"] + [name for name in after["sources"] if name not in old["sources"]]
        place = {name: number for number, name in enumerate(result["sources"])}
        result["predicates"] = {row[0]: sorted(place[name] for name, _ in row[5]) for row in now["predicates"]}
        for part in ("attributes", "qualifiers"):
            result[part] = _counted(old[part], before[part], after[part])
        on = {}
        for key in sorted(old["on"].keys() | after["on"].keys()):
            owners = _counted(*(one["on"].get(key, {}) for one in (old, before, after)))
            if owners:
                on[key] = owners
        result["on"] = on
        for part in ("temporal", "raw"):
            result[part] = old[part] or after[part]
        result["inexact"] = totals.get("inexact", 0) > 0
        for part in ("concept_subjects", "concept_attributes"):
            result[part] = totals.get(part, 0) > 0
        result["several"] = {sort: self._several(sort, result[sort], several) for sort in ("attributes", "qualifiers")}
        result["shown"] = self._shown(result)
        # Estimates that queries are planned by stay as they were counted last.
        for part, names in (("degrees", relations), ("hubs", result["predicates"])):
            result[part] = {name: old[part].get(name, after[part].get(name)) for name in names}
            result[part] = {name: numbers for name, numbers in result[part].items() if numbers is not None}
        keys = [(sort, name) for sort, name, *_ in now["kinds"]]
        ends = {side: dict(_numbers(now, side)) for side in ("subjects", "objects")}
        result["classes"] = [[sort, name, above] for sort, name, _, _, _, above in now["kinds"]]
        result["ends"] = {row[0]: [ends["subjects"].get(row[0], []), ends["objects"].get(row[0], [])] for row in now["predicates"]}
        was = [(sort, name) for sort, name, _ in old["classes"]]
        places = {key: number for number, key in enumerate(keys)}
        result["rows"] = {table: sorted(places[was[number]] for number in numbers) for table, numbers in old["rows"].items()}
        return result

    def _readings(self) -> Iterator[tuple[str, str, int, bool, list[list[Any]] | None]]:
        """How numbers (0) and texts (1) of each key are read: whether others read some, and where it is shown, which is not
        known (None) where a change has taken it away.
        """
        every = [self._stated.schema["shown"], *(one["shown"] for one in self._schemas)]
        for sort in ("attributes", "qualifiers"):
            for name in sorted({name for one in every for name in one[sort]}):
                for at in (0, 1):
                    old, before, after = (one[sort].get(name, _UNREAD)[at] for one in every)
                    places = old[1]
                    if places:
                        stay = [place for place in places if place not in before[1] or place in after[1]]
                        least = min(place[2] for place in places)
                        places = stay if any(place[2] == least for place in stay) else None
                    if places is not None:
                        places = [*places, *(place for place in after[1] if place not in places)]
                    yield sort, name, at, old[0] or after[0], places

    @property
    def hides(self) -> bool:
        """Whether it is not known any more what shows how values are read, or many places do."""
        return any(len(places or ()) > _MOST_SHOWN or (others and places is None) for *_, others, places in self._readings())

    def _shown(self, names: dict[str, Any]) -> Shown:
        """How keys are read: the first by value of what shows it is among what is listed."""
        result: Shown = {"attributes": {}, "qualifiers": {}}
        for sort, name, at, others, places in self._readings():
            if name in names[sort]:
                result[sort].setdefault(name, [_UNREAD[0], _UNREAD[1]])[at] = [others, places]
        return result

    def _several(self, sort: str, names: dict[str, Any], several: Several) -> list[str]:
        """The attributes, or qualifiers, with several values somewhere."""
        old, (before, after) = set(self._stated.schema["several"][sort]), self._schemas
        more, fewer = (set(one["several"][sort]) for one in (after, before))
        gone = [name for name in fewer - more if name in names and not several(name, sort == "qualifiers")]
        return sorted(((old | more) - set(gone)) & names.keys())


def _key(row: list[Any]) -> KindKey:
    return row[0], row[1], row[2]


def _by_predicate(of: Survey, side: str) -> Iterator[tuple[str, dict[KindKey, int]]]:
    """How many ends of the statements of each predicate are of each kind."""
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
        some = [(-count, of[key]) for key, count in counted.get(row[0], {}).items() if count]
        for count, kind in sorted(some):
            kinds.append(kind)
            counts.append(-count)
        starts.append(len(kinds))
    return Ends(np.array(starts, np.int64), np.array(kinds, np.int64), np.array(counts, np.int64))


def _added(known: list[list[Any]], before: list[list[Any]], after: list[list[Any]], at: int) -> list[list[Any]]:
    """Rows of a name and a count, with the differences added."""
    rows = {row[0]: list(row) for row in known}
    for sign, some in ((-1, before), (1, after)):
        for row in some:
            rows.setdefault(row[0], [row[0], 0])[at] += sign * row[at]
    return sorted((row for row in rows.values() if row[at]), key=lambda row: (-row[at], row[0]))


def _values(known: list[list[Any]], before: list[list[Any]], after: list[list[Any]]) -> list[list[Any]]:
    """Values by type and unit: [type, unit, count, first, last, first second, last second]. A first or last value that is
    taken away leaves that open, but where the part has all values.
    """
    rows = {(row[0], row[1]): row for row in known}
    parts = [{(row[0], row[1]): row for row in some} for some in (before, after)]
    result = []
    for key in rows.keys() | parts[1].keys():
        old, one, other = rows.get(key), parts[0].get(key), parts[1].get(key)
        count = sum(sign * row[2] for sign, row in ((1, old), (-1, one), (1, other)) if row is not None)
        if not count:
            continue
        if other is not None and count == other[2]:
            result.append(list(other))
        elif old is None or one == other:
            result.append(list(old if old is not None else other or ()))
        else:
            result.append([*key, count, *_span(old, one, other)])
            continue
        result[-1][2] = count
    return sorted(result, key=lambda row: (-row[2], row[0], row[1]))


def _span(old: list[Any], before: list[Any] | None, after: list[Any] | None) -> list[Any]:
    nothing = ["", "", None, None]
    if old[3] == "" and old[4] == "":
        return nothing
    if before is not None:
        for at in (3, 4):
            # The part had the value at this end of all, and has it no more.
            if before[at] == old[at] and (after is None or after[at] != old[at]) and not _beyond(old, after, at):
                return nothing
    if after is None or (after[3] == "" and after[4] == ""):
        return old[3:]
    first, last = (after if _beyond(old, after, at) else old for at in (3, 4))
    return [first[3], last[4], first[5], last[6]]


def _beyond(old: list[Any], after: list[Any] | None, at: int) -> bool:
    """Whether the first (`at` 3) or last (4) value of a part lies beyond that of the graph."""
    if after is None or after[at] == "":
        return False
    if old[5] is None:
        own, known = _number(after[at]), _number(old[at])
    else:
        own, known = after[at + 2], old[at + 2]
    return own < known if at == 3 else own > known


def _number(text: str) -> Number:
    """The number that a quantity begins with as text."""
    return parse_number(text.partition(" ")[0])


def _keys(known: list[Any], before: list[Any], after: list[Any]) -> list[Any]:
    """Qualifier keys with their values."""
    rows, parts = dict(known), (dict(before), dict(after))
    result = []
    for key in rows.keys() | parts[1].keys():
        values = _values(rows.get(key, []), parts[0].get(key, []), parts[1].get(key, []))
        if values:
            result.append([key, values])
    return sorted(result, key=lambda item: (-sum(value[2] for value in item[1]), item[0]))


def _examples(known: list[Any], before: list[Any], after: list[Any], count: int) -> list[Any]:
    """Examples without those that are taken away; new ones where there are few."""
    result = [one for one in known if one not in before or one in after]
    fresh = [one for one in after if one not in result and one not in before]
    if not result:
        fresh = [one for one in after if one not in result]
    return (result + fresh)[: min(EXAMPLES, count)]


def _counted(*parts: dict[str, list[list[Any]]]) -> dict[str, list[list[Any]]]:
    """The types and units of values by name, of a graph, with the differences of a part before and after."""
    old, before, after = parts
    result = dict(old)
    for name in before.keys() | after.keys():
        counts: dict[tuple[int, str], int] = {}
        for sign, rows in ((1, old), (-1, before), (1, after)):
            for kind, unit, count in rows.get(name, ()):
                counts[kind, unit] = counts.get((kind, unit), 0) + sign * count
        left = sorted((kind, unit != NO_UNIT, unit, count) for (kind, unit), count in counts.items() if count)
        result[name] = [[kind, unit, count] for kind, _, unit, count in left]
        if not left:
            del result[name]
    return {name: result[name] for name in sorted(result)}

"""Proposes a declaration of tables from names and cells, with a reason for each line.

Keys are found by names, and by cells that are complete and unique; references by names (`keys`), and
by cells that are all keys of another table. Names and cells together are accepted, and so are ten
different texts that are all keys of just one table. What only cells of numbers suggest becomes a
comment, since 1, 2, 3 are keys of many tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import combinations
from typing import Final, TypeAlias

from condgraph.engine.bounds import check
from condgraph.engine.errors import numbered, shortened
from condgraph.loaders.base import Options
from condgraph.loaders.folder.declared import Declared
from condgraph.loaders.folder.keys import Key, Reference, find_keys, points
from condgraph.loaders.folder.tab import Tab
from condgraph.loaders.table.joins import CONTAINED, called_like, is_number, key_names, plain

#: The most distinct cells of a column that are remembered.
_MAX_CELLS: Final = 1_000_000
#: How many distinct texts must be keys of another table for cells alone to be accepted.
_MANY: Final = 10
#: How many pairs of columns are tried as a key.
_PAIRS: Final = 40
#: Plain names of columns that number rows within a group.
_WITHIN: Final = re.compile(
    r"(?:line|no|nr|number|num|seq|sequence|position|pos|rank|item|index|version|part|date|day|year|month)$"
)
#: Names of columns that refer to rows of their own table.
_SELF: Final = re.compile(
    r"parent|manager|boss|supervisor|reportsto|reportto|mentor|predecessor|successor|superior|replaces|replacedby|belongsto|partof|prev|next"
)
#: Plain names of columns that are keys.
_KEY_NAME: Final = re.compile(r"(?:id|key|code|no|number|uuid|isbn|sku|iso\d?)$")
#: Written names of keys that are codes, not row numbers: `stop_id`, `stopID`, `customerid`, but not `Grid`.
_CODE_NAME: Final = re.compile(r"(?:^|[\W_])(?i:id|key|code|uuid|isbn|sku|iso\d?)$|[a-z](?:ID|Id|Key|Code)$|^\w{6,}(?:id|code)$")
#: How many rows of each table are examined first, and up to how many tables.
_FIRST_ROWS: Final = 1_000
MAX_TABLES: Final = 100
#: The most columns that questions are about.
_MAX_QUESTIONS: Final = 5
_LOOK: Final = re.compile(r"\d+|[^\W\d_]+")
#: The reason for each reference.
Reasons: TypeAlias = dict[tuple[str, Key], str]
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def guess(tabs: Mapping[str, Tab], said: Declared, options: Options, place: str) -> str:
    """Return a proposed declaration of tables as text; `said` is what their source declares."""
    for tab in tabs.values():
        tab.begin(options, said)
        _look(tab)
    said_joins = {(join.table, join.columns) for join in said.joins}
    columns = {name: tab.columns for name, tab in tabs.items()}
    find_keys(columns, said)
    reasons: Reasons = {}
    for tab in tabs.values():
        if tab.columns.primary is None and tab.name not in said.keys:
            tab.columns.primary = _only_key(tab)
    for tab in tabs.values():
        for item in tab.columns.foreign:
            names = tuple(tab.names[at] for at in item.columns)
            if (tab.name, names) in said_joins:
                reasons[tab.name, item.columns] = "declared by the source"
    comments = {tab.name: [_comment(tab, tabs, *candidate) for candidate in _by_cells(tab, tabs, reasons)] for tab in tabs.values()}
    for tab in tabs.values():
        if tab.columns.primary is None and tab.name not in said.keys:
            tab.columns.primary = _pair(tab)
    lines = [
        f"# What the tables of {_line(place)} are, as far as names and cells say; written by `condgraph guess`.",
        "# Edit it, and load again. Only these lines are used; nothing is guessed.",
        "guess = false",
    ]
    for tab in tabs.values():
        tab.name_column = tab.find_name()
        lines += ["", *_section(tab, said)]
    lines += ["", "[joins]"]
    for tab in tabs.values():
        for reference in tab.columns.foreign:
            targets = [_path(tabs[target], key) for target, key in reference.targets]
            target_text = json.dumps(targets[0] if len(targets) == 1 else targets, ensure_ascii=False)
            why = reasons.get((tab.name, reference.columns)) or _contained(tab, tabs, reference)
            lines.append(f"{_string(_path(tab, reference.columns))} = {target_text}  # {why}")
        lines += comments[tab.name]
    return "\n".join(lines) + "\n"


def _comment(tab: Tab, tabs: Mapping[str, Tab], at: int, target: str, key: Key) -> str:
    why = _contained(tab, tabs, Reference((at,), ((target, key),)))
    return f"# {_string(_path(tab, (at,)))} = {_string(_path(tabs[target], key))}  # perhaps: {why}, the names do not say so"


def _look(tab: Tab, wanted: Collection[Key] | None = None) -> None:
    """Profile the cells of all columns, or of some: types and distinct values."""
    for chunk in tab.first_pass():
        check()
        for at, column in enumerate(chunk.columns):
            if wanted is not None and (at,) not in wanted:
                continue
            tab.profiles[at].add(column)
            if len(tab.columns.values.get((at,), ())) <= _MAX_CELLS:
                tab.columns.add((at,), tab.cells_of(at, column))
        tab.columns.rows += len(chunk.numbers)


def _only_key(tab: Tab) -> Key | None:
    """Return a column that is a key by its cells, and by its name or as the first column."""
    columns = tab.columns
    if columns.rows <= 1:
        return None
    for at, name in enumerate(tab.names):
        # The column must have a key's name, or be the first one with texts or numbers.
        named_like_key = bool(_KEY_NAME.search(plain(name)))
        kind = tab.profiles[at].decide(name).kind
        if columns.reference(at) is None and columns.unique((at,)) and (named_like_key or (at == 0 and kind in ("text", "number"))):
            return (at,)
    return None


def _by_cells(tab: Tab, tabs: Mapping[str, Tab], reasons: Reasons) -> Iterator[tuple[int, str, Key]]:
    """Add the references that cells prove; yield columns that only may be references, with table and key."""
    columns = tab.columns
    for at, name in enumerate(tab.names):
        values = columns.of((at,))
        if (
            (at,) == columns.primary
            or not values
            or len(values) > _MAX_CELLS
            or any(at in item.columns for item in columns.foreign)
        ):
            continue
        check()
        candidates: list[tuple[str, Key, float]] = []
        for target, other in tabs.items():
            key = other.columns.primary
            if key is None or len(key) > 1 or len(other.columns.values.get(key, ())) > _MAX_CELLS:
                continue
            keys = other.columns.values[key]
            inside = values.inside(keys)
            named_so = target != tab.name and points(name, other.columns) and _names_a_key(name, other)
            if named_so and inside >= CONTAINED * len(values):
                candidates = [(target, key, 2.0)]
                break
            self_named = target == tab.name and bool(_SELF.search(plain(name))) and inside >= CONTAINED * len(values)
            if (inside == len(values) or self_named) and keys:
                candidates.append((target, key, inside / len(keys)))
        if not candidates:
            continue
        target, key, share = max(candidates, key=lambda item: item[2])
        self_reference = next((item for item in candidates if item[0] == tab.name and _SELF.search(plain(name))), None)
        if self_reference is not None:
            target, key, share = self_reference
        text_count = sum(not is_number(item) for item in values)
        # Texts such as "1st" and "2nd" are in many unrelated tables.
        codes = text_count >= _MANY and text_count == len(values) and len(candidates) == 1 and not _WITHIN.search(plain(name))
        accepted = share == 2.0 or self_reference is not None or codes
        if (accepted and tabs[target].name != tab.name) or self_reference is not None:
            reference = Reference((at,), ((target, key),))
            columns.foreign.append(reference)
            tabs[target].columns.pointed = True
            reason_prefix = "by its name, " if share == 2.0 else "" if self_reference is None else "called so, "
            reasons[tab.name, (at,)] = reason_prefix + _contained(tab, tabs, reference)
        elif len(values) > 1 and target != tab.name and (text_count == len(values) or (share >= 0.9 and _may_number(name))):
            yield at, target, key


def _names_a_key(name: str, other: Tab) -> bool:
    """Whether a column is named after a table, or its name has the form of a key.

    Two unrelated tables may each begin with a column `Rank`.
    """
    return plain(name) in key_names(other.name) or bool(_CODE_NAME.search(name.strip()))


def _may_number(name: str) -> bool:
    """Whether a column of numbers may hold keys, by its name."""
    return plain(name) not in ("quantity", "count", "amount", "level", "rank", "position", "year", "no", "number")


def _called_key(tab: Tab, at: int) -> bool:
    """Whether a column has the name of a key of its table."""
    name = plain(tab.names[at])
    return name == "id" or name in key_names(tab.name) or bool(_KEY_NAME.search(name))


def _look_of(cell: str) -> str:
    """Return a text with one sign for each run of digits or letters.

    >>> _look_of("S09"), _look_of("rue de Rivoli, 4")
    ('a9', 'a a a, 9')
    """
    return _LOOK.sub(lambda match: "9" if match[0].isdigit() else "a", cell)


class _FirstRows:
    """The first rows of a table: distinct cells of each column, their patterns, and whether these are all rows."""

    def __init__(self, tab: Tab, *, alone: bool) -> None:
        self.tab = tab
        columns, self.whole = tab.first(_FIRST_ROWS, alone=alone)
        rows = len(columns[0]) if columns else 0
        cell_lists = [[cell for cell in tab.cells_of(at, column) if cell is not None] for at, column in enumerate(columns)]
        self.cells, cell_counts = list(map(set, cell_lists)), list(map(len, cell_lists))
        self.looks = [frozenset(map(_look_of, distinct)) for distinct in self.cells]
        named_like_key = [_called_key(tab, at) for at in range(len(tab.names))]
        unique = [rows > 0 and cell_counts[at] == rows == len(cells) for at, cells in enumerate(self.cells)]
        self.keys = [at for at in range(len(named_like_key)) if unique[at] and (at == 0 or named_like_key[at])]
        #: Columns that would be keys except for missing cells, with the number of these.
        self.nearly = {
            at: rows - cell_counts[at]
            for at, distinct in enumerate(self.cells)
            if named_like_key[at] and rows > cell_counts[at] == len(distinct) > 1
        }

    def may_refer(self, at: int, other: _FirstRows, key: int) -> bool:
        """Whether a column may refer to a key, as far as the first rows show."""
        values, keys, name = self.cells[at], other.cells[key], self.tab.names[at]
        if other is self:
            return at != key and bool(_SELF.search(plain(name)))
        named_so = called_like(name, other.tab.names[key], other.tab.name)
        if not other.whole:
            return named_so or (not all(map(is_number, values)) and self.looks[at] <= other.looks[key])
        return values <= keys or (named_so and len(values & keys) >= CONTAINED * len(values))


#: A table, the index of a column, and the question about it.
Question: TypeAlias = tuple[str, int, str]


def worth_a_look(tabs: Mapping[str, Tab], asked: list[Question] | None = None) -> dict[str, set[Key]]:
    """Return the columns of each table that may be keys or references, judging by the first rows.

    Only their cells are examined. The result is empty for too many tables. `asked` means that other rows
    may not be needed, and collects questions about columns that would refer to a key if no cell were missing.
    """
    result: dict[str, set[Key]] = {name: set() for name in tabs}
    if len(tabs) > MAX_TABLES:
        return result
    firsts = [_FirstRows(tab, alone=asked is not None) for tab in tabs.values()]
    for referring in firsts:
        for at, cells in enumerate(referring.cells):
            check()
            for referred in firsts if cells else ():
                for key in referred.keys:
                    if referring.may_refer(at, referred, key):
                        result[referring.tab.name].add((at,))
                        result[referred.tab.name].add((key,))
                for key, missing in referred.nearly.items() if asked is not None and referred is not referring else ():
                    path, to = _path(referring.tab, (at,)), _path(referred.tab, (key,))
                    same = plain(referring.tab.names[at]) == plain(referred.tab.names[key]) and at not in referring.nearly
                    if asked is not None and same and len(cells & referred.cells[key]) >= CONTAINED * len(cells):
                        gaps = numbered(missing, "missing cell", "missing cells")
                        reason = f"this may refer to {to}, which is not a key because of {gaps}"
                        asked.append((referring.tab.name, at, f"{reason}: join={{{path!r}: {to!r}}} makes it a reference"))
    for first in firsts:
        if result[first.tab.name]:
            # The first one is the key.
            result[first.tab.name].update((key,) for key in first.keys)
    return result


def join_by_cells(tabs: Mapping[str, Tab], said: Declared) -> tuple[Reasons, list[tuple[str, int, str, Key]]]:
    """Add the references that cells prove to those already found, and their keys.

    Returns the reason for each, and the columns that only may be references (table, column, table
    referred to, key).
    """
    reasons: Reasons = {}
    without_key = [tab for tab in tabs.values() if tab.columns.primary is None and tab.name not in said.keys]
    for tab in without_key:
        tab.columns.primary = _only_key(tab)
    possible = [
        (tab.name, at, target, key)
        for tab in tabs.values()
        for at, target, key in _by_cells(tab, tabs, reasons)
        # Numbers are keys of many tables; the target's key must have a key's name, and the column must
        # not be a declared key itself.
        if tab.names[at] not in said.keys.get(tab.name, ())
        and (_called_key(tabs[target], key[0]) or not any(map(is_number, tab.columns.values[at,])))
    ]
    referred = {target for tab in tabs.values() for item in tab.columns.foreign for target, _ in item.targets}
    for tab in without_key:
        if tab.name not in referred:
            # Rows are numbered, as they are without guessing.
            tab.columns.primary = None
    for table, _ in reasons:
        # As relations, repeated rows would be merged; that must be declared.
        if tabs[table].columns.relation is None:
            tabs[table].columns.relation = False
    return reasons, possible


def join_text(tab: Tab, tabs: Mapping[str, Tab], one: Reference) -> str:
    """Return a reference as text, with its evidence."""
    target, key = one.targets[0]
    return f"{_path(tab, one.columns)} = {_path(tabs[target], key)}: {_contained(tab, tabs, one)}"


def questions(tabs: Mapping[str, Tab], perhaps: Sequence[tuple[str, int, str, Key]]) -> list[Question]:
    """Return the questions about columns that may be references: table, column, and text.

    The last of the few questions tells how many more columns there are.
    """
    result: list[Question] = []
    for table, at, target, key in perhaps[:_MAX_QUESTIONS]:
        tab, other = tabs[table], tabs[target]
        path, to = f"{table}.{tab.names[at]}", f"{target}.{other.names[key[0]]}"
        few = shortened(", ".join(nsmallest(3, tab.columns.values[at,])), 60)
        text = (
            f"its {len(tab.columns.values[at,]):,} different values ({few}) are keys of {target!r}, but nothing else shows that it "
            f"refers to them: join={{{path!r}: {to!r}}} makes it a reference, join=False keeps the values"
        )
        more = len(perhaps) - _MAX_QUESTIONS
        if len(result) == _MAX_QUESTIONS - 1 and more > 0:
            text += f"; the same holds for {numbered(more, 'further column', 'further columns')} (`condgraph guess` lists them)"
        result.append((table, at, text))
    return result


def linked(tabs: Mapping[str, Tab], options: Options) -> tuple[set[str], list[Question]]:
    """Return the tables that certainly refer to each other, and questions about others."""
    for tab in tabs.values():
        tab.begin(options, Declared())
    gap_questions: list[Question] = []
    candidates = worth_a_look(tabs, gap_questions)
    examined = {name: tab for name, tab in tabs.items() if candidates[name]}
    for tab in examined.values():
        _look(tab, candidates[tab.name])
    columns = {name: tab.columns for name, tab in examined.items()}
    find_keys(columns, Declared())
    possible = join_by_cells(examined, Declared())[1]
    references = [(name, target) for name, of in columns.items() for item in of.foreign for target, _ in item.targets]
    return {name for pair in references for name in pair}, gap_questions + questions(tabs, possible)


def _contained(tab: Tab, tabs: Mapping[str, Tab], one: Reference) -> str:
    target, key = one.targets[0]
    cells, keys = tab.columns.values.get(one.columns), tabs[target].columns.values.get(key)
    if cells is None or keys is None:
        return "declared by the source"
    values = cells.spelled(one.spelled) if one.pointed else cells
    inside = values.inside(keys)
    text = f"{inside:,} of its {len(values):,} different values are keys there"
    if inside < len(values):
        text += f", not {', '.join(repr(shortened(cell, 40)) for cell in values.beyond(keys)[:3])}"
    return _line(text + ", without the point of 1.0" * one.pointed)


def _pair(tab: Tab) -> Key | None:
    """Return two columns that are a key together: references, or numbers within a group."""
    columns = tab.columns
    if not columns.rows:
        return None
    refs = [item.columns[0] for item in columns.foreign if len(item.columns) == 1]
    within = [at for at, name in enumerate(tab.names) if at not in refs and _WITHIN.search(plain(name))]
    # The first column of a table of parts often names the whole.
    owners = list(dict.fromkeys([*refs, 0]))
    pairs = [*combinations(refs, 2), *((item, other) for item in owners for other in within if item != other)][:_PAIRS]
    seen_hashes: dict[Key, set[int]] = {pair: set() for pair in pairs}
    for chunk, _ in tab.cells.chunks(None, tab.names):
        check()
        for pair in list(seen_hashes):
            known = seen_hashes[pair]
            for key in tab.keys(pair, chunk):
                if key is None or (key_hash := hash(key)) in known or len(known) > _MAX_CELLS:
                    del seen_hashes[pair]
                    break
                known.add(key_hash)
    return next(iter(seen_hashes), None)


def _section(tab: Tab, said: Declared) -> Iterator[str]:
    """Yield the lines about one table."""
    columns = tab.columns
    yield f"[tables.{tab.name if _BARE.fullmatch(tab.name) else _string(tab.name)}]"
    if columns.primary is None:
        yield "key = []  # no column whose cells are all there and different; rows go by number"
    else:
        names = [tab.names[at] for at in columns.primary]
        key = json.dumps(names[0] if len(names) == 1 else names, ensure_ascii=False)
        why = "declared by the source" if tab.name in said.keys else f"{columns.rows:,} rows, all there and all different"
        yield f"key = {key}  # {why}"
    if tab.name_column is not None:
        yield f"name = {_string(tab.names[tab.name_column])}  # what rows are called"
    ends = [item for item in columns.foreign if len(item.columns) == 1]
    if columns.joins:
        yield "relation = true  # nothing but two references: its rows relate them"
    elif (
        len(ends) == 2
        and not columns.pointed
        and (columns.primary is None or set(columns.primary) <= {end.columns[0] for end in ends})
    ):
        yield "# relation = true  # two references identify its rows: as relations, the other columns would be qualifiers"
    pair = [next((name for name in tab.names if snake(name) in names), None) for names in _TIMES]
    if None not in pair:
        yield f"# times = {_string('[' + ', '.join(map(str, pair)) + ')')}  # when its rows hold; ']' where the end is included"
    kinds: dict[str, list[str]] = {}
    for at, profile in enumerate(tab.profiles):
        if columns.reference(at) is None:
            kinds.setdefault(profile.decide(tab.names[at]).kind, []).append(tab.names[at])
    for kind, names in sorted(kinds.items()):
        yield _line(f"# read as {kind if kind != 'clock' else 'clock times'}: {', '.join(names)}")


#: Names of columns for the start and the end of a row's validity.
_TIMES: Final = (
    frozenset(("valid_from", "start_date", "effective_from", "effective_date", "row_start", "sys_start", "start_time")),
    frozenset(("valid_to", "valid_until", "end_date", "effective_to", "expiry_date", "row_end", "sys_end", "end_time")),
)


def snake(name: str) -> str:
    """Return a column's name in snake case.

    >>> snake("Valid From"), snake("validFrom")
    ('valid_from', 'valid_from')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]+", "_", name).lower()


def _path(tab: Tab, key: Key) -> str:
    names = [tab.names[at] for at in key]
    return f"{tab.name}.{names[0]}" if len(names) == 1 else f"{tab.name}.({', '.join(names)})"


def _string(text: str) -> str:
    """Return a text as a TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _line(text: str) -> str:
    """Return a text without line ends and control characters, for a comment."""
    return "".join(item if item.isprintable() else "�" for item in text)

"""What a declaration of tables could say, found from names and cells, with a reason for each line.

Keys are found by their names and by cells that are all there and all different; references by names
(`keys`), and by cells that are all keys of another table. Names and cells together are believed,
and so are ten different texts that are all keys of one table alone. What cells alone say of numbers
is written as a comment: 1, 2, 3 are keys of many tables.
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

#: Different cells of a column that are remembered.
_MOST: Final = 1_000_000
#: Texts that have to be keys of another table before cells alone are believed.
_MANY: Final = 10
#: Pairs of columns that are tried as a key.
_PAIRS: Final = 40
#: What columns are called that number the rows within something, as plain names.
_WITHIN: Final = re.compile(
    r"(?:line|no|nr|number|num|seq|sequence|position|pos|rank|item|index|version|part|date|day|year|month)$"
)
#: What columns are called that refer to rows of their own table.
_SELF: Final = re.compile(
    r"parent|manager|boss|supervisor|reportsto|reportto|mentor|predecessor|successor|superior|replaces|replacedby|belongsto|partof|prev|next"
)
#: What columns are called that are keys, as plain names.
_KEY_NAME: Final = re.compile(r"(?:id|key|code|no|number|uuid|isbn|sku|iso\d?)$")
#: The same as written, without those that count rows: `stop_id`, `stopID`, `customerid`, and no `Grid`.
_CODE_NAME: Final = re.compile(r"(?:^|[\W_])(?i:id|key|code|uuid|isbn|sku|iso\d?)$|[a-z](?:ID|Id|Key|Code)$|^\w{6,}(?:id|code)$")
#: Rows of a table that are looked at first; of more tables none is.
_FIRST_ROWS: Final = 1_000
MOST_TABLES: Final = 100
#: Columns that are asked about.
_MOST_ASKED: Final = 5
_LOOK: Final = re.compile(r"\d+|[^\W\d_]+")
#: Why columns refer to rows of other tables.
Reasons: TypeAlias = dict[tuple[str, Key], str]
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def guess(tabs: Mapping[str, Tab], said: Declared, options: Options, place: str) -> str:
    """A declaration of these tables as text; `said` is what their source says itself."""
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
    comments = {tab.name: [_comment(tab, tabs, *_by_cell) for _by_cell in _by_cells(tab, tabs, reasons)] for tab in tabs.values()}
    for tab in tabs.values():
        if tab.columns.primary is None and tab.name not in said.keys:
            tab.columns.primary = _pair(tab)
    lines = [
        f"# What the tables of {_line(place)} are, as far as names and cells say; written by `condgraph guess`.",
        "# Edit it, and load again. Nothing is guessed beside what stands here.",
        "guess = false",
    ]
    for tab in tabs.values():
        tab.name_column = tab.find_name()
        lines += ["", *_section(tab, said)]
    lines += ["", "[joins]"]
    for tab in tabs.values():
        for reference in tab.columns.foreign:
            targets = [_path(tabs[target], key) for target, key in reference.targets]
            written = json.dumps(targets[0] if len(targets) == 1 else targets, ensure_ascii=False)
            why = reasons.get((tab.name, reference.columns)) or _contained(tab, tabs, reference)
            lines.append(f"{_string(_path(tab, reference.columns))} = {written}  # {why}")
        lines += comments[tab.name]
    return "\n".join(lines) + "\n"


def _comment(tab: Tab, tabs: Mapping[str, Tab], at: int, target: str, key: Key) -> str:
    why = _contained(tab, tabs, Reference((at,), ((target, key),)))
    return f"# {_string(_path(tab, (at,)))} = {_string(_path(tabs[target], key))}  # perhaps: {why}, the names do not say so"


def _look(tab: Tab, wanted: Collection[Key] | None = None) -> None:
    """The cells of all columns, or some: types, and different values, as far as they can be remembered."""
    for chunk in tab.first_pass():
        check()
        for at, column in enumerate(chunk.columns):
            if wanted is not None and (at,) not in wanted:
                continue
            tab.profiles[at].add(column)
            if len(tab.columns.values.get((at,), ())) <= _MOST:
                tab.columns.add((at,), tab.cells_of(at, column))
        tab.columns.rows += len(chunk.numbers)


def _only_key(tab: Tab) -> Key | None:
    """A column that is a key by its cells, and called like one or the first of all."""
    columns = tab.columns
    if columns.rows <= 1:
        return None
    for at, name in enumerate(tab.names):
        # Texts are keys wherever all differ, numbers and times only in front or with such a name.
        called = bool(_KEY_NAME.search(plain(name)))
        kind = tab.profiles[at].decide(name).kind
        if columns.reference(at) is None and columns.unique((at,)) and (called or (at == 0 and kind in ("text", "number"))):
            return (at,)
    return None


def _by_cells(tab: Tab, tabs: Mapping[str, Tab], reasons: Reasons) -> Iterator[tuple[int, str, Key]]:
    """Add references that cells say; columns that only may be references, with the table and the key."""
    columns = tab.columns
    for at, name in enumerate(tab.names):
        mine = columns.of((at,))
        if (at,) == columns.primary or not mine or len(mine) > _MOST or any(at in item.columns for item in columns.foreign):
            continue
        check()
        candidates: list[tuple[str, Key, float]] = []
        for target, other in tabs.items():
            key = other.columns.primary
            if key is None or len(key) > 1 or len(other.columns.values.get(key, ())) > _MOST:
                continue
            keys = other.columns.values[key]
            inside = mine.inside(keys)
            called = target != tab.name and points(name, other.columns) and _names_a_key(name, other)
            if called and inside >= CONTAINED * len(mine):
                candidates = [(target, key, 2.0)]
                break
            own = target == tab.name and bool(_SELF.search(plain(name))) and inside >= CONTAINED * len(mine)
            if (inside == len(mine) or own) and keys:
                candidates.append((target, key, inside / len(keys)))
        if not candidates:
            continue
        target, key, share = max(candidates, key=lambda item: item[2])
        itself = next((item for item in candidates if item[0] == tab.name and _SELF.search(plain(name))), None)
        if itself is not None:
            target, key, share = itself
        texts = sum(not is_number(item) for item in mine)
        # "1st", "2nd" and so on are cells of many tables that have nothing to do with each other.
        codes = texts >= _MANY and texts == len(mine) and len(candidates) == 1 and not _WITHIN.search(plain(name))
        believed = share == 2.0 or itself is not None or codes
        if (believed and tabs[target].name != tab.name) or itself is not None:
            reference = Reference((at,), ((target, key),))
            columns.foreign.append(reference)
            tabs[target].columns.pointed = True
            how = "by its name, " if share == 2.0 else "" if itself is None else "called so, "
            reasons[tab.name, (at,)] = how + _contained(tab, tabs, reference)
        elif len(mine) > 1 and target != tab.name and (texts == len(mine) or (share >= 0.9 and _may_number(name))):
            yield at, target, key


def _names_a_key(name: str, other: Tab) -> bool:
    """Whether the name of a column says that it refers to a table: it is called like that table, or its key is called like a
    key. Two unrelated tables may each begin with a column `Rank`.
    """
    return plain(name) in key_names(other.name) or bool(_CODE_NAME.search(name.strip()))


def _may_number(name: str) -> bool:
    """Whether a column of numbers may be one of keys, by its name."""
    return plain(name) not in ("quantity", "count", "amount", "level", "rank", "position", "year", "no", "number")


def _called_key(tab: Tab, at: int) -> bool:
    """Whether a column is called like a key of its table."""
    name = plain(tab.names[at])
    return name == "id" or name in key_names(tab.name) or bool(_KEY_NAME.search(name))


def _look_of(cell: str) -> str:
    """A text with a sign for each run of digits, and one for each run of letters.

    >>> _look_of("S09"), _look_of("rue de Rivoli, 4")
    ('a9', 'a a a, 9')
    """
    return _LOOK.sub(lambda match: "9" if match[0].isdigit() else "a", cell)


class _FirstRows:
    """The first rows of a table: the different cells of each column, what they look like, and whether
    these are all rows.
    """

    def __init__(self, tab: Tab, *, alone: bool) -> None:
        self.tab = tab
        columns, self.whole = tab.first(_FIRST_ROWS, alone=alone)
        rows = len(columns[0]) if columns else 0
        listed = [[cell for cell in tab.cells_of(at, column) if cell is not None] for at, column in enumerate(columns)]
        self.cells, there = list(map(set, listed)), list(map(len, listed))
        self.looks = [frozenset(map(_look_of, of)) for of in self.cells]
        called = [_called_key(tab, at) for at in range(len(tab.names))]
        unique = [rows > 0 and there[at] == rows == len(cells) for at, cells in enumerate(self.cells)]
        self.keys = [at for at in range(len(called)) if unique[at] and (at == 0 or called[at])]
        #: Columns that would be keys but for so many cells that are missing.
        self.nearly = {at: rows - there[at] for at, of in enumerate(self.cells) if called[at] and rows > there[at] == len(of) > 1}

    def may_refer(self, at: int, other: _FirstRows, key: int) -> bool:
        """Whether a column may be of keys of a table, as far as first rows say."""
        mine, keys, name = self.cells[at], other.cells[key], self.tab.names[at]
        if other is self:
            return at != key and bool(_SELF.search(plain(name)))
        called = called_like(name, other.tab.names[key], other.tab.name)
        if not other.whole:
            return called or (not all(map(is_number, mine)) and self.looks[at] <= other.looks[key])
        return mine <= keys or (called and len(mine & keys) >= CONTAINED * len(mine))


#: The table, the column by its number, and what to say or ask of it.
Question: TypeAlias = tuple[str, int, str]


def worth_a_look(tabs: Mapping[str, Tab], asked: list[Question] | None = None) -> dict[str, set[Key]]:
    """The columns that may be keys, and those that may refer to them, as far as the first rows of all
    tables say: those whose cells are looked at. None of too many tables. `asked` says that the other
    rows may not be wanted, and takes what there is to say of columns that would refer to a key if no cell of it were missing.
    """
    result: dict[str, set[Key]] = {name: set() for name in tabs}
    if len(tabs) > MOST_TABLES:
        return result
    firsts = [_FirstRows(tab, alone=asked is not None) for tab in tabs.values()]
    for mine in firsts:
        for at, cells in enumerate(mine.cells):
            check()
            for other in firsts if cells else ():
                for key in other.keys:
                    if mine.may_refer(at, other, key):
                        result[mine.tab.name].add((at,))
                        result[other.tab.name].add((key,))
                for key, missing in other.nearly.items() if asked is not None and other is not mine else ():
                    path, to = _path(mine.tab, (at,)), _path(other.tab, (key,))
                    same = plain(mine.tab.names[at]) == plain(other.tab.names[key]) and at not in mine.nearly
                    if asked is not None and same and len(cells & other.cells[key]) >= CONTAINED * len(cells):
                        gaps = numbered(missing, "missing cell", "missing cells")
                        said = f"{to} would be a key that this refers to, but for {gaps}"
                        asked.append((mine.tab.name, at, f"{said}: join={{{path!r}: {to!r}}} makes it a reference"))
    for first in firsts:
        if result[first.tab.name]:
            # The first of them is the key.
            result[first.tab.name].update((key,) for key in first.keys)
    return result


def join_by_cells(tabs: Mapping[str, Tab], said: Declared) -> tuple[Reasons, list[tuple[str, int, str, Key]]]:
    """Add the references that cells of tables say beside those found already, with their keys; the
    reason for each, and columns that only may be references (table, column, table referred to, key).
    """
    reasons: Reasons = {}
    tried = [tab for tab in tabs.values() if tab.columns.primary is None and tab.name not in said.keys]
    for tab in tried:
        tab.columns.primary = _only_key(tab)
    perhaps = [
        (tab.name, at, target, key)
        for tab in tabs.values()
        for at, target, key in _by_cells(tab, tabs, reasons)
        # Numbers are keys of many tables: of one whose key is called so, and not where it is a key itself.
        if tab.names[at] not in said.keys.get(tab.name, ())
        and (_called_key(tabs[target], key[0]) or not any(map(is_number, tab.columns.values[at,])))
    ]
    referred = {target for tab in tabs.values() for item in tab.columns.foreign for target, _ in item.targets}
    for tab in tried:
        if tab.name not in referred:
            # Its rows go by number, as they do where nothing is guessed.
            tab.columns.primary = None
    for table, _ in reasons:
        # Rows that repeat would be one relation: who wants that says so.
        if tabs[table].columns.relation is None:
            tabs[table].columns.relation = False
    return reasons, perhaps


def join_text(tab: Tab, tabs: Mapping[str, Tab], one: Reference) -> str:
    """A reference that was found, with what speaks for it."""
    target, key = one.targets[0]
    return f"{_path(tab, one.columns)} = {_path(tabs[target], key)}: {_contained(tab, tabs, one)}"


def questions(tabs: Mapping[str, Tab], perhaps: Sequence[tuple[str, int, str, Key]]) -> list[Question]:
    """What to ask of columns that only may be references: the table, the column, and the words. There
    are few of them: the last says how many more columns there are.
    """
    result: list[Question] = []
    for table, at, target, key in perhaps[:_MOST_ASKED]:
        tab, other = tabs[table], tabs[target]
        path, to = f"{table}.{tab.names[at]}", f"{target}.{other.names[key[0]]}"
        some = shortened(", ".join(nsmallest(3, tab.columns.values[at,])), 60)
        said = (
            f"its {len(tab.columns.values[at,]):,} different values ({some}) are keys of {target!r}, and nothing more says that it "
            f"refers to them: join={{{path!r}: {to!r}}} makes it a reference, join=False leaves it"
        )
        more = len(perhaps) - _MOST_ASKED
        if len(result) == _MOST_ASKED - 1 and more > 0:
            said += f"; so it is with {numbered(more, 'further column', 'further columns')} (`condgraph guess` lists them)"
        result.append((table, at, said))
    return result


def linked(tabs: Mapping[str, Tab], options: Options) -> tuple[set[str], list[Question]]:
    """The tables of which one refers to another for certain, both, and what to ask of others
    (`questions`); reads those that may.
    """
    for tab in tabs.values():
        tab.begin(options, Declared())
    asked: list[Question] = []
    wanted = worth_a_look(tabs, asked)
    some = {name: tab for name, tab in tabs.items() if wanted[name]}
    for tab in some.values():
        _look(tab, wanted[tab.name])
    columns = {name: tab.columns for name, tab in some.items()}
    find_keys(columns, Declared())
    perhaps = join_by_cells(some, Declared())[1]
    references = [(name, target) for name, of in columns.items() for item in of.foreign for target, _ in item.targets]
    return {name for pair in references for name in pair}, asked + questions(tabs, perhaps)


def _contained(tab: Tab, tabs: Mapping[str, Tab], one: Reference) -> str:
    target, key = one.targets[0]
    cells, keys = tab.columns.values.get(one.columns), tabs[target].columns.values.get(key)
    if cells is None or keys is None:
        return "declared by the source"
    mine = cells.spelled(one.spelled) if one.pointed else cells
    inside = mine.inside(keys)
    text = f"{inside:,} of its {len(mine):,} different values are keys there"
    if inside < len(mine):
        text += f", not {', '.join(repr(shortened(cell, 40)) for cell in mine.beyond(keys)[:3])}"
    return _line(text + ", without the point of 1.0" * one.pointed)


def _pair(tab: Tab) -> Key | None:
    """Two columns that are a key together: references, and columns that number rows within them."""
    columns = tab.columns
    if not columns.rows:
        return None
    refs = [item.columns[0] for item in columns.foreign if len(item.columns) == 1]
    within = [at for at, name in enumerate(tab.names) if at not in refs and _WITHIN.search(plain(name))]
    # A table of parts begins with what they are parts of.
    whole = list(dict.fromkeys([*refs, 0]))
    pairs = [*combinations(refs, 2), *((item, other) for item in whole for other in within if item != other)][:_PAIRS]
    seen: dict[Key, set[int]] = {pair: set() for pair in pairs}
    for chunk, _ in tab.cells.chunks(None, tab.names):
        check()
        for pair in list(seen):
            known = seen[pair]
            for key in tab.keys(pair, chunk):
                if key is None or (same := hash(key)) in known or len(known) > _MOST:
                    del seen[pair]
                    break
                known.add(same)
    return next(iter(seen), None)


def _section(tab: Tab, said: Declared) -> Iterator[str]:
    """The lines about one table."""
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


#: What columns are called that say since when and until when rows hold.
_TIMES: Final = (
    frozenset(("valid_from", "start_date", "effective_from", "effective_date", "row_start", "sys_start", "start_time")),
    frozenset(("valid_to", "valid_until", "end_date", "effective_to", "expiry_date", "row_end", "sys_end", "end_time")),
)


def snake(name: str) -> str:
    """The name of a column in small letters, with underscores between words.

    >>> snake("Valid From"), snake("validFrom")
    ('valid_from', 'valid_from')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]+", "_", name).lower()


def _path(tab: Tab, key: Key) -> str:
    names = [tab.names[at] for at in key]
    return f"{tab.name}.{names[0]}" if len(names) == 1 else f"{tab.name}.({', '.join(names)})"


def _string(text: str) -> str:
    """A text in TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _line(text: str) -> str:
    """A text that stays within a comment."""
    return "".join(item if item.isprintable() else "�" for item in text)

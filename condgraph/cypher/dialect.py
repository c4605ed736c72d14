"""Cypher that condgraph wrote, in the words of another server: what the server lacks is written in another form.

The compilers write the Cypher of Neo4j. A text is read once into words and brackets, and each form that
the server does not read (`servers.Engine`) is replaced where it occurs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from condgraph.cypher.servers import Engine
from condgraph.engine.errors import UnsupportedError

# -- Words and brackets ------------------------------------------------------------------------------

_TOKEN: Final = re.compile(
    r"`(?:[^`]|``)*+`|'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"|\$?[^\W\d]\w*|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\s+|::|.", re.DOTALL
)
#: What a text holds that may have to be replaced.
_FORMS: Final = re.compile(r"\bCALL \(|\bUSING INDEX SEEK|\bIS ::|\b(?:split|valueType|datetime|truncate)\(")
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
#: Variables that the compiler numbers.
_NUMBERED: Final = re.compile(r"[a-z]+\d+").fullmatch
_AGGREGATES: Final = frozenset(("count", "collect", "sum", "min", "max", "avg"))
#: What ends the list of a `WITH`.
_CLAUSES: Final = frozenset(
    ("WHERE", "ORDER", "SKIP", "LIMIT", "MATCH", "OPTIONAL", "UNWIND", "CALL", "WITH", "RETURN", "UNION", "SET", "CREATE", "MERGE")
)
#: Words that a bracket may follow without a call of a function.
_WORDS: Final = frozenset(("WHEN", "THEN", "ELSE", "AND", "OR", "NOT", "XOR", "IN", "WHERE", "RETURN", "WITH", "AS", "IS"))
_TYPES: Final = re.compile(
    "ANY|BOOLEAN|DATE|DATETIME|DURATION|FLOAT|INTEGER|LIST|LOCAL|MAP|NODE|NOT|NOTHING|NULL|POINT|RELATIONSHIP|STRING|TIME|ZONED|<|>"
).fullmatch


class _Group:
    """Brackets, or (`open` "") a whole text: the words and brackets in it, which names of variables it
    holds, and whether it aggregates.
    """

    __slots__ = ("aggregates", "close", "items", "names", "open")

    def __init__(self, open: str, items: list[_Item] | None = None) -> None:
        self.open = open
        #: Nothing until it was read; a text may end before.
        self.close = "" if items is None else _CLOSING.get(open, "")
        self.items: list[_Item] = [] if items is None else items
        self.names: set[str] = set()
        self.aggregates = False


_Item: TypeAlias = str | _Group


def _read(text: str, engine: Engine) -> _Group:
    """A text as brackets, in which the forms within an expression are replaced."""
    root = _Group("")
    open_groups = [root]
    for token in _TOKEN.findall(text):
        group = open_groups[-1]
        if token in _CLOSING:
            inner = _Group(token)
            group.items.append(inner)
            open_groups.append(inner)
        elif group.open and token == _CLOSING[group.open]:
            open_groups.pop()
            group.close = token
            _close(group, engine)
        else:
            group.items.append(token)
    _close(root, engine)
    return root


def _close(group: _Group, engine: Engine) -> None:
    group.items = _expressions(group.items, engine)
    before = ""
    for place, item in enumerate(group.items):
        if isinstance(item, _Group):
            group.names |= item.names
            call = item.open == "(" and before.lower() in _AGGREGATES
            # A subquery aggregates by itself.
            group.aggregates |= call or (item.aggregates and item.open != "{")
            before = ""
        elif not item.isspace():
            key = group.open == "{" and _next(group.items, place) == ":"
            if item[0].isidentifier() and before != "." and not key:
                group.names.add(item)
            before = item


def _next(items: Sequence[_Item], place: int) -> _Item | None:
    """What follows, blanks apart."""
    for at in range(place + 1, len(items)):
        item = items[at]
        if isinstance(item, _Group) or not item.isspace():
            return item
    return None


def _written(group: _Group) -> str:
    """The text of brackets."""
    result: list[str] = []
    left: list[_Item] = [group]
    while left:
        item = left.pop()
        if isinstance(item, str):
            result.append(item)
            continue
        left += [item.close, *reversed(item.items), item.open]
    return "".join(result)


@lru_cache(maxsize=1_024)
def translated(text: str, engine: Engine) -> str:
    """A text that condgraph wrote for Neo4j, as an engine reads it; raises `UnsupportedError` where it
    would mean something else there. A text that was translated stays what it is.

    >>> from condgraph.cypher.servers import ARCADEDB
    >>> translated("RETURN e.x IS :: INTEGER NOT NULL | FLOAT NOT NULL AS b", ARCADEDB)
    'RETURN (e.x IS :: INTEGER NOT NULL OR e.x IS :: FLOAT NOT NULL) AS b'
    >>> print(translated("CALL (s1) {\\nMATCH (e2)\\nWITH DISTINCT e2\\nWITH e2 WHERE e2 IN s1\\nRETURN e2\\n}", ARCADEDB))
    CALL (s1) {
    MATCH (e2)
    WITH DISTINCT s1, e2
    WITH s1, e2 WHERE e2 IN s1
    RETURN e2
    }
    """
    if engine.reads_all or not _FORMS.search(text):
        return text
    root = _read(text, engine)
    if not engine.keeps_imports:
        _keep_imports(root, engine)
    return _written(root)


# -- Expressions -------------------------------------------------------------------------------------


def _expressions(items: list[_Item], engine: Engine) -> list[_Item]:
    """The items of brackets with the forms of expressions replaced."""
    result: list[_Item] = []
    place = 0
    while place < len(items):
        item = items[place]
        if item == "USING" and not engine.hints:
            while isinstance(items[place], str):
                place += 1
            place += 1
            del result[-1]
            continue
        if item == "::" and not engine.union_types and _before(result) == "IS":
            types, place = _types(items, place + 1)
            if len(types) > 1:
                _either(result, types)
            else:
                result += ["::", *types[0]]
            continue
        if isinstance(item, _Group) and item.open == "(":
            # A blank between them says that it was written here.
            called = result[-1] if result else ""
            if called == "split" and not engine.splits_by_lists:
                item = _by_one(item)
            elif called in ("datetime", "truncate") and not engine.times_by_key:
                item = _read_again(item, called, result)
            elif called == "valueType" and not engine.types_of_lists:
                # The word before belongs to it.
                del result[-1]
                result.append(_type(item))
                place += 1
                continue
        result.append(item)
        place += 1
    return result


def _before(items: Sequence[_Item]) -> str:
    """The word before, blanks apart; "" for brackets."""
    for item in reversed(items):
        if isinstance(item, _Group):
            return ""
        if not item.isspace():
            return item
    return ""


def _types(items: Sequence[_Item], place: int) -> tuple[list[list[_Item]], int]:
    """The types after `IS ::`, one list of words each, and the place after them."""
    result: list[list[_Item]] = [[]]
    depth, end = 0, place
    for at in range(place, len(items)):
        item = items[at]
        if isinstance(item, _Group):
            break
        if item == "|" and not depth:
            following = _next(items, at)
            if not isinstance(following, str) or not _TYPES(following):
                break
            result.append([])
        elif item.isspace() or item == "|" or _TYPES(item):
            depth += {"<": 1, ">": -1}.get(item, 0)
            result[-1].append(item)
        else:
            break
        end = at + 1
    # Blanks after the last type are those of the text.
    while end > place and isinstance(items[end - 1], str) and str(items[end - 1]).isspace():
        end -= 1
    for words in result:
        while words and isinstance(words[-1], str) and words[-1].isspace():
            words.pop()
    return result, end


def _either(result: list[_Item], types: Sequence[Sequence[_Item]]) -> None:
    """Put a test of each type in the place of the operand and the `IS` at the end of `result`."""
    while result.pop() != "IS":
        pass
    while isinstance(result[-1], str) and result[-1].isspace():
        result.pop()
    begin = _operand(result)
    operand = result[begin:]
    del result[begin:]
    tests = _Group("(", [])
    for words in types:
        if tests.items:
            tests.items.append(" OR ")
        tests.items += [*operand, " IS ::", *words]
    _close_plain(tests)
    result.append(tests)


def _operand(items: Sequence[_Item]) -> int:
    """Where the operand at the end of some items begins: a name, a call or brackets, with the
    properties and places that follow it.
    """
    place = len(items) - 1
    while place > 0:
        item, before = items[place], items[place - 1]
        if isinstance(item, _Group):
            follows = isinstance(before, _Group) or (before[-1:].isidentifier() or before[-1:] in ("`", *"0123456789"))
            if not follows or (isinstance(before, str) and before in _WORDS):
                return place
            place -= 1
        elif before == ".":
            place -= 2
        else:
            return place
    return max(place, 0)


def _close_plain(group: _Group) -> None:
    for item in group.items:
        if isinstance(item, _Group):
            group.names |= item.names
        elif item[0].isidentifier():
            group.names.add(item)


def _by_one(call: _Group) -> _Group:
    """The arguments of `split` by several texts as those by one: the others are replaced by it."""
    last = call.items[-1] if call.items else None
    if not isinstance(last, _Group) or last.open != "[" or "," not in call.items:
        return call
    parts = [item for item in last.items if isinstance(item, str) and item != "," and not item.isspace()]
    comma = len(call.items) - 1 - call.items[::-1].index(",")
    text: list[_Item] = call.items[:comma]
    if not parts:
        return call
    for part in parts[1:]:
        text = ["replace", _Group("(", [*text, ", ", part, ", ", parts[0]])]
    result = _Group("(", [*text, ", ", parts[0]])
    result.names, result.aggregates = call.names, call.aggregates
    return result


def _read_again(call: _Group, called: str, before: Sequence[_Item]) -> _Group:
    """The arguments of `datetime({date: x, ...})` or `datetime.truncate(unit, x)` with the time read from its
    text: some servers take one that was looked up by a key, `n[key]`, for now, or for no time.
    """
    items, kind = call.items, "datetime"
    if called == "datetime":
        (inner,) = items if len(items) == 1 else (None,)
        if not isinstance(inner, _Group) or inner.items[:2] != ["date", ":"]:
            return call
        items, kind = inner.items, "date"
        begin, end = 2, items.index(",") if "," in items else len(items)
    elif list(before[-3:-1]) != ["datetime", "."] or "," not in items:
        return call
    else:
        begin, end = items.index(",") + 1, len(items)
    while isinstance(first := items[begin], str) and first.isspace():
        begin += 1
    if first == kind:
        return call
    time = _Group("(", ["toString", _Group("(", items[begin:end])])
    items = [*items[:begin], kind, time, *items[end:]]
    result = _Group("(", [_Group("{", items)] if called == "datetime" else items)
    result.names, result.aggregates = call.names, call.aggregates
    return result


def _type(call: _Group) -> _Group:
    """An expression for the type of a value, with those of the elements of a list."""
    value = _written(_Group("", call.items))
    inner = (
        f"reduce(ts = '', y IN {value} | CASE WHEN ts CONTAINS coalesce(valueType (y), 'NULL') THEN ts "
        "WHEN ts = '' THEN valueType (y) ELSE ts + ' | ' + valueType (y) END)"
    )
    text = f"CASE WHEN {value} IS :: LIST<ANY> NOT NULL THEN 'LIST<' + {inner} + '> NOT NULL' ELSE valueType ({value}) END"
    result = _Group("(", [text])
    result.names = call.names
    return result


# -- What subqueries import --------------------------------------------------------------------------
# Where a `WITH` of a subquery drops what the subquery imports, it is named in each `WITH` after which it
# is used.


def _keep_imports(root: _Group, engine: Engine) -> None:
    left: list[tuple[_Group, list[str], str]] = [(root, [], "")]
    while left:
        group, imported, opening = left.pop()
        items: list[_Item] = []
        for branch in _branches(group.items):
            for body, brackets, names in _subqueries(branch, imported):
                listed = ", ".join(
                    item for item in brackets.items if isinstance(item, str) and (item[0].isidentifier() or item == "*")
                )
                if not engine.imports_in_brackets:
                    brackets.open, brackets.items, brackets.close = "", [], ""
                left.append((body, names, f" WITH {listed}" if listed and not engine.imports_in_brackets else ""))
            carried = _carried(branch, imported, engine) if imported else branch
            begin = 0 if branch[:1] != ["UNION"] else 3 if branch[2:3] == ["ALL"] else 1
            items += [*carried[:begin], opening, *carried[begin:]] if opening else carried
        group.items = items


def _branches(items: list[_Item]) -> Iterator[list[_Item]]:
    """The parts of a query between its `UNION`s, each with the `UNION` before it."""
    begin = 0
    for place, item in enumerate(items):
        if item == "UNION":
            yield items[begin:place]
            begin = place
    yield items[begin:]


def _subqueries(branch: Sequence[_Item], imported: Sequence[str]) -> Iterator[tuple[_Group, _Group, list[str]]]:
    """The bodies of the subqueries in a branch, each with the brackets that list what it imports, and with these names."""
    known = dict.fromkeys(imported)
    before: list[_Item] = ["", ""]
    for item in branch:
        if isinstance(item, str) and item.isspace():
            continue
        brackets = before[1]
        if isinstance(item, _Group) and item.open == "{" and before[0] == "CALL" and isinstance(brackets, _Group):
            listed = [name for name in brackets.items if isinstance(name, str) and name[0].isidentifier()]
            yield item, brackets, list(known) if "*" in brackets.items else listed
        names = item.names if isinstance(item, _Group) else {item}
        known |= dict.fromkeys(sorted(filter(_NUMBERED, names)))
        before = [before[1], item]


def _carried(branch: list[_Item], imported: Sequence[str], engine: Engine) -> list[_Item]:
    """A branch with what it imports named in each `WITH` after which it is used."""
    places = [
        place
        for place, item in enumerate(branch)
        if item == "WITH" and _before(branch[max(0, place - 2) : place]) not in ("STARTS", "ENDS") and _next(branch, place) != "*"
    ]
    wanted, after, end = set(imported), set[str](), len(branch)
    added: dict[int, list[str]] = {}
    for place in reversed(places):
        begin = place + 2 if _next(branch, place) != "DISTINCT" else place + 4
        stop = next((at for at in range(begin, len(branch)) if branch[at] in _CLAUSES), len(branch))
        for at in range(stop, end):
            item = branch[at]
            # What follows a point is a property.
            used = item.names if isinstance(item, _Group) else {item} if branch[at - 1] != "." else set()
            after |= used & wanted
        projection = branch[begin:stop]
        given = _given(projection)
        names = [name for name in imported if name in after and name not in given]
        if names and _aggregates(projection):
            raise UnsupportedError(
                engine.name, ["a list that a grouped part of a query looks up"], hint="graph.snapshot() answers it in process"
            )
        if names:
            added[begin] = names
        end = stop
    if not added:
        return branch
    result: list[_Item] = []
    for place, item in enumerate(branch):
        if place in added:
            result.append("".join(f"{name}, " for name in added[place]))
        result.append(item)
    return result


def _given(projection: Sequence[_Item]) -> set[str]:
    """The names that a `WITH` gives."""
    result, single, count = set[str](), "", 0
    before = ""
    for item in [*projection, ","]:
        if isinstance(item, str) and item.isspace():
            continue
        if item == ",":
            result |= {single} if count == 1 or before == "AS" else set()
            single, count, before = "", 0, ""
            continue
        if count:
            before = single
        single, count = item if isinstance(item, str) else "", count + 1
    return result


def _aggregates(projection: Sequence[_Item]) -> bool:
    group = _Group("", list(projection))
    before = ""
    for item in group.items:
        if isinstance(item, _Group):
            if (item.open == "(" and before.lower() in _AGGREGATES) or (item.aggregates and item.open != "{"):
                return True
            before = ""
        elif not item.isspace():
            before = item
    return False

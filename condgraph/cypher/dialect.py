"""Translates Cypher written by condgraph for servers that lack some of Neo4j's forms.

The compilers write Cypher for Neo4j. A query is split once into words and brackets, and each form that the server does not
read (`servers.Engine`) is replaced.
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
#: Forms that may have to be replaced.
_FORMS: Final = re.compile(r"\bCALL \(|\bUSING INDEX SEEK|\bIS ::|\b(?:split|valueType|datetime|truncate)\(")
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
#: Variables that the compiler numbers.
_NUMBERED: Final = re.compile(r"[a-z]+\d+").fullmatch
_AGGREGATES: Final = frozenset(("count", "collect", "sum", "min", "max", "avg"))
#: Words that end the projection of a `WITH`.
_CLAUSES: Final = frozenset(
    ("WHERE", "ORDER", "SKIP", "LIMIT", "MATCH", "OPTIONAL", "UNWIND", "CALL", "WITH", "RETURN", "UNION", "SET", "CREATE", "MERGE")
)
#: Words that may precede a bracket without being a function.
_WORDS: Final = frozenset(("WHEN", "THEN", "ELSE", "AND", "OR", "NOT", "XOR", "IN", "WHERE", "RETURN", "WITH", "AS", "IS"))
_TYPES: Final = re.compile(
    "ANY|BOOLEAN|DATE|DATETIME|DURATION|FLOAT|INTEGER|LIST|LOCAL|MAP|NODE|NOT|NOTHING|NULL|POINT|RELATIONSHIP|STRING|TIME|ZONED|<|>"
).fullmatch


class _Group:
    """A pair of brackets, or (`open` "") a whole query: its words and brackets, its variables, and whether it aggregates."""

    __slots__ = ("aggregates", "close", "items", "names", "open")

    def __init__(self, open: str, items: list[_Item] | None = None) -> None:
        self.open = open
        #: Empty until read; a query may end before.
        self.close = "" if items is None else _CLOSING.get(open, "")
        self.items: list[_Item] = [] if items is None else items
        self.names: set[str] = set()
        self.aggregates = False


_Item: TypeAlias = str | _Group


def _read(text: str, engine: Engine) -> _Group:
    """Parse a query into brackets, with the forms within expressions replaced."""
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
    for index, item in enumerate(group.items):
        if isinstance(item, _Group):
            group.names |= item.names
            call = item.open == "(" and before.lower() in _AGGREGATES
            # A subquery aggregates on its own.
            group.aggregates |= call or (item.aggregates and item.open != "{")
            before = ""
        elif not item.isspace():
            key = group.open == "{" and _next(group.items, index) == ":"
            if item[0].isidentifier() and before != "." and not key:
                group.names.add(item)
            before = item


def _next(items: Sequence[_Item], place: int) -> _Item | None:
    """Return the next item that is not blank."""
    for index in range(place + 1, len(items)):
        item = items[index]
        if isinstance(item, _Group) or not item.isspace():
            return item
    return None


def _written(group: _Group) -> str:
    """Return the text of a group."""
    result: list[str] = []
    pending: list[_Item] = [group]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            result.append(item)
            continue
        pending += [item.close, *reversed(item.items), item.open]
    return "".join(result)


@lru_cache(maxsize=1_024)
def translated(text: str, engine: Engine) -> str:
    """Translate a query that condgraph wrote for Neo4j; raises `UnsupportedError` if its meaning would change.

    A translated query stays unchanged.

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
    """Return items with the forms of expressions replaced."""
    result: list[_Item] = []
    index = 0
    while index < len(items):
        item = items[index]
        if item == "USING" and not engine.hints:
            while isinstance(items[index], str):
                index += 1
            index += 1
            del result[-1]
            continue
        if item == "::" and not engine.union_types and _before(result) == "IS":
            types, index = _types(items, index + 1)
            if len(types) > 1:
                _either(result, types)
            else:
                result += ["::", *types[0]]
            continue
        if isinstance(item, _Group) and item.open == "(":
            # A blank before the bracket marks what was written here.
            function = result[-1] if result else ""
            if function == "split" and not engine.splits_by_lists:
                item = _by_one(item)
            elif function in ("datetime", "truncate") and not engine.times_by_key:
                item = _read_again(item, function, result)
            elif function == "valueType" and not engine.types_of_lists:
                # Remove the function's name as well.
                del result[-1]
                result.append(_type(item))
                index += 1
                continue
        result.append(item)
        index += 1
    return result


def _before(items: Sequence[_Item]) -> str:
    """Return the last word that is not blank; "" for brackets."""
    for item in reversed(items):
        if isinstance(item, _Group):
            return ""
        if not item.isspace():
            return item
    return ""


def _types(items: Sequence[_Item], place: int) -> tuple[list[list[_Item]], int]:
    """Return the types after `IS ::`, each a list of words, and the index after them."""
    result: list[list[_Item]] = [[]]
    depth, end = 0, place
    for index in range(place, len(items)):
        item = items[index]
        if isinstance(item, _Group):
            break
        if item == "|" and not depth:
            following = _next(items, index)
            if not isinstance(following, str) or not _TYPES(following):
                break
            result.append([])
        elif item.isspace() or item == "|" or _TYPES(item):
            depth += {"<": 1, ">": -1}.get(item, 0)
            result[-1].append(item)
        else:
            break
        end = index + 1
    # Blanks after the last type belong to the text.
    while end > place and isinstance(items[end - 1], str) and str(items[end - 1]).isspace():
        end -= 1
    for words in result:
        while words and isinstance(words[-1], str) and words[-1].isspace():
            words.pop()
    return result, end


def _either(result: list[_Item], types: Sequence[Sequence[_Item]]) -> None:
    """Replace the operand and the `IS` at the end of `result` by a test for each type."""
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
    """Return where the operand at the end of some items begins: a name, a call or brackets, with its properties and subscripts."""
    index = len(items) - 1
    while index > 0:
        item, before = items[index], items[index - 1]
        if isinstance(item, _Group):
            follows = isinstance(before, _Group) or (before[-1:].isidentifier() or before[-1:] in ("`", *"0123456789"))
            if not follows or (isinstance(before, str) and before in _WORDS):
                return index
            index -= 1
        elif before == ".":
            index -= 2
        else:
            return index
    return max(index, 0)


def _close_plain(group: _Group) -> None:
    for item in group.items:
        if isinstance(item, _Group):
            group.names |= item.names
        elif item[0].isidentifier():
            group.names.add(item)


def _by_one(call: _Group) -> _Group:
    """Rewrite the arguments of `split` by several texts: the others are first replaced by the first one."""
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
    """Rewrite `datetime({date: x, ...})` or `datetime.truncate(unit, x)` to read the time from its text.

    Some servers take a time that was looked up by a key, `n[key]`, for now, or for no time.
    """
    items, kind = call.items, "datetime"
    if called == "datetime":
        (inner,) = items if len(items) == 1 else (None,)
        if not isinstance(inner, _Group) or inner.items[:2] != ["date", ":"]:
            return call
        items, kind = inner.items, "date"
        start, end = 2, items.index(",") if "," in items else len(items)
    elif list(before[-3:-1]) != ["datetime", "."] or "," not in items:
        return call
    else:
        start, end = items.index(",") + 1, len(items)
    while isinstance(first := items[start], str) and first.isspace():
        start += 1
    if first == kind:
        return call
    time = _Group("(", ["toString", _Group("(", items[start:end])])
    items = [*items[:start], kind, time, *items[end:]]
    result = _Group("(", [_Group("{", items)] if called == "datetime" else items)
    result.names, result.aggregates = call.names, call.aggregates
    return result


def _type(call: _Group) -> _Group:
    """Return an expression for the type of a value, including the types of a list's elements."""
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
# Where a `WITH` in a subquery drops an imported variable, it is added to each `WITH` after which it is
# used.


def _keep_imports(root: _Group, engine: Engine) -> None:
    pending: list[tuple[_Group, list[str], str]] = [(root, [], "")]
    while pending:
        group, imported, opening = pending.pop()
        items: list[_Item] = []
        for branch in _branches(group.items):
            for body, brackets, names in _subqueries(branch, imported):
                listed = ", ".join(
                    item for item in brackets.items if isinstance(item, str) and (item[0].isidentifier() or item == "*")
                )
                if not engine.imports_in_brackets:
                    brackets.open, brackets.items, brackets.close = "", [], ""
                pending.append((body, names, f" WITH {listed}" if listed and not engine.imports_in_brackets else ""))
            carried = _carried(branch, imported, engine) if imported else branch
            begin = 0 if branch[:1] != ["UNION"] else 3 if branch[2:3] == ["ALL"] else 1
            items += [*carried[:begin], opening, *carried[begin:]] if opening else carried
        group.items = items


def _branches(items: list[_Item]) -> Iterator[list[_Item]]:
    """Yield the parts of a query between its `UNION`s, each with the `UNION` before it."""
    begin = 0
    for index, item in enumerate(items):
        if item == "UNION":
            yield items[begin:index]
            begin = index
    yield items[begin:]


def _subqueries(branch: Sequence[_Item], imported: Sequence[str]) -> Iterator[tuple[_Group, _Group, list[str]]]:
    """Yield the subqueries of a branch: the body, the brackets with its imports, and the imported names."""
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
    """Add the imports of a branch to each `WITH` after which they are used."""
    places = [
        index
        for index, item in enumerate(branch)
        if item == "WITH" and _before(branch[max(0, index - 2) : index]) not in ("STARTS", "ENDS") and _next(branch, index) != "*"
    ]
    wanted, after, end = set(imported), set[str](), len(branch)
    added: dict[int, list[str]] = {}
    for index in reversed(places):
        begin = index + 2 if _next(branch, index) != "DISTINCT" else index + 4
        stop = next((position for position in range(begin, len(branch)) if branch[position] in _CLAUSES), len(branch))
        for position in range(stop, end):
            item = branch[position]
            # A name after a dot is a property.
            used = item.names if isinstance(item, _Group) else {item} if branch[position - 1] != "." else set()
            after |= used & wanted
        projection = branch[begin:stop]
        projected = _given(projection)
        names = [name for name in imported if name in after and name not in projected]
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
    for index, item in enumerate(branch):
        if index in added:
            result.append("".join(f"{name}, " for name in added[index]))
        result.append(item)
    return result


def _given(projection: Sequence[_Item]) -> set[str]:
    """Return the names that a `WITH` projects."""
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

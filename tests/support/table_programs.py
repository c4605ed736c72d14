"""Random tables over random programs, as table clauses and as functions of LLM queries, including wrong ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.support.graphs import Pick
from tests.support.programs import typo

SUMS: Final = ("count", "sum", "mean", "median", "stdev", "min", "max", "values", "count(distinct", "top(2,", "bottom(1,")
OPERATORS: Final = ("=", "!=", "<", ">", "<=", ">=")
LITERALS: Final = ("1", "2", "0", "-3", "2003", "30", "70 kg", "'Oslo'", "'Ann'", "1999-01-01", "5 metre", "'5-7'", "'n'")


@dataclass(frozen=True)
class Names:
    """The names in paths."""

    attributes: Sequence[str]
    relations: Sequence[str]
    qualifiers: Sequence[str]


def _quoted(pick: Pick, name: str) -> str:
    name = typo(pick, name) if pick.below(25) == 0 else name
    return f'"{name}"' if '"' not in name else f"`{name}`"


def path(pick: Pick, names: Names) -> str:
    """Return a path of up to three steps."""
    kind = pick.below(60)
    if kind < 3:
        return "self"
    if kind == 3:
        return f"@{_quoted(pick, pick.one(names.qualifiers))}"
    steps = [
        ("^" if pick.below(4) == 0 else "") + _quoted(pick, pick.one(names.relations))
        for _ in range((0, 0, 1, 1, 2)[pick.below(5)])
    ]
    last = pick.one((*names.attributes, *names.relations[:2]))
    result = ".".join([*steps, _quoted(pick, last)])
    return f"{result}@{_quoted(pick, pick.one(names.qualifiers))}" if pick.below(8) == 0 else result


def expression(pick: Pick, names: Names) -> str:
    """Return a path or a calculation."""
    kind = pick.below(10)
    if kind == 0:
        return f"{pick.one(('year', 'month', 'day', 'name'))}({path(pick, names)})"
    if kind == 1:
        return f"({path(pick, names)} {pick.one(('+', '-', '*', '/'))} {pick.one((path(pick, names), '2', '0'))})"
    return path(pick, names)


def a_sum(pick: Pick, names: Names) -> str:
    """Return an aggregate of a group."""
    function = pick.one(SUMS)
    if function == "count" and pick.below(2):
        return "count()"
    return f"{function}{' ' if '(' in function else '('}{expression(pick, names)})"


def test(pick: Pick, of: Sequence[str]) -> str:
    """Return a test of some of the expressions `of`."""
    kind = pick.below(8)
    if kind == 0:
        return f"not ({test(pick, of)})"
    if kind == 1:
        return f"({test(pick, of)} {pick.one(('and', 'or'))} {test(pick, of)})"
    if kind == 2:
        return f"{pick.one(of)} is {pick.one(('missing', 'known', 'not null'))}"
    if kind == 3:
        return f"{pick.one(of)} {pick.one(('in', 'not in'))} ({pick.one(LITERALS)}, {pick.one(LITERALS)})"
    return f"{pick.one(of)} {pick.one(OPERATORS)} {pick.one(LITERALS)}"


def clause(pick: Pick, names: Names) -> str:
    """Return a complete clause."""
    keys = [expression(pick, names) for _ in range((0, 1, 1, 1, 2)[pick.below(5)])]
    shown = [a_sum(pick, names) if keys or pick.below(3) == 0 else expression(pick, names) for _ in range(1 + pick.below(3))]
    columns = [*keys, *shown]
    parts = [f"where {test(pick, [expression(pick, names) for _ in range(2)])}"] if pick.below(4) == 0 else []
    parts += [f"group by {', '.join(keys)}"] if keys else []
    parts += [f"show {', '.join(shown)}"]
    parts += [f"having {test(pick, columns)}"] if pick.below(4) == 0 else []
    if pick.below(2):
        by = [f"{pick.one(columns)}{pick.one(('', ' desc', ' asc'))}" for _ in range(1 + pick.below(2))]
        parts.append(f"order by {', '.join(by)}")
    parts += [f"limit {pick.below(4)}{pick.one(('', ' with ties'))}"] if pick.below(3) == 0 else []
    parts += [f"offset {pick.below(3)}"] if pick.below(6) == 0 else []
    return " ".join(parts)


def functions(pick: Pick, program: str, names: Names) -> str:
    """Return an LLM query extended by functions of tables."""
    lines = program.split("\n")
    columns = [*names.attributes, *names.relations]

    def add(call: str) -> None:
        lines.append(f'Query{len(lines) + 1}: "{call}"')

    output = f"output_of_query{len(lines)}"
    keys = [plain(pick.one(columns)) for _ in range(1 + (pick.below(4) == 0))]
    key_list = f"'{keys[0]}'" if len(keys) == 1 else f"[{', '.join(repr(key) for key in keys)}]"
    aggregate = pick.one(
        ("count", "sum", "avg", "max", "min", "median", "stdev", *(["smu"] if pick.below(9) == 0 else []), "distinct", "values")
    )
    if pick.below(4):
        add(f"group_by(set='{output}', key={key_list}, aggregate='{aggregate}', of='{plain(pick.one(columns))}')")
    for _ in range(pick.below(3)):
        output = f"output_of_query{len(lines)}"
        add(
            pick.one(
                (
                    f"having(set='{output}', value>'{pick.below(3)}')",
                    f"having(set='{output}', condition='count > 1')",
                    f"order_by(set='{output}', order='{pick.one(('asc', 'desc'))}')",
                    f"order_by(set='{output}', key='{keys[0]}')",
                    f"limit(set='{output}', n={pick.below(4)})",
                    f"top(set='{output}', n=2, key='{plain(pick.one(columns))}')",
                    f"bottom(set='{output}', n=1)",
                    f"max(set='{output}')",
                    f"sum(set='{output}')",
                )
            )
        )
    return "\n".join(lines)


def on_top(pick: Pick, program: Any, names: Names) -> tuple[Any, dict[str, Any]]:
    """Return a program with a table, and its options."""
    kind = pick.below(6)
    if kind < 2:
        # Most programs end on values, which have no table; these end on entities.
        program = pick.one(("FindAll()", f"FindAll() Relate({plain(pick.one(names.relations))}, forward)"))
    elif kind == 2:
        program = f"Query1: \"get_information(relation='{plain(pick.one(names.attributes))}')\""
    if isinstance(program, str) and program.startswith("Query") and pick.below(4):
        return functions(pick, program, names), {}
    return program, {"table": clause(pick, names)} | ({"on_unknown": "empty"} if kind < 2 else {})


def plain(name: str) -> str:
    """Return a name without characters that programs must escape."""
    return re.sub(r"[^\w ]", "", name)

"""Queries whose answers are known, of a structure each, as a file of JSON lines:

    {"type": "2p", "query": ["Oscar", ["winner", "born"]], "easy": ["E1"], "hard": ["E7", "E9"]}

`query` is BetaE's nested form, with ids of entities and names of relations (`^` before one that is
followed from object to subject); numbers are taken as texts. Easy answers follow from the graph
that is asked, hard ones need an edge that it misses.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from condgraph.engine.errors import LoadError
from condgraph.languages.logic.convert import tree_of
from condgraph.languages.logic.structures import NEGATION, UNION, nested
from condgraph.languages.logic.tree import Anchor, Complement, Intersection, Projection, Tree, Union

#: A line of a file is at most so long, and holds at most so many parts of a query.
LONGEST_LINE: Final = 1 << 24
_DEEPEST: Final = 40


@dataclass(frozen=True, slots=True)
class LogicCase:
    """A query and its answers, as ids. `kind` is the name of its structure."""

    kind: str
    query: Any
    easy: tuple[str, ...]
    hard: tuple[str, ...]

    def tree(self) -> Tree:
        """Its query computation tree; constants are ids."""
        return by_id(tree_of(nested(self.query)))


def by_id(tree: Tree) -> Tree:
    """The same tree with constants that are ids of entities."""
    if isinstance(tree, Anchor):
        return Anchor(tree.name, True, tree.span)
    if isinstance(tree, Projection):
        return Projection(tree.relation, by_id(tree.of), tree.inverse, tree.anti, tree.variable, tree.span)
    if isinstance(tree, Intersection):
        return Intersection(tuple(map(by_id, tree.parts)))
    if isinstance(tree, Union):
        return Union(tuple(map(by_id, tree.parts)))
    return Complement(by_id(tree.part)) if isinstance(tree, Complement) else tree


def read_cases(path: str | os.PathLike[str], *, paired: bool = False) -> Iterator[LogicCase]:
    """The queries of a file. `paired`: relations are BetaE's numbers, 2k for a relation and 2k + 1
    for its inverse, and the graph has the even ones alone.

    Raises `LoadError` for a line that is none.
    """
    name = os.fspath(path)
    for row, line in _lines(path, encoding="utf-8"):
        if line.strip():
            yield _case(line, name, row, paired)


def read_triples(path: str | os.PathLike[str]) -> Iterator[tuple[str, str, str]]:
    """The lines of a file of three columns with tabs: id, predicate, id. Raises `LoadError` for
    another line.
    """
    name = os.fspath(path)
    for row, line in _lines(path, encoding="utf-8-sig", newline=""):
        cells = line.rstrip("\r\n").split("\t")
        if cells == [""]:
            continue
        if len(cells) != 3 or not all(cells):
            raise LoadError(f"{len(cells)} columns with tabs, not 3 that are filled: id, predicate, id", file=name, row=row)
        yield cells[0], cells[1], cells[2]


def _lines(path: str | os.PathLike[str], encoding: str, newline: str | None = None) -> Iterator[tuple[int, str]]:
    """The lines of a file, which is somebody's, with their numbers. Raises `LoadError` for bytes
    that are no UTF-8.
    """
    row = 0
    with Path(path).open(encoding=encoding, newline=newline) as file:
        try:
            while line := file.readline(LONGEST_LINE):
                row += 1
                yield row, line
        except UnicodeDecodeError as error:
            raise LoadError(f"no UTF-8: {error.reason}", file=os.fspath(path), row=row + 1) from None


def write_cases(cases: Iterable[LogicCase], path: str | os.PathLike[str]) -> int:
    """Write queries to a file; how many."""
    number = 0
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for case in cases:
            found = {"type": case.kind, "query": case.query, "easy": list(case.easy), "hard": list(case.hard)}
            file.write(json.dumps(found, ensure_ascii=False) + "\n")
            number += 1
    return number


def _case(line: str, name: str, row: int, paired: bool) -> LogicCase:
    if len(line) >= LONGEST_LINE:
        raise LoadError(f"a line has more than {LONGEST_LINE:,} characters", file=name, row=row)
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LoadError(f"no JSON: {error}", file=name, row=row) from None
    if not isinstance(found, dict) or not {"type", "query", "easy", "hard"} <= found.keys():
        raise LoadError("a query is an object with type, query, easy and hard", file=name, row=row)
    if not isinstance(found["type"], str):
        raise LoadError("the type of a query is a text", file=name, row=row, field="type")
    answers = [_ids(found[which], name, row, which) for which in ("easy", "hard")]
    kind = found["type"].removesuffix("-DNF")
    return LogicCase(kind, _texts(found["query"], name, row, paired, 0), *answers)


def _ids(found: Any, name: str, row: int, field: str) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(one, (str, int)) for one in found):
        raise LoadError("answers are a list of ids", file=name, row=row, field=field)
    return tuple(str(one) for one in found)


def _texts(part: Any, name: str, row: int, paired: bool, depth: int) -> Any:
    """The nested form with texts in place of numbers, but for the marks of negation and union."""
    if depth > _DEEPEST:
        raise LoadError(f"a query is nested more than {_DEEPEST} deep", file=name, row=row, field="query")
    if isinstance(part, str):
        return part
    if isinstance(part, int):
        return str(part)
    if not isinstance(part, list) or not part:
        raise LoadError(f"a query is made of lists, not of {part!r}", file=name, row=row, field="query")
    if all(isinstance(one, (str, int)) for one in part) and depth:
        return [_relation(one, paired) for one in part]
    return [_texts(one, name, row, paired, depth + 1) for one in part]


def _relation(one: str | int, paired: bool) -> str | int:
    if isinstance(one, int) and one in (NEGATION, UNION):
        return one
    if paired and str(one).isdecimal():
        number = int(one)
        return f"^{number - 1}" if number % 2 else str(number)
    return str(one)

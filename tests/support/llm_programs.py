"""Random graphs of tables and of facts in time, and random LLM queries over them, with all subsets of parameters and
all kinds of functions.

Choices come from a `Pick` (`graphs`). There are few names and values, so that programs find something; some of the
programs are meaningless and must give the same error everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from condgraph.engine.facts import Entity, EntityKind, Ref, Sourced, Statement
from condgraph.engine.values import UNKNOWN, Quantity, Time, text_of
from tests.support.graphs import Pick
from tests.support.programs import typo

PLAYERS = ("Ann", "Bob", "Cid", "Dora Maar", "Zoë")
TEAMS = ("Red", "Blue", "Green")
#: The columns of the table, each with its possible cells: a value, or a value with its raw text.
CELLS: dict[str, tuple[Any, ...]] = {
    "Name": PLAYERS,
    "Team": TEAMS,
    "Points": (Quantity(5), Quantity(7), Quantity(10), (Quantity(1000), "1,000"), Quantity(0.5)),
    "Weight": (Quantity(70, "kg"), Quantity(75.5, "kg"), Quantity(150, "lb"), "heavy"),
    "Joined": (Time.day(1999, 5, 1), Time.day(2003, 3, 8), Time.year(2003), (Time.day(2003, 12, 24), "Dec 24, 2003")),
    "Score": ("5-7", "5-10", "10-2", "7-7 (a)", "6"),
    "Note": ("captain", "new", "1999", UNKNOWN, Quantity(3), "no"),
}
COLUMNS = tuple(CELLS)
RELATIONS = ("works at", "knows", "city", "age", "plays for")
KEYS = ("time", "start time", "end time", "role")
PLACES = ("Acme", "Beta", "Oslo", "Rome")
YEARS = (1998, 1999, 2000, 2003, 2005, 2010)
LITERALS = (*PLAYERS, *TEAMS, *PLACES, "boss", "clerk", "10", "5", "0", "70 kg", "2003", "1999", "2003-03-08", "highest", "most")
FUNCTIONS_OF_ONE = (
    *("count", "sum", "mean", "median", "max", "min", "most", "least", "previous_row", "next_row", "row_number", "first", "last"),
    *("stdev", "sort", "unique", "set_negation", "extract_year", "is_empty", "exists", "round", "argmax"),
)
FUNCTIONS_OF_TWO = (
    *("set_union", "set_intersection", "set_difference", "compare", "difference", "subtract", "add", "divide", "equal", "is_in"),
    *("duration", "max", "sum"),
)


def table(pick: Pick) -> list[Any]:
    """Return a table of a few rows as items of the source "people"; cells may be missing or occur twice."""
    items: list[Any] = []
    for number in range(1, 3 + pick.below(5)):
        row = f"people/{number}"
        items.append(Sourced(Entity(row, f"people row {number}", EntityKind.ROW, number), (("people", number),)))
        for column in COLUMNS:
            for _ in range((1, 1, 1, 1, 0, 2)[pick.below(6)]):
                cell = pick.one(CELLS[column])
                value, raw = cell if isinstance(cell, tuple) else (cell, None)
                items.append(Sourced(Statement(row, column, value, (), number, raw), (("people", number),)))
    return items


def _validity(pick: Pick) -> tuple[tuple[str, Any], ...]:
    kind = pick.below(6)
    first, last = sorted((pick.one(YEARS), pick.one(YEARS)))
    result: list[tuple[str, Any]] = []
    if kind in (0, 1, 2):
        result = [("start time", Time.year(first)), ("end time", Time.year(last))]
    elif kind == 3:
        result = [("point in time", pick.one((Time.day(first, 3, 8), Time.month(first, 5), Time.year(first))))]
    elif kind == 4:
        result = [pick.one((("start time", Time.year(first)), ("end time", Time.day(last, 6, 30)), ("start time", UNKNOWN)))]
    if pick.below(2):
        result.append(("role", pick.one(("boss", "clerk", Ref("Bob")))))
    return tuple(result)


def facts(pick: Pick) -> list[Any]:
    """Return statements about people and places, most with a validity, as items of the source "work"."""
    items: list[Any] = []
    for _ in range(4 + pick.below(16)):
        subject = pick.one((*PLAYERS, *PLACES[:2]))
        kind = pick.below(6)
        if kind < 3:
            statement = Statement(subject, "works at", Ref(pick.one(PLACES[:2])), _validity(pick))
        elif kind == 3:
            statement = Statement(subject, pick.one(("knows", "plays for")), Ref(pick.one((*PLAYERS, *TEAMS))), _validity(pick))
        elif kind == 4:
            statement = Statement(subject, "city", pick.one(PLACES[2:]))
        else:
            age = pick.one((Quantity(30), Quantity(40), Quantity(2**53 + 1), Time.year(2003)))
            statement = Statement(subject, "age", age, _validity(pick))
        items.append(Sourced(statement, (("work", 0),) if pick.below(3) else (("work", 0), ("more work", 1))))
    return items


def graph(pick: Pick) -> tuple[list[Any], bool | None]:
    """Return the items of a table (True), of facts (False), or of both (None), and which of these."""
    kind = pick.one((True, False, None))
    return [*(table(pick) if kind is not False else ()), *(facts(pick) if kind is not True else ())], kind


#: The possible literals for each relation.
OBJECTS: dict[str, tuple[str, ...]] = {
    **{column: tuple(cell[1] if isinstance(cell, tuple) else text_of(cell) for cell in cells) for column, cells in CELLS.items()},
    "row_number": ("1", "2", "3", "highest"),
    "works at": PLACES[:2],
    "knows": PLAYERS,
    "plays for": (*PLAYERS, *TEAMS),
    "city": PLACES[2:],
    "age": ("30", "40", "2003", "9007199254740993"),
    "time": ("2000", "2003", "1999", "latest", "earliest"),
    "start time": ("2000", "2003", "1998", "first"),
    "end time": ("2003", "2010", "last"),
    "role": ("boss", "clerk", "Bob"),
}


@dataclass(frozen=True)
class Vocabulary:
    """The words of programs over a kind of graph; `heads` are those of tables and of facts."""

    columns: Sequence[str]
    relations: Sequence[str]
    keys: Sequence[str]
    heads: tuple[Sequence[str], Sequence[str]]
    literals: Sequence[str]
    objects: Mapping[str, Sequence[str]]


PLAIN: Final = Vocabulary(COLUMNS, RELATIONS, KEYS, (PLAYERS, (*PLAYERS, *PLACES[:2])), LITERALS, OBJECTS)


class _Maker:
    """A program under construction."""

    def __init__(self, pick: Pick, wrong: bool, words: Vocabulary) -> None:
        self.pick, self.words = pick, words
        self.slips = wrong and pick.below(5) == 0

    def quoted(self, text: str) -> str:
        """Return a text escaped for quotes, sometimes misspelled."""
        if self.slips and self.pick.below(5) == 0:
            text = typo(self.pick, text)
        return text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")

    def operand(self, earlier: int) -> str:
        """Return the output of an earlier query, or a literal."""
        pick = self.pick
        if earlier and pick.below(3):
            return f"output_of_query{earlier - (pick.below(earlier) if pick.below(3) == 0 else 0)}"
        return self.quoted(pick.one(self.words.literals))

    def search(self, earlier: int, tables: bool) -> str:
        """Return a `get_information` with a random subset of parameters."""
        pick, words = self.pick, self.words
        names = (*words.columns, "row_number") if tables else words.relations
        if pick.below(3) == 0:
            # A complete column, or one of an output, so that functions get many values.
            of = f", head_entity='output_of_query{earlier}'" if earlier and pick.below(3) else ""
            return f"get_information(relation='{self.quoted(pick.one(names))}'{of})"
        parts = []
        relation = ""
        used = earlier == 0
        for letter, parameter in zip("HRTKV", ("head_entity", "relation", "tail_entity", "key", "value"), strict=True):
            if pick.below(5) > (3 if letter == "R" else 1):
                continue
            if letter == "R":
                text = relation = pick.one(names)
            elif letter == "K":
                text = pick.one(names if tables or pick.below(2) else words.keys)
                relation = text if not relation or pick.below(2) else relation
            elif not used:
                used, text = True, f"output_of_query{earlier}"
            elif letter == "H" or not relation:
                text = pick.one(words.heads[not tables])
            else:
                text = pick.one(words.objects[relation])
            operator = pick.one(("=", "=", "=", ">", "<", ">=", "<=", "!=")) if letter in "TV" else "="
            parts.append(f"{parameter}{operator}'{text if text.startswith('output_of') else self.quoted(text)}'")
        if not used and pick.below(3) and "head_entity" not in str(parts):
            parts.append(f"head_entity='output_of_query{earlier}'")
        return f"get_information({', '.join(parts)})"

    def step(self, earlier: int, tables: bool) -> str:
        """Return one query."""
        pick = self.pick
        kind = pick.below(8)
        if earlier == 0 or kind < 3:
            return self.search(earlier, tables)
        output = f"output_of_query{earlier}"
        if kind == 3:
            operator = pick.one(("=", "!=", "<", ">", "<=", ">="))
            return f"keep(set='{output}', value{operator}'{self.operand(earlier - 1)}')"
        if kind == 4:
            return f"{pick.one(FUNCTIONS_OF_TWO)}(set1='{output}', set2='{self.operand(earlier)}')"
        if kind == 5 and earlier > 1:
            operator = pick.one(("=", "<", ">"))
            return f"if({output} {operator} output_of_query{earlier - 1}, {output}, '{self.operand(earlier)}')"
        return f"{pick.one(FUNCTIONS_OF_ONE)}(set='{output}')"


def program(pick: Pick, *, most: int = 4, tables: bool | None = None, wrong: bool = True, words: Vocabulary = PLAIN) -> str:
    """Return a program of several queries, each of which uses an earlier one. With `wrong`, a name or a literal is
    sometimes misspelled.
    """
    maker = _Maker(pick, wrong, words)
    lines = []
    over_table = pick.below(2) == 1 if tables is None else tables
    for number in range(1 + pick.below(most)):
        if tables is None and pick.below(6) == 0:
            over_table = not over_table
        lines.append(f'Query{number + 1}: "{maker.step(number, over_table)}"')
    return "\n".join(lines)

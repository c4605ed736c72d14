"""Graphs of difficult data, and the words that programs over them use.

Texts that differ only in case, in Unicode normalisation, or in planes that UTF-16 sorts differently; texts with quotes,
backslashes and control characters; texts too long for an index that differ in their last letter; values with another
raw text in their source (padding, `1,000`, `1.50`); numbers that no float can hold, and sums that depend on their
order; one column with every kind of value.
"""

from __future__ import annotations

import unicodedata
from decimal import Decimal
from typing import Any, Final

from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Sourced, Statement, Subclass
from condgraph.engine.values import UNKNOWN, Quantity, Time, text_of
from tests.support.graphs import POINTS, SPANS, Pick
from tests.support.llm_programs import Vocabulary
from tests.support.programs import Words

#: Texts just longer than an index allows, in ASCII and in letters of two bytes; two of each, which
#: differ at the end.
LONG: Final = ("x" * 4_100 + "a", "x" * 4_100 + "b", "\u00e9" * 2_050 + "1", "\u00e9" * 2_050 + "2")
NAMES: Final = (
    *("Zo\u00eb", unicodedata.normalize("NFD", "Zo\u00eb"), "ZO\u00cb", "zoe", "stra\u00dfe", "STRASSE", "\u0130", "i\u0307"),
    *("O'Neil", 'a "b" c', "back\\slash", "\\u0060`", "${x} $x", "a`b", "%s _%", "new line", "tab", "<b>&amp;", "?x . #", "{", "}"),
    *("\uff21", "\U0001f701", "\ud7ff", "\ue000", "\uffee", "\U00010000z", "a\U0001f701", "a\uff21"),
    *("nan", "inf", "-0", "0", "1,000", "1.50", "1e3", "null", "true", "unknown", "n/a", "-", "10", "9", "2003", "c", "C"),
    *LONG,
)
#: The texts of columns.
TEXTS: Final = (*NAMES, "", "\u200b", "10 kg", "5-7", "5-10", "$5", "  padded  ", "two  spaces", "x" * 4_100, "Yes", "no")
NUMBERS: Final[tuple[Any, ...]] = (
    *(0, -0.0, 1, 9, 10, 1000, 1.5, -1, 0.1, 0.2, 0.3, 1e16, 1.0, -1e16, 1e-9, 3.3, 1e308, -1e308),
    *(2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 + 1, -(2**63) - 1, 10**30 + 1),
    *map(Decimal, ("0.1", "0.1000000000000000055511151231257827", "9007199254740993", "1.50", "10.00")),
)
UNITS: Final = ("1", "kg", "lb", "kg ", "\u00b5m", "m/s")
#: Possible raw texts of a number.
RAWS: Final = (None, None, None, "10", "9", " x", "1,000", "1.50", "$5", "c. 10", "\U0001f701", "\uff21", "", " padded ", "10")
PEOPLE: Final = tuple(f"p{i}" for i in range(12))
CONCEPTS: Final = ("k0", "k1", "k2")
COLUMNS: Final = ("Name", "Mixed", "Amount", "When", "Note", "odd `col` 'x'")
ATTRIBUTES: Final = ("mixed", "amount", "when", "note", "IS", "odd `p` \\u0060 'x'", "same")
RELATIONS: Final = ("knows", "MEMBER_OF", "same", 'rel "q" \\')
QUALIFIERS: Final = ("start time", "end time", "point in time", "mixed", "of", "odd `q`")
SOURCE: Final = "ugly's table"


def a_number(pick: Pick) -> Quantity:
    """Return a quantity, mostly without a unit."""
    return Quantity(pick.one(NUMBERS), pick.one((*(("1",) * 6), *UNITS)))


def a_cell(pick: Pick, kind: int) -> tuple[Any, str | None]:
    """Return a value of a kind (0 texts, 1 numbers, 2 times, 3 anything), and its raw text."""
    if kind == 3:
        kind = pick.below(8)
    if kind == 0 or kind > 5:
        return pick.one(TEXTS), pick.one(RAWS) if pick.below(4) == 0 else None
    if kind == 1 or kind == 4:
        return a_number(pick), pick.one(RAWS)
    if kind == 2 or kind == 5:
        return pick.one((*POINTS, *POINTS, *SPANS, Time.year(2003), Time.day(2003, 5, 1))), pick.one(RAWS)
    return UNKNOWN, pick.one(RAWS)


#: The kind of values in each column.
_KINDS: Final = {"Mixed": 3, "Amount": 1, "When": 2, "mixed": 3, "amount": 1, "when": 2, "same": 3}


def _table(pick: Pick) -> list[Any]:
    items: list[Any] = []
    for number in range(1, 3 + pick.below(7)):
        row, place = f"{SOURCE}/{number}", ((SOURCE, number),)
        items.append(Sourced(Entity(row, f"{SOURCE} row {number}", EntityKind.ROW, number), place))
        for column in COLUMNS:
            for _ in range((1, 1, 1, 1, 0, 2)[pick.below(6)]):
                value, raw = (pick.one(NAMES), None) if column == "Name" else a_cell(pick, _KINDS.get(column, 0))
                items.append(Sourced(Statement(row, column, value, (), number, raw), place))
    return items


def _qualifiers(pick: Pick) -> tuple[tuple[str, Any], ...]:
    result: list[tuple[str, Any]] = []
    for _ in range(pick.below(4) if pick.below(2) else 0):
        key = pick.one(QUALIFIERS)
        value = pick.one((*POINTS, UNKNOWN)) if "time" in key else a_cell(pick, 3)[0]
        result.append((key, Ref(pick.one(PEOPLE)) if key == "of" else value))
    return tuple(result)


def _facts(pick: Pick) -> list[Any]:
    items: list[Any] = [Entity(entity_id, pick.one(NAMES)) for entity_id in PEOPLE]
    items += [Entity(entity_id, pick.one(NAMES), EntityKind.CONCEPT) for entity_id in CONCEPTS]
    items += [Member(pick.one(PEOPLE), pick.one(CONCEPTS)) for _ in range(pick.below(14))]
    items += [Subclass(pick.one(CONCEPTS), pick.one(CONCEPTS)) for _ in range(pick.below(3))]
    for at in range(6 + pick.below(30)):
        subject = pick.one((*PEOPLE, *PEOPLE, *PEOPLE, CONCEPTS[0]))
        if pick.below(3) == 0:
            statement = Statement(subject, pick.one(RELATIONS), Ref(pick.one((*PEOPLE, *PEOPLE, *CONCEPTS))), _qualifiers(pick), at)
        else:
            predicate = pick.one(ATTRIBUTES)
            value, raw = a_cell(pick, _KINDS.get(predicate, 0))
            statement = Statement(subject, predicate, value, _qualifiers(pick), at, raw)
        items.append(Sourced(statement, (("facts", at),) if pick.below(4) else (("facts", at), ("more facts", 1))))
    return items


def graph(pick: Pick) -> tuple[list[Any], bool | None]:
    """Return the items of a table (True), of facts (False), or of both (None), and which of these."""
    kind = pick.one((True, False, None))
    return [*(_table(pick) if kind is not False else ()), *(_facts(pick) if kind is not True else ())], kind


def facts(pick: Pick) -> list[Any]:
    """Return a graph without tables."""
    return _facts(pick)


_LITERALS: Final = (
    *(text_of(value) for value in (*map(Quantity, NUMBERS), *POINTS[::2])),
    *("10", "9", "1.5", "1,000", "10 kg", "2003", "2003-05-01", "highest", "lowest", "most", "least", "NaN", "inf", "-0", " 10 "),
)
WORDS: Final = Words(NAMES, ATTRIBUTES, RELATIONS, QUALIFIERS, UNITS, TEXTS, tuple(map(Quantity, NUMBERS)), (*POINTS, *SPANS))
VOCABULARY: Final = Vocabulary(
    columns=COLUMNS,
    relations=(*ATTRIBUTES, *RELATIONS),
    keys=("time", *QUALIFIERS),
    heads=(NAMES, (*NAMES, *PEOPLE[:1])),
    literals=(*NAMES, *_LITERALS),
    objects={name: (*TEXTS, *_LITERALS) if name in _KINDS else TEXTS for name in (*COLUMNS, *ATTRIBUTES)}
    | dict.fromkeys(RELATIONS, NAMES)
    | dict.fromkeys(("time", *QUALIFIERS), (*_LITERALS, *NAMES))
    | {"row_number": ("1", "2", "highest")},
)

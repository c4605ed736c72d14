"""Triples: one `head, relation, tail` a line, with tabs, `|`, commas or white space between them.

Objects are entities, unless the file is one of numeric attributes (or `objects="values"` says so).
Statements go out as batches of about 100,000 lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from condgraph.engine.facts import Batch, Column, Ids, Item, Member, Numbers, Ref, Subclass, Texts, Values
from condgraph.engine.values import Quantity, Time, Value, collapse, parse_number, text_of
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.files import head_lines, path_of, suffix_of
from condgraph.loaders.statements.lines import (
    HEAD,
    NAME_OPTIONS,
    RELATION,
    SHAPE_OPTIONS,
    TAIL,
    EntityNames,
    PredicateNames,
    columns_of,
    find_shape,
    likeness,
    option_choice,
    option_names,
    read_table,
    shape_of,
)

ROLES: Final = ((HEAD, RELATION, TAIL),)
#: How many lines `objects="auto"` looks at.
LOOKED_AT: Final = 1000

_FRACTION: Final = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?\d+[eE][+-]?\d+", re.ASCII).fullmatch
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII).fullmatch
_DAY: Final = re.compile(r"-?\d{4}-\d\d-\d\d", re.ASCII).fullmatch


class Predicates:
    """Names and meanings of the relations of a file: brackets off, names from a table, membership
    declared besides.
    """

    def __init__(self, options: Options, reading: Reading) -> None:
        table = options.get("relation_names")
        self._names = PredicateNames(reading, None if table is None else read_table(table, reading, "relation_names"))
        self._rename = table is not None
        self.instance_of = frozenset(option_names(options, "instance_of"))
        self.subclass_of = frozenset(option_names(options, "subclass_of"))

    def column(self, relations: list[str]) -> list[str]:
        """The predicates of a column of relations."""
        distinct = dict.fromkeys(relations)
        if self._rename:
            self._names.settle(map(bare, distinct))
        named = {one: self._names.name(bare(one)) for one in distinct}
        return relations if all(one == name for one, name in named.items()) else [named[one] for one in relations]

    def memberships(
        self, rows: Sequence[int], subjects: Sequence[str], predicates: Sequence[str], objects: Sequence[str], names: EntityNames
    ) -> Iterator[Item]:
        """The memberships that the statements of these columns (predicates named, ids without
        prefix) declare.
        """
        if not (self.instance_of or self.subclass_of):
            return
        prefix = names.prefix
        both = self.instance_of | self.subclass_of
        for row, one, predicate, other in zip(rows, subjects, predicates, objects, strict=True):
            if predicate in both:
                yield from names.concept(other)
                if predicate in self.subclass_of:
                    yield from names.concept(one)
                    yield Subclass(prefix + one, prefix + other, row)
                if predicate in self.instance_of:
                    yield Member(prefix + one, prefix + other, row)

    @property
    def membership(self) -> frozenset[str]:
        """The predicates whose objects are concepts."""
        return self.instance_of | self.subclass_of


def bare(relation: str) -> str:
    """A relation without the angle brackets of an IRI."""
    return relation[1:-1] if len(relation) > 2 and relation[0] == "<" and relation[-1] == ">" else relation


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    mode = option_choice(options, "objects", ("auto", "entities", "values"))
    predicates = Predicates(options, reading)
    names = EntityNames(options, reading)
    for rows, heads, relations, tails in _facts(source, reading, options):
        if mode == "auto":
            mode = _mode_of(heads, tails, reading)
        named = predicates.column(relations)
        as_values = mode == "values"
        if as_values:
            entities = [tail for tail, name in zip(tails, named, strict=True) if name in predicates.membership]
        else:
            entities = tails
        yield from names.declare(heads, entities)
        yield from predicates.memberships(rows, heads, named, tails, names)
        prefix = names.prefix
        subjects = [prefix + head for head in heads] if prefix else heads
        raws: Sequence[str | None] | None = None
        if as_values:
            objects, raws = _values(tails, named, predicates.membership, prefix)
        else:
            objects = Ids([prefix + tail for tail in tails] if prefix else tails)
        yield Batch(subjects, named, objects, rows, raws)
    names.finish()


def _facts(source: Any, reading: Reading, options: Options) -> Iterator[tuple[Sequence[int], list[str], list[str], list[str]]]:
    """Line numbers, heads, relations and tails, in pieces."""
    if _claims(source):
        rows = range(1, len(source) + 1)
        yield rows, [one[0] for one in source], [one[1] for one in source], [one[2] for one in source]
        reading.advance(len(source), 1.0)
        return
    path = path_of(source)
    shape = shape_of(path, ROLES, reading, options)
    if shape is None:
        return
    at = [shape.roles.index(role) for role in (HEAD, RELATION, TAIL)]
    for found, columns in columns_of(path, shape, reading, options):
        yield found, columns[at[0]], columns[at[1]], columns[at[2]]


def _mode_of(heads: Sequence[str], tails: Sequence[str], reading: Reading) -> str:
    """Whether objects are entities or numbers, from the first facts: numbers only where there is no
    other way to read them.
    """
    looked = tails[:LOOKED_AT]
    if not all(map(_FRACTION, looked)) or any(map(_NUMBER, heads[:LOOKED_AT])):
        return "entities"
    reading.warn(
        f"the objects of the first {len(looked)} facts are decimal numbers, so objects are read as values, not as entities"
        ' (objects="entities" or "values" says which)'
    )
    return "values"


def _values(
    tails: Sequence[str], predicates: Sequence[str], membership: frozenset[str], prefix: str
) -> tuple[Column, Sequence[str | None] | None]:
    """Objects that are values: numbers, days, texts; concepts where the predicate is membership.
    With the raw texts.
    """
    known: dict[str, Value] = {text: read_value(text) for text in dict.fromkeys(tails)}
    values: list[Ref | Value] = [
        Ref(prefix + tail) if name in membership else known[tail] for tail, name in zip(tails, predicates, strict=True)
    ]
    printed = {text: text_of(value) for text, value in known.items()}
    raws = [tail if type(value) is not Ref and printed[tail] != tail else None for tail, value in zip(tails, values, strict=True)]
    return _column(values), raws if any(raw is not None for raw in raws) else None


def _column(values: list[Ref | Value]) -> Column:
    if all(type(value) is str for value in values):
        return Texts([str(value) for value in values])
    numbers = [value.number for value in values if isinstance(value, Quantity)]
    if len(numbers) == len(values):
        import numpy as np

        if all(type(number) is float for number in numbers):
            return Numbers(np.array(numbers, dtype=np.float64))
        if all(type(number) is int and -(2**63) <= number < 2**63 for number in numbers):
            return Numbers(np.array(numbers, dtype=np.int64))
    return Values(values)


def read_value(text: str) -> Value:
    """The value a field is: a number (any plain decimal one), a day (YYYY-MM-DD), else text with
    white space collapsed.

    >>> read_value("9.7"), str(read_value("1984-12-30")), read_value("1984-13-30")
    (Quantity(number=9.7, unit='1'), '1984-12-30', '1984-13-30')
    """
    if _NUMBER(text):
        try:
            return Quantity(parse_number(text))
        except ValueError:  # a number beyond every bound stays text
            return text
    if _DAY(text):
        try:
            return Time.parse(text)
        except ValueError:
            return text
    return collapse(text)


def _claims(source: Any) -> bool:
    return (
        isinstance(source, (list, tuple))
        and bool(source)
        and all(
            isinstance(one, (list, tuple)) and len(one) == 3 and all(isinstance(part, str) and part.strip() for part in one)
            for one in source
        )
    )


def _sniff(path: Path, head: bytes) -> int:
    lines = head_lines(head)
    shape = find_shape(lines, ROLES) if lines else None
    if shape is None:
        return 0
    # A CSV file has no white space for marks.
    return min(likeness(lines, shape), 100 if shape.mark or suffix_of(path) != ".csv" else 20)


TRIPLE_OPTIONS: Final[Mapping[str, str]] = {
    **SHAPE_OPTIONS,
    **NAME_OPTIONS,
    "instance_of": "relation (or several) that says that its subject is an instance of its object",
    "subclass_of": "relation (or several) that says that its subject lies under its object",
}

FORMAT: Final = Format(
    name="triples",
    about="head, relation, tail: one fact a line, with tabs, |, commas or white space between them",
    read=_read,
    options={
        **TRIPLE_OPTIONS,
        "objects": 'tails are "entities", "values" (numbers, days, texts), or "auto": entities, unless all are decimal numbers',
    },
    sniff=_sniff,
    claims=_claims,
)

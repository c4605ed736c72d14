"""Questions about tables: rows, superlatives, sums, groups, and sums over joined tables, as LLM queries."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.values import Kind, Quantity, Time, text_of
from condgraph.questions import forms
from condgraph.questions.description import Cell
from condgraph.questions.facts import Facts, readable
from condgraph.questions.locate import is_code, is_id
from condgraph.questions.translations import UnsayableError, answer_of, query_of, quoted
from condgraph.questions.words import attribute, plain, superlative, when

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- columns -----------------------------------------------------------------------------------------
# The tables of a snapshot that questions can be made about, and their columns.


_NUMBERS: Final = Kind.QUANTITY


class Column(NamedTuple):
    """A column of a table: its predicate, and the types of its values."""

    number: int
    name: str
    kinds: frozenset[Kind]
    #: Whether its numbers are no codes, and not only 0 and 1.
    measures: bool


@dataclass(frozen=True)
class Table:
    """A source with rows: their numbers, and its columns."""

    source: str
    rows: NDArray[np.int32]
    columns: tuple[Column, ...]

    @property
    def numeric(self) -> list[Column]:
        """The columns of numbers that measure something."""
        return [column for column in self.columns if column.kinds == {_NUMBERS} and column.measures]

    @property
    def texts(self) -> list[Column]:
        """The columns of texts alone."""
        return [column for column in self.columns if column.kinds == {Kind.TEXT} and not is_code(column.name, "")]


def tables_of(snapshot: Snapshot) -> list[Table]:
    """The tables of a snapshot."""
    owners = snapshot.arrays.get("ent.source")
    result = []
    for number in np.unique(owners[owners >= 0]).tolist() if len(owners) else []:
        rows = np.flatnonzero(owners == number).astype(np.int32)
        name = snapshot.schema.sources[number]
        some = rows[:: max(1, len(rows) // 500)]
        statements = np.unique(snapshot.touching(some))
        attributes = statements[statements >= snapshot.relations]
        columns = []
        for predicate in np.unique(snapshot.predicates(attributes)).tolist():
            label = snapshot.predicate_name(predicate)
            kinds = frozenset(kind for kind, _ in snapshot.schema.attribute_kinds(label))
            if len(snapshot.schema.attribute_kinds(label)) <= 2 and label != "row_number" and readable(label):
                columns.append(Column(predicate, label, kinds, _measures(snapshot, predicate, label)))
        if len(rows) >= 3 and len(columns) >= 2 and readable(name) and "'" not in name:
            result.append(Table(name, rows, tuple(columns)))
    return result


def _measures(snapshot: Snapshot, predicate: int, name: str) -> bool:
    low, high = snapshot.attribute_offsets[predicate], snapshot.attribute_offsets[predicate + 1]
    ends = [snapshot.value("att", low), snapshot.value("att", high - 1)]
    truth = all(isinstance(end, Quantity) and end.number in (0, 1) for end in ends)
    # "reports to", "ship via": numbers of other rows.
    refers = forms.words_of(name).rpartition(" ")[2] in ("to", "via", "by", "from")
    return not is_code(name, Quantity(0)) and not truth and not refers


# -- questions -------------------------------------------------------------------------------------


#: Of a larger table so many rows are drawn where values are compared.
_MOST_ROWS: Final = 20_000


class TableQuestion(NamedTuple):
    """A question about a table: the query, the words, the wrong choices, hops, and the set that its
    condition finds with how many there are without it. `fewer` says why there may be few choices.
    """

    query: str
    question: str
    wrong: list[str]
    hops: int
    found: int
    without: int
    entities: tuple[str, ...]
    fewer: str = "the column has few values"


class TableAsker:
    """Asks about the tables of a snapshot."""

    def __init__(self, facts: Facts, pick: random.Random) -> None:
        self.facts, self.pick = facts, pick
        self._counts: dict[tuple[str, int], Counter[str]] = {}
        self.tables = tables_of(facts.snapshot)
        self._ways: dict[str, Callable[[Table], TableQuestion | None]] = {
            "Row": self._row,
            "Superlative": self._superlative,
            "Sum": self._sum,
            "Group": self._group,
        }

    def can(self, kind: str) -> bool:
        """Whether there is a table to ask such a question about."""
        wants = {"Superlative": lambda item: item.numeric, "Sum": lambda item: item.numeric, "Group": lambda item: item.texts}
        return any(wants[kind](table) if kind in wants else True for table in self.tables)

    def ask(self, kind: str) -> TableQuestion | None:
        """A question about one of the tables, each as likely as the others."""
        try:
            return self._ways[kind](self.pick.choice(self.tables))
        except UnsayableError:
            return None

    # -- cells -------------------------------------------------------------------------------------

    def _cells(self, row: int, column: Column) -> list[Cell]:
        statements = self.facts.of(row, column.number, relation=False)
        values = (self.facts.value(int(statement)) for statement in statements)
        return [value for value in values if value is not None]

    def _shown(self, row: int, column: Column) -> list[str]:
        """The cells of a row as the answers of LLM queries show them: as written."""
        shown = map(self.facts.shown, map(int, self.facts.of(row, column.number, relation=False)))
        return [text for text in shown if text is not None]

    def _some(self, rows: NDArray[np.int32], most: int) -> list[int]:
        if len(rows) <= most:
            return [int(row) for row in rows]
        return [int(rows[self.pick.randrange(len(rows))]) for _ in range(most)]

    def _wrong(self, table: Table, column: Column) -> list[str]:
        return [text for row in self._some(table.rows, 40) for text in self._shown(row, column) if readable(text)]

    def _scope(self, table: Table, name: str) -> str:
        """The argument that says which table is meant, where others have a column of that name."""
        several = len(self.facts.snapshot.schema.sources_of(name)) > 1
        return f", source={quoted(table.source)}" if several else ""

    # -- the kinds ---------------------------------------------------------------------------------

    def _row(self, table: Table) -> TableQuestion | None:
        row = int(table.rows[self.pick.randrange(len(table.rows))])
        given, asked = self.pick.sample(table.columns, 2)
        cells = self._cells(row, given)
        # "Category ID" is read as "category", which would mean its name.
        if len(cells) != 1 or len(self._cells(row, asked)) != 1 or is_id(asked.name) or is_id(given.name):
            return None
        text = self._shown(row, given)[0]
        lines = [
            f"get_information(relation={quoted(given.name)}, tail_entity={quoted(text)}{self._scope(table, given.name)})",
            f"get_information(relation={quoted(asked.name)}, head_entity='output_of_query1')",
        ]
        result = self._found(lines[:1])
        if result != 1:
            return None
        question = f"In {self._called(table)}, {_row_words(given.name, cells[0], asked.name, self._cells(row, asked)[0])}?"
        return TableQuestion(query_of(lines), question, self._wrong(table, asked), 2, result, len(table.rows), (text,))

    def _found(self, lines: list[str]) -> int:
        """How many rows a query of these lines gives."""
        return len(answer_of(self.facts.snapshot, query_of(lines)).entities)

    def _filter(self, table: Table, column: Column | None) -> tuple[str, str, str] | None:
        """A condition on a text of another column: its line, its words, its text."""
        given = [text for text in table.texts if text != column]
        if not given:
            return None
        by = self.pick.choice(given)
        texts = self._shown(int(table.rows[self.pick.randrange(len(table.rows))]), by)
        if len(texts) != 1 or not readable(texts[0]):
            return None
        line = f"get_information(relation={quoted(by.name)}, tail_entity={quoted(texts[0])}{self._scope(table, by.name)})"
        return line, f"the rows whose {' '.join(attribute(by.name, texts[0]))} “{texts[0]}”", texts[0]

    def _named_by(self, table: Table) -> Column | None:
        """The column that identifies rows: of texts, nearly all different."""
        rows = self._some(table.rows, 60)
        for column in table.texts:
            texts = [text for row in rows for text in self._shown(row, column)]
            if len(texts) > 0.8 * len(rows) and len(set(texts)) > 0.9 * len(set(rows)):
                return column
        return None

    def _superlative(self, table: Table) -> TableQuestion | None:
        name, numeric = self._named_by(table), table.numeric
        if name is None or not numeric:
            return None
        column = self.pick.choice(numeric)
        extreme = self.pick.choice(("max", "min"))
        most = superlative(column.name, largest=extreme == "max")
        condition = self._filter(table, name) if self.pick.random() < 0.6 else None
        lines, result, phrase = [], len(table.rows), ""
        if condition is not None:
            lines, phrase = [condition[0]], f" among {condition[1]}"
            result = self._found(lines)
            if result == len(table.rows):
                return None
        among = ", head_entity='output_of_query1'" if lines else self._scope(table, column.name)
        lines = [
            *lines,
            f"get_information(relation={quoted(column.name)}{among})",
            f"{extreme}(set='output_of_query{len(lines) + 1}')",
            f"get_information(relation={quoted(name.name)}, head_entity='output_of_query{len(lines) + 2}')",
        ]
        having = sum(bool(self._cells(row, column)) for row in self._some(table.rows, 100))
        if having < 3 or result < 3:
            return None
        question = (
            f"In {self._called(table)}, which {self._noun(name)} has the {most} {attribute(column.name, Quantity(0))[0]}{phrase}?"
        )
        entities = () if condition is None else (condition[2],)
        return TableQuestion(query_of(lines), question, self._wrong(table, name), 2 + len(entities), 1, result, entities)

    def _sum(self, table: Table) -> TableQuestion | None:
        if not table.numeric:
            return None
        column = self.pick.choice(table.numeric)
        joined = self._joined(table)
        if joined is not None and self.pick.random() < 0.6:
            lines, phrase, result, without, entities = joined
            hops = 3
        else:
            condition = self._filter(table, column)
            if condition is None:
                return None
            lines, phrase, entities, hops = [condition[0]], condition[1], (condition[2],), 2
            result, without = self._found(lines), len(table.rows)
        if not 2 <= result < without:
            return None
        lines += [
            f"get_information(relation={quoted(column.name)}, head_entity='output_of_query{len(lines)}')",
            f"sum(set='output_of_query{len(lines) + 1}')",
        ]
        question = f"In {self._called(table)}, what is the total {attribute(column.name, Quantity(0))[0]} of {phrase}?"
        return TableQuestion(query_of(lines), question, self._sums(table, column, result), hops, result, without, entities)

    def _joined(self, table: Table) -> tuple[list[str], str, int, int, tuple[str, ...]] | None:
        """The rows that refer to rows of another table with some cell."""
        facts, snapshot = self.facts, self.facts.snapshot
        row = int(table.rows[self.pick.randrange(len(table.rows))])
        links = [run for run in facts.outgoing(row) if run.relation and facts.is_row(facts.target(run.first))]
        if not links:
            return None
        link = self.pick.choice(links).draw(self.pick)
        target = facts.target(link)
        owner = int(snapshot.arrays.get("ent.source")[target])
        others = [item for item in self.tables if item.source == snapshot.schema.sources[owner] and item.source != table.source]
        given = [text for other in others for text in other.texts]
        if not given:
            return None
        by = self.pick.choice(given)
        texts = self._shown(target, by)
        if len(texts) != 1 or not readable(texts[0]):
            return None
        relation = snapshot.predicate_name(facts.predicate(link))
        lines = [
            f"get_information(relation={quoted(by.name)}, tail_entity={quoted(texts[0])}{self._scope(others[0], by.name)})",
            f"get_information(relation={quoted(relation)}, tail_entity='output_of_query1'{self._scope(table, relation)})",
        ]
        phrase = f"the rows whose {forms.column(relation)} has the {self._noun(by)} “{texts[0]}”"
        return lines, phrase, self._found(lines), len(table.rows), (texts[0],)

    def _sums(self, table: Table, column: Column, count: int) -> list[str]:
        """Sums of as many other rows."""
        sums = []
        for _ in range(12):
            cells = [cell for row in self._some(table.rows, count)[:200] for cell in self._cells(row, column)]
            numbers = [cell for cell in cells if isinstance(cell, Quantity)]
            if numbers:
                total = sum((float(number.number) for number in numbers), 0.0)
                sums.append(text_of(Quantity(int(total) if total.is_integer() else round(total, 2), numbers[0].unit)))
        return sums

    def _group(self, table: Table) -> TableQuestion | None:
        if not table.texts:
            return None
        column = self.pick.choice(table.texts)
        counted = self._counts.get((table.source, column.number))
        if counted is None:
            rows = [int(row) for row in table.rows[:_MOST_ROWS]]
            counted = Counter(text for row in rows for text in self._shown(row, column))
            counted = self._counts[table.source, column.number] = Counter(dict(counted.most_common(200)))
        best = counted.most_common(2)
        # A winner by one row over many others that have one is none that people would ask about.
        if len(table.rows) > _MOST_ROWS or len(best) < 2 or best[0][1] < 2 or best[0][1] == best[1][1]:
            return None
        scope = self._scope(table, column.name)
        lines = [f"get_information(relation={quoted(column.name)}{scope})", "most(set='output_of_query1')"]
        many = attribute(column.name, "")[1] == "are"
        question = f"In {self._called(table)}, which {self._noun(column)} appear{'' if many else 's'} most often?"
        wrong = [text for text in counted if text != best[0][0] and readable(text)]
        self.pick.shuffle(wrong)
        return TableQuestion(query_of(lines), question, wrong, 1, best[0][1], sum(counted.values()), ())

    def _called(self, table: Table) -> str:
        name = table.source.rpartition("/")[2].replace("_", " ")
        return f"table {name}" if name.isdigit() else f"the table {name}"

    def _noun(self, column: Column) -> str:
        return forms.column(column.name)


def _row_words(given: str, value: Cell, asked: str, wanted: Cell) -> str:
    """ "What is the year of the row whose title is X", "when was the row that was lost in 1986 found"."""
    name, verb = attribute(given, value)
    phrase, event = f"whose {name} {verb} {plain(given, value)}", forms.event(given)
    if event is not None and isinstance(value, Time):
        phrase = f"that {event.said} {when('=', value)}"
    event = forms.event(asked)
    if event is not None and isinstance(wanted, Time):
        return f"when {event.asked(f'the row {phrase}')}"
    noun, asks = attribute(asked, wanted)
    return f"what {asks} the {noun} of the row {phrase}"

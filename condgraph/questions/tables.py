"""Questions about tables (rows, superlatives, sums, groups, and sums over joined tables), as LLM queries."""

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
# The tables of a snapshot that questions can be about, and their columns.


_NUMBERS: Final = Kind.QUANTITY


class Column(NamedTuple):
    """A column of a table: its predicate by number and name, and the types of its values."""

    number: int
    name: str
    kinds: frozenset[Kind]
    #: Whether its numbers are measures: not codes, and not only 0 and 1.
    measures: bool


@dataclass(frozen=True)
class Table:
    """A source with rows: the numbers of the rows, and its columns."""

    source: str
    rows: NDArray[np.int32]
    columns: tuple[Column, ...]

    @property
    def numeric(self) -> list[Column]:
        """The columns of numbers that are measures."""
        return [column for column in self.columns if column.kinds == {_NUMBERS} and column.measures]

    @property
    def texts(self) -> list[Column]:
        """The columns that contain only texts."""
        return [column for column in self.columns if column.kinds == {Kind.TEXT} and not is_code(column.name, "")]


def tables_of(snapshot: Snapshot) -> list[Table]:
    """Return the tables of a snapshot that questions can be about."""
    owners = snapshot.arrays.get("ent.source")
    tables = []
    for number in np.unique(owners[owners >= 0]).tolist() if len(owners) else []:
        rows = np.flatnonzero(owners == number).astype(np.int32)
        name = snapshot.schema.sources[number]
        sample = rows[:: max(1, len(rows) // 500)]
        statements = np.unique(snapshot.touching(sample))
        attributes = statements[statements >= snapshot.relations]
        columns = []
        for predicate in np.unique(snapshot.predicates(attributes)).tolist():
            label = snapshot.predicate_name(predicate)
            kinds = frozenset(kind for kind, _ in snapshot.schema.attribute_kinds(label))
            if len(snapshot.schema.attribute_kinds(label)) <= 2 and label != "row_number" and readable(label):
                columns.append(Column(predicate, label, kinds, _measures(snapshot, predicate, label)))
        if len(rows) >= 3 and len(columns) >= 2 and readable(name) and "'" not in name:
            tables.append(Table(name, rows, tuple(columns)))
    return tables


def _measures(snapshot: Snapshot, predicate: int, name: str) -> bool:
    low, high = snapshot.attribute_offsets[predicate], snapshot.attribute_offsets[predicate + 1]
    extremes = [snapshot.value("att", low), snapshot.value("att", high - 1)]
    is_boolean = all(isinstance(end, Quantity) and end.number in (0, 1) for end in extremes)
    # "reports to" and "ship via" are numbers of other rows.
    refers = forms.words_of(name).rpartition(" ")[2] in ("to", "via", "by", "from")
    return not is_code(name, Quantity(0)) and not is_boolean and not refers


# -- questions -------------------------------------------------------------------------------------


#: The most rows in which values are counted; a larger table has no such questions.
_MAX_ROWS: Final = 20_000


class TableQuestion(NamedTuple):
    """A question about a table: its query, words, wrong choices and hops, the number of rows that its condition finds
    (`found`) and the number without it. `fewer` is the reason if there are few choices.
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
        self._makers: dict[str, Callable[[Table], TableQuestion | None]] = {
            "Row": self._row,
            "Superlative": self._superlative,
            "Sum": self._sum,
            "Group": self._group,
        }

    def can(self, kind: str) -> bool:
        """Whether a table allows a kind of question."""
        columns = {"Superlative": "numeric", "Sum": "numeric", "Group": "texts"}.get(kind, "columns")
        return any(getattr(table, columns) for table in self.tables)

    def ask(self, kind: str) -> TableQuestion | None:
        """Return a question about a random table; None if the sample did not lead to one."""
        try:
            return self._makers[kind](self.pick.choice(self.tables))
        except UnsayableError:
            return None

    # -- cells -------------------------------------------------------------------------------------

    def _cells(self, row: int, column: Column) -> list[Cell]:
        statements = self.facts.of(row, column.number, relation=False)
        values = (self.facts.value(int(statement)) for statement in statements)
        return [value for value in values if value is not None]

    def _shown(self, row: int, column: Column) -> list[str]:
        """Return the cells of a row as the answers of LLM queries show them: as in the source."""
        shown = map(self.facts.shown, map(int, self.facts.of(row, column.number, relation=False)))
        return [text for text in shown if text is not None]

    def _some(self, rows: NDArray[np.int32], most: int) -> list[int]:
        if len(rows) <= most:
            return [int(row) for row in rows]
        return [int(rows[self.pick.randrange(len(rows))]) for _ in range(most)]

    def _distractors(self, table: Table, column: Column) -> list[str]:
        return [text for row in self._some(table.rows, 40) for text in self._shown(row, column) if readable(text)]

    def _scope(self, table: Table, name: str) -> str:
        """Return the argument that names the table, if other tables have a column with that name."""
        several = len(self.facts.snapshot.schema.sources_of(name)) > 1
        return f", source={quoted(table.source)}" if several else ""

    # -- the kinds ---------------------------------------------------------------------------------

    def _row(self, table: Table) -> TableQuestion | None:
        row = int(table.rows[self.pick.randrange(len(table.rows))])
        known, wanted = self.pick.sample(table.columns, 2)
        cells = self._cells(row, known)
        # "Category ID" would be worded as "category", which means its name.
        if len(cells) != 1 or len(self._cells(row, wanted)) != 1 or is_id(wanted.name) or is_id(known.name):
            return None
        known_text = self._shown(row, known)[0]
        lines = [
            f"get_information(relation={quoted(known.name)}, tail_entity={quoted(known_text)}{self._scope(table, known.name)})",
            f"get_information(relation={quoted(wanted.name)}, head_entity='output_of_query1')",
        ]
        found = self._row_count(lines[:1])
        if found != 1:
            return None
        question = f"In {self._words_of(table)}, {_row_words(known.name, cells[0], wanted.name, self._cells(row, wanted)[0])}?"
        return TableQuestion(query_of(lines), question, self._distractors(table, wanted), 2, found, len(table.rows), (known_text,))

    def _row_count(self, lines: list[str]) -> int:
        """Count the rows that a query of these lines finds."""
        return len(answer_of(self.facts.snapshot, query_of(lines)).entities)

    def _filter(self, table: Table, column: Column | None) -> tuple[str, str, str] | None:
        """Return a condition on a text of another column: its line, its words, its text."""
        candidates = [candidate for candidate in table.texts if candidate != column]
        if not candidates:
            return None
        chosen = self.pick.choice(candidates)
        texts = self._shown(int(table.rows[self.pick.randrange(len(table.rows))]), chosen)
        if len(texts) != 1 or not readable(texts[0]):
            return None
        line = f"get_information(relation={quoted(chosen.name)}, tail_entity={quoted(texts[0])}{self._scope(table, chosen.name)})"
        return line, f"the rows whose {' '.join(attribute(chosen.name, texts[0]))} “{texts[0]}”", texts[0]

    def _name_column(self, table: Table) -> Column | None:
        """Return the column that identifies rows: one of texts, nearly all different."""
        rows = self._some(table.rows, 60)
        for column in table.texts:
            texts = [text for row in rows for text in self._shown(row, column)]
            if len(texts) > 0.8 * len(rows) and len(set(texts)) > 0.9 * len(set(rows)):
                return column
        return None

    def _superlative(self, table: Table) -> TableQuestion | None:
        name, numeric = self._name_column(table), table.numeric
        if name is None or not numeric:
            return None
        column = self.pick.choice(numeric)
        extreme = self.pick.choice(("max", "min"))
        most = superlative(column.name, largest=extreme == "max")
        condition = self._filter(table, name) if self.pick.random() < 0.6 else None
        lines, count, phrase = [], len(table.rows), ""
        if condition is not None:
            lines, phrase = [condition[0]], f" among {condition[1]}"
            count = self._row_count(lines)
            if count == len(table.rows):
                return None
        restriction = ", head_entity='output_of_query1'" if lines else self._scope(table, column.name)
        lines = [
            *lines,
            f"get_information(relation={quoted(column.name)}{restriction})",
            f"{extreme}(set='output_of_query{len(lines) + 1}')",
            f"get_information(relation={quoted(name.name)}, head_entity='output_of_query{len(lines) + 2}')",
        ]
        rows_with_value = sum(bool(self._cells(row, column)) for row in self._some(table.rows, 100))
        if rows_with_value < 3 or count < 3:
            return None
        question = (
            f"In {self._words_of(table)}, which {self._noun(name)} has the {most} {attribute(column.name, Quantity(0))[0]}{phrase}?"
        )
        entities = () if condition is None else (condition[2],)
        return TableQuestion(query_of(lines), question, self._distractors(table, name), 2 + len(entities), 1, count, entities)

    def _sum(self, table: Table) -> TableQuestion | None:
        if not table.numeric:
            return None
        column = self.pick.choice(table.numeric)
        joined = self._join_query(table)
        if joined is not None and self.pick.random() < 0.6:
            lines, phrase, count, without, entities = joined
            hops = 3
        else:
            condition = self._filter(table, column)
            if condition is None:
                return None
            lines, phrase, entities, hops = [condition[0]], condition[1], (condition[2],), 2
            count, without = self._row_count(lines), len(table.rows)
        if not 2 <= count < without:
            return None
        lines += [
            f"get_information(relation={quoted(column.name)}, head_entity='output_of_query{len(lines)}')",
            f"sum(set='output_of_query{len(lines) + 1}')",
        ]
        question = f"In {self._words_of(table)}, what is the total {attribute(column.name, Quantity(0))[0]} of {phrase}?"
        return TableQuestion(query_of(lines), question, self._sums(table, column, count), hops, count, without, entities)

    def _join_query(self, table: Table) -> tuple[list[str], str, int, int, tuple[str, ...]] | None:
        """Return the query for the rows that refer to a row of another table with a certain cell, its words, the counts
        and the text.
        """
        facts, snapshot = self.facts, self.facts.snapshot
        row = int(table.rows[self.pick.randrange(len(table.rows))])
        links = [run for run in facts.outgoing(row) if run.relation and facts.is_row(facts.target(run.first))]
        if not links:
            return None
        link = self.pick.choice(links).draw(self.pick)
        target = facts.target(link)
        owner = int(snapshot.arrays.get("ent.source")[target])
        linked = [
            candidate
            for candidate in self.tables
            if candidate.source == snapshot.schema.sources[owner] and candidate.source != table.source
        ]
        columns = [text for other in linked for text in other.texts]
        if not columns:
            return None
        column = self.pick.choice(columns)
        texts = self._shown(target, column)
        if len(texts) != 1 or not readable(texts[0]):
            return None
        relation = snapshot.predicate_name(facts.predicate(link))
        lines = [
            f"get_information(relation={quoted(column.name)}, tail_entity={quoted(texts[0])}{self._scope(linked[0], column.name)})",
            f"get_information(relation={quoted(relation)}, tail_entity='output_of_query1'{self._scope(table, relation)})",
        ]
        phrase = f"the rows whose {forms.column(relation)} has the {self._noun(column)} “{texts[0]}”"
        return lines, phrase, self._row_count(lines), len(table.rows), (texts[0],)

    def _sums(self, table: Table, column: Column, count: int) -> list[str]:
        """Return the sums of as many other rows."""
        sums = []
        for _ in range(12):
            cells = [cell for row in self._some(table.rows, count)[:200] for cell in self._cells(row, column)]
            numbers = [cell for cell in cells if isinstance(cell, Quantity)]
            if numbers:
                total = sum((float(number.number) for number in numbers), 0.0)
                sums.append(text_of(Quantity(int(total) if total.is_integer() else round(total, 2), numbers[0].unit)))
        return sums

    def _group(self, table: Table) -> TableQuestion | None:
        if not table.texts or len(table.rows) > _MAX_ROWS:
            return None
        column = self.pick.choice(table.texts)
        counts = self._counts.get((table.source, column.number))
        if counts is None:
            rows = [int(row) for row in table.rows]
            counts = Counter(text for row in rows for text in self._shown(row, column))
            counts = self._counts[table.source, column.number] = Counter(dict(counts.most_common(200)))
        top_two = counts.most_common(2)
        # The most frequent text has to occur twice or more, and to be the only one with its count.
        if len(top_two) < 2 or top_two[0][1] < 2 or top_two[0][1] == top_two[1][1]:
            return None
        scope = self._scope(table, column.name)
        lines = [f"get_information(relation={quoted(column.name)}{scope})", "most(set='output_of_query1')"]
        is_plural = attribute(column.name, "")[1] == "are"
        question = f"In {self._words_of(table)}, which {self._noun(column)} appear{'' if is_plural else 's'} most often?"
        wrong = [text for text in counts if text != top_two[0][0] and readable(text)]
        self.pick.shuffle(wrong)
        return TableQuestion(query_of(lines), question, wrong, 1, top_two[0][1], sum(counts.values()), ())

    def _words_of(self, table: Table) -> str:
        name = table.source.rpartition("/")[2].replace("_", " ")
        return f"table {name}" if name.isdigit() else f"the table {name}"

    def _noun(self, column: Column) -> str:
        return forms.column(column.name)


def _row_words(given: str, value: Cell, asked: str, wanted: Cell) -> str:
    """Return a question such as "what is the year of the row whose title is X"."""
    name, verb = attribute(given, value)
    phrase, event = f"whose {name} {verb} {plain(given, value)}", forms.event(given)
    if event is not None and isinstance(value, Time):
        phrase = f"that {event.said} {when('=', value)}"
    event = forms.event(asked)
    if event is not None and isinstance(wanted, Time):
        return f"when {event.asked(f'the row {phrase}')}"
    noun, asked_verb = attribute(asked, wanted)
    return f"what {asked_verb} the {noun} of the row {phrase}"

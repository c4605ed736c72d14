"""The start page and the pages for browsing: a graph's contents in short lists, questions that it can
answer, and the rows of a concept or table with facets.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from condgraph.engine.bounds import left, within
from condgraph.engine.errors import CondgraphError, InterruptedQueryError, OptionError, UnknownNameError, nearest
from condgraph.engine.facts import END_TIME, START_TIME
from condgraph.engine.values import NO_UNIT
from condgraph.grammars.kopl import quoted
from condgraph.overview.schema import UNNAMED, KindCount, PredicateSchema
from condgraph.studio import answers
from condgraph.studio.completion import overview_of, schema_of

if TYPE_CHECKING:
    from condgraph.graph import Graph
    from condgraph.overview.schema import GraphSchema

Document = dict[str, Any]
#: How many names of each list the page gets. `more` counts the rest.
MAX_LISTED: Final = 2_000
#: The number of questions, of candidates of each kind to run, and the seconds after which no more are run.
QUESTIONS, _TRIES, _SECONDS = 3, 4, 5.0
#: How many rows a question or a facet may group on a server, which has to fetch them.
_MAX_FETCHED: Final = 20_000
#: The number of columns on a page of rows, of facets next to it, of values in each facet, and the most characters in
#: the name of a column that is shown by default.
COLUMNS, FACETS, FACET_VALUES, MAX_COLUMN = 12, 6, 8, 500
#: Endings of column names whose numbers are identifiers.
_IDENTIFIERS: Final = ("id", "key", "code", "no", "nr", "number", "year", "zip")


# -- the start page ----------------------------------------------------------------------------------


def start(graph: Graph, arguments: Document) -> Document:
    """Return the sources, concepts, tables, predicates and units with counts, a drawing of the schema, and questions.

    The questions are None if they were not requested and are not known yet.
    """
    cache = schema_of(graph).kept
    lists: Document | None = cache.get("studio.start")
    if lists is None:
        lists = cache["studio.start"] = _started(overview_of(graph))
    questions: list[Document] | None = cache.get("studio.questions")
    if questions is None and arguments.get("questions", True):
        seconds = left()
        # Leave enough time to send the reply before the deadline of the call.
        with within(None if seconds is None else seconds / 2):
            questions = _questions(graph, overview_of(graph))
        # A busy server may give no questions, too, so an empty list is not kept.
        if questions:
            cache["studio.questions"] = questions
    return lists | {"questions": questions}


def _started(schema: GraphSchema) -> Document:
    drawing = schema.draw()
    lists: dict[str, list[Document]] = {
        "sources": [{"name": item.name, "format": item.format, "statements": item.statements} for item in schema.sources],
        "concepts": [{"name": item.name, "id": item.id, "members": item.members} for item in schema.concepts],
        "tables": [{"name": name} for name in _tables(schema)],
        "predicates": [
            {
                "name": item.name,
                "statements": item.statements,
                "relation": item.relations > 0,
                "subject": _kinds(item.subjects),
                "object": _kinds(item.objects) if item.relations else _types(item),
            }
            for item in schema.predicates
        ],
        "units": [{"name": item.unit, "values": item.values} for item in schema.units],
    }
    return {
        "counts": dict(schema.counts),
        "first": schema.first,
        "last": schema.last,
        "note": schema.note,
        **{name: items[:MAX_LISTED] for name, items in lists.items()},
        "more": {name: len(items) - MAX_LISTED for name, items in lists.items() if len(items) > MAX_LISTED},
        "picture": drawing.svg if drawing.arrows else "",
        "edges": [[drawing.boxes[arrow.start].text, arrow.text, drawing.boxes[arrow.end].text] for arrow in drawing.arrows],
    }


def _tables(schema: GraphSchema) -> list[str]:
    """Return the tables whose rows are in no concept."""
    return list(dict.fromkeys(kind.name for predicate in schema.predicates for kind in predicate.subjects if kind.sort == "table"))


def _kinds(kinds: Sequence[KindCount]) -> list[str]:
    return [*(kind.name or UNNAMED[kind.sort] for kind in kinds[:2]), *(["…"] if len(kinds) > 2 else [])]


def _types(predicate: PredicateSchema) -> list[str]:
    values = predicate.values
    names = [value.type if value.unit == NO_UNIT else f"{value.type} in {value.unit}" for value in values[:2]]
    return [*names, *(["…"] if len(values) > 2 else [])]


# -- questions ---------------------------------------------------------------------------------------


class _Candidate(NamedTuple):
    """A question that the graph may be able to answer."""

    #: The text in parts: the second, fourth and so on are names.
    about: tuple[str, ...]
    program: str
    table: str = ""


def _questions(graph: Graph, schema: GraphSchema) -> list[Document]:
    """Return questions with an answer, if possible of different kinds. Each one was run."""
    end = time.monotonic() + _SECONDS
    result: list[Document] = []
    for kind in (_largest, _groups, _two_steps, _at_a_time, _first, _plain):
        for candidate in islice(kind(graph, schema), _TRIES):
            if len(result) == QUESTIONS or (result and time.monotonic() > end):
                return result
            with suppress(CondgraphError):
                try:
                    answer = graph.query(candidate.program, language="kopl", table=candidate.table or None, limit=10)
                except InterruptedQueryError:
                    return result
                rows = [*answer.cells[:3]] if answer.columns else [(text,) for text in answer.texts[:3]]
                sample = [[cell[:200] for cell in row] for row in rows if any(row)]
                # Groups of one row each are not interesting.
                if sample and not (kind is _groups and answer.values[0][1] == 1):
                    result.append({**candidate._asdict(), "about": list(candidate.about), "sample": sample})
                    if kind is not _plain:
                        break
    return result


def _begin(kind: KindCount | None) -> str:
    return f"FindAll() FilterConcept({quoted(kind.name)})" if kind is not None and kind.sort == "concept" else "FindAll()"


def _words(kind: KindCount | None) -> tuple[str, str]:
    if kind is None or not kind.name:
        return "entities", ""
    return ("entities of " if kind.sort == "concept" else "rows of "), kind.name


def _of_values(schema: GraphSchema, graph: Graph, *types: str) -> Iterator[tuple[PredicateSchema, KindCount | None, str]]:
    """Yield attributes with values of a type, the kind of their subjects, and their column name."""
    for predicate in schema.predicates:
        column = column_of(predicate.name)
        if predicate.attributes and column and predicate.values and predicate.values[0].type in types and _few(graph, predicate):
            yield predicate, _kind(predicate), column


def _few(graph: Graph, predicate: PredicateSchema) -> bool:
    return answers.store_of(graph) == answers.IN_A_FOLDER or predicate.statements <= _MAX_FETCHED


def _kind(predicate: PredicateSchema) -> KindCount | None:
    return predicate.subjects[0] if predicate.subjects else None


def _largest(graph: Graph, schema: GraphSchema) -> Iterator[_Candidate]:
    numbers = [*_of_values(schema, graph, "quantity")]
    # Amounts with a unit are more interesting than numbers that may be identifiers.
    numbers.sort(key=lambda item: (item[0].values[0].unit == NO_UNIT, item[0].name.lower().endswith(_IDENTIFIERS)))
    for predicate, kind, column in numbers:
        table = f"where {column} is known show self, {column} order by {column} desc limit 10"
        words, name = _words(kind)
        yield _Candidate((f"Which {words}", name, " have the largest ", predicate.name, "?"), _begin(kind), table)


def _groups(graph: Graph, schema: GraphSchema) -> Iterator[_Candidate]:
    relations = [
        (predicate, _kind(predicate), column_of(predicate.name))
        for predicate in schema.predicates
        if predicate.relations and predicate.subjects and _few(graph, predicate)
    ]
    for predicate, kind, column in [*relations, *_of_values(schema, graph, "text")]:
        if column:
            table = f"where {column} is known group by {column} show count() order by count() desc limit 10"
            words, name = _words(kind)
            yield _Candidate((f"How many {words}", name, " are there for each ", predicate.name, "?"), _begin(kind), table)


def _two_steps(graph: Graph, schema: GraphSchema) -> Iterator[_Candidate]:
    for predicate in schema.predicates:
        if not predicate.relations or not predicate.examples or not predicate.objects:
            continue
        ends = {kind.name for kind in predicate.objects if kind.name}
        start = f"Find({quoted(predicate.examples[0].subject)}) Relate({quoted(predicate.name)}, forward)"
        for other in schema.predicates:
            if other.name != predicate.name and ends & {kind.name for kind in other.subjects}:
                last_step = (
                    f"Relate({quoted(other.name)}, forward) QueryName()" if other.relations else f"QueryAttr({quoted(other.name)})"
                )
                yield _Candidate(
                    ("From ", predicate.examples[0].subject, ": ", predicate.name, ", then ", other.name), f"{start} {last_step}"
                )
                break
        else:
            yield _Candidate(("From ", predicate.examples[0].subject, ": ", predicate.name), f"{start} QueryName()")


def _at_a_time(graph: Graph, schema: GraphSchema) -> Iterator[_Candidate]:
    for predicate in schema.predicates:
        times = {key.name: key.values[0] for key in predicate.qualifiers if key.values and key.values[0].type == "time"}
        if not predicate.relations or not {START_TIME, END_TIME} <= {*times}:
            continue
        ends = [re.match(r"-?\d+", text or "") for text in (times[START_TIME].last, times[END_TIME].first)]
        if None in ends:
            continue
        # Between the last start and the first end.
        year = sum(int(end[0]) for end in ends if end) // 2
        for example in predicate.examples:
            relation = f"Find({quoted(example.subject)}) Relate({quoted(predicate.name)}, forward)"
            program = f"{relation} QFilterYear({START_TIME}, {year}, <=) QFilterYear({END_TIME}, {year}, >=) QueryName()"
            yield _Candidate(("What was the ", predicate.name, " of ", example.subject, f" in {year}?"), program)


def _first(graph: Graph, schema: GraphSchema) -> Iterator[_Candidate]:
    for predicate, kind, column in _of_values(schema, graph, "time"):
        table = f"where {column} is known show self, {column} order by {column} limit 10"
        words, name = _words(kind)
        yield _Candidate((f"Which {words}", name, " are the first by ", predicate.name, "?"), _begin(kind), table)


def _plain(graph: Graph, schema: GraphSchema) -> Iterator[_Candidate]:
    for concept in schema.concepts[:1]:
        yield _Candidate(("What is in ", concept.name, "?"), f"FindAll() FilterConcept({quoted(concept.name)}) QueryName()")
    for predicate in schema.predicates[:1]:
        for example in predicate.examples[:1]:
            if predicate.attributes:
                program = f"Find({quoted(example.subject)}) QueryAttr({quoted(predicate.name)})"
                yield _Candidate(("What is the ", predicate.name, " of ", example.subject, "?"), program)
            else:
                program = f"Find({quoted(example.object)}) Relate({quoted(predicate.name)}, backward) QueryName()"
                yield _Candidate(("What has ", example.object, " as ", predicate.name, "?"), program)
    yield _Candidate(("How many entities are there?",), "FindAll() Count()")


def column_of(name: str) -> str:
    """Return a predicate as a column name in a table clause, or "" if it cannot be written as one."""
    if not name or ('"' in name and "`" in name):
        return ""
    return f"`{name}`" if '"' in name else f'"{name}"'


# -- rows --------------------------------------------------------------------------------------------


def browse(graph: Graph, arguments: Document) -> Document:
    """Return a page of the rows of a concept or table, with the most frequent values of its columns (facets).

    `where` has a text for each column that rows must contain, or "" for rows without a value. Raises
    `OptionError`, and `UnknownNameError` with the nearest names.
    """
    schema = overview_of(graph)
    concept, table = arguments.get("concept"), arguments.get("table")
    if (concept is None) == (table is None):
        raise OptionError("rows are those of a concept or of a table, of one of them")
    kinds = {("table", table)} if table is not None else {("concept", name) for name in _below(schema, concept or "")}
    name, known = (table, _tables(schema)) if table is not None else (concept, [predicate.name for predicate in schema.concepts])
    if name not in known:
        raise UnknownNameError("table" if table is not None else "concept", name or "", candidates=nearest(name or "", known))
    predicates = [
        predicate
        for predicate in schema.predicates
        if column_of(predicate.name) and any((kind.sort, kind.name) in kinds for kind in predicate.subjects)
    ]
    names = [predicate.name for predicate in predicates]
    first = [name for name in names if len(name) <= MAX_COLUMN][:COLUMNS] or names[:1]
    where: dict[str, str] = arguments.get("where") or {}
    sort: str | None = arguments.get("sort")
    for wanted in (*where, *([] if sort is None else [sort])):
        if wanted not in names:
            raise UnknownNameError("column", wanted, candidates=nearest(wanted, names))
    program = "FindAll()" if concept is None else f"FindAll() FilterConcept({quoted(concept)})"
    tests = [_test(column, text) for column, text in where.items()]
    if concept is None:
        # The rows of a table are those that have a value in one of its columns.
        tests.append("(" + " or ".join(f"{column_of(name)} is known" for name in first) + ")")
    columns_shown = list(dict.fromkeys([*first, *where, *([] if sort is None else [sort])]))
    condition = f"where {' and '.join(tests)} " if tests else ""
    order = "" if sort is None else f" order by {column_of(sort)}{' desc' if arguments.get('descending') else ''}"
    offset, limit = arguments["offset"], arguments["limit"]
    clause = f"{condition}show {', '.join(['self', *map(column_of, columns_shown)])}{order} limit {limit} offset {offset}"
    warnings: dict[str, None] = {}

    def rows(clause: str) -> list[list[Any]]:
        answer = graph.query(program, language="kopl", table=clause)
        warnings.update(dict.fromkeys(answer.warnings))
        return [list(map(answers.table_cell, *row)) for row in zip(answer.values, answer.cells, strict=True)]

    listed_rows = rows(clause)
    total = int(rows(f"{condition}show count()")[0][0]["number"])
    fetchable = answers.store_of(graph) == answers.IN_A_FOLDER or total <= _MAX_FETCHED
    facets = [_facet(predicate, rows, condition, total) for predicate in _faceted(predicates, where)] if fetchable else []
    # It is not worth a warning that a page ends in the middle of equal rows.
    notes = [text for text in warnings if not text.startswith("limit ")]
    return {
        "columns": columns_shown,
        "more_columns": [name for name in names if name not in columns_shown],
        "rows": listed_rows,
        "total": total,
        "facets": [facet for facet in facets if facet],
        "warnings": answers.warned(notes),
        "program": program,
        "table": clause,
    }


def _below(schema: GraphSchema, name: str) -> set[str]:
    """Return a concept and all concepts below it."""
    under: dict[str, list[str]] = {}
    for concept in schema.concepts:
        for above in concept.above:
            under.setdefault(above, []).append(concept.name)
    result, waiting = {name}, [name]
    while waiting:
        for lower in under.get(waiting.pop(), ()):
            if lower not in result:
                result.add(lower)
                waiting.append(lower)
    return result


def _test(column: str, text: str) -> str:
    return f"{column_of(column)} is missing" if not text else f"{column_of(column)} = '{text.replace(chr(39), chr(39) * 2)}'"


def _faceted(predicates: Iterable[PredicateSchema], where: dict[str, str]) -> list[PredicateSchema]:
    """Return the columns whose values may repeat (relations and texts), those of the condition first."""
    result = [
        item for item in predicates
        if item.name in where
        or (len(item.name) <= MAX_COLUMN and (item.relations or (item.values and item.values[0].type == "text")))
    ]  # fmt: skip
    return sorted(result, key=lambda item: item.name not in where)[: max(FACETS, len(where))]


def _facet(predicate: PredicateSchema, rows: Any, condition: str, total: int) -> Document | None:
    """Return the most frequent values of a column with their row counts, or None if they do not repeat."""
    column = column_of(predicate.name)
    groups = rows(f"{condition}group by {column} show count() order by count() desc limit {FACET_VALUES + 1}")
    values = [{"value": value, "count": int(count["number"])} for value, count in groups]
    if not any(one["value"] is not None and (one["count"] > 1 or total == 1) for one in values):
        return None
    return {"column": predicate.name, "values": values[:FACET_VALUES], "more": len(values) > FACET_VALUES}

"""The start page and the pages that browse: what a graph contains in short lists, questions that it can answer, and the
rows of a concept or a table with facets.
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
#: Names of each list that the page gets; `more` counts the rest.
MOST_LISTED: Final = 2_000
#: Questions, the candidates of each kind that are run, and seconds after which no other is run.
QUESTIONS, _TRIES, _SECONDS = 3, 4, 5.0
#: Rows of a kind that a question or a facet may group on a server, where they are fetched.
_MOST_FETCHED: Final = 20_000
#: Columns of a page of rows, facets beside it, values of each; characters of the name of a column that is shown unasked.
COLUMNS, FACETS, FACET_VALUES, LONGEST_COLUMN = 12, 6, 8, 500
#: Endings of names of columns whose numbers are identifiers.
_IDENTIFIERS: Final = ("id", "key", "code", "no", "nr", "number", "year", "zip")


# -- the start page ----------------------------------------------------------------------------------


def start(graph: Graph, arguments: Document) -> Document:
    """Sources, concepts, tables, predicates and units with counts, a picture of the schema, and questions; None for those
    where they were not asked for and are not known.
    """
    kept = schema_of(graph).kept
    lists: Document | None = kept.get("studio.start")
    if lists is None:
        lists = kept["studio.start"] = _started(overview_of(graph))
    questions: list[Document] | None = kept.get("studio.questions")
    if questions is None and arguments.get("questions", True):
        rest = left()
        # What comes of them is told within the deadline of the call.
        with within(None if rest is None else rest / 2):
            questions = _questions(graph, overview_of(graph))
        # None is what a busy server gives, too.
        if questions:
            kept["studio.questions"] = questions
    return lists | {"questions": questions}


def _started(schema: GraphSchema) -> Document:
    drawing = schema.draw()
    lists: dict[str, list[Document]] = {
        "sources": [{"name": one.name, "format": one.format, "statements": one.statements} for one in schema.sources],
        "concepts": [{"name": one.name, "id": one.id, "members": one.members} for one in schema.concepts],
        "tables": [{"name": name} for name in _tables(schema)],
        "predicates": [
            {
                "name": one.name,
                "statements": one.statements,
                "relation": one.relations > 0,
                "subject": _kinds(one.subjects),
                "object": _kinds(one.objects) if one.relations else _types(one),
            }
            for one in schema.predicates
        ],
        "units": [{"name": one.unit, "values": one.values} for one in schema.units],
    }
    return {
        "counts": dict(schema.counts),
        "first": schema.first,
        "last": schema.last,
        "note": schema.note,
        **{name: items[:MOST_LISTED] for name, items in lists.items()},
        "more": {name: len(items) - MOST_LISTED for name, items in lists.items() if len(items) > MOST_LISTED},
        "picture": drawing.svg if drawing.arrows else "",
        "edges": [[drawing.boxes[arrow.start].text, arrow.text, drawing.boxes[arrow.end].text] for arrow in drawing.arrows],
    }


def _tables(schema: GraphSchema) -> list[str]:
    """Tables whose rows are in no concept."""
    return list(dict.fromkeys(kind.name for one in schema.predicates for kind in one.subjects if kind.sort == "table"))


def _kinds(kinds: Sequence[KindCount]) -> list[str]:
    return [*(kind.name or UNNAMED[kind.sort] for kind in kinds[:2]), *(["…"] if len(kinds) > 2 else [])]


def _types(predicate: PredicateSchema) -> list[str]:
    values = predicate.values
    names = [value.type if value.unit == NO_UNIT else f"{value.type} in {value.unit}" for value in values[:2]]
    return [*names, *(["…"] if len(values) > 2 else [])]


# -- questions ---------------------------------------------------------------------------------------


class _Candidate(NamedTuple):
    """A question that the graph may answer."""

    #: Its text in parts; the second and every other one after it is a name.
    about: tuple[str, ...]
    program: str
    table: str = ""


def _questions(graph: Graph, schema: GraphSchema) -> list[Document]:
    """Questions with an answer, of different kinds where the graph has them: each was run."""
    until = time.monotonic() + _SECONDS
    result: list[Document] = []
    for kind in (_largest, _groups, _two_steps, _at_a_time, _first, _plain):
        for candidate in islice(kind(graph, schema), _TRIES):
            if len(result) == QUESTIONS or (result and time.monotonic() > until):
                return result
            with suppress(CondgraphError):
                try:
                    answer = graph.query(candidate.program, language="kopl", table=candidate.table or None, limit=10)
                except InterruptedQueryError:
                    return result
                rows = [*answer.cells[:3]] if answer.columns else [(text,) for text in answer.texts[:3]]
                sample = [[cell[:200] for cell in row] for row in rows if any(row)]
                # A group of one row each tells nothing.
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
    """Attributes with values of a type that have a column, with the kind of their subjects."""
    for one in schema.predicates:
        column = column_of(one.name)
        if one.attributes and column and one.values and one.values[0].type in types and _few(graph, one):
            yield one, _kind(one), column


def _few(graph: Graph, predicate: PredicateSchema) -> bool:
    return answers.store_of(graph) == answers.IN_A_FOLDER or predicate.statements <= _MOST_FETCHED


def _kind(predicate: PredicateSchema) -> KindCount | None:
    return predicate.subjects[0] if predicate.subjects else None


def _largest(graph: Graph, schema: GraphSchema) -> Iterator[_Candidate]:
    numbers = [*_of_values(schema, graph, "quantity")]
    # Amounts with a unit say more than numbers that may be identifiers.
    numbers.sort(key=lambda item: (item[0].values[0].unit == NO_UNIT, item[0].name.lower().endswith(_IDENTIFIERS)))
    for one, kind, column in numbers:
        table = f"where {column} is known show self, {column} order by {column} desc limit 10"
        words, name = _words(kind)
        yield _Candidate((f"Which {words}", name, " have the largest ", one.name, "?"), _begin(kind), table)


def _groups(graph: Graph, schema: GraphSchema) -> Iterator[_Candidate]:
    relations = [
        (one, _kind(one), column_of(one.name)) for one in schema.predicates if one.relations and one.subjects and _few(graph, one)
    ]
    for one, kind, column in [*relations, *_of_values(schema, graph, "text")]:
        if column:
            table = f"where {column} is known group by {column} show count() order by count() desc limit 10"
            words, name = _words(kind)
            yield _Candidate((f"How many {words}", name, " are there for each ", one.name, "?"), _begin(kind), table)


def _two_steps(graph: Graph, schema: GraphSchema) -> Iterator[_Candidate]:
    for one in schema.predicates:
        if not one.relations or not one.examples or not one.objects:
            continue
        ends = {kind.name for kind in one.objects if kind.name}
        begin = f"Find({quoted(one.examples[0].subject)}) Relate({quoted(one.name)}, forward)"
        for other in schema.predicates:
            if other.name != one.name and ends & {kind.name for kind in other.subjects}:
                further = (
                    f"Relate({quoted(other.name)}, forward) QueryName()" if other.relations else f"QueryAttr({quoted(other.name)})"
                )
                yield _Candidate(("From ", one.examples[0].subject, ": ", one.name, ", then ", other.name), f"{begin} {further}")
                break
        else:
            yield _Candidate(("From ", one.examples[0].subject, ": ", one.name), f"{begin} QueryName()")


def _at_a_time(graph: Graph, schema: GraphSchema) -> Iterator[_Candidate]:
    for one in schema.predicates:
        times = {key.name: key.values[0] for key in one.qualifiers if key.values and key.values[0].type == "time"}
        ends = (
            [re.match(r"-?\d+", text or "") for text in (times[START_TIME].last, times[END_TIME].first)]
            if {START_TIME, END_TIME} <= {*times}
            else []
        )
        if not one.relations or not ends or None in ends:
            continue
        # In the middle of the times at which some begin and others have ended.
        year = sum(int(end[0]) for end in ends if end) // 2
        for example in one.examples:
            asked = f"Find({quoted(example.subject)}) Relate({quoted(one.name)}, forward)"
            program = f"{asked} QFilterYear({START_TIME}, {year}, <=) QFilterYear({END_TIME}, {year}, >=) QueryName()"
            yield _Candidate(("What was the ", one.name, " of ", example.subject, f" in {year}?"), program)


def _first(graph: Graph, schema: GraphSchema) -> Iterator[_Candidate]:
    for one, kind, column in _of_values(schema, graph, "time"):
        table = f"where {column} is known show self, {column} order by {column} limit 10"
        words, name = _words(kind)
        yield _Candidate((f"Which {words}", name, " are the first by ", one.name, "?"), _begin(kind), table)


def _plain(graph: Graph, schema: GraphSchema) -> Iterator[_Candidate]:
    for concept in schema.concepts[:1]:
        yield _Candidate(("What is in ", concept.name, "?"), f"FindAll() FilterConcept({quoted(concept.name)}) QueryName()")
    for one in schema.predicates[:1]:
        for example in one.examples[:1]:
            if one.attributes:
                program = f"Find({quoted(example.subject)}) QueryAttr({quoted(one.name)})"
                yield _Candidate(("What is the ", one.name, " of ", example.subject, "?"), program)
            else:
                program = f"Find({quoted(example.object)}) Relate({quoted(one.name)}, backward) QueryName()"
                yield _Candidate(("What has ", example.object, " as ", one.name, "?"), program)
    yield _Candidate(("How many entities are there?",), "FindAll() Count()")


def column_of(name: str) -> str:
    """A predicate as a column of a table clause; empty where none can have its name."""
    if not name or ('"' in name and "`" in name):
        return ""
    return f"`{name}`" if '"' in name else f'"{name}"'


# -- rows --------------------------------------------------------------------------------------------


def browse(graph: Graph, arguments: Document) -> Document:
    """A page of the rows of a concept or a table, with the most frequent values of its columns (facets).

    `where` has a text for each column that rows must have, or "" for rows without any. Raises `OptionError`, and
    `UnknownNameError` with the nearest names.
    """
    schema = overview_of(graph)
    concept, table = arguments.get("concept"), arguments.get("table")
    if (concept is None) == (table is None):
        raise OptionError("rows are those of a concept or of a table, of one of them")
    kinds = {("table", table)} if table is not None else {("concept", name) for name in _below(schema, concept or "")}
    name, known = (table, _tables(schema)) if table is not None else (concept, [one.name for one in schema.concepts])
    if name not in known:
        raise UnknownNameError("table" if table is not None else "concept", name or "", candidates=nearest(name or "", known))
    predicates = [
        one for one in schema.predicates if column_of(one.name) and any((kind.sort, kind.name) in kinds for kind in one.subjects)
    ]
    names = [one.name for one in predicates]
    first = [name for name in names if len(name) <= LONGEST_COLUMN][:COLUMNS] or names[:1]
    where: dict[str, str] = arguments.get("where") or {}
    sort: str | None = arguments.get("sort")
    for asked in (*where, *([] if sort is None else [sort])):
        if asked not in names:
            raise UnknownNameError("column", asked, candidates=nearest(asked, names))
    program = "FindAll()" if concept is None else f"FindAll() FilterConcept({quoted(concept)})"
    tests = [_test(column, text) for column, text in where.items()]
    if concept is None:
        # Rows of a table are those with one of its columns.
        tests.append("(" + " or ".join(f"{column_of(one)} is known" for one in first) + ")")
    shown = list(dict.fromkeys([*first, *where, *([] if sort is None else [sort])]))
    condition = f"where {' and '.join(tests)} " if tests else ""
    order = "" if sort is None else f" order by {column_of(sort)}{' desc' if arguments.get('descending') else ''}"
    begin, most = arguments["offset"], arguments["limit"]
    clause = f"{condition}show {', '.join(['self', *map(column_of, shown)])}{order} limit {most} offset {begin}"
    warnings: dict[str, None] = {}

    def rows(clause: str) -> list[list[Any]]:
        answer = graph.query(program, language="kopl", table=clause)
        warnings.update(dict.fromkeys(answer.warnings))
        return [list(map(answers.table_cell, *row)) for row in zip(answer.values, answer.cells, strict=True)]

    listed = rows(clause)
    total = int(rows(f"{condition}show count()")[0][0]["number"])
    few = answers.store_of(graph) == answers.IN_A_FOLDER or total <= _MOST_FETCHED
    facets = (
        [facet for facet in (_facet(one, rows, condition, total) for one in _faceted(predicates, where)) if facet] if few else []
    )
    # That a page has an end in the middle of equal rows is no news.
    notes = [text for text in warnings if not text.startswith("limit ")]
    return {
        "columns": shown,
        "more_columns": [one for one in names if one not in shown],
        "rows": listed,
        "total": total,
        "facets": facets,
        "warnings": answers.warned(notes),
        "program": program,
        "table": clause,
    }


def _below(schema: GraphSchema, name: str) -> set[str]:
    """A concept and those below it."""
    under: dict[str, list[str]] = {}
    for one in schema.concepts:
        for above in one.above:
            under.setdefault(above, []).append(one.name)
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
    """Columns whose values may repeat: relations and texts, those of the condition first."""
    fit = [
        one for one in predicates
        if one.name in where
        or (len(one.name) <= LONGEST_COLUMN and (one.relations or (one.values and one.values[0].type == "text")))
    ]  # fmt: skip
    return sorted(fit, key=lambda one: one.name not in where)[: max(FACETS, len(where))]


def _facet(predicate: PredicateSchema, rows: Any, condition: str, total: int) -> Document | None:
    """The most frequent values of a column with their numbers of rows; None where they do not repeat."""
    column = column_of(predicate.name)
    listed = rows(f"{condition}group by {column} show count() order by count() desc limit {FACET_VALUES + 1}")
    values = [{"value": value, "count": int(count["number"])} for value, count in listed]
    if not any(one["value"] is not None and (one["count"] > 1 or total == 1) for one in values):
        return None
    return {"column": predicate.name, "values": values[:FACET_VALUES], "more": len(values) > FACET_VALUES}

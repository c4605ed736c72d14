"""The operations of the API in a worker process: one function for each, from a graph and its arguments to
a document; loads of dropped files, and questions in words as a stream.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np

import condgraph
from condgraph.engine.bounds import within
from condgraph.engine.errors import OptionError, UnknownNameError, nearest
from condgraph.engine.evidence import EvidenceList
from condgraph.engine.facts import Entity, EntityKind
from condgraph.languages.parameters import given
from condgraph.languages.registry import PATTERN, check_options, detect, template, unfenced
from condgraph.patterns.options import NAMES as MATCH_OPTIONS
from condgraph.query_options import QueryOptions
from condgraph.studio import answers
from condgraph.studio.completion import completed, label_ids, schema_of, vocabulary
from condgraph.studio.start import browse, start

if TYPE_CHECKING:
    from condgraph.ask.chat import Turn
    from condgraph.ask.records import AskStep, AskText
    from condgraph.engine.period import Period
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.graph import Graph
    from condgraph.remote_neo4j import Neo4jGraph


Document = dict[str, Any]
#: The result of a call: a document, or the media type and bytes of a file.
Result = Document | tuple[str, bytes]
#: The languages of programs, and of the stores themselves.
LANGUAGES: Final = ("kopl", "llm_query", "logic", "pattern", "sparql", "cypher")


def about(graph: Graph, arguments: Document) -> Document:
    """What is served."""
    status = graph.status()
    return {
        "version": condgraph.__version__,
        "graph": graph.name,
        "store": answers.store_of(graph),
        "counts": dict(status.counts),
        "sources": [{"name": source.name, "format": source.format} for source in status.sources],
        "languages": list(LANGUAGES),
        "functions": vocabulary(),
    }


def schema(graph: Graph, arguments: Document) -> Document:
    """`Graph.schema` as data."""
    return graph.schema(
        source=arguments.get("source"), concept=arguments.get("concept"), predicate=arguments.get("predicate")
    ).data()


def names(graph: Graph, arguments: Document) -> Document:
    """Names for completion."""
    return {"names": completed(graph, arguments["text"], arguments["kinds"], arguments["limit"], ids=arguments.get("ids", False))}


def query(graph: Graph, arguments: Document) -> Result:
    """A program in any language."""
    begin = time.perf_counter()
    graph, language = _viewed(graph, arguments), arguments.get("language")
    text, most, form = arguments["program"], arguments["limit"], arguments["format"]
    passed_on = _passed_on(graph, language)
    if passed_on:
        _refuse_options(arguments, str(language))
    if passed_on and language == "sparql":
        table = graph.sparql(text, limit=most)
        if form == "arrow":
            return "application/vnd.apache.arrow.stream", answers.as_arrow(table.to_arrow())
        return _written(answers.tabled(table, "sparql", text), form, begin)
    if passed_on:
        if text.lstrip().startswith(":"):
            what = f"{text.split(maxsplit=1)[0]!r} is a command of Neo4j Browser and cypher-shell, and no Cypher"
            raise OptionError(what, hint="paste it there, or run the program that the query was made of")
        return _written(answers.recorded(cast("Neo4jGraph", graph).cypher(text), text, most), form, begin)
    program, language, options = _bound(text, language, arguments)
    engine: Document = {} if arguments.get("engine") is None else {"engine": arguments["engine"]}
    if language == PATTERN:
        # Stores search for a pattern, and have no plan of it.
        check_options(PATTERN, options)
        matches = graph.match(program, limit=most, at=options.get("period"), **engine).asked_with(
            text, arguments.get("parameters") or {}
        )
        return _answered(graph, matches, arguments, form, begin)
    on_unknown: Any = arguments["on_unknown"]
    answer = graph.query(program, language=language, limit=most, on_unknown=on_unknown, **engine, **options)
    if parameters := arguments.get("parameters"):
        answer.asked_with(text, parameters)
    return _answered(graph, answer, arguments, form, begin, (program, options))


#: The fields that name a time.
_TIMES: Final = ("at", "between", "certain")


def _viewed(graph: Graph, arguments: Document) -> Graph:
    """The version of the graph that is asked, as a preference leaves it."""
    return graph._view(QueryOptions(as_of=arguments.get("as_of"), prefer=arguments.get("prefer")))


def _period(arguments: Document) -> Period | None:
    return QueryOptions(**{name: arguments[name] for name in _TIMES if arguments.get(name)}).period


def _bound(text: str, language: str | None, arguments: Document) -> tuple[Any, str, Document]:
    """A program with the values of its parameters in it, its language, and the options of that."""
    options: Document = {} if arguments.get("table") is None else {"table": arguments["table"]}
    if (period := _period(arguments)) is not None:
        options["period"] = period
    if arguments.get("parameters"):
        read = template(text, language)
        return read.bind(given(read.parameters, arguments["parameters"])), read.language, options
    text = unfenced(text)
    return text, language or detect(text), options


def _refuse_options(arguments: Document, language: str) -> None:
    """Raise `OptionError` for options that queries of stores do not take."""
    for name in ("table", "parameters", *_TIMES):
        if arguments.get(name):
            raise OptionError(f"{language} takes no option {name!r}", hint="KoPL, LLM queries and logical queries do")


def match(graph: Graph, arguments: Document) -> Result:
    """A pattern, with the options of `Graph.match`."""
    begin = time.perf_counter()
    options: Document = arguments.get("options") or {}
    for name in options:
        if name not in MATCH_OPTIONS:
            raise OptionError(f"a pattern takes no option {name!r}", candidates=nearest(name, MATCH_OPTIONS))
    graph = _viewed(graph, arguments)
    period: Any = _period(arguments)
    answer = graph.match(arguments["pattern"], limit=arguments["limit"], k=arguments["k"], at=period, **options)
    return _answered(graph, answer, arguments, arguments["format"], begin)


def _answered(
    graph: Graph, answer: Any, arguments: Document, form: str, begin: float, bound: tuple[Any, Document] | None = None
) -> Result:
    """An answer in its format; `bound` is the program with its options, where it has a plan."""
    if form == "arrow":
        return "application/vnd.apache.arrow.stream", answers.as_arrow(answer.to_arrow())
    queries = None
    if bound is not None and form == "json" and arguments["compiled"]:
        queries = answers.compiled(graph, bound[0], answer.language, bound[1])
    return _written(answers.answered(answer, most=arguments["limit"], facts=arguments["facts"], compiled=queries), form, begin)


def _written(document: Document, form: str, begin: float) -> Result:
    if form == "csv":
        return "text/csv; charset=utf-8", answers.as_csv(document)
    return document | {"seconds": time.perf_counter() - begin}


def explain(graph: Graph, arguments: Document) -> Document:
    """What a program becomes, without running it."""
    graph, language = _viewed(graph, arguments), arguments.get("language")
    if _passed_on(graph, language):
        _refuse_options(arguments, str(language))
    program, language, options = _bound(arguments["program"], language, arguments)
    plan = graph.explain(program, language=language, **options)
    return {"language": language, "plan": plan, "compiled": answers.compiled(graph, program, language, options)}


def tree(graph: Graph, arguments: Document) -> Document:
    """The steps of a program."""
    from condgraph.studio.trees import tree_of

    return tree_of(graph, arguments["program"], arguments.get("language"))


def entity(graph: Graph, arguments: Document) -> Document:
    """What is known of an entity."""

    if (arguments.get("id") is None) == (arguments.get("name") is None):
        raise OptionError("an entity is named by its id or by its name, by one of them")
    return around(
        graph,
        ident=arguments.get("id"),
        name=arguments.get("name"),
        page=_Page(**{name: arguments[name] for name in _Page._fields if name in arguments}),
    )


def timeline(graph: Graph, arguments: Document) -> Document:
    """`Graph.timeline` as data."""
    line = graph.timeline(arguments.get("subject"), arguments.get("predicate"), arguments.get("object"))
    line = line.part(before=arguments.get("before"), after=arguments.get("after"), certain=arguments["certain"])
    most = arguments["limit"]
    return {
        "statements": [{"fact": answers.fact(one.statement), "least": one.least, "most": one.most} for one in line[:most]],
        "total": len(line),
        "untimed": list(map(answers.fact, line.untimed[:most])),
        "total_untimed": len(line.untimed),
        "gaps": list(map(answers.cell, line.gaps()[:most])),
        "warnings": answers.warned(line.warnings),
    }


def bolt(graph: Graph, arguments: Document) -> Result:
    """A query of a connection of Bolt."""
    from condgraph.bolt.query import answered

    return "application/octet-stream", answered(graph, arguments)


CALLS: Final[dict[str, Callable[[Graph, Document], Result]]] = {
    "about": about,
    "schema": schema,
    "names": names,
    "query": query,
    "match": match,
    "explain": explain,
    "tree": tree,
    "entity": entity,
    "start": start,
    "browse": browse,
    "timeline": timeline,
    "bolt": bolt,
}


def call(graph: Graph, name: str, arguments: Document, timeout: float) -> Result:
    """Answer one call within so many seconds. SPARQL in process cannot be interrupted: the server ends the
    process.
    """
    if name == "query" and arguments.get("language") == "sparql" and answers.store_of(graph) == answers.IN_A_FOLDER:
        return query(graph, arguments)
    with within(timeout):
        return CALLS[name](graph, arguments)


def _passed_on(graph: Graph, language: str | None) -> bool:
    """Whether a text is in the language of the store itself, which answers all of it; else it is a program."""
    at = answers.store_of(graph)
    return (language == "sparql" and at in (answers.IN_A_FOLDER, answers.IN_AN_RDF_STORE)) or (
        language == "cypher" and at == answers.ON_NEO4J
    )


# -- entities ----------------------------------------------------------------------------------------

#: Entities of the same name that are listed.
_SAME: Final = 50
#: Statements of each direction that are counted by predicate on a server, where they are fetched.
_MOST_COUNTED: Final = 5_000


class _Page(NamedTuple):
    """Which statements of an entity are listed: at most `limit` of each direction and `each` of a predicate, or those
    of one predicate and direction from the one at `offset`.
    """

    limit: int
    each: int | None = None
    predicate: str | None = None
    backward: bool = False
    offset: int = 0


def around(graph: Graph, *, ident: str | None, name: str | None, page: _Page) -> dict[str, Any]:
    """An entity by its id, or the first of its name, with statements from it and to it, and how many it has of each
    predicate. Raises `UnknownNameError` with the nearest names.
    """
    most = page.limit
    if ident is not None and (concept := _label(graph, ident=ident)):
        return _concept(graph, concept, ident, most)
    counted = max(most, _MOST_COUNTED) if page.each or page.predicate is not None else most
    part, whole = _part(graph, ident, name, counted)
    numbers = [number] if ident is not None and (number := part.identified(ident)) >= 0 else []
    if not numbers and name is not None:
        numbers = part.named(name).tolist()
    if not numbers and name is not None and (concept := _label(graph, name=name)):
        return _concept(graph, concept, label_ids(graph)[concept], most)
    if not numbers:
        wanted = ident if ident is not None else name or ""
        raise UnknownNameError("entity", wanted, candidates=schema_of(graph).nearest_entities(wanted))
    number = numbers[0]
    numbered = np.array([number])
    out, into = np.sort(part.touching(numbered)), np.sort(part.touching(numbered, backward=True))
    groups = {False: _groups(part, out), True: _groups(part, into)}
    facts, pointing = (_listed(numbers, groups[backward], page, backward) for backward, numbers in ((False, out), (True, into)))
    # On a server more statements may be there than were fetched.
    full = {False: not whole and _full(part, out, counted), True: not whole and len(into) >= counted}
    above, below = _links(part, number)
    entry = part.entity(number)
    # On servers the part has the homonyms of a name alone.
    others = part.named(entry.name).tolist() if whole and entry.name else numbers
    others = [other for other in others if other != number]
    return {
        "entity": answers.entity(entry),
        "same": [answers.entity(part.entity(other)) for other in others[:_SAME]],
        "total_same": len(others) if whole else None,
        "groups": [
            {"predicate": predicate, "backward": backward, "count": len(positions), "or_more": full[backward]}
            for backward, by_name in groups.items()
            for predicate, positions in by_name.items()
        ],
        "facts": _facts(part, facts),
        "total": len(out) if whole else None,
        "pointing": _facts(part, pointing),
        "total_pointing": len(into) if whole else None,
        "more": len(out) > len(facts) or full[False],
        "more_pointing": len(into) > len(pointing) or full[True],
        "concepts": [answers.fact(link) for link in EvidenceList.of(part, [], above)] if above else [],
        "members": [answers.entity(part.entity(low)) for low, _ in below[:most]],
        "total_members": len(below) if whole else None,
    }


def _label(graph: Graph, *, ident: str | None = None, name: str | None = None) -> str | None:
    """The concept that has this id or name, where it is a label and no entity."""
    return next((label for label, known in label_ids(graph).items() if known == ident or label == name), None)


def _concept(graph: Graph, name: str, ident: str, most: int) -> dict[str, Any]:
    """A concept that is a label of a database: it has members and no statements."""
    steps = [{"function": "FindAll", "inputs": []}, {"function": "FilterConcept", "inputs": [name]}]
    answer = graph.kopl(steps, limit=most)
    nothing: list[Any] = []
    return {
        "entity": answers.entity(Entity(ident, name, EntityKind.CONCEPT)),
        "same": nothing, "total_same": None,
        "groups": nothing,
        "facts": nothing, "total": 0, "pointing": nothing, "total_pointing": 0, "more": False, "more_pointing": False,
        "concepts": nothing,
        "members": [answers.entity(item) for item in answer.entities],
        "total_members": len(answer.entities) + answer.cut,
    }  # fmt: skip


def _part(graph: Graph, ident: str | None, name: str | None, most: int) -> tuple[Snapshot, bool]:
    """A snapshot with the entity and the statements around it, and whether it is the whole graph."""
    store = graph._store_of(None)
    fetch = getattr(store, "around", None)
    if fetch is None:
        return graph.current, True
    found: Snapshot = fetch(
        [] if ident is None else [ident], [] if name is None or ident is not None else [name], most, values=True, concepts=True
    )
    return found, False


def _groups(part: Snapshot, statements: Any) -> dict[str, Any]:
    """The positions of sorted statements by the name of their predicate, in the order of the names."""
    predicates = part.predicates(statements)
    result: dict[str, Any] = {}
    for number in np.unique(predicates).tolist():
        # A relation and an attribute may have one name.
        name, own = part.predicate_name(number), np.flatnonzero(predicates == number)
        result[name] = np.concatenate([result[name], own]) if name in result else own
    return dict(sorted(result.items()))


def _listed(statements: Any, groups: dict[str, Any], page: _Page, backward: bool) -> Any:
    """The statements that a page has of one direction."""
    if page.predicate is not None:
        own = groups.get(page.predicate) if backward == page.backward else None
        return statements[:0] if own is None else statements[own[page.offset : page.offset + page.limit]]
    if page.each is None:
        return statements[: page.limit]
    chosen = [own[: page.each] for own in groups.values()]
    return statements[np.concatenate(chosen)[: page.limit]] if chosen else statements


def _full(part: Snapshot, out: Any, most: int) -> bool:
    """Whether one of the two queries from the entity reached its limit."""
    relations = part.split(out)
    return max(relations, len(out) - relations) >= most


def _facts(part: Snapshot, numbers: Any) -> list[dict[str, Any]]:
    facts = map(answers.fact, EvidenceList.of(part, np.sort(numbers).tolist(), []))
    return sorted(facts, key=lambda fact: (fact["predicate"], fact["subject"]["name"], fact["object"]["text"]))


def _links(part: Snapshot, number: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The memberships of an entity, and of a concept those of its members."""
    get = part.arrays.get
    entities, concepts = get("mem.e"), get("mem.c")
    above = sorted({(number, int(concepts[i])) for i in np.flatnonzero(entities == number)})
    low, high = np.searchsorted(concepts, [number, number + 1])
    below = [(item, number) for item in np.unique(entities[low:high]).tolist()]
    return above, below


# -- dropped files -----------------------------------------------------------------------------------

#: Kinds of problems that are reported.
_KINDS: Final = 100


def load(place: str, file: str, *, name: str, key: str | None, refs: list[str], tables: list[str]) -> dict[str, Any]:
    """Load one file into the graph in a folder; returns a report. It runs in a worker without network, within
    bounds of time, memory and size.

    Records that cannot be used are left out and reported. `key` and `refs` are options of tables. A
    table with certain references to others of that graph (`tables` are their files), or from them, is
    loaded together with them.
    """
    from condgraph.engine.errors import FormatError
    from condgraph.loaders.fetch import fetched
    from condgraph.loaders.files import suffix_of
    from condgraph.loaders.folder.load import PARQUET, SUFFIXES, referring
    from condgraph.loaders.recognise import recognise

    path = Path(file)
    options: dict[str, Any] = {}
    try:
        with fetched(path) as there:
            recognised = recognise(there)
    except FormatError as error:
        # The page has no option for the format.
        raise FormatError(
            error.message, hint="tables (CSV, Excel, Parquet, JSON), RDF, triples, SQLite and graphs of JSON are"
        ) from None
    if key:
        options["key"] = key
    if refs:
        options["refs"] = refs
    known = set(recognised[0].format.options)
    if any(option not in known for option in options):
        raise OptionError(f"a file of the format {recognised[0].format.name!r} has no key or references", hint="leave them out")
    table = not options and suffix_of(path) in (*SUFFIXES, *PARQUET) and recognised[0].format.name in ("csv", "tsv", "parquet")
    joined, questions = referring([*map(Path, tables), path], {}) if table and tables else ([], [])
    with condgraph.open(place) as graph:
        if path in joined:
            again = set(map(str, joined))
            graph.unload(*(source.name for source in graph.status().sources if source.location in again))
            report = graph.load(joined, name="files", on_error="skip")
        else:
            report = graph.load(path, name=name, on_error="skip", **options)
        counts = dict(graph.status().counts)
    problems = [
        *map(str, report.kinds),
        *(f"{source.name}, field {column!r}: {question}" for source, column, question in questions if column),
    ]
    names = {file: name, **{path: Path(path).name for path in tables}}
    return {
        "sources": list(report.sources),
        "formats": list(report.formats),
        "statements": report.statements,
        "entities": report.entities,
        "skipped": report.skipped,
        "joins": list(report.joins),
        "problems": [without_folders(text, names) for text in problems[:_KINDS]],
        "warnings": answers.warned([without_folders(text, names) for text in report.warnings]),
        "seconds": report.seconds,
        "counts": counts,
        "table": table,
    }


def without_folders(text: str, names: dict[str, str]) -> str:
    """A message with the names of dropped files in place of their paths on the server."""
    for file, name in names.items():
        text = text.replace(file, name)
    return text


# -- questions in words ------------------------------------------------------------------------------


def _turn(item: dict[str, Any]) -> Turn:
    """A turn of a conversation, or a part of one, that a client kept."""
    from condgraph.ask.chat import Turn
    from condgraph.ask.programs import METHODS

    method = METHODS.get(item.get("language") or "")
    if item.get("program") and method is None:
        raise OptionError("a turn before has a program and no language of it", candidates=list(METHODS))
    parts = [_turn(part) for part in item.get("parts") or ()]
    return Turn(**{"choose": {}, **item, "language": "" if method is None else method.language, "parts": parts})


def ask(graph: Graph, llm: str, arguments: dict[str, Any], tell: Callable[[dict[str, Any]], None], timeout: float) -> None:
    """Ask a question in words; calls `tell` with `{"step": ...}` after each step, `{"text": ...}`
    for pieces of what the model writes, if asked for, and `{"outcome": ...}` last.
    """
    from condgraph.ask.chat import lasting, recalled
    from condgraph.models.chat import Budget

    begin = time.perf_counter()
    turns = [_turn(item) for item in arguments.get("before") or ()]
    with within(timeout):
        before = recalled(graph, turns, limit=arguments["limit"])
    choose: dict[str, str] = {}
    for turn in turns:
        choose |= lasting(turn.choose)
    choose |= arguments.get("choose") or {}
    timeout = max(timeout - (time.perf_counter() - begin), 0.001)

    def on_step(step: AskStep) -> None:
        tell({"step": {"name": step.name, "seconds": step.seconds, "about": step.about}})

    def on_text(piece: AskText) -> None:
        tell({"text": {"step": piece.step, "text": piece.text, "sample": piece.sample, "begins": piece.begins}})

    found = graph.ask(
        arguments["question"], llm, via=arguments.get("via") or "auto", source=arguments.get("source"),
        choose=choose, samples=arguments.get("samples") or 1, verbalise=bool(arguments.get("verbalise")),
        aware=bool(arguments.get("aware")), parts=arguments.get("parts") or "never",
        budget=Budget(seconds=timeout), limit=arguments["limit"], timeout=timeout, on_step=on_step, before=before,
        on_text=on_text if arguments.get("texts") else None,
    )  # fmt: skip
    data = found.data()
    answer = None
    if found.answer is not None:
        queries = answers.compiled(graph, found.answer.program, found.answer.language)
        answer = answers.answered(found.answer, most=arguments["limit"], facts=arguments["facts"], compiled=queries)
    fields = (
        "question",
        "status",
        "confidence",
        "text",
        "citations",
        "sentences",
        "language",
        "reason",
        "program",
        "source",
        "references",
        "choices",
        "attempts",
        "parts",
        "votes",
        "failures",
    )
    outcome = {name: data[name] for name in fields}
    tell(
        {
            "outcome": outcome
            | {
                "answer": answer,
                "warnings": answers.warned(found.warnings),
                "calls": found.calls,
                "tokens": data["tokens"],
                "model": found.model,
            }
        }
    )

"""The operations of the API in a worker process. Each is a function from a graph and arguments to a
document. Also loads of dropped files, and questions in words as a stream.
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
#: The languages of programs, and the query languages of stores.
LANGUAGES: Final = ("kopl", "llm_query", "logic", "pattern", "sparql", "cypher")


def about(graph: Graph, arguments: Document) -> Document:
    """Describe what is served."""
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
    """Return `Graph.schema` as data."""
    return graph.schema(**{name: arguments.get(name) for name in ("source", "concept", "predicate")}).data()


def names(graph: Graph, arguments: Document) -> Document:
    """Return names for completion."""
    return {"names": completed(graph, arguments["text"], arguments["kinds"], arguments["limit"], ids=arguments.get("ids", False))}


def query(graph: Graph, arguments: Document) -> Result:
    """Answer a program in any language."""
    started = time.perf_counter()
    graph, language = _viewed(graph, arguments), arguments.get("language")
    text, limit, result_format = arguments["program"], arguments["limit"], arguments["format"]
    native = _passed_on(graph, language)
    if native:
        _refuse_options(arguments, str(language))
    if native and language == "sparql":
        table = graph.sparql(text, limit=limit)
        if result_format == "arrow":
            return "application/vnd.apache.arrow.stream", answers.as_arrow(table.to_arrow())
        return _written(answers.tabled(table, "sparql", text), result_format, started)
    if native:
        if text.lstrip().startswith(":"):
            message = f"{text.split(maxsplit=1)[0]!r} is a command of Neo4j Browser and cypher-shell, and no Cypher"
            raise OptionError(message, hint="paste it there, or run the program that the query was made of")
        return _written(answers.recorded(cast("Neo4jGraph", graph).cypher(text), text, limit), result_format, started)
    program, language, options = _bound(text, language, arguments)
    engine: Document = {} if arguments.get("engine") is None else {"engine": arguments["engine"]}
    if language == PATTERN:
        # Stores search for a pattern directly, without a plan.
        check_options(PATTERN, options)
        matches = graph.match(program, limit=limit, at=options.get("period"), **engine)
        matches.asked_with(text, arguments.get("parameters") or {})
        return _answered(graph, matches, arguments, result_format, started)
    on_unknown: Any = arguments["on_unknown"]
    answer = graph.query(program, language=language, limit=limit, on_unknown=on_unknown, **engine, **options)
    if parameters := arguments.get("parameters"):
        answer.asked_with(text, parameters)
    return _answered(graph, answer, arguments, result_format, started, (program, options))


#: The fields that specify a time.
_TIMES: Final = ("at", "between", "certain")


def _viewed(graph: Graph, arguments: Document) -> Graph:
    """Return the requested version of the graph, with the preferences applied."""
    return graph._view(QueryOptions(as_of=arguments.get("as_of"), prefer=arguments.get("prefer")))


def _period(arguments: Document) -> Period | None:
    return QueryOptions(**{name: arguments[name] for name in _TIMES if arguments.get(name)}).period


def _bound(text: str, language: str | None, arguments: Document) -> tuple[Any, str, Document]:
    """Return a program with its parameters filled in, its language, and the options for that language."""
    options: Document = {} if arguments.get("table") is None else {"table": arguments["table"]}
    if (period := _period(arguments)) is not None:
        options["period"] = period
    if arguments.get("parameters"):
        parsed = template(text, language)
        return parsed.bind(given(parsed.parameters, arguments["parameters"])), parsed.language, options
    text = unfenced(text)
    return text, language or detect(text), options


def _refuse_options(arguments: Document, language: str) -> None:
    """Raise `OptionError` for options that queries in a store's own language do not support."""
    for name in ("table", "parameters", *_TIMES):
        if arguments.get(name):
            raise OptionError(f"{language} takes no option {name!r}", hint="KoPL, LLM queries and logical queries do")


def match(graph: Graph, arguments: Document) -> Result:
    """Search for a pattern with the options of `Graph.match`."""
    started = time.perf_counter()
    options: Document = arguments.get("options") or {}
    for name in options:
        if name not in MATCH_OPTIONS:
            raise OptionError(f"a pattern takes no option {name!r}", candidates=nearest(name, MATCH_OPTIONS))
    graph = _viewed(graph, arguments)
    period: Any = _period(arguments)
    answer = graph.match(arguments["pattern"], limit=arguments["limit"], k=arguments["k"], at=period, **options)
    return _answered(graph, answer, arguments, arguments["format"], started)


def _answered(
    graph: Graph, answer: Any, arguments: Document, form: str, begin: float, bound: tuple[Any, Document] | None = None
) -> Result:
    """Return an answer in its format. `bound` is the program with its options if it has a plan."""
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
    """Return what a program becomes, without running it."""
    graph, language = _viewed(graph, arguments), arguments.get("language")
    if _passed_on(graph, language):
        _refuse_options(arguments, str(language))
    program, language, options = _bound(arguments["program"], language, arguments)
    plan = graph.explain(program, language=language, **options)
    return {"language": language, "plan": plan, "compiled": answers.compiled(graph, program, language, options)}


def tree(graph: Graph, arguments: Document) -> Document:
    """Return the steps of a program."""
    from condgraph.studio.trees import tree_of

    return tree_of(graph, arguments["program"], arguments.get("language"))


def entity(graph: Graph, arguments: Document) -> Document:
    """Return what is known about an entity."""

    if (arguments.get("id") is None) == (arguments.get("name") is None):
        raise OptionError("an entity is named by its id or by its name, by one of them")
    return around(
        graph,
        ident=arguments.get("id"),
        name=arguments.get("name"),
        page=_Page(**{name: arguments[name] for name in _Page._fields if name in arguments}),
    )


def timeline(graph: Graph, arguments: Document) -> Document:
    """Return `Graph.timeline` as data."""
    line = graph.timeline(arguments.get("subject"), arguments.get("predicate"), arguments.get("object"))
    line = line.part(before=arguments.get("before"), after=arguments.get("after"), certain=arguments["certain"])
    limit = arguments["limit"]
    return {
        "statements": [{"fact": answers.fact(item.statement), "least": item.least, "most": item.most} for item in line[:limit]],
        "total": len(line),
        "untimed": list(map(answers.fact, line.untimed[:limit])),
        "total_untimed": len(line.untimed),
        "gaps": list(map(answers.cell, line.gaps()[:limit])),
        "warnings": answers.warned(line.warnings),
    }


def bolt(graph: Graph, arguments: Document) -> Result:
    """Answer a query of a Bolt connection."""
    from condgraph.bolt.query import answered

    return "application/octet-stream", answered(graph, arguments)


CALLS: Final[dict[str, Callable[[Graph, Document], Result]]] = {
    call.__name__: call for call in (about, schema, names, query, match, explain, tree, entity, start, browse, timeline, bolt)
}


def call(graph: Graph, name: str, arguments: Document, timeout: float) -> Result:
    """Answer one call within `timeout` seconds.

    SPARQL in this process cannot be interrupted, so the server ends the process instead.
    """
    if name == "query" and arguments.get("language") == "sparql" and answers.store_of(graph) == answers.IN_A_FOLDER:
        return query(graph, arguments)
    with within(timeout):
        return CALLS[name](graph, arguments)


def _passed_on(graph: Graph, language: str | None) -> bool:
    """Return whether a text is in the store's own language and is passed on to it unchanged."""
    kind = answers.store_of(graph)
    return (language == "sparql" and kind in (answers.IN_A_FOLDER, answers.IN_AN_RDF_STORE)) or (
        language == "cypher" and kind == answers.ON_NEO4J
    )


# -- entities ----------------------------------------------------------------------------------------

#: How many other entities with the same name are listed.
_SAME: Final = 50
#: How many statements in each direction are fetched from a server to count them by predicate.
_MAX_COUNTED: Final = 5_000


class _Page(NamedTuple):
    """Which statements of an entity are listed.

    At most `limit` in each direction and `each` of a predicate, or those of one predicate in one
    direction, starting at `offset`.
    """

    limit: int
    each: int | None = None
    predicate: str | None = None
    backward: bool = False
    offset: int = 0


def around(graph: Graph, *, ident: str | None, name: str | None, page: _Page) -> dict[str, Any]:
    """Return an entity, by its id or the first with its name, with the statements from and to it.

    The result also counts the statements by predicate. Raises `UnknownNameError` with the nearest
    names.
    """
    limit = page.limit
    if ident is not None and (concept := _label(graph, ident=ident)):
        return _concept(graph, concept, ident, limit)
    fetched = max(limit, _MAX_COUNTED) if page.each or page.predicate is not None else limit
    snapshot, complete = _part(graph, ident, name, fetched)
    numbers = [number] if ident is not None and (number := snapshot.identified(ident)) >= 0 else []
    if not numbers and name is not None:
        numbers = snapshot.named(name).tolist()
    if not numbers and name is not None and (concept := _label(graph, name=name)):
        return _concept(graph, concept, label_ids(graph)[concept], limit)
    if not numbers:
        wanted = ident if ident is not None else name or ""
        raise UnknownNameError("entity", wanted, candidates=schema_of(graph).nearest_entities(wanted))
    number = numbers[0]
    numbered = np.array([number])
    out, into = np.sort(snapshot.touching(numbered)), np.sort(snapshot.touching(numbered, backward=True))
    groups = {False: _groups(snapshot, out), True: _groups(snapshot, into)}
    facts, pointing = (_listed(numbers, groups[backward], page, backward) for backward, numbers in ((False, out), (True, into)))
    # A server may have more statements than were fetched.
    may_have_more = {False: not complete and _full(snapshot, out, fetched), True: not complete and len(into) >= fetched}
    concepts, members = _links(snapshot, number)
    main = snapshot.entity(number)
    # From a server, the snapshot has all entities with a name only if the name was asked for.
    others = snapshot.named(main.name).tolist() if complete and main.name else numbers
    others = [other for other in others if other != number]
    return {
        "entity": answers.entity(main),
        "same": [answers.entity(snapshot.entity(other)) for other in others[:_SAME]],
        "total_same": len(others) if complete else None,
        "groups": [
            {"predicate": predicate, "backward": backward, "count": len(positions), "or_more": may_have_more[backward]}
            for backward, by_name in groups.items()
            for predicate, positions in by_name.items()
        ],
        "facts": _facts(snapshot, facts),
        "total": len(out) if complete else None,
        "pointing": _facts(snapshot, pointing),
        "total_pointing": len(into) if complete else None,
        "more": len(out) > len(facts) or may_have_more[False],
        "more_pointing": len(into) > len(pointing) or may_have_more[True],
        "concepts": [answers.fact(link) for link in EvidenceList.of(snapshot, [], concepts)] if concepts else [],
        "members": [answers.entity(snapshot.entity(member)) for member, _ in members[:limit]],
        "total_members": len(members) if complete else None,
    }


def _label(graph: Graph, *, ident: str | None = None, name: str | None = None) -> str | None:
    """Return the concept with this id or name if it is a label and not an entity."""
    return next((label for label, known in label_ids(graph).items() if known == ident or label == name), None)


def _concept(graph: Graph, name: str, ident: str, most: int) -> dict[str, Any]:
    """Return a concept that is a label in a database: it has members but no statements."""
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
    """Return a snapshot with the entity and its statements, and whether that is the whole graph."""
    store = graph._store_of(None)
    fetch = getattr(store, "around", None)
    if fetch is None:
        return graph.current, True
    snapshot: Snapshot = fetch(
        [] if ident is None else [ident], [] if name is None or ident is not None else [name], most, values=True, concepts=True
    )
    return snapshot, False


def _groups(part: Snapshot, statements: Any) -> dict[str, Any]:
    """Group the positions of sorted statements by predicate name, ordered by name."""
    predicates = part.predicates(statements)
    result: dict[str, Any] = {}
    for number in np.unique(predicates).tolist():
        # A relation and an attribute may have the same name.
        name, positions = part.predicate_name(number), np.flatnonzero(predicates == number)
        result[name] = np.concatenate([result[name], positions]) if name in result else positions
    return dict(sorted(result.items()))


def _listed(statements: Any, groups: dict[str, Any], page: _Page, backward: bool) -> Any:
    """Return the statements of one direction that are on a page."""
    if page.predicate is not None:
        positions = groups.get(page.predicate) if backward == page.backward else None
        return statements[:0] if positions is None else statements[positions[page.offset : page.offset + page.limit]]
    if page.each is None:
        return statements[: page.limit]
    chosen = [positions[: page.each] for positions in groups.values()]
    return statements[np.concatenate(chosen)[: page.limit]] if chosen else statements


def _full(part: Snapshot, out: Any, most: int) -> bool:
    """Return whether one of the two queries for statements from the entity reached its limit."""
    relations = part.split(out)
    return max(relations, len(out) - relations) >= most


def _facts(part: Snapshot, numbers: Any) -> list[dict[str, Any]]:
    facts = map(answers.fact, EvidenceList.of(part, np.sort(numbers).tolist(), []))
    return sorted(facts, key=lambda fact: (fact["predicate"], fact["subject"]["name"], fact["object"]["text"]))


def _links(part: Snapshot, number: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the memberships of an entity and, if it is a concept, the memberships of its members."""
    get = part.arrays.get
    entities, concepts = get("mem.e"), get("mem.c")
    above = sorted({(number, int(concepts[i])) for i in np.flatnonzero(entities == number)})
    start, end = np.searchsorted(concepts, [number, number + 1])
    below = [(item, number) for item in np.unique(entities[start:end]).tolist()]
    return above, below


# -- dropped files -----------------------------------------------------------------------------------

#: How many kinds of problems are reported.
_KINDS: Final = 100


def load(place: str, file: str, *, name: str, key: str | None, refs: list[str], tables: list[str]) -> dict[str, Any]:
    """Load one file into the graph in a folder, and return a report.

    This runs in a worker without network, with limits on time, memory and size. Records that cannot be
    used are left out and reported. `key` and `refs` are options for tables. `tables` are the files
    that are loaded already: if the table certainly refers to others of them, or they to it, it is
    loaded together with them.
    """
    from condgraph.engine.errors import FormatError
    from condgraph.loaders.fetch import fetched
    from condgraph.loaders.files import suffix_of
    from condgraph.loaders.folder.load import PARQUET, SUFFIXES, referring
    from condgraph.loaders.recognise import recognise

    path = Path(file)
    options: dict[str, Any] = {name: value for name, value in (("key", key), ("refs", refs)) if value}
    try:
        with fetched(path) as local:
            recognised = recognise(local)
    except FormatError as error:
        # The page cannot set the format.
        hint = "tables (CSV, Excel, Parquet, JSON), RDF, triples, SQLite and graphs of JSON are"
        raise FormatError(error.message, hint=hint) from None
    supported = set(recognised[0].format.options)
    if any(option not in supported for option in options):
        raise OptionError(f"a file of the format {recognised[0].format.name!r} has no key or references", hint="leave them out")
    table = not options and suffix_of(path) in (*SUFFIXES, *PARQUET) and recognised[0].format.name in ("csv", "tsv", "parquet")
    joined, questions = referring([*map(Path, tables), path], {}) if table and tables else ([], [])
    with condgraph.open(place) as graph:
        if path in joined:
            paths = set(map(str, joined))
            graph.unload(*(source.name for source in graph.status().sources if source.location in paths))
            report = graph.load(joined, name="files", on_error="skip")
        else:
            report = graph.load(path, name=name, on_error="skip", **options)
        counts = dict(graph.status().counts)
    problems = list(map(str, report.kinds))
    problems += [f"{source.name}, field {column!r}: {question}" for source, column, question in questions if column]
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
    """Replace the server's paths of dropped files in a message by their names."""
    for file, name in names.items():
        text = text.replace(file, name)
    return text


# -- questions in words ------------------------------------------------------------------------------


def _turn(item: dict[str, Any]) -> Turn:
    """Convert a turn of a conversation, or a part of one, that a client sends back."""
    from condgraph.ask.chat import Turn
    from condgraph.ask.programs import METHODS

    method = METHODS.get(item.get("language") or "")
    if item.get("program") and method is None:
        raise OptionError("a turn before has a program and no language of it", candidates=list(METHODS))
    parts = [_turn(part) for part in item.get("parts") or ()]
    return Turn(**{"choose": {}, **item, "language": "" if method is None else method.language, "parts": parts})


def ask(graph: Graph, llm: str, arguments: dict[str, Any], tell: Callable[[dict[str, Any]], None], timeout: float) -> None:
    """Answer a question in words.

    Calls `tell` with `{"step": ...}` after each step, with `{"text": ...}` for pieces of the model's
    text if requested, and finally with `{"outcome": ...}`.
    """
    from condgraph.ask.chat import lasting_choices, rerun_turns
    from condgraph.models.chat import Budget

    started = time.perf_counter()
    turns = [_turn(item) for item in arguments.get("before") or ()]
    with within(timeout):
        before = rerun_turns(graph, turns, limit=arguments["limit"])
    choose: dict[str, str] = {}
    for turn in turns:
        choose |= lasting_choices(turn.choose)
    choose |= arguments.get("choose") or {}
    timeout = max(timeout - (time.perf_counter() - started), 0.001)

    def on_step(step: AskStep) -> None:
        tell({"step": {"name": step.name, "seconds": step.seconds, "about": step.about}})

    def on_text(piece: AskText) -> None:
        tell({"text": {"step": piece.step, "text": piece.text, "sample": piece.sample, "begins": piece.begins}})

    outcome = graph.ask(
        arguments["question"], llm, via=arguments.get("via") or "auto", source=arguments.get("source"),
        choose=choose, samples=arguments.get("samples") or 1, verbalise=bool(arguments.get("verbalise")),
        aware=bool(arguments.get("aware")), parts=arguments.get("parts") or "never",
        budget=Budget(seconds=timeout), limit=arguments["limit"], timeout=timeout, on_step=on_step, before=before,
        on_text=on_text if arguments.get("texts") else None,
    )  # fmt: skip
    data = outcome.data()
    answer = None
    if outcome.answer is not None:
        queries = answers.compiled(graph, outcome.answer.program, outcome.answer.language)
        answer = answers.answered(outcome.answer, most=arguments["limit"], facts=arguments["facts"], compiled=queries)
    names = (
        *("question", "status", "confidence", "text", "citations", "sentences", "language", "reason", "program", "source"),
        *("references", "choices", "attempts", "parts", "votes", "failures", "tokens"),
    )
    further = {"answer": answer, "warnings": answers.warned(outcome.warnings), "calls": outcome.calls, "model": outcome.model}
    tell({"outcome": {name: data[name] for name in names} | further})

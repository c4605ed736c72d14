"""What the API can be asked, answered in a worker process: one function for each operation of
`spec`, from a graph and its arguments to a document.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import condgraph
from condgraph.engine.bounds import within
from condgraph.engine.errors import OptionError, UnsupportedError, nearest
from condgraph.languages.fences import unfenced
from condgraph.languages.parameters import given
from condgraph.languages.registry import PATTERN, check_options, detect, template
from condgraph.patterns.options import NAMES as MATCH_OPTIONS
from condgraph.studio import answers
from condgraph.studio.names import completed
from condgraph.studio.words import vocabulary

if TYPE_CHECKING:
    from condgraph.graph import Graph

Document = dict[str, Any]
#: What a call gives: a document, or the media type and bytes of a file.
Given = Document | tuple[str, bytes]
#: Languages that people write for the store itself.
FOREIGN: Final = ("sparql", "cypher")
LANGUAGES: Final = ("kopl", "llm_query", "logic", "pattern", *FOREIGN)


def about(graph: Graph, arguments: Document) -> Document:
    """What is served: counts, sources, languages, functions."""
    status = graph.status()
    return {
        "version": condgraph.__version__,
        "graph": graph.name,
        "store": answers.store_of(graph),
        "counts": dict(status.counts),
        "sources": [{"name": one.name, "format": one.format} for one in status.sources],
        "languages": [one for one in LANGUAGES if _has(graph, one)],
        "functions": vocabulary(),
    }


def schema(graph: Graph, arguments: Document) -> Document:
    """`Graph.schema` as data."""
    found = graph.schema(source=arguments.get("source"), concept=arguments.get("concept"), predicate=arguments.get("predicate"))
    return found.data()


def names(graph: Graph, arguments: Document) -> Document:
    """Names for completion."""
    kinds = arguments.get("kinds") or ["entity", "predicate", "concept", "source"]
    return {"names": completed(graph, arguments["text"], kinds, arguments["limit"], ids=arguments.get("ids", False))}


def query(graph: Graph, arguments: Document) -> Given:
    """A program in any language."""
    begin = time.perf_counter()
    language = arguments.get("language")
    if language in FOREIGN and not _has(graph, language):
        raise UnsupportedError(
            f"a graph {answers.store_of(graph)}", [{"sparql": "SPARQL", "cypher": "Cypher"}[language]], hint="ask KoPL, say"
        )
    text, most = arguments["program"], arguments["limit"]
    if language in FOREIGN:
        _only_of_programs(arguments, language)
    form = arguments.get("format") or "json"
    if language == "sparql":
        table = graph.sparql(text, limit=most)
        if form == "arrow":
            return "application/vnd.apache.arrow.stream", answers.as_arrow(table.to_arrow())
        return _written(answers.tabled(table, "sparql", text), form, begin)
    if language == "cypher":
        if text.lstrip().startswith(":"):
            what = f"{text.split(maxsplit=1)[0]!r} is a command of Neo4j Browser and cypher-shell, and no Cypher"
            raise OptionError(what, hint="paste it there, or run the program that the query was made of")
        return _written(answers.recorded(graph.cypher(text), text, most), form, begin)  # type: ignore[attr-defined]
    program, language, options = _asked(text, language, arguments)
    engine: Document = {} if arguments.get("engine") is None else {"engine": arguments["engine"]}
    if language == PATTERN:
        # Stores search for a pattern, and have no plan of it.
        check_options(PATTERN, options)
        matches = graph.match(program, limit=most, **engine).asked_with(text, arguments.get("parameters") or {})
        return _answered(graph, matches, arguments, form, begin)
    on_unknown: Any = arguments.get("on_unknown") or "error"
    answer = graph.query(program, language=language, limit=most, on_unknown=on_unknown, **engine, **options)
    if parameters := arguments.get("parameters"):
        answer.asked_with(text, parameters)
    return _answered(graph, answer, arguments, form, begin, (program, options))


def _asked(text: str, language: str | None, arguments: Document) -> tuple[Any, str, Document]:
    """A program with the values of its parameters in it, its language, and the options of that."""
    options: Document = {} if arguments.get("table") is None else {"table": arguments["table"]}
    if arguments.get("parameters"):
        read = template(text, language)
        return read.bind(given(read.parameters, arguments["parameters"])), read.language, options
    text = unfenced(text)
    return text, language or detect(text), options


def _only_of_programs(arguments: Document, language: str) -> None:
    """Raises `OptionError` for what queries of stores do not take."""
    for name in ("table", "parameters"):
        if arguments.get(name):
            raise OptionError(f"{language} takes no option {name!r}", hint="KoPL, LLM queries and logical queries do")


def match(graph: Graph, arguments: Document) -> Given:
    """A pattern, with the options of `Graph.match`."""
    begin = time.perf_counter()
    options: Document = arguments.get("options") or {}
    for name in options:
        if name not in MATCH_OPTIONS:
            raise OptionError(f"a pattern takes no option {name!r}", candidates=nearest(name, MATCH_OPTIONS))
    answer = graph.match(arguments["pattern"], limit=arguments["limit"], k=arguments.get("k", 3), **options)
    return _answered(graph, answer, arguments, arguments.get("format") or "json", begin)


def _answered(
    graph: Graph, answer: Any, arguments: Document, form: str, begin: float, asked: tuple[Any, Document] | None = None
) -> Given:
    """An answer in its form; `asked` is the program with its options, where it has a plan."""
    if form == "arrow":
        return "application/vnd.apache.arrow.stream", answers.as_arrow(answer.to_arrow())
    queries = None
    if asked is not None and form == "json" and arguments.get("compiled", True):
        queries = answers.compiled(graph, asked[0], answer.language, asked[1])
    return _written(
        answers.answered(answer, most=arguments["limit"], facts=arguments.get("facts", 200), compiled=queries), form, begin
    )


def _written(document: Document, form: str, begin: float) -> Given:
    if form == "csv":
        return "text/csv; charset=utf-8", answers.as_csv(document)
    return document | {"seconds": time.perf_counter() - begin}


def explain(graph: Graph, arguments: Document) -> Document:
    """What a program becomes, without running it."""
    language = arguments.get("language")
    if language in FOREIGN:
        _only_of_programs(arguments, language)
    program, language, options = _asked(arguments["program"], language, arguments)
    plan = graph.explain(program, language=language, **options)
    return {"language": language, "plan": plan, "compiled": answers.compiled(graph, program, language, options)}


def tree(graph: Graph, arguments: Document) -> Document:
    """The steps of a program."""
    from condgraph.studio.trees import tree_of

    return tree_of(graph, arguments["program"], arguments.get("language"))


def entity(graph: Graph, arguments: Document) -> Document:
    """What is known of an entity."""
    from condgraph.studio.entity import around

    if (arguments.get("id") is None) == (arguments.get("name") is None):
        raise OptionError("an entity is named by its id or by its name, by one of them")
    return around(graph, ident=arguments.get("id"), name=arguments.get("name"), most=arguments["limit"])


CALLS: Final[dict[str, Callable[[Graph, Document], Given]]] = {
    "about": about,
    "schema": schema,
    "names": names,
    "query": query,
    "match": match,
    "explain": explain,
    "tree": tree,
    "entity": entity,
}


def call(graph: Graph, name: str, arguments: Document, timeout: float) -> Given:
    """Answer one call within so many seconds. SPARQL in process cannot be told to stop: whoever
    runs this process ends it.
    """
    if name == "query" and arguments.get("language") == "sparql" and answers.store_of(graph) == answers.IN_A_FOLDER:
        return query(graph, arguments)
    with within(timeout):
        return CALLS[name](graph, arguments)


def _has(graph: Graph, language: str) -> bool:
    if language == "sparql":
        return answers.store_of(graph) != answers.ON_NEO4J
    return language != "cypher" or answers.store_of(graph) == answers.ON_NEO4J

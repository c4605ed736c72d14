"""What an agent can do with a graph: read its schema, find names, run programs and patterns, ask in words,
and see what an answer is based on. It is available as calls that return records, as plain functions, and
as pieces of text for retrievers.

Each call is limited by a deadline, by a number of values, and by the length of texts. Nothing is
written. Errors are the typed errors of the package, with the nearest names, so that a program can be
corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from inspect import Signature, cleandoc, signature
from threading import Event, Lock
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

from condgraph.agents.guide import DATA, Examples, examples, hint_for_tools
from condgraph.engine.algebra import ByName, around
from condgraph.engine.bounds import within
from condgraph.engine.errors import CondgraphError, OptionError, ParseError, UnknownNameError, nearest, shortened
from condgraph.engine.facts import shown
from condgraph.engine.records import place_text
from condgraph.engine.snapshot.directory import version_of
from condgraph.engine.store import plan_texts
from condgraph.languages.registry import PATTERN, detect, is_sql, unfenced
from condgraph.prepared import run
from condgraph.query_options import ABOUT, QueryOptions

if TYPE_CHECKING:
    from condgraph.engine.answer import Answer
    from condgraph.engine.conflicts import Prefer
    from condgraph.engine.records import Evidence
    from condgraph.graph import Graph
    from condgraph.overview.schema import GraphSchema


# -- records -----------------------------------------------------------------------------------------
# The results of the tools, as records that can be written as JSON. Lists are cut at the limit and texts
# at `MAX_TEXT`. Everything that is left out is counted or marked, never dropped silently.


#: The most characters of a text in a record.
MAX_TEXT: Final = 2_000


@dataclass(frozen=True)
class Fact:
    """A statement of the graph: `text` as a line, its parts, and its sources with rows."""

    text: str
    subject: str
    predicate: str
    object: str
    qualifiers: dict[str, str]
    sources: list[str]

    @classmethod
    def of(cls, fact: Evidence) -> Fact:
        """Convert a piece of evidence."""
        return cls(
            shortened(str(fact), MAX_TEXT), named(fact.subject), fact.predicate, named(fact.object),
            {key: named(value) for key, value in fact.qualifiers},
            [place_text(source, row) for source, row in fact.sources],
        )  # fmt: skip


@dataclass(frozen=True)
class Answered:
    """The answer to a program.

    `answers` have types: entities have ids, quantities have numbers and units, times have bounds, and a
    table has one record per row with the cells by column. There are also the distinct `texts`, the
    total number of answers, the warnings, and the number of statements that the answer is based on.
    `facts` are the first of these statements.
    """

    program: str
    language: str
    texts: list[str]
    answers: list[dict[str, Any]]
    total: int
    warnings: list[str]
    facts: list[Fact] = field(default_factory=list)
    facts_total: int = 0


@dataclass(frozen=True)
class Evidenced:
    """The statements that an answer is based on, starting at `offset`.

    `searched` is what was searched completely, if the answer depends on nothing else being there.
    """

    program: str
    texts: list[str]
    facts: list[Fact]
    offset: int
    total: int
    searched: list[str]


@dataclass(frozen=True)
class NameLookup:
    """What a name means in the graph.

    It has the `entities` with that name, whether it is a relation, an attribute, a qualifier or a
    concept, the predicates from and to its entities, and the nearest names if it is unknown.
    """

    name: str
    entities: list[dict[str, str]]
    is_a: list[str]
    attributes: list[str]
    relations_from: list[str]
    relations_to: list[str]
    nearest: list[str]
    total: int


@dataclass(frozen=True)
class Subgraph:
    """A subgraph similar to a pattern: its distance, the values of the unknowns, and its triples."""

    distance: float
    nodes: dict[str, str]
    triples: list[list[str]]


@dataclass(frozen=True)
class Matched:
    """The subgraphs nearest to a pattern."""

    pattern: str
    subgraphs: list[Subgraph]
    total: int
    exact: bool
    warnings: list[str]


@dataclass(frozen=True)
class Described:
    """What the graph can be asked about: its schema as text, and its counts."""

    text: str
    counts: dict[str, int]


def named(value: Any) -> str:
    """Return a value of a statement as text. For an entity this is its name."""
    return shortened(shown(value), MAX_TEXT)


def answered(answer: Answer, limit: int, facts: int) -> Answered:
    """Convert an answer that was cut at a limit to a record with at most `facts` facts."""
    evidence: Sequence[Any] = answer.evidence if facts else ()
    return Answered(
        shortened(answer.program, MAX_TEXT), answer.language, [shortened(text, MAX_TEXT) for text in answer.texts[:limit]],
        [_short(item, limit) for item in answer.data()[:limit]], len(answer.values) + answer.cut, list(answer.warnings),
        [Fact.of(fact) for fact in evidence[:facts]], len(evidence),
    )  # fmt: skip


def _short(record: dict[str, Any], limit: int) -> dict[str, Any]:
    return {key: _cut(value, limit) for key, value in record.items()}


def _cut(value: Any, limit: int) -> Any:
    """Shorten a value of a record. A list, which a table cell may contain, ends with the number of omitted items."""
    if isinstance(value, list):
        more = [f"... and {len(value) - limit:,} more"] if len(value) > limit else []
        return [_cut(item, limit) for item in value[:limit]] + more
    return shortened(value, MAX_TEXT) if isinstance(value, str) else value


def failure(error: CondgraphError) -> dict[str, Any]:
    """Convert an error to a record that helps to correct a program.

    It has `code`, `message`, a `hint` that fits tools, the `nearest` names, and the position (`at`: first
    and last character).
    """
    data: dict[str, Any] = {"code": error.code, "message": error.message, "nearest": list(error.candidates)}
    if hint := hint_for_tools(error):
        data["hint"] = hint
    if error.span is not None:
        data["at"] = list(error.span)
    if isinstance(error, UnknownNameError):
        data |= {"kind": error.kind, "name": shortened(error.name, MAX_TEXT)}
    return {"error": marked(data)}


#: Fields of records with texts from the graph, whose sources anybody may have written.
_OF_THE_GRAPH: Final = frozenset(
    (
        "answers", "attributes", "choices", "citations", "entities", "facts", "is_a", "message", "name", "nearest",
        "relations_from", "relations_to", "searched", "subgraphs", "text", "texts", "warnings",
    )
)  # fmt: skip


def marked(record: dict[str, Any]) -> dict[str, Any]:
    """Add `untrusted` to a record: the fields that are data from the graph, and never instructions."""
    return record | {"untrusted": [name for name in record if name in _OF_THE_GRAPH]}


def plain(record: Any) -> dict[str, Any]:
    """Return the record of a tool as JSON, with `untrusted` fields marked."""
    return record if isinstance(record, dict) else marked(asdict(record))


# -- the toolbox -------------------------------------------------------------------------------------


#: The most values, facts or subgraphs that one call returns.
MAX_RESULTS: Final = 1_000
#: How many seconds a server spends on the examples in its descriptions before it starts.
AT_START: Final = 5.0
#: The most characters of a program, pattern, question or name.
MAX_CHARACTERS: Final = 100_000


# The parameters of the tools: a type, a description for models, and bounds in pydantic's words.
_Program = Annotated[str, "A program in KoPL, Cypher that reads, an LLM query or a logical query, with the names of this graph"]
_Table = Annotated[
    str | None,
    "A clause over the rows that the program gives: where ... group by ... show ... having ... order by ... limit ...",
]
_Parameters = Annotated[Mapping[str, str | int | float] | None, "Values of the parameters ($name) of the program, unquoted"]
_Language = Annotated[str | None, "kopl, cypher, llm_query or logic; recognised from the text by default"]
_At = Annotated[str | None, ABOUT["at"].about]
_Between = Annotated[Sequence[str] | None, ABOUT["between"].about, {"min_length": 2, "max_length": 2}]
_Certain = Annotated[bool, ABOUT["certain"].about]
_AsOf = Annotated[str | None, ABOUT["as_of"].about]
_Prefer = Annotated[
    str | Sequence[str] | Mapping[str, str | Sequence[str]] | None,
    "What counts of two statements that contradict each other: rank, latest, earliest, or sources, best first; or one of these "
    'for each predicate, such as {"capital": "latest"}',
]
_Limit = Annotated[int, f"The most results to give, at most {MAX_RESULTS:,}", {"ge": 1, "le": MAX_RESULTS}]
_Facts = Annotated[int, "How many of the statements that the answer rests on to give", {"ge": 0, "le": MAX_RESULTS}]
_Offset = Annotated[int, "How many statements to leave out at the beginning", {"ge": 0}]
_Source = Annotated[str | None, "Only what has to do with this source"]
_Concept = Annotated[str | None, "Only what has to do with this concept"]
_Predicate = Annotated[str | None, "Only this relation or attribute"]
_Tokens = Annotated[int, "How long the text may be, in tokens", {"ge": 1, "le": 100_000}]
_Name = Annotated[str, "A name, spelled as you know it"]
_Pattern = Annotated[str, "Triples like (UNKNOWN 1) -[relation]-> (name), one a line; names may be misspelled, directions guessed"]
_Nearest = Annotated[int, "How many of the nearest subgraphs", {"ge": 1, "le": MAX_RESULTS}]
_Question = Annotated[str, "A question in plain words"]


class Toolbox:
    """The tools for one graph. They can be used from any thread.

    `timeout` limits each call, in seconds. `llm` is the model of `ask`, in any of its forms
    (`condgraph.models`). With `follow`, a store in a folder is read again when another process has
    loaded it.
    """

    def __init__(self, graph: Graph, *, llm: Any = None, timeout: float = 30.0, follow: bool = False) -> None:
        self.graph, self.llm, self.timeout = graph, llm, timeout
        self._directory = graph._directory if follow else None
        self._seen = self._version()
        self._lock = Lock()
        self._examples: tuple[GraphSchema, Examples] | None = None

    def _version(self) -> tuple[int, int] | None:
        return None if self._directory is None else version_of(self._directory)

    def _current(self) -> Graph:
        now = self._version()
        if now is not None and now != self._seen:
            with self._lock:
                if now != self._seen:
                    self.graph.refresh()
                    self._seen = now
        return self.graph

    def examples(self) -> Examples:
        """Return programs with names from the current graph, each of which has a result."""
        graph = self._current()
        schema = graph.schema(timeout=self.timeout)
        if self._examples is None or self._examples[0] != schema:
            self._examples = schema, examples(graph, schema)
        return self._examples[1]

    def guide(self) -> str:
        """Return a short guide on how to write programs, with these examples."""
        return self.examples().guide()

    # -- the tools ---------------------------------------------------------------------------------
    # Their docstrings and annotations are what models read (`declared`). `cancelled` ends a call.

    def schema(
        self,
        *,
        source: _Source = None,
        concept: _Concept = None,
        predicate: _Predicate = None,
        tokens: _Tokens = 2_000,
        cancelled: Event | None = None,
    ) -> Described:
        """What can be asked about the graph: sources, concepts, relations and attributes with their
        types, units, counts and examples. Look here first.
        """
        checked(tokens, "tokens", 100_000)
        with within(self.timeout, cancelled):
            graph = self._current()
            overview = graph.schema(source=source, concept=concept, predicate=predicate, timeout=self.timeout)
            return Described(
                f"{DATA}\n{overview.text(tokens)}", {name: int(count) for name, count in graph.status().counts.items()}
            )

    def find(self, name: _Name, *, limit: _Limit = 20, cancelled: Event | None = None) -> NameLookup:
        """What a name is in the graph: its entities with their ids, the relations and attributes they
        have, or the nearest names where nothing has it exactly.
        """
        checked(limit, "limit")
        short(name, "name")
        with within(self.timeout, cancelled):
            graph = self._current()
            schema = graph.schema(timeout=self.timeout)
            kinds = {
                "concept": [concept.name for concept in schema.concepts],
                "relation": [predicate.name for predicate in schema.predicates if predicate.relations],
                "attribute": [predicate.name for predicate in schema.predicates if predicate.attributes],
                "qualifier": list(dict.fromkeys(key.name for predicate in schema.predicates for key in predicate.qualifiers)),
            }
            is_a = [kind for kind, names in kinds.items() if name in names]
            near_names = list(dict.fromkeys(item for names in kinds.values() for item in nearest(name, names)))
            try:
                answer = graph.kopl([{"function": "Find", "inputs": [name]}], limit=limit)
                entities = [
                    {"id": entity.id, "name": shortened(entity.name, MAX_TEXT), "kind": entity.kind.name.lower()}
                    for entity in answer.entities
                ]
            except UnknownNameError as error:
                return NameLookup(
                    shortened(name, MAX_TEXT), [], is_a, [], [], [], list(dict.fromkeys([*error.candidates, *near_names])), 0
                )
            store = graph._store_of(None)
            predicates = {direction: plan_texts(store, plan, MAX_RESULTS) for direction, plan in around(ByName((name,))).items()}
            return NameLookup(
                shortened(name, MAX_TEXT), entities, ["entity", *is_a],
                predicates["value"], predicates["forward"], predicates["backward"],
                [], len(answer) + answer.cut,
            )  # fmt: skip

    def query(
        self,
        program: _Program,
        *,
        table: _Table = None,
        parameters: _Parameters = None,
        language: _Language = None,
        at: _At = None,
        between: _Between = None,
        certain: _Certain = False,
        as_of: _AsOf = None,
        prefer: _Prefer = None,
        limit: _Limit = 50,
        facts: _Facts = 5,
        cancelled: Event | None = None,
    ) -> Answered:
        """Run a program on the graph, exactly; `table` groups, sums up, orders and cuts its rows. Gives
        typed answers, warnings, and the first of the statements that the answer rests on.
        """
        checked(limit, "limit")
        checked(facts, "facts", least=0)
        with within(self.timeout, cancelled):
            view = _view(at, between, certain, as_of, prefer)
            return answered(self.asked(program, language, parameters, limit, table, **view), limit, facts)

    def evidence(
        self,
        program: _Program,
        *,
        table: _Table = None,
        parameters: _Parameters = None,
        language: _Language = None,
        at: _At = None,
        between: _Between = None,
        certain: _Certain = False,
        as_of: _AsOf = None,
        prefer: _Prefer = None,
        limit: _Limit = 50,
        offset: _Offset = 0,
        cancelled: Event | None = None,
    ) -> Evidenced:
        """The statements that the answer to a program rests on, each with its sources and rows, page by page."""
        checked(limit, "limit")
        checked(offset, "offset", 1 << 31, least=0)
        with within(self.timeout, cancelled):
            answer = self.asked(program, language, parameters, MAX_RESULTS, table, **_view(at, between, certain, as_of, prefer))
            evidence = answer.evidence
            searched = [str(item) for item in getattr(evidence, "searched", ())]
            texts = [shortened(text, MAX_TEXT) for text in answer.texts[:limit]]
            facts = [Fact.of(item) for item in evidence[offset : offset + limit]]
            return Evidenced(shortened(answer.program, MAX_TEXT), texts, facts, offset, len(evidence), searched)

    def asked(
        self,
        program: str,
        language: str | None,
        parameters: Mapping[str, Any] | None,
        limit: int,
        table: str | None = None,
        **view: Any,
    ) -> Answer:
        """Return the answer to a program as an `Answer`."""
        short(program, "program")
        short(table or "", "table")
        options = QueryOptions(
            language or self._language(program), timeout=self.timeout, limit=limit, table=table, parameters=parameters, **view
        )
        return run(self._current(), program, options)

    def _language(self, program: str) -> str:
        """Return the language of a program.

        If a text is in none, the error shows examples for this graph, and for SQL a table clause.
        """
        try:
            return detect(unfenced(program))
        except ParseError as error:
            try:
                known = self.examples()
            except CondgraphError:
                known = Examples()
            if is_sql(program):
                clause = known.clauses[0] if known.clauses else "show count()"
                hint = f"write the program {known.rows} with the table: {clause}"
            else:
                like = [texts[0] for texts in (known.kopl, known.cypher, known.logic, known.pattern) if texts]
                hint = (
                    f"a program of this graph is like {', or '.join(like)}" if like else "the guide says how programs are written"
                )
            raise ParseError(error.message, hint=hint) from None

    def match(
        self,
        pattern: _Pattern,
        *,
        k: _Nearest = 3,
        at: _At = None,
        between: _Between = None,
        certain: _Certain = False,
        as_of: _AsOf = None,
        prefer: _Prefer = None,
        limit: _Limit = 20,
        cancelled: Event | None = None,
    ) -> Matched:
        """Find the subgraphs most similar to a pattern, for questions whose names or directions you
        are not sure of. `distance` 0 is an exact match.
        """
        checked(limit, "limit")
        checked(k, "k")
        short(pattern, "pattern")
        view = _view(at, between, certain, as_of, prefer)
        answer = self._current().match(pattern, k=k, limit=limit, timeout=self.timeout, cancelled=cancelled, **view)
        with within(self.timeout, cancelled):
            unknown = [(index, node.name) for index, node in enumerate(answer.pattern.nodes) if not node.known]
            subgraphs = [
                Subgraph(
                    round(item.distance, 6), {name: shortened(item.nodes[index].text, MAX_TEXT) for index, name in unknown},
                    [[shortened(part, MAX_TEXT) for part in triple] for triple in item.triples],
                )
                for item in answer.shown
            ]  # fmt: skip
            return Matched(shortened(answer.program, MAX_TEXT), subgraphs, len(answer), answer.exact, list(answer.warnings))

    def ask(self, question: _Question, *, cancelled: Event | None = None) -> dict[str, Any]:
        """Ask in plain words: a language model writes a program, which is run. Gives status,
        answers, the program, citations, and the choices where a name has several meanings.
        """
        short(question, "question")
        if self.llm is None:
            raise OptionError("no language model is configured", hint="write a program for `query`")
        return marked(self._current().ask(question, self.llm, timeout=self.timeout, cancelled=cancelled).data())


def _view(at: str | None, between: Sequence[str] | None, certain: bool, as_of: str | None, prefer: Prefer | None) -> dict[str, Any]:
    """Return options of `Graph.query`. As agents put it, a preference by predicate may name a single source."""
    from condgraph.engine.conflicts import CRITERIA

    if isinstance(prefer, Mapping):
        prefer = {name: [value] if isinstance(value, str) and value not in CRITERIA else value for name, value in prefer.items()}
    return {"at": at, "between": between, "certain": certain, "as_of": as_of, "prefer": prefer}


def checked(number: int, what: str, most: int = MAX_RESULTS, *, least: int = 1) -> None:
    """Raise `OptionError` if a number is out of bounds."""
    if not least <= number <= most:
        raise OptionError(f"{what} is from {least} to {most:,}, not {number}")


def short(text: str, what: str) -> None:
    """Raise `OptionError` if a text is too long."""
    if len(text) > MAX_CHARACTERS:
        raise OptionError(f"the {what} has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read")


# -- plain functions for frameworks ------------------------------------------------------------------
# The tools of a graph as plain functions with typed parameters and docstrings, from which frameworks
# create tools. An error in a program is returned as a result (`{"error": {...}}`) with the nearest
# names, so that an agent can read it and try again.


Call = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class Tool:
    """A tool of a graph for a model: its description, its call, and its parameters with descriptions and bounds."""

    name: str
    about: str
    call: Callable[..., Any]
    signature: Signature


def declared(tools: Toolbox) -> list[Tool]:
    """Return the tools: `schema`, `find`, `query`, `match`, `evidence`, and `ask` if there is a model.

    The descriptions of `query` and `match` have examples from the graph.
    """
    result, such = [], _such(tools)
    for name in ("schema", "find", "query", "match", "evidence", *(["ask"] if tools.llm is not None else [])):
        method = getattr(Toolbox, name)
        hints = get_type_hints(method, include_extras=True)
        known = [item for item in signature(method).parameters.values() if item.name not in ("self", "cancelled")]
        parameters = [item.replace(annotation=hints[item.name]) for item in known]
        about = cleandoc(method.__doc__) + such.get(name, "")
        result.append(Tool(name, about, getattr(tools, name), Signature(parameters, return_annotation=hints["return"])))
    return result


def calls(tools: Toolbox) -> list[Call]:
    """Return the tools (`declared`) as functions whose results are JSON, errors too."""
    return [_function(tool) for tool in declared(tools)]


def _function(tool: Tool) -> Call:
    def call(*arguments: Any, **options: Any) -> dict[str, Any]:
        try:
            return plain(tool.call(*arguments, **options))
        except CondgraphError as error:
            return failure(error)

    parameters = tool.signature.parameters.values()
    call.__name__ = call.__qualname__ = tool.name
    call.__doc__ = f"{tool.about} {DATA}" if tool.name in ("query", "match") else tool.about
    call.__annotations__ = {item.name: item.annotation for item in parameters} | {"return": dict[str, Any]}
    call.__signature__ = tool.signature.replace(return_annotation=dict[str, Any])  # type: ignore[attr-defined]
    return call


def _such(tools: Toolbox) -> dict[str, str]:
    """Return what to add to the descriptions of `query` and `match`: programs and a pattern for the graph.

    Nothing if the graph cannot be asked for its names now.
    """
    try:
        with within(AT_START):
            known = tools.examples()
    except CondgraphError:
        return {}
    programs = [*known.kopl[:4], *known.cypher, *(f"{known.rows} with table: {clause}" for clause in known.clauses[:1])]
    lines = {"query": programs, "match": known.pattern}
    return {name: " Such as:" + "".join(f"\n  {text}" for text in texts) + "\n" for name, texts in lines.items() if texts}


# -- pieces of text for retrievers -------------------------------------------------------------------
# For the retrievers of frameworks: the answer to a program, pattern or question, and the statements that
# it is based on, each with its sources.


#: How many statements a retriever returns by default.
PIECES: Final = 20


@dataclass(frozen=True)
class Piece:
    """A text, its origin (`metadata`, as JSON), and the ids of the entities in it."""

    text: str
    metadata: dict[str, Any]
    ids: tuple[str, ...] = ()


def pieces(tools: Toolbox, asked: str, *, k: int = PIECES, parameters: Mapping[str, Any] | None = None) -> list[Piece]:
    """Return the answer, followed by at most k of the statements that it is based on.

    `asked` is a program in any language, a pattern or, if the tools have a model, a question in words.
    Raises `OptionError` for words without a model, and the errors of the program.
    """
    checked(k, "k", least=0)
    short(asked, "question")
    try:
        language = detect(asked)
    except ParseError:
        if tools.llm is None:
            raise OptionError(
                "a question in words needs a language model", hint="give llm=..., or ask a program or a pattern"
            ) from None
        return _in_words(tools, asked, k)
    graph = tools.graph
    with within(tools.timeout):
        if parameters or language != PATTERN:
            answer = tools.asked(asked, language, parameters, MAX_RESULTS)
        else:
            answer = graph.match(asked, k=max(1, k), limit=MAX_RESULTS, timeout=tools.timeout)
        return _of(answer, k, {"program": answer.program, "language": language})


def _in_words(tools: Toolbox, question: str, k: int) -> list[Piece]:
    asked = tools.graph.ask(question, tools.llm, timeout=tools.timeout)
    about = {"question": question, "status": asked.status}
    if asked.answer is None:
        return [Piece(str(asked), about | {"kind": "no answer"})]
    with within(tools.timeout):
        return _of(asked.answer, k, about | {"program": asked.program, "language": asked.language})


def _of(answer: Any, k: int, about: dict[str, Any]) -> list[Piece]:
    texts = [shortened(text, MAX_TEXT) for text in answer.texts[:MAX_RESULTS]]
    warnings = {"warnings": list(answer.warnings)} if answer.warnings else {}
    ids = tuple(entity.id for entity in answer.entities[:MAX_RESULTS])
    result = [Piece("; ".join(texts), about | {"kind": "answer", "total": len(answer.texts)} | warnings, ids)]
    for item in answer.evidence[:k]:
        fact = Fact.of(item)
        ends = tuple(end.id for end in (item.subject, item.object) if hasattr(end, "id"))
        parts = {"subject": fact.subject, "predicate": fact.predicate, "object": named(item.object)}
        result.append(Piece(fact.text, about | {"kind": "statement", **parts, "sources": fact.sources}, ends))
    return result

"""The operations of the HTTP API: the fields and limits of requests and the form of replies. The models
validate requests, and the OpenAPI document is generated from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Literal, get_origin
from urllib.parse import parse_qsl

import condgraph
from condgraph.endpoint.exchange import READING
from condgraph.endpoint.protocol import ProtocolError
from condgraph.engine.errors import MissingExtraError, nearest
from condgraph.query_options import ABOUT

try:
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel, ValidationError, model_validator
    from pydantic.json_schema import GenerateJsonSchema, models_json_schema
    from pydantic_core import PydanticCustomError
    from pydantic_core.core_schema import NullableSchema, WithDefaultSchema
except ImportError:
    raise MissingExtraError("pydantic", "serve") from None

#: The most characters of a program or question, and of a name.
_TEXT: Final = 1 << 20
_NAME: Final = 10_000
_MAX_FIELDS: Final = 100


class Request(BaseModel):
    """The fields of a request. A field that is null counts as missing."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        """Describe and bound the fields that have no description of their own by the record of shared options."""
        for name, field in cls.model_fields.items():
            if field.description is None and (shared := ABOUT.get(name)) is not None:
                field.description = shared.about
                field.metadata += Field(ge=shared.least, le=shared.most).metadata

    @model_validator(mode="before")
    @classmethod
    def _known(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        for name in fields:
            if name not in cls.model_fields:
                near = "; nearest: " + ", ".join(map(repr, found)) if (found := nearest(name, cls.model_fields)) else ""
                raise PydanticCustomError("unknown", "there is no field {name}{near}", {"name": name[:100], "near": near})
        return {name: value for name, value in fields.items() if value is not None}


def _few_texts(value: Any, kinds: tuple[type, ...] = (str,), noun: str = "texts") -> Any:
    """Check the size and types of an object before its members: each wrong member would cost a message."""
    if isinstance(value, dict) and len(value) > _MAX_FIELDS:
        raise PydanticCustomError("many", "it has more than {most} members", {"most": _MAX_FIELDS})
    if not isinstance(value, dict) or any(
        not isinstance(member, kinds) or member is True or member is False for member in value.values()
    ):
        raise PydanticCustomError("members", "it is an object of {noun}", {"noun": noun})
    return value


def _few_preferences(value: Any) -> Any:
    """Check a preference like `_few_texts`: a text, a list of texts, or an object of these by predicate."""

    def fits(one: Any) -> bool:
        texts = one if isinstance(one, list) and 0 < len(one) <= _MAX_FIELDS else [one]
        return all(isinstance(text, str) and len(text) <= _NAME for text in texts)

    if fits(value) or (isinstance(value, dict) and 0 < len(value) <= _MAX_FIELDS and all(map(fits, value.values()))):
        return value
    raise PydanticCustomError(
        "preference",
        "it is a text, a list of texts, or an object of these by predicate, of at most {most} members",
        {"most": _MAX_FIELDS},
    )


def _few_values(value: Any) -> Any:
    return _few_texts(value, (str, int, float), "texts and numbers")


class Call(Request):
    """The fields of every operation."""

    graph: str | None = Field(
        None, max_length=64, description="One of several graphs by its name, or a scratch graph; by default the first."
    )
    timeout: float | None = Field(
        None, ge=0.001, le=86_400, description="Seconds; the server's own deadline is the default and the most."
    )


class Viewed(Call):
    """The fields that select which statements count."""

    at: str | None = Field(None, max_length=100)
    between: list[str] | None = Field(None, min_length=2, max_length=2)
    certain: bool = False
    as_of: str | None = Field(None, max_length=100)
    prefer: Annotated[str | list[str] | dict[str, str | list[str]] | None, BeforeValidator(_few_preferences)] = Field(
        None,
        description="What counts of two statements that contradict each other: `rank`, `latest`, `earliest`, or sources, best "
        'first; or one of these for each predicate: `{"capital": "latest"}`.',
    )


class Bounded(Call):
    """The fields of operations with an answer."""

    limit: int = Field(1_000, ge=1, le=100_000, description="The most values, or rows; the answer warns of the rest.")
    facts: int = Field(200, ge=0, le=10_000, description="The most statements of the evidence.")


class Formatted(Bounded):
    """The fields of operations with an answer in several formats."""

    format: Literal["json", "csv", "arrow"] = Field("json", description="JSON, or the rows alone as CSV or as a stream of Arrow.")
    compiled: bool = Field(True, description="Whether to return the Cypher and SPARQL that the program becomes.")


class Program(Call):
    """A program and its language."""

    program: str = Field(max_length=_TEXT, description="The program.")
    language: Literal["kopl", "llm_query", "logic", "pattern", "sparql", "cypher"] | None = Field(
        None, description="The language; recognised from the text by default, except for SPARQL and Cypher."
    )


class Explain(Program, Viewed):
    """A program with its table and parameters."""

    table: str | None = Field(
        None, max_length=_TEXT, description="A table of the rows of the program: `group by country show count()`."
    )
    parameters: Annotated[dict[str, str | int | float], Field(max_length=_MAX_FIELDS), BeforeValidator(_few_values)] | None = Field(
        None, description="Values of the parameters (`$name`) of the program."
    )


class Query(Explain, Formatted):
    """A program to answer."""

    on_unknown: Literal["error", "empty", "nearest"] = "error"
    engine: Literal["snapshot", "sparql"] | None = None


class MatchOptions(Request):
    """The options of a search for a pattern."""

    injective: bool | None = None
    free: bool | None = None
    induced: bool | None = None
    directed: bool | None = Field(None, description="True forbids edges against the pattern, false makes them free.")
    fast: bool | None = None
    stretch: bool | None = None
    leave_out: bool | None = None
    group_by: list[str] | None = Field(None, max_length=100)
    k_nodes: int | None = None
    k_relations: int | None = None
    k_types: int | None = None


class Match(Viewed, Formatted):
    """A pattern to search for."""

    pattern: str = Field(max_length=_TEXT, description="The pattern.")
    k: int = Field(3, ge=1, le=10_000, description="How many subgraphs.")
    options: MatchOptions | None = Field(None, description="Options of the search.")


class GetSchema(Call):
    """What a schema is restricted to."""

    source: str | None = Field(None, max_length=_NAME, description="Only what is in this source.")
    concept: str | None = Field(None, max_length=_NAME, description="Only predicates from or to members of this concept.")
    predicate: str | None = Field(None, max_length=_NAME, description="Only this predicate.")


class GetNames(Call):
    """A text to complete."""

    text: str = Field("", max_length=_NAME, description="The text so far.")
    kinds: list[Literal["entity", "predicate", "relation", "attribute", "qualifier", "concept", "source"]] = Field(
        ["entity", "predicate", "concept", "source"],
        max_length=7, description="Which names; predicates are relations, attributes and keys of qualifiers.",
    )  # fmt: skip
    limit: int = Field(30, ge=1, le=200, description="The most names.")
    ids: bool | None = Field(None, description="Entities one by one; each name with its id, and with its IRI in SPARQL.")


class GetEntity(Call):
    """An entity, by its id or its name."""

    id: str | None = Field(None, max_length=_TEXT, description="Its id.")
    name: str | None = Field(None, max_length=_TEXT, description="Its name.")
    limit: int = Field(200, ge=1, le=5_000, description="The most statements of each direction.")
    each: int | None = Field(None, ge=1, le=5_000, description="The most statements of each predicate and direction.")
    predicate: str | None = Field(None, max_length=_NAME, description="Only statements of this predicate, in one direction.")
    backward: bool = Field(False, description="With `predicate`: statements to the entity, in place of those from it.")
    offset: int = Field(0, ge=0, le=1_000_000_000, description="With `predicate`: how many statements to skip.")


class Browse(Call):
    """The rows of a concept or a table."""

    concept: str | None = Field(None, max_length=_NAME, description="The concept whose members are the rows.")
    table: str | None = Field(None, max_length=_NAME, description="The table, where its rows are in no concept.")
    where: Annotated[dict[str, str], Field(max_length=_MAX_FIELDS), BeforeValidator(_few_texts)] | None = Field(
        None, description='The text that rows have in a column, by column; "" for rows without any.'
    )
    sort: str | None = Field(None, max_length=_NAME, description="The column that orders the rows; by default their names.")
    descending: bool = Field(False, description="Whether the largest comes first.")
    offset: int = Field(0, ge=0, le=1_000_000_000, description="How many rows to skip.")
    limit: int = Field(50, ge=1, le=500, description="The most rows.")


class GetStart(Call):
    """What the start page shows."""

    questions: bool = Field(True, description="Whether to look for questions, which asks the graph; without, those that are known.")


class GetTimeline(Call):
    """The statements with a subject, a predicate or an object, or a combination of them."""

    subject: str | None = Field(None, max_length=_NAME, description="The subject, by its name or id.")
    predicate: str | None = Field(None, max_length=_NAME, description="The predicate.")
    object: str | None = Field(None, max_length=_NAME, description="The object, an entity, by its name or id.")
    before: str | None = Field(
        None, max_length=_NAME, description="Only those that may be the one before this entity or time: `1984`."
    )
    after: str | None = Field(None, max_length=_NAME, description="Only those that may be the one after this entity or time.")
    certain: bool = Field(False, description="Of these only the one that must be.")
    limit: int = Field(1_000, ge=1, le=100_000, description="The most statements.")


class AskedPart(Request):
    """A part of a question that was split into parts."""

    question: str = Field(max_length=_NAME, description="The question.")
    program: str = Field("", max_length=_TEXT, description="The program of its outcome; none where it has no answer.")
    language: Literal["", "query", "kopl", "cypher", "pattern"] = Field("", description="The language of the program.")
    source: str | None = Field(None, max_length=_NAME, description="The source of its outcome.")


class Turn(AskedPart):
    """An earlier turn of a conversation. Its program is run again, since the question may refer to its answer."""

    parts: list[AskedPart] = Field([], max_length=6, description="Those of its outcome, which are run in place of its program.")
    choose: Annotated[dict[str, str], Field(max_length=_MAX_FIELDS), BeforeValidator(_few_texts)] | None = Field(
        None, description="What was chosen."
    )


class Ask(Bounded):
    """A question in words."""

    question: str = Field(max_length=_NAME, description="The question.")
    via: Literal["auto", "query", "kopl", "cypher", "pattern"] = "auto"
    source: str | None = Field(None, max_length=_NAME)
    choose: Annotated[dict[str, str], Field(max_length=_MAX_FIELDS), BeforeValidator(_few_texts)] | None = Field(
        None, description="The meaning of ambiguous names: the key of an option by the name."
    )
    samples: int = 1
    before: list[Turn] = Field([], max_length=6, description="The turns before, the first first, which the question may refer to.")
    aware: bool | None = None
    verbalise: bool | None = None
    parts: Literal["never", "doubt", "always"] | None = None
    texts: bool | None = Field(None, description="Whether lines with pieces of what the model writes are sent as well.")


class Drop(Request):
    """The fields of a file upload, which are in the query string."""

    name: str = Field(max_length=255, description="The name of the file, and of the source.")
    graph: str | None = Field(None, max_length=64, description="The scratch graph to load it into; a new one by default.")
    key: str | None = Field(None, max_length=_NAME, description="Of a table: the column that names its rows.")
    refs: list[str] = Field([], max_length=200, description="Of a table: columns whose cells are entities.")


def read_fields(fields: bytes | Mapping[str, Any], model: type[Request], *, strict: bool = True) -> dict[str, Any]:
    """Return the fields of a request, a JSON body or a mapping, with their defaults.

    Raises status 400 for the first wrong field. Unless `strict`, texts may stand for numbers and
    truth values.
    """
    try:
        if isinstance(fields, bytes):
            request = model.model_validate_json(fields, strict=True)
        else:
            request = model.model_validate(fields, strict=strict)
    except ValidationError as error:
        raise ProtocolError(400, _message(error)) from None
    return request.model_dump(exclude_none=True)


def _message(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    # Only the first two parts of a location are fields. Further ones name the alternatives of a type.
    name = ".".join(map(str, first["loc"][:2]))[:200]
    if first["type"] == "unknown":
        where = f"{name}." if name else ""
        return f"there is no field {where + first['ctx']['name']!r}{first['ctx']['near']}"
    if first["type"] == "missing":
        return f"the field {name!r} is missing"
    where = f"the field {name!r}: " if name else "the body is not a JSON object with the fields of the operation: "
    return where + first["msg"][:1].lower() + first["msg"][1:]


def from_address(address: bytes, model: type[Request]) -> dict[str, Any]:
    """Return the fields in the query string of an address. A list field may be repeated.

    Raises status 400.
    """
    try:
        pairs = parse_qsl(address.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise ProtocolError(400, f"the address is not UTF-8, or has more than {_MAX_FIELDS} fields") from None
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in model.model_fields and get_origin(model.model_fields[name].annotation) is list:
            fields.setdefault(name, []).append(value)
        elif name in fields:
            raise ProtocolError(400, f"two values of {name!r}, there may be one")
        else:
            fields[name] = value
    return read_fields(fields, model, strict=False)


# -- replies -----------------------------------------------------------------------------------------


class Reply(BaseModel):
    """A document that the API returns."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


Whole = Annotated[int, Field(ge=0)]
Counts = dict[str, int]
Span = Annotated[list[Whole], Field(min_length=2, max_length=2, description="Start and end, in characters.")] | None


class Problem(Reply):
    """The details of an error."""

    code: str = Field(description="Stable, for programs.")
    message: str
    hint: str | None = None
    span: Span = None
    candidates: list[str] = []
    name: str | None = None
    kind: str | None = None


class Error(Reply):
    """An error."""

    error: Problem


class Cell(Reply):
    """A value with its text and type."""

    type: Literal[
        "entity", "text", "quantity", "time", "point", "count", "number", "truth", "list", "iri", "blank", "unknown", "other"
    ]
    text: str
    id: str = ""
    name: str = ""
    kind: Literal["entity", "concept", "row"] = "entity"
    number: float | None = None
    unit: str = ""
    precision: str = ""
    start: str | None = None
    end: str | None = None
    truth: bool = False


class Warning(Reply):
    """A warning, with its place in the program."""

    text: str
    span: Span


class Qualifier(Reply):
    """A qualifier of a statement."""

    key: str
    value: Cell | None


class SourceRow(Reply):
    """A source of a statement, and the row in it."""

    name: str
    row: int | None


class Fact(Reply):
    """A statement, with every source and row that contains it."""

    kind: Literal["statement", "membership", "subclass"]
    subject: Cell
    predicate: str
    object: Cell | None
    qualifiers: list[Qualifier]
    sources: list[SourceRow]
    raw: str | None
    text: str


class TraceStep(Reply):
    """A step of an answered program."""

    function: str
    operator: str
    size: Whole
    sample: list[str]
    note: str


class NamedEntity(Reply):
    """An entity whose name an answer depends on."""

    entity: Cell
    source: str | None


class Evidence(Reply):
    """The statements and names that an answer is based on."""

    facts: list[Fact]
    total: Whole
    by_step: list[list[Whole]]
    named: list[NamedEntity]
    searched: list[str]


class Compiled(Reply):
    """The queries of a program."""

    cypher: str | None
    sparql: str | None


class Answer(Reply):
    """The answer of a program."""

    language: str
    program: str
    columns: list[str]
    rows: list[list[Cell | None]]
    total: Whole
    warnings: list[Warning]
    trace: list[TraceStep]
    evidence: Evidence
    compiled: Compiled
    seconds: float


class Explained(Reply):
    """What a program becomes."""

    language: str
    plan: str
    compiled: Compiled


class Text(Reply):
    """A text argument of a step."""

    role: str
    text: str
    span: Span
    choices: list[str]


class Step(Reply):
    """A step. `program` is the part of the program that ends with it."""

    label: str
    function: str
    about: str
    inputs: list[Whole]
    span: Span
    program: str
    texts: list[Text]


class Tree(Reply):
    """The steps of a program."""

    language: str
    steps: list[Step]


class Source(Reply):
    """A source and its format."""

    name: str
    format: str


class Function(Reply):
    """A function of a language."""

    name: str
    inputs: Whole
    texts: list[str]
    about: str


class Functions(Reply):
    """The functions and words of the languages."""

    kopl: list[Function]
    llm_query: list[Function]
    words: dict[str, list[str]]
    keywords: dict[str, list[str]]


class Limits(Reply):
    """The server's limits."""

    timeout: float
    ask_timeout: float
    rows: int | None
    drop: Whole


class About(Reply):
    """What is served. `graphs` are the names of several graphs; requests for the first one need no name."""

    version: str
    graph: str
    store: str
    counts: Counts
    sources: list[Source]
    languages: list[str]
    model: str | None
    graphs: list[str]
    functions: Functions
    limits: Limits


class Name(Reply):
    """A name. With `ids` it has `id` and `iri`, which is relative to the graph and without angle brackets."""

    name: str
    kind: str
    about: str
    id: str | None = None
    iri: str = ""


class Names(Reply):
    """Names for completion."""

    names: list[Name]


class PredicateGroup(Reply):
    """How many statements with a predicate an entity has, from it or to it (`backward`)."""

    predicate: str
    backward: bool
    count: Whole
    or_more: bool = Field(description="Whether a server may have more: its statements were fetched up to a bound.")


class EntityPage(Reply):
    """What is known about an entity."""

    entity: Cell
    same: list[Cell]
    total_same: int | None
    groups: list[PredicateGroup]
    facts: list[Fact]
    total: int | None
    pointing: list[Fact]
    total_pointing: int | None
    more: bool
    more_pointing: bool
    concepts: list[Fact]
    members: list[Cell]
    total_members: int | None


class Question(Reply):
    """A question that the graph answers, with the cells of the first rows of its answer.

    `about` is the text in parts: the second, fourth and so on are names.
    """

    about: list[str]
    program: str
    table: str
    sample: list[list[str]]


class Start(Reply):
    """What a graph contains, in short lists. `more` counts what they leave out.

    `picture` is an SVG, and `edges` are the arrows in it: start, predicate, end. `questions` is null
    if they were not requested and are not known yet.
    """

    counts: Counts
    first: str
    last: str
    note: str
    sources: list[dict[str, Any]]
    concepts: list[dict[str, Any]]
    tables: list[dict[str, Any]]
    predicates: list[dict[str, Any]]
    units: list[dict[str, Any]]
    more: Counts
    questions: list[Question] | None
    picture: str
    edges: list[list[str]]


class FacetValue(Reply):
    """A value of a column, or null for none, and the number of rows with it."""

    value: Cell | None
    count: Whole


class Facet(Reply):
    """The most frequent values of a column."""

    column: str
    values: list[FacetValue]
    more: bool


class Rows(Reply):
    """A page of rows: each row itself and then its columns, with the program and table clause for it."""

    columns: list[str]
    more_columns: list[str]
    rows: list[list[Cell | None]]
    total: Whole
    facets: list[Facet]
    warnings: list[Warning]
    program: str
    table: str


class Lasting(Reply):
    """A statement with the least and the most days that it lasts. `most` is null if no end is known."""

    fact: Fact
    least: float
    most: float | None


class Timeline(Reply):
    """Statements in chronological order, statements without a time, and the gaps in which maybe none holds."""

    statements: list[Lasting]
    total: Whole
    untimed: list[Fact]
    total_untimed: Whole
    gaps: list[Cell]
    warnings: list[Warning]


class Schema(Reply):
    """The data of `graph.schema()`."""

    counts: Counts
    sources: list[dict[str, Any]]
    concepts: list[dict[str, Any]]
    predicates: list[dict[str, Any]]
    units: list[dict[str, Any]]
    first: str
    last: str
    note: str


class AskStep(Reply):
    """A step of a question in words."""

    name: str
    seconds: float
    about: str


class AskStepLine(Reply):
    """A line that reports a step."""

    step: AskStep


class AskText(Reply):
    """A piece of the model's text: of a program (step `write`) or a sentence of the answer (`say`)."""

    step: str
    text: str
    sample: int = Field(description="The number of the reply, where several are written at once.")
    begins: bool = Field(description="It is the first piece of a reply; an earlier one of this step and sample is void.")


class AskTextLine(Reply):
    """A line with a piece of text."""

    text: AskText


class Outcome(Reply):
    """The outcome of a question in words."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    question: str
    status: str
    confidence: float | None
    answer: Any
    text: Any
    attempts: Any
    choices: Any
    references: Any


class OutcomeLine(Reply):
    """The last line, with the outcome."""

    outcome: Outcome


class Line(RootModel[AskStepLine | AskTextLine | OutcomeLine | Error]):
    """One line: a step, a piece of text, the outcome, or an error."""


class Loaded(Reply):
    """The report on a loaded file."""

    graph: str = Field(description="The name of the scratch graph.")
    sources: list[str]
    formats: list[str]
    statements: Whole
    entities: int
    skipped: Whole
    joins: list[str]
    problems: list[str]
    warnings: list[Warning]
    seconds: float
    counts: Counts


# -- operations --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: GET with its fields in the address, or POST with a JSON body.

    With `both`, it supports either, since a long name may not fit in an address of 64 KiB.
    """

    name: str
    method: Literal["GET", "POST"]
    summary: str
    fields: type[Request]
    reply: type[BaseModel]
    stream: bool = False
    both: bool = False

    @property
    def methods(self) -> tuple[str, ...]:
        """The supported HTTP methods."""
        reading = READING if self.method == "GET" else ()
        return (*reading, "POST") if self.both or not reading else reading


OPERATIONS: Final = (
    Operation("about", "GET", "What is served: counts, sources, languages and their functions", Call, About),
    Operation(
        "schema", "GET", "What can be asked about: concepts, predicates, units, with counts and examples",
        GetSchema, Schema, both=True,
    ),
    Operation("names", "GET", "Names that begin with a text, or else are like it", GetNames, Names),
    Operation(
        "entity", "GET", "What is known of an entity, from which source, and what points at it", GetEntity, EntityPage, both=True
    ),
    Operation(
        "start", "GET", "What a graph contains, in short lists, with a picture and questions that it answers", GetStart, Start
    ),
    Operation("browse", "POST", "Rows of a concept or a table: sorted, filtered, a page at a time, with facets", Browse, Rows),
    Operation(
        "timeline", "GET", "Statements in the order of their times, with the gaps between them", GetTimeline, Timeline, both=True
    ),
    Operation("query", "POST", "Answer a program in any language, with its evidence, steps and compiled queries", Query, Answer),
    Operation("match", "POST", "The subgraphs nearest to a pattern", Match, Answer),
    Operation("explain", "POST", "What a program becomes, without running it", Explain, Explained),
    Operation("tree", "POST", "The steps of a KoPL program or an LLM query", Program, Tree),
    Operation(
        "ask", "POST", "Ask in words; steps are streamed as lines of JSON, the outcome comes last", Ask, Line, stream=True
    ),
)  # fmt: skip


# -- the OpenAPI document ----------------------------------------------------------------------------

_STATUSES: Final = {
    "400": "The request, or its program, is not well formed or names something unknown",
    "401": "No token, or not one that the server knows",
    "403": "A request of another page or host, or the API is closed",
    "404": "Nothing is there",
    "405": "The path has other methods; `Allow` names them",
    "408": "The body comes too slowly",
    "413": "The body is too long",
    "415": "The body is of another media type",
    "429": "Too many requests; `Retry-After` says when to come again",
    "431": "The address and the headers are too long",
    "500": "The call failed, or needs more memory than it may have",
    "502": "The language model, or its server, failed",
    "503": "The deadline, or too many calls at once",
}


class _Generator(GenerateJsonSchema):
    """A generator of schemas without field titles, and without null if that only means a missing field."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: WithDefaultSchema) -> dict[str, Any]:
        result = super().default_schema(schema)
        if self.mode == "serialization" or result.get("default", "") is None:
            result.pop("default", None)
        return result

    def nullable_schema(self, schema: NullableSchema) -> dict[str, Any]:
        inner = self.generate_inner(schema["schema"])
        if self.mode == "validation":
            return inner
        return inner | {"type": [inner["type"], "null"]} if isinstance(inner.get("type"), str) else super().nullable_schema(schema)


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document."""
    requests: list[type[BaseModel]] = [*(operation.fields for operation in OPERATIONS), Drop]
    replies: list[type[BaseModel]] = [Error, Loaded, *(operation.reply for operation in OPERATIONS)]
    models: list[tuple[type[BaseModel], Literal["validation", "serialization"]]] = [(model, "validation") for model in requests]
    models += [(model, "serialization") for model in dict.fromkeys(replies)]
    _, components = models_json_schema(
        models,
        ref_template="#/components/schemas/{model}", schema_generator=_Generator,
    )  # fmt: skip
    schemas: dict[str, Any] = components["$defs"]

    def operation_of(
        name: str, summary: str, fields: type[Request] | None, replies: dict[str, Any], body: Any = None, *, get: bool = False
    ) -> dict[str, Any]:
        described: dict[str, Any] = {"operationId": name, "summary": summary}
        if fields is not None and (get or body is not None):
            properties, required = schemas[fields.__name__]["properties"], schemas[fields.__name__].get("required", ())
            described["parameters"] = [
                {
                    "name": field,
                    "in": "query",
                    "required": field in required,
                    "description": schema["description"],
                    "schema": schema,
                }
                for field, schema in properties.items()
            ]
        elif fields is not None:
            body = {"application/json": {"schema": schemas[fields.__name__]}}
        if body is not None:
            described["requestBody"] = {"required": True, "content": body}
        return described | {"responses": {"200": {"description": summary, "content": replies}, **_failures()}}

    paths: dict[str, Any] = {}
    for item in OPERATIONS:
        kind = "application/x-ndjson" if item.stream else "application/json"
        content: dict[str, Any] = {kind: {"schema": _ref(item.reply)}}
        if issubclass(item.fields, Formatted):
            content |= {"text/csv": {"schema": _STRING}, "application/vnd.apache.arrow.stream": {"schema": _STRING}}
        methods = {item.method.lower(): operation_of(item.name, item.summary, item.fields, content, get=item.method == "GET")}
        if item.both:
            summary = f"{item.summary}; for names that an address has no room for"
            methods["post"] = operation_of(f"{item.name}_long", summary, item.fields, content)
        paths[f"/api/v1/{item.name}"] = methods
    loaded = {"application/json": {"schema": _ref(Loaded)}}
    file = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    paths["/api/v1/graphs"] = {
        "post": operation_of("drop", "Load one file into a scratch graph; the file is the body", Drop, loaded, file)
    }
    paths["/api/v1/graphs/{graph}"] = {
        "delete": {
            "operationId": "forget",
            "summary": "Remove a scratch graph",
            "parameters": [{"name": "graph", "in": "path", "required": True, "schema": _STRING}],
            "responses": {"204": {"description": "It is gone"}, **_failures()},
        }
    }
    content_of_openapi = {"application/json": {"schema": {"type": "object"}}}
    paths["/api/v1/openapi.json"] = {"get": operation_of("openapi", "This document", None, content_of_openapi)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "condgraph",
            "version": condgraph.__version__,
            "description": "Ask one graph of tables, knowledge graphs and temporal knowledge graphs; answers carry their evidence.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


_STRING: Final = {"type": "string"}


def _ref(model: type[BaseModel]) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def _failures() -> dict[str, Any]:
    content = {"application/json": {"schema": _ref(Error)}}
    failures: dict[str, Any] = {status: {"description": about, "content": content} for status, about in _STATUSES.items()}
    # The headers are not read to the end, so it is unknown which kind of client sent them.
    failures["431"]["content"] = {"text/plain": {"schema": _STRING}}
    return failures

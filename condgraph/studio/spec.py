"""What the API can be asked, decided once: operations with their fields and bounds. Requests are
checked against it (`read`), and the OpenAPI document is made of it (`openapi`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from condgraph.endpoint.protocol import ProtocolError
from condgraph.engine.errors import nearest

Kind = Literal["string", "integer", "number", "boolean", "strings", "choices", "values", "object"]
#: Characters of a program or a question, and of a name.
_TEXT: Final = 1 << 20
_NAME: Final = 10_000


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a request: its type and bounds. Texts have at most `most` characters, numbers are
    from `least` to `most`, lists have at most `most` members.
    """

    name: str
    kind: Kind
    about: str
    required: bool = False
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    default: Any = None
    #: Of an object: its fields.
    fields: tuple[Field, ...] = ()

    def read(self, value: Any, where: str = "") -> Any:
        """A value as it is meant; raises status 400 for another one."""
        name = f"{where}{self.name}"
        if self.kind in ("string", "integer", "number", "boolean"):
            return self._one(value, name)
        if self.kind == "strings":
            if not isinstance(value, list) or any(not isinstance(one, str) for one in value):
                raise _wrong(f"{name!r} is a list of texts")
            self._bounded(len(value), name, "members")
            for one in value:
                self._among(one, name)
            return value
        if not isinstance(value, dict):
            raise _wrong(f"{name!r} is an object")
        if self.kind == "object":
            return read_fields(value, self.fields, f"{name}.")
        numbers = self.kind == "values"
        if any(not (isinstance(one, str) or (numbers and _is_number(one))) for one in value.values()):
            raise _wrong(f"{name!r} is an object of texts" + (" and numbers" if numbers else ""))
        self._bounded(len(value), name, "members")
        return value

    def _one(self, value: Any, name: str) -> Any:
        if self.kind == "string":
            if not isinstance(value, str):
                raise _wrong(f"{name!r} is a text")
            self._bounded(len(value), name, "characters")
            self._among(value, name)
            return value
        if self.kind == "boolean":
            if not isinstance(value, bool):
                raise _wrong(f"{name!r} is true or false")
            return value
        whole = self.kind == "integer"
        if not _is_number(value) or (whole and not isinstance(value, int)):
            raise _wrong(f"{name!r} is a {'whole ' if whole else ''}number")
        if (self.least is not None and value < self.least) or (self.most is not None and value > self.most):
            raise _wrong(f"{name!r} is from {self.least:g} to {self.most:g}")
        return value

    def _bounded(self, size: int, name: str, what: str) -> None:
        if self.most is not None and size > self.most:
            raise _wrong(f"{name!r} has at most {self.most:,.0f} {what}")

    def _among(self, value: str, name: str) -> None:
        if self.choices and value not in self.choices:
            raise _wrong(f"{name!r} is one of {', '.join(self.choices)}, not {value[:100]!r}")

    def schema(self) -> dict[str, Any]:
        """As a schema of JSON."""
        found: dict[str, Any] = {"description": self.about}
        if self.kind in ("strings", "choices", "values"):
            inner: dict[str, Any] = {"type": ["string", "number"] if self.kind == "values" else "string"}
            if self.choices:
                inner["enum"] = list(self.choices)
            if self.kind == "strings":
                found |= {"type": "array", "items": inner}
            else:
                found |= {"type": "object", "additionalProperties": inner}
            if self.most is not None:
                found["maxItems" if self.kind == "strings" else "maxProperties"] = int(self.most)
        elif self.kind == "object":
            found |= object_schema(self.fields)
        else:
            found["type"] = self.kind
            if self.choices:
                found["enum"] = list(self.choices)
            if self.kind == "string" and self.most is not None:
                found["maxLength"] = int(self.most)
            if self.kind in ("integer", "number"):
                found |= {name: bound for name, bound in (("minimum", self.least), ("maximum", self.most)) if bound is not None}
        if self.default is not None:
            found["default"] = self.default
        return found


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _wrong(message: str) -> ProtocolError:
    return ProtocolError(400, message)


def read_fields(given: Mapping[str, Any], fields: Sequence[Field], where: str = "") -> dict[str, Any]:
    """The fields of a request, with their defaults; raises status 400 for one that is not there,
    not known, or not of its type.
    """
    known = {one.name: one for one in fields}
    found: dict[str, Any] = {one.name: one.default for one in fields if one.default is not None}
    for name, value in given.items():
        if name not in known:
            near = nearest(name, known)
            raise _wrong(f"there is no field {where + name[:100]!r}" + (f"; nearest: {', '.join(map(repr, near))}" if near else ""))
        if value is not None:
            found[name] = known[name].read(value, where)
    missing = [one.name for one in fields if one.required and found.get(one.name) is None]
    if missing:
        raise _wrong(f"the field {where + missing[0]!r} is missing")
    return found


def object_schema(fields: Sequence[Field]) -> dict[str, Any]:
    """Fields as a schema of JSON."""
    return {
        "type": "object",
        "properties": {one.name: one.schema() for one in fields},
        "required": [one.name for one in fields if one.required],
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: GET with its fields in the address, or POST with a body of JSON; with `both`
    either, since an address of 64 KiB has no room for a long name. `reply` is the schema of its
    answer, by name.
    """

    name: str
    method: Literal["GET", "POST"]
    summary: str
    fields: tuple[Field, ...]
    reply: str
    stream: bool = False
    both: bool = False

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that it takes."""
        reading = ("GET", "HEAD") if self.method == "GET" else ()
        return (*reading, "POST") if self.both or not reading else reading


_GRAPH: Final = Field("graph", "string", "The scratch graph that is asked; the graph that is served by default.", most=64)
_TIMEOUT: Final = Field("timeout", "number", "Seconds; the server's own deadline is the most.", least=0.001, most=86_400)
_PROGRAM: Final = Field("program", "string", "The program.", required=True, most=_TEXT)
_LANGUAGE: Final = Field(
    "language", "string", "The language; recognised from the text by default, except for SPARQL and Cypher.",
    choices=("kopl", "llm_query", "logic", "pattern", "sparql", "cypher"),
)  # fmt: skip
_TABLE: Final = Field("table", "string", "A table of the rows that the program gives: `group by country show count()`.", most=_TEXT)
_PARAMETERS: Final = Field("parameters", "values", "Values of the parameters (`$name`) of the program.", most=100)
_LIMIT: Final = Field(
    "limit", "integer", "The most values, or rows; the answer warns of the rest.", least=1, most=100_000, default=1_000
)
_FACTS: Final = Field("facts", "integer", "The most statements of the evidence.", least=0, most=10_000, default=200)
_FORM: Final = Field(
    "format", "string", "JSON, or the rows alone as CSV or as a stream of Arrow.", choices=("json", "csv", "arrow"), default="json"
)
_COMPILED: Final = Field("compiled", "boolean", "Whether to give the Cypher and SPARQL that the program becomes.", default=True)


def _switch(name: str, about: str) -> Field:
    return Field(name, "boolean", about)


def _bound(name: str, about: str) -> Field:
    return Field(name, "integer", about, least=1, most=100_000)


OPERATIONS: Final = (
    Operation("about", "GET", "What is served: counts, sources, languages and their functions", (_GRAPH, _TIMEOUT), "About"),
    Operation(
        "schema", "GET", "What can be asked about: concepts, predicates, units, with counts and examples",
        (
            _GRAPH, _TIMEOUT, Field("source", "string", "Only what stands in this source.", most=_NAME),
            Field("concept", "string", "Only predicates from or to what is in this concept.", most=_NAME),
            Field("predicate", "string", "Only this predicate.", most=_NAME),
        ),
        "Schema", both=True,
    ),
    Operation(
        "names", "GET", "Names that begin with a text, or else are like it",
        (
            _GRAPH, _TIMEOUT, Field("text", "string", "What was written so far.", most=_NAME, default=""),
            Field(
                "kinds", "strings", "Which names; predicates are relations, attributes and keys of qualifiers.",
                choices=("entity", "predicate", "relation", "attribute", "qualifier", "concept", "source"), most=7,
            ),
            Field("limit", "integer", "The most names.", least=1, most=200, default=30),
            _switch("ids", "Entities one by one; each name with its id, and with its IRI in SPARQL."),
        ),
        "Names",
    ),
    Operation(
        "entity", "GET", "What is known of an entity, from which source, and what points at it",
        (
            _GRAPH, _TIMEOUT, Field("id", "string", "Its id.", most=_TEXT), Field("name", "string", "Its name.", most=_TEXT),
            Field("limit", "integer", "The most statements of each direction.", least=1, most=5_000, default=200),
        ),
        "EntityPage", both=True,
    ),
    Operation(
        "query", "POST", "Answer a program in any language, with its evidence, steps and compiled queries",
        (
            _GRAPH, _TIMEOUT, _PROGRAM, _LANGUAGE, _TABLE, _PARAMETERS, _LIMIT, _FACTS, _FORM, _COMPILED,
            Field("on_unknown", "string", "What an unknown name leads to.", choices=("error", "empty"), default="error"),
            Field("engine", "string", "What answers on a graph in a folder.", choices=("snapshot", "sparql")),
        ),
        "Answer",
    ),
    Operation(
        "match", "POST", "The subgraphs nearest to a pattern",
        (
            _GRAPH, _TIMEOUT, Field("pattern", "string", "The pattern.", required=True, most=_TEXT), _LIMIT, _FACTS, _FORM,
            _COMPILED, Field("k", "integer", "How many subgraphs.", least=1, most=10_000, default=3),
            Field(
                "options", "object", "Options of the search.",
                fields=(
                    _switch("injective", "No two nodes are the same."), _switch("free", "Statements may be used again."),
                    _switch("induced", "No other edge joins the nodes."),
                    _switch("directed", "True forbids edges against the pattern, false makes them free."),
                    _switch("fast", "The paper's limits of candidates; approximate."),
                    _switch("stretch", "An edge may stand for a path of two."),
                    _switch("leave_out", "A named edge may be left out."),
                    Field("group_by", "strings", "Unknown nodes, each value of which is given once.", most=100),
                    _bound("k_nodes", "The most candidates of a node."),
                    _bound("k_relations", "The most candidates of a relation."),
                    _bound("k_types", "The most candidates of a hint."),
                ),
            ),
        ),
        "Answer",
    ),
    Operation(
        "explain", "POST", "What a program becomes, without running it",
        (_GRAPH, _TIMEOUT, _PROGRAM, _LANGUAGE, _TABLE, _PARAMETERS), "Explained"
    ),
    Operation("tree", "POST", "The steps of a KoPL program or an LLM query", (_GRAPH, _TIMEOUT, _PROGRAM, _LANGUAGE), "Tree"),
    Operation(
        "ask", "POST", "Ask in words; steps are streamed as lines of JSON, the outcome comes last",
        (
            _GRAPH, _TIMEOUT, Field("question", "string", "The question.", required=True, most=_NAME),
            Field("via", "string", "What the model writes.", choices=("auto", "query", "kopl", "pattern"), default="auto"),
            Field("source", "string", "The source that is asked.", most=_NAME),
            Field("choose", "choices", "What ambiguous names mean: the key of an option by the name.", most=100),
            Field("samples", "integer", "How many programs vote.", least=1, most=9, default=1),
            Field("aware", "boolean", "KoPL, held to what the entities of the question have, where the model takes grammars."),
            Field("verbalise", "boolean", "Whether the model says the answer."), _LIMIT, _FACTS,
        ),
        "Line", stream=True,
    ),
)  # fmt: skip
#: What a file that is dropped comes with, in the address.
DROP: Final = (
    Field("name", "string", "The name of the file, which the source is called by.", required=True, most=255),
    Field("graph", "string", "The scratch graph to load it into; a new one by default.", most=64),
    Field("key", "string", "Of a table: the column that names its rows.", most=_NAME),
    Field("refs", "strings", "Of a table: columns whose cells are entities.", most=200),
)

"""The OpenAPI 3.1 document of the API, made of `spec`; the schemas of what it gives are here."""

from __future__ import annotations

from typing import Any, Final

import condgraph
from condgraph.studio.spec import DROP, OPERATIONS, Field, Operation, object_schema


def _record(about_it: str = "", /, **properties: Any) -> dict[str, Any]:
    """An object, all of whose fields are there."""
    found = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"description": about_it, **found} if about_it else found


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


_TEXT: Final = {"type": "string"}
_TEXT_OR_NULL: Final = {"type": ["string", "null"]}
_WHOLE: Final = {"type": "integer", "minimum": 0}
_WHOLE_OR_NULL: Final = {"type": ["integer", "null"]}
_NUMBER: Final = {"type": "number"}
_SPAN: Final = {
    "type": ["array", "null"],
    "items": _WHOLE,
    "minItems": 2,
    "maxItems": 2,
    "description": "Begin and end, in characters.",
}
_COUNTS: Final = {"type": "object", "additionalProperties": {"type": "integer"}}
_STEP: Final = _record(function=_TEXT, operator=_TEXT, size=_WHOLE, sample=_list(_TEXT), note=_TEXT)
_QUERIES: Final = _record(cypher=_TEXT_OR_NULL, sparql=_TEXT_OR_NULL)
_FUNCTION: Final = _record(name=_TEXT, inputs=_WHOLE, texts=_list(_TEXT), about=_TEXT)

SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "Error": _record(
        error={
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "Stable, for programs."},
                "message": _TEXT, "hint": _TEXT_OR_NULL, "span": _SPAN, "candidates": _list(_TEXT), "name": _TEXT_OR_NULL,
                "kind": _TEXT_OR_NULL,
            },
            "required": ["code", "message"],
            "additionalProperties": False,
        }
    ),
    "Cell": {
        "description": "A value with its text and type; null for nothing.",
        "type": ["object", "null"],
        "properties": {
            "type": {"enum": ["entity", "text", "quantity", "time", "count", "number",
                              "truth", "list", "iri", "blank", "unknown", "other"]},
            "text": _TEXT, "id": _TEXT, "name": _TEXT, "kind": {"enum": ["entity", "concept", "row"]},
            "number": {"type": ["number", "null"]}, "unit": _TEXT, "precision": _TEXT, "start": _TEXT_OR_NULL, "end": _TEXT_OR_NULL,
            "truth": {"type": "boolean"},
        },
        "required": ["type", "text"],
        "additionalProperties": False,
    },
    "Warning": _record(text=_TEXT, span=_SPAN),
    "Fact": _record(
        "A statement, with every source and row it stands in.",
        kind={"enum": ["statement", "membership", "subclass"]}, subject=_ref("Cell"), predicate=_TEXT, object=_ref("Cell"),
        qualifiers=_list(_record(key=_TEXT, value=_ref("Cell"))), sources=_list(_record(name=_TEXT, row=_WHOLE_OR_NULL)),
        raw=_TEXT_OR_NULL, text=_TEXT,
    ),
    "Answer": _record(
        language=_TEXT, program=_TEXT, columns=_list(_TEXT), rows=_list(_list(_ref("Cell"))), total=_WHOLE,
        warnings=_list(_ref("Warning")), trace=_list(_STEP),
        evidence=_record(
            facts=_list(_ref("Fact")), total=_WHOLE, named=_list(_record(entity=_ref("Cell"), source=_TEXT_OR_NULL)),
            searched=_list(_TEXT),
        ),
        compiled=_QUERIES, seconds=_NUMBER,
    ),
    "Explained": _record(language=_TEXT, plan=_TEXT, compiled=_QUERIES),
    "Tree": _record(
        language=_TEXT,
        steps=_list(
            _record(
                "A step; `program` is the program that ends with it.",
                label=_TEXT, function=_TEXT, about=_TEXT, inputs=_list(_WHOLE), span=_SPAN, program=_TEXT,
                texts=_list(_record(role=_TEXT, text=_TEXT, span=_SPAN, choices=_list(_TEXT))),
            )
        ),
    ),
    "About": _record(
        version=_TEXT, graph=_TEXT, store=_TEXT, counts=_COUNTS, sources=_list(_record(name=_TEXT, format=_TEXT)),
        languages=_list(_TEXT), model=_TEXT_OR_NULL,
        functions=_record(
            kopl=_list(_FUNCTION), llm_query=_list(_FUNCTION), words={"type": "object", "additionalProperties": _list(_TEXT)},
            keywords={"type": "object", "additionalProperties": _list(_TEXT)},
        ),
        limits=_record(timeout=_NUMBER, ask_timeout=_NUMBER, rows=_WHOLE_OR_NULL, drop=_WHOLE),
    ),
    "Names": _record(
        names=_list(
            {
                "description": "`id` and `iri` are there with `ids`; `iri` is relative to the graph, without its angle brackets.",
                "type": "object",
                "properties": {"name": _TEXT, "kind": _TEXT, "about": _TEXT, "id": _TEXT_OR_NULL, "iri": _TEXT},
                "required": ["name", "kind", "about"],
                "additionalProperties": False,
            }
        )
    ),
    "EntityPage": _record(
        entity=_ref("Cell"), same=_list(_ref("Cell")), total_same=_WHOLE_OR_NULL, facts=_list(_ref("Fact")), total=_WHOLE_OR_NULL,
        pointing=_list(_ref("Fact")), total_pointing=_WHOLE_OR_NULL, more={"type": "boolean"}, more_pointing={"type": "boolean"},
        concepts=_list(_ref("Fact")), members=_list(_ref("Cell")), total_members=_WHOLE_OR_NULL,
    ),
    "Schema": {
        "description": "`graph.schema().data()`",
        "type": "object",
        "properties": {
            "counts": _COUNTS, "sources": _list({"type": "object"}), "concepts": _list({"type": "object"}),
            "predicates": _list({"type": "object"}), "units": _list({"type": "object"}),
            "first": _TEXT, "last": _TEXT, "note": _TEXT,
        },
        "required": ["counts", "sources", "concepts", "predicates", "units", "first", "last", "note"],
        "additionalProperties": False,
    },
    "Line": {
        "description": "One line: a step, the outcome, or what went wrong.",
        "oneOf": [
            _record(step=_record(name=_TEXT, seconds=_NUMBER, about=_TEXT)),
            _record(outcome={"type": "object", "required": ["question", "status", "answer", "text", "attempts", "choices"]}),
            _ref("Error"),
        ],
    },
    "Loaded": _record(
        graph={"type": "string", "description": "What to ask the scratch graph by."}, sources=_list(_TEXT), formats=_list(_TEXT),
        statements=_WHOLE, entities={"type": "integer"}, skipped=_WHOLE, joins=_list(_TEXT), problems=_list(_TEXT),
        warnings=_list(_ref("Warning")), seconds=_NUMBER, counts=_COUNTS,
    ),
}  # fmt: skip

_STATUSES: Final = {
    "400": "The request, or its program, is not well formed or names what is not there",
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


def document() -> dict[str, Any]:
    """The whole document."""
    paths = {
        f"/api/v1/{one.name}": {method.lower(): _operation(one, method) for method in one.methods if method != "HEAD"}
        for one in OPERATIONS
    }
    paths["/api/v1/graphs"] = {"post": _drop()}
    paths["/api/v1/graphs/{graph}"] = {
        "delete": {
            "operationId": "forget",
            "summary": "Remove a scratch graph",
            "parameters": [{"name": "graph", "in": "path", "required": True, "schema": _TEXT}],
            "responses": {"204": {"description": "It is gone"}, **_failures()},
        }
    }
    paths["/api/v1/openapi.json"] = {
        "get": {
            "operationId": "openapi",
            "summary": "This document",
            "responses": {
                "200": {"description": "The document", "content": {"application/json": {"schema": {"type": "object"}}}},
                **_failures(),
            },
        }
    }
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
        "components": {"schemas": SCHEMAS, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _failures() -> dict[str, Any]:
    content = {"application/json": {"schema": _ref("Error")}}
    found: dict[str, Any] = {status: {"description": about, "content": content} for status, about in _STATUSES.items()}
    # The head is not read to its end: whom it is for is not known.
    found["431"]["content"] = {"text/plain": {"schema": _TEXT}}
    return found


def _operation(one: Operation, method: str) -> dict[str, Any]:
    kind = "application/x-ndjson" if one.stream else "application/json"
    content: dict[str, Any] = {kind: {"schema": _ref(one.reply)}}
    if any(field.name == "format" for field in one.fields):
        content |= {"text/csv": {"schema": _TEXT}, "application/vnd.apache.arrow.stream": {"schema": _TEXT}}
    found: dict[str, Any] = {
        "operationId": one.name if method == one.method else f"{one.name}_long",
        "summary": one.summary if method == one.method else f"{one.summary}; for names that an address has no room for",
        "responses": {"200": {"description": one.summary, "content": content}, **_failures()},
    }
    if method == "GET":
        return found | {"parameters": [_parameter(field) for field in one.fields]}
    return found | {"requestBody": {"required": True, "content": {"application/json": {"schema": object_schema(one.fields)}}}}


def _parameter(field: Field) -> dict[str, Any]:
    return {"name": field.name, "in": "query", "required": field.required, "description": field.about, "schema": field.schema()}


def _drop() -> dict[str, Any]:
    return {
        "operationId": "drop",
        "summary": "Load one file into a scratch graph; the file is the body",
        "parameters": [_parameter(field) for field in DROP],
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        },
        "responses": {
            "200": {"description": "What was recognised", "content": {"application/json": {"schema": _ref("Loaded")}}},
            **_failures(),
        },
    }

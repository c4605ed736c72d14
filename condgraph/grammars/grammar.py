"""A grammar for programs in one form, and how what a model wrote under it becomes a program."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from condgraph.engine.errors import OptionError, nearest
from condgraph.grammars import forms, kopl, kopl_tree, llm_query, pattern
from condgraph.grammars.parts import Ref, alt
from condgraph.grammars.vocabulary import Asking, candidates, everybody, vocabulary

if TYPE_CHECKING:
    from condgraph.models.base import ChatModel

Format = Literal["gbnf", "json-schema", "lark", "regex"]
FORMATS: Final = ("gbnf", "json-schema", "lark", "regex")
LANGUAGES: Final = ("kopl", "llm_query", "pattern")
#: Names that a JSON schema may list to be given to a server; OpenAI's takes no more.
MOST_LISTED: Final = 1_000
#: What a model writes that finds nothing in the graph that answers, where it is let.
NONE: Final = "NONE"
_WRITERS: Final = {"gbnf": forms.gbnf, "lark": forms.lark, "regex": forms.regex}


@dataclass(frozen=True, slots=True)
class Grammar:
    """A grammar: `text` in its `format`, for JSON schemas `schema` as well; the names of `entities`
    that it allows; `warnings` of what it leaves out.
    """

    language: str
    format: Format
    text: str = field(repr=False)
    entities: tuple[str, ...]
    schema: dict[str, Any] | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()

    def program(self, written: str) -> str:
        """The program that a text under this grammar is; raises `ParseError` for another text. Where
        the grammar has a way to say that nothing answers (`constraint`), that is "NONE".
        """
        if self.format != "json-schema":
            return written
        if self.language == "kopl":
            return kopl_tree.program(written) or NONE
        return NONE if pattern.is_empty(written) else written

    @property
    def told(self) -> str:
        """What a model has to be told of the form that it writes in; nothing where it is the usual one."""
        return kopl_tree.TOLD if self.language == "kopl" and self.format == "json-schema" else ""

    def options(self) -> dict[str, Any]:
        """The constraint as options of `ChatModel.chat`."""
        return {"grammar": self.text} if self.format == "gbnf" else {"schema": self.schema}

    def __str__(self) -> str:
        return self.text


def grammar_of(
    graph: Asking,
    language: str,
    question: str | None,
    entities: Iterable[str] | None,
    format: str,
    depth: int,
    steps: int,
    *,
    none: bool = False,
) -> Grammar:
    """The grammar of a language over the names of a graph; see `Graph.grammar`. With `none` it has a
    way to say that nothing in the graph answers.
    """
    for what, given, known in (("language", language, LANGUAGES), ("format", format, FORMATS)):
        if given not in known:
            raise OptionError(
                f"there is no grammar in the {what} {given!r}", candidates=nearest(given, known), hint=", ".join(known)
            )
    if not 0 <= depth <= 4 or not 0 <= steps <= 20:
        raise OptionError("depth is from 0 to 4, and steps from 0 to 20")
    warnings = []
    if entities is not None:
        allowed = list(entities)
    elif question is None:
        allowed = everybody(graph)
    else:
        allowed = candidates(graph, question)
        if not allowed:
            warnings.append("the question names nothing of the graph: programs begin with all entities")
    names = vocabulary(graph, allowed)
    if language == "llm_query" and (left := len(names.entities) - len(llm_query.plain(names.entities))):
        warnings.append(f"{left} entities have quotes in their names, and are left out")
    told = tuple(warnings)
    if format == "json-schema":
        if language == "llm_query":
            raise OptionError("LLM queries have no JSON schema: they are lines of text", hint="gbnf, lark and regex have them")
        schema = kopl_tree.schema(names, none=none) if language == "kopl" else pattern.schema(names, none=none)
        return Grammar(language, "json-schema", json.dumps(schema, ensure_ascii=False), names.entities, schema, told)
    if language == "kopl":
        rules = kopl.rules(names, depth=depth, steps=steps)
    else:
        rules = llm_query.rules(names) if language == "llm_query" else pattern.rules(names)
    if none:
        rules = {**rules, "root": alt(NONE, Ref("program")), "program": rules["root"]}
    return Grammar(language, format, _WRITERS[format](rules), names.entities, None, told)  # type: ignore[arg-type]


def constraint(
    graph: Asking, model: ChatModel, language: str, question: str, entities: Iterable[str] | None = None
) -> Grammar | None:
    """The grammar that a model can be held to while it writes a program for a question: GBNF where it
    takes that, else a JSON schema; None where it takes neither, the language has none, or a schema
    would list more names than servers take. It can say "NONE" as well.

    `model.chat(messages, **found.options())` asks under it, and `found.program(text)` is the
    program. Raises `OptionError` where the graph has no names for the grammar.
    """
    accepts = model.accepts
    if "gbnf" in accepts:
        return grammar_of(graph, language, question, entities, "gbnf", kopl.DEPTH, kopl.STEPS, none=True)
    if "json-schema" not in accepts or language == "llm_query":
        return None
    found = grammar_of(graph, language, question, entities, "json-schema", kopl.DEPTH, kopl.STEPS, none=True)
    return found if _listed(found.schema) <= MOST_LISTED else None


def _listed(schema: Any) -> int:
    """How many values a schema lists."""
    if isinstance(schema, dict):
        return sum(len(part) if name == "enum" else _listed(part) for name, part in schema.items())
    return sum(map(_listed, schema)) if isinstance(schema, list) else 0

"""Grammars for programs in one format, and programs from texts that follow them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from condgraph.engine.errors import OptionError, UnknownNameError, nearest
from condgraph.grammars import kopl, llm_query, logic, parts, pattern
from condgraph.grammars.parts import Part, Ref, Rules, alt, trie
from condgraph.grammars.vocabulary import NamedGraph, Vocabulary, candidates, everybody, kept, surroundings, vocabulary

if TYPE_CHECKING:
    from condgraph.models.chat import ChatModel

Format = Literal["gbnf", "json-schema", "lark", "regex"]
FORMATS: Final = ("gbnf", "json-schema", "lark", "regex")
LANGUAGES: Final = ("kopl", "llm_query", "pattern", "logic")
#: Most names that a JSON schema may list to be sent to a server; OpenAI accepts no more.
MAX_LISTED: Final = 1_000
#: The text of a model that finds no answer in the graph, if the grammar allows it.
NONE: Final = "NONE"
#: The languages whose programs are trees under a JSON schema, with the module that reads the trees.
_TREES: Final = {"kopl": kopl, "llm_query": llm_query, "logic": logic}
_WRITERS: Final = {"gbnf": parts.gbnf, "lark": parts.lark, "regex": parts.regex}


@dataclass(frozen=True, slots=True)
class Grammar:
    """A grammar: its `text` in a `format` (for a JSON schema also the `schema`, whose text is written on demand).

    `entities` are the names that it allows, `aware` tells whether it only allows the predicates that these have, and
    `warnings` list what it omits.
    """

    language: str
    format: Format
    written: str | None = field(repr=False)
    entities: tuple[str, ...]
    schema: dict[str, Any] | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()
    aware: bool = False

    @property
    def text(self) -> str:
        """The grammar as text; a schema as JSON."""
        return json.dumps(self.schema, ensure_ascii=False) if self.written is None else self.written

    def program(self, written: str) -> str:
        """Return the program of a text that follows this grammar;

        "NONE" if the text states that nothing answers (`constraint`).

        Raises `ParseError` for another text.
        """
        if self.format != "json-schema":
            return written
        if self.language != "pattern":
            return _TREES[self.language].program(written) or NONE
        return NONE if pattern.is_empty(written) else written

    @property
    def told(self) -> str:
        """Instructions for a model about an unusual form of programs; empty for the usual one."""
        return _TREES[self.language].INSTRUCTIONS if self.language != "pattern" and self.format == "json-schema" else ""

    def options(self) -> dict[str, Any]:
        """Return the constraint as options of `ChatModel.chat`."""
        return {"grammar": self.text} if self.format == "gbnf" else {"schema": self.schema}

    def __str__(self) -> str:
        return self.text


def grammar_of(
    graph: NamedGraph,
    language: str,
    question: str | None,
    entities: Iterable[str] | None,
    format: str,
    depth: int,
    steps: int,
    *,
    none: bool = False,
    source: str | None = None,
    aware: bool = False,
) -> Grammar:
    """Return the grammar of a language over the names of a graph; see `Graph.grammar`.

    With `none` it also allows "NONE", for questions without an answer.
    """
    for option, chosen, known in (("language", language, LANGUAGES), ("format", format, FORMATS)):
        if chosen not in known:
            raise OptionError(f"no grammar for the {option} {chosen!r}", candidates=nearest(chosen, known), hint=", ".join(known))
    if not 0 <= depth <= 4 or not 0 <= steps <= 20:
        raise OptionError("depth is from 0 to 4, and steps from 0 to 20")
    if source is not None:
        if language != "llm_query":
            raise OptionError("source= is an option of grammars of LLM queries", hint="programs of other languages have no scope")
        sources = [item[0] for item in graph._survey()["sources"]]
        if source not in sources:
            raise UnknownNameError("source", source, candidates=nearest(source, sources))
    if aware and language != "kopl":
        raise OptionError(
            f"aware= is an option of grammars of KoPL, in which an entity comes before its predicate, not of {language!r}",
            hint='the language "kopl", in any format, or aware=False',
        )
    if aware and entities is None and question is None:
        raise OptionError("aware= needs the entities that programs begin with", hint="question= or entities=")
    options = _GrammarOptions(language, format, depth, steps, none, source, aware)
    if entities is None and question is None:
        # For all names of the graph, the grammar stays the same until the graph changes.
        return kept(graph._survey(), ("all", options), lambda: _build(graph, options, everybody(graph), []))
    warnings = []
    if entities is not None:
        allowed = list(entities)
    else:
        allowed = candidates(graph, question or "")
        if not allowed:
            warnings.append("the question names nothing of the graph: programs begin with all entities")
    return _build(graph, options, allowed, warnings)


@dataclass(frozen=True, slots=True)
class _GrammarOptions:
    """The options of a grammar, without names."""

    language: str
    format: str
    depth: int
    steps: int
    none: bool
    source: str | None
    aware: bool


def _build(graph: NamedGraph, how: _GrammarOptions, allowed: Iterable[str], warnings: list[str]) -> Grammar:
    """Build the grammar over some entities."""
    language, format = how.language, how.format
    names = vocabulary(graph, allowed, how.source)
    if language == "llm_query" and (skipped := sum(not llm_query.writable(name) for name in names.entities)):
        warnings = [*warnings, f"{skipped} entities have names that cannot be written in quotes, and are left out"]
    if language == "pattern" and (skipped := sum(not pattern.writable(name) for name in names.entities)):
        warnings = [*warnings, f"{skipped} entities have names that a pattern reads as values or unknowns, and are left out"]
    notes = tuple(warnings)
    if format == "json-schema":
        return Grammar(language, "json-schema", None, names.entities, _schema(graph, how, names), notes, how.aware)
    text = _text(graph, how, names)
    return Grammar(language, format, text, names.entities, None, notes, how.aware)  # type: ignore[arg-type]


def _schema(graph: NamedGraph, how: _GrammarOptions, names: Vocabulary) -> dict[str, Any]:
    """Return the rules as a JSON schema; everything but the list of entities is built once for each graph."""
    language, none = how.language, how.none
    if how.aware:
        return kopl.schema(names, none=none, has=surroundings(graph, names.entities))
    if language == "pattern":
        return pattern.schema(names, none=none)
    rule = _named_rule(language)
    entities = [entity for entity in names.entities if language != "llm_query" or llm_query.writable(entity)]
    result = kept(graph._survey(), ("schema", how, bool(entities)), lambda: _TREES[language].schema(names, none=none))
    definitions = result["$defs"]
    return {**result, "$defs": {**definitions, rule: {"enum": entities}}} if rule in definitions else result


def _named_rule(language: str) -> str:
    """Return the name of the definition that lists the entities."""
    return "entity" if language == "llm_query" else "name"


def _text(graph: NamedGraph, how: _GrammarOptions, names: Vocabulary) -> str:
    """Return the rules as text; everything but the list of entities is written once for each graph."""
    language, write = how.language, _WRITERS[how.format]
    rule, part = _ENTITIES[language](names)

    def with_none(rules: Rules) -> Rules:
        return {**rules, "root": alt(NONE, Ref("program")), "program": rules["root"]} if how.none else rules

    def write_others() -> str:
        rules = with_none(_rules(language, names, how.depth, how.steps))
        return write({name: item for name, item in rules.items() if part is None or name != rule})

    if how.aware:
        predicates_of = surroundings(graph, names.entities)
        return write(with_none(kopl.rules(names, depth=how.depth, steps=how.steps, has=predicates_of)))
    if how.format == "regex":
        # One expression, without separate rules.
        part = None
        return write_others()
    # The rules differ between grammars with and without entities.
    text = kept(graph._survey(), ("rules", how, part is None and not names.entities), write_others)
    return text if part is None else text + write({rule: part})


def _quoted_names(names: Vocabulary) -> tuple[str, Part | None]:
    return "name", trie(map(kopl.quoted, names.entities)) if names.entities and names.relations else None


#: The name of the rule for entities, and the rule; None in a grammar without entities.
_ENTITIES: Final[Mapping[str, Callable[[Vocabulary], tuple[str, Part | None]]]] = {
    "kopl": _quoted_names,
    "logic": _quoted_names,
    "llm_query": lambda names: ("entity", llm_query.names_of(names.entities)),
    "pattern": lambda names: ("known", pattern.known_of(names)),
}


def _rules(language: str, names: Vocabulary, depth: int, steps: int) -> Rules:
    if language == "kopl":
        return kopl.rules(names, depth=depth, steps=steps)
    if language == "llm_query":
        return llm_query.rules(names, steps=steps)
    return logic.rules(names, depth=depth) if language == "logic" else pattern.rules(names)


def constraint(
    graph: NamedGraph,
    model: ChatModel,
    language: str,
    question: str,
    entities: Iterable[str] | None = None,
    source: str | None = None,
    *,
    aware: bool = False,
) -> Grammar | None:
    """Return the grammar that constrains a model while it writes a program for a question.

    GBNF if the model accepts that, else a JSON schema; None if it accepts neither, the language has none, or the schema
    would list more names than servers accept. The grammar also allows "NONE". With `aware`, it only allows predicates
    that the entities have (`Graph.grammar`); if that would be too large, its `warnings` tell so. `model.chat(messages,
    **grammar.options())` calls the model under it, and `grammar.program(text)` returns the program. Raises
    `OptionError` if the graph has no names for the grammar.
    """
    accepts = model.accepts
    if aware and accepts & {"gbnf", "json-schema"}:
        form = "gbnf" if "gbnf" in accepts else "json-schema"
        try:
            result = grammar_of(graph, language, question, entities, form, kopl.DEPTH, kopl.STEPS, none=True, aware=True)
            if result.schema is None or (listed := _listed(result.schema)) <= MAX_LISTED:
                return result
            why = f"a schema with it would list {listed:,} names, and servers take {MAX_LISTED:,}"
        except OptionError as error:
            why = str(error)
        plain = constraint(graph, model, language, question, entities, source)
        return plain and replace(plain, warnings=(*plain.warnings, f"the grammar does not know what entities have: {why}"))
    if "gbnf" in accepts:
        return grammar_of(graph, language, question, entities, "gbnf", kopl.DEPTH, kopl.STEPS, none=True, source=source)
    if "json-schema" not in accepts:
        return None
    result = grammar_of(graph, language, question, entities, "json-schema", kopl.DEPTH, kopl.STEPS, none=True, source=source)
    if language == "pattern":
        return result if _listed(result.schema) <= MAX_LISTED else None
    named = _listed((result.schema or {})["$defs"].get(_named_rule(language)))
    # Apart from the entities, a schema lists the same for every question.
    other_values = kept(graph._survey(), ("listed", language, source, bool(named)), lambda: _listed(result.schema) - named)
    return result if other_values + named <= MAX_LISTED else None


def _listed(schema: object) -> int:
    """Return the number of values that a schema lists."""
    if isinstance(schema, dict):
        return sum(len(part) if name == "enum" else _listed(part) for name, part in schema.items())
    return sum(map(_listed, schema)) if isinstance(schema, list) else 0

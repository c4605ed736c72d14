"""The schema of a graph for users (`Graph.schema`): records of its sources, concepts, predicates and units, as text
within a budget of tokens (for prompts), and as small tables.

Lists always have the same order: the most frequent first, then by name. Names are complete; the texts of examples
have at most 120 characters. Lists that belong to a predicate have at most `MAX_PARTS` items; `more` contains the
number of omitted items by the name of the list.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError, UnknownNameError, nearest
from condgraph.engine.html import page, table
from condgraph.engine.values import DAY_SECONDS, NO_UNIT, bound_text
from condgraph.models.chat import estimate
from condgraph.overview.survey import Ends, Survey

if TYPE_CHECKING:
    from condgraph.engine.drawing import Drawing


#: The maximum length of the lists of kinds, types, keys and sources of one predicate.
MAX_PARTS: Final = 12
#: The sort of a kind of subjects or objects: the members of a concept, rows of a table in no concept, concepts themselves, or
#: entities in no concept.
KindSort = Literal["concept", "table", "concepts", "entities"]
#: The words for kinds without a name.
UNNAMED: Final[Mapping[str, str]] = {"concepts": "concepts", "entities": "entities without a concept"}


@dataclass(frozen=True, slots=True)
class KindCount:
    """A kind of subjects or objects of a predicate, with the number of their statements. An entity in two concepts
    counts in both. `name` is the name of the concept or the table, else empty.
    """

    sort: KindSort
    name: str
    statements: int


@dataclass(frozen=True, slots=True)
class ValueCount:
    """The number of values of one type and unit. `type` is "text", "quantity", "time", "entity" or "unknown"; `unit`
    is "1" for values without a unit. `first` and `last` are the smallest and the largest number with its unit, or the
    times with the first and the last start, as text; they are empty for other types.
    """

    type: str
    unit: str
    count: int
    first: str = ""
    last: str = ""


@dataclass(frozen=True, slots=True)
class QualifierKey:
    """A key of qualifiers of one predicate, with the number of qualifiers and their values."""

    name: str
    count: int
    values: tuple[ValueCount, ...]


@dataclass(frozen=True, slots=True)
class SourceCount:
    """A source, with the number of its statements of a predicate."""

    name: str
    statements: int


@dataclass(frozen=True, slots=True)
class Example:
    """A statement, as the name of its subject and the text of its object."""

    subject: str
    object: str


@dataclass(frozen=True, slots=True)
class PredicateSchema:
    """A predicate: the number of its statements, with entities (`relations`) and with values (`attributes`) as
    objects; the kinds of its subjects and objects; and its values and qualifiers by type.
    """

    name: str
    statements: int
    relations: int
    attributes: int
    subjects: tuple[KindCount, ...]
    objects: tuple[KindCount, ...]
    values: tuple[ValueCount, ...]
    qualifiers: tuple[QualifierKey, ...]
    sources: tuple[SourceCount, ...]
    examples: tuple[Example, ...]
    more: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConceptSchema:
    """A concept: the number of its entities, including those of the concepts below it, the names of some of them, and
    the names of the concepts directly above it.
    """

    id: str
    name: str
    members: int
    above: tuple[str, ...]
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceSchema:
    """A source: its format, its number of statements, and the number of its table rows that are entities. A statement
    in two sources counts in both.
    """

    name: str
    format: str
    statements: int
    rows: int


@dataclass(frozen=True, slots=True)
class UnitCount:
    """A unit, with the number of quantities that have it, in attributes and qualifiers."""

    unit: str
    values: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The content of a graph.

    `counts` are those of the whole graph: entities (including table rows), concepts, rows, relations, attributes,
    qualifiers. `first` and `last` are the first and the last day of its times, as text, or empty. `note` states what
    is missing if an earlier release wrote the graph on a server.
    """

    counts: dict[str, int]
    sources: tuple[SourceSchema, ...]
    concepts: tuple[ConceptSchema, ...]
    predicates: tuple[PredicateSchema, ...]
    units: tuple[UnitCount, ...]
    first: str = ""
    last: str = ""
    note: str = ""

    @property
    def statements(self) -> int:
        """The number of relations and attributes of the whole graph."""
        return self.counts.get("relations", 0) + self.counts.get("attributes", 0)

    def data(self) -> dict[str, Any]:
        """Return the content as dicts and lists, for JSON."""
        return asdict(self)


# -- names, kinds and values in a few words ----------------------------------------------------------
# Line breaks in names are escaped, so that no name can end its line.


#: The length in characters above which names are cut.
MAX_NAME: Final = 60


def cut(text: str, most: int = MAX_NAME) -> str:
    """Return a text with at most `most` characters, ending in an ellipsis if it was longer."""
    return text if len(text) <= most else text[: most - 1] + "…"


#: Text that servers of language models treat as control tokens ("<|im_end|>", "</s>", "[INST]").
_MARKS: Final = re.compile(
    r"<(?=[|｜]|<SYS>>|/?(?:s|unk|pad|bos|eos|cls|sep|mask|think|tool\w*|(?:start|end|begin)_of_\w+|user|assistant|system)>)"
    r"|\[(?=/?(?:INST|TOOL_\w+|AVAILABLE_TOOLS)\])",
    re.IGNORECASE,
)


def unmarked(text: str) -> str:
    r"""Escape control tokens of language models in JSON text. Their first letter is escaped, so that the strings keep
    their value.

    >>> print(unmarked('"<|im_end|> [INST] </s> <b>"'))
    "\u003c|im_end|> \u005bINST] \u003c/s> <b>"
    """
    return _MARKS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def quoted(name: str, most: int = MAX_NAME) -> str:
    r"""Return a name as a JSON string of one line, cut. Unprintable characters (control characters, line ends, marks
    of the writing direction) and control tokens of language models are escaped.

    >>> print(quoted('a "b"\nc\u202e'), quoted(""), quoted("x" * 9, 5))
    "a \"b\"\nc\u202e" "" "xxxx…"
    """
    text = cut(name, most)
    if text.isprintable() and '"' not in text and "\\" not in text:
        return unmarked(f'"{text}"')
    return unmarked('"' + "".join(_escaped(c) for c in text) + '"')


def _escaped(c: str) -> str:
    return json.dumps(c)[1:-1] if c in '"\\' or not c.isprintable() else c


def plain(name: str) -> str:
    """Return a name for a cell of a table, cut, with only unprintable characters escaped."""
    text = cut(name)
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def kind_words(kind: KindCount, longest: int = MAX_NAME) -> str:
    """Return a kind as text, with its name quoted and cut to `longest` characters."""
    if kind.sort == "concept":
        return quoted(kind.name, longest)
    return f"rows of {quoted(kind.name, longest)}" if kind.sort == "table" else UNNAMED[kind.sort]


def kinds_words(kinds: Iterable[KindCount], most: int) -> str:
    """Return the first kinds with their counts as text."""
    all_kinds = list(kinds)
    return listed_words([f"{kind_words(item)} {item.statements:,}" for item in all_kinds[:most]], len(all_kinds) - most)


def type_words(value: ValueCount) -> str:
    """Return a type as text, with its unit."""
    return value.type + ("" if value.unit == NO_UNIT else f" in {quoted(value.unit)}")


def value_words(value: ValueCount, *, counted: bool = True) -> str:
    """Return a type as text, with its unit, the number of its values (if `counted`), and the first and last of them."""
    span = "" if not value.first else f" {value.first}" if value.first == value.last else f" {value.first} to {value.last}"
    # The numbers contain the unit too: show it once.
    if value.unit != NO_UNIT and span:
        span = span.replace(f" {value.unit}", "")
    return f"{type_words(value)}{f' {value.count:,}' if counted else ''}{f' ({safe(span.strip())})' if span else ''}"


def safe(text: str) -> str:
    """Return a text as the inside of a JSON string, cut."""
    return quoted(text)[1:-1]


def qualifier_words(key: QualifierKey) -> str:
    """Return a key with the types of its values as text."""
    return f"{quoted(key.name)} {'/'.join(dict.fromkeys(value.type for value in key.values))}"


def examples_words(predicate: PredicateSchema, most: int) -> str:
    """Return the first examples as text."""
    return "; ".join(f"{quoted(example.subject)} → {quoted(example.object)}" for example in predicate.examples[:most])


def listed_words(parts: list[str], more: int) -> str:
    """Return items separated by commas, and the number of further ones."""
    return ", ".join(parts) + (f" and {more:,} more" if more > 0 else "")


# -- small tables, for terminals and notebooks -------------------------------------------------------


#: The default maximum number of rows of a section.
MAX_ROWS: Final = 20
#: A heading, columns, rows, and the number of further rows.
Section = tuple[str, tuple[str, ...], list[tuple[str, ...]], int]


def sections(schema: Overview, most: int = MAX_ROWS) -> list[Section]:
    """Return the sections that have rows: sources, concepts, predicates, units; each with at most `most` rows (0:
    all).
    """
    tables: tuple[tuple[str, tuple[str, ...], Sequence[Any], Callable[[Any], tuple[str, ...]]], ...] = (
        ("sources", ("source", "format", "statements", "rows"), schema.sources, _source),
        ("concepts", ("concept", "members", "below", "such as"), schema.concepts, _concept),
        ("predicates", ("predicate", "statements", "from", "to", "qualifiers", "such as"), schema.predicates, _predicate),
        ("units", ("unit", "values"), schema.units, lambda item: (plain(item.unit), f"{item.values:,}")),
    )
    with_rows = ((name, columns, parts, list(map(row, parts[: most or None]))) for name, columns, parts, row in tables)
    return [(name, columns, rows, len(parts) - len(rows)) for name, columns, parts, rows in with_rows if rows]


def _source(source: SourceSchema) -> tuple[str, ...]:
    return plain(source.name), source.format, f"{source.statements:,}", f"{source.rows:,}"


def _concept(concept: ConceptSchema) -> tuple[str, ...]:
    above = listed_words([plain(name) for name in concept.above[:3]], len(concept.above) - 3)
    return plain(concept.name), f"{concept.members:,}", above, ", ".join(map(plain, concept.examples))


def _predicate(predicate: PredicateSchema) -> tuple[str, ...]:
    keys = listed_words([qualifier_words(key) for key in predicate.qualifiers[:3]], len(predicate.qualifiers) - 3)
    ends = kinds_words(predicate.subjects, 2), to_words(predicate, 2)
    return plain(predicate.name), f"{predicate.statements:,}", *ends, keys, examples_words(predicate, 1)


def to_words(predicate: PredicateSchema, most: int) -> str:
    """Return the objects of a predicate as text: kinds of entities, then types of values."""
    values = listed_words([value_words(value) for value in predicate.values[:most]], len(predicate.values) - most)
    return ", ".join(part for part in (kinds_words(predicate.objects, most), values) if part)


def heading(schema: Overview) -> str:
    """Return the first line: the counts, and the first and last time."""
    counts = schema.counts
    parts = [
        f"{schema.statements:,} statements",
        f"{counts.get('entities', 0):,} entities",
        f"{counts.get('concepts', 0):,} concepts",
    ]
    if schema.first:
        parts.append(f"times from {safe(schema.first)} to {safe(schema.last)}")
    return ", ".join(parts)


# -- text within a budget of tokens, for prompts -----------------------------------------------------
# The most frequent items come first. Sources, units and concepts have a share of the budget each, and predicates get the
# remainder. The last line states what did not fit. The complete text is counted against the budget, so that it also holds for
# tokenizers with tokens across line ends.


#: Returns the number of tokens of a text.
Count = Callable[[str], int]
#: The share of the budget for the shorter sections.
_SHARES: Final = {"sources": 0.12, "units": 0.08, "concepts": 0.2}
_ORDER: Final = ("sources", "concepts", "predicates", "units")


def within_budget(schema: Overview, tokens: Any, count: Any = None) -> str:
    """Return the text of a schema in at most `tokens` tokens (`GraphSchema.text`)."""
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
        raise OptionError(f"tokens is a whole number and 0 or more, not {tokens!r}")
    if count is not None and not callable(count):
        raise OptionError(f"count is a function from text to a number of tokens, not {count!r}")
    counted: Count = estimate if count is None else count
    head = heading(schema) + "." + (f" {schema.note}" if schema.note else "")
    lines: dict[str, list[str]] = {name: [] for name in _ORDER}
    totals = {name: len(getattr(schema, name)) for name in _ORDER}
    if sum(totals.values()) <= tokens:
        complete = {name: [_FORMS[name][0](item) for item in getattr(schema, name)] for name in _ORDER}
        if counted(text := _sections(head, complete, totals)) <= tokens:
            return text
    remaining = tokens - counted(head + "\n") - counted(_sections("", lines, totals))
    for name, share in _SHARES.items():
        remaining -= _fill(lines[name], schema, name, min(int(tokens * share), remaining), counted)
    _fill(lines["predicates"], schema, "predicates", remaining, counted)
    # Remove the least frequent items until the text fits.
    droppable = ("units", "sources", "concepts", "predicates")
    while True:
        check()
        text = _sections(head, lines, totals)
        over = counted(text) - tokens
        if over <= 0:
            return text
        for name in droppable:
            while lines[name] and over > 0:
                over -= max(counted(lines[name].pop() + "\n"), 1)
            if over <= 0:
                break
        else:
            return head if counted(head) <= tokens else ""


def _fill(lines: list[str], schema: Overview, name: str, budget: int, counted: Count) -> int:
    """Add lines while they fit, and return the number of their tokens. A line that does not fit is tried in shorter
    forms, and ends the section if none fits.
    """
    items = getattr(schema, name)
    used = counted(f"{_TITLES[name]}\n") if items else 0
    for number, item in enumerate(items):
        if not number % 64:
            check()
        forms = _FORMS[name]
        # The first lines are long, later ones shorter, so that more of them fit.
        for form in forms[min(len(forms) * used // max(budget, 1), len(forms) - 1) :]:
            line = form(item)
            cost = counted(line + "\n")
            if used + cost <= budget:
                lines.append(line)
                used += cost
                break
        else:
            break
    return used if lines else 0


def _sections(head: str, lines: dict[str, list[str]], totals: dict[str, int]) -> str:
    parts = [head]
    for name in _ORDER:
        if lines[name]:
            parts += [_TITLES[name], *lines[name]]
    missing = {name: totals[name] - len(lines[name]) for name in ("predicates", "concepts", "sources", "units")}
    more = [f"{number:,} more {name if number > 1 else name[:-1]}" for name, number in missing.items() if number]
    if more:
        parts.append("and " + ", ".join(more))
    return "\n".join(parts)


def _predicate_text(predicate: PredicateSchema, *, kinds: int, examples: int) -> str:
    ends = f"{kinds_words(predicate.subjects, kinds)} → {to_words(predicate, kinds)}"
    text = f"- {quoted(predicate.name)} {predicate.statements:,}: {ends}"
    if predicate.qualifiers:
        keys = [qualifier_words(key) for key in predicate.qualifiers[:4]]
        text += f"; qualifiers {listed_words(keys, len(predicate.qualifiers) - 4)}"
    return text + (f"; e.g. {examples_words(predicate, examples)}" if predicate.examples and examples else "")


def _short(predicate: PredicateSchema) -> str:
    return f"- {quoted(predicate.name)} {predicate.statements:,}: {kinds_words(predicate.subjects, 1)} → {to_words(predicate, 1)}"


def _concept_text(concept: ConceptSchema) -> str:
    above = f", below {listed_words([quoted(name) for name in concept.above[:2]], len(concept.above) - 2)}" if concept.above else ""
    examples = f", e.g. {', '.join(quoted(name) for name in concept.examples[:2])}" if concept.examples else ""
    return f"- {quoted(concept.name)} {concept.members:,}{above}{examples}"


_TITLES: Final = {
    "sources": "Sources, with statements:",
    "concepts": "Concepts, with members:",
    "predicates": "Predicates, with statements: subjects → objects:",
    "units": "Units, with values:",
}
_FORMS: Final[dict[str, tuple[Callable[..., str], ...]]] = {
    "sources": (lambda item: f"- {quoted(item.name)} {item.statements:,}{f', {item.rows:,} rows' if item.rows else ''}",),
    "concepts": (_concept_text, lambda item: f"- {quoted(item.name)} {item.members:,}"),
    "predicates": (
        partial(_predicate_text, kinds=3, examples=2),
        partial(_predicate_text, kinds=2, examples=1),
        _short,
        lambda item: f"- {quoted(item.name)} {item.statements:,}",
    ),
    "units": (lambda item: f"- {quoted(item.unit)} {item.values:,}",),
}


def end_words(predicate: PredicateSchema, end: Literal["subject", "object"], *, longest: int = MAX_NAME) -> str:
    """Return one end of a predicate as text, without counts: its most frequent kind (with its name cut to `longest`
    characters), and the most frequent type of its values with the unit.
    """
    kinds = predicate.subjects if end == "subject" else predicate.objects
    words = ["entity" if kind.sort == "entities" else kind_words(kind, longest) for kind in kinds[:1]]
    if end == "object":
        words += map(type_words, predicate.values[:1])
    return ", ".join(words) or "nothing"


def predicate_line(predicate: PredicateSchema, length: int, *, examples: bool = True) -> str:
    """Return a predicate as one line: long (0), shorter (1, 2), or only its name and size (3). `examples=False`
    leaves out data of the graph.
    """
    if not examples and length < 2:
        return _predicate_text(predicate, kinds=3 - length, examples=0)
    return str(_FORMS["predicates"][length](predicate))


# -- comments of Cypher: to paste above a query, or into a prompt --------------------------------------


#: The length in characters above which names are cut, and the words for types of values.
_MAX_CYPHER_NAME: Final = 200
_CYPHER_TYPES: Final = {"text": "text", "quantity": "number", "time": "time", "entity": "node", "unknown": "unknown"}
#: The largest share of nodes without a label at the end of a relationship for which its pattern still has a label.
_MAX_UNLABELLED: Final = 0.01
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def cypher_name(name: str, longest: int = _MAX_CYPHER_NAME) -> str:
    """Return a name for Cypher, cut to `longest` characters, in backticks if necessary. Characters that could end a
    line, and control tokens of language models, are escaped as in JSON.

    >>> print(cypher_name("height"), cypher_name("head of government"), cypher_name("a`b"), cypher_name("x\\ny"))
    height `head of government` `a``b` `x\\ny`
    """
    if _IDENTIFIER.fullmatch(name) and len(name) <= longest:
        return name
    text = cut(name, longest)
    text = "".join(c if c.isprintable() else quoted(c)[1:-1] for c in text)
    return f"`{unmarked(text).replace('`', '``')}`"


def cypher_text(schema: Overview, most: int) -> str:
    """Return the schema as comments of Cypher: labels with the number of their nodes and the labels above them,
    patterns of relationships with qualifiers as properties, and properties of nodes with types and units. Each
    section has at most `most` lines.

    Counts are those of the whole graph; the count of a label includes the nodes of labels below it.
    """
    tables = _table_labels(schema)
    labels = [
        (f"(:{cypher_name(concept.name)})", concept.members, "".join(f" :{cypher_name(name)}" for name in concept.above))
        for concept in schema.concepts
    ]
    labels += [(f"(:{cypher_name(tables[source.name])})", source.rows, "") for source in schema.sources if source.rows]
    named = [
        name
        for name in ("name", "id")
        if not any(predicate.name == name and predicate.attributes for predicate in schema.predicates)
    ]
    head = "" if not named else f"; every node has {' and '.join(named)}"
    return "\n".join(
        [
            f"// Labels{head}",
            *_comments((f"{label} {_count(count, 'node')}{above and f', also{above}'}" for label, count, above in labels), most),
            "// Relationships",
            *_comments((_relationship_line(predicate, tables) for predicate in schema.predicates if predicate.relations), most),
            "// Properties of nodes",
            *_comments((_property_line(predicate, tables) for predicate in schema.predicates if predicate.attributes), most),
        ]
    )


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _comments(lines: Iterable[str], most: int) -> list[str]:
    all_lines = list(lines)
    comments = [f"// {line}" for line in all_lines[:most]]
    return comments if len(all_lines) <= most else [*comments, f"// ... and {len(all_lines) - most:,} more"]


def _table_labels(schema: Overview) -> dict[str, str]:
    """Return the label of each table: the last part of its name, or all of it if the last part is not unique."""
    short = Counter(source.name.rpartition("/")[2] for source in schema.sources if source.rows)
    concepts = {concept.name for concept in schema.concepts}
    result = {}
    for source in schema.sources:
        last = source.name.rpartition("/")[2]
        result[source.name] = last if short[last] == 1 and last not in concepts else source.name
    return result


def _pattern_of(kinds: Sequence[KindCount], more: int, tables: dict[str, str]) -> str:
    """Return the pattern of a node with one of some labels. A kind without a label matches any node."""
    labels = [cypher_name(tables.get(kind.name, kind.name) if kind.sort == "table" else kind.name) for kind in kinds if kind.name]
    additions = [f"{more:,} more labels"] if more else []
    additions += ["nodes without a label"] if labels and any(not kind.name for kind in kinds) else []
    pattern = f"(:{'|'.join(labels)})" if labels else "()"
    return f"[{pattern} and {' and '.join(additions)}]" if additions else pattern


def _relationship_line(predicate: PredicateSchema, tables: dict[str, str]) -> str:
    start = _pattern_of(predicate.subjects, predicate.more.get("subjects", 0), tables)
    end = _pattern_of(predicate.objects, predicate.more.get("objects", 0), tables)
    kind = f"[:{cypher_name(predicate.name)}{_properties_of(predicate)}]"
    return f"{start}-{kind}->{end} {_count(predicate.relations, 'relationship')}"


def _properties_of(predicate: PredicateSchema) -> str:
    if not predicate.qualifiers:
        return ""
    parts = [f"{cypher_name(key.name)}: {_types_of(key)}" for key in predicate.qualifiers]
    more = predicate.more.get("qualifiers", 0)
    return f" {{{', '.join([*parts, *([f'{more:,} more'] if more else [])])}}}"


def _types_of(key: QualifierKey) -> str:
    return " or ".join(dict.fromkeys(_cypher_type(value) for value in key.values))


def _cypher_type(value: ValueCount) -> str:
    return _CYPHER_TYPES.get(value.type, value.type) + ("" if value.unit == NO_UNIT else f" in {quoted(value.unit)}")


def _property_line(predicate: PredicateSchema, tables: dict[str, str]) -> str:
    node = _pattern_of(predicate.subjects, predicate.more.get("subjects", 0), tables)
    kinds = []
    for value in predicate.values:
        if value.type == "entity":
            continue
        span = f" from {safe(value.first)} to {safe(value.last)}" if value.first else ""
        kinds.append(f"{_cypher_type(value)}, {_count(value.count, 'value')}{span}")
    more = predicate.more.get("values", 0)
    return f"{node}.{cypher_name(predicate.name)}: {'; '.join([*kinds, *([f'{more:,} more types'] if more else [])])}"


@dataclass(frozen=True, slots=True, repr=False)
class GraphSchema(Overview):
    """The content of a graph (`Graph.schema`), with the fields of `Overview`.

    `str(schema)` and `schema.text(tokens=...)` return plain text, `schema.cypher()` comments of Cypher,
    `schema.data()` values for JSON.
    """

    def text(self, tokens: int = 1000, *, count: Callable[[str], int] | None = None) -> str:
        """Return the schema as plain text of at most `tokens` tokens, for the prompt of a language model.

        The most frequent items come first, and the last line states what did not fit. Names are JSON strings without
        control characters, cut if they are long, so that none can end its line. Tokens are estimated, rather too many
        than too few (`models.chat.estimate`), unless `count`, a function from text to a number of tokens, is given.
        Raises `OptionError` for a negative number of tokens. Returns "" if nothing fits.
        """
        return within_budget(self, tokens, count)

    def cypher(self, limit: int = 1000) -> str:
        """Return the schema as a property graph in comments of Cypher, to paste above a query or into a prompt:
        labels, patterns of relationships with their properties, and properties of nodes with types and units. Each
        section has at most `limit` lines and a line with the number of further ones.
        """
        return cypher_text(self, limit)

    def draw(self) -> Drawing:
        """Draw the kinds of entities and the relations between them, the most frequent first. A relation is drawn
        between its most frequent kinds; a note below its name tells whether it has others.
        """
        from condgraph.engine.drawing import of_kinds

        edges = [(concept.name, "subclass of", above, "") for concept in self.concepts for above in concept.above]
        for predicate in self.predicates:
            if predicate.relations:
                more_kinds = predicate.more.get("subjects", 0) + predicate.more.get("objects", 0)
                has_more_kinds = len(predicate.subjects) + len(predicate.objects) + more_kinds > 2
                below = f"{predicate.relations:,}{', other kinds too' if has_more_kinds else ''}"
                edges.append((_kind_name(predicate.subjects), predicate.name, _kind_name(predicate.objects), below))
        return of_kinds(edges, repr(self)[1:-1])

    def __str__(self) -> str:
        return self.text(4000)

    def __repr__(self) -> str:
        return (
            f"<GraphSchema: {self.statements:,} statements, {len(self.predicates):,} predicates, "
            f"{len(self.concepts):,} concepts, {len(self.sources):,} sources>"
        )

    def _repr_html_(self) -> str:
        """Show a drawing and small tables in notebooks."""
        drawing = self.draw()
        picture = [drawing.svg] if drawing.arrows else []
        return page(repr(self), [*picture, *(table(*section) for section in sections(self))])


def _kind_name(kinds: Sequence[KindCount]) -> str:
    return next((kind.name for kind in kinds if kind.name), "(entities without a concept)")


# -- from a survey to records ------------------------------------------------------------------------


def describe(survey: Survey, *, source: str | None = None, concept: str | None = None, predicate: str | None = None) -> GraphSchema:
    """Return the schema of a survey.

    `source` selects the predicates with statements in that source, `concept` those with subjects or objects in a
    concept of that name or below it, `predicate` a single one; a predicate must meet all given conditions. Sources,
    concepts and units are then those of the selected predicates. Counts remain those of the whole graph. Raises
    `UnknownNameError`, with the nearest names, for an unknown name, and `OptionError` for a name that is not a text.
    """
    kinds, predicates, ends = survey["kinds"], survey["predicates"], (survey["subjects"], survey["objects"])
    narrowed = any(name is not None for name in (source, concept, predicate))
    selected, in_selection = np.ones(len(predicates), bool), np.zeros(len(kinds), bool)
    if source is not None:
        _check_known("source", source, [item[0] for item in survey["sources"]])
        selected &= [any(name == source for name, _ in item[5]) for item in predicates]
    if concept is not None:
        _check_known("concept", concept, [kind[1] for kind in kinds if kind[0] == "concept"])
        in_selection[list(_subconcepts(kinds, concept))] = True
        selected &= _any(ends[0], in_selection) | _any(ends[1], in_selection)
    if predicate is not None:
        _check_known("predicate", predicate, [item[0] for item in predicates], _keyed(survey, predicate))
        selected &= [item[0] == predicate for item in predicates]
    places = np.flatnonzero(selected).tolist()
    for side in ends if narrowed else ():
        in_selection[side.kinds[np.repeat(selected, np.diff(side.starts))]] = True
    chosen_predicates = [predicates[place] for place in places]
    shown_sources = {name for item in chosen_predicates for name, _ in item[5]}
    values = [value for item in chosen_predicates for value in _values_of(item)]
    times = [value for value in values if value[0] == "time"]
    # After a single change the span of some values may be unknown, and with it the span of all times.
    unknown_span = any(value[5] is None for value in times)
    firsts, lasts = ([] if unknown_span else [value[place] for value in times] for place in (5, 6))
    check()
    rows = {kind[1]: kind[3] for kind in kinds if kind[0] == "table"}
    sources = [
        SourceSchema(name, form, count, rows.get(name, 0))
        for name, form, count in survey["sources"]
        if not narrowed or name in shown_sources
    ]
    concepts = [
        concept_schema(kinds, item)
        for place, item in enumerate(kinds)
        if item[0] == "concept" and (in_selection[place] or not narrowed)
    ]
    return GraphSchema(
        dict(survey["counts"]),
        tuple(sorted(sources, key=lambda item: (-item.statements, item.name))),
        tuple(sorted(concepts, key=lambda item: (-item.members, item.name, item.id))),
        tuple(sorted((predicate_schema(survey, place) for place in places), key=lambda item: (-item.statements, item.name))),
        _units(values),
        _day(min(firsts)) if firsts else "",
        _day(max(lasts) - 1) if lasts else "",
        survey.get("note", ""),
    )


def _any(side: Ends, inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which predicates have one of these kinds as subjects or objects."""
    result = np.zeros(len(side.starts) - 1, bool)
    result[np.repeat(np.arange(len(result)), np.diff(side.starts))[inside[side.kinds]]] = True
    return result


def _day(second: int) -> str:
    return bound_text(second // DAY_SECONDS * DAY_SECONDS) or ""


def _check_known(kind: str, name: Any, names: Sequence[str], hint: str | None = None) -> None:
    if not isinstance(name, str):
        raise OptionError(f"{kind} is the name of a {kind}, not {name!r}")
    if name not in names:
        raise UnknownNameError(kind, name, candidates=nearest(name, dict.fromkeys(names)), hint=hint)


def _keyed(survey: Survey, name: Any) -> str | None:
    """Return a hint if a name is a key of qualifiers."""
    owners = [item[0] for item in survey["predicates"] if any(key == name for key, _ in item[4])]
    return f"it is a key of qualifiers, of {', '.join(map(repr, owners[:3]))}" if owners else None


def _subconcepts(kinds: list[Any], name: str) -> set[int]:
    """Return the concepts with a name, and all concepts below them."""
    inside = {number for number, kind in enumerate(kinds) if kind[0] == "concept" and kind[1] == name}
    below: dict[int, list[int]] = {}
    for number, kind in enumerate(kinds):
        for parent in kind[5]:
            below.setdefault(parent, []).append(number)
    waiting = list(inside)
    while waiting:
        children = [child for child in below.get(waiting.pop(), ()) if child not in inside]
        inside.update(children)
        waiting.extend(children)
    return inside


def concept_schema(kinds: list[Any], kind: list[Any]) -> ConceptSchema:
    return ConceptSchema(kind[2], kind[1], kind[3], tuple(sorted(kinds[number][1] for number in kind[5])), tuple(kind[4]))


def predicate_schema(survey: Survey, place: int) -> PredicateSchema:
    """Return a predicate of a survey as a record, given its position there."""
    name, relations, attributes, values, qualifiers, sources, examples = survey["predicates"][place]
    parts: dict[str, tuple[Any, ...]] = {
        "values": tuple(map(_value, values[:MAX_PARTS])),
        "qualifiers": tuple(
            QualifierKey(key, sum(value[2] for value in values_of_key), tuple(map(_value, values_of_key)))
            for key, values_of_key in qualifiers[:MAX_PARTS]
        ),
        "sources": tuple(SourceCount(*source) for source in sources[:MAX_PARTS]),
    }
    kinds = survey["kinds"]
    sizes = {"values": len(values), "qualifiers": len(qualifiers), "sources": len(sources)}
    for end in ("subjects", "objects"):
        side: Ends = survey[end]
        low, high = side.starts[place : place + 2].tolist()
        first = slice(low, min(low + MAX_PARTS, high))
        counted = zip(side.kinds[first].tolist(), side.counts[first].tolist(), strict=True)
        parts[end] = tuple(KindCount(kinds[kind][0], kinds[kind][1], count) for kind, count in counted)
        sizes[end] = high - low
    more = {part: sizes[part] - MAX_PARTS for part in sorted(sizes) if sizes[part] > MAX_PARTS}
    shown_examples = tuple(Example(*example) for example in examples)
    return PredicateSchema(name, relations + attributes, relations, attributes, **parts, examples=shown_examples, more=more)


def _value(value: list[Any]) -> ValueCount:
    return ValueCount(*value[:5])


def _values_of(predicate: list[Any]) -> list[list[Any]]:
    return [*predicate[3], *(value for _, values in predicate[4] for value in values)]


def _units(values: list[list[Any]]) -> tuple[UnitCount, ...]:
    counts = Counter[str]()
    for kind, unit, count, *_ in values:
        if kind == "quantity" and unit != NO_UNIT:
            counts[unit] += count
    return tuple(UnitCount(unit, count) for unit, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))


# -- wording of excerpts -----------------------------------------------------------------------------
# The names, predicates and their ends in an excerpt of a graph: in words for every language, or as the nodes, relationships and
# properties of Cypher (`docs/reference/cypher.md` has the rules).


#: The direction from an entity: along a relation, against one, or to a value.
Way = Literal["forward", "backward", "value"]


class Wording:
    """The wording for languages with predicates: relations and attributes alike, with arrows between their ends."""

    things = "Named in the question (→ leads to, ← is led to from, = has the value; type of the other end):"
    predicates = "Predicates: subjects → objects:"
    concepts, keys = "Concepts: ", "Qualifiers: "
    _SIGNS: Final[Mapping[str, str]] = {"forward": "→", "backward": "←", "value": "="}

    def name(self, name: str) -> str:
        """Return a name of the schema."""
        return quoted(name)

    def concept(self, name: str) -> str:
        """Return a concept."""
        return quoted(name)

    def entity(self, names: Sequence[str], key: str = "") -> str:
        """Return an entity by its possible names. `key` is the attribute with the name, or "" if there is none."""
        return ", ".join(quoted(name) for name in names)

    def around(self, name: str, value: PredicateSchema | None, ways: Sequence[str]) -> str:
        """Return a predicate of an entity: its name, and the other end in each direction."""
        if value is None:
            return f"{quoted(name)} {''.join(self._SIGNS[way] for way in ways)}"
        ends = [f"{self._SIGNS[way]} ({end_words(value, 'subject' if way == 'backward' else 'object')})" for way in ways]
        return f"{quoted(name)} {' '.join(ends)}"

    def arrow(self, name: str, forward: bool) -> str:
        """Return a relation between two entities, from left to right or from right to left."""
        return f"→{quoted(name)}→" if forward else f"←{quoted(name)}←"

    #: The text between two arrows.
    between = "something"

    def ends(self, predicate: PredicateSchema, *, longest: int = MAX_NAME) -> str:
        """Return both ends of a predicate. Names of kinds have at most `longest` characters."""
        return " → ".join(end_words(predicate, end, longest=longest) for end in ("subject", "object"))

    def short(self, predicates: Sequence[PredicateSchema], *, longest: int = MAX_NAME) -> str:
        """Return predicates of the same ends as one line."""
        return f"- {', '.join(quoted(predicate.name) for predicate in predicates)}: {self.ends(predicates[0], longest=longest)}"

    def line(self, predicate: PredicateSchema, length: int, *, examples: bool) -> str:
        """Return a predicate as one line: long (0), or shorter (1, 2). `examples=False` leaves out data of the graph."""
        return predicate_line(predicate, length, examples=examples)


class CypherWording(Wording):
    """The wording for Cypher: relations are relationships between labels, attributes are properties of nodes, keys of
    qualifiers are properties of relationships.
    """

    things = "Nodes named in the question, with their relationships and properties:"
    predicates = "Relationships, and properties of nodes:"
    concepts, keys = "Labels: ", "Properties of relationships: "
    between = "()"

    def name(self, name: str) -> str:
        """Return a label, type or property."""
        return cypher_name(name)

    def concept(self, name: str) -> str:
        """Return a label in the form of a pattern."""
        return f":{cypher_name(name)}"

    def entity(self, names: Sequence[str], key: str = "") -> str:
        """Return a node by its name."""
        return " or ".join(f"({{{cypher_name(key or 'name')}: {quoted(name)}}})" for name in names)

    def around(self, name: str, value: PredicateSchema | None, ways: Sequence[str]) -> str:
        """Return the relationships of a node with the labels at their other ends, or the property with its types."""
        parts = []
        for way in ways:
            if way == "value":
                parts.append(f".{cypher_name(name)}" + ("" if value is None else f" = {_values(value)}"))
            else:
                parts.append(self.arrow(name, way == "forward") + _node(value, "objects" if way == "forward" else "subjects"))
        return ", ".join(parts)

    def arrow(self, name: str, forward: bool) -> str:
        """Return a relationship, from left to right or from right to left."""
        return f"-[:{cypher_name(name)}]->" if forward else f"<-[:{cypher_name(name)}]-"

    def ends(self, predicate: PredicateSchema, *, longest: int = MAX_NAME) -> str:
        """Return what `short` says of a relationship or property besides its name."""
        return self._pattern(predicate, (), kinds=1, longest=longest)

    def short(self, predicates: Sequence[PredicateSchema], *, longest: int = MAX_NAME) -> str:
        """Return relationships or properties with the most frequent labels of their ends."""
        return self._pattern(predicates[0], [predicate.name for predicate in predicates], kinds=1, longest=longest)

    def line(self, predicate: PredicateSchema, length: int, *, examples: bool) -> str:
        """Return a relationship or property with more labels, the types of the relationship's properties, and the
        count.
        """
        text = f"{self._pattern(predicate, [predicate.name], kinds=3 - length, typed=True)} ({predicate.statements:,})"
        if length < 2 and examples and predicate.examples:
            text += f", e.g. {examples_words(predicate, 2 - length)}"
        return text

    def _pattern(
        self, predicate: PredicateSchema, names: Sequence[str], *, kinds: int, longest: int = MAX_NAME, typed: bool = False
    ) -> str:
        """Return the relationship, the property, or both, with the names of all predicates of these ends; if `typed`,
        with the types of the relationship's own properties.
        """
        subjects, objects = (_node(predicate, end, kinds, longest) for end in ("subjects", "objects"))
        parts = []
        if predicate.relations or not predicate.values:
            keys = [
                cypher_name(key.name) + (f": {'/'.join(dict.fromkeys(value.type for value in key.values))}" if typed else "")
                for key in predicate.qualifiers[: 4 if typed else 3]
            ]
            properties = f" {{{', '.join(keys)}}}" if keys else ""
            parts.append(f"{subjects}-[:{'|'.join(map(cypher_name, names))}{properties}]->{objects}")
        if predicate.values:
            values = _values(predicate, ranges=len(names) == 1)
            parts.append(f"{subjects[:-1]} {{{', '.join(map(cypher_name, names))}: {values}}})".replace("( {", "({"))
        return f"- {'; '.join(parts)}"


def _node(value: PredicateSchema | None, end: str, most: int = 3, longest: int = MAX_NAME) -> str:
    """Return a node at an end of a predicate with its possible labels. It has no label if more than a few nodes there
    have none, since a program with the label would miss these.
    """
    kinds: Sequence[KindCount] = () if value is None else getattr(value, end)
    unlabelled = sum(kind.statements for kind in kinds if not kind.name)
    if value is None or unlabelled > _MAX_UNLABELLED * sum(kind.statements for kind in kinds):
        return "()"
    # The label of a table is the last part of its name.
    names = [kind.name if kind.sort == "concept" else kind.name.rpartition("/")[2] for kind in kinds if kind.name]
    labels = list(dict.fromkeys(cypher_name(name, longest) for name in names[:most]))
    labels += ["..."] if labels and (len(names) > most or value.more.get(end, 0)) else []
    return f"(:{'|'.join(labels)})" if labels else "()"


def _values(predicate: PredicateSchema, *, ranges: bool = True) -> str:
    """Return the types of the values of a property, with their units and, for a single property, their ranges."""
    return " or ".join(value_words(value, counted=False) if ranges else type_words(value) for value in predicate.values[:2])


#: The wordings for programs in Cypher, and in all other languages.
CYPHER: Final = CypherWording()
WORDS: Final = Wording()

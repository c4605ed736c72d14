"""Graph patterns: small directed multigraphs of names and unknowns (SimGRAG, sections 4.1 and 4.3).

    Pattern.of([("UNKNOWN film 1", "directed by", "Clint Eastwood")])

A pattern is written as Python triples, as JSON (`[["head", "relation", "tail"], ...]`, objects with
`head`, `relation`, `tail`, or either under `triples`), as the paper's tuples, which language models
write, or as a text with arrows:

    (UNKNOWN film 1) -[directed by]-> (Clint Eastwood); (UNKNOWN film 1) <-[acted in]- (UNKNOWN
    actor 1)

A node or relation that begins with the word UNKNOWN matches anything: `UNKNOWN film 1` has the hint
"film", and its whole text, including the number, identifies it. Equal texts are one node. Nodes are
numbered by their first mention, and solutions are ordered by these numbers.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal, TypeAlias

from condgraph.engine.bounds import check, watched
from condgraph.engine.errors import LiteralError, OptionError, ParseError, PlanError, nearest, shortened
from condgraph.engine.functions import OPERATORS, time_mask
from condgraph.engine.units import conversions
from condgraph.engine.values import NO_UNIT, Quantity, Time, collapse, exact, format_number, parse_quantity
from condgraph.languages.parameters import GivenText, Hole, hole_or_text, in_order

# -- values ------------------------------------------------------------------------------------------
# A node may be a number or a time, or a range of them.
#
#     1930   "= 1930"   "> 1990"   ">= 1990-05"   "< 4000 metre"
#
# Such a node is an exact condition on the node it is joined to, and adds nothing to the distance. A
# whole number may also be a year; a number without a unit compares with numbers of any unit. A time
# equals any time within it (1990-05-03 is in 1990). It is before a range if it ends before it, and after
# a range if it begins after it.


Operator: TypeAlias = Literal["=", "<", "<=", ">", ">="]
_CONDITION: Final = re.compile(r"(==?|<=?|>=?|≤|≥)\s*([^\s=<>].{0,200})", re.DOTALL)
_OPERATOR_NAMES: Final[dict[str, Operator]] = {"==": "=", "≤": "<=", "≥": ">="}


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison that a value must satisfy, with a number, a time, or either."""

    operator: Operator
    quantity: Quantity | None
    time: Time | None

    def holds(self, value: Any) -> bool:
        """Whether a value of a graph satisfies the condition, exactly; False for other types."""
        if isinstance(value, Quantity) and self.quantity is not None:
            bound = self.in_unit(value.unit)
            return bound is not None and bool(OPERATORS[self.operator](exact(value.number), bound))
        if isinstance(value, Time) and self.time is not None:
            return bool(self.at(value.start, value.end))
        return False

    def in_unit(self, unit: str) -> Fraction | None:
        """Return the bound for numbers of this unit, or None if the units do not agree."""
        assert self.quantity is not None
        if self.quantity.unit in (NO_UNIT, unit):
            return exact(self.quantity.number)
        converted = conversions(self.quantity, [unit])
        return exact(converted[0].number) if converted else None

    def in_units(self, units: Iterable[str]) -> list[Quantity]:
        """Return the bounds for numbers of some units, one for each unit that agrees.

        A number without a unit applies to all of them.
        """
        if self.quantity is None:
            return []
        own = self.quantity
        if own.unit == NO_UNIT:
            return [own] if any(True for _ in units) else []
        return [converted for unit in units for converted in ([own] if unit == own.unit else conversions(own, [unit]))]

    def at(self, start: Any, end: Any) -> Any:
        """Whether intervals `[start, end)` satisfy the condition; arrays give an array."""
        assert self.time is not None
        return time_mask(self.operator, self.time, start, end)


def condition_of(text: str) -> Condition | None:
    """Return the condition that a text with an operator is, or None.

    >>> condition_of("> 1990").quantity, condition_of("= May") is None
    (Quantity(number=1990, unit='1'), True)
    """
    match = _CONDITION.fullmatch(text)
    if match is None:
        return None
    operator: Any = _OPERATOR_NAMES.get(match[1], match[1])
    quantity: Quantity | None = None
    time: Time | None = None
    with suppress(ValueError):
        quantity = parse_quantity(match[2])
    with suppress(ValueError):
        time = Time.parse(match[2])
    return None if quantity is None and time is None else Condition(operator, quantity, time)


def written(value: Any) -> str | None:
    """Return a Python value as the text of a node, `= 1930`, or None if it is no value."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float | Decimal):
        return f"= {format_number(value)}"
    if isinstance(value, Quantity | Time):
        return f"= {value}"
    if isinstance(value, datetime.datetime):
        return f"= {value.isoformat(timespec='seconds')}"
    return f"= {value.isoformat()}" if isinstance(value, datetime.date) else None


# -- triples -----------------------------------------------------------------------------------------
# Triples of a pattern in Python or JSON data.


Span = tuple[int, int] | None
#: Names of the three parts in JSON objects.
KEYS: Final = (("head", "subject", "h"), ("relation", "predicate", "r"), ("tail", "object", "t"))


def triples_of(data: Any) -> list[tuple[str, str, str]]:
    """Return the triples in Python or JSON data; raises `ParseError` that names the invalid one."""
    if isinstance(data, Mapping):
        if "triples" not in data:
            known = ", ".join(map(repr, data)) or "nothing"
            raise ParseError(f"a pattern as an object has its triples under 'triples', here is {known}")
        data = data["triples"]
    if isinstance(data, str) or not isinstance(data, Iterable):
        raise ParseError(f"a pattern is a list of triples, not {data!r}")
    triples = list(data)
    if len(triples) == 3 and all(isinstance(part, str) for part in triples):
        raise ParseError("a pattern is a list of triples, and this is one triple", hint="put it in a list")
    return [_triple(triple, number) for number, triple in enumerate(triples, 1)]


def _triple(triple: Any, number: int) -> tuple[str, str, str]:
    if isinstance(triple, Mapping):
        parts = []
        for keys in KEYS:
            values = [triple[key] for key in keys if key in triple]
            if not values:
                raise ParseError(f"triple {number} has no {keys[0]!r}: {json.dumps(triple, ensure_ascii=False, default=str)}")
            parts.append(values[0])
    elif isinstance(triple, Sequence) and not isinstance(triple, str):
        parts = list(triple)
    else:
        raise ParseError(f"triple {number} is not a triple: {triple!r}")
    if len(parts) != 3:
        raise ParseError(f"triple {number} has {len(parts)} parts, not head, relation and tail: {triple!r}")
    for place in (0, 2):
        # Numbers, years and dates are values, not names.
        parts[place] = written(parts[place]) or parts[place]
    for part in parts:
        if not isinstance(part, str):
            raise ParseError(f"triple {number} holds {part!r}, which is not a text, number or time", hint="a relation is a text")
    return parts[0], parts[1], parts[2]


# -- patterns as text --------------------------------------------------------------------------------
# Patterns as text: arrows, JSON, and the tuples that language models write.
#
# Arrows: `(head) -[relation]-> (tail)` and `(tail) <-[relation]- (head)`, in chains of any length;
# triples are separated by `;`, commas or line breaks. A name may contain balanced brackets; with
# unbalanced ones it is a JSON string: `("a) b")`.
#
# Tuples: `("head", "relation", "tail")`, in round or square brackets, with straight or curly quotes,
# alone, in a list, or under `"triples"` of an object; text around them is ignored. A quote ends a name
# only before a comma or a bracket, so names may contain quotes and braces. In round brackets quotes
# are optional if no name has a comma: `(?film, directed by, Clint Eastwood)`.


Triple = tuple[str, str, str]
_FENCE: Final = re.compile(r"\s*+```\w*+[^\S\n]*+\n").match
_is_end: Final = re.compile(r"\s*(?:[,)\]]|\Z)").match
_COMMA: Final = re.compile(r"\s*,").match
_ARROW: Final = re.compile(r"\s*(<?)-+\s*\[")
_ARROW_END: Final = re.compile(r"\s*-+(>?)")
_UNNAMED: Final = re.compile(r"\s*<?--+>?")
_PARTING: Final = re.compile(r"[\s;,]*")
_TRIPLES: Final = re.compile(r"""["'“‘’]triples["'”’]\s*:\s*""")
_NUMBER: Final = re.compile(r"[+-]?\d{1,30}(?:\.\d{1,30})?(?=\s*[,)\]])")
_OPENING: Final = re.compile(r"""[(\[]\s*(?=["'“‘’]|[+-]?\d{1,30}(?:\.\d{1,30})?\s*,\s*["'“‘’])""")
_MARK: Final = re.compile(r"[(),]")
_BRACKETS: Final = {"(": re.compile(r"[()]"), "[": re.compile(r"[\[\]]")}
_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "‘": "’", "’": "’"}
_HINT: Final = (
    'a triple is like (UNKNOWN film 1) -[directed by]-> (Clint Eastwood), or ("UNKNOWN film 1", "directed by", "Clint Eastwood")'
)


def read(text: str) -> tuple[list[Triple], list[list[Span]]]:
    """Return the triples of a text and the positions of their parts (none for JSON); raises `ParseError`."""
    start, end = 0, len(text)
    fenced, ending = _FENCE(text), text.rstrip()
    if fenced and ending.endswith("```") and len(ending) - 3 >= fenced.end():
        start, end = fenced.end(), len(ending) - 3
    try:
        return triples_of(json.loads(text[start:end])), []
    except ValueError:
        pass
    except RecursionError:
        raise ParseError("the pattern is nested too deeply", span=(start, end)) from None
    at = start + len(text[start:end]) - len(text[start:end].lstrip())
    if text.startswith("(", at) and not _is_tuple(text, at):
        return _unquoted_tuples(text, at, end) or _arrows(text, at, end)
    return _tuples(text, start, end)


# -- tuples ----------------------------------------------------------------------------------------


def _is_tuple(text: str, at: int) -> bool:
    opening = _OPENING.match(text, at)
    if opening is None:
        return False
    number = _NUMBER.match(text, opening.end())
    if number is not None:
        return True
    _, end = _quoted_name(text, opening.end())
    return _COMMA(text, end) is not None


def _tuples(text: str, start: int, end: int) -> tuple[list[Triple], list[list[Span]]]:
    header = _TRIPLES.search(text, start, end)
    at = header.end() if header else start
    triples: list[Triple] = []
    spans: list[list[Span]] = []
    while opening := _OPENING.search(text, at, end):
        check()
        # The bracket around a whole list is followed by another bracket, so it does not match here. A
        # list of names that is not a triple does not have three.
        at, parts, part_spans = opening.end(), [], []
        while True:
            number = _NUMBER.match(text, at, end)
            if number is not None:
                name, after = f"= {number[0]}", number.end()
            elif at >= end or text[at] not in _QUOTES:
                raise ParseError("a name in quotes, or a number, is expected", span=(at, at + 1), hint=_HINT)
            else:
                name, after = _quoted_name(text, at)
            parts.append(name)
            part_spans.append((at, after))
            at = _skip(text, after)
            if at < end and text[at] == ",":
                at = _skip(text, at + 1)
                if at < end and text[at] not in ")]":
                    continue
            if at < end and text[at] in ")]":
                at += 1
                break
            raise ParseError("a comma or a closing bracket is expected", span=(at, at + 1), hint=_HINT)
        if len(parts) != 3:
            span = part_spans[0][0], part_spans[-1][1]
            raise ParseError(f"a triple has 3 names, not {len(parts)}", span=span, hint=_HINT)
        triples.append((parts[0], parts[1], parts[2]))
        spans.append(list(part_spans))
    if not triples:
        raise ParseError("the text has no triple", span=(start, end), hint=_HINT)
    return triples, spans


def _unquoted_tuples(text: str, at: int, end: int) -> tuple[list[Triple], list[list[Span]]] | None:
    """Parse tuples whose names have no quotes; None if the text is something else, such as arrows."""
    triples: list[Triple] = []
    spans: list[list[Span]] = []
    while at < end:
        check()
        bare = _unquoted_tuple(text, at, end)
        if bare is None:
            return None
        parts, part_spans, at = bare
        triples.append((parts[0], parts[1], parts[2]))
        spans.append(list(part_spans))
        parting = _PARTING.match(text, at, end)
        at = at if parting is None else parting.end()
    return (triples, spans) if triples else None


def _unquoted_tuple(text: str, at: int, end: int) -> tuple[list[str], list[tuple[int, int]], int] | None:
    """Parse three names in round brackets; returns them, their positions, and the end of the brackets."""
    if text[at] != "(":
        return None
    parts, places = [], []
    while at < end and text[at] in "(,":
        at = first = _skip(text, at + 1)
        if at < end and text[at] in '"“':
            try:
                name, at = _quoted_name(text, at)
            except ParseError:
                return None
        else:
            depth = 0
            for mark in _MARK.finditer(text, at, end):
                if not depth and mark[0] != "(":
                    at = mark.start()
                    break
                depth += {"(": 1, ")": -1}.get(mark[0], 0)
            else:
                return None
            name = text[first:at].strip()
            name = f"= {name}" if _NUMBER.match(text, first, end) else name
        parts.append(name)
        places.append((first, at))
        at = _skip(text, at)
    if at >= end or text[at] != ")" or len(parts) != 3 or not all(parts):
        return None
    return parts, places, at + 1


def _quoted_name(text: str, at: int) -> tuple[str, int]:
    """Return the name that begins with the quote at `at`, and its end."""
    closing = _QUOTES[text[at]]
    end = at + 1
    while end < len(text):
        if text[end] == "\\":
            end += 2
            continue
        if text[end] == closing and _is_end(text, end + 1):
            raw = text[at + 1 : end]
            return re.sub(r"""\\(["'\\])""", r"\1", raw), end + 1
        end += 1
    raise ParseError("this name has no closing quote", span=(at, len(text)), hint=_HINT)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


# -- arrows ----------------------------------------------------------------------------------------


def _arrows(text: str, at: int, end: int) -> tuple[list[Triple], list[list[Span]]]:
    triples: list[Triple] = []
    spans: list[list[Span]] = []
    while at < end:
        check()
        (node, node_span), at = _bracketed(text, at, end, "(", ")")
        isolated = True
        while arrow := _ARROW.match(text, at, end):
            check()
            (relation, relation_span), after = _bracketed(text, arrow.end() - 1, end, "[", "]")
            closing = _ARROW_END.match(text, after, end)
            if closing is None or bool(arrow[1]) == bool(closing[1]):
                raise ParseError("an arrow has one head: -[relation]-> or <-[relation]-", span=(_skip(text, at), after), hint=_HINT)
            (other, other_span), at = _bracketed(text, _skip(text, closing.end()), end, "(", ")")
            if closing[1]:
                triples.append((node, relation, other))
                spans.append([node_span, relation_span, other_span])
            else:
                triples.append((other, relation, node))
                spans.append([other_span, relation_span, node_span])
            (node, node_span), isolated = (other, other_span), False
        if isolated:
            bare = _UNNAMED.match(text, at, end)
            if bare is not None:
                span = _skip(text, at), bare.end()
                raise ParseError("this arrow has no relation", span=span, hint="any relation is -[UNKNOWN relation 1]->")
            raise ParseError("an arrow is expected after this node", span=node_span, hint=_HINT)
        parting = _PARTING.match(text, at, end)
        at = at if parting is None else parting.end()
    return triples, spans


def _bracketed(text: str, at: int, end: int, opening: str, closing: str) -> tuple[tuple[str, tuple[int, int]], int]:
    """Return the name in the brackets that open at `at`, with its position, and the end of the brackets."""
    if at >= end or text[at] != opening:
        raise ParseError(f"{opening!r} is expected", span=(at, min(at + 1, end)), hint=_HINT)
    first = _skip(text, at + 1)
    if first < end and text[first] == '"':
        try:
            name, last = json.JSONDecoder().raw_decode(text, first)
        except ValueError:
            raise ParseError("this name has no closing quote", span=(first, end), hint=_HINT) from None
        after = _skip(text, last)
        if after < end and text[after] == closing and isinstance(name, str):
            return (name, (first, last)), after + 1
    depth = 0
    for bracket in _BRACKETS[opening].finditer(text, at, end):
        depth += 1 if bracket[0] == opening else -1
        if depth == 0:
            close = bracket.start()
            return (text[at + 1 : close], (at + 1, close)), close + 1
    raise ParseError(f"this {opening!r} is not closed", span=(at, at + 1), hint=_HINT)


# -- patterns ----------------------------------------------------------------------------------------


#: The separator between the word UNKNOWN, its hint and its number.
_SEPARATOR: Final = re.compile(r"[\s_-]*+")
#: Variables as query languages write them; a number at the end is not part of the hint.
_VARIABLE: Final = re.compile(r"\?\w++")
#: A variable with spaces and a number, `?film 1`, or just the mark; either could also be a name.
_SPACED: Final = re.compile(r"\?(?:[^\W\d_]++(?: [^\W\d_]++){0,3} \d{1,9})?")
#: The start of a pattern: a node or a tuple, a list of triples, or an object that has triples.
_BEGINS: Final = re.compile(
    r"""\s*(?:```\w*\s*)?(?:\(|\[\s*[(\[]\s*["'“‘’]|\[\s*\{\s*"(?:head|subject|h)"|\{(?s:.*?)["'“‘’]triples["'”’]\s*:)"""
)
#: Names that must be quoted in a pattern: with its punctuation, or a leading quote ('Til Tuesday).
_MARKED: Final = re.compile(r"""[()\[\]"\\;]|^['“‘’]""")
#: The marker of an unknown.
_WORD: Final = re.compile(r"(?i:unknown)[\s_-]*|\?")
#: The most edges between one pair of nodes; each doubles the choices of distinct statements.
MAX_PARALLEL: Final = 5
#: The most edges of a pattern; the preparation of the search is quadratic in them.
MAX_EDGES: Final = 500


@dataclass(frozen=True, slots=True)
class PatternNode:
    """A node: a name to be matched by similarity, or an unknown with the type that its text hints at."""

    text: str
    known: bool
    hint: str | None = None
    span: Span = field(default=None, compare=False)
    #: The condition of a node that is a number or time, not a name.
    value: Condition | None = None

    @property
    def name(self) -> str:
        """The text without the word UNKNOWN ("film 1"), which `group_by` and tables use."""
        return self.text if self.known else (_WORD.sub("", self.text).strip(" _-") or self.text)


@dataclass(frozen=True, slots=True)
class PatternEdge:
    """An edge between the nodes with indices `head` and `tail`; an unknown relation matches any."""

    head: int
    relation: str
    tail: int
    known: bool
    span: Span = field(default=None, compare=False)
    #: Whether its direction is ignored.
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """A directed multigraph: nodes in the order of their first mention, edges as written."""

    nodes: tuple[PatternNode, ...]
    edges: tuple[PatternEdge, ...]
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, program: Any) -> Pattern:
        """Parse a pattern in any of its forms.

        Raises `ParseError`, with a position for a text, or `PlanError`.
        """
        if isinstance(program, Pattern):
            return program
        if isinstance(program, str):
            return cls.build(*read(program))
        return cls.build(triples_of(program))

    @classmethod
    def build(
        cls, triples: Iterable[tuple[str, str, str]], spans: Sequence[Sequence[Span]] = (), *, names: frozenset[str] = frozenset()
    ) -> Pattern:
        """Return the pattern of some triples of texts.

        `spans` are their positions in a text, three for each triple. `names` are texts that are names,
        whatever they look like. Raises `ParseError` and `PlanError`.
        """
        nodes: dict[str, PatternNode] = {}
        numbers: dict[str, int] = {}
        edges: dict[tuple[int, str, int], PatternEdge] = {}
        warnings: list[str] = []
        pairs: dict[tuple[int, int], int] = {}
        for number, triple in enumerate(watched(triples)):
            head, relation, tail = (collapse(part) for part in triple)
            part_spans = spans[number] if spans else (None, None, None)
            for text, part_name, part_span in zip((head, relation, tail), ("head", "relation", "tail"), part_spans, strict=True):
                if not text:
                    raise ParseError(f"the {part_name} of triple {number + 1} is empty", span=part_span)
            for text, part_span in ((head, part_spans[0]), (tail, part_spans[2])):
                if text not in nodes:
                    nodes[text] = PatternNode(text, True, None, part_span) if text in names else _node(text, part_span, warnings)
                    # Values are conditions, and are ordered after all other nodes below.
                    numbers[text] = len(numbers)
            if nodes[head].value is not None and nodes[tail].value is not None:
                raise PlanError(f"a value is of something: {head!r} and {tail!r} are both values", span=part_spans[0])
            key = numbers[head], relation, numbers[tail]
            if key in edges:
                warnings.append(f"triple {number + 1} is repeated and counts once: {head} | {relation} | {tail}")
                continue
            edges[key] = PatternEdge(*key, relation in names or not _unknown(relation, [])[0], part_spans[1])
            if len(edges) > MAX_EDGES:
                raise PlanError(f"a pattern has at most {MAX_EDGES} edges", span=part_spans[1])
            pair = min(key[0], key[2]), max(key[0], key[2])
            pairs[pair] = pairs.get(pair, 0) + 1
            if pairs[pair] > MAX_PARALLEL:
                raise PlanError(f"more than {MAX_PARALLEL} edges between {head!r} and {tail!r}", span=part_spans[1])
        if not edges:
            raise ParseError(
                "a pattern has at least one triple", hint='one is like ("UNKNOWN film 1", "directed by", "Clint Eastwood")'
            )
        ordered = sorted(nodes.values(), key=lambda node: (node.value is not None, numbers[node.text]))
        place_of = {numbers[node.text]: place for place, node in enumerate(ordered)}
        renumbered = (replace(edge, head=place_of[edge.head], tail=place_of[edge.tail]) for edge in edges.values())
        return cls(tuple(ordered), tuple(renumbered), tuple(warnings))

    @staticmethod
    def is_name(text: str) -> bool:
        """Whether a text is a name, rather than an unknown or a value."""
        node = _node(collapse(text), None, [])
        return node.known and node.value is None

    @property
    def things(self) -> int:
        """The number of nodes that are not values; these come first."""
        return sum(node.value is None for node in self.nodes)

    def number(self, name: str) -> int:
        """Return the index of a node by its text, with or without the word UNKNOWN.

        Raises `PlanError` for an unknown name.
        """
        node_text = collapse(name)
        for number, node in enumerate(self.nodes):
            if node_text == node.text:
                return number
        for number, node in enumerate(self.nodes):
            if not node.known and node_text.replace("_", " ") == node.name.replace("_", " "):
                return number
        names = [node.name for node in self.nodes]
        raise PlanError(
            f"the pattern has no node {name!r}", candidates=nearest(node_text, names), hint=f"it has: {', '.join(names)}"
        )

    def __str__(self) -> str:
        return "; ".join(
            f"({_quoted(self.nodes[e.head].text)}) -[{_quoted(e.relation)}]-> ({_quoted(self.nodes[e.tail].text)})"
            for e in self.edges
        )


def _node(text: str, span: Span, warnings: list[str]) -> PatternNode:
    unknown, hint = _unknown(text, warnings)
    if unknown:
        return PatternNode(text, False, hint, span)
    return PatternNode(text, True, None, span, condition_of(text))


def _unknown(text: str, warnings: list[str]) -> tuple[bool, str | None]:
    """Return whether a text is an unknown, and the type that it hints at.

    White space must be collapsed. The time is linear in the length of the text.
    """
    # Only capitals, since "Unknown Pleasures" is a name.
    hint = _hint(text, "UNKNOWN")
    if hint is None:
        hint = _variable(text)
    if hint is None:
        # An unknown with other capitals: in lower case, or followed by a number.
        hint = _hint(text, "unknown")
        if hint is None and text[-1:].isdecimal():
            hint = _hint(text, "Unknown")
        if hint is None and _SPACED.fullmatch(text) is not None:
            hint = _unnumbered(text[1:])
        if hint is None:
            return False, None
        warnings.append(f"{shortened(text)!r} is read as an unknown; where it is a name, another word before it says so")
    return True, collapse(hint.replace("_", " ")) or None


def _hint(text: str, word: str) -> str | None:
    """Return the text between a word and a number: "film" of "UNKNOWN film 1".

    Returns None if the text does not begin with the word.
    """
    if not text.startswith(word):
        return None
    remainder = text[len(word) :]
    separator = _SEPARATOR.match(remainder)
    start = 0 if separator is None else separator.end()
    hint = _unnumbered(remainder[start:])
    return hint if start or not hint else None


def _variable(text: str) -> str | None:
    """Return the hint of a variable such as `?film_1`, or None. A single letter, as in `?x`, is no hint."""
    if _VARIABLE.fullmatch(text) is None:
        return None
    name = text[1:].rstrip(_digits(text)).removesuffix("_")
    if len(name) == 1 and "a" <= name.lower() <= "z":
        return ""
    return None if name and (name[0] == "_" or name[0].isdecimal()) else name


def _unnumbered(text: str) -> str:
    """Remove the number at the end of a text, and the separator before it."""
    stem = text.rstrip(_digits(text))
    return stem if stem == text else stem.rstrip(" _-")


def _digits(text: str) -> str:
    return "".join({letter for letter in text if letter.isdecimal()})


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if _MARKED.search(text) else text


def is_pattern(program: Any) -> bool:
    """Whether a program is a pattern: triples of texts, or a text that begins like a pattern."""
    if isinstance(program, str):
        return _BEGINS.match(program) is not None
    if isinstance(program, Mapping):
        return "triples" in program
    if not isinstance(program, list | tuple):
        return isinstance(program, Pattern)
    first = program[0] if program else None
    if isinstance(first, Mapping):
        return any(key in first for key in KEYS[0]) and "function" not in first
    return isinstance(first, list | tuple) and len(first) == 3 and all(isinstance(part, str) or written(part) for part in first)


def shown(pattern: Pattern) -> str:
    """Return a pattern as text, with what is known of its nodes."""
    lines = [str(pattern), ""]
    for node in pattern.nodes:
        kind = "a value" if node.value else "known" if node.known else f"unknown, of type {node.hint!r}" if node.hint else "unknown"
        lines.append(f"{node.name}: {kind}")
    return "\n".join([*lines, *(f"warning: {warning}" for warning in pattern.warnings)])


# -- templates ---------------------------------------------------------------------------------------
# Patterns with parameters: `(UNKNOWN film 1) -[directed by]-> ($person)`.
#
# A whole name `$person` is a parameter, quoted or not; `$$person` is the name `$person`. A parameter's
# text is always a name, whatever it looks like; a number, a Quantity or a time is a value, as in a
# pattern of Python triples. `(> $year)` compares with the parameter's value.


_COMPARED: Final = re.compile(r"(==?|<=?|>=?|≤|≥)\s*\$([^\W\d]\w{0,99})")
#: A text, or an operator and the parameter after it.
_Part = str | tuple[str, Hole]


class PatternTemplate:
    """The triples of a pattern with parameters; raises as `Pattern.of`."""

    language: ClassVar[str] = "pattern"

    def __init__(self, program: Any) -> None:
        self._spans: list[list[Span]] = []
        if isinstance(program, Pattern):
            nodes = [node.text for node in program.nodes]
            triples = [(nodes[edge.head], edge.relation, nodes[edge.tail]) for edge in program.edges]
        elif isinstance(program, str):
            triples, self._spans = read(program)
        else:
            triples = triples_of(program)
        self._triples = [tuple(map(_part, triple)) for triple in triples]
        parts = [part for triple in self._triples for part in triple]
        self.parameters = in_order([part[1] if isinstance(part, tuple) else part for part in parts if type(part) is not str])
        self.entities: frozenset[str] = frozenset()
        self._texts = frozenset(collapse(part) for part in parts if type(part) is str)
        # Without parameters, errors of the pattern are raised now.
        if not self.parameters:
            self.bind({})

    def bind(self, values: Mapping[str, GivenText]) -> Pattern:
        names: set[str] = set()

        def text(part: _Part, *, node: bool) -> str:
            if isinstance(part, tuple):
                operator, value = part[0], values[part[1]]
                comparison = f"{operator} {value}"
                if condition_of(collapse(comparison)) is None:
                    raise LiteralError(
                        f"{value.parameter} is compared with ({operator}), and {str(value)!r} is not a number or time"
                    )
                return comparison
            if type(part) is not Hole:
                return part
            value = values[part]
            if node and (value_text := written(value.value)) is not None:
                return value_text
            name = collapse(value)
            if name in self._texts and not Pattern.is_name(name):
                raise OptionError(
                    f"the value of {part} is the name {name!r}, and the pattern has an unknown, or a value, of this text",
                    hint="name that node of the pattern in another way",
                )
            names.add(name)
            return name

        triples = [
            (text(head, node=True), text(relation, node=False), text(tail, node=True)) for head, relation, tail in self._triples
        ]
        return Pattern.build(triples, self._spans, names=frozenset(names))


def _part(text: str) -> _Part:
    compared = _COMPARED.fullmatch(text.strip())
    return (compared[1], Hole(compared[2])) if compared is not None else hole_or_text(text.strip())

"""Graph patterns: what is looked for, as a small directed multigraph of names and unknowns
(SimGRAG, section 4.1 and 4.3).

    Pattern.of([("UNKNOWN film 1", "directed by", "Clint Eastwood")])

A pattern is written as Python triples, as JSON (`[["head", "relation", "tail"], ...]`, objects with
`head`, `relation`, `tail`, or either under `triples`), as the tuples of the paper that language
models write, or as a text with arrows (`text`):

    (UNKNOWN film 1) -[directed by]-> (Clint Eastwood); (UNKNOWN film 1) <-[acted in]- (UNKNOWN
    actor 1)

A node or relation that begins with the word UNKNOWN stands for anything: `UNKNOWN film 1` has the
hint "film", and the whole text, number included, tells it from other unknowns. Equal texts are one
node. Numbers of nodes follow their first mention, which the order of solutions goes by.
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
from condgraph.engine.operands import exact
from condgraph.engine.units import conversions
from condgraph.engine.values import NO_UNIT, Quantity, Time, collapse, format_number, parse_quantity
from condgraph.languages.parameters import GivenText, Hole, hole_or_text, in_order

# -- values ------------------------------------------------------------------------------------------
# Values in patterns: a node that is a number or a time, or a range of them.
#
#     1930   "= 1930"   "> 1990"   ">= 1990-05"   "< 4000 metre"
#
# Such a node is a condition on what it is joined to: typed, so that it holds or does not, and adds
# nothing to the distance. A whole number may be a year as well; a number without a unit compares with
# numbers of any unit. A time is equal to what lies within it (1990-05-03 is in 1990), before a range
# where it ends before, after it where it begins after.


Operator: TypeAlias = Literal["=", "<", "<=", ">", ">="]
_CONDITION: Final = re.compile(r"(==?|<=?|>=?|≤|≥)\s*([^\s=<>].{0,200})", re.DOTALL)
_NAMES: Final[dict[str, Operator]] = {"==": "=", "≤": "<=", "≥": ">="}


@dataclass(frozen=True, slots=True)
class Condition:
    """What a value has to be: `operator` and what it is compared with, as a number, a time, or
    either.
    """

    operator: Operator
    quantity: Quantity | None
    time: Time | None

    def holds(self, value: Any, units: Sequence[str] = ()) -> bool:
        """Whether a value of a graph is as asked; exact, and False for other kinds.

        `units` are further ones that the quantity may be converted to.
        """
        if isinstance(value, Quantity) and self.quantity is not None:
            wanted = self.in_unit(value.unit)
            return wanted is not None and bool(OPERATORS[self.operator](exact(value.number), wanted))
        if isinstance(value, Time) and self.time is not None:
            return bool(self.at(value.start, value.end))
        return False

    def in_unit(self, unit: str) -> Fraction | None:
        """What a number of this unit is compared with; None where units do not agree."""
        assert self.quantity is not None
        if self.quantity.unit in (NO_UNIT, unit):
            return exact(self.quantity.number)
        found = conversions(self.quantity, [unit])
        return exact(found[0].number) if found else None

    def in_units(self, units: Iterable[str]) -> list[Quantity]:
        """What numbers of some units are compared with, one of each unit that agrees; a number
        without a unit stands for all of them.
        """
        if self.quantity is None:
            return []
        own = self.quantity
        if own.unit == NO_UNIT:
            return [own] if any(True for _ in units) else []
        return [one for unit in units for one in ([own] if unit == own.unit else conversions(own, [unit]))]

    def at(self, start: Any, end: Any) -> Any:
        """Whether intervals `[start, end)` are as asked; arrays give an array."""
        assert self.time is not None
        return time_mask(self.operator, self.time, start, end)


def condition_of(text: str) -> Condition | None:
    """The condition that a text with an operator is; None where it is none.

    >>> condition_of("> 1990").quantity, condition_of("= May") is None
    (Quantity(number=1990, unit='1'), True)
    """
    found = _CONDITION.fullmatch(text)
    if found is None:
        return None
    operator: Any = _NAMES.get(found[1], found[1])
    quantity: Quantity | None = None
    time: Time | None = None
    with suppress(ValueError):
        quantity = parse_quantity(found[2])
    with suppress(ValueError):
        time = Time.parse(found[2])
    return None if quantity is None and time is None else Condition(operator, quantity, time)


def written(value: Any) -> str | None:
    """How a Python value is written as a node: `= 1930`; None for what is no value."""
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
# The triples of a graph pattern, as Python or JSON data has them, and where they stand in a text.


Span = tuple[int, int] | None
#: Names of the three parts in JSON objects.
KEYS: Final = (("head", "subject", "h"), ("relation", "predicate", "r"), ("tail", "object", "t"))


def triples_of(data: Any) -> list[tuple[str, str, str]]:
    """The triples of Python or JSON data; raises `ParseError` that says which one is none."""
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
            found = [triple[key] for key in keys if key in triple]
            if not found:
                raise ParseError(f"triple {number} has no {keys[0]!r}: {json.dumps(triple, ensure_ascii=False, default=str)}")
            parts.append(found[0])
    elif isinstance(triple, Sequence) and not isinstance(triple, str):
        parts = list(triple)
    else:
        raise ParseError(f"triple {number} is no triple: {triple!r}")
    if len(parts) != 3:
        raise ParseError(f"triple {number} has {len(parts)} parts, not head, relation and tail: {triple!r}")
    for place in (0, 2):
        # Numbers, years and dates are values, not names.
        parts[place] = written(parts[place]) or parts[place]
    for part in parts:
        if not isinstance(part, str):
            raise ParseError(f"triple {number} holds {part!r}, which is no text, number or time", hint="a relation is a text")
    return parts[0], parts[1], parts[2]


# -- patterns as text --------------------------------------------------------------------------------
# Texts of graph patterns: arrows, JSON, and the tuples that language models write.
#
# Arrows: `(head) -[relation]-> (tail)` and `(tail) <-[relation]- (head)`, chained at will; triples
# are parted by `;`, commas or line breaks. A name may hold balanced brackets; any other is written in
# double quotes as in JSON: `("a) b")`.
#
# Tuples: `("head", "relation", "tail")`, in round or square brackets, with straight or curly quotes,
# alone, in a list, or under `"triples"` of an object, whatever stands around them. A quote ends a
# name only where a comma or a bracket follows, so names with quotes and braces in them are read as
# they are. In round brackets quotes may be left out, `(?film, directed by, Clint Eastwood)`, where
# neither name has a comma.


Triple = tuple[str, str, str]
_FENCE: Final = re.compile(r"\s*+```\w*+[^\S\n]*+\n").match
_AFTER: Final = re.compile(r"\s*(?:[,)\]]|\Z)").match
_COMMA: Final = re.compile(r"\s*,").match
_ARROW: Final = re.compile(r"\s*(<?)-+\s*\[")
_ARROW_END: Final = re.compile(r"\s*-+(>?)")
_BARE: Final = re.compile(r"\s*<?--+>?")
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
    """The triples of a text, with the places of their parts (none for JSON); raises `ParseError`."""
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
        return _bare_tuples(text, at, end) or _arrows(text, at, end)
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
    found = _TRIPLES.search(text, start, end)
    at = found.end() if found else start
    triples: list[Triple] = []
    spans: list[list[Span]] = []
    while opening := _OPENING.search(text, at, end):
        check()
        # A bracket around the whole list is followed by a bracket; one around a list of names has
        # no three of them.
        at, parts, places = opening.end(), [], []
        while True:
            number = _NUMBER.match(text, at, end)
            if number is not None:
                name, after = f"= {number[0]}", number.end()
            elif at >= end or text[at] not in _QUOTES:
                raise ParseError("a name in quotes, or a number, is expected", span=(at, at + 1), hint=_HINT)
            else:
                name, after = _quoted_name(text, at)
            parts.append(name)
            places.append((at, after))
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
            where = places[0][0], places[-1][1]
            raise ParseError(f"a triple has 3 names, not {len(parts)}", span=where, hint=_HINT)
        triples.append((parts[0], parts[1], parts[2]))
        spans.append(list(places))
    if not triples:
        raise ParseError("there is no triple in this text", span=(start, end), hint=_HINT)
    return triples, spans


def _bare_tuples(text: str, at: int, end: int) -> tuple[list[Triple], list[list[Span]]] | None:
    """Tuples whose names need no quotes; None where the text is something else, as arrows."""
    triples: list[Triple] = []
    spans: list[list[Span]] = []
    while at < end:
        check()
        found = _bare_tuple(text, at, end)
        if found is None:
            return None
        parts, places, at = found
        triples.append((parts[0], parts[1], parts[2]))
        spans.append(list(places))
        parting = _PARTING.match(text, at, end)
        at = at if parting is None else parting.end()
    return (triples, spans) if triples else None


def _bare_tuple(text: str, at: int, end: int) -> tuple[list[str], list[tuple[int, int]], int] | None:
    """Three names in round brackets, their places, and where the brackets end."""
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
    """The name that begins with the quote at `at`, and where it ends."""
    closing = _QUOTES[text[at]]
    end = at + 1
    while end < len(text):
        if text[end] == "\\":
            end += 2
            continue
        if text[end] == closing and _AFTER(text, end + 1):
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
        (node, place), at = _bracketed(text, at, end, "(", ")")
        alone = True
        while found := _ARROW.match(text, at, end):
            check()
            (relation, between), after = _bracketed(text, found.end() - 1, end, "[", "]")
            closing = _ARROW_END.match(text, after, end)
            if closing is None or bool(found[1]) == bool(closing[1]):
                raise ParseError("an arrow has one head: -[relation]-> or <-[relation]-", span=(_skip(text, at), after), hint=_HINT)
            (other, there), at = _bracketed(text, _skip(text, closing.end()), end, "(", ")")
            if closing[1]:
                triples.append((node, relation, other))
                spans.append([place, between, there])
            else:
                triples.append((other, relation, node))
                spans.append([there, between, place])
            (node, place), alone = (other, there), False
        if alone:
            bare = _BARE.match(text, at, end)
            if bare is not None:
                where = _skip(text, at), bare.end()
                raise ParseError("this arrow has no relation", span=where, hint="any relation is -[UNKNOWN relation 1]->")
            raise ParseError("an arrow is expected behind this node", span=place, hint=_HINT)
        parting = _PARTING.match(text, at, end)
        at = at if parting is None else parting.end()
    return triples, spans


def _bracketed(text: str, at: int, end: int, opening: str, closing: str) -> tuple[tuple[str, tuple[int, int]], int]:
    """The name in the brackets that open at `at`, with its place, and where they end."""
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
    for found in _BRACKETS[opening].finditer(text, at, end):
        depth += 1 if found[0] == opening else -1
        if depth == 0:
            place = found.start()
            return (text[at + 1 : place], (at + 1, place)), place + 1
    raise ParseError(f"this {opening!r} is not closed", span=(at, at + 1), hint=_HINT)


# -- patterns ----------------------------------------------------------------------------------------


#: What stands between the word UNKNOWN, its hint and its number.
_BETWEEN: Final = re.compile(r"[\s_-]*+")
#: Variables as query languages write them; the number behind it is taken off.
_VARIABLE: Final = re.compile(r"\?\w++")
#: The same with spaces and a number, `?film 1`, or nothing but the mark; either could be a name.
_SPACED: Final = re.compile(r"\?(?:[^\W\d_]++(?: [^\W\d_]++){0,3} \d{1,9})?")
#: How a text begins that is a pattern: with a node or a tuple, with a list of triples, or with an
#: object that has triples.
_BEGINS: Final = re.compile(
    r"""\s*(?:```\w*\s*)?(?:\(|\[\s*[(\[]\s*["'“‘’]|\[\s*\{\s*"(?:head|subject|h)"|\{(?s:.*?)["'“‘’]triples["'”’]\s*:)"""
)
#: What stands in quotes where a pattern is written: names with marks of patterns, or that begin with a
#: quote ('Til Tuesday).
_MARKED: Final = re.compile(r"""[()\[\]"\\;]|^['“‘’]""")
#: What says that a node is unknown.
_WORD: Final = re.compile(r"(?i:unknown)[\s_-]*|\?")
#: More edges between one pair of nodes than anybody writes; choosing distinct statements for them
#: doubles with each.
MOST_PARALLEL: Final = 5
#: More edges than any pattern has; preparing the search takes the square of them.
MOST_EDGES: Final = 500


@dataclass(frozen=True, slots=True)
class PatternNode:
    """A node: a name to be near to, or an unknown with the type that its words hint at."""

    text: str
    known: bool
    hint: str | None = None
    span: Span = field(default=None, compare=False)
    #: What a number or time has to be; such a node is no name.
    value: Condition | None = None

    @property
    def name(self) -> str:
        """The text without the word UNKNOWN: "film 1"; what `group_by` and tables call the node."""
        return self.text if self.known else (_WORD.sub("", self.text).strip(" _-") or self.text)


@dataclass(frozen=True, slots=True)
class PatternEdge:
    """An edge from node number `head` to node number `tail`; a relation that is not known may be
    any.
    """

    head: int
    relation: str
    tail: int
    known: bool
    span: Span = field(default=None, compare=False)
    #: Whether its direction never counts.
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """A directed multigraph: nodes in the order of their first mention, edges as they were written."""

    nodes: tuple[PatternNode, ...]
    edges: tuple[PatternEdge, ...]
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, program: Any) -> Pattern:
        """Read a pattern in any of its forms; raises `ParseError` (with a place) or `PlanError`."""
        if isinstance(program, Pattern):
            return program
        if isinstance(program, str):
            return cls.build(*read(program))
        return cls.build(triples_of(program))

    @classmethod
    def build(
        cls, triples: Iterable[tuple[str, str, str]], spans: Sequence[Sequence[Span]] = (), *, names: frozenset[str] = frozenset()
    ) -> Pattern:
        """A pattern of triples of texts; `spans` are their places in a text, three a triple. `names`
        are texts that are names, whatever they look like.
        """
        nodes: dict[str, PatternNode] = {}
        numbers: dict[str, int] = {}
        edges: dict[tuple[int, str, int], PatternEdge] = {}
        warnings: list[str] = []
        pairs: dict[tuple[int, int], int] = {}
        for number, triple in enumerate(watched(triples)):
            head, relation, tail = (collapse(part) for part in triple)
            places = spans[number] if spans else (None, None, None)
            for text, what, place in zip((head, relation, tail), ("head", "relation", "tail"), places, strict=True):
                if not text:
                    raise ParseError(f"the {what} of triple {number + 1} is empty", span=place)
            for text, place in ((head, places[0]), (tail, places[2])):
                if text not in nodes:
                    nodes[text] = PatternNode(text, True, None, place) if text in names else _node(text, place, warnings)
                    # Values are conditions: they stand behind all that is looked for.
                    numbers[text] = len(numbers)
            if nodes[head].value is not None and nodes[tail].value is not None:
                raise PlanError(f"a value is of something: {head!r} and {tail!r} are both values", span=places[0])
            key = numbers[head], relation, numbers[tail]
            if key in edges:
                warnings.append(f"triple {number + 1} stands there twice and counts once: {head} | {relation} | {tail}")
                continue
            edges[key] = PatternEdge(*key, relation in names or not _unknown(relation, [])[0], places[1])
            if len(edges) > MOST_EDGES:
                raise PlanError(f"a pattern has at most {MOST_EDGES} edges", span=places[1])
            pair = min(key[0], key[2]), max(key[0], key[2])
            pairs[pair] = pairs.get(pair, 0) + 1
            if pairs[pair] > MOST_PARALLEL:
                raise PlanError(f"more than {MOST_PARALLEL} edges between {head!r} and {tail!r}", span=places[1])
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
        """Whether a text is read as a name, not as an unknown or a value."""
        node = _node(collapse(text), None, [])
        return node.known and node.value is None

    @property
    def things(self) -> int:
        """How many nodes are no values; these stand first."""
        return sum(node.value is None for node in self.nodes)

    def number(self, name: str) -> int:
        """The number of a node by its text, with or without the word UNKNOWN; raises `PlanError`
        for another name.
        """
        wanted = collapse(name)
        for number, node in enumerate(self.nodes):
            if wanted == node.text:
                return number
        for number, node in enumerate(self.nodes):
            if not node.known and wanted.replace("_", " ") == node.name.replace("_", " "):
                return number
        names = [node.name for node in self.nodes]
        raise PlanError(f"the pattern has no node {name!r}", candidates=nearest(wanted, names), hint=f"it has: {', '.join(names)}")

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
    """Whether a text, white space collapsed, stands for anything, and the type that it hints at. In
    time linear in its length.
    """
    # Capitals only, since "Unknown Pleasures" is a name.
    hint = _hint(text, "UNKNOWN")
    if hint is None:
        hint = _variable(text)
    if hint is None:
        # Written as an unknown but for its capitals: in small letters, or with a number behind it.
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
    """What stands between a word and the number behind it: "film" of "UNKNOWN film 1"; None where the
    text does not begin with the word.
    """
    if not text.startswith(word):
        return None
    rest = text[len(word) :]
    between = _BETWEEN.match(rest)
    start = 0 if between is None else between.end()
    inside = _unnumbered(rest[start:])
    return inside if start or not inside else None


def _variable(text: str) -> str | None:
    """The hint of `?film_1`; None where the text is no variable. A letter alone, as in `?x`, is no hint."""
    if _VARIABLE.fullmatch(text) is None:
        return None
    found = text[1:].rstrip(_digits(text)).removesuffix("_")
    if len(found) == 1 and "a" <= found.lower() <= "z":
        return ""
    return None if found and (found[0] == "_" or found[0].isdecimal()) else found


def _unnumbered(text: str) -> str:
    """A text without the number that it ends with, and what stands before that."""
    found = text.rstrip(_digits(text))
    return found if found == text else found.rstrip(" _-")


def _digits(text: str) -> str:
    return "".join({letter for letter in text if letter.isdecimal()})


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if _MARKED.search(text) else text


def is_pattern(program: Any) -> bool:
    """Whether a program is a pattern, and of no other language: triples of texts, or a text that
    begins as one does.
    """
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
    """A pattern as text, and what is known of its nodes."""
    lines = [str(pattern), ""]
    for node in pattern.nodes:
        kind = "a value" if node.value else "known" if node.known else f"unknown, of type {node.hint!r}" if node.hint else "unknown"
        lines.append(f"{node.name}: {kind}")
    return "\n".join([*lines, *(f"warning: {warning}" for warning in pattern.warnings)])


# -- templates ---------------------------------------------------------------------------------------
# Patterns with parameters: `(UNKNOWN film 1) -[directed by]-> ($person)`.
#
# A name that is `$person` as a whole is a parameter, in quotes or not; `$$person` is the name
# `$person`. A text that is given is a name, whatever it looks like; a number, a Quantity or a time is
# a value, as in a pattern of Python triples. `(> $year)` compares with what is given.


_COMPARED: Final = re.compile(r"(==?|<=?|>=?|≤|≥)\s*\$([^\W\d]\w{0,99})")
#: A text, or an operator and the parameter behind it.
_Part = str | tuple[str, Hole]


class PatternTemplate:
    """The triples of a pattern. Reading one raises as `Pattern.of`."""

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
        # A pattern without parameters complains of its mistakes now.
        if not self.parameters:
            self.bind({})

    def bind(self, values: Mapping[str, GivenText]) -> Pattern:
        """The pattern with these values."""
        names: set[str] = set()

        def text(part: _Part, *, node: bool) -> str:
            if isinstance(part, tuple):
                operator, value = part[0], values[part[1]]
                found = f"{operator} {value}"
                if condition_of(collapse(found)) is None:
                    raise LiteralError(f"{value.parameter} is compared with ({operator}), and {str(value)!r} is no number or time")
                return found
            if type(part) is not Hole:
                return part
            value = values[part]
            if node and (said := written(value.value)) is not None:
                return said
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

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

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from condgraph.engine.errors import ParseError, PlanError, nearest, shortened
from condgraph.engine.pieces import watched
from condgraph.engine.values import collapse
from condgraph.languages.pattern.text import read
from condgraph.languages.pattern.triples import KEYS, Span, triples_of
from condgraph.languages.pattern.values import Condition, condition_of, written

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

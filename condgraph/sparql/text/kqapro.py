"""KQA Pro's published SPARQL on our IRIs: `translate` makes standard SPARQL of it.

The published queries call predicates by relative IRIs in which a space is an underscore
(`<point_in_time>`), which says less than the name; they use `xsd:` without declaring it, and some
close a literal with another quote than they open it with (`"104072'^^xsd:double`). A relative IRI
becomes the predicate of the graph that is written so; one that fits several is an error that names
them, one that fits none an unknown name. Other mistakes are reported with their place in the text
as published.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from condgraph.engine.errors import AmbiguousNameError, ParseError, UnknownNameError, nearest
from condgraph.sparql.layout import PRED, GraphIris
from condgraph.sparql.literals import XSD
from condgraph.sparql.text.mistakes import mistake
from condgraph.sparql.text.prologue import PREFIXES

#: What the published queries use of the vocabulary, and what the layout has beside it.
TERMS: Final = (
    *("name", "instance_of", "fact_h", "fact_r", "fact_t", "value", "unit", "year", "date"),
    *("subclass_of", "start", "end", "precision", "exact", "order", "source", "row", "position", "record", "raw"),
    *("valid_start", "valid_end", "label", "location", "format", "place", "member", "concept", "subclass", "superclass"),
    *("Entity", "Concept", "Row", "Text", "Quantity", "Time", "Unknown", "Source", "Membership", "Subclassing", "Graph"),
)
_TOKEN: Final = re.compile(
    r"""
      (?P<comment>\#[^\n\r]*)
    | (?P<mixed>(?P<open>["'])(?P<number>[-+]?[\d.:eETZ+\-]++)(?!(?P=open))["'](?=\^\^))
    | (?P<text>\"{3}(?:\"{0,2}+(?:[^"\\]|\\.))*+(?:\"{3})?+ | '{3}(?:'{0,2}+(?:[^'\\]|\\.))*+(?:'{3})?+
        | "(?:[^"\\\n\r]|\\.)*+"?+ | '(?:[^'\\\n\r]|\\.)*+'?+)
    | <(?P<iri>[^<>"{}|^`\\\x00-\x20]*+)>
    | (?P<prefix>(?i:prefix)\s++xsd\s*+:)
    """,
    re.X | re.S,
)
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:").match
#: What the parser says, among all that it expected, of what is well formed and still wrong; in our words.
_REFUSED: Final = {
    "contains a variable that is unbound": "a variable of SELECT is bound nowhere, or is neither grouped by nor summed up",
    "SELECT * is not authorized with GROUP BY": "SELECT * does not go with GROUP BY: name the variables",
    "SELECT overrides an existing variable": "a variable that AS names in SELECT is bound already",
}
_AT: Final = re.compile(r"error at (\d+):(\d+): (.*)", re.S).match


@dataclass(frozen=True, slots=True)
class Translated:
    """A standard query, what was doubtful, and where its pieces stood: (offset there, offset here)
    in order.
    """

    text: str
    warnings: tuple[str, ...]
    places: tuple[tuple[int, int], ...]

    def offset(self, at: int) -> int:
        """The offset in the published text of an offset in the standard one."""
        here, there = next(((here, there) for there, here in reversed(self.places) if there <= at), (0, 0))
        return here + at - there


class Predicates:
    """The predicates and qualifier keys of a graph, by how the published queries write them."""

    def __init__(self, known: Iterable[str], names: GraphIris) -> None:
        self.names = names
        self.known = tuple(dict.fromkeys(known))
        self._written: dict[str, list[str]] = {}
        for name in self.known:
            self._written.setdefault(name.replace(" ", "_"), []).append(name)
            exact = names.predicate(name)[len(names.base) + 1 : -1]
            if exact != name.replace(" ", "_"):
                self._written.setdefault(exact, []).append(name)

    def iri(self, written: str, span: tuple[int, int], *, on_unknown: str) -> str:
        """The absolute IRI of a relative one; raises `UnknownNameError` or `AmbiguousNameError`."""
        found = self._written.get(written, ())
        if len(found) == 1:
            return self.names.predicate(found[0])
        if found:
            exact = ", ".join(self.names.predicate(name) for name in found)
            raise AmbiguousNameError(
                f"<{written}> can be any of {len(found)} predicates", candidates=found, span=span, hint=f"write {exact}"
            )
        name = written.replace("_", " ")
        if on_unknown == "error":
            raise UnknownNameError("predicate", name, candidates=nearest(name, self.known), span=span)
        return self.names.predicate(name)

    def has(self, written: str) -> bool:
        """Whether a predicate is written so."""
        return written in self._written


def translate(text: str, predicates: Predicates | None, *, on_unknown: str = "error") -> Translated:
    """Standard SPARQL of a published query; raises `UnknownNameError` and `AmbiguousNameError` with
    their place in the text.

    Without predicates no name is looked at: enough to see whether the query is well formed.
    """
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    warnings: list[str] = []
    size = last = 0
    declared = False

    def put(piece: str, here: int) -> None:
        nonlocal size
        places.append((size, here))
        pieces.append(piece)
        size += len(piece)

    for found in _TOKEN.finditer(text):
        begin, end = found.span()
        declared |= found["prefix"] is not None
        changed: str | None = None
        if found["mixed"] is not None:
            changed = f'"{found["number"]}"'
            warnings.append(f"the quotes of {text[begin:end]} do not match; read as {changed}")
        elif found["iri"] is not None:
            changed = _iri(found["iri"], (begin, end), predicates, on_unknown)
        if changed is not None:
            put(text[last:begin], last)
            put(changed, begin)
            last = end
    put(text[last:], last)
    head = "" if declared else f"PREFIX xsd: <{XSD}> "
    moved = tuple((there + len(head), here) for there, here in places)
    return Translated(head + "".join(pieces), tuple(warnings), moved)


def _iri(iri: str, span: tuple[int, int], predicates: Predicates | None, on_unknown: str) -> str | None:
    """What an IRI becomes; None where it stays."""
    if predicates is None:
        return None if _ABSOLUTE(iri) else f"<relative:{iri}>"
    if iri.startswith(PRED) and not predicates.has(iri):
        term = iri.removeprefix(PRED)
        if term not in TERMS:
            raise UnknownNameError(
                "term of the vocabulary", iri, candidates=[PRED + one for one in nearest(term, TERMS)], span=span
            )
        return None
    if not predicates.has(iri) and (_ABSOLUTE(iri) or not iri):
        return None
    return predicates.iri(iri, span, on_unknown=on_unknown)


def not_well_formed(error: SyntaxError, text: str, translated: Translated | None = None) -> ParseError:
    """The error of a parser as one that says where in the text a query is not well formed."""
    said = str(error.msg or error)
    wrong = mistake(text, (*PREFIXES, "xsd"))
    if wrong is not None:
        line, column = text.count("\n", 0, wrong.begin) + 1, wrong.begin - (text.rfind("\n", 0, wrong.begin) + 1) + 1
        return ParseError(
            f"the query is not well formed at line {line}, column {column}: {wrong.message}", span=(wrong.begin, wrong.end)
        )
    found = _AT(said)
    if found is None:
        return ParseError(f"the query is not well formed: {said}")
    parsed = text if translated is None else translated.text
    at = _offset(parsed, int(found[1]), int(found[2]))
    if translated is not None:
        at = min(translated.offset(at), len(text))
    end = min(at + 1, len(text))
    expected = " ".join(found[3].split())
    if "IRI parsing failed" in expected and (begin := text.rfind("<", 0, at)) >= 0:
        at, end = begin, at
        expected = f"{text[at:end].strip()[:80]} is no IRI"
    elif refused := next((told for phrase, told in _REFUSED.items() if phrase in said), None):
        expected = refused
    elif at >= len(text.rstrip()):
        at, end, expected = _at_the_end(text.rstrip(), expected)
    elif len(expected) > 150:
        expected = "what stands here cannot stand here"
    at = max(at, 0)
    line, column = text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1
    return ParseError(f"the query is not well formed at line {line}, column {column}: {expected}", span=(at, max(end, at)))


def _at_the_end(text: str, expected: str) -> tuple[int, int, str]:
    """What is wrong where a parser got to the end: where, and in words. Parsers look as far as they
    can: one closing mark too many is reported behind it, and so is what is amiss before it.
    """
    size = len(text)
    if not text:
        return 0, 0, "the query is empty"
    if '"}"' in expected or text[-1] not in "})":
        return size, size, "the query ends too early"
    if text.count("}") > text.count("{") or text.count(")") > text.count("("):
        return size - 1, size, f"{text[-1]!r} cannot stand here"
    return size - 1, size, "something before this is missing, or cannot stand where it does"


def _offset(text: str, line: int, column: int) -> int:
    lines = text.split("\n")
    return min(sum(len(one) + 1 for one in lines[: line - 1]) + column - 1, len(text))

"""Texts of graph patterns: arrows, JSON, and the tuples that language models write.

Arrows: `(head) -[relation]-> (tail)` and `(tail) <-[relation]- (head)`, chained at will; triples
are parted by `;`, commas or line breaks. A name may hold balanced brackets; any other is written in
double quotes as in JSON: `("a) b")`.

Tuples: `("head", "relation", "tail")`, in round or square brackets, with straight or curly quotes,
alone, in a list, or under `"triples"` of an object, whatever stands around them. A quote ends a
name only where a comma or a bracket follows, so names with quotes and braces in them are read as
they are. In round brackets quotes may be left out, `(?film, directed by, Clint Eastwood)`, where
neither name has a comma.
"""

from __future__ import annotations

import json
import re
from typing import Final

from condgraph.engine.bounds import check
from condgraph.engine.errors import ParseError
from condgraph.languages.pattern.triples import Span, triples_of

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

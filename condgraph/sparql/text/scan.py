"""Scans a query without parsing it: prefixes, form, graphs and services, size, and common mistakes.

Every text is read once, from left to right: no part of an expression backtracks.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Final, Literal, NamedTuple, ParamSpec, TypeVar

from condgraph.engine.errors import ParseError, nearest, shortened
from condgraph.engine.iris import PREFIXES, decode
from condgraph.engine.terms import MAX_IRI

#: Regular expressions of tokens, for `re.VERBOSE`. An unclosed token is matched as well, so that no text
#: is scanned again from each of its characters.
COMMENT: Final = r"\#[^\n\r]*+"
IRI: Final = r'[^<>"{}|^`\\\x00-\x20]*+'
STRING: Final = r"""\"{3}(?:\"{0,2}+(?:[^"\\]|\\.))*+(?:\"{3})?+ | '{3}(?:'{0,2}+(?:[^'\\]|\\.))*+(?:'{3})?+
    | "(?:[^"\\\n\r]|\\.)*+"?+ | '(?:[^'\\\n\r]|\\.)*+'?+"""

# -- prefixes ----------------------------------------------------------------------------------------
# Optional parts of a query: declarations of common prefixes, and the escape of an underscore in a name.


#: Underscores in a name for which both an underscore and a space are tried; in a name with more, all are
#: underscores.
_MAX_UNDERSCORES: Final = 6
#: Relative IRIs of a query that are checked, and their length in characters.
_DISTINCT, _MAX_CACHED = 1_000, 2_000
#: Tokens, including those where `<...>` is not an IRI. A word is as long as a prefix may be, so that no
#: character is read more than a few times.
TOKEN: Final = re.compile(
    rf"""
      (?P<comment>{COMMENT})
    | (?P<text>{STRING})
    | <(?P<iri>{IRI})>
    | <[^<>\n\r\x00-\x1f]*+>
    | (?P<variable>[?$]\w++)
    | (?P<tag>@[A-Za-z][A-Za-z0-9-]*+)
    | (?P<name>(?P<prefix>[^\W\d_][\w.-]*+)?+:(?P<local>(?:[\w.:-]|%[0-9A-Fa-f]{{2}}|\\.)*+))
    | (?P<word>[^\W\d_][\w.-]*+)
    """,
    re.X | re.S,
)
_BASE: Final = re.compile(r"\bbase\s*+<", re.I).search
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:|[/#?]").match


def undeclared(text: str) -> str:
    """Return declarations, on one line, of the known prefixes that a query may use. Its own declarations override them."""
    return "".join(f"PREFIX {prefix}: <{iri}> " for prefix, iri in PREFIXES.items() if f"{prefix}:" in text)


def occurring(prefixes: Mapping[str, str], text: str) -> Mapping[str, str]:
    """Return the prefixes that a query may use: a parser reads the IRI of every prefix it is given.

    >>> occurring({"rdf": "a:", "p": "b:", "xsd": "c:"}, "ASK { ?s rdf:type ?pxsd }")
    {'rdf': 'a:'}
    """
    if "\\" in text:  # the characters of a prefix may be escaped
        return prefixes
    return {prefix: iri for prefix, iri in prefixes.items() if f"{prefix}:" in text}


def underscored(text: str, is_name: Callable[[str], bool]) -> str:
    """Rewrite a query so that `<a_b>` is the name `a_b`, if the graph has it and not `a b`.

    A space in a name is an underscore in its IRI, and an underscore is percent-encoded, which users who see names in a
    table do not know. Relative IRIs that fit several names stay unchanged.
    """
    if "_" not in text or _BASE(text):
        return text
    pieces: list[str] = []
    last = 0
    known: dict[str, str | None] = {}
    for match in TOKEN.finditer(text):
        iri = match["iri"]
        if iri is None or "_" not in iri or _ABSOLUTE(iri):
            continue
        if iri not in known:
            if len(known) >= _DISTINCT or len(iri) > _MAX_CACHED:
                continue
            known[iri] = _corrected(iri, is_name)
        better = known[iri]
        if better is not None:
            pieces += (text[last : match.start()], f"<{better}>")
            last = match.end()
    return "".join((*pieces, text[last:]))


def _corrected(iri: str, is_name: Callable[[str], bool]) -> str | None:
    if _is(iri, is_name):
        return None
    parts = iri.split("_")
    if len(parts) > _MAX_UNDERSCORES + 1:
        all_escaped = "%5F".join(parts)
        return all_escaped if _is(all_escaped, is_name) else None
    fitting = []
    for marks in product(("_", "%5F"), repeat=len(parts) - 1):
        written = parts[0] + "".join(mark + part for mark, part in zip(marks, parts[1:], strict=True))
        if _is(written, is_name):
            fitting.append(written)
    return fitting[0] if len(fitting) == 1 else None


def _is(written: str, is_name: Callable[[str], bool]) -> bool:
    try:
        return is_name(decode(written))
    except ValueError:
        return False


# -- form --------------------------------------------------------------------------------------------
# The form of a query, and whether it names a data set or graphs, or calls other services.
#
# Words are distinguished from strings, IRIs, names and comments as in SPARQL's grammar (section 19.8),
# which suffices: keywords are never anything else. Whether the query is well formed is for the store to
# decide. Its parser accepts SERVICE and GRAPH wherever a keyword may be, without spaces: `1SERVICE<x>{}`
# and `SERVICE:x{}` call another service, and count here.


P = ParamSpec("P")
T = TypeVar("T")
Form = Literal["select", "ask", "construct", "describe", "update", "unknown"]

_LOCAL: Final = r":(?:(?:[\w:]|%[0-9A-Fa-f]{2}|\\.)(?:[\w:.\-]|%[0-9A-Fa-f]{2}|\\.)*+)?+"
#: Words to find: a form, FROM, and whatever contains GRAPH or SERVICE, which may follow it.
_SOUGHT: Final = r"""(?:(?:select|ask|construct|describe|insert|delete|load|clear|drop|create|add|move|copy|with|from)(?![\w.\-:])
    | [\w.\-]*?(?:service|graph))"""
#: The tokens before such a word, and the word. Few tokens at a time, as a match blocks the process.
_TOKEN: Final = re.compile(
    rf"""
    (?: [^\w"'\#<?$@:\\]++
      | {COMMENT} | <{IRI}>
      | {STRING} | \\.
      | [?$]\w++ | @[A-Za-z][A-Za-z0-9-]*+ | {_LOCAL}               # a variable, a language, a name without a prefix
      | (?!{_SOUGHT})\w[\w.\-]*+(?:{_LOCAL})?+                      # words and numbers, a prefixed name
      | [<?$@\\]
    ){{0,2000}}+
    (?:(?P<graph>graph\s++)?(?P<words>\w[\w.\-]*+)(?P<local>{_LOCAL})?+)?
    """,
    re.X | re.S | re.I,
)
_WORDS: Final = re.compile(r"[A-Za-z]\w*+").findall
_NAMING: Final = re.compile("graph", re.IGNORECASE).search
_GROUP: Final = re.compile(r"(?:\s|\#[^\n\r]*+)*+\{").match
_FORMS: Final[dict[str, Form]] = {"select": "select", "ask": "ask", "construct": "construct", "describe": "describe"}
_UPDATES: Final = frozenset(["insert", "delete", "load", "clear", "drop", "create", "add", "move", "copy", "with"])
#: Longest query, in characters, whose result is cached.
_SHORT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Survey:
    """The form of a query, and whether it has FROM or FROM NAMED, SERVICE, and GRAPH."""

    form: Form
    dataset: bool
    service: bool
    graph: bool


def survey(text: str) -> Survey:
    """Scan a query, in linear time.

    >>> survey("PREFIX ask: <http://x/#> # SELECT\\nCONSTRUCT WHERE { ?from ask:service 'SERVICE' }")
    Survey(form='construct', dataset=False, service=False, graph=False)
    >>> survey("select * from <http://x/> { service ?s {} }")
    Survey(form='select', dataset=True, service=True, graph=False)
    """
    return _remembered(text) if len(text) <= _SHORT else _survey(text)


def _survey(text: str) -> Survey:
    form: Form = "unknown"
    dataset = service = graph = False
    at = 0
    while at < len(text) and (match := _TOKEN.match(text, at)) is not None:
        at = match.end()
        if match["words"] is None:
            continue
        words = match["words"].lower()
        graph = graph or match["graph"] is not None
        if match["local"] is not None:
            # A prefix that reads like the keyword is one within a group and before a group. A graph may
            # have such a name.
            is_service = words.endswith(("service", "servicesilent")) and match["graph"] is None
            if is_service or words.endswith("graph"):
                grouped = text.find("{", 0, match.start("words")) >= 0 and _GROUP(text, at) is not None
                service, graph = service or (is_service and grouped), graph or (not is_service and grouped)
            continue
        for word in _WORDS(words):
            if form == "unknown":
                form = "update" if word in _UPDATES else _FORMS.get(word, "unknown")
            elif word == "from":
                dataset = True
        service, graph = service or "service" in words, graph or "graph" in words
    return Survey(form, dataset, service, graph)


_remembered: Final = lru_cache(maxsize=512)(_survey)


async def aside(size: int, read: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Read a text of this size, in a thread if it is long, so that the event loop serves other requests."""
    if size <= _SHORT:
        return read(*arguments, **options)
    return await asyncio.to_thread(read, *arguments, **options)


def makes_triples(text: str) -> bool:
    """Tell whether a query returns triples instead of solutions.

    >>> makes_triples("DESCRIBE <x>"), makes_triples("ASK {}")
    (True, False)
    """
    return survey(text).form in ("construct", "describe")


def names_graphs(text: str) -> bool:
    """Tell whether a query has patterns of named graphs.

    >>> names_graphs("SELECT ?g { GRAPH ?g { } }"), names_graphs("SELECT ?graph { ?graph a <Graph> }")
    (True, False)
    """
    return _NAMING(text) is not None and survey(text).graph


# -- size --------------------------------------------------------------------------------------------
# Whether a query is too large for a parser in this process.
#
# Oxigraph parses, plans and frees a query recursively on the stack: some hundred nested groups, or some
# thousand patterns in a row, crash the process. Such queries run in a separate process.


#: Most nested brackets, and most parts in a row, of a query in this process.
MAX_DEPTH: Final = 50
MAX_PARTS: Final = 600
#: Most objects of one predicate, and the length in characters from which a list is checked more closely.
MAX_ITEMS: Final = 2_000
_LONG_LIST: Final = 4_000

_OPENING, _CLOSING = "([{", ")]}"
#: Parts: brackets, arithmetic and logical signs, ends of patterns, outside of strings, IRIs, names and
#: comments.
_PARTS: Final = re.compile(
    rf"""(?: [^"'\#<?$@:\w\\(){{}}\[\].;,!|&+*/^=>-]++ | {COMMENT} | <{IRI}> | {STRING} | [?$@]?\w++(?:[.-]\w++)*+
        | :(?:[\w:%]++|\\.)?+(?:[.-]?[\w:%]++|\\.)*+
        | [?$@\\,=>] )*+
        (?P<part>.)?""",
    re.VERBOSE | re.DOTALL,
)
#: Terms separated by commas, as in `IN`; other long lists are collections, which nest.
_LISTED: Final = re.compile(
    r"""(?:\s*+(?:[^\s,"'<>()]++|<[^<>\s]*+>|"(?:[^"\\\n\r]|\\.)*+"|'(?:[^'\\\n\r]|\\.)*+')++\s*+(?:,|\Z))*+\s*+\Z""", re.VERBOSE
).match
_IRIS: Final = re.compile(rf'<[^<>"{{}}|^`\\\x00-\x20]{{{MAX_IRI}}}').search


def is_heavy(text: str) -> bool:
    """Tell whether a query has too many parts, or too deeply nested ones, to run in this process.

    Raises `ParseError` for an IRI of more than `MAX_IRI` characters.
    """
    if len(text) > MAX_IRI and (match := _IRIS(text)) is not None:
        raise ParseError(f"an IRI may have {MAX_IRI:,} characters", span=match.span())
    if len(text) <= _LONG_LIST and sum(map(text.count, "([{.;!|&+*/^-<")) <= MAX_DEPTH:
        return False
    depth = parts = at = 0
    last = ""
    while (match := _PARTS.match(text, at)) is not None and (part := match["part"]) is not None:
        begin, at = at, match.end()
        if at - begin > _LONG_LIST:
            listed = last == "(" and _LISTED(text[begin : at - 1]) is not None
            if not listed and (last == "(" or text.count(",", begin, at) > MAX_ITEMS):
                return True
        last = part
        parts += 1
        depth += (part in _OPENING) - (part in _CLOSING)
        if parts > MAX_PARTS or depth > MAX_DEPTH:
            return True
    return False


# -- mistakes ----------------------------------------------------------------------------------------
# Common mistakes in a query, found without a parser: an undeclared prefix, a word that SPARQL does not
# have. A parser only lists what it expected.


_KEYWORDS: Final = frozenset(
    [
        "base", "prefix", "version", "select", "construct", "describe", "ask", "where", "from", "named", "graph", "service",
        "silent", "optional", "union", "minus", "filter", "exists", "not", "in", "as", "bind", "values", "undef", "group",
        "by", "having", "order", "asc", "desc", "limit", "offset", "distinct", "reduced", "true", "false", "a", "lateral",
        "count", "sum", "min", "max", "avg", "sample", "group_concat", "separator", "str", "lang", "langmatches", "langdir",
        "haslang", "haslangdir", "datatype", "bound", "iri", "uri", "bnode", "rand", "abs", "ceil", "floor", "round",
        "concat", "strlen", "ucase", "lcase", "encode_for_uri", "contains", "strstarts", "strends", "strbefore", "strafter",
        "year", "month", "day", "hours", "minutes", "seconds", "timezone", "tz", "now", "uuid", "struuid", "md5", "sha1",
        "sha256", "sha384", "sha512", "coalesce", "if", "strlang", "strlangdir", "strdt", "sameterm", "isiri", "isuri",
        "isblank", "isliteral", "isnumeric", "istriple", "regex", "substr", "replace", "triple", "subject", "predicate",
        "object", "insert", "delete", "data", "load", "clear", "drop", "create", "add", "move", "copy", "with", "using",
        "into", "to", "all", "default", "adjust",
    ]
)  # fmt: skip
#: Longest prefix that is checked, in characters.
_MAX_PREFIX: Final = 200
_DECLARED: Final = re.compile(rf"prefix\s*+([^\W\d_][\w.-]{{0,{_MAX_PREFIX - 1}}}+)?+:", re.I)
_LETTERS: Final = re.compile(r"\w+")
#: Characters of a query that are checked: errors are created in the event loop.
_MAX_CHARACTERS: Final = 50_000


class Mistake(NamedTuple):
    """A mistake with its start and end."""

    message: str
    begin: int
    end: int


def mistake(text: str, known: Collection[str] = tuple(PREFIXES)) -> Mistake | None:
    """Return the first mistake of an invalid query, if it is one of these kinds."""
    text = text[:_MAX_CHARACTERS]
    declared = {found[1] or "" for found in _DECLARED.finditer(text)} | set(known)
    for found in TOKEN.finditer(text):
        begin, end = found.span()
        if found["name"] is not None:
            prefix = found["prefix"] or ""
            if prefix not in declared and prefix != "_" and len(prefix) <= _MAX_PREFIX and text[max(0, begin - 1) : begin] != "_":
                near = nearest(prefix, declared)
                suggestion = f"; known: {', '.join(f'{candidate}:' for candidate in near)}" if near else ""
                return Mistake(f"the prefix {shortened(prefix, 60)}: is not declared{suggestion}", begin, begin + len(prefix) + 1)
        elif found["word"] is not None:
            letters = _LETTERS.match(found["word"])
            assert letters is not None
            word, end = letters[0], begin + letters.end()
            # Letters directly after a letter or digit belong to a number.
            if word.lower() in _KEYWORDS or text[max(0, begin - 1) : begin].isalnum():
                continue
            near = nearest(word.lower(), _KEYWORDS)
            suggestion = f"; the nearest: {', '.join(candidate.upper() for candidate in near[:3])}" if near else ""
            return Mistake(f"{shortened(word, 60)!r} is not a word of SPARQL{suggestion}", begin, end)
    return None

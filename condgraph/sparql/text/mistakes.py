"""What people get wrong in a query, found without a parser: a prefix that nobody declared, a word
that SPARQL does not have. A parser only says what could have stood there.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from condgraph.engine.errors import nearest, shortened
from condgraph.sparql.text.prologue import PREFIXES, TOKEN

_WORDS: Final = frozenset(
    [
        "base",
        "prefix",
        "version",
        "select",
        "construct",
        "describe",
        "ask",
        "where",
        "from",
        "named",
        "graph",
        "service",
        "silent",
        "optional",
        "union",
        "minus",
        "filter",
        "exists",
        "not",
        "in",
        "as",
        "bind",
        "values",
        "undef",
        "group",
        "by",
        "having",
        "order",
        "asc",
        "desc",
        "limit",
        "offset",
        "distinct",
        "reduced",
        "true",
        "false",
        "a",
        "lateral",
        "count",
        "sum",
        "min",
        "max",
        "avg",
        "sample",
        "group_concat",
        "separator",
        "str",
        "lang",
        "langmatches",
        "langdir",
        "haslang",
        "haslangdir",
        "datatype",
        "bound",
        "iri",
        "uri",
        "bnode",
        "rand",
        "abs",
        "ceil",
        "floor",
        "round",
        "concat",
        "strlen",
        "ucase",
        "lcase",
        "encode_for_uri",
        "contains",
        "strstarts",
        "strends",
        "strbefore",
        "strafter",
        "year",
        "month",
        "day",
        "hours",
        "minutes",
        "seconds",
        "timezone",
        "tz",
        "now",
        "uuid",
        "struuid",
        "md5",
        "sha1",
        "sha256",
        "sha384",
        "sha512",
        "coalesce",
        "if",
        "strlang",
        "strlangdir",
        "strdt",
        "sameterm",
        "isiri",
        "isuri",
        "isblank",
        "isliteral",
        "isnumeric",
        "istriple",
        "regex",
        "substr",
        "replace",
        "triple",
        "subject",
        "predicate",
        "object",
        "insert",
        "delete",
        "data",
        "load",
        "clear",
        "drop",
        "create",
        "add",
        "move",
        "copy",
        "with",
        "using",
        "into",
        "to",
        "all",
        "default",
        "adjust",
    ]
)
#: Characters of a prefix; longer ones are not looked at.
_LONGEST: Final = 200
_DECLARED: Final = re.compile(rf"prefix\s*+([^\W\d_][\w.-]{{0,{_LONGEST - 1}}}+)?+:", re.I)
_LETTERS: Final = re.compile(r"\w+")
#: Characters of a query that are looked at: errors are made in the event loop.
_MOST: Final = 50_000


class Mistake(NamedTuple):
    """What is wrong, and where it begins and ends."""

    message: str
    begin: int
    end: int


def mistake(text: str, known: Collection[str] = tuple(PREFIXES)) -> Mistake | None:
    """The first mistake of a query that is not well formed, where it is one of these."""
    text = text[:_MOST]
    declared = {found[1] or "" for found in _DECLARED.finditer(text)} | set(known)
    for found in TOKEN.finditer(text):
        begin, end = found.span()
        if found["name"] is not None:
            prefix = found["prefix"] or ""
            if prefix not in declared and prefix != "_" and len(prefix) <= _LONGEST and text[max(0, begin - 1) : begin] != "_":
                near = nearest(prefix, declared)
                said = f"; known: {', '.join(f'{one}:' for one in near)}" if near else ""
                return Mistake(f"the prefix {shortened(prefix, 60)}: is not declared{said}", begin, begin + len(prefix) + 1)
        elif found["word"] is not None:
            letters = _LETTERS.match(found["word"])
            assert letters is not None
            word, end = letters[0], begin + letters.end()
            # What follows a letter is the end of a number.
            if word.lower() in _WORDS or text[max(0, begin - 1) : begin].isalnum():
                continue
            near = nearest(word.lower(), _WORDS)
            said = f"; the nearest: {', '.join(one.upper() for one in near[:3])}" if near else ""
            return Mistake(f"{shortened(word, 60)!r} is no word of SPARQL{said}", begin, end)
    return None

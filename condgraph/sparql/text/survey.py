"""What a query's text says without being parsed: its form, whether it names a data set or graphs,
whether it calls other services.

Words are kept apart from strings, IRIs, names and comments as in SPARQL's grammar (section 19.8),
which is enough: keywords are never anything else. Whether the text is well formed is the store's to
say. The store's parser decides about SERVICE and GRAPH: it takes a keyword wherever one may stand,
and needs no space around it: `1SERVICE<x>{}` and `SERVICE:x{}` call another service, and count here.

Every text is read once, from left to right: no part of the expression gives back what it took, and
what is begun and never closed (a string, say) is taken as well, so that nothing is looked at from
every one of its characters.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Form = Literal["select", "ask", "construct", "describe", "update", "unknown"]

_LOCAL: Final = r":(?:(?:[\w:]|%[0-9A-Fa-f]{2}|\\.)(?:[\w:.\-]|%[0-9A-Fa-f]{2}|\\.)*+)?+"
#: A word that is looked for: a form, FROM, and whatever holds GRAPH or SERVICE, which may follow it.
_SOUGHT: Final = r"""(?:(?:select|ask|construct|describe|insert|delete|load|clear|drop|create|add|move|copy|with|from)(?![\w.\-:])
    | [\w.\-]*?(?:service|graph))"""
#: What stands before such a word, and the word. Few tokens at a time: nothing else runs in this
#: process during a step.
_TOKEN: Final = re.compile(
    rf"""
    (?: [^\w"'\#<?$@:\\]++
      | \#[^\n\r]*+                                                 # a comment
      | <[^<>"{{}}|^`\\\x00-\x20]*+>                                # an IRI
      | \"{{3}}(?:\"{{0,2}}+(?:[^"\\]|\\.))*+(?:\"{{3}})?+ | '{{3}}(?:'{{0,2}}+(?:[^'\\]|\\.))*+(?:'{{3}})?+
      | "(?:[^"\\\n\r]++|\\.)*+"?+ | '(?:[^'\\\n\r]++|\\.)*+'?+ | \\.
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
#: Characters of the queries that are remembered.
_SHORT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Survey:
    """The form of a query, whether it has FROM or FROM NAMED, whether SERVICE occurs, and whether
    GRAPH does.
    """

    form: Form
    dataset: bool
    service: bool
    graph: bool


def survey(text: str) -> Survey:
    """Look through a query, in time that grows with its length.

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
    while at < len(text) and (found := _TOKEN.match(text, at)) is not None:
        at = found.end()
        if found["words"] is None:
            continue
        words = found["words"].lower()
        graph = graph or found["graph"] is not None
        if found["local"] is not None:
            # What can be a prefix can be the keyword as well: within a group, and with a group
            # behind it. A graph may be called so.
            called = words.endswith(("service", "servicesilent")) and found["graph"] is None
            if called or words.endswith("graph"):
                grouped = text.find("{", 0, found.start("words")) >= 0 and _GROUP(text, at) is not None
                service, graph = service or (called and grouped), graph or (not called and grouped)
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
    """Read something of this size: in a thread where it is long, so that an event loop goes on with
    other requests meanwhile.
    """
    if size <= _SHORT:
        return read(*arguments, **options)
    return await asyncio.to_thread(read, *arguments, **options)


def makes_triples(text: str) -> bool:
    """Whether a query gives triples, and no solutions.

    >>> makes_triples("DESCRIBE <x>"), makes_triples("ASK {}")
    (True, False)
    """
    return survey(text).form in ("construct", "describe")


def names_graphs(text: str) -> bool:
    """Whether a query has patterns of named graphs.

    >>> names_graphs("SELECT ?g { GRAPH ?g { } }"), names_graphs("SELECT ?graph { ?graph a <Graph> }")
    (True, False)
    """
    return _NAMING(text) is not None and survey(text).graph

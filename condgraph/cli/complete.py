"""Completion in a shell: names that the store of the command line has, and words that commands take.

A key press waits for it, so it reads a store for at most `SECONDS`, offers at most `MOST` words, and
reports no error. A shell evaluates what it is given (zsh by `eval`), and names are foreign data:
those with characters that mean something to a shell are not offered.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import typer

#: What a store is named by where no argument does, the first that is set.
STORE_VARIABLES: Final = ["CONDGRAPH_STORE", "NEO4J_URI", "NEO4J_URL"]
#: How long a completion may read a store.
SECONDS: Final = 2.0
#: The most words that are offered.
MOST: Final = 200
#: Names that are offered: letters and digits of any script, spaces, and marks that
#: no shell gives a meaning to.
_PLAIN: Final = re.compile(r"[\w .,/+@%-]+").fullmatch
_QUOTES: Final = ("'", '"')


def graphs(context: typer.Context, incomplete: str) -> list[str]:
    """The graphs of the store."""
    from condgraph.engine.snapshot.directory import graph_names

    store = _store(context)
    return [] if store is None or "://" in store else offered(graph_names(Path(store)), incomplete)


def sources(context: typer.Context, incomplete: str) -> list[str]:
    """The sources of the graph."""
    return _names(context, incomplete, lambda schema: (source.name for source in schema.sources))


def concepts(context: typer.Context, incomplete: str) -> list[str]:
    """The concepts of the graph, the largest first."""
    return _names(context, incomplete, lambda schema: (concept.name for concept in schema.concepts))


def predicates(context: typer.Context, incomplete: str) -> list[str]:
    """The predicates of the graph."""
    return _names(context, incomplete, lambda schema: (predicate.name for predicate in schema.predicates))


def formats(context: typer.Context, incomplete: str) -> list[str]:
    """The formats of `load --as`."""
    from condgraph.loaders.recognise import FORMATS

    return offered(FORMATS, incomplete)


def loader_options(context: typer.Context, incomplete: str) -> list[str]:
    """The options of `load -O`: those of the format where `--as` names one."""
    from condgraph.loaders.recognise import FORMATS

    wanted = context.params.get("form")
    formats = [form for name, form in FORMATS.items() if wanted in (None, name)]
    return offered(dict.fromkeys(f"{option}=" for item in formats for option in item.options), incomplete, plain=False)


def languages(context: typer.Context, incomplete: str) -> list[str]:
    """The languages of programs."""
    from condgraph.languages.registry import OPTIONS

    return offered(OPTIONS, incomplete)


def offered(words: Iterable[str], incomplete: str, *, plain: bool = True) -> list[str]:
    """The words that go on from `incomplete` as the shell takes them; at most
    `MOST`, and none that a shell would read as more than a word.
    """
    matches = (word for word in words if word.startswith(incomplete) and (not plain or _PLAIN(word)))
    return [_for_shell(word) for word, _ in zip(matches, range(MOST), strict=False)]


def _for_shell(word: str) -> str:
    """In bash a word that is not in quotes yet needs its spaces escaped; other shells do that."""
    if os.environ.get("_CONDGRAPH_COMPLETE") != "complete_bash":
        return word
    words, at = os.environ.get("COMP_WORDS", "").split("\n"), os.environ.get("COMP_CWORD", "")
    typed = words[int(at)] if at.isdecimal() and int(at) < len(words) else ""
    return word if typed.startswith(_QUOTES) else word.replace(" ", "\\ ")


def _names(context: typer.Context, incomplete: str, of: Callable[[Any], Iterable[str]]) -> list[str]:
    """Names of the graph that the command line is about; none where it cannot be had in time."""
    import condgraph

    store = _store(context)
    if store is None:
        return []
    given = {name: context.params.get(name) for name in ("user", "password", "database")}
    login: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    logging.disable()  # drivers of servers log to the terminal
    with (
        suppress(Exception),
        condgraph.open(store, graph=context.params.get("graph") or "default", read_only=True, **login) as graph,
    ):
        return offered(of(graph.schema(timeout=SECONDS)), incomplete)
    return []


def _store(context: typer.Context) -> str | None:
    """The store that the words before name, or else the environment."""
    store = context.params.get("store")
    return store or next((value for name in STORE_VARIABLES if (value := os.environ.get(name))), None)

"""Shell completion: names from the store of the command line, and words that commands accept.

The user waits for it after a key press, so it reads a store for at most `SECONDS`, offers at most `MAX_OFFERED`
words, and reports no errors. A shell evaluates what it receives (zsh with `eval`), and names are foreign
data: names with characters that have a meaning in a shell are not offered.
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

#: The environment variables that name the store if no argument does. The first one that is set counts.
STORE_VARIABLES: Final = ["CONDGRAPH_STORE", "NEO4J_URI", "NEO4J_URL"]
#: How many seconds a completion may read a store.
SECONDS: Final = 2.0
#: The most words that are offered.
MAX_OFFERED: Final = 200
#: Names that are offered: letters and digits of any script, spaces, and punctuation without a meaning in
#: any shell.
_PLAIN: Final = re.compile(r"[\w .,/+@%-]+").fullmatch
_QUOTES: Final = ("'", '"')


def graphs(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the graphs of the store."""
    from condgraph.engine.snapshot.directory import graph_names

    store = _store(context)
    return [] if store is None or "://" in store else offered(graph_names(Path(store)), incomplete)


def sources(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the sources of the graph."""
    return _names(context, incomplete, lambda schema: (source.name for source in schema.sources))


def concepts(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the concepts of the graph, the largest first."""
    return _names(context, incomplete, lambda schema: (concept.name for concept in schema.concepts))


def predicates(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the predicates of the graph."""
    return _names(context, incomplete, lambda schema: (predicate.name for predicate in schema.predicates))


def formats(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the formats of `load --as`."""
    from condgraph.loaders.recognise import FORMATS

    return offered(FORMATS, incomplete)


def loader_options(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the options of `load -O`, only those of the format if `--as` names one."""
    from condgraph.loaders.recognise import FORMATS

    wanted = context.params.get("form")
    formats = [form for name, form in FORMATS.items() if wanted in (None, name)]
    return offered(dict.fromkeys(f"{option}=" for item in formats for option in item.options), incomplete, plain=False)


def languages(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the languages of programs."""
    from condgraph.languages.registry import OPTIONS

    return offered(OPTIONS, incomplete)


def offered(words: Iterable[str], incomplete: str, *, plain: bool = True) -> list[str]:
    """Return at most `MAX_OFFERED` words that begin with `incomplete`, as the shell expects them.

    Words that a shell would not read as plain words are left out.
    """
    matches = (word for word in words if word.startswith(incomplete) and (not plain or _PLAIN(word)))
    return [_for_shell(word) for word, _ in zip(matches, range(MAX_OFFERED), strict=False)]


def _for_shell(word: str) -> str:
    """Escape the spaces of an unquoted word in bash. Other shells do that themselves."""
    if os.environ.get("_CONDGRAPH_COMPLETE") != "complete_bash":
        return word
    words, at = os.environ.get("COMP_WORDS", "").split("\n"), os.environ.get("COMP_CWORD", "")
    typed = words[int(at)] if at.isdecimal() and int(at) < len(words) else ""
    return word if typed.startswith(_QUOTES) else word.replace(" ", "\\ ")


def _names(context: typer.Context, incomplete: str, of: Callable[[Any], Iterable[str]]) -> list[str]:
    """Return names from the graph of the command line, or none if they are not available in time."""
    import condgraph

    store = _store(context)
    if store is None:
        return []
    values = {name: context.params.get(name) for name in ("user", "password", "database")}
    login: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    logging.disable()  # drivers of servers log to the terminal
    with (
        suppress(Exception),
        condgraph.open(store, graph=context.params.get("graph") or "default", read_only=True, **login) as graph,
    ):
        return offered(of(graph.schema(timeout=SECONDS)), incomplete)
    return []


def _store(context: typer.Context) -> str | None:
    """Return the store named on the command line, or else in the environment."""
    store = context.params.get("store")
    return store or next((value for name in STORE_VARIABLES if (value := os.environ.get(name))), None)

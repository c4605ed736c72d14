"""What servers say in place of results: statuses of HTTP, and words among the results."""

from __future__ import annotations

import re
from typing import Final

from condgraph.engine.errors import DeadlineError, ParseError, StoreError

#: Marks of a server's words about a query that took too long.
_LATE: Final = ("S1T00", "imeout", "timed out", "imed out")
_SHORTER: Final = "its own limit may be shorter than timeout="
#: What an answer ends with that is whole up to a token, and the words behind it.
_WORDS: Final = re.compile(r"[\n\[{}\],>]([A-Z][\w ,:;'-]*+)\.?\s*+\Z")
#: Bytes at the end of an answer that are looked at.
_END: Final = 500


def refused(url: str, code: int, kind: str, said: str) -> StoreError | ParseError | DeadlineError:
    """The error that an HTTP status means."""
    short = " ".join(said.split())[:600]
    if code in (401, 403):
        return StoreError(f"{url} refuses the user or the password", hint="SPARQL_USERNAME and SPARQL_PASSWORD say them")
    if code in (404, 405, 406, 415) or kind == "text/html":
        return StoreError(f"{url} is no SPARQL endpoint: it answers {code}", hint="is the path right?")
    if code == 400:
        return ParseError(f"the server cannot read the query: {short}")
    if code in (408, 504) or any(mark in said for mark in _LATE):
        return DeadlineError(f"the server ended the query: {short}", hint=_SHORTER)
    return StoreError(f"the server says ({code}): {short}")


def broken(url: str, error: SyntaxError, last: bytes) -> StoreError | DeadlineError:
    """The error that results mean which cannot be read to their end; `last` is what came last. A
    server that gives up has begun to answer, and puts its words behind what it has sent.
    """
    words = _WORDS.search(last[-_END:].decode(errors="replace"))
    if words is not None and ("cancel" in words[1] or any(mark in words[1] for mark in _LATE)):
        return DeadlineError(f"the server ended the query: {words[1]}", hint=_SHORTER)
    return StoreError(f"{url} answers what is no SPARQL result: {error}", hint="the server may have ended the query")

"""Differences of stores from SPARQL 1.1, in one place.

A store is recognised by the headers of its responses: `Server`, and for Fuseki, which does not name itself there, the number
that it gives to each request. Virtuoso's parser has memory for some thousand triples of one `INSERT DATA`, and its column store
refuses larger inserts now and then (openlink/virtuoso-opensource#571), so loads use its Graph Store Protocol, or small updates;
Virtuoso prints 6 digits of a double (16 within `STR`), refuses large `VALUES`, replaces the end of an IRI of more than 1,880
bytes by a hash, and reports in headers where it cut a result. Fuseki compares texts as Java does, by units of 16 bits, so that
characters beyond U+FFFF come before U+E000.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Dialect:
    """The features and limits of a kind of store."""

    name: str
    #: Triples of one `INSERT DATA`, and of one request of the Graph Store Protocol.
    update_batch: int
    store_batch: int
    #: Terms of one list of a query.
    list_length: int
    #: The path of its Graph Store Protocol, by the path of its queries.
    stores: tuple[tuple[str, str], ...] = ()
    #: Longest IRI that is stored unchanged, in bytes.
    longest_iri: int | None = None
    #: Whether `VALUES` accepts a long list of terms.
    long_values: bool = True
    #: Whether it reports that it cut triples, as it does for rows.
    says_cut_triples: bool = True
    #: Whether a gathering query has to name each predicate: with a condition on their text, its plans lose
    #: rows.
    names_predicates: bool = False
    #: Whether evidence is gathered with a query for each part: with a union of long parts, its plans
    #: sometimes lose rows, and take ten times as long as the parts.
    gathers_in_parts: bool = False
    #: Whether all but one of several meeting paths become sub-selects: Virtuoso orders their joins by
    #: samples, and may evaluate a sub-select for each row it is joined with.
    selects_paths: bool = True
    #: Whether a path among other patterns is followed from its bound end; Virtuoso follows it from
    #: everywhere.
    joins_paths: bool = True
    #: Whether a path with `+` finds a node that leads back to itself; Virtuoso's never ends where it began.
    finds_cycles: bool = True
    #: Whether one update request takes effect entirely or not at all, as SPARQL 1.1 requires; Virtuoso
    #: commits rows.
    atomic: bool = True
    #: Whether it returns the year of every date; Virtuoso fails on dates outside its own range.
    years: bool = True
    #: Whether it orders joins by the number of triples of each kind.
    counts: bool = False
    #: Whether texts compare by units of UTF-16 instead of code points.
    by_units: bool = False

    def store_url(self, query: str) -> str | None:
        """Return the address of the Graph Store Protocol for an endpoint; None if unknown."""
        parts = urlsplit(query)
        for path, store in self.stores:
            if parts.path.rstrip("/") == path:
                return parts._replace(path=store).geturl()
        return None


STANDARD: Final = Dialect("standard", 5_000, 20_000, 2_000)
VIRTUOSO: Final = Dialect(
    "virtuoso",
    500,
    20_000,
    500,
    stores=(("/sparql", "/sparql-graph-crud"), ("/sparql-auth", "/sparql-graph-crud-auth")),
    longest_iri=1_800,
    long_values=False,
    says_cut_triples=False,
    names_predicates=True,
    gathers_in_parts=True,
    selects_paths=False,
    joins_paths=False,
    finds_cycles=False,
    atomic=False,
    years=False,
    counts=True,
)
OXIGRAPH: Final = Dialect("oxigraph", 5_000, 20_000, 2_000, (("/query", "/store"),))
FUSEKI: Final = Dialect("fuseki", 5_000, 20_000, 2_000, by_units=True)
#: Dialects by name.
DIALECTS: Final = {one.name: one for one in (STANDARD, VIRTUOSO, OXIGRAPH, FUSEKI)}
#: Parts of a server's message about a request that is too large; it is then sent in parts.
TOO_LARGE: Final = ("memory", "(413)", "too large", "10000 lines", "out of seg data")


class Headers(Protocol):
    """The headers of a response, as in `http.client`: names are case-insensitive."""

    def get(self, name: str, default: str = "", /) -> str: ...


def dialect_of(headers: Headers) -> Dialect:
    """Return the dialect of a store by the headers of its responses.

    >>> dialect_of({"Server": "Virtuoso/07.20.3229 (Linux) x86_64-pc-linux-gnu"}).name
    'virtuoso'
    >>> dialect_of({"Fuseki-Request-Id": "12"}).name, dialect_of({"Server": "Apache"}).name
    ('fuseki', 'standard')
    """
    name = headers.get("Server", "").lower()
    if headers.get("Fuseki-Request-Id", "") or "fuseki" in name:
        return FUSEKI
    return VIRTUOSO if name.startswith("virtuoso") else OXIGRAPH if name.startswith("oxigraph") else STANDARD


def cut(things: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield items in lists of at most `size`.

    >>> list(cut("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    batch: list[T] = []
    for thing in things:
        batch.append(thing)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch

"""What stores do otherwise than SPARQL 1.1 says, in one place.

A store is known by the headers of its answers: `Server`, and that of Fuseki, which does not name
itself there, by the numbers it gives to requests. Virtuoso's parser has memory for some thousand
triples of one `INSERT DATA`, and its column store refuses larger inserts now and then
(openlink/virtuoso-opensource#571), so that loading goes by its Graph Store Protocol, or by small
updates; Virtuoso prints 6 digits of a double (16 within `STR`), refuses large `VALUES`, replaces
the end of an IRI of more than 1,880 bytes by a hash, and says in headers where it cut a result.
Fuseki compares texts as Java does, by units of 16 bits, so that characters beyond U+FFFF come
before U+E000.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a kind of store is talked to."""

    name: str
    #: Triples of one `INSERT DATA`, and of one request of the Graph Store Protocol.
    update_batch: int
    store_batch: int
    #: Terms of one list of a query.
    list_length: int
    #: The path of its Graph Store Protocol, by the path of its queries.
    stores: tuple[tuple[str, str], ...] = ()
    #: Bytes of the longest IRI that it keeps as it is.
    longest_iri: int | None = None
    #: Whether it takes a long list of terms in `VALUES`.
    long_values: bool = True
    #: Whether it says where it cut triples, as it does for rows.
    says_cut_triples: bool = True
    #: Whether a gathering query has to name its predicates one by one: of a condition on their text
    #: its plans lose rows.
    names_predicates: bool = False
    #: Whether evidence is gathered with a query for each part: of a union of long parts its plans lose
    #: rows, whenever it is asked, and take ten times as long as the parts.
    gathers_in_parts: bool = False
    #: Whether of paths that meet all but one are sub-selects: Virtuoso orders their joins by samples, and
    #: may work out a sub-select for each row of what it is joined with.
    selects_paths: bool = True
    #: Whether a path among other patterns is followed from its bound end; Virtuoso follows it from everywhere.
    joins_paths: bool = True
    #: Whether one update request is made as a whole or not at all, as SPARQL 1.1 asks; Virtuoso commits rows.
    atomic: bool = True
    #: Whether it tells the year of every date; Virtuoso ends a query over dates that it keeps apart.
    years: bool = True
    #: Whether it orders joins by how many triples there are of each kind.
    counts: bool = False
    #: Whether texts compare by units of UTF-16, and not by code point.
    by_units: bool = False

    def store_url(self, query: str) -> str | None:
        """The address of the Graph Store Protocol that belongs to an endpoint; None where it is not
        known.
        """
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
    atomic=False,
    years=False,
    counts=True,
)
OXIGRAPH: Final = Dialect("oxigraph", 5_000, 20_000, 2_000, (("/query", "/store"),))
FUSEKI: Final = Dialect("fuseki", 5_000, 20_000, 2_000, by_units=True)
#: By name.
DIALECTS: Final = {one.name: one for one in (STANDARD, VIRTUOSO, OXIGRAPH, FUSEKI)}
#: What a server says when a request is too large for it; it is sent in parts then.
TOO_LARGE: Final = ("memory", "(413)", "too large", "10000 lines", "out of seg data")


class Headers(Protocol):
    """The headers of an answer, as `http.client` gives them, whatever the case of their names."""

    def get(self, name: str, default: str = "", /) -> str:
        """The header of a name."""


def dialect_of(headers: Headers) -> Dialect:
    """The dialect of a store by the headers of its answers.

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
    """Things in lists of at most `size`.

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

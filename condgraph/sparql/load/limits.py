"""What a store would not keep as it is, looked for before anything is written: IRIs that are too
long for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from condgraph.engine.errors import LoadError
from condgraph.sparql.dialect import Dialect
from condgraph.sparql.layout import GraphIris, encode

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


def check_loadable(snapshot: Snapshot, names: GraphIris, dialect: Dialect) -> None:
    """Raise `LoadError` where the store would cut a name. Texts may have any length: long ones are
    named by their hash.
    """
    longest = dialect.longest_iri
    if longest is None:
        return
    sources = (snapshot.source_of(i).name for i in range(len(snapshot.arrays.get("src.name"))))
    predicates = (snapshot.predicate_name(i) for i in range(snapshot.predicate_count))
    ids = iter(snapshot.texts.take(snapshot.entity_id))
    parts: tuple[tuple[str, Iterable[str], str], ...] = (
        ("id", ids, ""),
        ("predicate", predicates, ""),
        ("source", sources, ".source/"),
    )
    for what, found, path in parts:
        room = longest - len((names.base + path).encode())
        for name in found:
            # A character takes twelve bytes at most.
            if len(name) * 12 > room and (size := len(encode(name).encode())) > room:
                shown = repr(name if len(name) <= 40 else name[:39] + "…")
                raise LoadError(
                    f"the {what} {shown} takes {size:,} bytes in an IRI, of which {dialect.name} keeps {room:,}",
                    hint="a shorter one, or a store that keeps long IRIs",
                )

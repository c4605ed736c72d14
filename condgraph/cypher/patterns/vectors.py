"""Encodes, stores and reads the vectors of a graph on Neo4j (`cypher.layout.vectors`).

Vectors of the lexical encoder are not fetched, since computing them is faster. They are stored with fewer dimensions, since
candidates are ranked by exact distances afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.layout import vectors as layout
from condgraph.cypher.layout.schema import VECTOR_KEYS, index_key
from condgraph.vectors.encoders import Encoder, FloatMatrix, LexicalEncoder, encode, encoder_of, spec_of
from condgraph.vectors.stored import CHUNK, About, IndexReport

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection
    from condgraph.patterns.remote.catalogue import Catalogue

#: Most dimensions of lexical vectors in an index of the server.
LEXICAL: Final = 1024
_OF_KIND: Final = layout.of_kind("n", "$kind", "IS NOT NULL")
_KEYS: Final = f"{_OF_KIND} RETURN {layout.key('n')} AS key"
_PACKED: Final = f"{_OF_KIND} RETURN {layout.text('n')} AS text, {layout.packed('n')} AS packed"


def index_of(connection: Connection, graph: str) -> About | None:
    """Return the encoder of a graph's vectors; None if it has none."""
    rows = connection.read(layout.ABOUT, {"graph": graph})
    return About(rows[0]["id"], rows[0]["dimension"], rows[0]["spec"]) if rows else None


def indexed_content(connection: Connection, graph: str) -> str | None:
    """Return the content from which a graph's index was built; None if there is none."""
    rows = connection.values(layout.CONTENT, {"graph": graph})
    return rows[0][0] if rows else None


def make_index(
    connection: Connection,
    graph: str,
    content: str,
    catalogue: Catalogue,
    encoder: Encoder | str,
    on_progress: Callable[[int, int], None] | None,
) -> IndexReport:
    """Encode what is new, write it in batches, and create the vector index; vectors of another encoder are deleted first."""
    begin = time.perf_counter()
    chosen = encoder_of(encoder)
    index = About(chosen.id, chosen.dimension, spec_of(chosen))
    previous = index_of(connection, graph)
    if previous is not None and (previous.id, previous.dimension) != (index.id, index.dimension):
        drop(connection, graph)
    connection.schema(VECTOR_KEYS.text)
    stored_encoder = LexicalEncoder(min(chosen.dimension, LEXICAL)) if isinstance(chosen, LexicalEncoder) else chosen
    texts_by_kind = {"node": sorted(set(catalogue.labels)), "predicate": catalogue.predicate_names}
    new_texts: dict[str, list[str]] = {}
    for kind, texts in texts_by_kind.items():
        stored_keys = {row["key"] for row in connection.read(_KEYS, {"graph": graph, "kind": kind})}
        new_texts[kind] = [text for text in texts if index_key(text) not in stored_keys]
    total, done = sum(map(len, texts_by_kind.values())), sum(map(len, texts_by_kind.values())) - sum(map(len, new_texts.values()))
    for kind, texts in new_texts.items():
        query = layout.write(graph, kind)
        for start in range(0, len(texts), CHUNK):
            part = texts[start : start + CHUNK]
            rows = _rows(
                part, encode(stored_encoder, part), packed=stored_encoder is chosen and not isinstance(chosen, LexicalEncoder)
            )
            connection.write(query, {"graph": graph, "kind": kind, "rows": rows})
            done += len(part)
            if on_progress is not None:
                on_progress(done, total)
    connection.schema(layout.make_index(graph, stored_encoder.dimension))
    connection.schema("CALL db.awaitIndexes(600)")
    connection.write(
        layout.WRITE_ABOUT,
        {"graph": graph, "id": index.id, "dimension": index.dimension, "spec": index.spec, "content": content},
    )
    counts, name = (len(texts_by_kind["node"]), len(texts_by_kind["predicate"])), f"Neo4j's {layout.index_name(graph)}"
    encoded = sum(map(len, new_texts.values()))
    return IndexReport(index.id, index.dimension, *counts, encoded, name, time.perf_counter() - begin)


def _rows(texts: Sequence[str], matrix: FloatMatrix, *, packed: bool) -> list[list[Any]]:
    """Return rows: key, text, the vector as bytes, and as numbers unless it is zero."""
    data = matrix.astype("<f4")
    directed = np.abs(matrix).max(axis=1, initial=0.0) > 0
    return [
        [index_key(text), text, data[index].tobytes() if packed else None, matrix[index].tolist() if directed[index] else None]
        for index, text in enumerate(texts)
    ]


def fetch(connection: Connection, graph: str, dimension: int) -> dict[str, NDArray[np.float32]]:
    """Return all vectors of a graph by text."""
    vectors = {}
    for kind in ("node", "predicate"):
        for row in connection.read(_PACKED, {"graph": graph, "kind": kind}):
            if row["packed"] is not None and len(row["packed"]) == 4 * dimension:
                vectors[row["text"]] = np.frombuffer(row["packed"], "<f4").astype(np.float32)
    return vectors


def drop(connection: Connection, graph: str) -> None:
    """Delete the vectors of a graph and their index."""
    connection.schema(f"DROP INDEX {layout.index_name(graph)} IF EXISTS")
    while connection.write(layout.DROP, {"graph": graph}).deleted:
        pass
    connection.write(layout.FORGET, {"graph": graph})

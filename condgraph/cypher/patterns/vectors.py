"""The vectors of a graph on Neo4j: kept there once for each distinct name, with a vector index over
those of nodes.

    (:Vectors {graph, encoder, dimension, spec, content})        whose vectors, and of which content of the graph
    (:Embedding {graph, kind, key, text, packed, vector})        kind "node" or "predicate"; those of nodes have the graph's label

The labels are those of `cypher.layout.schema`.

`packed` holds the vector as bytes, which is how it is fetched for exact distances; `vector` is what
the index reads. Vectors of the lexical encoder are not fetched, since they are made faster than
they travel, and stand there in fewer dimensions, since candidates are ranked by exact distances
afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.layout.schema import EMBEDDING, VECTOR_KEYS, VECTORS, index_key
from condgraph.vectors.encode_new import CHUNK
from condgraph.vectors.encoder import Encoder, FloatMatrix, LexicalEncoder
from condgraph.vectors.encoders import encode, encoder_of, spec_of
from condgraph.vectors.graph_vectors import About
from condgraph.vectors.stored import IndexReport

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection
    from condgraph.patterns.remote.catalogue import Catalogue

#: The most dimensions of lexical vectors in an index of the server.
LEXICAL: Final = 1024
_ABOUT: Final = f"MATCH (i:{VECTORS} {{graph: $graph}}) RETURN i.encoder AS id, i.dimension AS dimension, i.spec AS spec"
_KNOWN: Final = f"MATCH (n:{EMBEDDING}) WHERE n.graph = $graph AND n.kind = $kind AND n.key IS NOT NULL RETURN n.key AS key"
_PACKED: Final = (
    f"MATCH (n:{EMBEDDING}) WHERE n.graph = $graph AND n.kind = $kind AND n.key IS NOT NULL "
    "RETURN n.text AS text, n.packed AS packed"
)
_WRITE: Final = (
    f"UNWIND $rows AS r MERGE (n:{EMBEDDING} {{graph: $graph, kind: $kind, key: r[0]}}) SET n.text = r[1], n.packed = r[2]%s "
    "WITH n, r WHERE r[3] IS NOT NULL CALL db.create.setNodeVectorProperty(n, 'vector', r[3])"
)
_DROP: Final = (
    f"MATCH (n:{EMBEDDING}) WHERE n.graph = $graph AND n.kind IN ['node', 'predicate'] AND n.key IS NOT NULL "
    "WITH n LIMIT 20000 DETACH DELETE n"
)


def index_name(graph: str) -> str:
    """The name of the vector index of a graph, and the label of what it indexes."""
    return "condgraph_vectors_" + blake2b(graph.encode(), digest_size=6).hexdigest()


def index_of(connection: Connection, graph: str) -> About | None:
    """Whose vectors a graph has; None where it has none."""
    rows = connection.read(_ABOUT, {"graph": graph})
    return About(rows[0]["id"], rows[0]["dimension"], rows[0]["spec"]) if rows else None


def indexed_content(connection: Connection, graph: str) -> str | None:
    """Of which content of a graph its index is; None where it has none."""
    rows = connection.values(f"MATCH (i:{VECTORS} {{graph: $graph}}) RETURN i.content", {"graph": graph})
    return rows[0][0] if rows else None


def make_index(
    connection: Connection,
    graph: str,
    content: str,
    catalogue: Catalogue,
    encoder: Encoder | str,
    on_progress: Callable[[int, int], None] | None,
) -> IndexReport:
    """Encode what is new, write it in batches, and make the vector index; vectors of another
    encoder go first.
    """
    begin = time.perf_counter()
    asked = encoder_of(encoder)
    about = About(asked.id, asked.dimension, spec_of(asked))
    before = index_of(connection, graph)
    if before is not None and (before.id, before.dimension) != (about.id, about.dimension):
        drop(connection, graph)
    connection.schema(VECTOR_KEYS.text)
    name = index_name(graph)
    held = LexicalEncoder(min(asked.dimension, LEXICAL)) if isinstance(asked, LexicalEncoder) else asked
    wanted = {"node": sorted(set(catalogue.labels)), "predicate": catalogue.predicate_names}
    fresh: dict[str, list[str]] = {}
    for kind, texts in wanted.items():
        known = {row["key"] for row in connection.read(_KNOWN, {"graph": graph, "kind": kind})}
        fresh[kind] = [text for text in texts if index_key(text) not in known]
    total, done = sum(map(len, wanted.values())), sum(map(len, wanted.values())) - sum(map(len, fresh.values()))
    for kind, texts in fresh.items():
        label = f", n:{name}" if kind == "node" else ""
        for start in range(0, len(texts), CHUNK):
            part = texts[start : start + CHUNK]
            rows = _rows(part, encode(held, part), packed=held is asked and not isinstance(asked, LexicalEncoder))
            connection.write(_WRITE % label, {"graph": graph, "kind": kind, "rows": rows})
            done += len(part)
            if on_progress is not None:
                on_progress(done, total)
    connection.schema(
        f"CREATE VECTOR INDEX {name} IF NOT EXISTS FOR (n:{name}) ON (n.vector) OPTIONS {{indexConfig: {{"
        f"`vector.dimensions`: {held.dimension}, `vector.similarity_function`: 'cosine', `vector.quantization.enabled`: false}}}}"
    )
    connection.schema("CALL db.awaitIndexes(600)")
    connection.write(
        f"MERGE (i:{VECTORS} {{graph: $graph}}) "
        "SET i.encoder = $id, i.dimension = $dimension, i.spec = $spec, i.content = $content",
        {"graph": graph, "id": about.id, "dimension": about.dimension, "spec": about.spec, "content": content},
    )
    counts = len(wanted["node"]), len(wanted["predicate"])
    encoded = sum(map(len, fresh.values()))
    return IndexReport(about.id, about.dimension, *counts, encoded, f"Neo4j's {name}", time.perf_counter() - begin)


def _rows(texts: Sequence[str], matrix: FloatMatrix, *, packed: bool) -> list[list[Any]]:
    """Key, text, the vector as bytes, and as numbers where it has a direction."""
    data = matrix.astype("<f4")
    directed = np.abs(matrix).max(axis=1, initial=0.0) > 0
    return [
        [index_key(text), text, data[at].tobytes() if packed else None, matrix[at].tolist() if directed[at] else None]
        for at, text in enumerate(texts)
    ]


def fetch(connection: Connection, graph: str, dimension: int) -> dict[str, NDArray[np.float32]]:
    """All vectors of a graph by text."""
    found = {}
    for kind in ("node", "predicate"):
        for row in connection.read(_PACKED, {"graph": graph, "kind": kind}):
            if row["packed"] is not None and len(row["packed"]) == 4 * dimension:
                found[row["text"]] = np.frombuffer(row["packed"], "<f4").astype(np.float32)
    return found


def drop(connection: Connection, graph: str) -> None:
    """Take the vectors of a graph away, and their index."""
    connection.schema(f"DROP INDEX {index_name(graph)} IF EXISTS")
    while connection.write(_DROP, {"graph": graph}).deleted:
        pass
    connection.write(f"MATCH (i:{VECTORS} {{graph: $graph}}) DELETE i", {"graph": graph})

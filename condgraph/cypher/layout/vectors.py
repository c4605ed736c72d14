"""Vectors of a graph's names in Neo4j: one for each distinct name, with a vector index over those of nodes.

    (:Vectors {graph, encoder, dimension, spec, content})        the encoder, and the content of the graph that was encoded
    (:Embedding {graph, kind, key, text, packed, vector})        kind "node" or "predicate"; those of nodes have the graph's label

The labels are those of `cypher.layout.schema`. `packed` holds the vector as bytes, fetched for exact distances; `vector` is
what the index reads.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from condgraph.cypher.layout.schema import EMBEDDING, VECTORS

#: Embeddings deleted in one transaction.
_BATCH: Final = 20_000

#: Reads the encoder of a graph's vectors.
ABOUT: Final = f"MATCH (i:{VECTORS} {{graph: $graph}}) RETURN i.encoder AS id, i.dimension AS dimension, i.spec AS spec"
#: Reads the content that was encoded.
CONTENT: Final = f"MATCH (i:{VECTORS} {{graph: $graph}}) RETURN i.content"
#: Writes the encoder and the content.
WRITE_ABOUT: Final = (
    f"MERGE (i:{VECTORS} {{graph: $graph}}) SET i.encoder = $id, i.dimension = $dimension, i.spec = $spec, i.content = $content"
)
#: Deletes the record of the encoder.
FORGET: Final = f"MATCH (i:{VECTORS} {{graph: $graph}}) DELETE i"


def index_name(graph: str) -> str:
    """Return the name of a graph's vector index, which is also the label of the indexed nodes."""
    return "condgraph_vectors_" + blake2b(graph.encode(), digest_size=6).hexdigest()


def of_kind(n: str, kind: str, test: str) -> str:
    """Return the MATCH for embeddings of a kind whose keys pass a test, which an index answers."""
    return f"MATCH ({n}:{EMBEDDING}) WHERE {n}.graph = $graph AND {n}.kind = {kind} AND {key(n)} {test}"


def key(n: str) -> str:
    """Return the name as it is indexed."""
    return f"{n}.key"


def text(n: str) -> str:
    return f"{n}.text"


def packed(n: str) -> str:
    """Return the vector as bytes."""
    return f"{n}.packed"


def write(graph: str, kind: str) -> str:
    """Return the query that writes rows: key, text, the vector as bytes, and as numbers unless it is zero."""
    label = f", n:{index_name(graph)}" if kind == "node" else ""
    return (
        f"UNWIND $rows AS r MERGE (n:{EMBEDDING} {{graph: $graph, kind: $kind, key: r[0]}}) "
        f"SET n.text = r[1], n.packed = r[2]{label} "
        "WITH n, r WHERE r[3] IS NOT NULL CALL db.create.setNodeVectorProperty(n, 'vector', r[3])"
    )


def make_index(graph: str, dimension: int) -> str:
    name = index_name(graph)
    return (
        f"CREATE VECTOR INDEX {name} IF NOT EXISTS FOR (n:{name}) ON (n.vector) OPTIONS {{indexConfig: {{"
        f"`vector.dimensions`: {dimension}, `vector.similarity_function`: 'cosine', `vector.quantization.enabled`: false}}}}"
    )


#: Deletes a batch of embeddings.
DROP: Final = (
    f"MATCH (n:{EMBEDDING}) WHERE n.graph = $graph AND n.kind IN ['node', 'predicate'] AND n.key IS NOT NULL "
    f"WITH n LIMIT {_BATCH} DETACH DELETE n"
)

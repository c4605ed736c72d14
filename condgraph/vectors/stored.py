"""Making the vectors of a graph, and keeping them beside its generations, so that a later
generation encodes only what is new.

    STORE/GRAPH/vectors/index.json       whose vectors, of which generation, and the table of the arrays
    STORE/GRAPH/vectors/HASH.arrays      the arrays; HASH.faiss where an index of FAISS was asked for
    STORE/GRAPH/vectors/part-*.npz       what an unfinished run has encoded so far; the next run takes it

Texts are known by 128-bit hashes. A run writes beside what is there and switches by renaming
`index.json`, so that readers have the old vectors or the new ones. Vectors of the lexical encoder
are kept as sparse columns, and are made anew each time: that is quick.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from condgraph.engine.errors import OptionError, StoreDamagedError, StoreError, StoreVersionError
from condgraph.engine.snapshot.container import ArrayFile, write_arrays
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.workers import shared
from condgraph.vectors.approximate import Approximate, crc_of
from condgraph.vectors.carry import BEFORE, KEPT
from condgraph.vectors.encode_new import Keys, encode_new, keys_of, parts_in
from condgraph.vectors.encoder import Encoder, FloatMatrix, LexicalEncoder, Sparse
from condgraph.vectors.encoders import DIMENSION, HYBRID, encoder_of, spec_of
from condgraph.vectors.graph_vectors import About, GraphVectors, OnProgress, matching, node_texts, predicate_names
from condgraph.vectors.nearest import DenseVectors, SparseVectors, Vectors

FORMAT: Final = 1
_AGAIN: Final = "make the index again: `condgraph index`, `graph.index(...)`"


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What making an index did: whose vectors, of how many nodes and predicates, and how many texts
    had to be encoded.
    """

    encoder: str
    dimension: int
    nodes: int
    predicates: int
    encoded: int
    approximate: str | None
    seconds: float

    def __str__(self) -> str:
        beside = f", {self.approximate} beside them" if self.approximate else ""
        return (
            f"indexed {self.nodes:,} nodes and {self.predicates:,} predicates by {self.encoder} ({self.dimension} dimensions), "
            f"{self.encoded:,} of them encoded now{beside}, in {self.seconds:.2f} s"
        )


def place_of(snapshot: Snapshot) -> Path | None:
    """The folder of a graph's vectors; None for a graph in memory."""
    generation = snapshot.folder
    return None if generation is None else generation.parent / "vectors"


def make_vectors(
    snapshot: Snapshot,
    encoder: Encoder | str = "lexical",
    *,
    approximate: bool = False,
    on_progress: OnProgress | None = None,
) -> tuple[GraphVectors, IndexReport]:
    """Encode the nodes and predicates of a generation, keep the vectors, and make them the graph's.

    Vectors that the same encoder made before, for this generation or an earlier one, are taken as
    they are. `approximate` makes an index of FAISS, too.
    """
    begin = time.perf_counter()
    encoder = encoder_of(encoder)
    about = About(encoder.id, encoder.dimension, spec_of(encoder))
    nodes, predicates = snapshot.texts.take(node_texts(snapshot)), predicate_names(snapshot)
    place = place_of(snapshot)
    fresh = len(nodes) + len(predicates)
    arrays: dict[str, NDArray[Any]] = {}
    both: tuple[Vectors, Vectors]
    if isinstance(encoder, LexicalEncoder):
        if approximate:
            raise OptionError("the search by the lexical encoder is exact and takes no other index", hint="leave `faiss` out")
        rows = encoder.sparse(nodes)
        arrays = {"indptr": rows.indptr, "indices": rows.indices, "data": rows.data}
        both = SparseVectors(rows), SparseVectors(encoder.sparse(predicates))
        if on_progress is not None:
            on_progress(fresh, fresh)
    else:
        keys = keys_of([*nodes, *predicates])
        matrix, fresh = encode_new(encoder, [*nodes, *predicates], keys, _known(snapshot, about), place, on_progress)
        arrays = {"keys": keys.ravel(), "matrix": matrix.ravel()}
        both = DenseVectors(matrix[: len(nodes)]), DenseVectors(matrix[len(nodes) :])
    index = Approximate.of(both[0]) if approximate and isinstance(both[0], DenseVectors) else None
    found = GraphVectors(snapshot, about, *both, encoder=encoder, approximate=index)
    if place is not None:
        _write(place, snapshot, about, arrays, index)
    snapshot.schema.kept[KEPT] = found
    report = IndexReport(
        about.id,
        about.dimension,
        len(nodes),
        len(predicates),
        fresh,
        None if index is None else index.name,
        time.perf_counter() - begin,
    )
    return found, report


def vectors_of(snapshot: Snapshot, encoder: Encoder | str | None = None) -> GraphVectors:
    """The vectors of a generation: those of the graph's index, else those of the lexical encoder,
    which need none.

    An index of an earlier generation is brought up to date first. Raises `EncoderMismatchError`
    where `encoder` is another one than the index's; the lexical encoder can always be asked for.
    """
    kept = _open(snapshot)
    asked = None if encoder is None else encoder_of(encoder)
    if kept is not None and (asked is None or not isinstance(asked, LexicalEncoder)):
        if asked is not None:
            kept.use(asked)
        return kept
    if asked is not None and not isinstance(asked, LexicalEncoder):
        return make_vectors(snapshot, asked)[0]
    lexical = asked or LexicalEncoder(DIMENSION)
    if kept is not None and (kept.about.id, kept.about.dimension) == (lexical.id, lexical.dimension):
        return kept
    name = f"vectors {lexical.id} {lexical.dimension}"

    def make() -> GraphVectors:
        both = (SparseVectors(lexical.sparse(texts)) for texts in (_nodes(snapshot), predicate_names(snapshot)))
        about = About(lexical.id, lexical.dimension, spec_of(lexical))
        return GraphVectors(snapshot, about, *both, encoder=lexical)

    found = shared(snapshot.schema.kept, name, make)
    assert isinstance(found, GraphVectors)
    return found


def _nodes(snapshot: Snapshot) -> list[str]:
    return snapshot.texts.take(node_texts(snapshot))


def index_of(snapshot: Snapshot) -> About | None:
    """Whose vectors the graph's index has; None where there is no index."""
    found = snapshot.schema.kept.get(KEPT)
    if isinstance(found, GraphVectors):
        return found.about
    place = place_of(snapshot)
    manifest = None if place is None else _manifest(place)
    return None if manifest is None else _about(manifest)


# -- reading ---------------------------------------------------------------------------------------


def _open(snapshot: Snapshot) -> GraphVectors | None:
    """The kept vectors for exactly this generation, completed where they are of an earlier one."""
    found = snapshot.schema.kept.get(KEPT)
    if isinstance(found, GraphVectors):
        return found
    place = place_of(snapshot)
    if place is None:
        before = snapshot.schema.kept.get(BEFORE)
        return make_vectors(snapshot, before.encoder)[0] if isinstance(before, GraphVectors) else None
    manifest = _manifest(place)
    if manifest is None:
        return None
    about = _about(manifest)
    if manifest["generation"] != snapshot.about.get("generation"):
        encoder = matching(about, encoder_of(_spec(about)))
        return make_vectors(snapshot, encoder, approximate=bool(manifest["faiss"]))[0]
    arrays = ArrayFile(place / manifest["file"], manifest["arrays"])
    nodes, predicates = len(node_texts(snapshot)), predicate_names(snapshot)
    both: tuple[Vectors, Vectors]
    if "indptr" in manifest["arrays"]:
        lexical = LexicalEncoder(about.dimension)
        if not about.id.startswith(HYBRID):
            matching(about, lexical)
        rows = Sparse(arrays.get("indptr"), arrays.get("indices"), arrays.get("data"), about.dimension)
        _fits(len(rows) == nodes, place)
        both = SparseVectors(rows), SparseVectors(lexical.sparse(predicates))
    else:
        matrix = arrays.get("matrix")
        _fits(matrix.size == (nodes + len(predicates)) * about.dimension, place)
        matrix = matrix.reshape(-1, about.dimension)
        both = DenseVectors(matrix[:nodes]), DenseVectors(matrix[nodes:])
    index = None
    if manifest["faiss"]:
        kept = manifest["faiss"]
        index = Approximate.read(place / kept["file"], kept["name"], nodes, about.dimension, kept.get("crc"))
    found = snapshot.schema.kept[KEPT] = GraphVectors(snapshot, about, *both, approximate=index)
    return found


def _fits(fits: bool, place: Path) -> None:
    if not fits:
        raise StoreDamagedError(f"the vectors in {place} do not fit the graph", hint=_AGAIN)


def _spec(about: About) -> str:
    if not about.spec:
        raise OptionError(
            f"the index was made by an encoder of the caller's own, {about}, and the graph has changed since",
            hint="make the index again with graph.index(encoder)",
        )
    return about.spec


def _manifest(place: Path) -> dict[str, Any] | None:
    path = place / "index.json"
    try:
        manifest: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if "crc" in manifest and manifest.pop("crc") != _crc(manifest):
            raise ValueError("it is not what was written")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StoreDamagedError(f"{path} cannot be read: {error}", hint=_AGAIN) from None
    if manifest.get("format") != FORMAT:
        raise StoreVersionError(f"{path} has format {manifest.get('format')}, this version reads {FORMAT}", hint=_AGAIN)
    return manifest


def _crc(manifest: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(manifest).encode())


def _about(manifest: Mapping[str, Any]) -> About:
    return About(manifest["id"], manifest["dimension"], manifest["spec"])


# -- encoding and writing --------------------------------------------------------------------------


def _known(snapshot: Snapshot, about: About) -> list[tuple[Keys, FloatMatrix]]:
    """Vectors that the same encoder made before: of the last generation, of an unfinished run, or
    in memory.
    """
    found: list[tuple[Keys, FloatMatrix]] = []
    kept, place = snapshot.schema.kept, place_of(snapshot)
    before = kept.get(KEPT, kept.get(BEFORE))
    if (
        place is None
        and isinstance(before, GraphVectors)
        and (before.about.id, before.about.dimension) == (about.id, about.dimension)
    ):
        for texts, vectors in ((_nodes(before.snapshot), before.nodes), (before.predicate_names, before.predicates)):
            if isinstance(vectors, DenseVectors):
                found.append((keys_of(texts), vectors.matrix))
    if place is None:
        return found
    # What cannot be read is encoded again.
    with suppress(StoreError):
        manifest = _manifest(place)
        if (
            manifest is not None
            and (manifest["id"], manifest["dimension"]) == (about.id, about.dimension)
            and "keys" in manifest["arrays"]
        ):
            arrays = ArrayFile(place / manifest["file"], manifest["arrays"])
            found.append((arrays.get("keys").reshape(-1, 2), arrays.get("matrix").reshape(-1, about.dimension)))
    found.extend(part for _, part in parts_in(place, about))
    return found


def _write(place: Path, snapshot: Snapshot, about: About, arrays: Mapping[str, NDArray[Any]], index: Approximate | None) -> None:
    """Write the arrays beside the old ones, switch to them, and remove what is not used any more."""
    try:
        place.mkdir(exist_ok=True)
        parts = list(place.glob("part-*.npz"))
        name = f"{blake2b(f'{os.getpid()} {time.time_ns()}'.encode(), digest_size=8).hexdigest()}"
        table = write_arrays(place / f"{name}.arrays", arrays)
        faiss = None
        if index is not None:
            path = place / f"{name}.faiss"
            index.write(path)
            faiss = {"file": path.name, "name": index.name, "crc": crc_of(path)}
        manifest = {
            "format": FORMAT,
            "id": about.id,
            "dimension": about.dimension,
            "spec": about.spec,
            "generation": snapshot.about.get("generation", ""),
            "file": f"{name}.arrays",
            "arrays": table,
            "faiss": faiss,
        }
        fresh = place / f".index.json.{os.getpid()}"
        fresh.write_text(json.dumps(manifest | {"crc": _crc(manifest)}), "utf-8")
        os.replace(fresh, place / "index.json")
        for path in [*parts, *place.glob("*.arrays"), *place.glob("*.faiss")]:
            if path.stem != name:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"the vectors cannot be written to {place}: {error.strerror}") from error

"""The vectors of a graph, stored next to its generations, so that a later generation encodes only new texts. Those of
graphs on servers are cached on this machine.

    STORE/GRAPH/vectors/index.json       the encoder, the generation, and the table of the arrays
    STORE/GRAPH/vectors/HASH.arrays      the arrays; HASH.faiss is the FAISS index, if there is one
    STORE/GRAPH/vectors/part-*.npz       texts encoded by an unfinished run, which the next run reuses

Texts are identified by 128-bit hashes. A run writes new files and switches to them by renaming `index.json`, so readers
see either the old vectors or the new ones. Vectors of the lexical encoder are stored as sparse columns, and are
computed anew each time, which is fast.
"""

from __future__ import annotations

import json
import os
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import cached, different, shared
from condgraph.engine.errors import EncoderMismatchError, OptionError, StoreDamagedError, StoreError, StoreVersionError
from condgraph.engine.snapshot.container import ArrayFile, write_arrays
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Kind
from condgraph.vectors import encoders
from condgraph.vectors.carry import KEPT, PREVIOUS
from condgraph.vectors.nearest import Approximate, DenseVectors, Distances, Positions, Query, SparseVectors, Vectors, crc_of

# -- The vectors of one generation -------------------------------------------------------------------
# Nodes are the names of entities, concepts and rows, and the text values of attributes: distinct texts
# by ascending number in the snapshot's texts. Predicates are all predicates and qualifier keys, and the
# names of memberships.


Numbers: TypeAlias = NDArray[np.int32]
#: Called with the number of texts encoded so far, and of all.
OnProgress: TypeAlias = Callable[[int, int], None]
#: The edges of patterns that are not statements: membership and subclasses.
EDGES: Final = ("instance of", "subclass of")
#: The most query vectors in the cache.
_MAX_CACHED: Final = 4096


@dataclass(frozen=True, slots=True)
class About:
    """The encoder of stored vectors: its id, its dimension, and its name for `encoder_of` (empty for a caller's own
    encoder).
    """

    id: str
    dimension: int
    spec: str = ""

    def __str__(self) -> str:
        return encoders.label(self.id, self.dimension)


class GraphVectors:
    """Distances from a text to the nodes and predicates of one generation. Safe to use from any thread.

    `node_texts` are text numbers of the snapshot, shape (n,), ascending; `nodes` has their vectors. `predicate_names`
    and `predicates` correspond likewise. `approximate` is an optional index that finds near nodes faster and may miss
    some.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        about: About,
        nodes: Vectors,
        predicates: Vectors,
        *,
        encoder: encoders.Encoder | None = None,
        approximate: Approximate | None = None,
    ) -> None:
        self.snapshot, self.about = snapshot, about
        self.nodes, self.predicates, self.approximate = nodes, predicates, approximate
        self.node_texts = node_texts(snapshot)
        self.predicate_names = predicate_names(snapshot)
        self._encoder = encoder
        self._queries: dict[str, Query] = {}

    @property
    def encoder(self) -> encoders.Encoder:
        """The encoder, made on first use. Raises `EncoderMismatchError` if it is no longer the one that made the
        vectors.
        """
        if self._encoder is None:
            self._encoder = matching(self.about, encoders.encoder_of(self.about.spec))
        return self._encoder

    def use(self, encoder: encoders.Encoder) -> None:
        """Encode with this encoder; raises `EncoderMismatchError` if it did not make the vectors."""
        self._encoder = matching(self.about, encoder)

    def vectors(self, texts: Sequence[str]) -> list[Query]:
        """Return the vectors of texts. Texts that are not in the cache are encoded in one call."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._queries]
        if fresh:
            vectors = encoders.encode(self.encoder, fresh)
            if len(self._queries) + len(fresh) > _MAX_CACHED:
                self._queries = {text: self._queries[text] for text in texts if text in self._queries}
            self._queries.update(zip(fresh, vectors, strict=True))
        return [self._queries[text] for text in texts]

    def vector(self, text: str) -> Query:
        """Return the vector of a text, shape (dimension,), float32."""
        return self.vectors([text])[0]

    # -- nodes -------------------------------------------------------------------------------------

    @cached
    def entity_positions(self) -> Numbers:
        """The position in `node_texts` of the name of each entity, shape (E,)."""
        return self.node_texts.searchsorted(self.snapshot.entity_name).astype(np.int32)

    def positions_of(self, texts: NDArray[np.integer]) -> Positions:
        """Return the positions in `node_texts` of texts (text numbers, all of them nodes)."""
        return self.node_texts.searchsorted(texts).astype(np.int64)

    def node_distances(self, text: str, positions: Positions | None = None) -> Distances:
        """Return the exact distances of a text from all nodes, or those at `positions`, in millionths."""
        return self.nodes.distances(self.vector(text), positions)

    def nearest_nodes(self, text: str, k: int, *, exact: bool = True) -> tuple[Positions, Distances, str | None]:
        """Return the k nearest nodes: positions in `node_texts`, exact distances, and the name of the approximate index
        that found them, or None if every node was compared.
        """
        query = self.vector(text)
        if exact or self.approximate is None:
            return *self.nodes.nearest(query, k), None
        return *self.approximate.nearest(query, k, self.nodes), self.approximate.name

    def entities_at(self, position: int) -> range:
        """Return the entities whose name is at a position of `node_texts`. Entities are numbered by name."""
        positions = self.entity_positions
        return range(int(positions.searchsorted(position)), int(positions.searchsorted(position, "right")))


def matching(about: About, encoder: encoders.Encoder) -> encoders.Encoder:
    """Return the encoder if it made the vectors; otherwise raise `EncoderMismatchError` with both names."""
    if (encoder.id, encoder.dimension) != (about.id, about.dimension):
        raise EncoderMismatchError(str(about), encoders.label(encoder.id, encoder.dimension))
    return encoder


def node_texts(snapshot: Snapshot) -> Numbers:
    """Return the text numbers of all nodes, ascending: names of entities, concepts and rows, and text values."""
    array_of = snapshot.arrays.get
    values = array_of("att.ref")[array_of("att.kind") == Kind.TEXT] if len(array_of("att.kind")) else np.empty(0, np.int32)
    result: Numbers = different(np.concatenate([snapshot.entity_name, values])).astype(np.int32)
    return result


def predicate_names(snapshot: Snapshot) -> tuple[str, ...]:
    """Return all predicates and qualifier keys, then the names of memberships that are not among them."""
    names = [snapshot.predicate_name(number) for number in range(snapshot.predicate_count)]
    return (*names, *(edge for edge in EDGES if snapshot.predicate(edge) < 0))


# -- Encoding what is new ----------------------------------------------------------------------------
# Vectors are identified by hashes of texts. A run saves the vectors that it has encoded at intervals.


#: The number of texts encoded between two calls of `on_progress`.
CHUNK: Final = 2048
#: The interval at which encoded vectors are saved, in seconds.
SAFE_EVERY: Final = 20.0
Keys = NDArray[np.uint64]


def keys_of(texts: Sequence[str]) -> Keys:
    """Return 128-bit hashes of texts, shape (n, 2)."""
    joined = b"".join(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts)
    return np.frombuffer(joined, "<u8").astype(np.uint64, copy=False).reshape(-1, 2)


def parts_in(place: Path, about: About) -> Iterator[tuple[Path, tuple[Keys, encoders.FloatMatrix]]]:
    """Yield the files that unfinished runs of the same encoder left in a folder, with their keys and vectors.
    Unreadable ones are skipped.
    """
    for part in place.glob("part-*.npz"):
        vectors = read_part(part, about)
        if vectors is not None:
            yield part, vectors


def read_part(path: Path, about: About) -> tuple[Keys, encoders.FloatMatrix] | None:
    """Return the keys and vectors in a file; None if it is damaged or of another encoder."""
    with (
        suppress(OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error),
        np.load(path, allow_pickle=False) as arrays,
    ):
        if bytes(arrays["id"]).decode() == about.id and arrays["matrix"].shape[1:] == (about.dimension,):
            return arrays["keys"], arrays["matrix"]
    return None


def encode_new(
    encoder: encoders.Encoder,
    texts: Sequence[str],
    keys: Keys,
    known: Iterable[tuple[Keys, encoders.FloatMatrix]],
    place: Path | None,
    on_progress: OnProgress | None,
) -> tuple[encoders.FloatMatrix, int]:
    """Return the matrix of all texts, and the number of texts that were encoded; `known` are vectors to reuse."""
    matrix = np.empty((len(texts), encoder.dimension), np.float32)
    missing = np.ones(len(texts), bool)
    for known_keys, vectors in known:
        at = find(known_keys, keys)
        reused = missing & (at >= 0)
        matrix[reused] = vectors[at[reused]]
        missing &= ~reused
    new_texts = np.flatnonzero(missing)
    done, saved, since = 0, 0, time.monotonic()
    for start in range(0, len(new_texts), CHUNK):
        chunk = new_texts[start : start + CHUNK]
        matrix[chunk] = encoders.encode(encoder, [texts[at] for at in chunk.tolist()])
        done = start + len(chunk)
        if on_progress is not None:
            on_progress(len(texts) - len(new_texts) + done, len(texts))
        if place is not None and done < len(new_texts) and time.monotonic() - since > SAFE_EVERY:
            unsaved = new_texts[saved:done]
            write_part(place, f"part-{os.getpid()}-{time.time_ns()}.npz", encoder.id, keys[unsaved], matrix[unsaved])
            saved, since = done, time.monotonic()
    if on_progress is not None and not len(new_texts):
        on_progress(len(texts), len(texts))
    return matrix, len(new_texts)


def find(have: Keys, wanted: Keys) -> NDArray[np.int64]:
    """Return the position in `have` of each wanted key, or -1."""
    if not len(have):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(have[:, 0], kind="stable")
    at = order[np.minimum(have[order, 0].searchsorted(wanted[:, 0]), len(have) - 1)]
    result: NDArray[np.int64] = np.where((have[at] == wanted).all(axis=1), at, -1)
    return result


def write_part(place: Path, name: str, encoder: str, keys: Keys, matrix: encoders.FloatMatrix) -> bool:
    """Write vectors to a file in a folder, completely or not at all; return False if it cannot be written."""
    temporary = place / f".{os.getpid()}-{name}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            np.savez(file, id=np.frombuffer(encoder.encode(), np.uint8), keys=keys, matrix=matrix)
        os.replace(temporary, place / name)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        return False
    return True


# -- Vectors next to a generation --------------------------------------------------------------------


FORMAT: Final = 1
_HINT: Final = "make the index again: `condgraph index`, `graph.index(...)`"


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The result of making an index: the encoder, the numbers of nodes and predicates, and how many texts had to be
    encoded.
    """

    encoder: str
    dimension: int
    nodes: int
    predicates: int
    encoded: int
    approximate: str | None
    seconds: float

    def __str__(self) -> str:
        approximate = f", {self.approximate} beside them" if self.approximate else ""
        return (
            f"indexed {self.nodes:,} nodes and {self.predicates:,} predicates by {self.encoder} ({self.dimension} dimensions), "
            f"{self.encoded:,} of them encoded now{approximate}, in {self.seconds:.2f} s"
        )


def place_of(snapshot: Snapshot) -> Path | None:
    """Return the folder of a graph's vectors; None for a graph in memory."""
    generation = snapshot.folder
    return None if generation is None else generation.parent / "vectors"


def make_vectors(
    snapshot: Snapshot,
    encoder: encoders.Encoder | str = "lexical",
    *,
    approximate: bool = False,
    on_progress: OnProgress | None = None,
) -> tuple[GraphVectors, IndexReport]:
    """Encode the nodes and predicates of a generation, store the vectors, and make them the vectors of the graph.

    Vectors that the same encoder made before, for this generation or an earlier one, are reused. `approximate` also
    makes a FAISS index. Returns the vectors and a report.
    """
    begin = time.perf_counter()
    encoder = encoders.encoder_of(encoder)
    about = About(encoder.id, encoder.dimension, encoders.spec_of(encoder))
    nodes, predicates = snapshot.texts.take(node_texts(snapshot)), predicate_names(snapshot)
    place = place_of(snapshot)
    encoded = len(nodes) + len(predicates)
    arrays: dict[str, NDArray[Any]] = {}
    pair: tuple[Vectors, Vectors]
    if isinstance(encoder, encoders.LexicalEncoder):
        if approximate:
            raise OptionError("the search by the lexical encoder is exact and takes no other index", hint="leave `faiss` out")
        rows = encoder.sparse(nodes)
        arrays = {"indptr": rows.indptr, "indices": rows.indices, "data": rows.data}
        pair = SparseVectors(rows), SparseVectors(encoder.sparse(predicates))
        if on_progress is not None:
            on_progress(encoded, encoded)
    else:
        keys = keys_of([*nodes, *predicates])
        matrix, encoded = encode_new(encoder, [*nodes, *predicates], keys, _reusable(snapshot, about), place, on_progress)
        arrays = {"keys": keys.ravel(), "matrix": matrix.ravel()}
        pair = DenseVectors(matrix[: len(nodes)]), DenseVectors(matrix[len(nodes) :])
    index = Approximate.of(pair[0]) if approximate and isinstance(pair[0], DenseVectors) else None
    vectors = GraphVectors(snapshot, about, *pair, encoder=encoder, approximate=index)
    if place is not None:
        _write(place, snapshot, about, arrays, index)
    snapshot.schema.kept[KEPT] = vectors
    report = IndexReport(
        about.id,
        about.dimension,
        len(nodes),
        len(predicates),
        encoded,
        None if index is None else index.name,
        time.perf_counter() - begin,
    )
    return vectors, report


def vectors_of(snapshot: Snapshot, encoder: encoders.Encoder | str | None = None) -> GraphVectors:
    """Return the vectors of a generation: those of the graph's index if there is one, else those of the lexical
    encoder, which needs no index.

    An index of an earlier generation is updated first. Raises `EncoderMismatchError` if `encoder` did not make the
    index; the lexical encoder is always allowed.
    """
    vectors = _stored_vectors(snapshot)
    requested = None if encoder is None else encoders.encoder_of(encoder)
    if vectors is not None and (requested is None or not isinstance(requested, encoders.LexicalEncoder)):
        if requested is not None:
            vectors.use(requested)
        return vectors
    if requested is not None and not isinstance(requested, encoders.LexicalEncoder):
        return make_vectors(snapshot, requested)[0]
    lexical = requested or encoders.LexicalEncoder(encoders.DIMENSION)
    if vectors is not None and (vectors.about.id, vectors.about.dimension) == (lexical.id, lexical.dimension):
        return vectors
    cache_key = f"vectors {lexical.id} {lexical.dimension}"

    def make() -> GraphVectors:
        pair = (SparseVectors(lexical.sparse(texts)) for texts in (_nodes(snapshot), predicate_names(snapshot)))
        about = About(lexical.id, lexical.dimension, encoders.spec_of(lexical))
        return GraphVectors(snapshot, about, *pair, encoder=lexical)

    result = shared(snapshot.schema.kept, cache_key, make)
    assert isinstance(result, GraphVectors)
    return result


def within_vectors(snapshot: Snapshot, part: Snapshot) -> None:
    """Give a part of a graph the vectors of the graph's index, if there is one, so that nothing is encoded again."""
    vectors = None if KEPT in part.schema.kept else _stored_vectors(snapshot)
    if vectors is None:
        return
    pair: list[Vectors] = []
    for vectors_of_graph, names, part_names in (
        (vectors.nodes, _nodes(snapshot), _nodes(part)),
        (vectors.predicates, list(vectors.predicate_names), list(predicate_names(part))),
    ):
        if not isinstance(vectors_of_graph, DenseVectors):
            # The vectors of the lexical encoder are computed anew.
            return
        positions = {name: at for at, name in enumerate(names)}
        pair.append(DenseVectors(vectors_of_graph.matrix[[positions[name] for name in part_names]]))
    part.schema.kept[KEPT] = GraphVectors(part, vectors.about, *pair, encoder=vectors._encoder)


def _nodes(snapshot: Snapshot) -> list[str]:
    return snapshot.texts.take(node_texts(snapshot))


def index_of(snapshot: Snapshot) -> About | None:
    """Return the encoder of the graph's index; None if there is no index."""
    vectors = snapshot.schema.kept.get(KEPT)
    if isinstance(vectors, GraphVectors):
        return vectors.about
    place = place_of(snapshot)
    manifest = None if place is None else _manifest(place)
    return None if manifest is None else _about(manifest)


# -- Reading -----------------------------------------------------------------------------------------


def _stored_vectors(snapshot: Snapshot) -> GraphVectors | None:
    """Return the stored vectors of this generation, updated if they are of an earlier one; None if there are none."""
    vectors = snapshot.schema.kept.get(KEPT)
    if isinstance(vectors, GraphVectors):
        return vectors
    place = place_of(snapshot)
    if place is None:
        previous = snapshot.schema.kept.get(PREVIOUS)
        return make_vectors(snapshot, previous.encoder)[0] if isinstance(previous, GraphVectors) else None
    manifest = _manifest(place)
    if manifest is None:
        return None
    about = _about(manifest)
    if manifest["generation"] != snapshot.about.get("generation"):
        encoder = matching(about, encoders.encoder_of(_spec(about)))
        return make_vectors(snapshot, encoder, approximate=bool(manifest["faiss"]))[0]
    arrays = ArrayFile(place / manifest["file"], manifest["arrays"])
    nodes, predicates = len(node_texts(snapshot)), predicate_names(snapshot)
    pair: tuple[Vectors, Vectors]
    if "indptr" in manifest["arrays"]:
        lexical = encoders.LexicalEncoder(about.dimension)
        if not about.id.startswith(encoders.HYBRID):
            matching(about, lexical)
        rows = encoders.Sparse(arrays.get("indptr"), arrays.get("indices"), arrays.get("data"), about.dimension)
        _check_fit(len(rows) == nodes, place)
        pair = SparseVectors(rows), SparseVectors(lexical.sparse(predicates))
    else:
        matrix = arrays.get("matrix")
        _check_fit(matrix.size == (nodes + len(predicates)) * about.dimension, place)
        matrix = matrix.reshape(-1, about.dimension)
        pair = DenseVectors(matrix[:nodes]), DenseVectors(matrix[nodes:])
    index = None
    if manifest["faiss"]:
        stored = manifest["faiss"]
        index = Approximate.read(place / stored["file"], stored["name"], nodes, about.dimension, stored.get("crc"))
    vectors = snapshot.schema.kept[KEPT] = GraphVectors(snapshot, about, *pair, approximate=index)
    return vectors


def _check_fit(fits: bool, place: Path) -> None:
    if not fits:
        raise StoreDamagedError(f"the vectors in {place} do not fit the graph", hint=_HINT)


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
        raise StoreDamagedError(f"{path} cannot be read: {error}", hint=_HINT) from None
    if manifest.get("format") != FORMAT:
        raise StoreVersionError(f"{path} has format {manifest.get('format')}, this version reads {FORMAT}", hint=_HINT)
    return manifest


def _crc(manifest: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(manifest).encode())


def _about(manifest: Mapping[str, Any]) -> About:
    return About(manifest["id"], manifest["dimension"], manifest["spec"])


# -- Encoding and writing ----------------------------------------------------------------------------


def _reusable(snapshot: Snapshot, about: About) -> list[tuple[Keys, encoders.FloatMatrix]]:
    """Return vectors that the same encoder made before: for the last generation, in an unfinished run, or in memory."""
    reusable: list[tuple[Keys, encoders.FloatMatrix]] = []
    cache, place = snapshot.schema.kept, place_of(snapshot)
    previous = cache.get(KEPT, cache.get(PREVIOUS))
    if (
        place is None
        and isinstance(previous, GraphVectors)
        and (previous.about.id, previous.about.dimension) == (about.id, about.dimension)
    ):
        for texts, vectors in ((_nodes(previous.snapshot), previous.nodes), (previous.predicate_names, previous.predicates)):
            if isinstance(vectors, DenseVectors):
                reusable.append((keys_of(texts), vectors.matrix))
    if place is None:
        return reusable
    # Texts of an unreadable file are encoded again.
    with suppress(StoreError):
        manifest = _manifest(place)
        if (
            manifest is not None
            and (manifest["id"], manifest["dimension"]) == (about.id, about.dimension)
            and "keys" in manifest["arrays"]
        ):
            arrays = ArrayFile(place / manifest["file"], manifest["arrays"])
            reusable.append((arrays.get("keys").reshape(-1, 2), arrays.get("matrix").reshape(-1, about.dimension)))
    reusable.extend(part for _, part in parts_in(place, about))
    return reusable


def _write(place: Path, snapshot: Snapshot, about: About, arrays: Mapping[str, NDArray[Any]], index: Approximate | None) -> None:
    """Write the new arrays, switch to them, and remove unused files."""
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
        temporary = place / f".index.json.{os.getpid()}"
        temporary.write_text(json.dumps(manifest | {"crc": _crc(manifest)}), "utf-8")
        os.replace(temporary, place / "index.json")
        for path in [*parts, *place.glob("*.arrays"), *place.glob("*.faiss")]:
            if path.stem != name:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"the vectors cannot be written to {place}: {error.strerror}") from error


# -- Vectors of graphs on servers that store none ----------------------------------------------------
# They are in a folder of this machine, by store and graph: `CONDGRAPH_CACHE`, else `condgraph` in
# `XDG_CACHE_HOME` or `~/.cache`. After a load only new texts are encoded. An unreadable file is made
# again; a folder that cannot be written to only costs time.
#
#     CACHE/vectors/HASH/index.json        the encoder for patterns, after `index`
#     CACHE/vectors/HASH/HASH.npz          the vectors of one encoder; part-*.npz from an interrupted run


def cache_folder() -> Path:
    """Return the folder of this machine for data that can be computed again."""
    configured = os.environ.get("CONDGRAPH_CACHE")
    if configured:
        return Path(configured)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "condgraph"


class VectorCache:
    """The cached vectors of one graph on one server."""

    def __init__(self, store: str, graph: str) -> None:
        self.folder = cache_folder() / "vectors" / _hash(f"{store}\n{graph}")

    @property
    def index(self) -> About | None:
        """The encoder for patterns; None if no index was made here."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            index = json.loads((self.folder / "index.json").read_text("utf-8"))
            return About(str(index["id"]), int(index["dimension"]), str(index["spec"]))
        return None

    def choose(self, encoder: encoders.Encoder) -> None:
        """Set the encoder for patterns; raises `OSError` if the folder cannot be written to."""
        about = {"id": encoder.id, "dimension": encoder.dimension, "spec": encoders.spec_of(encoder)}
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / f".index.json.{os.getpid()}"
        temporary.write_text(json.dumps(about), "utf-8")
        os.replace(temporary, self.folder / "index.json")

    def vectors(
        self, encoder: encoders.Encoder, texts: Sequence[str], on_progress: OnProgress | None = None
    ) -> tuple[encoders.FloatMatrix, int]:
        """Return the vectors of distinct texts, shape (n, dimension), and the number of texts that had to be encoded.
        New vectors are saved.
        """
        about, keys = About(encoder.id, encoder.dimension), keys_of(texts)
        name = f"{_hash(str(about))}.npz"
        cached_vectors = read_part(self.folder / name, about)
        parts = list(parts_in(self.folder, about))
        reusable = [*([cached_vectors] if cached_vectors else []), *(part for _, part in parts)]
        matrix, encoded = encode_new(encoder, texts, keys, reusable, self.folder, on_progress)
        outdated = encoded or parts or cached_vectors is None or len(cached_vectors[0]) != len(keys)
        if outdated and write_part(self.folder, name, encoder.id, keys, matrix):
            for path, _ in parts_in(self.folder, about):
                with suppress(OSError):
                    path.unlink()
        return np.asarray(matrix, np.float32), encoded


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()

"""The vectors of one generation of a graph: of all names and texts that a pattern's node can mean,
and of all predicates.

Nodes are the names of entities, concepts and rows, and the text values of attributes, each text
once, by ascending number of the pool; predicates are all predicates and qualifier keys, and the
names that memberships go by. `stored` says where they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import cached
from condgraph.engine.errors import EncoderMismatchError
from condgraph.engine.pieces import different
from condgraph.engine.values import Kind
from condgraph.vectors.encoder import Encoder
from condgraph.vectors.encoders import encode, encoder_of, label
from condgraph.vectors.nearest import Distances, Positions, Query, Vectors

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.vectors.approximate import Approximate

Numbers: TypeAlias = NDArray[np.int32]
#: Hears how many texts are encoded so far, of how many.
OnProgress: TypeAlias = Callable[[int, int], None]
#: Edges of a pattern that no statement is: membership and subclasses.
EDGES: Final = ("instance of", "subclass of")
#: Vectors of texts asked for that are kept.
_KEPT: Final = 4096


@dataclass(frozen=True, slots=True)
class About:
    """Whose vectors these are: the encoder's id, its dimension, and the text that makes it (empty:
    the caller has it).
    """

    id: str
    dimension: int
    spec: str = ""

    def __str__(self) -> str:
        return label(self.id, self.dimension)


class GraphVectors:
    """Distances from a text to the nodes and predicates of one generation. Use it from any thread.

    `node_texts` are numbers of the pool, shape (n,), ascending; `nodes` has their vectors.
    `predicate_names` and `predicates` are alike. `approximate` is an index that finds near nodes
    faster and may miss some, where one was made.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        about: About,
        nodes: Vectors,
        predicates: Vectors,
        *,
        encoder: Encoder | None = None,
        approximate: Approximate | None = None,
    ) -> None:
        self.snapshot, self.about = snapshot, about
        self.nodes, self.predicates, self.approximate = nodes, predicates, approximate
        self.node_texts = node_texts(snapshot)
        self.predicate_names = predicate_names(snapshot)
        self._encoder = encoder
        self._queries: dict[str, Query] = {}

    @property
    def encoder(self) -> Encoder:
        """The encoder, made when it is first needed; raises `EncoderMismatchError` where it is not
        the index's any more.
        """
        if self._encoder is None:
            self._encoder = matching(self.about, encoder_of(self.about.spec))
        return self._encoder

    def use(self, encoder: Encoder) -> None:
        """Encode with this encoder; raises `EncoderMismatchError` for another one than the index's."""
        self._encoder = matching(self.about, encoder)

    def vectors(self, texts: Sequence[str]) -> list[Query]:
        """The vectors of texts, new ones encoded together."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._queries]
        if fresh:
            found = encode(self.encoder, fresh)
            if len(self._queries) + len(fresh) > _KEPT:
                self._queries = {text: self._queries[text] for text in texts if text in self._queries}
            self._queries.update(zip(fresh, found, strict=True))
        return [self._queries[text] for text in texts]

    def vector(self, text: str) -> Query:
        """The vector of a text, shape (dimension,), float32."""
        return self.vectors([text])[0]

    # -- nodes -------------------------------------------------------------------------------------

    @cached
    def entity_positions(self) -> Numbers:
        """Where the name of each entity stands in `node_texts`, shape (E,)."""
        return self.node_texts.searchsorted(self.snapshot.entity_name).astype(np.int32)

    def positions_of(self, texts: NDArray[np.integer]) -> Positions:
        """Where texts (numbers of the pool, all of them nodes) stand in `node_texts`."""
        return self.node_texts.searchsorted(texts).astype(np.int64)

    def node_distances(self, text: str, positions: Positions | None = None) -> Distances:
        """Distances of a text from all nodes (or those at `positions` of `node_texts`), in
        millionths, exact.
        """
        return self.nodes.distances(self.vector(text), positions)

    def nearest_nodes(self, text: str, k: int, *, exact: bool = True) -> tuple[Positions, Distances, str | None]:
        """The k nearest nodes: positions in `node_texts`, distances (always exact), and the
        approximate index that found them.

        The last is None where every node was looked at.
        """
        query = self.vector(text)
        if exact or self.approximate is None:
            return *self.nodes.nearest(query, k), None
        return *self.approximate.nearest(query, k, self.nodes), self.approximate.name

    def entities_at(self, position: int) -> range:
        """The entities whose name stands at a position of `node_texts`; entities are numbered by
        name.
        """
        positions = self.entity_positions
        return range(int(positions.searchsorted(position)), int(positions.searchsorted(position, "right")))

    # -- predicates --------------------------------------------------------------------------------

    def predicate_distances(self, text: str) -> Distances:
        """Distances of a text from all `predicate_names`, in millionths, exact."""
        return self.predicates.distances(self.vector(text))


def matching(about: About, encoder: Encoder) -> Encoder:
    """The encoder, if it is the one that made the vectors; raises `EncoderMismatchError` that names
    both otherwise.
    """
    if (encoder.id, encoder.dimension) != (about.id, about.dimension):
        raise EncoderMismatchError(str(about), label(encoder.id, encoder.dimension))
    return encoder


def node_texts(snapshot: Snapshot) -> Numbers:
    """The numbers of all texts that nodes go by: names of entities, concepts and rows, and text
    values; ascending.
    """
    get = snapshot.arrays.get
    values = get("att.ref")[get("att.kind") == Kind.TEXT] if len(get("att.kind")) else np.empty(0, np.int32)
    found: Numbers = different(np.concatenate([snapshot.entity_name, values])).astype(np.int32)
    return found


def predicate_names(snapshot: Snapshot) -> tuple[str, ...]:
    """All predicates and qualifier keys, then the edges of memberships that are no predicates too."""
    names = [snapshot.predicate_name(number) for number in range(snapshot.predicate_count)]
    return (*names, *(edge for edge in EDGES if snapshot.predicate(edge) < 0))

"""All triples that may follow in a chain, as complete token sequences for comparison."""

from __future__ import annotations

from condgraph.chains.chain import Chain, parts


def sequences(chain: Chain, most: int) -> list[tuple[int, ...]] | None:
    """Return the sequences in ascending order; None if there are more than `most`."""
    tree = parts(chain, most)
    return None if tree is None else tree.sequences()

"""All triples that may follow in a chain as whole token sequences, as tests compare them."""

from __future__ import annotations

from condgraph.chains.chain import Chain, parts


def sequences(chain: Chain, most: int) -> list[tuple[int, ...]] | None:
    """The sequences, rising; None where there are more than `most`."""
    found = parts(chain, most)
    return None if found is None else found.sequences()

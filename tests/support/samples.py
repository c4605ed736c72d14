"""The sample data that the package ships, as the contents of a graph."""

from __future__ import annotations

from condgraph import Graph
from condgraph.samples import SAMPLES


def load_samples(graph: Graph) -> Graph:
    """Load every sample; return the same graph."""
    for sample in SAMPLES:
        graph.load(sample.path, format=sample.format, **sample.options)
    return graph

"""Vectors of texts: encoders, nearest-neighbour search, and the stored vectors of a graph."""

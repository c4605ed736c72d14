"""Texts as vectors: encoders, the nearest of many, and the vectors of a graph kept beside it."""

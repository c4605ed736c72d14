"""Texts as vectors: encoders, the nearest of many, and the stored vectors of a graph."""

"""How well logical queries are answered where a graph misses edges: queries with known answers,
their sampling, and the figures that papers report.
"""

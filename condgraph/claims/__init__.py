"""Fact verification: check claims against a graph that may be incomplete, by rules and never by a model
(`docs/reference/claims.md`).
"""

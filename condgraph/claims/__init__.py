"""Fact verification: a claim against a graph that may not hold everything. Rules decide, never a model
(`docs/reference/claims.md`).
"""

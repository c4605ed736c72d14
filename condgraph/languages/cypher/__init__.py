"""Cypher, read-only: parsing of queries, and lowering to the algebra."""

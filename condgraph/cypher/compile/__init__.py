"""Compiles a plan into one parameterised Cypher query."""

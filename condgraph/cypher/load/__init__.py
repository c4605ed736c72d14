"""Graphs written to Neo4j, read back and deleted."""

"""Graphs written to Neo4j, read back, converted and deleted."""

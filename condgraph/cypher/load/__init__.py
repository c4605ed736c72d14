"""Writes graphs to Neo4j, reads them back and deletes them."""

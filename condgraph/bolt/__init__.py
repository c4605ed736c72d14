"""Serves a graph to Neo4j's drivers and tools by the Bolt protocol."""

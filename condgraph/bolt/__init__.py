"""The Bolt protocol: a graph for Neo4j's drivers and tools."""

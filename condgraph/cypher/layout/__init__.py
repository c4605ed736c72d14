"""How a graph is stored in Neo4j, and how the stored parts are reached."""

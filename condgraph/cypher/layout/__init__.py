"""The representation of a graph in Neo4j, and the expressions that read its parts."""

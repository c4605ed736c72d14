"""Graph patterns as Cypher."""

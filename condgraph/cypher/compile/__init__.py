"""A plan as one parameterised Cypher query."""

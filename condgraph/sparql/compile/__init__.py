"""A plan as one SPARQL query."""

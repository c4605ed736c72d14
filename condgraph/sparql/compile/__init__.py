"""Compiles a plan into one SPARQL query."""

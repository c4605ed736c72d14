"""SPARQL as a query language: SELECT and ASK over one graph, lowered to plans."""

"""SPARQL (SELECT and ASK over one graph) as a language of programs."""

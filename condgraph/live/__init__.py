"""SPARQL over a Neo4j database that condgraph did not write, without a copy of it: a SELECT or an ASK
made of operators that are known to mean the same there becomes one Cypher query. Everything else is
refused, with the reason.

`parse` reads the query, `patterns` and `expressions` say it in Cypher, `vocabulary` what the names
of the RDF view are in the database, `answer` runs it and says its results as terms.
"""

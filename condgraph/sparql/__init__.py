"""RDF and SPARQL: how a graph is written as RDF, plans as one SPARQL query, and the stores that answer it.

In order of control flow: `layout` says what triples a graph is, `write` gives them from a snapshot, `embedded` keeps them in
Oxigraph beside the snapshot, `compile` turns a plan into one query, `answer` reads its rows as the values that the engine gives.
"""

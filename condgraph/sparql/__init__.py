"""RDF and SPARQL: how a graph is written as RDF, plans as one SPARQL query, and the stores.

In order of control flow: `layout` and `literals` say what triples a graph is; `load` writes them
from a snapshot and reads them back; `embedded` keeps them in Oxigraph beside the snapshot, `remote`
on a server (`client`, `wire`); `compile` turns a plan into one query; `answer`, `witness` and
`warnings` read what it gives; `patterns` does the same for graph patterns; `text` runs queries that
people wrote, and `workers` are processes that run such queries and can be ended.
"""

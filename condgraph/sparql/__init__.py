"""RDF and SPARQL: how a graph is written as RDF, plans as one SPARQL query, and the stores.

In order of control flow: `layout` and `literals` say what triples a graph is; `load` writes them
from a snapshot and reads them back; `embedded` keeps them in Oxigraph beside the snapshot, `remote`
on a server (`client` speaks to it, `reader` and `lookup` read what it has, `dialect` says what
stores do otherwise); `store` asks, by `compile`, which turns a plan into one query; `answer`,
`gathered`, `witness` and `warnings` read what it gives; `patterns` does the same for graph
patterns, `around` for chains; `text` runs queries that people wrote, and `workers` are processes
that run such queries and can be ended.

`plain` is a graph as the RDF that it was loaded from, with `wikibase` for values; `methods` and
`rdflib_graph` hand it to programs of RDF, `examples` has queries for the page of an endpoint.
"""

"""RDF and SPARQL: how a graph is written as RDF, plans as one SPARQL query, and the stores.

In order of control flow: `layout` says which triples a graph is; `load` writes them from a snapshot
and reads them back; `embedded` keeps them in Oxigraph next to the snapshot, `remote` on a server
(`client` sends requests, `dialect` says where stores differ from SPARQL 1.1). `store` answers
programs: `compile` turns a plan into one query, and `gathered` reads what the client finishes.
`patterns` does the same for graph patterns. `text` runs queries that people wrote, and `workers` are
processes that run such queries and can be killed.

`plain` is a graph as the RDF that it was loaded from; `rdflib_graph` hands it to rdflib, `examples`
has queries for the page of an endpoint.
"""

"""RDF and SPARQL: the representation of a graph as RDF, plans as one SPARQL query, and the stores.

In order of control flow: `layout` defines the triples of a graph; `load` writes them from a snapshot and reads them back;
`embedded` stores them in Oxigraph next to the snapshot, `remote` on a server (`client` sends requests, `dialect` lists how
stores differ from SPARQL 1.1). `store` answers programs: `compile` turns a plan into one query, and `gathered` reads what the
client finishes. `patterns` does the same for graph patterns. `text` runs queries written by users, and `workers` are processes
that run such queries and can be killed.

`plain` is a graph as the RDF that it was loaded from; `rdflib_graph` converts it for rdflib, `examples` has queries for
the page of an endpoint.
"""

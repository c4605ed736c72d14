"""Neo4j as a store and a target: how a graph is laid out there, how plans become Cypher, how both meet a server.

In order of control flow: `quote` makes names safe, `layout` says how a graph is stored (read by the writer and by the compiler),
`compile` turns a plan into one parameterised query, `load` writes a graph in batches, `store` talks to the server.
"""

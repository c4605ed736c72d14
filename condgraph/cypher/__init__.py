"""Neo4j as a store and as a target of compilation.

In order of control flow: `layout` is the representation of a graph, read by the writer and the compiler; `load` writes a graph
in batches, and reads it back; `store` is the graph on the server; `queries` and `compile` turn a program into one parameterised
query, with names read from the graph; `answer` reads its result; `patterns` does the same for graph patterns; `guard` checks
Cypher written by users; `connection` keeps deadlines even if the server is silent; `shapes` has a server plan common queries
ahead.

`native` queries existing databases; `labels` and `browser` help people and tools that view a graph in Neo4j.
"""

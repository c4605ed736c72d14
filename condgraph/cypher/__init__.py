"""Neo4j as a store and a target: how a graph is laid out there, how plans become Cypher.

In order of control flow: `layout` says how a graph is stored, and is read by the writer and by the
compiler; `load` writes a graph in batches, and reads it back; `store` is the graph on the server;
`queries` and `compile` turn a program into one parameterised query, for which `names` reads names;
`answer` reads what it gives; `patterns` does the same for graph patterns; `guard` checks Cypher that
people write; `connection` keeps deadlines whatever the server does; `shapes` has a server plan
common queries ahead.

`native` asks databases that condgraph did not write; `labels` and `browser` show a graph to people
and tools that look at it in Neo4j.
"""

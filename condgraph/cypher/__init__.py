"""Neo4j as a store and a target: how a graph is laid out there, how plans become Cypher.

In order of control flow: `layout` says how a graph is stored, and is read by the writer and by the
compiler; `load` writes a graph in batches, and reads it back; `store` is the graph on the server;
`asking` asks it: `asked`, `names` and `compile` turn a program into one parameterised query;
`answer`, `witness` and `warnings` read what it gives; `patterns` does the same for graph patterns,
`around` for chains; `guard` checks Cypher that other people wrote, and `records` are its rows;
`connection` and `interruptible` keep deadlines whatever the server does.

`native` asks databases that condgraph did not write; `labels` and `browser` show a graph to people
and tools that look at it in Neo4j.
"""

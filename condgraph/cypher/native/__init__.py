"""Neo4j databases that condgraph did not write, asked where they are. Nothing is ever written there.

In order of control flow: `mapping` says what the database is taken for; `introspect` makes one from
a look at the server, `file` reads and writes it as a file, `refresh` keeps it up to date; `layout`
(with `identity`, `properties` and `values`) and `schema` read it; `store` asks the database.
"""

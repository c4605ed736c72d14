"""Existing Neo4j databases, which condgraph did not write, queried in place. Nothing is ever written to them.

In order of control flow: `mapping` describes what the parts of the database stand for. `introspect` guesses a mapping by
looking at the server, `file` reads and writes it as a file, `refresh` keeps it up to date. `layout` (with `identity`,
`properties` and `values`) and `schema` use it; `store` queries the database.
"""

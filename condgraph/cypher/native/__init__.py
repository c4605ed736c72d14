"""Neo4j databases that condgraph did not write, asked where they are. Nothing is ever written there.

In order of control flow: `mapping` says what the database is taken for; what reads it from the
server (`introspect`), guesses names, ids and types, and reads and writes mapping files makes one;
the layout, the schema, evidence and patterns read it.
"""

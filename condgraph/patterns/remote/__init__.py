"""Patterns on graphs in a store: the client's copy of the names, and the queries that it sends."""

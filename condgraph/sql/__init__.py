"""Graphs in SQL databases: the tables of a graph, plans as one SQL query, and the connections."""

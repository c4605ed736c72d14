"""The ways of asking: a folder for each language, and the registry of them all.

A language turns its text into a plan (`engine.algebra`); names and types come from the schema of a
graph, never from its facts.
"""

"""Query languages: one folder for each, and the registry that finds them.

A language turns a text into a plan (`engine.algebra`). It resolves names and types against the
schema of a graph, never against its facts.
"""

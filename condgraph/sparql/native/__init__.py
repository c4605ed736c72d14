"""Triples that condgraph did not write, queried in place; nothing is written.

`look` finds out what an endpoint holds by a few bounded queries and chooses a `mapping`, which a file may correct. `fetch`
turns the evidence of a plan into one query for the triples themselves. `store` builds a small graph from them by the rules of
the RDF loader and runs the plan on it, so the answer is the same as from a folder with the same triples.
"""

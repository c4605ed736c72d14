"""Triples that condgraph did not write, asked where they are, with nothing written.

`look` finds out what an endpoint has, by few and bounded queries, and chooses a `mapping`, which a
file may correct. `fetch` turns what a plan rests on into one query for the triples themselves;
`store` makes a small graph of them by the rules of the loader of RDF, and runs the plan there: the
answer is that of the same triples in a folder.
"""

"""Chains of triples that a language model writes and cannot invent (DoG, section 2).

text      how a triple is written, and read from a text
place     statements around an entity, in process and on servers
walk      a chain as it grows (the query-centred subgraph, Eq. 1), and texts judged as one
tokens    names as token ids
chain     the constraint: which token may come next
backends  how the servers of models keep to it
reason    from a question to an entity or value of the graph (Algorithm 1)
methods   what `Graph` has of it
"""

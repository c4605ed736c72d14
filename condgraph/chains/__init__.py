"""Chains of triples written by a language model, restricted to those in the graph (DoG, section 2).

text      the text of a triple, and reading it back
place     statements around an entity, in process and on servers
walk      a chain as it grows (the query-centred subgraph, Eq. 1), and the verification of texts
tokens    names as token ids
chain     the constraint: which token may come next
backends  how model servers apply it
reason    from a question to an entity or value of the graph (Algorithm 1)
methods   the methods of `Graph`
"""

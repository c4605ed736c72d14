"""Fact verification: a claim, read as a pattern whose triples may be denied, against a graph that
may not hold everything.

    claim    what a claim is, and the forms in which it is given
    facts    what the graph says of a name: one query a question, on every store
    values   whether a value that a claim writes as text is one that the graph has
    asking   what verification asks of a graph
    judge    the rules: what supports a claim, what refutes it, what leaves it open
    verdict  what comes out: the decision, the statements that it rests on, and a text that cites them
    verify   from a claim to its verdict
    reading  a claim in plain words, read by a language model
    methods  `Graph.verify`

The rules decide, never a model: `docs/reference/claims.md` has them in words.
"""

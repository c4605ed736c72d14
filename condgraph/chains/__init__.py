"""Chains of triples that a language model writes and cannot invent (DoG, section 2).

In order of control flow: `text` (how a triple is written and read), `place` (statements around an
entity, in process and on servers), `walk` (the query-centred subgraph, Eq. 1), `tokens` and
`lexicon` (names as token ids), `chain` (the constraint: which token may come next), `backends` (how
different servers of models keep to it), `prompt`, `reason` and `answer` (from a question to an
entity or value of the graph, Algorithm 1), `verify` (any text judged).
"""

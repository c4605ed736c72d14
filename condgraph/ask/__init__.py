"""A question in plain words, an answer that can be checked (TrustUQA, section 3; SimGRAG, 4.2).

In order of control flow: `methods` (what `Graph` has of it), `known` (names of one state of a graph,
prepared once), `mentions` (which of them a question says), `excerpt` (the part of the schema that a
question needs, within a budget of tokens), `demos` (questions with programs, kept with the graph;
`learn` finds programs for questions with answers), `route` (which language), `prompt` (the files in
`prompts`, filled), `reply` (the program in what a model wrote), `attempt` (a program resolved and
run: sources, senses of names), `feedback` (what went wrong, for the next try), `pipeline` (all of
it, with votes), `cite` (the answer in words, with its statements), `records` (what comes out).

A model writes; what it wrote is read by the read-only parsers of `languages` and nothing else.
"""

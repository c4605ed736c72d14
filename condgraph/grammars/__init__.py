"""Grammars for programs: what a model may write so that it parses, and every name in it exists.

    parts       what a grammar is made of; names as tries; GBNF, Lark and regular expressions from it
    vocabulary  the names and types of a graph, the entities that a question may mean, what these have
    kopl        KoPL, from its table of functions, as text and as trees under a JSON schema
    llm_query   LLM queries, as lines and as trees
    logic       logical queries, as formulas and as trees
    pattern     patterns
    grammar     what comes out, made once for a graph
    methods     `Graph.grammar`

No grammar recurses: sets within sets and steps in a row have a limit, so that each of them is a
regular language, and a model cannot write for ever.
"""

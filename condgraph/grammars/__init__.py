"""Grammars for programs, so that whatever a model writes parses, and every name in it exists.

    parts       the elements of a grammar; names as tries; output as GBNF, Lark and regular expressions
    vocabulary  the names and types of a graph, the entities that a question may mean, and their predicates
    kopl        KoPL, from its table of functions, as text and as trees under a JSON schema
    llm_query   LLM queries, as lines and as trees
    logic       logical queries, as formulas and as trees
    pattern     patterns
    grammar     the finished grammars, built once for each graph
    methods     `Graph.grammar`

No grammar is recursive: nested sets and consecutive steps are limited, so that each grammar is a regular language, and a model
cannot write forever.
"""

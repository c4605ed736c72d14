"""Grammars for programs: what a model may write so that it parses, and every name in it exists.

    parts       what a grammar is made of, and names as tries
    forms       a grammar as GBNF, for Lark, as a regular expression
    vocabulary  the names and types of a graph, and the entities that a question may mean
    kopl        the grammar of KoPL, from its table of functions and the sorts that they take and give
    kopl_tree   the same as a JSON schema: programs as trees, and back
    pattern     the grammar of patterns
    llm_query   the grammar of LLM queries
    llm_groups  the predicates and literals of these; llm_texts what stands between their quotes
    llm_tree    the same as a JSON schema: the last query as a tree of those that it takes
    logic       the grammar of logical queries
    logic_tree  the same as a JSON schema: sets within sets
    grammar     what comes out
    kept        what grammars of one graph have in common
    methods     `Graph.grammar`

No grammar recurses: sets within sets and steps in a row have a limit, so that each of them is a
regular language, and a model cannot write for ever.
"""

"""Logical queries: first-order formulas over the relations of a graph (QTO, sections 3.1 and 3.2).

`text` parses them, `structures` parses those of BetaE, `convert` turns a formula into its query
computation tree (`tree`), and `lower` returns the plan of a tree.
"""

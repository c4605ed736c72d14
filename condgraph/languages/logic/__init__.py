"""Logical queries: first-order formulas with and, or, not and exists, over the relations of a graph
(QTO, sections 3.1 and 3.2).

`text` reads them, `structures` reads those of BetaE, `convert` turns a formula into its query
computation tree (`tree`), and `lower` gives the plan of a tree.
"""

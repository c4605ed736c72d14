"""Logical queries on incomplete graphs, answered exactly by propagation over the query computation tree (QTO).

`ask` answers a query, `methods` has the methods of `Graph`. `propagation` computes the scores (sections 3.1 to 3.3) on
sparse rows, `predicted` has the rows of a link prediction model. `store_edges` stores predicted edges on a server and
answers there. `answers` is what a user gets.
"""

"""Logical queries on incomplete graphs, answered exactly by forward and backward propagation over
the query computation tree (QTO, sections 3.1 to 3.3), on sparse rows.

`matrix` has the rows of each relation, observed and predicted; `vector` what a node may be, with a
score each; `kernels` and `forward` compute it, `top` the best k of it; `derivation` says how an
answer came about; `answers` is what a user gets, `picture` shows it.
"""

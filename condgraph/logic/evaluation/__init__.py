"""Evaluation of logical queries on graphs with missing edges: sampling of queries with known answers, the figures that
papers report, and answer sets with a guaranteed share.
"""

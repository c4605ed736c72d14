"""Queries that people wrote: looked over, translated, rewritten where that is quicker, run, and
shown as tables.
"""

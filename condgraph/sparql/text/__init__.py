"""Queries written by users: checked, translated, rewritten where that is faster, run, and returned as tables."""

"""Cypher, the part that reads: its text, its tree, and the plan that it becomes."""

"""Names in programs and what they can mean in a graph: vocabularies, and their resolution (exact,
folded, similar).
"""

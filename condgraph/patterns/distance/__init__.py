"""The terms of the distance of a pattern (SimGRAG, section 4.3), and which nodes and edges they
leave.
"""

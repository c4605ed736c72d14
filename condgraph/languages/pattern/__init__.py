"""Graph patterns (SimGRAG): the syntax of patterns, which `condgraph.patterns` matches."""

"""The terms of a pattern's distance (SimGRAG, section 4.3), and the candidate nodes and edges under a bound."""

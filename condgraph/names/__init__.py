"""Names in programs, and what they refer to in a graph."""

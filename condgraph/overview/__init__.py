"""The schema of a graph for its readers: sources, concepts, predicates and units, with counts."""

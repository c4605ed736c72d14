"""The schema of a graph for users: sources, concepts, predicates and units, with counts."""

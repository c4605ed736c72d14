"""Names in programs to names in the graph: encoders of texts, vocabularies, resolution."""

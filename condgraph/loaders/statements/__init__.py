"""Files of one fact a line: triples, quintuples, and statements with qualifiers."""

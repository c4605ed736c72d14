"""Loaders of files with one fact per line: triples, quintuples, and statements with qualifiers."""

"""Graphs as RDF: written to stores and files, and read back."""

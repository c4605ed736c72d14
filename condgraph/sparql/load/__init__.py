"""Writes graphs as RDF to stores and files, and reads them back."""

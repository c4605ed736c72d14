"""Loaders of RDF in all its syntaxes."""

"""Loaders: one module a format, each a generator of statements over one source."""

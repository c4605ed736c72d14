"""Loaders: a module or a folder for each format, each a generator of statements of one source.

`recognise` knows them all; `base` is what they share.
"""

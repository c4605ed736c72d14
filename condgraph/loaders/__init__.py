"""Loaders: a folder for each family of formats, each a generator of statements of one source.

`recognise` knows them all; `base` is what they share.
"""

"""Loaders: a folder for each family of formats; each loader yields the statements of one source.

`recognise` chooses the loader of a source, and `base` has what loaders share.
"""

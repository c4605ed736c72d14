"""Folders of tables with keys between them."""

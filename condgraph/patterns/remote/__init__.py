"""Patterns on graphs that a server holds: what the client knows of them, and what it asks for."""

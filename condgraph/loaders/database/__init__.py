"""Loaders of relational databases: SQLite, PostgreSQL, MySQL."""

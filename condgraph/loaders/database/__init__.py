"""Databases of tables: SQLite, PostgreSQL, MySQL."""

"""Processes that run queries and can be ended."""

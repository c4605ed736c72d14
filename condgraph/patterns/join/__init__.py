"""The search for a pattern: joins of partial matches under a growing bound."""

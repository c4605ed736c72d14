"""Matches graph patterns on Neo4j."""

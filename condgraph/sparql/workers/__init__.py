"""Runs queries in processes that can be killed."""

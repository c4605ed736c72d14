"""Queries several stores as one graph: each part of a plan runs where its statements are, and the parts are joined in process."""

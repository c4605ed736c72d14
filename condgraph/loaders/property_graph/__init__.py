"""Property graphs as CSV files."""

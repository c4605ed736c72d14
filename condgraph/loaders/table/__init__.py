"""Loaders of tables: CSV, TSV, JSON lines, Parquet, and frames in memory."""

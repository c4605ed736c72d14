"""Tables: CSV, TSV, JSON lines, Parquet, and frames in memory."""

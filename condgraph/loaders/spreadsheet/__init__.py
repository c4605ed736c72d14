"""Spreadsheets: Excel and OpenDocument."""

"""The text of an LLM query as a tree."""

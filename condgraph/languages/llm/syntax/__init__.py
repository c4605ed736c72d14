"""The syntax of LLM queries: tokens, tree and parser."""

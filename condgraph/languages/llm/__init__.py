"""LLM queries (TrustUQA): parsing of the calls that a language model writes, and lowering to the algebra."""

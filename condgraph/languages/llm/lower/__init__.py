"""The lowering of LLM queries to the algebra."""

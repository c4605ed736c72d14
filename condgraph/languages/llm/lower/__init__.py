"""The calls of an LLM query as operators of the algebra."""

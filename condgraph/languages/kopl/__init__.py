"""KoPL (KQA Pro): parsing of programs, and lowering to the algebra."""

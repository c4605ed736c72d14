"""LLM queries (TrustUQA): the calls that a language model writes, what they mean, and how they are
lowered to the algebra.
"""

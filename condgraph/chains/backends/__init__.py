"""Backends that restrict a model to triples that may follow: one protocol (`base`), chosen by what a server accepts.

`local` is for transformers, `llamacpp` for llama.cpp's server, `vllm` for vLLM, `hosted` for servers that accept JSON schemas,
and for all others, whose text is verified and requested again.
"""

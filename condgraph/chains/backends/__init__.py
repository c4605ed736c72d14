"""How a model is kept to the triples that may follow: one protocol (`base`), and what a model's
server can take decides which of them runs.

`local` for transformers, `llamacpp` for llama.cpp's server, `vllm` for vLLM, `hosted` for servers
that take JSON schemas and for all others, whose text is judged and asked for again.
"""

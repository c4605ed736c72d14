"""Language models: the contract of a chat model, and adapters for servers, libraries and callables."""

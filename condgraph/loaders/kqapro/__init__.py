"""KQA Pro's `kb.json`."""

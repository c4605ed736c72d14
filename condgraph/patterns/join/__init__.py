"""The search itself: joins of partial mappings under a bound that grows."""

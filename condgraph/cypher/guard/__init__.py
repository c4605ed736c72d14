"""The check of Cypher that a person or a model wrote: it reads, and does nothing else."""

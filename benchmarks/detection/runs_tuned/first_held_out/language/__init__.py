"""Held-out runs of language models, sequences, attention and optimizers."""

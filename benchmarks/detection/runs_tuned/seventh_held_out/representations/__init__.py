"""Runs of embeddings, codes, samples, policies, experts and attention."""

"""Runs of transformers, experts, codes, samples, embeddings and policies."""

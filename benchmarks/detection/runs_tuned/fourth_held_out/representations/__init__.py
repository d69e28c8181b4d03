"""Runs whose attention, experts, codes, samples, embeddings and policies are judged."""

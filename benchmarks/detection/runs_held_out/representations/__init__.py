"""Attention, experts, samples, codes, embeddings, policies and replicas: the eighth part."""

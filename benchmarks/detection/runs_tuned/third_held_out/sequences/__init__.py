"""Sequences, mixtures of experts, generative models, policies, workers, restarts."""

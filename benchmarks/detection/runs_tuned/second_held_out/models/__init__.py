"""Faults inside of models: activations, attention, experts, codes, samples and policies."""

"""Faults of updates: gradients, rates, scales, workers, and what a restart loses."""

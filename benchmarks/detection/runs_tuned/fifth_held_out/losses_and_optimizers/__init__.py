"""Runs about losses, optimizers, rates, scales, restarts, workers and time."""

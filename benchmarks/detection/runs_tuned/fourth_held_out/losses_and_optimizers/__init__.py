"""Runs about losses, rates, gradients, scales, restarts, workers and time."""

"""Sixth held-out part: losses, gradients, rates, restarts and workers."""

"""Runs of Weights & Biases, from the log that it writes beside them."""

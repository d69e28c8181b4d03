"""Faults of data, losses and modes."""

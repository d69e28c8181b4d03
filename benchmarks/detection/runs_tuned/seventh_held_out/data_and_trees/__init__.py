"""Runs about data and boosted trees, written for the held-out part."""

"""Baselines: what good runs of one recipe have in common, and how a run differs from them."""

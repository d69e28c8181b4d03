"""Hooks for machine-learning frameworks, one package each."""

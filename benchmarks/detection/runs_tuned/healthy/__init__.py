"""Runs without a fault."""

"""Runs with a fault."""

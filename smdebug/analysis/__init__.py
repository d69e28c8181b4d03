"""Helpers for the analysis of trials."""

"""Curves: what a trial saved and what rules measured, thinned and kept for pages and clients."""

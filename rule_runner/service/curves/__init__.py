"""Curves: saved values and measurements, thinned and kept for pages and clients."""

"""Frames and timelines made of the profiler's files, and what Python profiles hold."""

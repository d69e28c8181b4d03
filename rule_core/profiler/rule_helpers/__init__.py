"""Statistics for profiler rules."""

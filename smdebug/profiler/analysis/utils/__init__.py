"""Data frames, merged timelines and Python profiles of the profiler's files."""

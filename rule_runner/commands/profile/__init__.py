"""profile: summarizes profiler data, reports on them, and merges timelines."""

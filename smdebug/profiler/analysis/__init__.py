"""Analysis of what the profiler recorded: frames, timelines, Python profiles, charts, rules."""

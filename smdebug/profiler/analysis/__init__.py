"""Analysis of profiler data: data frames, merged timelines, Python profiles and charts."""

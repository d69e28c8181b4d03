"""Analysis of profiler data in notebooks: frames and charts."""

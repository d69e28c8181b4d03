"""Recording of profiler data during a training job."""

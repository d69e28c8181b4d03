"""What the profiler rules share: samples, utilization, growth and parameters."""

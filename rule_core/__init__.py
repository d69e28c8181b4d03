"""The engine: trials, rules, hooks that save tensors, and profiler data."""

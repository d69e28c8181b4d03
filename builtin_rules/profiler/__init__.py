"""The built-in rules that judge time windows of profiler data, one file each."""

"""Answers of Prometheus about GPUs and hosts, presented as the files of a profiler."""

"""What `rule-runner profile` does: look into profiler data, report on them, merge timelines."""

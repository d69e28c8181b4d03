"""Many trials: plans, shards, executors, and results collected into one report."""

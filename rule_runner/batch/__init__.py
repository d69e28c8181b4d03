"""Many trials at once: plans, shards, and results collected into one report."""

"""fleet: plan, run and collect the evaluations of many trials."""

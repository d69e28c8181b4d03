"""demo: train, evaluate and report on real data."""

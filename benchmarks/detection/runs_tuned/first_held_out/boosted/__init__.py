"""Held-out trainings of XGBoost: objectives, boosters and faults that the tuned part lacks."""

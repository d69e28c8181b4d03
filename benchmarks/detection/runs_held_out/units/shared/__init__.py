"""Data, networks and the loop of these trainings."""

"""Runs about data, classes, modes and ends of trainings, and about boosted trees."""

"""Runs about data, classes, ends of trainings, and boosted trees."""

"""Healthy trainings of ordinary kinds."""

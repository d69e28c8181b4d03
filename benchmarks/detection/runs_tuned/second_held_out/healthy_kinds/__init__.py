"""Healthy trainings of kinds that few others are of: experts, scalers, workers, codes, policies."""

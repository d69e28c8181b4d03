"""Readers of one job: its system metrics and timelines, as far as they are complete."""

"""Data, models and loops of these runs."""

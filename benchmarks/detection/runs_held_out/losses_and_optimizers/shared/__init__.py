"""Data, models, loops and consequences of this piece."""

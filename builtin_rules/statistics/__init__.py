"""Statistics that rules share."""

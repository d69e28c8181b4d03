"""Held-out trainings as scripts write them: routine, on several workers, and with mistakes."""

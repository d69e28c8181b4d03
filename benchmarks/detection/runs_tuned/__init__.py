"""Runs of the tuned part: the defaults of the rules were chosen with them in sight."""

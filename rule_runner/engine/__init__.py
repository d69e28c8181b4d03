"""Evaluates: walks the steps, invokes the rules and settles their verdicts."""

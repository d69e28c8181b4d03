"""Loads rules and trials: rule files, parameters and the trials they judge."""

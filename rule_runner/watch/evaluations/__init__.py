"""Evaluations: what judges the trials of a controller, on this machine or on a cluster."""

from rule_runner.watch.evaluations.opening import open_evaluations
from rule_runner.watch.evaluations.protocol import EndedEvaluation, Evaluations

__all__ = ["EndedEvaluation", "Evaluations", "open_evaluations"]

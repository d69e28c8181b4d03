"""StopTrainingAction: stops exactly one running training job, or none and says why."""

from rule_core.rules.actions.stop_training import ARN, StopTrainingAction

__all__ = ["ARN", "StopTrainingAction"]

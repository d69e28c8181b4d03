"""StopTrainingAction: stops exactly one running training job."""

from rule_core.rules.actions.stop_training import ARN, StopTrainingAction

__all__ = ["ARN", "StopTrainingAction"]

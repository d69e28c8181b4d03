"""StopTrainingAction: stops exactly one running training job."""

from rule_core.rules.actions.stop_training import (
    ARN as ARN,
    StopTrainingAction as StopTrainingAction,
)

"""Trials: queries over the tensors that a training job saved."""

from rule_core.trials.create_trial import LocalTrial, S3Trial, create_trial
from rule_core.trials.trial import Trial

__all__ = ["LocalTrial", "S3Trial", "Trial", "create_trial"]

"""Trials: the data that a training job saved."""

from rule_core.trials.create_trial import create_trial as create_trial
from rule_core.trials.opened_trial import LocalTrial as LocalTrial, S3Trial as S3Trial
from rule_core.trials.trial import Trial as Trial

"""Trials: the data that a training job saved."""

from rule_core.trials.create_trial import (
    LocalTrial as LocalTrial,
    S3Trial as S3Trial,
    create_trial as create_trial,
)
from rule_core.trials.trial import Trial as Trial

"""Trials: the data that a training job saved."""

from rule_core.trials.create_trial import create_trial as create_trial
from rule_core.trials.local_trial import LocalTrial as LocalTrial
from rule_core.trials.s3_trial import S3Trial as S3Trial
from rule_core.trials.trial import Trial as Trial

"""create_trial: opens the trial at a path."""

from rule_core.storage.uri import is_s3 as is_s3
from rule_core.trials.create_trial import create_trial as create_trial
from rule_core.trials.opened_trial import LocalTrial as LocalTrial, S3Trial as S3Trial

"""create_trial: opens the trial at a path."""

from rule_core.storage.uri import is_s3 as is_s3
from rule_core.trials.create_trial import (
    LocalTrial as LocalTrial,
    S3Trial as S3Trial,
    create_trial as create_trial,
)

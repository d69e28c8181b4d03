"""S3Trial: a trial in S3."""

from rule_core.trials.create_trial import S3Trial as S3Trial

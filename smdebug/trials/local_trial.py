"""LocalTrial: a trial in a local folder."""

from rule_core.trials.create_trial import LocalTrial as LocalTrial

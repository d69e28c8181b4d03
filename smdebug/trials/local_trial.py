"""LocalTrial: a trial in a local folder."""

from rule_core.trials.local_trial import LocalTrial as LocalTrial

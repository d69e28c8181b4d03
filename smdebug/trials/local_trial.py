"""LocalTrial: a trial in a local folder."""

from rule_core.trials.opened_trial import LocalTrial as LocalTrial

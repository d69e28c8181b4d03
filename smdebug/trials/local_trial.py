"""LocalTrial: a trial in a local folder, as `create_trial` returns it."""

from rule_core.trials.local_trial import LocalTrial

__all__ = ["LocalTrial"]

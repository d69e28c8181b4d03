"""LocalTrial: the old name of a trial in a local folder; any `Trial` reads from any store."""

from smdebug.trials.trial import Trial as LocalTrial

__all__ = ["LocalTrial"]

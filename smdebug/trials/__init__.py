"""Trials: what one training job saved, as questions and answers."""

from smdebug.trials.trial import Trial
from smdebug.trials.utils import create_trial

__all__ = ["Trial", "create_trial"]

"""Readers of single event files are not offered; a trial reads them."""

from rule_core.absent_names import absent_names

_TRIAL = "smdebug.trials.create_trial and trial.tensor(name).value(step)"
__getattr__ = absent_names(__name__, {"FileReader": _TRIAL, "EventFileReader": _TRIAL})

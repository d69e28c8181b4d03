"""Names of files in a trial."""

from rule_core.absent_names import absent_names
from rule_core.format.paths import END_OF_JOB as END_OF_JOB

__getattr__ = absent_names(
    __name__, {"IndexFileLocationUtils": "smdebug.trials.create_trial and trial.steps()"}
)

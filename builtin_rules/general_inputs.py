"""The inputs that most rules need: what a verdict rests on, and what it could not see."""

from typing import Any, Final

from builtin_rules.statistics.tensor_selection import GRADIENTS, LOSSES, WEIGHTS
from builtin_rules.statistics.training_scalars import LEARNING_RATES
from smdebug.core.modes import ModeKeys

GENERAL_INPUTS: Final = (LOSSES, LEARNING_RATES, GRADIENTS, WEIGHTS)
EVALUATION_LOSSES: Final = "evaluation losses"


def general_inputs(trial: Any) -> dict[str, bool]:
    """Return whether any step so far of a trial holds each general input, by its label."""
    held = {tensors.label: tensors.is_in(trial) for tensors in GENERAL_INPUTS}
    evaluated = trial.tensor_names(mode=ModeKeys.EVAL, collection=LOSSES.collections[0])
    return held | {EVALUATION_LOSSES: bool(evaluated)}

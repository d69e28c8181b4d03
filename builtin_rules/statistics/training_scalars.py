"""The scalars of one mode at a step, by tensor and worker."""

import math
import re
from typing import Any, Final

from builtin_rules.statistics.tensor_selection import TensorKey, only_number, tensors_of_mode
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import TensorInput

LEARNING_RATES: Final = TensorInput("learning rates", ("learning_rates",))
LOSS_SCALES: Final = TensorInput("loss scales", ("loss_scales",))
GRADIENT_NORMS: Final = TensorInput("gradient norms", ("gradient_norms",))
_SCORE: Final = r"scores?|(win|success)[- _]rate"
_REWARD: Final = rf"rew|rewards?|returns?|{_SCORE}"
_OF: Final = (
    r"ep(isod(e|ic))?|mean|avg|average|total|cumulative|running|smoothed|final|train(ing)?|eval"
    rf"|test|val(idation)?|extrinsic|true|raw|\d+(?!\d)|{_REWARD}"
)
REWARDS: Final = TensorInput(
    "rewards",
    (),
    (rf"(?i)(^|/)(({_OF})[- _/.]?)*({_REWARD})([- _/.]?({_OF}))*$", "^r$"),
    r"(?i)tim(e|ing)",
)
SCORE: Final = re.compile(rf"(?i)^(?!.*(rew|return)).*({_SCORE})")


def scalars_of_mode(
    trial: Any, step: int, selected: TensorInput, mode: ModeKeys = ModeKeys.TRAIN
) -> dict[TensorKey, float]:
    """Return the values of one element that were saved in a mode at a global step.

    Steps without a mode count as steps of training.
    """
    modes = trial.modes_at(step)
    if mode not in modes and not (mode is ModeKeys.TRAIN and ModeKeys.GLOBAL in modes):
        return {}
    if not (selected.patterns or any(_has_members(trial, name) for name in selected.collections)):
        return {}
    names = selected.names(trial, step)
    read = ModeKeys.GLOBAL
    if len(modes) > 1 and mode in modes:
        step, read = modes[mode], mode
        names = sorted(set(names).intersection(trial.tensor_names(step=step, mode=mode)))
    return {
        saved.key: value
        for saved in tensors_of_mode(trial, step, names, read)
        if (value := only_number(saved, step, read)) is not None
    }


def finite_scalars(
    trial: Any, step: int, selected: TensorInput, mode: ModeKeys = ModeKeys.TRAIN
) -> dict[TensorKey, float]:
    """Return the finite scalars of a mode at a global step; see `scalars_of_mode`."""
    scalars = scalars_of_mode(trial, step, selected, mode)
    return {key: value for key, value in scalars.items() if math.isfinite(value)}


def _has_members(trial: Any, collection: str) -> bool:
    """Return whether a collection can have members; asking an empty one for them is reported."""
    members = trial.collection(collection)
    return bool(members.tensor_names or members.include_regex)

"""Objective: which of several losses was minimised, and whether a loss has to fall at all."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from builtin_rules.statistics.losses.loss_statistics import OF_EPOCH, loss, split_metric
from builtin_rules.statistics.tensor_selection import names_in_mode
from builtin_rules.statistics.training_kind import TrainingKind, training_kind
from smdebug.core.modes import ModeKeys

RATES: Final = "learning_rates"
SUM: Final = "the sum of the losses"
OF_STEP: Final = "_step"  # the end of the name of a loss whose mean over an epoch is saved too
_TOTAL: Final = re.compile(
    r"(^|.*[/.])(train(ing)?[_/-]?)?((total|overall|sum)[_-]?loss|loss[_-]?(total|sum)?|loss_value)"
    r"([_-](step|epoch))?$",
    re.IGNORECASE,
)
_VALIDATION: Final = re.compile(r"(^|[/_.])(val|valid|validation|eval|test)([/_.]|$)")
_ROUNDING: Final = 1e-3  # relative difference between a total and the sum of its parts
_MIN_PARTS: Final = 2
_NO_OBJECTIVE: Final = frozenset({TrainingKind.ADVERSARIAL, TrainingKind.REINFORCEMENT})


def no_objective(trial: Any) -> str:
    """Return why no loss of a trial has to fall; empty if one has to."""
    kind = training_kind(trial)
    return f"{kind} training: its losses need not fall" if kind in _NO_OBJECTIVE else ""


def objectives(losses: Mapping[str, float]) -> dict[str, float]:
    """Return the losses to judge among the training losses of a step, by name.

    That is the loss that equals the sum of the others, else the one whose name says that it is the
    total, else the sum of all. Each of XGBoost's metrics is judged by itself, and so are means of
    an epoch (``train_loss_epoch``).
    """
    if len(losses) <= 1 or all(map(is_metric, losses)):
        return dict(losses)
    of_epoch = {name: value for name, value in losses.items() if name.endswith(OF_EPOCH)}
    if of_epoch and len(of_epoch) < len(losses):
        of_step = {name: value for name, value in losses.items() if name not in of_epoch}
        return objectives(of_step) | objectives(of_epoch)
    whole = sum(losses.values())
    for name, value in losses.items():
        if len(losses) > _MIN_PARTS and abs(whole - 2 * value) <= _ROUNDING * abs(value):
            return {name: value}
    totals = sorted((name for name in losses if _TOTAL.match(name)), key=len)
    if totals:
        return {totals[0]: losses[totals[0]]}
    return {SUM: whole}


def without_twins(names: Collection[str]) -> list[str]:
    """Return names without those of single steps of which the means of epochs are there.

    >>> without_twins(["loss_step", "loss_epoch", "kl_step"])
    ['loss_epoch', 'kl_step']
    """
    twins = {name.removesuffix(OF_EPOCH) + OF_STEP for name in names if name.endswith(OF_EPOCH)}
    return [name for name in names if name not in twins]


def is_metric(name: str) -> bool:
    """Return whether a loss has the name of a metric of XGBoost."""
    return split_metric(name) is not None


def is_validation(name: str) -> bool:
    """Return whether the name of a loss that was saved without a mode is one of validation."""
    set_name, _ = split_metric(name) or (name, "")
    return bool(_VALIDATION.search(set_name))


def training_losses(trial: Any, step: int, names: Iterable[str]) -> dict[str, float]:
    """Return the training losses of a step by name; single numbers, finite or not."""
    modes = trial.modes_at(step)
    losses: dict[str, float] = {}
    for mode in (ModeKeys.TRAIN, ModeKeys.GLOBAL):
        if mode not in modes:
            continue
        saved, read_step, read_mode = names_in_mode(trial, step, names, mode)
        for name in saved:
            value = None if is_validation(name) else loss(trial, read_step, name, read_mode)
            if value is not None:
                losses[name] = value
    return losses


class WarmUp:
    """Tracks whether the learning rate of a trial still rises for the first time."""

    def __init__(self) -> None:
        self._rate: float | None = None
        self._rises = False
        self._over = False

    def add(self, trial: Any, step: int, names: Collection[str]) -> bool:
        """Return whether the rate rises at a step; `names` are the rates saved there."""
        if self._over or not names:
            return not self._over and self._rises
        rate = loss(trial, step, min(names), ModeKeys.GLOBAL)
        if rate is None:
            return False
        before, self._rate = self._rate, rate
        self._over = before is not None and rate <= before
        self._rises = before is not None and rate > before
        return self._rises

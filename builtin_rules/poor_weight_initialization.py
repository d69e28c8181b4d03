"""PoorWeightInitialization: the first steps show that the starting weights were chosen badly."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from builtin_rules.history import learns
from builtin_rules.losses import losses_at
from builtin_rules.selection import LITERAL, Saved, by_role, named, numbers, saved, variance
from smdebug.core.collection import CollectionKeys
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import FloatParam, IntParam, PatternsParam, set_parameters

RATIO: Final = "variance ratio"
SPREAD: Final = "gradient spread"
LOSS: Final = "recent loss"
INPUTS: Final = PatternsParam(
    "activation_inputs_regex",
    "Patterns: a tensor is an input of an activation function if one of them is in its name.",
    default=".*relu_input",
    also=(r"(?i)re_?lu6?(_?\d+)?(_input|/inputs)",),  # PyTorch, MXNet; Keras
    collection="relu_input",
)
# Why these: docs/decisions/0011-poor-initialisation.md.
CHANCE: Final = 0.01  # noise alone puts the latest losses above all others no more often
QUIET: Final = 1e-3  # losses that differ by less, relative to the first, stand still


class _Layer(NamedTuple):
    """The variance of the inputs of an activation function."""

    variance: float
    name: str


class PoorWeightInitialization(Rule):
    """Met when one of three checks fails in the first `steps` saved steps of training.

    (a) Sorted by variance, two neighbours among the inputs of activation functions are more than
    `threshold` times apart. (b) For `patience` saved steps in a row the 5th and the 95th percentile
    of a gradient's elements lie closer together than `distribution_range`, and than that share of
    the median distance over all gradients; elements that are 0 count only if all are, and
    gradients of one dimension only where there are no others. (c) None of the last `patience`
    losses lies below the first, and either all losses are alike to 0.1 %, or the last ones lie
    above all others in a way that noise has once in a hundred times.

    Saved steps count that have activation inputs, gradients or losses; steps of mode EVAL and
    PREDICT do not, and losses of validation are passed over (Keras's ``val_``, XGBoost's of another
    set than that of training). Losses of several workers are averaged, all else is judged for each
    worker. NaN and infinity are left to `ExplodingTensor`. Tensors of one element have no variance;
    where only reductions were saved (a) needs the variance or std, and (b) cannot be judged.

    With `literal` (a) compares the largest variance with the smallest, (b) is met at once by a
    distance below `distribution_range` of any gradient, and (c) is met when `patience` steps in a
    row bring no new lowest loss.
    """

    READS = (
        "the collection relu_input (ours know it by the class of a module or layer), and inputs "
        "named after ReLU as PyTorch (ReLU_input_0, conv1.relu_input_0), MXNet (relu0_input_0) and "
        "Keras (re_lu/inputs) do: values, or the saved reduction variance or std; the collections "
        "gradients and losses: values."
    )
    PARAMS = (
        INPUTS,
        FloatParam(
            "threshold",
            "Largest ratio allowed between the variances of activation inputs.",
            default=10.0,
            minimum=0.0,
            minimum_open=True,
            unit="ratio of variances",
        ),
        FloatParam(
            "distribution_range",
            "Smallest distance allowed between the 5th and the 95th percentile of a gradient.",
            default=0.001,
            minimum=0.0,
            unit="unit of the gradient",
        ),
        IntParam(
            "patience",
            "So many steps without a lower loss are too many.",
            default=5,
            minimum=1,
            unit="saved steps",
        ),
        FloatParam(
            "steps",
            "So many steps are judged; a fraction is left out.",
            default=10.0,
            minimum=1.0,
            unit="saved steps",
        ),
        LITERAL,
    )
    QUANTITIES = (
        Quantity(RATIO, "ratio of the variances of activation inputs", worse="above", log=True),
        Quantity(SPREAD, "95th - 5th percentile of a gradient", worse="below", log=True),
        Quantity(LOSS, "lowest of the latest losses", worse="above"),
    )
    PAGE = Page(
        why="""
        Weights that start too large or too small make signals and gradients grow or shrink from
        layer to layer, and weights that start alike stay alike. The network then learns slowly or
        not at all, which the first steps can show long before the loss curve does.
        """,
        save="""
        The collection `relu_input`, which our hooks fill by the class of a module, and `gradients`;
        losses are saved anyway. The first steps count, so save many of them:

            Hook(
                out_dir,
                save_config=SaveConfig(save_interval=1, end_step=20),
                include_collections=["relu_input", "gradients"],
            )
        """,
        missing="""
        Each check is silent without its tensors: (a) needs two activation inputs, (b) gradients
        with their values, (c) more than `patience` losses. NaN and infinity are passed over.
        """,
        remedy="""
        - Use the initialisation that belongs to the activation: He for ReLU, Glorot for tanh and
          sigmoid; never zeros for more than the last layer.
        - Normalise inputs to mean 0 and variance 1, and put norm layers between deep layers.
        - The note names the two layers whose variances lie apart: look at the one between.
        - If only the loss stands still, see the learning rate and the labels.
        """,
        limits="""
        Other activations than ReLU: give `activation_inputs_regex`, such as `sigmoid_input`. Only
        the first `steps` saved steps are judged: at a save interval of 500 they span 5,000. Noisy
        losses hide that they stand still: raise `patience` and `steps`; (c) needs more steps
        than `patience`, twice as many where losses are noisy.
        """,
    )
    activation_inputs_regex: tuple[str, ...]
    threshold: float
    distribution_range: float
    patience: int
    steps: float
    literal: bool

    def __init__(
        self,
        base_trial: Any,
        activation_inputs_regex: Any = None,
        threshold: Any = 10.0,
        distribution_range: Any = 0.001,
        patience: Any = 5,
        steps: Any = 10.0,
        literal: Any = False,
    ) -> None:
        super().__init__(base_trial)
        set_parameters(
            self,
            activation_inputs_regex=activation_inputs_regex,
            threshold=threshold,
            distribution_range=distribution_range,
            patience=patience,
            steps=steps,
            literal=literal,
        )
        self.steps = int(self.steps)
        # How many steps were judged; the losses of each, and for how many steps in a row a
        # worker's gradient was narrow. Both go after the last step that is judged.
        self._judged = 0
        self._losses: dict[str, list[float]] = {}
        self._narrow: dict[tuple[str, str], int] = {}

    def invoke_at_step(self, step: int) -> bool:
        """Judge the first steps; `step` is a global step."""
        trial = self.base_trial
        if self._judged >= self.steps:
            return self.not_judged(f"the first {self.steps} saved steps are over")
        if not learns(trial, step):
            return self.not_judged("nothing is learned in this mode")
        inputs = by_role(trial, step, INPUTS, self.activation_inputs_regex)
        gradients = named(trial, step, [CollectionKeys.GRADIENTS], [])
        losses = named(trial, step, [CollectionKeys.LOSSES], [])
        if not (inputs or gradients or losses):
            return self.not_judged("no activation inputs, gradients or losses at this step")
        self._judged += 1
        answers = [
            *self._judge_variances(step, inputs),
            *self._judge_spreads(step, gradients),
            *self._judge_losses(step, losses),
        ]
        if self._judged >= self.steps:
            self._losses.clear()
            self._narrow.clear()
        return any(answers) if answers else self.not_judged("nothing that can be compared yet")

    def _judge_variances(self, step: int, names: list[str]) -> Iterator[bool]:
        """Yield for each worker whether variances lie too far apart: check (a)."""
        layers: dict[str, list[_Layer]] = {}
        for one in saved(self.base_trial, step, names):
            value = variance(one, step)
            if value is not None and math.isfinite(value):
                layers.setdefault(one.worker, []).append(_Layer(value, one.name))
        for worker, found in layers.items():
            if len(found) > 1:
                found.sort()
                pairs = [(found[0], found[-1])] if self.literal else [*pairwise(found)]
                low, high = max(pairs, key=_ratio)
                ratio = _ratio((low, high))
                yield self.measured(
                    step,
                    RATIO,
                    ratio,
                    self.threshold,
                    met=ratio > self.threshold,
                    tensor=high.name,
                    worker=worker,
                    note=f"Its variance is {high.variance:.3g}, that of {low.name!r} is "
                    f"{low.variance:.3g}.",
                )

    def _judge_spreads(self, step: int, names: list[str]) -> Iterator[bool]:
        """Yield for each gradient whether its elements lie too close together: check (b)."""
        spreads = {
            one: (array.ndim, spread)
            for one in saved(self.base_trial, step, names)
            if (array := numbers(one, step)) is not None
            and math.isfinite(spread := _spread(array, whole=self.literal))
        }
        flat = all(rank < 2 for rank, _ in spreads.values())  # noqa: PLR2004 - a matrix has two
        judged = {
            one: spread
            for one, (rank, spread) in spreads.items()
            if self.literal or flat or rank > 1
        }
        limit = self.distribution_range
        if judged and not self.literal:
            limit *= min(1.0, float(np.median(list(judged.values()))))
        for one, spread in judged.items():
            narrow = spread < limit or (spread == 0 and not self.literal)
            yield self.measured(
                step,
                SPREAD,
                spread,
                limit,
                met=self._lasts(one, narrow=narrow),
                tensor=one.name,
                worker=one.worker,
                note="All of it is 0." if spread == 0 else None,
            )

    def _lasts(self, one: Saved, *, narrow: bool) -> bool:
        """Say whether a gradient is narrow, and was for long enough."""
        key = one.name, one.worker
        self._narrow[key] = self._narrow.get(key, 0) + 1 if narrow else 0
        return narrow and (self.literal or self._narrow[key] >= self.patience)

    def _judge_losses(self, step: int, names: list[str]) -> Iterator[bool]:
        """Yield for each loss whether it stands still, once that can be told: check (c)."""
        for name in names:
            training = losses_at(self.base_trial, step, [name]).training.values()
            series = self._losses.setdefault(name, [])
            series += training
            if not training or len(series) <= self.patience:
                continue
            before, latest = series[: -self.patience], series[-self.patience :]
            lowest = min(latest)
            limit = min(before) if self.literal else series[0]
            stands = lowest >= limit and (self.literal or _is_clear(before, latest))
            note = f"None of the last {self.patience} losses is lower." if stands else None
            yield self.measured(step, LOSS, lowest, limit, met=stands, tensor=name, note=note)


def _ratio(pair: tuple[_Layer, _Layer]) -> float:
    """Return how many times the larger variance the second is; 1 if both are 0."""
    low, high = pair
    if low.variance == 0:
        return math.inf if high.variance > 0 else 1.0
    return high.variance / low.variance


def _spread(array: Any, *, whole: bool) -> float:
    """Return the distance of two percentiles; without zeros unless `whole`, 0 if all are."""
    flat = array.reshape(-1)
    flat = flat if flat.dtype.kind == "f" else flat.astype(np.float64)
    if not whole:
        flat = flat[flat != 0]
    if not flat.size:
        return 0.0
    if np.isnan(np.min(flat)):
        return math.nan
    return _percentile(flat, 95) - _percentile(flat, 5)


def _percentile(flat: Any, percent: int) -> float:
    """Return a percentile of numbers as numpy does, which takes many times as long."""
    at, more = divmod(percent * (flat.size - 1), 100)
    ordered = np.partition(flat, at)
    value = float(ordered[at])
    return value + (float(ordered[at + 1 :].min()) - value) * (more / 100) if more else value


def _is_clear(before: list[float], latest: list[float]) -> bool:
    """Say whether losses that are not lower stand still or rise, and not by chance."""
    every = before + latest
    if max(every) - min(every) <= QUIET * abs(before[0]):
        return True
    return min(latest) >= max(before) and math.comb(len(every), len(latest)) * CHANCE >= 1

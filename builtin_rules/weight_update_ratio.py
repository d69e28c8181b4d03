"""WeightUpdateRatio: some weight moves too much or too little for its size."""

import math
from itertools import takewhile
from typing import Any, Final, NamedTuple

from builtin_rules.differences import CHANGE, norms
from builtin_rules.history import Comparable, Gradients, backwards, learns
from builtin_rules.selection import LITERAL, Saved, named, numbers, saved, told
from smdebug.core.collection import CollectionKeys
from smdebug.exceptions import SMDebugValueError
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import FloatParam, IntParam, set_parameters

LARGE: Final = "large update"
SMALL: Final = "small update"
# Weights may stand still for a while: gradients that are accumulated, a warm-up from learning rate
# 0, steps that mixed precision leaves out. See docs/decisions/0009-weights-that-stand-still.md.
STILL_STEPS: Final = 10


class _Update(NamedTuple):
    """How far a weight moved between two steps, which count within their mode."""

    one: Saved
    since: int
    change: float
    before: float


class WeightUpdateRatio(Rule):
    """Met when ``|w - p| / (|p| + epsilon)`` is above `large_threshold` or below `small_threshold`.

    `w` is a weight and `p` its value at an earlier step of the same mode: at the last saved one,
    or with `num_steps` at the earliest saved one not further back (steps count within the mode,
    and globally where none was set). ``| |`` is the Euclidean norm over all elements. Steps of mode
    EVAL and PREDICT are not judged: weights do not move there. Every worker is judged against its
    own values. Ratios that are not finite (`ExplodingTensor` owns those), empty and non-numeric
    weights, changed shapes and weights of which only reductions were saved are passed over.

    Weights that were zero are not judged. A small ratio meets the condition once it has been small
    over ten steps. If it is exactly 0 the weight may be frozen: it counts if the weight moved
    before, or if it has a gradient; where no weight has a saved one, if no weight of the trial has
    moved. With `literal` every ratio counts.
    """

    READS = "the collection weights: values at two steps; the collection gradients: names."
    PARAMS = (
        IntParam(
            "num_steps",
            "How far back a weight is compared at most; without it with the last saved step.",
            minimum=1,
            unit="steps of the mode",
        ),
        FloatParam(
            "large_threshold",
            "A larger ratio of update to weight meets the condition.",
            default=10.0,
            minimum=0.0,
            minimum_open=True,
            unit="update per weight",
        ),
        FloatParam(
            "small_threshold",
            "A smaller ratio of update to weight meets the condition.",
            default=1e-8,
            minimum=0.0,
            unit="update per weight",
        ),
        FloatParam(
            "epsilon",
            "Added to the norm of the weight.",
            default=1e-9,
            minimum=0.0,
            minimum_open=True,
            unit="unit of the weight",
        ),
        LITERAL,
    )
    QUANTITIES = (
        Quantity(LARGE, "norm of update / norm of weight", worse="above", log=True),
        Quantity(SMALL, "norm of update / norm of weight", worse="below", log=True),
    )
    PAGE = Page(
        why="""
        Updates should be a small share of the weights, a thousandth or so. Much larger ones throw
        away what was learned and diverge; (almost) none at all means that the weight does not
        learn, while the training costs what it costs.
        """,
        save="""
        The collection `weights` with its values; with `gradients` beside it the rule tells frozen
        weights from forgotten ones:

            Hook(
                out_dir,
                save_config=SaveConfig(save_interval=100),
                include_collections=["weights", "gradients"],
            )
        """,
        missing="""
        The first saved step has nothing to be compared with. Steps of evaluation, weights that are
        or were not finite, changed shapes, and weights without values (reductions only) are passed
        over.
        """,
        remedy="""
        - Too large: lower the learning rate, warm it up, clip gradients; see whether the
          initialisation is far too small.
        - Too small: see whether the optimizer was given the weight and its `step` is called, and
          what the learning rate is at this step.
        - Small in the first layers only: see `VanishingGradient`.
        - If the weight may be frozen, see whether that is on purpose.
        """,
        limits="""
        Without gradients a weight that never moves while others do is taken for frozen:
        `UnchangedTensor` finds it. Gradients that are accumulated over more than ten saved steps
        look like weights that stand still: give their number as `num_steps`. A weight that starts
        out close to zero, but not at it, can have a large ratio at first: raise
        `large_threshold`.
        """,
    )
    num_steps: int | None
    large_threshold: float
    small_threshold: float
    epsilon: float
    literal: bool

    def __init__(
        self,
        base_trial: Any,
        num_steps: Any = None,
        large_threshold: Any = 10.0,
        small_threshold: Any = 1e-8,
        epsilon: Any = 1e-9,
        literal: Any = False,
    ) -> None:
        super().__init__(base_trial)
        set_parameters(
            self,
            num_steps=num_steps,
            large_threshold=large_threshold,
            small_threshold=small_threshold,
            epsilon=epsilon,
            literal=literal,
        )
        if self.small_threshold > self.large_threshold:
            msg = (
                f"Parameter 'small_threshold' must be <= 'large_threshold', "
                f"{self.large_threshold!r}, got {self.small_threshold!r}."
            )
            raise SMDebugValueError(msg)
        # Both hold one entry for each weight and worker at most: those that ever moved, and the
        # step since which a ratio is small, which goes when it no longer is.
        self._moved: set[tuple[str, str]] = set()
        self._small_since: dict[tuple[str, str], int] = {}
        self._gradients: Gradients | None = None  # of the step in hand

    def invoke_at_step(self, step: int) -> bool:
        """Judge the weights of global step `step`."""
        trial = self.base_trial
        if not learns(trial, step):
            return self.not_judged("weights do not move in this mode")
        names = named(trial, step, [CollectionKeys.WEIGHTS], [])
        if not names:
            return self.not_judged("no weights at this step")
        self._gradients = None
        among = Comparable(trial, step)
        updates = [
            update
            for one in saved(trial, step, names)
            if (update := self._update(one, step, among)) is not None
        ]
        self._moved.update((one.name, one.worker) for one, _, change, _ in updates if change > 0)
        answers = [self._judge(update, step) for update in updates]
        if all(answer is None for answer in answers):
            return self.not_judged("no weight that can be compared with an earlier step")
        return any(answers)

    def _update(self, one: Saved, step: int, among: Comparable) -> _Update | None:
        """Return how far a weight moved, or None if there is nothing to compare it with."""
        at = self._partner(one, step, among)
        if at is None:
            return None
        change = told(one, step, CHANGE, at)
        if change is None:  # nothing, or of another type
            value, before = numbers(one, step), numbers(one, at)
            if value is None or before is None or value.shape != before.shape:
                return None
            change = norms(value, before)
        return _Update(one, self.base_trial.mode_step(at), *change)

    def _partner(self, one: Saved, step: int, among: Comparable) -> int | None:
        """Return the step that a weight is compared with, or None if there is none."""
        earlier = backwards(one, step - 1, among)
        if self.num_steps is None:
            return next(earlier, None)
        number = self.base_trial.mode_step
        first = number(step) - self.num_steps
        found = None
        for at in takewhile(lambda at: number(at) >= first, earlier):
            found = at
        return found

    def _judge(self, update: _Update, step: int) -> bool | None:
        """Say whether a weight moved too much or too little, or None if that cannot be told."""
        one = update.one
        ratio = update.change / (update.before + self.epsilon)
        if not math.isfinite(ratio) or (update.before == 0 and not self.literal):
            return None
        met = False
        for quantity, limit, outside in (
            (LARGE, self.large_threshold, ratio > self.large_threshold),
            (SMALL, self.small_threshold, self._is_small(update, ratio, step)),
        ):
            met |= self.measured(
                step,
                quantity,
                ratio,
                limit,
                met=outside,
                tensor=one.name,
                worker=one.worker,
                note="It has not moved at all: it may be frozen." if ratio == 0 else None,
            )
        return met

    def _is_small(self, update: _Update, ratio: float, step: int) -> bool:
        """Say whether a weight has moved too little for long enough, and is not frozen."""
        key = update.one.name, update.one.worker
        if ratio >= self.small_threshold:
            self._small_since.pop(key, None)
            return False
        since = self._small_since.setdefault(key, update.since)
        if self.literal:
            return True
        lasts = self.base_trial.mode_step(step) - since >= STILL_STEPS
        return lasts and (ratio > 0 or key in self._moved or not self._is_frozen(key[0]))

    def _is_frozen(self, name: str) -> bool:
        """Say whether a weight that has never moved is not meant to."""
        gradients = self._gradients = self._gradients or Gradients(self.base_trial)
        return not gradients.has(name) if gradients.tell else bool(self._moved)

"""ExplodingTensor: some tensor holds NaN or infinity."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from builtin_rules.selection import (
    COLLECTION_NAMES,
    LITERAL,
    TENSOR_REGEX,
    Saved,
    named,
    saved,
    saved_reductions,
    told,
    view,
)
from smdebug.core.measures import Piece
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import BoolParam, set_parameters

NOT_FINITE: Final = "elements that are not finite"

TREES: Final = "trees"  # the collection of XGBoost's

# Sums and norms overflow on healthy tensors; these cannot.
_BOUNDED: Final = frozenset({("min", False), ("max", False), ("min", True), ("max", True)})


class Counts(NamedTuple):
    """How many elements are NaN, how many are infinite, and how many of which kind there are."""

    nan: int
    infinite: int
    size: int
    kind: str


class NotFinite:
    """Measures how many elements are not finite."""

    def part(self, piece: Piece, before: Piece | None = None) -> tuple[int, int]:
        """Return how many are NaN and infinite; see `smdebug.core.measures.Measure`.

        A look at each element is due where their sum shows NaN or infinity only.
        """
        del before
        elements = piece.elements
        if elements.dtype.kind != "f" or np.isfinite(piece.total(absolute=False)):
            return 0, 0
        nan, infinite = np.isnan(elements), np.isinf(elements)
        return int(np.count_nonzero(nan)), int(np.count_nonzero(infinite))

    def join(self, parts: Sequence[tuple[int, int]], size: int, dtype: "np.dtype[Any]") -> Counts:
        """Return how many of all elements are."""
        nan, infinite = (sum(counts) for counts in zip(*parts, strict=True))
        return Counts(nan, infinite, size, dtype.kind)


_NOT_FINITE: Final = NotFinite()


class ExplodingTensor(Rule):
    """Met when a selected floating-point tensor holds NaN, or infinity unless `only_nan`.

    Every saved tensor of every worker is judged unless selectors are given; each step by itself.
    Integers, booleans and strings are passed over, and so are the trees of XGBoost, which hold NaN
    at every leaf, unless they are selected. Where only reductions were saved, NaN counts in any of
    them and infinity only in min, max, abs_min and abs_max. With `literal` trees are judged, and
    infinity counts in every reduction.
    """

    READS = "every saved tensor, or those selected: values, or saved reductions."
    PARAMS = (
        COLLECTION_NAMES,
        TENSOR_REGEX,
        BoolParam("only_nan", "Let infinities pass; only NaN counts.", default=False),
        LITERAL,
    )
    QUANTITIES = (Quantity(NOT_FINITE, "NaN and infinite elements", worse="above"),)
    PAGE = Page(
        why="""
        One NaN or infinity spreads through a network within a step or two. What is trained
        afterwards is lost, and so is what it costs.
        """,
        save="""
        Anything; the losses show it late, gradients and weights show where it began. The reductions
        `min` and `max` are enough:

            Hook(
                out_dir,
                include_collections=["losses", "gradients"],
                reduction_config=ReductionConfig(reductions=["min", "max"]),
            )
        """,
        missing="""
        NaN is what the rule looks for. Integers, booleans and strings are passed over; a step
        without floating-point tensors is skipped.
        """,
        remedy="""
        - Find the first tensor in the order of the network: the step before holds the cause.
        - Lower the learning rate, warm it up, or clip the gradients.
        - With float16 use a loss scaler, or bfloat16.
        - Look for a division by zero, a logarithm of zero, a square root of less, and NaN in data.
        """,
        limits="""
        Masks of attention hold minus infinity on purpose: select others with `tensor_regex`, or
        give `only_nan`. With a loss scaler single steps of infinite gradients are its way to find
        its scale: judge weights or losses there. Of a saved sum or norm only NaN counts.
        """,
    )
    collection_names: tuple[str, ...]
    tensor_regex: tuple[str, ...]
    only_nan: bool
    literal: bool

    def __init__(
        self,
        base_trial: Any,
        collection_names: Any = None,
        tensor_regex: Any = None,
        only_nan: Any = False,
        literal: Any = False,
    ) -> None:
        super().__init__(base_trial)
        set_parameters(
            self,
            collection_names=collection_names,
            tensor_regex=tensor_regex,
            only_nan=only_nan,
            literal=literal,
        )

    def invoke_at_step(self, step: int) -> bool:
        """Judge the tensors of global step `step`."""
        trial = self.base_trial
        if self.collection_names or self.tensor_regex:
            names = named(trial, step, self.collection_names, self.tensor_regex)
        else:
            trees = [] if self.literal else named(trial, step, [TREES], [])
            names = sorted(set(trial.tensor_names(step=step)).difference(trees))
        answers = [self._judge(one, step) for one in saved(trial, step, names)]
        if all(answer is None for answer in answers):
            return self.not_judged("no floating-point tensor at this step")
        return any(answers)

    def _judge(self, one: Saved, step: int) -> bool | None:
        """Say whether one tensor has exploded, or None if that cannot be told."""
        found = told(one, step, _NOT_FINITE)
        if found is None:  # nothing, or no real numbers
            found = self._look_at(one, step)
        if found is None:
            return self._judge_reductions(one, step)
        if found.kind not in "fcV":
            return None
        count = found.nan if self.only_nan else found.nan + found.infinite
        note = f"{found.nan} NaN and {found.infinite} infinite of {found.size} elements."
        return self._measured(one, step, count, note)

    @staticmethod
    def _look_at(one: Saved, step: int) -> "Counts | None":
        """Return the counts of an array of another kind, or None if there is no value."""
        array = view(one, step)
        if array is None:
            return None
        nan = infinite = 0
        if array.dtype.kind == "c":
            nan, infinite = int(np.isnan(array).sum()), int(np.isinf(array).sum())
        return Counts(nan, infinite, array.size, array.dtype.kind)

    def _judge_reductions(self, one: Saved, step: int) -> bool | None:
        values = saved_reductions(one, step)
        if not values:
            return None
        for key, value in values.items():
            if np.isnan(value) or (np.isinf(value) and self._bounds(key) and not self.only_nan):
                name = f"{'abs_' if key[1] else ''}{key[0]}"
                return self.found(
                    step, one.name, one.worker, value, None, f"Saved reduction {name}."
                )
        return self._measured(one, step, 0)

    def _bounds(self, key: tuple[str, bool]) -> bool:
        """Say whether a reduction is infinite only where an element is."""
        return self.literal or key in _BOUNDED

    def _measured(self, one: Saved, step: int, count: int, note: str | None = None) -> bool:
        return self.measured(
            step,
            NOT_FINITE,
            count,
            0,
            met=count > 0,
            tensor=one.name,
            worker=one.worker,
            note=note,
        )

"""ExplodingTensor: a tensor holds NaN or infinity."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.tensor_selection import (
    COLLECTION_NAMES,
    LITERAL,
    TENSOR_REGEX,
    SavedTensor,
    any_met,
    record,
    require_selection,
    saved_reductions,
    saved_tensors,
    statistic,
    tensor_names,
    view,
)
from smdebug.rules.extensions import BoolParam, Page, Piece, Quantity

NOT_FINITE: Final = "elements that are not finite"

TREES: Final = "trees"  # a collection of XGBoost trainings

# Unlike sums and norms, these do not overflow on healthy tensors.
_BOUNDED: Final = frozenset({("min", False), ("max", False), ("min", True), ("max", True)})


class NonFiniteCounts(NamedTuple):
    """The numbers of NaN and infinite elements, the size, and the kind of the data type."""

    nan: int
    infinite: int
    size: int
    kind: str


class NonFiniteCount:
    """Measures how many elements are not finite."""

    def part(self, piece: Piece, before: Piece | None = None) -> tuple[int, int]:
        """Return how many are NaN and infinite; see `StreamingStatistic`.

        Elements are examined one by one only if their sum is NaN or infinite.
        """
        del before
        elements = piece.elements
        if elements.dtype.kind != "f" or np.isfinite(piece.total(absolute=False)):
            return 0, 0
        nan, infinite = np.isnan(elements), np.isinf(elements)
        return int(np.count_nonzero(nan)), int(np.count_nonzero(infinite))

    def join(
        self, parts: Sequence[tuple[int, int]], size: int, dtype: "np.dtype[Any]"
    ) -> NonFiniteCounts:
        """Return the counts over all elements."""
        nan, infinite = (sum(counts) for counts in zip(*parts, strict=True))
        return NonFiniteCounts(nan, infinite, size, dtype.kind)


_NOT_FINITE: Final = NonFiniteCount()


class ExplodingTensor(DeclaredRule):
    """Met when a selected floating-point tensor holds NaN, or infinity unless `only_nan`.

    Without selectors, every saved tensor of every worker is judged; each step is judged separately.
    Integers, booleans and strings are skipped. So are XGBoost's trees, which hold NaN at every
    leaf, unless they are selected. If only reductions were saved, NaN counts in any of them,
    infinity only in min, max, abs_min and abs_max. With `literal`, trees are judged, and infinity
    counts in every reduction.
    """

    READS = "every saved tensor, or those selected: values, or saved reductions."
    PARAMS = (
        COLLECTION_NAMES,
        TENSOR_REGEX,
        BoolParam("only_nan", "Count only NaN and ignore infinity.", default=False),
        LITERAL,
    )
    QUANTITIES = (Quantity(NOT_FINITE, "NaN and infinite elements", worse="above"),)
    PAGE = Page(
        why="""
        A single NaN or infinity spreads through a network within a step or two. Everything trained
        afterwards is lost, including its cost.
        """,
        save="""
        Any tensors: losses show the problem late, gradients and weights show where it started. The
        reductions `min` and `max` are enough:

            Hook(
                out_dir,
                include_collections=["losses", "gradients"],
                reduction_config=ReductionConfig(reductions=["min", "max"]),
            )
        """,
        missing="""
        NaN is what the rule looks for. Integers, booleans and strings are skipped, as are steps
        without floating-point tensors.
        """,
        remedy="""
        - Find the first affected tensor in the order of the network, at the first affected step:
          the cause is there or one step earlier.
        - Lower the learning rate, warm it up, or clip the gradients.
        - With float16, use a loss scaler or bfloat16.
        - Look for divisions by zero, logarithms of zero, square roots of negative numbers, and NaN
          in the data.
        """,
        limits="""
        Attention masks hold minus infinity on purpose: select other tensors with `tensor_regex`, or
        set `only_nan`. A loss scaler produces single steps of infinite gradients while it searches
        its scale: judge weights or losses instead. In a saved sum or norm only NaN counts.
        """,
    )
    collection_names: tuple[str, ...]
    tensor_regex: tuple[str, ...]
    only_nan: bool
    literal: bool

    def _prepare(self) -> None:
        require_selection(self, optional=True)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the tensors of global step `step`."""
        trial = self.base_trial
        if self.collection_names or self.tensor_regex:
            names = tensor_names(trial, step, self.collection_names, self.tensor_regex)
        else:
            trees = [] if self.literal else tensor_names(trial, step, [TREES], [])
            names = sorted(set(trial.tensor_names(step=step)).difference(trees))
        answers = [self._judge(saved, step) for saved in saved_tensors(trial, step, names)]
        return any_met(self, answers, "no floating-point tensor at this step")

    def _judge(self, saved: SavedTensor, step: int) -> bool | None:
        """Return whether a tensor holds non-finite values, or None if that is unknown."""
        counts = statistic(saved, step, _NOT_FINITE)
        if counts is None:  # no value, or no real numbers
            counts = self._count_other(saved, step)
        if counts is None:
            return self._judge_reductions(saved, step)
        if counts.kind not in "fcV":
            return None
        count = counts.nan if self.only_nan else counts.nan + counts.infinite
        note = f"{counts.nan} NaN and {counts.infinite} infinite of {counts.size} elements."
        return self._measured(saved, step, count, note)

    @staticmethod
    def _count_other(saved: SavedTensor, step: int) -> "NonFiniteCounts | None":
        """Return the counts of an array without real numbers, or None without a value."""
        array = view(saved, step)
        if array is None:
            return None
        nan = infinite = 0
        if array.dtype.kind == "c":
            nan, infinite = int(np.isnan(array).sum()), int(np.isinf(array).sum())
        return NonFiniteCounts(nan, infinite, array.size, array.dtype.kind)

    def _judge_reductions(self, saved: SavedTensor, step: int) -> bool | None:
        values = saved_reductions(saved, step)
        if not values:
            return None
        for key, value in values.items():
            if np.isnan(value) or (np.isinf(value) and self._bounds(key) and not self.only_nan):
                name = f"{'abs_' if key[1] else ''}{key[0]}"
                return self.found(
                    step, saved.name, saved.worker, value, None, f"Saved reduction {name}."
                )
        return self._measured(saved, step, 0)

    def _bounds(self, key: tuple[str, bool]) -> bool:
        """Return whether a reduction is infinite only if an element is."""
        return self.literal or key in _BOUNDED

    def _measured(self, saved: SavedTensor, step: int, count: int, note: str | None = None) -> bool:
        return record(self, saved, step, NOT_FINITE, count, 0, met=count > 0, note=note)

"""AllZero: some tensor consists of zeros, wholly or to a given share."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from builtin_rules.selection import (
    COLLECTION_NAMES,
    LITERAL,
    TENSOR_REGEX,
    Saved,
    begins,
    named,
    no_selector,
    reduction,
    saved,
    saved_reductions,
    told,
    view,
)
from smdebug.core.collection import CollectionKeys
from smdebug.core.measures import Piece
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import FloatParam, set_parameters

ZEROS: Final = "share of zeros"
_ALL: Final = 100.0
_TRAINED: Final = (CollectionKeys.WEIGHTS, CollectionKeys.BIASES, CollectionKeys.GRADIENTS)


class Zeros:
    """Measures how many elements are zero, and how many there are."""

    def part(self, piece: Piece, before: Piece | None = None) -> int:
        """Return how many are; see `smdebug.core.measures.Measure`."""
        del before
        return int(np.count_nonzero(piece.elements == 0))

    def join(self, parts: Sequence[int], size: int, dtype: "np.dtype[Any]") -> tuple[int, int]:
        """Return how many of all elements are."""
        del dtype
        return sum(parts), size


_ZEROS: Final = Zeros()


class AllZero(Rule):
    """Met when ``100 * zeros / elements >= threshold`` for some selected tensor.

    Zero is exact; NaN is none. Every worker is judged, each step by itself. Some are passed over
    unless `tensor_regex` selects them by name: tensors of one element; and weights, biases and
    gradients that are wholly zero at the first step that has them, as biases, LoRA's B and the last
    norms of residual blocks begin. With `literal` they are not. Empty and non-numeric tensors
    are passed over. Where only reductions were saved, a threshold of 100 is judged by ``abs_max ==
    0`` or ``min == max == 0``.
    """

    READS = "the selected tensors: values, or the saved reductions abs_max, or min and max."
    PARAMS = (
        COLLECTION_NAMES,
        TENSOR_REGEX,
        FloatParam(
            "threshold",
            "Share of a tensor's elements that must be zero.",
            default=_ALL,
            minimum=0.0,
            maximum=_ALL,
            unit="percent",
        ),
        LITERAL,
    )
    QUANTITIES = (Quantity(ZEROS, "zeros among the elements (percent)", worse="above"),)
    PAGE = Page(
        why="""
        Weights or gradients that are all zero do nothing and learn nothing: a layer is cut off, was
        initialised with zeros, or is multiplied by zero somewhere.
        """,
        save="""
        The collections to be judged; the reduction `abs_max` of them is enough:

            Hook(
                out_dir,
                include_collections=["weights", "gradients"],
                reduction_config=ReductionConfig(abs_reductions=["max"]),
            )
        """,
        missing="""
        NaN is not zero. Empty tensors, strings, and reductions from which the share cannot be told
        are passed over; a step without anything else is skipped.
        """,
        remedy="""
        - Zero weights: see the initialisation, and whether a checkpoint was loaded as it should be.
        - Zero gradients: see whether the layer is used, frozen, detached or dead (`DeadRelu`).
        - Zero inputs or labels: see the data pipeline.
        - What is sparse on purpose (masks, embeddings) belongs in no collection that is judged.
        """,
        limits="""
        Layers that stay at zero on purpose for longer than their first saved step fire: begin
        later with `--start-step`. In a trial with one saved step parameters of zeros are not
        judged: give `literal` or `tensor_regex`.
        """,
    )
    collection_names: tuple[str, ...]
    tensor_regex: tuple[str, ...]
    threshold: float
    literal: bool

    def __init__(
        self,
        base_trial: Any,
        collection_names: Any = None,
        tensor_regex: Any = None,
        threshold: Any = _ALL,
        literal: Any = False,
    ) -> None:
        super().__init__(base_trial)
        set_parameters(
            self,
            collection_names=collection_names,
            tensor_regex=tensor_regex,
            threshold=threshold,
            literal=literal,
        )
        if not self.collection_names and not self.tensor_regex:
            raise no_selector(self.rule_name)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the selected tensors of global step `step`."""
        trial = self.base_trial
        by_name = set(named(trial, step, [], self.tensor_regex))
        names = sorted(by_name.union(named(trial, step, self.collection_names, [])))
        strict = set(names) if self.literal else by_name
        trained = set(named(trial, step, _TRAINED, ["(?i)bias"])) - strict
        answers = [
            self._judge(one, step, strict=one.name in strict)
            for one in saved(trial, step, names)
            if one.name not in trained or not _begins_at_zero(one, step)
        ]
        if all(answer is None for answer in answers):
            return self.not_judged("no tensor to judge at this step")
        return any(answers)

    def _judge(self, one: Saved, step: int, *, strict: bool) -> bool | None:
        """Say whether one tensor is zero, or None if that is not to be told."""
        found = told(one, step, _ZEROS)
        if found is None:  # nothing, or no real numbers
            array = view(one, step)
            if array is None:
                return self._judge_reductions(one, step)
            found = (array.size - int(np.count_nonzero(array)), array.size)
            if array.dtype.kind != "c" or not array.size:
                return None
        zeros, size = found
        if size <= (0 if strict else 1):
            return None
        return self._measured(one, step, 100.0 * zeros / size)

    def _judge_reductions(self, one: Saved, step: int) -> bool | None:
        if self.threshold < _ALL:
            return None
        values = saved_reductions(one, step)
        extremes = [values.get(key) for key in (("min", False), ("max", False))]
        top = values.get(("max", True))
        if top is None and None in extremes:
            return None
        if top == 0 or extremes == [0, 0]:
            return self._measured(one, step, _ALL, "Told from saved reductions.")
        return False

    def _measured(self, one: Saved, step: int, share: float, note: str | None = None) -> bool:
        return self.measured(
            step,
            ZEROS,
            share,
            self.threshold,
            met=share >= self.threshold,
            tensor=one.name,
            worker=one.worker,
            note=note,
        )


def _begins_at_zero(one: Saved, step: int) -> bool:
    """Say whether this is the first step of a tensor, and its elements are all zero."""
    if not begins(one, step):
        return False
    top = saved_reductions(one, step).get(("max", True))
    return (reduction(one, step, "max", absolute=True) if top is None else top) in {0, None}

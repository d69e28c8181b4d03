"""UnchangedTensor: some tensor no longer changes from step to step."""

import math
from itertools import islice
from typing import Any, Final

from builtin_rules.differences import Tolerance, tolerances
from builtin_rules.history import Comparable, Gradients, backwards
from builtin_rules.selection import (
    COLLECTION_NAMES,
    LITERAL,
    TENSOR_REGEX,
    Saved,
    named,
    no_selector,
    numbers,
    saved,
    told,
)
from smdebug.core.collection import CollectionKeys
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import BoolParam, FloatParam, IntParam, set_parameters

CHANGE: Final = "change"
_LIMIT: Final = 1.0  # everything lies within the tolerance


class UnchangedTensor(Rule):
    """Met when the last `num_steps` saved values of a tensor are all close to the current one.

    Close is ``|a - b| <= atol + rtol * |b|`` for every element, where `b` is the current value;
    another shape is a change, and so is NaN unless `equal_nan`. The current value is one of the
    `num_steps`; with fewer saved ones a tensor is not judged. Every worker is judged against its
    own values. Empty and non-numeric tensors, and those of which only reductions were saved, are
    passed over.

    Only values of one mode are compared. While a model is evaluated its weights stand still: of
    each phase of evaluation, a run of steps of mode EVAL or PREDICT, only the first step is
    judged. A parameter that has no gradient, where some weight has, is frozen on purpose: it is
    passed over unless `tensor_regex` selects it by name. Why: docs/decisions/0008.

    With `literal` each value is compared with the next one only, over all modes, and frozen
    parameters are judged.
    """

    READS = "the selected tensors: values; the collection gradients: names."
    PARAMS = (
        COLLECTION_NAMES,
        TENSOR_REGEX,
        IntParam(
            "num_steps",
            "How many of the latest saved values are compared, the current one included.",
            default=3,
            minimum=2,
            unit="saved steps",
        ),
        FloatParam(
            "rtol",
            "Tolerated difference, relative to the current value.",
            default=1e-5,
            minimum=0.0,
            unit="share of the value",
        ),
        FloatParam(
            "atol",
            "Tolerated difference besides.",
            default=1e-8,
            minimum=0.0,
            unit="unit of the tensor",
        ),
        BoolParam("equal_nan", "Take NaN for equal to NaN.", default=False),
        LITERAL,
    )
    QUANTITIES = (Quantity(CHANGE, "largest change / tolerated change", worse="below", log=True),)
    PAGE = Page(
        why="""
        A loss that no longer moves has nothing more to teach, and a weight that does not move does
        not learn: the optimizer was not told of it, its step was forgotten, or the learning rate
        has come down to nothing.
        """,
        save="""
        The tensors that are selected, with their values:

            Hook(
                out_dir,
                save_config=SaveConfig(save_interval=100),
                include_collections=["weights", "gradients"],
            )

        With `gradients` beside `weights` the rule tells frozen parameters from forgotten ones.
        """,
        missing="""
        NaN is a change unless `equal_nan` is set. Tensors with fewer than `num_steps` saved values
        are not judged yet; without values (reductions only) they are never judged.
        """,
        remedy="""
        - See whether the optimizer was given the parameter (`optimizer.param_groups`), and whether
          its `step` is called.
        - See the learning rate at this step: schedules may end at 0.
        - If the note says that it may be frozen, see whether it is, and on purpose.
        - A loss that is constant from the start: see `VanishingGradient` and `DeadRelu`.
        """,
        limits="""
        Without the collection `gradients` a frozen parameter looks like a forgotten one: leave it
        out of `tensor_regex`, or save gradients. A parameter that is in no computation has no
        gradient either, and is taken for frozen; `literal` judges it. Gradient accumulation over
        more saved steps than `num_steps` lets weights stand still: raise `num_steps`. Very small
        learning rates move weights by less than `rtol`: lower it.
        """,
    )
    collection_names: tuple[str, ...]
    tensor_regex: tuple[str, ...]
    num_steps: int
    rtol: float
    atol: float
    equal_nan: bool
    literal: bool

    def __init__(
        self,
        base_trial: Any,
        collection_names: Any = None,
        tensor_regex: Any = None,
        num_steps: Any = 3,
        rtol: Any = 1e-5,
        atol: Any = 1e-8,
        equal_nan: Any = False,
        literal: Any = False,
    ) -> None:
        super().__init__(base_trial)
        set_parameters(
            self,
            collection_names=collection_names,
            tensor_regex=tensor_regex,
            num_steps=num_steps,
            rtol=rtol,
            atol=atol,
            equal_nan=equal_nan,
            literal=literal,
        )
        if not self.collection_names and not self.tensor_regex:
            raise no_selector(self.rule_name)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the selected tensors of global step `step`."""
        trial = self.base_trial
        among = None if self.literal else Comparable(trial, step)
        if among is not None and step not in among:
            return self.not_judged("not the first step of a phase of evaluation")
        names = self._names(step)
        if not names:
            return self.not_judged("none of the selected tensors at this step")
        answers = [self._judge(one, step, among) for one in saved(trial, step, names)]
        if all(answer is None for answer in answers):
            return self.not_judged(f"no tensor with {self.num_steps} values to compare")
        return any(answers)

    def _names(self, step: int) -> list[str]:
        """Return the selected tensors of a step, without parameters that are frozen on purpose."""
        trial = self.base_trial
        by_name = set(named(trial, step, [], self.tensor_regex))
        names = by_name.union(named(trial, step, self.collection_names, []))
        parameters = set() if self.literal else self._parameters(step).intersection(names) - by_name
        if parameters and (gradients := Gradients(trial)).tell:
            names -= {name for name in parameters if not gradients.has(name)}
        return sorted(names)

    def _parameters(self, step: int) -> set[str]:
        collections = (CollectionKeys.WEIGHTS, CollectionKeys.BIASES)
        return set(named(self.base_trial, step, collections, []))

    def _judge(self, one: Saved, step: int, among: Comparable | None) -> bool | None:
        """Say whether a tensor is unchanged, or None if that cannot be told."""
        steps = [*islice(backwards(one, step, among), self.num_steps)][::-1]
        change = self._change(one, steps) if len(steps) == self.num_steps else None
        if change is None or math.isnan(change):
            return None if change is None else False
        met = change <= _LIMIT
        return self.measured(
            step,
            CHANGE,
            change,
            _LIMIT,
            met=met,
            tensor=one.name,
            worker=one.worker,
            note=self._note(one, step, steps[0], change) if met else None,
        )

    def _change(self, one: Saved, steps: list[int]) -> float | None:
        """Return the largest change in units of what is tolerated.

        None if there are no numbers to compare, NaN if their shapes differ.
        """
        measure = Tolerance(self.rtol, self.atol, self.equal_nan)
        last = len(steps) - 1
        pairs = [(at, at + 1 if self.literal else last) for at in range(last)]
        told_changes = [told(one, steps[later], measure, steps[at]) for at, later in pairs]
        if None not in told_changes:
            return float(max(told_changes))
        values = [numbers(one, at) for at in steps]
        if any(value is None for value in values):
            return None
        if len({value.shape for value in values}) > 1:
            return math.nan
        return max(tolerances(values[at], values[later], measure) for at, later in pairs)

    def _note(self, one: Saved, step: int, since: int, change: float) -> str:
        frozen = change == 0 and one.name in self._parameters(step)
        hint = " Not one bit of this parameter has: it may be frozen." if frozen else ""
        return f"It has not changed since step {since}.{hint}"

"""SimilarAcrossRuns: some tensor differs from the same tensor of another run."""

from typing import Any, Final

import numpy as np

from builtin_rules.differences import Tolerance, tolerances
from builtin_rules.selection import (
    COLLECTION_NAMES,
    TENSOR_REGEX,
    Saved,
    named,
    numbers,
    saved,
    saved_reductions,
)
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import NamesParam, set_parameters
from smdebug.trials import create_trial

DIFFERENCE: Final = "difference"
# Not documented: those of `numpy.allclose`, NaN equal to NaN.
RTOL: Final = 1e-5
ATOL: Final = 1e-8
_LIMIT: Final = 1.0  # everything lies within the tolerance


class _TrialsParam(NamesParam):
    """Trials: their paths as text, or the trials themselves."""

    @property
    def expected(self) -> str:
        """What the value must be, as the end of "must be ..."."""
        return "the path of the run to compare with, as by --other-trial PATH"

    def _read(self, raw: object) -> tuple[Any, ...]:
        trials = raw if isinstance(raw, (list, tuple)) else (raw,)
        if not trials or any(isinstance(one, str) for one in trials):
            return super()._read(raw)
        return tuple(trials)


class SimilarAcrossRuns(Rule):
    """Met when a tensor differs from that of the same name and step in another run.

    Despite its name: similar runs do not meet it. A tensor differs where the shape does, or where
    ``|a - b| <= 1e-8 + 1e-5 * |b|`` fails for some element, `b` being the other run's; NaN equals
    NaN. All tensors are judged unless selectors are given, each step by itself, in all modes. What
    the other run lacks is passed over, and so are non-numeric and empty tensors. Every worker is
    compared with the one of its name, and a lone worker with a lone one whatever their names. Where
    both runs saved reductions only, these are compared. Of several other runs the first one counts.
    """

    READS = "every saved tensor, or those selected, in two trials: values, or saved reductions."
    PARAMS = (
        _TrialsParam(
            "other_trials",
            "The run to compare with: the path of its trial.",
            required=True,
        ),
        COLLECTION_NAMES,
        TENSOR_REGEX,
    )
    QUANTITIES = (
        Quantity(DIFFERENCE, "largest difference / tolerated difference", worse="above", log=True),
    )
    PAGE = Page(
        why="""
        A run that is repeated with the same seeds, or after a change that should change nothing (a
        new library, another machine), should save the same numbers. The first step and tensor that
        differ say where the two runs part.
        """,
        save="""
        The same tensors at the same steps in both runs, such as the collection `losses`, which is
        always saved. The other run is given by `--other-trial PATH`, or as parameter
        `other_trials`.
        """,
        missing="""
        NaN equals NaN. Tensors, steps and workers that the other run does not have are skipped.
        """,
        remedy="""
        - Look at the first finding (`--keep-going` lists them all): inputs and weights at step 0
          come before losses and gradients.
        - Inputs differ: seed the shuffling and the workers of the data loader.
        - Weights differ at step 0: seed the initialisation, or start from one checkpoint.
        - Only later ones differ: ask the framework for deterministic kernels.
        """,
        limits="""
        The tolerance is that of `numpy.allclose` and cannot be set: float16 and long trainings on
        GPUs differ by more even where nothing is wrong. Choose early steps (`--end-step`) and few
        tensors (`tensor_regex`).
        """,
    )
    collection_names: tuple[str, ...]
    tensor_regex: tuple[str, ...]

    def __init__(
        self,
        base_trial: Any,
        other_trials: Any = None,
        collection_names: Any = None,
        tensor_regex: Any = None,
    ) -> None:
        (param, *_) = self.PARAMS
        given = param.parse(other_trials)
        trials = [create_trial(one, timeout=0) if isinstance(one, str) else one for one in given]
        super().__init__(base_trial, other_trials=trials)
        set_parameters(
            self,
            other_trials=trials,
            collection_names=collection_names,
            tensor_regex=tensor_regex,
        )
        self._other = trials[0]
        if len(trials) > 1:
            self.logger.warning(
                "Rule %r compares with %r only, the first of %d other trials.",
                self.rule_name,
                self._other.path,
                len(trials),
            )

    def invoke_at_step(self, step: int) -> bool:
        """Judge the tensors that both runs saved at global step `step`."""
        trial = self.base_trial
        if self.collection_names or self.tensor_regex:
            names = named(trial, step, self.collection_names, self.tensor_regex)
        else:
            names = trial.tensor_names(step=step)
        common = sorted(set(names).intersection(self._other.tensor_names(step=step)))
        if not common:
            return self.not_judged("no selected tensor at this step of both runs")
        answers = [self._judge(one, step) for one in saved(trial, step, common)]
        if all(answer is None for answer in answers):
            return self.not_judged("no tensor with numbers in both runs")
        return any(answers)

    def _judge(self, one: Saved, step: int) -> bool | None:
        """Say whether a tensor differs, or None if there is nothing to compare."""
        worker = self._worker(one, step)
        if worker is None:
            return None
        other = Saved(self._other.tensor(one.name), worker)
        value, reference = numbers(one, step), numbers(other, step)
        if value is None or reference is None:
            return self._judge_reductions(one, other, step)
        if value.shape != reference.shape:
            note = f"Its shape is {value.shape}, and {reference.shape} in the other run."
            return self.found(step, one.name, one.worker, note=note)
        return self._differs(one, step, value, reference)

    def _worker(self, one: Saved, step: int) -> str | None:
        """Return the worker of the other run to compare with, or None."""
        workers = self._other.tensor(one.name).workers(step)
        if one.worker in workers:
            return one.worker
        alone = len(workers) == len(one.tensor.workers(step)) == 1
        return workers[0] if alone else None

    def _judge_reductions(self, one: Saved, other: Saved, step: int) -> bool | None:
        """Compare the reductions that both runs saved."""
        here, there = saved_reductions(one, step), saved_reductions(other, step)
        common = sorted(here.keys() & there.keys())
        if not common:
            return None
        values, references = ([found[key] for key in common] for found in (here, there))
        note = "Told from saved reductions."
        return self._differs(one, step, np.array(values), np.array(references), note)

    def _differs(
        self, one: Saved, step: int, value: Any, reference: Any, note: str | None = None
    ) -> bool:
        difference = tolerances(value, reference, Tolerance(RTOL, ATOL, equal_nan=True))
        return self.measured(
            step,
            DIFFERENCE,
            difference,
            _LIMIT,
            met=difference > _LIMIT,
            tensor=one.name,
            worker=one.worker,
            note=note,
        )

"""Tensor: one named series of arrays over the steps of a trial."""

import enum
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from numpy.typing import NDArray

from rule_core.exceptions import (
    ShapeUnavailableForStep,
    SMDebugNotImplementedError,
    TensorUnavailableForStep,
)
from rule_core.format.index_file import Entry
from rule_core.model.reductions import Reduction, reduced_value
from rule_core.model.streaming_statistics import StreamingStatistic
from rule_core.modes import ModeKeys

if TYPE_CHECKING:
    from rule_core.trials.snapshot_view import TrialView

Array = NDArray[Any]


class StepState(enum.Enum):
    """Whether a step was saved, was never saved, or may still be saved."""

    UNAVAILABLE = 0
    AVAILABLE = 1
    NOT_YET_AVAILABLE = 2


class TensorLocation(NamedTuple):
    """The location of a saved tensor: global step, worker and index entry."""

    step: int
    worker: str
    entry: Entry


class Tensor:
    """One tensor of a trial, returned by `trial.tensor(name)`.

    In all methods a step is a step of `mode`; for ``ModeKeys.GLOBAL``, the default, it is a
    global step. `worker` defaults to the alphabetically first worker that saved the tensor at
    the step.
    """

    def __init__(self, name: str, trial: "TrialView") -> None:
        self.name = name
        self.trial = trial

    def __repr__(self) -> str:
        return f"Tensor({self.name!r})"

    @property
    def original_name(self) -> str | None:
        """The framework's own name, known once a shape record has been read."""
        return self.trial.original_name(self.name)

    def steps(
        self, mode: ModeKeys | None = ModeKeys.GLOBAL, show_incomplete_steps: bool = False
    ) -> list[int]:
        """Return the steps at which anything of the tensor was saved, ascending.

        Parameters
        ----------
        mode
            The mode whose steps are returned.
        show_incomplete_steps
            Whether to include steps that some worker has not written yet.
        """
        return self.trial.tensor_steps(self.name, mode, show_incomplete_steps)

    def value(
        self, step_num: int, mode: ModeKeys | None = ModeKeys.GLOBAL, worker: str | None = None
    ) -> Array:
        """Return a copy of the saved value at a step.

        Returns
        -------
        ndarray
            A writable array of the saved shape and type.

        Raises
        ------
        TensorUnavailableForStep
            If the step has no value of this tensor (`TensorDamaged` if its bytes cannot be read).
        StepUnavailable, StepNotYetAvailable
            If the step was not saved, or has not been seen yet.
        InvalidWorker
            If `worker` did not save the tensor at the step.
        """
        return self.view(step_num, mode, worker).copy()

    def view(
        self, step_num: int, mode: ModeKeys | None = ModeKeys.GLOBAL, worker: str | None = None
    ) -> Array:
        """Return the saved value at a step as a read-only view, without a copy.

        Strings are copied, since the format does not store them as numpy does. Raises as `value`.
        """
        location = self.trial.find(self.name, step_num, mode, worker)
        if location.entry.raw is None:
            self._raise_unavailable(step_num, mode, location)
        return self.trial.read(self.name, location)

    def values(
        self, mode: ModeKeys | None = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[int, Array]:
        """Return step -> value over all steps of `mode`; raises as `value`."""
        return {step: self.value(step, mode, worker) for step in self.steps(mode)}

    def reduction_value(
        self,
        step_num: int,
        reduction_name: str,
        mode: ModeKeys | None = ModeKeys.GLOBAL,
        worker: str | None = None,
        abs: bool = False,  # noqa: A002 - the documented name
    ) -> Any:
        """Return a reduction at a step, as saved or else computed from the saved value.

        Parameters
        ----------
        reduction_name
            ``min, max, mean, std, variance, sum, prod, median, l1, l2``; see
            `smdebug.core.reductions.compute_all`.
        abs
            Whether to reduce the absolute values.

        Returns
        -------
        numpy scalar
            Its only element has index 0: ``float(value)`` and ``value[0]`` work.

        Raises
        ------
        TensorUnavailableForStep
            If neither this reduction nor the value was saved; otherwise as `value`.
        SMDebugValueError
            If it must be computed and the reduction does not exist.
        """
        reduction = Reduction(reduction_name, abs)
        if mode is ModeKeys.GLOBAL:
            prefetched = self.trial.prefetched(self.name, step_num, worker, reduction)
            if prefetched is not None:
                return reduced_value(prefetched)
        location = self.trial.find(self.name, step_num, mode, worker)
        if reduction in location.entry.reductions:
            return reduced_value(self.trial.read(self.name, location, reduction))
        if location.entry.raw is None:
            self._raise_unavailable(step_num, mode, location)
        return reduced_value(self.trial.measure(self.name, location, reduction))

    def measure(
        self,
        step: int,
        statistic: StreamingStatistic,
        before: int | None = None,
        worker: str | None = None,
    ) -> Any:
        """Return a statistic of the value at a global step.

        Parameters
        ----------
        before
            The earlier global step to compare with, for the same worker.

        Raises
        ------
        SMDebugTypeError, SMDebugValueError
            If a value is not of real numbers, or the two values differ in shape or type; otherwise
            as `value`.
        """
        prefetched = self.trial.prefetched(self.name, step, worker, statistic, before)
        if prefetched is not None:
            return prefetched
        location = self.trial.find(self.name, step, ModeKeys.GLOBAL, worker)
        if before is not None:
            earlier = self.trial.find(self.name, before, ModeKeys.GLOBAL, location.worker)
            if earlier.entry.raw is None:
                self._raise_unavailable(before, ModeKeys.GLOBAL, earlier)
        if location.entry.raw is None:
            self._raise_unavailable(step, ModeKeys.GLOBAL, location)
        return self.trial.measure(self.name, location, statistic, before)

    def reduction_values(
        self, step_num: int, mode: ModeKeys | None = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[tuple[str, bool], Array]:
        """Return ``(reduction, abs)`` -> value of the reductions that were saved at a step.

        The values are arrays of one element.
        """
        location = self.trial.find(self.name, step_num, mode, worker)
        return {
            reduction: self.trial.read(self.name, location, reduction).copy()
            for reduction in location.entry.reductions
        }

    def shape(
        self, step_num: int, mode: ModeKeys | None = ModeKeys.GLOBAL, worker: str | None = None
    ) -> tuple[int, ...]:
        """Return the shape at a step, as saved or else of the saved value.

        Raises
        ------
        ShapeUnavailableForStep
            If neither was saved (a subclass of `TensorUnavailableForStep`); otherwise as `value`.
        """
        location = self.trial.find(self.name, step_num, mode, worker)
        if location.entry.shape is not None:
            return location.entry.shape
        if location.entry.raw is None:
            raise ShapeUnavailableForStep(self.name, step_num, mode or ModeKeys.GLOBAL)
        return self.trial.shape(self.name, location)

    def shapes(
        self, mode: ModeKeys | None = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[int, tuple[int, ...]]:
        """Return step -> shape over all steps of `mode`; raises as `shape`."""
        return {step: self.shape(step, mode, worker) for step in self.steps(mode)}

    def workers(self, step_num: int, mode: ModeKeys | None = ModeKeys.GLOBAL) -> list[str]:
        """Return the workers that saved the tensor at a step, sorted.

        Raises
        ------
        TensorUnavailableForStep
            If no worker saved it.
        """
        return self.trial.tensor_workers(self.name, step_num, mode)

    def prev_steps(
        self, step: int, n: int | None = None, mode: ModeKeys | None = ModeKeys.GLOBAL
    ) -> list[int]:
        """Return the last `n` steps up to and including `step`.

        Parameters
        ----------
        n
            The maximum number of steps; None means all.

        Raises
        ------
        ValueError
            If `n` is negative.
        """
        if n is not None and n < 0:
            raise ValueError(f"The number of previous steps must be >= 0, got {n}.")
        return [*islice(self.steps_back(step, mode), n)][::-1]

    def steps_back(self, step: int, mode: ModeKeys | None = ModeKeys.GLOBAL) -> Iterator[int]:
        """Yield the steps up to `step` lazily, the latest first."""
        return self.trial.steps_back(self.name, step, mode)

    @property
    def first_step(self) -> int:
        """The first global step at which anything of the tensor was saved."""
        return self.trial.first_step(self.name)

    def step(self, *_: object, **__: object) -> NoReturn:
        """Raise an error: this method was removed from the API."""
        raise SMDebugNotImplementedError(
            "Tensor.step was removed. Call value, reduction_value or shape."
        )

    def _raise_unavailable(
        self, step: int, mode: ModeKeys | None, location: TensorLocation
    ) -> NoReturn:
        raise TensorUnavailableForStep(
            self.name, step, mode or ModeKeys.GLOBAL, has_reductions=bool(location.entry.reductions)
        )

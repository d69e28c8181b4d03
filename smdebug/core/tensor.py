"""Tensor: one named series of arrays over the steps of a trial."""

import enum
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple, NoReturn, Protocol

from numpy.typing import NDArray

from smdebug.core.index import Entry
from smdebug.core.measures import Measure
from smdebug.core.modes import ModeKeys
from smdebug.core.reductions import Reduction
from smdebug.exceptions import (
    ShapeUnavailableForStep,
    SMDebugNotImplementedError,
    TensorUnavailableForStep,
)

Array = NDArray[Any]


class StepState(enum.Enum):
    """What is known of a step: never saved, there, or perhaps still to come."""

    UNAVAILABLE = 0
    AVAILABLE = 1
    NOT_YET_AVAILABLE = 2


class Place(NamedTuple):
    """Where a tensor was found: global step, worker, and what was saved of it there."""

    step: int
    worker: str
    entry: Entry


class TensorSource(Protocol):
    """What a tensor asks of its trial."""

    def original_name(self, name: str) -> str | None:
        """Return the framework's own name of a tensor, if shapes were saved."""
        ...

    def tensor_steps(
        self, name: str, mode: ModeKeys | None, show_incomplete_steps: bool
    ) -> list[int]:
        """Return the steps of `mode` at which anything of a tensor was saved, ascending."""
        ...

    def steps_back(self, name: str, step: int, mode: ModeKeys | None) -> Iterator[int]:
        """Yield the steps of `mode` up to `step` at which a tensor was saved, the latest first."""
        ...

    def first_step(self, name: str) -> int:
        """Return the first global step at which anything of a known tensor was saved."""
        ...

    def tensor_workers(self, name: str, step: int, mode: ModeKeys | None) -> list[str]:
        """Return the workers that saved a tensor at a step of `mode`."""
        ...

    def find(self, name: str, step: int, mode: ModeKeys | None, worker: str | None) -> Place:
        """Return where a tensor is, or raise what the documentation says."""
        ...

    def read(self, name: str, place: Place, reduction: tuple[str, bool] | None = None) -> Array:
        """Return the saved value, or one saved reduction, read-only."""
        ...

    def shape(self, name: str, place: Place) -> tuple[int, ...]:
        """Return the shape of the saved value."""
        ...

    def foreseen(
        self, name: str, step: int, worker: str | None, one: Measure, before: int | None = None
    ) -> Any:
        """Return what a measure tells at a global step, if that is known already, or None."""
        ...

    def measure(self, name: str, place: Place, one: Measure, before: int | None = None) -> Any:
        """Return what a measure tells of the saved value, compared with that of a global step."""
        ...


class Tensor:
    """One tensor of a trial; `trial.tensor(name)` makes it.

    In all methods a step counts within `mode`; for ``ModeKeys.GLOBAL``, the default, it is a
    global step. Without `worker` the first one, in alphabetical order, that saved the tensor at
    the step answers.
    """

    def __init__(self, name: str, trial: TensorSource) -> None:
        self.name = name
        self.trial = trial

    def __repr__(self) -> str:
        return f"Tensor({self.name!r})"

    @property
    def original_name(self) -> str | None:
        """The framework's own name, known once a shape record was seen."""
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
            Also those that some worker has not written yet.
        """
        return self.trial.tensor_steps(self.name, mode, show_incomplete_steps)

    def value(
        self, step_num: int, mode: ModeKeys | None = ModeKeys.GLOBAL, worker: str | None = None
    ) -> Array:
        """Return the saved value at a step, as an array of the caller's own.

        Returns
        -------
        ndarray
            Of the saved shape and type; writable.

        Raises
        ------
        TensorUnavailableForStep
            If the step has no value of this tensor (`TensorDamaged` if its bytes cannot be read).
        StepUnavailable, StepNotYetAvailable
            If the step was not saved, or was not seen yet.
        InvalidWorker
            If `worker` did not save the tensor at the step.
        """
        return self.view(step_num, mode, worker).copy()

    def view(
        self, step_num: int, mode: ModeKeys | None = ModeKeys.GLOBAL, worker: str | None = None
    ) -> Array:
        """Return the saved value at a step in place: read-only, in the memory it was read into.

        Strings, which the format does not lay out as numpy does, are the one exception. Raises
        what `value` raises.
        """
        place = self.trial.find(self.name, step_num, mode, worker)
        if place.entry.raw is None:
            self._raise_unavailable(step_num, mode, place)
        return self.trial.read(self.name, place)

    def values(
        self, mode: ModeKeys | None = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[int, Array]:
        """Return step -> value over all steps of `mode`; raises what `value` raises."""
        return {step: self.value(step, mode, worker) for step in self.steps(mode)}

    def reduction_value(
        self,
        step_num: int,
        reduction_name: str,
        mode: ModeKeys | None = ModeKeys.GLOBAL,
        worker: str | None = None,
        abs: bool = False,  # noqa: A002 - the documented name
    ) -> Any:
        """Return one reduction at a step: as saved, or else computed from the saved value.

        Parameters
        ----------
        reduction_name
            ``min, max, mean, std, variance, sum, prod, median, l1, l2``; see
            `smdebug.core.reductions.compute_all`.
        abs
            Of the magnitudes.

        Returns
        -------
        ndarray or numpy scalar
            The saved array, of shape ``(1,)`` or ``()``, or a scalar if it is computed.

        Raises
        ------
        TensorUnavailableForStep
            If neither this reduction nor the value was saved; otherwise as `value`.
        SMDebugValueError
            If it has to be computed and there is no such reduction.
        """
        one = Reduction(reduction_name, abs)
        if mode is ModeKeys.GLOBAL:
            found = self.trial.foreseen(self.name, step_num, worker, one)
            if found is not None:
                return found
        place = self.trial.find(self.name, step_num, mode, worker)
        if one in place.entry.reductions:
            return self.trial.read(self.name, place, one).copy()
        if place.entry.raw is None:
            self._raise_unavailable(step_num, mode, place)
        return self.trial.measure(self.name, place, one)

    def measure(
        self, step: int, one: Measure, before: int | None = None, worker: str | None = None
    ) -> Any:
        """Return what a measure tells of the value at a global step.

        Parameters
        ----------
        before
            The earlier global step whose value, of the same worker, it is compared with.

        Raises
        ------
        SMDebugTypeError, SMDebugValueError
            If a value holds no real numbers, or the two are of different shapes or types;
            otherwise as `value`.
        """
        found = self.trial.foreseen(self.name, step, worker, one, before)
        if found is not None:
            return found
        place = self.trial.find(self.name, step, ModeKeys.GLOBAL, worker)
        if before is not None:
            earlier = self.trial.find(self.name, before, ModeKeys.GLOBAL, place.worker)
            if earlier.entry.raw is None:
                self._raise_unavailable(before, ModeKeys.GLOBAL, earlier)
        if place.entry.raw is None:
            self._raise_unavailable(step, ModeKeys.GLOBAL, place)
        return self.trial.measure(self.name, place, one, before)

    def reduction_values(
        self, step_num: int, mode: ModeKeys | None = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[tuple[str, bool], Array]:
        """Return ``(reduction, abs)`` -> value of the reductions that were saved at a step."""
        place = self.trial.find(self.name, step_num, mode, worker)
        return {
            one: self.trial.read(self.name, place, one).copy() for one in place.entry.reductions
        }

    def shape(
        self, step_num: int, mode: ModeKeys | None = ModeKeys.GLOBAL, worker: str | None = None
    ) -> tuple[int, ...]:
        """Return the shape at a step: as saved, or else that of the saved value.

        Raises
        ------
        ShapeUnavailableForStep
            If neither was saved (it is a `TensorUnavailableForStep`); otherwise as `value`.
        """
        place = self.trial.find(self.name, step_num, mode, worker)
        if place.entry.shape is not None:
            return place.entry.shape
        if place.entry.raw is None:
            raise ShapeUnavailableForStep(self.name, step_num, mode or ModeKeys.GLOBAL)
        return self.trial.shape(self.name, place)

    def shapes(
        self, mode: ModeKeys | None = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[int, tuple[int, ...]]:
        """Return step -> shape over all steps of `mode`; raises what `shape` raises."""
        return {step: self.shape(step, mode, worker) for step in self.steps(mode)}

    def workers(self, step_num: int, mode: ModeKeys | None = ModeKeys.GLOBAL) -> list[str]:
        """Return the workers that saved the tensor at a step, sorted.

        Raises
        ------
        TensorUnavailableForStep
            If there are none.
        """
        return self.trial.tensor_workers(self.name, step_num, mode)

    def prev_steps(
        self, step: int, n: int | None = None, mode: ModeKeys | None = ModeKeys.GLOBAL
    ) -> list[int]:
        """Return the last `n` steps up to `step`, which is among them if it was saved.

        Parameters
        ----------
        n
            At most so many; None is all.

        Raises
        ------
        ValueError
            If `n` is negative.
        """
        if n is not None and n < 0:
            msg = f"The number of previous steps must be >= 0, got {n}."
            raise ValueError(msg)
        return [*islice(self.steps_back(step, mode), n)][::-1]

    def steps_back(self, step: int, mode: ModeKeys | None = ModeKeys.GLOBAL) -> Iterator[int]:
        """Yield the steps up to `step`, the latest first, as far as they are asked for."""
        return self.trial.steps_back(self.name, step, mode)

    @property
    def first_step(self) -> int:
        """The first global step at which anything of the tensor was saved."""
        return self.trial.first_step(self.name)

    def step(self, *_: object, **__: object) -> NoReturn:
        """Raise: it was removed from the API long ago."""
        msg = "Tensor.step is no more. Call value, reduction_value or shape."
        raise SMDebugNotImplementedError(msg)

    def _raise_unavailable(self, step: int, mode: ModeKeys | None, place: Place) -> NoReturn:
        raise TensorUnavailableForStep(
            self.name, step, mode or ModeKeys.GLOBAL, has_reductions=bool(place.entry.reductions)
        )

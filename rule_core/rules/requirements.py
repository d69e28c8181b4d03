"""What a rule requires: data that a trial must contain at all, and tensors at single steps."""

import re
from collections.abc import Iterable, KeysView, ValuesView
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Protocol

from rule_core.exceptions import TensorUnavailable, TensorUnavailableForStep
from rule_core.model import patterns
from rule_core.trials.tensor import Tensor

SELECTIONS_KEPT: Final = 64


class RequiredInput(Protocol):
    """Data without which a rule cannot evaluate any step; ``str()`` describes it to users."""

    def is_in(self, trial: Any) -> bool:
        """Return whether a trial contains it, as far as the trial has been read."""
        ...


@dataclass(frozen=True, slots=True)
class TensorInput:
    """The tensors in some collections, and those whose name matches a pattern.

    Parameters
    ----------
    label
        A description of the tensors.
    collections
        Names of collections; a collection that the trial lacks selects nothing.
    patterns
        Regular expressions to search for in names.
    excluding
        A regular expression: names that match it are not selected by the patterns.
    never
        A regular expression: names that match it are not selected at all.
    """

    label: str
    collections: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    excluding: str = ""
    never: str = ""

    def __str__(self) -> str:
        sources = [f"collection {name!r}" for name in self.collections]
        sources += [f"pattern {pattern!r}" for pattern in self.patterns[:1]]
        if len(self.patterns) > 1:
            sources[-1] += f" and {len(self.patterns) - 1} more"
        return f"{self.label} ({', '.join(sources)})"

    def names(self, trial: Any, step: int | None = None) -> list[str]:
        """Return the sorted names of these tensors: those saved at `step`, or at any so far."""
        selected = [trial.tensor_names(step=step, collection=name) for name in self.collections]
        if self.patterns:
            names = trial.tensor_names(step=step, regex=list(self.patterns))
            selected.append(_without(self.excluding, names))
        names = selected[0] if len(selected) == 1 else sorted(set().union(*selected))
        return _without(self.never, names) if self.never else names

    def is_in(self, trial: Any) -> bool:
        """Return whether any step so far has one of these tensors."""
        return bool(self.names(trial))


def _without(pattern: str, names: list[str]) -> list[str]:
    """Return the names that do not match a pattern; an empty pattern matches none."""
    return [*_not_matching(pattern, tuple(names))] if pattern else names


@lru_cache(SELECTIONS_KEPT)  # most steps have the same names
def _not_matching(pattern: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if not re.search(pattern, name))


@dataclass(frozen=True, slots=True)
class SystemMetric:
    """Samples of a system metric such as ``GPUUtilization``; by default, of any metric."""

    dimension: str = ""

    def __str__(self) -> str:
        return f"the system metric {self.dimension!r}" if self.dimension else "system metrics"

    def is_in(self, trial: Any) -> bool:
        """Return whether a profiler trial has samples of it, or of any before the first read."""
        return bool(trial.has_system_metric(self.dimension))


@dataclass(frozen=True, slots=True)
class FrameworkEvents:
    """The events of timelines."""

    label: str = "framework metrics"

    def __str__(self) -> str:
        return self.label

    def is_in(self, trial: Any) -> bool:
        """Return whether a profiler trial has any timeline."""
        return bool(trial.has_framework_data)


@dataclass(frozen=True, slots=True)
class TorchTraces:
    """The events of traces that torch.profiler wrote."""

    def __str__(self) -> str:
        return "traces of torch.profiler"

    def is_in(self, trial: Any) -> bool:
        """Return whether the timelines of a profiler trial come from such traces."""
        return bool(trial.has_torch_traces)


@dataclass(frozen=True, slots=True)
class FlightRecorderDumps:
    """The collectives in dumps of torch.distributed's flight recorder."""

    def __str__(self) -> str:
        return "dumps of torch.distributed's flight recorder"

    def is_in(self, trial: Any) -> bool:
        """Return whether the timelines of a profiler trial come from such dumps."""
        return bool(trial.has_flight_recorder_dumps)


@dataclass(slots=True)
class _TrialRequirements:
    """The required tensors of one trial, and the steps at which each is required."""

    trial: Any
    tensors: dict[str, Tensor] = field(default_factory=dict)
    steps: dict[str, list[int]] = field(default_factory=dict)


class RequiredTensors:
    """Tensors and global steps that a rule requires, of its base trial and of other trials."""

    def __init__(self, base_trial: Any, other_trials: Iterable[Any] | None = None) -> None:
        self.base_trial = base_trial
        self._requirements = {
            id(trial): _TrialRequirements(trial) for trial in (base_trial, *(other_trials or ()))
        }

    def add(
        self,
        name: str,
        steps: Iterable[int],
        trial: Any = None,
        should_match_regex: bool = False,
    ) -> None:
        """Require a tensor at steps; with `should_match_regex`, all tensors whose name matches.

        Raises
        ------
        TensorUnavailable
            If no tensor has this name.
        KeyError
            If `trial` is not one of the rule's trials.
        """
        required = self._get(trial)
        names = [name]
        if should_match_regex:
            names = patterns.matching(required.trial.tensor_names(), names)
        for required_name in names:
            if not required.trial.has_tensor(required_name):
                raise TensorUnavailable(required_name)
            required.tensors[required_name] = required.trial.tensor(required_name)
            required.steps.setdefault(required_name, []).extend(steps)

    def get(self, trial: Any = None) -> ValuesView[Tensor]:
        """Return the required tensors of a trial, by default the base trial."""
        return self._get(trial).tensors.values()

    def get_names(self, trial: Any = None) -> KeysView[str]:
        """Return the names of the required tensors of a trial."""
        return self._get(trial).tensors.keys()

    def get_tensor_steps(self, name: str, trial: Any = None) -> list[int]:
        """Return the global steps at which a tensor is required."""
        return list(self._get(trial).steps[name])

    def clear(self) -> None:
        """Remove all requirements."""
        for required in self._requirements.values():
            required.tensors.clear()
            required.steps.clear()

    def fetch(self) -> None:
        """Wait for the steps, and check that the tensors exist as value, reductions or shape.

        Raises
        ------
        TensorUnavailableForStep
            If a tensor does not exist at a step at which it is required.
        """
        for required in self._requirements.values():
            if required.steps:
                required.trial.wait_for_steps(sorted(set().union(*required.steps.values())))
            for name, steps in required.steps.items():
                saved_steps = set(required.tensors[name].steps(show_incomplete_steps=True))
                for step in steps:
                    if step not in saved_steps:
                        raise TensorUnavailableForStep(name, step)

    def _get(self, trial: Any) -> _TrialRequirements:
        return self._requirements[id(self.base_trial if trial is None else trial)]

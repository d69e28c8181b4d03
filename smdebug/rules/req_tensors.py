"""RequiredTensors: the tensors that a rule wants to be there before it judges a step."""

from collections.abc import Iterable, KeysView, ValuesView
from dataclasses import dataclass, field
from typing import Any

from smdebug.core import patterns
from smdebug.core.tensor import Tensor
from smdebug.exceptions import TensorUnavailable, TensorUnavailableForStep


@dataclass(slots=True)
class _OfTrial:
    """The required tensors of one trial, and the steps at which each is required."""

    trial: Any
    tensors: dict[str, Tensor] = field(default_factory=dict)
    steps: dict[str, list[int]] = field(default_factory=dict)


class RequiredTensors:
    """Tensors and global steps that a rule requires, of its base trial and of other trials."""

    def __init__(self, base_trial: Any, other_trials: Iterable[Any] | None = None) -> None:
        self.base_trial = base_trial
        self._of = {id(one): _OfTrial(one) for one in (base_trial, *(other_trials or ()))}

    def add(
        self, name: str, steps: Iterable[int], trial: Any = None, should_match_regex: bool = False
    ) -> None:
        """Require a tensor, or with `should_match_regex` all whose name holds a pattern, at steps.

        Raises
        ------
        TensorUnavailable
            If no tensor has this name.
        KeyError
            If `trial` is none of the rule's.
        """
        of = self._get(trial)
        names = patterns.matching(of.trial.tensor_names(), [name]) if should_match_regex else [name]
        for one in names:
            if not of.trial.has_tensor(one):
                raise TensorUnavailable(one)
            of.tensors[one] = of.trial.tensor(one)
            of.steps.setdefault(one, []).extend(steps)

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
        """Require nothing."""
        for of in self._of.values():
            of.tensors.clear()
            of.steps.clear()

    def fetch(self) -> None:
        """Wait for the steps, and see that the tensors are there: as value, reductions or shape.

        Raises
        ------
        TensorUnavailableForStep
            If a tensor is not there at a step where it is required.
        """
        for of in self._of.values():
            wanted = sorted({step for steps in of.steps.values() for step in steps})
            if wanted:
                of.trial.wait_for_steps(wanted)
            for name, steps in of.steps.items():
                there = set(of.tensors[name].steps(show_incomplete_steps=True))
                for step in steps:
                    if step not in there:
                        raise TensorUnavailableForStep(name, step)

    def _get(self, trial: Any) -> _OfTrial:
        return self._of[id(self.base_trial if trial is None else trial)]

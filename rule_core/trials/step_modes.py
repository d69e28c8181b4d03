"""StepModes: the mode and mode step of each global step, as a read-only mapping."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rule_core.modes import ModeKeys

if TYPE_CHECKING:
    from rule_core.trials.trial import Trial


class StepModes(Mapping[int, tuple[ModeKeys, int]]):
    """A live view of a trial: ``trial._global_to_mode[step]`` is ``(mode, mode_step)``."""

    def __init__(self, trial: "Trial") -> None:
        self._trial = trial

    def __getitem__(self, global_step: int) -> tuple[ModeKeys, int]:
        """Return the mode and mode step of a visible global step."""
        mode, mode_step = self._trial.mode_modestep(global_step)
        if mode is None or mode_step is None:
            raise KeyError(global_step)
        return mode, mode_step

    def __iter__(self) -> Iterator[int]:
        return iter(self._trial.steps(show_incomplete_steps=True))

    def __len__(self) -> int:
        return len(self._trial.steps(show_incomplete_steps=True))

    def __repr__(self) -> str:
        return repr(dict(self))

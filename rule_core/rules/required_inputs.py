"""Required inputs: the data that a trial must contain for a rule to evaluate it."""

import re
from dataclasses import dataclass
from typing import Any, Protocol


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
    """

    label: str
    collections: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    excluding: str = ""

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
            selected.append([name for name in names if not self._excludes(name)])
        return selected[0] if len(selected) == 1 else sorted(set().union(*selected))

    def is_in(self, trial: Any) -> bool:
        """Return whether any step so far has one of these tensors."""
        return bool(self.names(trial))

    def _excludes(self, name: str) -> bool:
        return bool(self.excluding) and re.search(self.excluding, name) is not None


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

"""Runs: what the trainings of the detection suite are, and which rules each must meet."""

import functools
import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

MODULES: Final = (
    "healthy_images",
    "healthy_sequences",
    "healthy_tables",
    "healthy_others",
    "healthy_boosting",
    "faulty_learning",
    "faulty_starts",
    "faulty_activations",
    "faulty_values",
    "faulty_data",
    "faulty_generalising",
    "faulty_boosting",
    "compared",
    "stalled",
)
# A training writes its trial to a folder, and returns the global step at which its fault begins.
Train = Callable[[Path], int | None]


@dataclass(frozen=True, slots=True)
class Run:
    """One training.

    Attributes
    ----------
    name, text
        Name of its trial, and what it is.
    train
        Trains, and writes the trial.
    fault
        What is wrong with it; empty if it is healthy.
    fires
        Rules that must find the fault.
    may
        Rules that may find a consequence of the fault, and why: counted neither way.
    other
        Name of the run that it is compared with by rules that compare; empty for none.
    """

    name: str
    text: str
    train: Train = field(compare=False)
    fault: str = ""
    fires: frozenset[str] = frozenset()
    may: Mapping[str, str] = field(default_factory=dict, hash=False)
    other: str = ""

    @property
    def healthy(self) -> bool:
        return not self.fault


_RUNS: dict[str, Run] = {}


def _registered(run: Run) -> Train:
    if run.name in _RUNS:
        msg = f"Two runs are called {run.name!r}."
        raise ValueError(msg)
    _RUNS[run.name] = run
    return run.train


def healthy(text: str, **more: Any) -> Callable[[Train], Train]:
    """Register a training without a fault; `may` and `other` as in `Run`."""
    return lambda train: _registered(Run(train.__name__, text, train, **more))


def faulty(
    text: str,
    fault: str,
    fires: Iterable[str],
    *,
    may: Mapping[str, str] | None = None,
    **more: Any,
) -> Callable[[Train], Train]:
    """Register a training with a fault; what must be found is no mere consequence."""
    must = frozenset(fires)
    rest = {rule: reason for rule, reason in (may or {}).items() if rule not in must}
    return lambda train: _registered(Run(train.__name__, text, train, fault, must, rest, **more))


@functools.cache
def all_runs() -> Mapping[str, Run]:
    """Return all runs by name."""
    for module in MODULES:
        importlib.import_module(module)
    return MappingProxyType(_RUNS)

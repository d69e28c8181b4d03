"""Jobs: labelled profiles, healthy ones and ones with a fault, recorded or generated."""

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from training_runs import Run

RECORDED: Final = "recorded"
GENERATED: Final = "generated"
# The samples of cores and disks are recorded, those of GPUs are generated: counted as generated.
HOST_RECORDED: Final = "generated beside a recorded host"
# Writes a profile below a folder.
Make = Callable[[Path], None]
_JOBS: dict[str, Run] = {}


def _register(make: Make, name: str, text: str, kind: str, **fields: Any) -> None:
    if name in _JOBS:
        msg = f"Two jobs are called {name!r}."
        raise ValueError(msg)
    _JOBS[name] = Run(name, text, make, kind=kind, **fields)


def healthy(
    make: Make, name: str, text: str, kind: str, may: Mapping[str, str] | None = None
) -> None:
    """Register a job without a fault, with the rules that may find something, and the reasons."""
    _register(make, name, text, kind, may=may or {})


def faulty(
    make: Make,
    name: str,
    text: str,
    kind: str,
    fires: Iterable[str],
    may: Mapping[str, str] | None = None,
) -> None:
    """Register a job with a fault, with the rules that must find it and those that may."""
    _register(make, name, text, kind, fault=text, fires=frozenset(fires), may=may or {})


@functools.cache
def all_jobs() -> Mapping[str, Run]:
    """Return all jobs by name."""
    package = importlib.import_module("jobs")
    for module in pkgutil.iter_modules(package.__path__, "jobs."):
        importlib.import_module(module.name)
    return MappingProxyType(_JOBS)


def sample(jobs: Mapping[str, Run]) -> list[str]:
    """Return a fixed sample: of generated jobs, those with a rule's first fault and healthy ones.

    Recorded jobs take seconds, in which other work on a machine disturbs them.
    """
    generated = {name: job for name, job in jobs.items() if job.kind == GENERATED}
    chosen = {*[name for name, job in generated.items() if job.healthy][::9]}
    rules = {rule for job in generated.values() for rule in job.fires}
    chosen |= {next(name for name, job in generated.items() if rule in job.fires) for rule in rules}
    return [name for name in generated if name in chosen]

"""Runs: what the trainings of the detection suite are, and which rules must find their faults."""

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

TUNED: Final = "tuned"
HELD_OUT: Final = "held_out"
PARTS: Final = (TUNED, HELD_OUT)
KINDS: Final = (
    "supervised",
    "language_model",
    "contrastive",
    "autoencoder",
    "diffusion",
    "adversarial",
    "reinforcement",
    "boosted_trees",
)
# What CI judges: a healthy run, and those of PyTorch and XGBoost whose fault most rules must find.
SAMPLE: Final = ("digits_sgd", "rate_jumps", "by_heart_at_once")
# A training writes its trial to a folder and returns the global step at which its fault begins.
Train = Callable[[Path], int | None]


@dataclass(frozen=True, slots=True)
class Run:
    """One training.

    Attributes
    ----------
    name, text
        The name of its trial, and a description.
    train
        Trains and writes the trial.
    fault
        What is wrong with it; empty if it is healthy.
    fires
        Rules that must find the fault.
    may
        Rules that may find a consequence of the fault, with the reason: counted neither way.
    unsuited
        Rules that the suite gives parameters which do not fit this run, with the reason: not asked.
    other
        Name of the run that comparing rules compare it with; empty for none.
    kind
        The kind of training, one of `KINDS`.
    part
        `TUNED` or `HELD_OUT`: the folder of the module that defines it.
    """

    name: str
    text: str
    train: Train = field(compare=False)
    fault: str = ""
    fires: frozenset[str] = frozenset()
    may: Mapping[str, str] = field(default_factory=dict, hash=False)
    unsuited: Mapping[str, str] = field(default_factory=dict, hash=False)
    other: str = ""
    kind: str = "supervised"
    part: str = TUNED

    @property
    def healthy(self) -> bool:
        return not self.fault


_RUNS: dict[str, Run] = {}


def _register(train: Train, text: str, **fields: Any) -> Train:
    name = train.__name__
    if name in _RUNS:
        msg = f"Two runs are called {name!r}."
        raise ValueError(msg)
    part = train.__module__.partition(".")[0].removeprefix("runs_")
    _RUNS[name] = Run(name, text, train, part=part, **fields)
    return train


def healthy(text: str, **fields: Any) -> Callable[[Train], Train]:
    """Register a training without a fault; `kind`, `may`, `unsuited` and `other` as in `Run`."""
    return lambda train: _register(train, text, **fields)


def faulty(
    text: str,
    fault: str,
    fires: Iterable[str],
    *,
    may: Mapping[str, str] | None = None,
    **fields: Any,
) -> Callable[[Train], Train]:
    """Register a training with a fault; rules that must find it are not among its `may`."""
    must = frozenset(fires)
    optional = {rule: reason for rule, reason in (may or {}).items() if rule not in must}
    return lambda train: _register(train, text, fault=fault, fires=must, may=optional, **fields)


def _modules() -> Iterator[str]:
    for part in PARTS:
        package = importlib.import_module(f"runs_{part}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield module.name


@functools.cache
def all_runs() -> Mapping[str, Run]:
    """Return all runs by name."""
    for module in _modules():
        importlib.import_module(module)
    return MappingProxyType(_RUNS)


def runs_of(part: str) -> Mapping[str, Run]:
    """Return the runs of a part, or of both for ``all``."""
    return {name: run for name, run in all_runs().items() if part in {run.part, "all"}}

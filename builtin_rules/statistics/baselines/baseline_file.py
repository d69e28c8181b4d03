"""BaselineFile: the bands of good runs, as a file that belongs in version control."""

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct

from builtin_rules.statistics.baselines.bands import Band, band_of, curve_of, rounded
from builtin_rules.statistics.baselines.run_metrics import (
    DURATION,
    MetricKey,
    MetricKind,
    RunMetric,
    TokenCounter,
    run_length,
    run_metrics,
)
from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.rules.extensions import read_file, run_configuration

SCHEMA_VERSION: Final = 1
MAX_BYTES: Final = 4 << 20
ALIKE: Final = 0.02  # relative difference of the lengths of runs that are aligned by steps


class ProgressAxis(StrEnum):
    """What the progress of the runs of a baseline counts."""

    STEPS = "steps"
    TOKENS = "tokens"
    SHARE = "share"


class MetricBands(Struct, frozen=True, forbid_unknown_fields=True):
    """The bands of one metric.

    Attributes
    ----------
    last
        The lowest progress at which a good run has its last value.
    bands
        By statistic.
    curve
        Progress, and the lowest and the highest value of the good runs up to it.
    """

    name: str
    mode: str
    kind: MetricKind
    last: float
    bands: dict[str, Band]
    curve: list[tuple[float, float, float]] = []


class BaselineFile(Struct, frozen=True, forbid_unknown_fields=True):
    """What the good runs of one recipe have in common.

    Attributes
    ----------
    axis
        What the progress counts.
    length, shortest
        The last steps, or the tokens, of the longest and of the shortest good run.
    configuration
        The settings that all runs have, with one value.
    """

    schema_version: int
    runs: list[str]
    axis: ProgressAxis
    length: int
    shortest: int
    configuration: dict[str, str]
    metrics: list[MetricBands]

    def metrics_of(self, trial: Any) -> dict[MetricKey, RunMetric]:
        """Return the metrics of a run, up to the length of the good runs."""
        match self.axis:
            case ProgressAxis.STEPS:
                return run_metrics(trial, self.length)
            case ProgressAxis.TOKENS:
                return run_metrics(trial, self.length, self._tokens_of(trial))
            case ProgressAxis.SHARE:
                return run_metrics(trial, run_length(trial))

    def length_of(self, trial: Any) -> int:
        """Return the last step of a run, or its tokens."""
        return (
            self._tokens_of(trial).total if self.axis is ProgressAxis.TOKENS else run_length(trial)
        )

    def ends_before(self, trial: Any) -> bool:
        """Return whether a run ended before the good ones."""
        return (
            self.axis is not ProgressAxis.SHARE
            and self.length_of(trial) < (1 - ALIKE) * self.shortest
        )

    @staticmethod
    def _tokens_of(trial: Any) -> TokenCounter:
        tokens = TokenCounter(trial)
        if not tokens.total:
            raise SMDebugValueError(
                f"Run {trial.path!r} logs no number of tokens seen that only rises, by which the "
                "good runs are aligned. Log it, or make a baseline of runs with as many steps."
            )
        return tokens

    def other_recipe(self, trial: Any) -> str:
        """Return which settings of a run differ from those of the good runs; "" if none does."""
        settings = run_configuration(trial)
        differing = [
            f"{name} is {settings[name]!r}, not {usual!r}"
            for name, usual in self.configuration.items()
            if settings.get(name, usual) != usual
        ]
        return ", ".join([*differing[:3], *("..." for _ in differing[3:4])])

    def to_json(self) -> str:
        """Return the file; the same runs give the same text."""
        return json.dumps(msgspec.to_builtins(self), indent=1, sort_keys=True) + "\n"


class _Head(Struct):
    schema_version: int


def make_baseline(trials: Sequence[Any]) -> BaselineFile:
    """Return the baseline of good runs of one recipe.

    Raises
    ------
    SMDebugValueError
        If the runs have no metric in common, one has another recipe, or one is not good.
    """
    trials = sorted(trials, key=lambda trial: (trial.name, trial.path))
    every = [run_configuration(trial) for trial in trials]
    common = dict(set(every[0].items()).intersection(*(each.items() for each in every)))
    lengths = [run_length(trial) for trial in trials]
    names = [trial.name for trial in trials]
    axis = ProgressAxis.STEPS if _alike(lengths) else ProgressAxis.SHARE
    if axis is ProgressAxis.SHARE and _alike(
        totals := [TokenCounter(trial).total for trial in trials]
    ):
        axis, lengths = ProgressAxis.TOKENS, totals
    baseline = BaselineFile(SCHEMA_VERSION, names, axis, max(lengths), min(lengths), common, [])
    runs = [baseline.metrics_of(trial) for trial in trials]
    for trial, metrics in zip(trials, runs, strict=True):
        for (name, _), metric in metrics.items():
            if metric.kind is MetricKind.LOSS and metric.not_finite is not None:
                msg = f"{name!r} is not finite from step {metric.not_finite} on. Leave it out."
                raise SMDebugValueError(f"Run {trial.path!r} is not good: {msg}")
    shared = [key for key in sorted(runs[0]) if all(key in m and m[key].statistics for m in runs)]
    if {*shared} <= {DURATION}:
        raise SMDebugValueError("The runs have no loss, metric, norm or speed in common.")
    bands = [_bands(key, [metrics[key] for metrics in runs]) for key in shared]
    return msgspec.structs.replace(baseline, metrics=bands)


def _alike(lengths: Sequence[int]) -> bool:
    return 0 < max(lengths) <= (1 + ALIKE) * min(lengths)


def _bands(key: MetricKey, runs: Sequence[RunMetric]) -> MetricBands:
    names = set(runs[0].statistics).intersection(*(run.statistics for run in runs))
    bands = {name: band_of(name, runs) for name in sorted(names)}
    last = min(run.last for run in runs)
    return MetricBands(*key, runs[0].kind, rounded(last), bands, curve_of(runs))


def read_baseline(path: str) -> BaselineFile:
    """Return the baseline in a file.

    Raises
    ------
    SMDebugValueError
        If it cannot be read, is cut off, or has another version.
    """
    try:
        return _decoded(read_file(path, MAX_BYTES))
    except (OSError, ValueError, RecursionError, SMDebugError) as err:
        reason = getattr(err, "strerror", None) or str(err).rstrip(".")
        raise SMDebugValueError(
            f"Baseline {path!r} cannot be used: {reason}. Make it with 'rule-runner baseline make'."
        ) from err


def _decoded(content: bytes) -> BaselineFile:
    version = msgspec.json.decode(content, type=_Head).schema_version
    if version != SCHEMA_VERSION:
        raise ValueError(f"it has version {version}, and this program reads {SCHEMA_VERSION}")
    baseline = msgspec.json.decode(content, type=BaselineFile)
    if not (baseline.metrics and baseline.runs and baseline.length > 0):
        raise ValueError("it has no metrics, no runs or no length")
    return baseline

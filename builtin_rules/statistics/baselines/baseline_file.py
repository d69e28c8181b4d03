"""BaselineFile: the bands of good runs, as a file that belongs in version control."""

import json
import math
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import numpy as np
from msgspec import Struct

from builtin_rules.statistics.baselines.bands import Band, band_of, curve_of, rounded
from builtin_rules.statistics.baselines.run_metrics import (
    MetricKey,
    MetricKind,
    RunMetric,
    run_length,
    run_metrics,
)
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import run_configuration

SCHEMA_VERSION: Final = 1
MAX_BYTES: Final = 4 << 20
ALIKE: Final = 0.02  # relative difference of the lengths of runs that are aligned by steps
SHOWN: Final = 3


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
    aligned_by
        What the progress counts. Runs of different lengths are aligned by the share of each.
    length, shortest
        The steps or tokens at a progress of 1, and of the shortest good run.
    configuration
        The settings that all runs have, with one value.
    """

    schema_version: int
    runs: list[str]
    aligned_by: Literal["steps", "tokens", "share"]
    length: float
    shortest: float
    configuration: dict[str, str]
    metrics: list[MetricBands]

    def metrics_of(self, trial: Any) -> dict[MetricKey, RunMetric]:
        """Return the metrics of a run, up to the length of the good runs."""
        length = run_length(trial).steps if self.aligned_by == "share" else self.length
        return run_metrics(trial, length, by_tokens=self.aligned_by == "tokens")

    def reached(self, trial: Any) -> float | None:
        """Return how far a run went that ended before the good ones; None if it did not."""
        steps, tokens = run_length(trial)
        length = tokens if self.aligned_by == "tokens" else steps
        is_short = self.aligned_by != "share" and not length >= (1 - ALIKE) * self.shortest
        return length if is_short else None

    def other_recipe(self, trial: Any) -> str:
        """Return which settings of a run differ from those of the good runs; "" if none does."""
        settings = run_configuration(trial)
        differing = [
            f"{name} is {settings[name]!r}, not {usual!r}"
            for name, usual in self.configuration.items()
            if settings.get(name, usual) != usual
        ]
        more = len(differing) - SHOWN
        return ", ".join(differing[:SHOWN]) + (f" and {more} more" if more > 0 else "")

    def to_json(self) -> str:
        """Return the file; the same runs give the same text."""
        return json.dumps(msgspec.to_builtins(self), indent=1, sort_keys=True) + "\n"


def make_baseline(trials: Sequence[Any]) -> BaselineFile:
    """Return the baseline of good runs of one recipe.

    Raises
    ------
    SMDebugValueError
        If the runs have no metric in common, one has another recipe, or one is not good.
    """
    trials = sorted(trials, key=lambda trial: (trial.name, trial.path))
    every = [run_configuration(trial) for trial in trials]
    common = {
        name: setting
        for name, setting in every[0].items()
        if all(settings.get(name) == setting for settings in every)
    }
    lengths = np.array([run_length(trial) for trial in trials])
    aligned_by: Literal["steps", "tokens", "share"] = "share"
    column = 0
    if _are_alike(lengths[:, 0]):
        aligned_by = "steps"
    elif _are_alike(lengths[:, 1]):
        aligned_by, column = "tokens", 1
    shortest, longest = float(lengths[:, column].min()), float(lengths[:, column].max())
    baseline = BaselineFile(
        SCHEMA_VERSION, [trial.name for trial in trials], aligned_by, longest, shortest, common, []
    )
    runs = [baseline.metrics_of(trial) for trial in trials]
    for trial, metrics in zip(trials, runs, strict=True):
        for key, metric in metrics.items():
            if metric.kind is MetricKind.LOSS and metric.not_finite is not None:
                raise SMDebugValueError(
                    f"Run {trial.path!r} is not good: {key.name!r} is not finite from step "
                    f"{metric.not_finite} on. Leave it out."
                )
    shared = [key for key in sorted(runs[0]) if all(key in metrics for metrics in runs)]
    if not shared:
        raise SMDebugValueError("The runs have no loss, metric, norm or speed in common.")
    bands = [_bands(key, [metrics[key] for metrics in runs]) for key in shared]
    return msgspec.structs.replace(baseline, metrics=bands)


def _are_alike(lengths: Any) -> bool:
    return bool(lengths.min() > 0 and lengths.max() <= (1 + ALIKE) * lengths.min())


def _bands(key: MetricKey, runs: Sequence[RunMetric]) -> MetricBands:
    names = sorted(runs[0].statistics)
    bands = {name: band for name in names if (band := band_of(name, runs)) is not None}
    last = min(run.last for run in runs)
    return MetricBands(key.name, key.mode, runs[0].kind, rounded(last), bands, curve_of(runs))


def read_baseline(path: str) -> BaselineFile:
    """Return the baseline in a file.

    Raises
    ------
    SMDebugValueError
        If it cannot be read, is cut off, or has another version.
    """
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise SMDebugValueError(f"Baseline {path!r} is not a regular file.")
        with Path(path).open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise SMDebugValueError(f"Baseline {path!r} has more than {MAX_BYTES >> 20} MiB.")
        head = msgspec.json.decode(content)
        version = head.get("schema_version") if isinstance(head, dict) else None
        if isinstance(version, int) and version != SCHEMA_VERSION:
            raise SMDebugValueError(
                f"Baseline {path!r} has version {version}, and this rule-runner reads version "
                f"{SCHEMA_VERSION}. Make it again with 'rule-runner baseline make'."
            )
        return _checked(msgspec.convert(head, BaselineFile))
    except OSError as err:
        reason = f"{(err.strerror or str(err)).lower()}"
    except (msgspec.MsgspecError, ValueError, RecursionError) as err:
        if isinstance(err, SMDebugValueError):
            raise
        reason = f"it is no file of 'rule-runner baseline make': {str(err).rstrip('.')}"
    raise SMDebugValueError(f"Baseline {path!r} cannot be read: {reason}.")


def _checked(baseline: BaselineFile) -> BaselineFile:
    """Return a baseline whose numbers are finite."""
    limits = [
        number
        for metric in baseline.metrics
        for number in (
            *(end for band in metric.bands.values() for end in (band.low, band.middle, band.high)),
            *(end for point in metric.curve for end in point),
        )
    ]
    if not baseline.metrics or not all(map(math.isfinite, limits)) or not baseline.length > 0:
        raise ValueError("it has no metrics, or limits that are not numbers")
    return baseline

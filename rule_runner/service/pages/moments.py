"""Moments: when the findings of profiler rules were, and how to see that time in a trace."""

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from rule_core.exceptions import SMDebugError
from rule_core.profiler.kineto.trace_names import RecordedTrace, recorded_traces
from rule_core.storage.base import StorageUnavailableError
from rule_core.storage.uri import is_s3, open_store
from rule_runner.results.schema import RuleResult

TRACES_SHOWN: Final = 8  # of a finding
_US_PER_S: Final = 1_000_000


class Moment(NamedTuple):
    """A window of time in a profile.

    Attributes
    ----------
    start_ms, end_ms
        Milliseconds since the epoch.
    clock
        Its beginning, as a clock in UTC shows it.
    span
        Its beginning and end in UTC.
    command
        Makes a trace of this time for Perfetto.
    traces
        The paths of traces of torch.profiler that were recorded in it.
    """

    start_ms: int
    end_ms: int
    clock: str
    span: str
    command: str
    traces: Sequence[str]


class Moments:
    """The moments of findings in one profile.

    Parameters
    ----------
    path
        The profile, a path or an address.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def of(self, result: RuleResult, window: int) -> Moment | None:
        """Return the moment of a window; None if the result does not say when it was."""
        if result.windows is msgspec.UNSET:
            return None
        start_us, end_us = result.windows.span_us(window)
        try:
            start, end = _time(start_us // _US_PER_S), _time(-(-end_us // _US_PER_S))
        except (ValueError, OverflowError, OSError):
            return None
        command = (
            f"rule-runner profile timeline {shlex.quote(self._path)} -o trace.json "
            f"--start {start:%Y-%m-%dT%H:%M:%SZ} --end {end:%Y-%m-%dT%H:%M:%SZ}"
        )
        traces = [
            f"{self._path.rstrip('/')}/{trace.key}"
            for trace in self._traces
            if trace.start_us < end_us and trace.end_us >= start_us
        ]
        return Moment(
            start_us // 1000,
            end_us // 1000,
            f"{start:%H:%M:%S}",
            f"{start:%Y-%m-%d %H:%M:%S} to {end:%H:%M:%S} UTC",
            command,
            traces[:TRACES_SHOWN],
        )

    @cached_property
    def _traces(self) -> Sequence[RecordedTrace]:
        """The traces that were recorded beside the timelines; of profiles in S3 none are listed."""
        if is_s3(self._path):
            return ()
        try:
            return recorded_traces(open_store(self._path))
        except (SMDebugError, StorageUnavailableError):
            return ()


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)

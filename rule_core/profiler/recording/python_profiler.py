"""PythonProfiler: profiles the Python functions of a training, a file for each phase of a step."""

import atexit
import cProfile
import marshal
import sys
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

from rule_core.logger import get_logger
from rule_core.modes import ModeKeys
from rule_core.profiler.files.constants import (
    CONVERT_TO_MICROSECS,
    CPROFILE_NAME,
    CPROFILE_STATS_FILENAME,
    PYINSTRUMENT_HTML_FILENAME,
    PYINSTRUMENT_JSON_FILENAME,
    PYINSTRUMENT_NAME,
)
from rule_core.profiler.python_profiles.types import PythonProfileModes, StepPhase, cProfileTimer
from rule_core.profiler.recording.config import PythonProfiling, RecordingConfig
from rule_core.profiler.recording.step_profiler import StepPoint

PYINSTRUMENT_INTERVAL_S: Final = 0.001
_NO_STEP: Final = "*"
# Of smdebug's timers, which are those of `os.times`, but with more than its hundredths of seconds.
_TIMERS: Final[Mapping[cProfileTimer, Callable[[], float]]] = MappingProxyType(
    {
        cProfileTimer.TOTAL_TIME: time.perf_counter,
        cProfileTimer.CPU_TIME: time.process_time,
        cProfileTimer.OFF_CPU_TIME: lambda: time.perf_counter() - time.process_time(),
    }
)
Files = dict[str, bytes]
Save = Callable[[str, Callable[[], Files]], None]


class Profile(Protocol):
    """A profiler that runs once."""

    def start(self) -> None:
        """Begin profiling; raise `ValueError` if another tool is profiling."""
        ...

    def stop(self) -> Callable[[], Files]:
        """End profiling; return a function that returns the files by name."""
        ...


class FunctionProfile:
    """A run of cProfile.

    Parameters
    ----------
    timer
        The clock of the functions.
    """

    def __init__(self, timer: cProfileTimer) -> None:
        self._profile = cProfile.Profile(_TIMERS[timer])

    def start(self) -> None:
        """Begin profiling; see `Profile`."""
        if sys.getprofile() is not None:
            msg = "Another profiling tool is already active"  # as Python 3.12 says
            raise ValueError(msg)
        self._profile.enable()

    def stop(self) -> Callable[[], Files]:
        """End profiling; see `Profile`."""
        self._profile.create_stats()
        return self._files

    def _files(self) -> Files:
        stats: Any = vars(self._profile)["stats"]
        return {CPROFILE_STATS_FILENAME: marshal.dumps(stats)}


class SampledProfile:
    """A run of pyinstrument, which looks at the stack each millisecond."""

    def __init__(self) -> None:
        from pyinstrument import Profiler

        self._profiler = Profiler(interval=PYINSTRUMENT_INTERVAL_S, async_mode="disabled")

    def start(self) -> None:
        """Begin profiling; see `Profile`."""
        if sys.getprofile() is not None:
            msg = "Another profiling tool is already active"
            raise ValueError(msg)
        self._profiler.start()

    def stop(self) -> Callable[[], Files]:
        """End profiling; see `Profile`."""
        self._profiler.stop()
        return self._files

    def _files(self) -> Files:
        from pyinstrument.renderers import JSONRenderer

        return {
            PYINSTRUMENT_JSON_FILENAME: self._profiler.output(JSONRenderer()).encode(),
            PYINSTRUMENT_HTML_FILENAME: self._profiler.output_html().encode(),
        }


class PythonProfiler:
    """Profiles the functions from phase to phase, in the configured range and outside of steps.

    It also profiles the time before the first step, and that from the end of the hook to the end of
    the script.

    Parameters
    ----------
    framework, node
        Names of the framework and the process in folders.
    save
        Writes files below a folder, later and on another thread if there is one.
    now_us
        Returns the time in epoch microseconds.
    """

    def __init__(self, framework: str, node: str, save: Save, now_us: Callable[[], int]) -> None:
        self._folder = f"framework/{framework}/{{}}/{node}"
        self._save = save
        self._now_us = now_us
        self._running: Profile | None = None
        self._start = ""
        self._name = CPROFILE_NAME
        self._steps = 0  # that were profiled
        self._is_off = False

    def begin_script(self, config: RecordingConfig) -> None:
        """Profile the time before the first step."""
        if config.python is not None:
            start = _point("prestepzero", _NO_STEP, StepPhase.START, self._now_us())
            self._begin(config.python, start)

    def reach(self, phase: StepPhase, point: StepPoint, config: RecordingConfig) -> None:
        """End the running profile at a phase of a step, and begin the next in the range."""
        python = config.python
        is_in_range = python is not None and python.range.contains(
            point.step, point.time_us / CONVERT_TO_MICROSECS
        )
        if self._running is None and not is_in_range:
            return
        step = _point(_mode(point.mode), str(point.mode_step), phase, point.time_us)
        self._end(step)
        if python is not None and is_in_range:
            self._steps += phase is StepPhase.STEP_START
            self._begin(python, step)

    def close(self, point: StepPoint, config: RecordingConfig) -> None:
        """End the running profile, and profile the time until the script ends."""
        step = str(point.mode_step) if point.step >= 0 else _NO_STEP
        self._end(_point(_mode(point.mode), step, StepPhase.STEP_END, point.time_us))
        if config.python is not None and not self._is_off:
            start = _point("posthookclose", _NO_STEP, StepPhase.END, point.time_us)
            self._begin(config.python, start)
            atexit.register(self.end_script)

    def stop(self) -> None:
        """End the running profile without a result."""
        profile, self._running = self._running, None
        if profile is not None:
            profile.stop()

    def end_script(self) -> None:
        """End the profile after the hook, at exit or before another hook profiles."""
        atexit.unregister(self.end_script)
        self._end(_point("posthookclose", _NO_STEP, StepPhase.END, self._now_us()))

    def _begin(self, config: PythonProfiling, start: str) -> None:
        if self._is_off:
            return
        try:
            profile = self._new(config)
            profile.start()
        except (ImportError, ValueError, RuntimeError) as err:
            self._is_off = True
            text = "Python functions are not profiled with %s: %s."
            get_logger("hook").warning(text, config.profiler, str(err).rstrip("."))
            return
        self._running, self._start, self._name = profile, start, config.profiler

    def _new(self, config: PythonProfiling) -> Profile:
        if config.profiler == PYINSTRUMENT_NAME:
            return SampledProfile()
        timer = config.timer
        if timer is cProfileTimer.DEFAULT:
            timer = list(_TIMERS)[max(self._steps - 1, 0) % len(_TIMERS)]
        return FunctionProfile(timer)

    def _end(self, end: str) -> None:
        profile, self._running = self._running, None
        if profile is not None:
            folder = f"{self._folder.format(self._name)}/{self._start}_{end}"
            self._save(folder, profile.stop())


def _mode(mode: ModeKeys) -> str:
    return PythonProfileModes(mode.value).name.lower()


def _point(mode: str, step: str, phase: StepPhase, time_us: int) -> str:
    """Return one half of the name of a span.

    >>> _point("train", "9", StepPhase.STEP_START, 1_600_000_000_000_000)
    'train-9-stepstart-1600000000000000.0'
    """
    return f"{mode}-{step}-{phase.value}-{float(time_us)!r}"

"""PythonProfiler: profiles the Python functions of a training, a file for each phase of a step."""

import atexit
import cProfile
import marshal
import sys
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from rule_core.logger import get_logger
from rule_core.modes import ModeKeys
from rule_core.profiler.files import constants
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


class Profile(NamedTuple):
    """A profiler that runs once.

    Attributes
    ----------
    start, stop
        Begin and end profiling.
    files
        Returns the files by name after the end.
    """

    start: Callable[[], object]
    stop: Callable[[], object]
    files: Callable[[], Files]


def function_profile(timer: cProfileTimer) -> Profile:
    """Return a run of cProfile with the clock `timer`."""
    profile = cProfile.Profile(_TIMERS[timer])

    def files() -> Files:
        stats: Any = vars(profile)["stats"]
        return {constants.CPROFILE_STATS_FILENAME: marshal.dumps(stats)}

    return Profile(profile.enable, profile.create_stats, files)


def sampled_profile() -> Profile:
    """Return a run of pyinstrument, which looks at the stack each millisecond."""
    from pyinstrument import Profiler
    from pyinstrument.renderers import JSONRenderer

    profiler = Profiler(interval=PYINSTRUMENT_INTERVAL_S, async_mode="disabled")

    def files() -> Files:
        return {
            constants.PYINSTRUMENT_JSON_FILENAME: profiler.output(JSONRenderer()).encode(),
            constants.PYINSTRUMENT_HTML_FILENAME: profiler.output_html().encode(),
        }

    return Profile(profiler.start, profiler.stop, files)


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
        self._name = constants.CPROFILE_NAME
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
            point.step, point.time_us / constants.CONVERT_TO_MICROSECS
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
        if sys.getprofile() is not None:
            msg = "Another profiling tool is already active"  # as Python 3.12 says
            raise ValueError(msg)
        if config.profiler == constants.PYINSTRUMENT_NAME:
            return sampled_profile()
        timer = config.timer
        if timer is cProfileTimer.DEFAULT:
            timer = list(_TIMERS)[max(self._steps - 1, 0) % len(_TIMERS)]
        return function_profile(timer)

    def _end(self, end: str) -> None:
        profile, self._running = self._running, None
        if profile is not None:
            folder = f"{self._folder.format(self._name)}/{self._start}_{end}"
            profile.stop()
            self._save(folder, profile.files)


def _mode(mode: ModeKeys) -> str:
    return PythonProfileModes(mode.value).name.lower()


def _point(mode: str, step: str, phase: StepPhase, time_us: int) -> str:
    """Return one half of the name of a span.

    >>> _point("train", "9", StepPhase.STEP_START, 1_600_000_000_000_000)
    'train-9-stepstart-1600000000000000.0'
    """
    return f"{mode}-{step}-{phase.value}-{float(time_us)!r}"

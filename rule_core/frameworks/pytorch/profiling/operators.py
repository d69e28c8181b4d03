"""OperatorProfiler: profiles the operators of a PyTorch training with torch.profiler."""

import gc
import gzip
import tempfile
import time
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
from torch.autograd import profiler
from torch.profiler import ProfilerActivity

from rule_core.frameworks.pytorch.patches import Patch
from rule_core.frameworks.pytorch.profiling.operator_trace import STEP_MARK, records_of
from rule_core.frameworks.pytorch.profiling.submodules import SubmoduleTimes
from rule_core.logger import get_logger
from rule_core.profiler.files.constants import CONVERT_MICRO_TO_NS, CONVERT_TO_MICROSECS
from rule_core.profiler.python_profiles.types import StepPhase
from rule_core.profiler.recording import layout
from rule_core.profiler.recording.config import RecordingConfig
from rule_core.profiler.recording.recorder import ProfilerRecorder
from rule_core.profiler.recording.step_profiler import StepPoint
from rule_core.profiler.recording.timelines import TraceRecord
from rule_core.storage.publish import publish
from rule_core.storage.uri import open_output

MOST_WAITING: Final = 16  # steps that are not yet written; their operators are in memory
COMPRESSION: Final = 3
OTHER: Final = "the script uses torch.profiler itself"
_is_profiling: Final = attrgetter("_profiler_enabled")(torch.autograd)  # private in PyTorch
AddRecord = Callable[[TraceRecord], None]


class ProfiledStep(NamedTuple):
    """A step whose operators were profiled.

    Attributes
    ----------
    profile
        PyTorch's profile.
    config
        Of the recording.
    point
        The beginning of the step.
    end_us
        Its end in epoch microseconds.
    shift_us
        Microseconds to add to PyTorch's times, which follow the clock of the machine.
    """

    profile: Any
    config: RecordingConfig
    point: StepPoint
    end_us: int
    shift_us: int


class OperatorProfiler:
    """Profiles the operators of each step in the range of detailed profiling.

    A step has a trace of its own for Perfetto and other tools, and events in the model timeline.

    Parameters
    ----------
    recorder
        Writes the files and events.
    submodules
        Times the modules inside of models in the same steps.
    """

    def __init__(self, recorder: ProfilerRecorder, submodules: SubmoduleTimes) -> None:
        self._recorder = recorder
        self._submodules = submodules
        self._prepared: Any = None  # warmed up before the range, between two steps
        self._profile: Any = None
        self._mark = ExitStack()  # names the step in the trace
        self._point = recorder.point
        self._shift_us = 0
        self._waiting = 0
        self._warned: set[str] = set()
        self._others = OtherProfiles(self._give_way)

    def reach(self, phase: StepPhase, point: StepPoint, config: RecordingConfig) -> None:
        """Profile from the beginning of a step in the range to that of the next step."""
        steps = config.detailed
        if phase is StepPhase.STEP_END:
            if steps is not None and steps.start_step == point.step + 1 and self._prepared is None:
                self._prepared = self._new()
            return
        if phase is not StepPhase.STEP_START:
            return
        self._end(point.time_us, config)
        if steps is not None and steps.contains(point.step, point.time_us / CONVERT_TO_MICROSECS):
            self._begin(point)
        else:
            self.stop()

    def close(self, point: StepPoint, config: RecordingConfig) -> None:
        """End profiling when the hook is closed."""
        self._end(point.time_us, config)
        self.stop()

    def stop(self) -> None:
        """End profiling without a result, and leave nothing in PyTorch."""
        self._submodules.unwatch()
        self._others.close()
        prepared, self._prepared = self._prepared, None
        if prepared is not None:  # PyTorch ends only what has started
            prepared.start_trace()
            prepared.stop_trace()
        self._drop()

    def _drop(self) -> bool:
        """End the running profile without a result; return whether there was one."""
        profile, self._profile = self._profile, None
        if profile is not None:
            self._mark.close()
            profile.stop_trace()
        return profile is not None

    def _give_way(self) -> None:
        """Leave the step to a profile of the script."""
        prepared, self._prepared = self._prepared, None
        if self._drop() or prepared is not None:
            self._warn(OTHER)

    def _new(self) -> Any:
        """Return a profile that is ready to start; None if that is impossible now."""
        self._others.open()
        if self._others.is_any_active() or _is_profiling():
            self._warn(OTHER)
            return None
        if self._waiting >= MOST_WAITING:
            self._warn(f"{MOST_WAITING} steps wait to be written")
            return None
        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_initialized():
            activities.append(ProfilerActivity.CUDA)
        profile = torch.profiler.profile(activities=activities)
        self._others.prepare(profile)
        return profile

    def _begin(self, point: StepPoint) -> None:
        prepared, self._prepared = self._prepared, None
        profile = prepared or self._new()
        if profile is None:
            return
        profile.start_trace()
        self._mark.enter_context(torch.profiler.record_function(f"{STEP_MARK}{point.step}"))
        self._profile, self._point = profile, point
        self._shift_us = self._recorder.now_us() - time.time_ns() // CONVERT_MICRO_TO_NS
        self._submodules.watch()

    def _end(self, end_us: int, config: RecordingConfig) -> None:
        """End the profile of a step, and write it on another thread."""
        profile, self._profile = self._profile, None
        if profile is None:
            return
        self._mark.close()
        profile.stop_trace()
        self._waiting += 1
        step = ProfiledStep(profile, config, self._point, end_us, self._shift_us)
        self._recorder.write_later(partial(self._write, step))

    def _write(self, step: ProfiledStep, add: AddRecord) -> None:
        """Write the trace of a step and the events of the model timeline."""
        try:
            content = _trace(step.profile)
        finally:
            self._waiting -= 1
        config, point = step.config, step.point
        key = layout.kineto_key(
            *(point.step, self._recorder.node, point.time_us, step.end_us),
            is_inside=config.is_kineto_inside,
        )
        publish(open_output(config.folder), key, gzip.compress(content, COMPRESSION))
        for record in records_of(content, point.mode_step, step.shift_us):
            add(record)

    def _warn(self, reason: str) -> None:
        """Log once why operators of a step are missing."""
        if reason not in self._warned:
            self._warned.add(reason)
            get_logger("hook").warning("Operators of some steps are not profiled: %s.", reason)


class OtherProfiles:
    """Follows the profiles of PyTorch that others make, as PyTorch has one session for all.

    A second session takes the events of the first, and PyTorch crashes on the profile without
    them, even if the first was only warmed up.

    Parameters
    ----------
    give_way
        Called before another profile begins.
    """

    def __init__(self, give_way: Callable[[], None]) -> None:
        self._give_way = give_way
        self._profiles: weakref.WeakSet[Any] = weakref.WeakSet()
        self._own: Any = None
        self._patch: Patch | None = None

    def open(self) -> None:
        """Follow the profiles that exist and those to come."""
        if self._patch is not None:
            return
        self._profiles.update(each for each in gc.get_objects() if type(each) is profiler.profile)
        self._patch = Patch(profiler.profile, "_prepare_trace", self._giving_way)

    def _giving_way(self, original: Callable[[Any], None]) -> Callable[[Any], None]:
        def prepare(profile: Any) -> None:
            if self._own is None:
                self._give_way()
                self._profiles.add(profile)
            original(profile)

        return prepare

    def prepare(self, profile: Any) -> None:
        """Prepare an own profile."""
        self._own = profile
        try:
            profile.prepare_trace()
        finally:
            self._own = None

    def is_any_active(self) -> bool:
        """Return whether another profile is active or warmed up."""
        return any(
            getattr(each, "entered", False) and getattr(each, "kineto_results", None) is None
            for each in self._profiles
        )

    def close(self) -> None:
        """Restore PyTorch's method."""
        if self._patch is not None:
            self._patch.restore()
            self._patch = None


def _trace(profile: Any) -> bytes:
    """Return a profile as JSON."""
    with tempfile.NamedTemporaryFile(prefix="rule-runner-", suffix=".json") as file:
        profile.export_chrome_trace(file.name)
        return Path(file.name).read_bytes()

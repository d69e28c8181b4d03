"""ProfilerRecorder: records the steps of a training job as a timeline, and starts profilers."""

import os
import weakref
from collections.abc import Callable, Mapping
from threading import get_ident
from typing import Any, Final

from rule_core.clock import Clock, SteadyTime, SystemClock
from rule_core.error_guard import FailSafe
from rule_core.exceptions import SMDebugError
from rule_core.failures import Contained
from rule_core.logger import get_logger
from rule_core.modes import ModeKeys
from rule_core.profiler.files.constants import PYTHONTIMELINE_SUFFIX
from rule_core.profiler.python_profiles.types import StepPhase
from rule_core.profiler.recording import layout
from rule_core.profiler.recording.config import RecordingConfig
from rule_core.profiler.recording.config_file import ConfigFile, config_path
from rule_core.profiler.recording.end_marks import is_supervised, mark_begin, mark_end
from rule_core.profiler.recording.python_profiler import Files, PythonProfiler
from rule_core.profiler.recording.sampler.process import Sampler, is_first_of_node, node_number
from rule_core.profiler.recording.step_profiler import StepPoint, StepProfiler
from rule_core.profiler.recording.timelines import Timelines, TraceRecord
from rule_core.profiler.recording.trace_thread import TraceThread
from rule_core.storage.publish import publish
from rule_core.storage.uri import open_output

Values = Mapping[str, Any]
STEP: Final = "Step:ModeKeys."
FORWARD: Final = "Forward"
BACKWARD: Final = "Backward(post-forward)"
OPTIMIZER: Final = "Optimizer"
_open_recorders: Final[list["weakref.ref[ProfilerRecorder]"]] = []  # of this process


class ProfilerRecorder(FailSafe):
    """Records the steps of one process and their phases; hooks call it.

    An error is logged once and ends the recording, never the training.

    Parameters
    ----------
    config_file
        The configuration; it is read again when it changes.
    rank, world_size
        Of this process in the training job.
    framework
        Name of the framework in folders.
    clock
        The clock for the age of files.

    Attributes
    ----------
    config
        What is profiled now.
    now_us
        Returns the time in epoch microseconds.
    rank, node
        Of this process; the node is its name in files.
    point
        The current step, with the time of its beginning.
    """

    GUARDED = (
        *("_begin_step", "end_step", "begin", "end", "add_event", "record", "run", "write_later"),
    )

    NOUN = "profiler"

    def __init__(
        self,
        config_file: ConfigFile,
        rank: int,
        world_size: int,
        *,
        framework: str = "pytorch",
        clock: Clock | None = None,
        raises: bool = False,
    ) -> None:
        super().__init__(raises=raises)
        self.now_us = SteadyTime()
        self.config = config_file.config
        self.rank = rank
        self.point = StepPoint(ModeKeys.GLOBAL, -1, -1, self.now_us())
        self._config_file = config_file
        self._world_size = world_size
        self._clock = clock or SystemClock()
        self._thread: TraceThread | None = None
        self.node = layout.node_id(rank)
        self._python = PythonProfiler(framework, self.node, self._save, self.now_us)
        self._profilers: list[StepProfiler] = [self._python]
        self._began: dict[str, int] = {}  # by phase
        self._step_name = ""
        self._step_began = self._last_end = self._last_finish = 0
        self._has_reached_end = False
        self._process = os.getpid()
        self._follows = False  # whether profilers are told of the phases
        self._thread_id = 0
        self._args: dict[str, Any] = {}  # of the events of a step on this thread
        self._sampler: Sampler | None = None
        self._log_problems()
        self._start_sampler()
        if self.config.framework:
            self._open(self.config)
            self._python.begin_script(self.config)

    def _open(self, config: RecordingConfig) -> None:
        origin_us = self.point.time_us
        timelines = Timelines(config.folder, self.node, config.limits, self._clock, origin_us)
        self._thread = TraceThread(timelines, self._fail)
        self._follows = config.profiles_steps
        mark_begin(config.folder, self.rank)

    def _start_sampler(self) -> None:
        """Start the sampler of this node, if that is the task of this process."""
        is_sampled = is_supervised(self.config.folder) or not is_first_of_node(self.rank)
        if self.config.is_disabled or is_sampled:
            return
        sampler = Sampler(self.config.folder, self.config.interval_ms, node_number())
        try:
            sampler.start()
        except OSError as err:
            self._warn_once("sampler", f"System metrics are not sampled: {err}.")
        else:
            self._sampler = sampler

    def _stop_sampler(self) -> None:
        sampler, self._sampler = self._sampler, None
        if sampler is not None:
            sampler.stop()

    def _log_problems(self) -> None:
        for problem in self.config.problems:
            self._warn_once(problem, problem)

    @property
    def is_recording(self) -> bool:
        """Whether events are recorded at present."""
        return self._thread is not None and not self._is_inactive

    def add_profiler(self, profiler: StepProfiler) -> None:
        """Add a profiler that follows the steps from now on."""
        self._profilers.append(profiler)

    # -- steps ---------------------------------------------------------------------------------

    def begin_step(self, mode: ModeKeys, mode_step: int, step: int, *, joins: bool = False) -> None:
        """Begin a step, which ends the one before.

        Parameters
        ----------
        mode, mode_step
            Mode of the step, and its number within the mode.
        step
            Its number over all modes.
        joins
            Whether the step began where the one before ended, if there was one.
        """
        if self.is_off:
            self._stop_profilers()
        self._begin_step(mode, mode_step, step, joins=joins)

    def _begin_step(self, mode: ModeKeys, mode_step: int, step: int, *, joins: bool) -> None:
        now_us = self.now_us()
        self._finish_step(now_us)
        if joins:
            now_us = self._last_finish or now_us
        self.point = StepPoint(mode, mode_step, step, now_us)
        if self._has_new_config():
            self._log_problems()
        if self._thread is None:
            return
        self._step_name = f"{STEP}{mode.name}"
        self._step_began = now_us
        self._last_end = 0
        self._has_reached_end = False
        self._thread_id = get_ident()
        self._args = self._args_on(self._thread_id)
        self._reach(StepPhase.STEP_START, now_us)

    def end_step(self) -> None:
        """End the current step, unless it has ended."""
        self._finish_step(self.now_us())

    def _finish_step(self, now_us: int) -> None:
        """Record the step, up to the end of its last event."""
        name, self._step_name = self._step_name, ""
        if not name:
            return
        self._began.clear()
        self._last_finish = self._last_end or now_us
        self._add(name, name, self._step_began, self._last_finish)
        if not self._has_reached_end:
            self._reach(StepPhase.STEP_END, now_us)

    def begin(self, phase: str, *, is_anew: bool = False) -> None:
        """Begin a phase of the current step, unless it has begun and does not restart."""
        if self._step_name and (is_anew or phase not in self._began):
            self._began[phase] = self.now_us()

    def end(self, phase: str) -> None:
        """End a phase that began in the current step."""
        start_us = self._began.pop(phase, 0)
        if not start_us:
            return
        end_us = self.now_us()
        self._last_end = end_us
        self._add(phase, phase, start_us, end_us)
        if phase == FORWARD:
            self._reach(StepPhase.FORWARD_PASS_END, end_us)
        elif phase == OPTIMIZER:  # what follows is not of the step, such as loading data
            self._has_reached_end = True
            self._reach(StepPhase.STEP_END, end_us)

    def add_event(self, phase: str, name: str, start_us: int, args: Values) -> None:
        """Record an event of the current step that ends now; `args` are further values."""
        self._add(phase, name, start_us, self.now_us(), args)

    def _add(
        self, phase: str, name: str, start_us: int, end_us: int, more: Values | None = None
    ) -> None:
        if self._thread is None:
            return
        args, thread_id = self._args, get_ident()
        if more or thread_id != self._thread_id:
            args = {**self._args_on(thread_id), **(more or {})}
        record = TraceRecord(PYTHONTIMELINE_SUFFIX, phase, name, start_us, end_us, args)
        self._thread.add(record)

    def _args_on(self, thread_id: int) -> dict[str, Any]:
        step = str(self.point.mode_step)
        return {"pid": self._process, "thread_id": thread_id, "step_num": step}

    def record(self, record: TraceRecord) -> None:
        """Record an event of any timeline."""
        if self._thread is not None:
            self._thread.add(record)

    def _save(self, folder: str, make_files: Callable[[], Files]) -> None:
        """Write files below a folder of the recording."""
        output = open_output(self.config.folder)

        def write(_: object = None) -> None:
            for name, content in make_files().items():
                publish(output, f"{folder}/{name}", content)

        if self._thread is not None:
            self._thread.call(write)
        else:  # at the end of the script
            self._contain(write)

    def run(self, call: Callable[..., object], *args: Any) -> None:
        """Call a function, unless nothing is recorded; its error ends the recording only."""
        call(*args)

    def write_later(self, call: Callable[[Callable[[TraceRecord], None]], None]) -> None:
        """Call a function on the writing thread, with a function that writes an event."""
        if self._thread is not None:
            self._thread.call(call)

    # -- profilers and configuration -----------------------------------------------------------

    def _reach(self, phase: StepPhase, time_us: int) -> None:
        if self._follows and self._thread is not None:
            point = self.point._replace(time_us=time_us)
            for profiler in self._profilers:
                profiler.reach(phase, point, self.config)

    def _stop_profilers(self) -> None:
        """End all profilers after an error, so that they cost nothing more."""
        while self._profilers and self.is_of_this_process:
            self._contain(self._profilers.pop().stop)

    def _has_new_config(self) -> bool:
        """Take over a changed configuration."""
        try:
            if not self._config_file.has_changed():
                return False
        except (SMDebugError, OSError) as err:
            self._warn_once("config", f"{err} The profiler keeps its configuration.")
            return False
        before, self.config = self.config, self._config_file.config
        if _system_part(before) != _system_part(self.config):
            self._stop_sampler()
            self._start_sampler()
        if not self.config.profiles_steps:  # end what is being profiled
            self._reach(StepPhase.STEP_START, self.point.time_us)
        self._close_thread()
        if self.config.framework:
            self._open(self.config)
        return True

    # -- the end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Write pending events, and mark the end of the recording after the last rank."""
        try:
            self._contain(self._close, reraise=self._raises)
        finally:
            self._contain(self._stop_sampler)
            self.is_off = True

    def _contain(self, call: Callable[[], object], *, reraise: bool = False) -> None:
        """Call a function even if nothing is recorded; its error ends the recording only."""
        with Contained(self._fail, reraise=reraise):
            call()

    def end_script(self) -> None:
        """End profiling after the hook was closed."""
        if self.is_of_this_process:
            self._python.end_script()

    def _close(self) -> None:
        if self.is_off:
            self._stop_profilers()
        if self._is_inactive:
            return
        now_us = self.now_us()
        self._finish_step(now_us)
        while self._profilers:
            self._profilers.pop().close(self.point._replace(time_us=now_us), self.config)
        if self._close_thread():
            mark_end(self.config.folder, self.rank, self._world_size)

    def _close_thread(self) -> bool:
        """Write what is waiting; return whether there was a timeline and all is written."""
        thread, self._thread = self._thread, None
        if thread is None:
            return False
        is_complete = thread.close()
        if thread.dropped or not is_complete:
            self._warn_once(
                "dropped",
                f"The profiler dropped {thread.dropped} events"
                f"{'' if is_complete else ', and could not write the last ones in time'}.",
            )
        return is_complete


def _system_part(config: RecordingConfig) -> tuple[bool, str, int]:
    return config.is_disabled, config.folder, config.interval_ms


def open_recorder(
    rank: int, world_size: int, config: RecordingConfig | None = None, framework: str = "pytorch"
) -> ProfilerRecorder | None:
    """Return a recorder for this process; None if nothing is to be profiled.

    That is so without a configuration, or while another hook of the process records. A
    configuration that cannot be used is logged.

    Parameters
    ----------
    rank, world_size
        Of this process in the training job.
    config
        The configuration; by default that of the file that the environment names.
    framework
        Name of the framework in folders.
    """
    path = config_path()
    if config is None and not path.exists():
        return None
    for other in filter(None, (reference() for reference in _open_recorders)):
        if other.is_recording:
            return None
        other.end_script()
    try:
        file = ConfigFile(path if config is None else None, SystemClock(), config)
        recorder = ProfilerRecorder(file, rank, world_size, framework=framework)
    except (SMDebugError, OSError) as err:
        get_logger("hook").error("Nothing is profiled: %s", err)
        return None
    _open_recorders[:] = [weakref.ref(recorder)]
    return recorder

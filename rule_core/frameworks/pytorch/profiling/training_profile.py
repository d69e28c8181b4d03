"""TrainingProfile: what is recorded of a PyTorch training, in every step and in the ranges."""

import os
from pathlib import Path
from typing import Any

from rule_core.frameworks.pytorch.profiling.data_loaders import DataLoaderEvents
from rule_core.frameworks.pytorch.profiling.horovod import TIMELINE_VARIABLE, HorovodEvents
from rule_core.frameworks.pytorch.profiling.operators import OperatorProfiler
from rule_core.frameworks.pytorch.profiling.smdataparallel import SMDataParallelProfiler
from rule_core.frameworks.pytorch.profiling.step_phases import StepPhases
from rule_core.frameworks.pytorch.profiling.submodules import SubmoduleTimes
from rule_core.profiler.recording.recorder import ProfilerRecorder


class TrainingProfile:
    """Follows a training with all that PyTorch can be profiled with.

    Parameters
    ----------
    recorder
        Writes what is profiled.
    """

    def __init__(self, recorder: ProfilerRecorder) -> None:
        self._submodules = SubmoduleTimes(recorder)
        self._phases = StepPhases(recorder)
        self._data_loaders = DataLoaderEvents(recorder)
        recorder.add_profiler(OperatorProfiler(recorder, self._submodules))
        recorder.add_profiler(SMDataParallelProfiler(recorder))
        timeline = os.environ.get(TIMELINE_VARIABLE)
        if timeline and recorder.rank == 0:
            recorder.add_profiler(HorovodEvents(recorder, Path(timeline)))

    def watch(self, model: Any, *, has_phases: bool = True) -> None:
        """Time the forward and the backward of a model and of the modules inside of it.

        Parameters
        ----------
        model
            A module.
        has_phases
            Whether its calls are the forward; otherwise the caller begins and ends the phases.
        """
        self._submodules.add(model)
        if has_phases:
            self._phases.watch(model)

    def close(self) -> None:
        """Restore the model and PyTorch, before the recorder is closed."""
        self._phases.close()
        self._data_loaders.close()

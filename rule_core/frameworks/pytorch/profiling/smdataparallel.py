"""SMDataParallelProfiler: runs the profiler of SageMaker's library for data parallelism."""

import shutil
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

from rule_core.logger import get_logger
from rule_core.profiler.files.constants import CONVERT_TO_MICROSECS, SMDATAPARALLELTIMELINE_SUFFIX
from rule_core.profiler.python_profiles.types import StepPhase
from rule_core.profiler.recording import layout
from rule_core.profiler.recording.config import RecordingConfig
from rule_core.profiler.recording.recorder import ProfilerRecorder
from rule_core.profiler.recording.step_profiler import StepPoint
from rule_core.storage.publish import publish
from rule_core.storage.uri import is_s3, open_output


class SMDataParallelProfiler:
    """Starts and stops the library's own profiler at the ends of its range, and moves its file.

    Parameters
    ----------
    recorder
        Has the name of this process in files.
    """

    def __init__(self, recorder: ProfilerRecorder) -> None:
        self._recorder = recorder
        self._draft: Path | None = None  # that the library is writing

    def reach(self, phase: StepPhase, point: StepPoint, config: RecordingConfig) -> None:
        """Start or stop the library's profiler at the beginning of a step."""
        steps = config.smdataparallel
        if phase is not StepPhase.STEP_START or (steps is None and self._draft is None):
            return
        now_s = point.time_us / CONVERT_TO_MICROSECS
        if steps is None or not steps.contains(point.step, now_s):
            self.close(point, config)
        elif self._draft is None and self._library is not None:
            self._draft = self._new_draft(config.folder)
            self._library.start_profiler(str(self._draft), append_rank=False)

    def close(self, point: StepPoint, config: RecordingConfig) -> None:
        """Stop the library's profiler, and publish its file."""
        draft, self._draft = self._draft, None
        if draft is None:
            return
        self._library.stop_profiler()
        if draft.exists():
            node = self._recorder.node
            key = layout.timeline_key(point.time_us, node, SMDATAPARALLELTIMELINE_SUFFIX)
            publish(open_output(config.folder), key, draft.read_bytes())
            draft.unlink()
        if is_s3(config.folder):
            shutil.rmtree(draft.parents[1], ignore_errors=True)

    def stop(self) -> None:
        """Stop the library's profiler, and remove its file."""
        draft, self._draft = self._draft, None
        if draft is not None:
            self._library.stop_profiler()
            draft.unlink(missing_ok=True)

    def _new_draft(self, folder: str) -> Path:
        root = Path(tempfile.mkdtemp(prefix="rule-runner-") if is_s3(folder) else folder)
        draft = root / layout.draft_key(self._recorder.node, SMDATAPARALLELTIMELINE_SUFFIX)
        draft.parent.mkdir(parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)  # of a process that was killed
        return draft

    @cached_property
    def _library(self) -> Any:
        """The library; None, which is logged once, if it is missing."""
        try:
            from smdistributed import dataparallel
        except ImportError:
            message = "SMDataParallel is not profiled: smdistributed.dataparallel is missing."
            get_logger("hook").info(message)
            return None
        return dataparallel

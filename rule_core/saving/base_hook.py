"""BaseHook: counts steps, decides what to save and passes it to the writing thread."""

import atexit
import logging
import os
import time
from typing import Any, ClassVar, Final

from rule_core.environment import ON_SAGEMAKER
from rule_core.error_guard import FailSafe
from rule_core.exceptions import SMDebugTypeError
from rule_core.failures import Contained
from rule_core.model.collection import Collection
from rule_core.modes import ModeKeys
from rule_core.profiler.recording.config import RecordingConfig
from rule_core.profiler.recording.recorder import open_recorder
from rule_core.saving.save_policy import SavePolicy
from rule_core.saving.tensor_adapter import NumpyAccess, check_names
from rule_core.saving.tensorboard_writer import TensorBoardWriter
from rule_core.saving.trial_recorder import TrialRecorder
from rule_core.saving.trial_writer import TrialWriter, reject_existing_trial
from rule_core.saving.write_queue import WriteQueue
from rule_core.storage.base import StorageUnavailableError, TrialOutput

CLOSE_TIMEOUT_S: Final = 300.0
LONG_WAIT_S: Final = 1.0  # longer waits of the training for the disk are logged as a warning
# Variables in which launchers (torchrun, Open MPI) pass the rank and the world size.
RANKS: Final = (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))


class BaseHook(FailSafe):
    """Base class of the hooks of all frameworks.

    Parameters
    ----------
    output
        Destination of the trial.
    policy
        Decides what is saved when.
    rank, world_size
        Of this process; None reads them from the environment.
    workers
        Which workers write: ``all``, ``one``, that of rank 0, or ``none``.
    dry_run, resume, max_queue_bytes, drop, raises
        See `smdebug.core.hook.Hook`.
    profiling
        What to profile; None: what the file of the training job says.

    Attributes
    ----------
    saves_nothing
        Whether only steps are counted, and perhaps profiled.
    collection_manager
        The collections.
    profiler
        Records the steps; None if nothing is profiled.
    """

    FRAMEWORK: ClassVar[str] = "pytorch"  # in names of folders with profiles
    # Whether a step begins where the one before ended; otherwise the framework tells when.
    STEPS_JOIN: ClassVar[bool] = False
    access = NumpyAccess()
    tensorboard_dir: str | None = None

    def __init__(
        self,
        output: TrialOutput,
        policy: SavePolicy,
        *,
        rank: int | None,
        world_size: int | None,
        workers: str,
        dry_run: bool,
        resume: bool,
        max_queue_bytes: int,
        drop: bool,
        raises: bool,
        profiling: RecordingConfig | None,
    ) -> None:
        super().__init__(raises=raises)
        self.mode = ModeKeys.GLOBAL
        self.mode_steps: dict[ModeKeys, int] = {}
        self.global_step = -1
        self.dry_run = dry_run
        self.save_all_workers = workers == "all"
        self.saves_nothing = dry_run or workers == "none"
        self._output = output
        self._policy = policy
        self.collection_manager = policy.manager
        self._ranks = (rank, world_size)
        self._resume = resume
        self._max_queue_bytes = max_queue_bytes
        self._drop = drop
        self._recorder: TrialRecorder | None = None
        self._has_started = self._in_step = self._loaded = False
        self._step_mode = self.mode
        self._step_time = 0.0
        self._saving: frozenset[str] = frozenset()
        self._scalars: dict[str, tuple[Any, float]] = {}
        self._recorded: dict[str, tuple[str, ...]] = {}
        self.profiler = (
            None
            if dry_run
            else open_recorder(self.rank, self.world_size, profiling, self.FRAMEWORK)
        )

    def get_collection(self, name: str) -> Collection:
        """Return a collection, created if missing; configure it before the first step."""
        return self.collection_manager.get(name)

    def get_collections(self) -> dict[str, Collection]:
        """Return all collections by name."""
        return self.collection_manager.get_collections()

    @classmethod
    def rank_and_size(cls) -> tuple[int, int]:
        """Return the rank of this process and the number of processes."""
        for rank, size in RANKS:
            if rank in os.environ and size in os.environ:
                return int(os.environ[rank]), int(os.environ[size])
        return 0, 1

    @property
    def rank(self) -> int:
        """The rank of this process among those of the training job."""
        rank = self._ranks[0]
        return self.rank_and_size()[0] if rank is None else rank

    @property
    def world_size(self) -> int:
        """The number of processes of the training job."""
        size = self._ranks[1]
        return self.rank_and_size()[1] if size is None else size

    @property
    def worker(self) -> str:
        """The worker name of this process."""
        return f"worker_{self.rank}"

    @property
    def is_saving(self) -> bool:
        """Whether anything is saved at the current step; check it before costly computations."""
        return bool(self._saving) and not self._is_inactive

    @property
    def _writes(self) -> bool:
        return not self.saves_nothing and (self.save_all_workers or self.rank == 0)

    def _reject_existing_trial(self) -> None:
        """Raise `SMDebugRuntimeError` if a trial exists; an unavailable store disables the hook."""
        try:
            reject_existing_trial(self._output, self.worker)
        except StorageUnavailableError as err:
            self._fail(err)
            if self._raises:
                raise

    def _ensure_step(self) -> None:
        """Begin a step unless one is open."""
        if not self._in_step:
            self._begin_step()

    def _begin_step(self) -> None:
        """End the current step, begin the next and decide what to save at it."""
        self._end_step()
        if not self._has_started:
            self._prepare()
        self.global_step += 1
        self.mode_steps[self.mode] = self.mode_steps.get(self.mode, -1) + 1
        self._in_step = True
        self._step_mode = self.mode
        self._step_time = time.time()
        if self.profiler is not None:
            self.profiler.begin_step(
                self.mode, self._mode_step(), self.global_step, joins=self.STEPS_JOIN
            )
        self._saving = frozenset()
        self._save_at_this_step(self._collections_to_save())

    def _save_at_this_step(self, names: frozenset[str]) -> None:
        """Save collections at the current step."""
        if names and not self._saving and self._recorder is not None:
            self._recorder.begin(
                self.global_step, self._step_mode, self._mode_step(), self._step_time
            )
        self._saving = names

    def _mode_step(self) -> int:
        """Return the number of the current step within its mode."""
        if self._step_mode is ModeKeys.GLOBAL:
            return self.global_step
        return self.mode_steps[self._step_mode]

    def _collections_to_save(self) -> frozenset[str]:
        """Return the names of the collections to save at the current step."""
        recorder = self._recorder
        if recorder is None or self.global_step <= recorder.resumed_step:
            return frozenset()
        return self._policy.saving(self._step_mode, self._mode_step())

    def _prepare(self) -> None:
        """Freeze the configuration and open the trial, at the first step."""
        self._has_started = True
        self._policy.prepare()
        if not self._writes:
            return
        writer = TrialWriter(
            self._output,
            collections=[collection.copy() for collection in self.collection_manager],
            worker=self.worker,
            num_workers=self.world_size if self.save_all_workers else 1,
            resume=self._resume,
        )
        queue = WriteQueue(self._max_queue_bytes, self._fail_in_background)
        self._recorder = TrialRecorder(
            writer, queue, self.access, drop=self._drop, tensorboard=self._tensorboard_writer()
        )
        if not self._loaded:
            self.global_step = writer.last_step
            self.mode_steps.update(writer.last_mode_steps)

    def _tensorboard_writer(self) -> TensorBoardWriter | None:
        """Return the writer of files for TensorBoard; those of further workers are apart."""
        folder = self.tensorboard_dir
        if folder and self.rank:
            folder = f"{folder}/{self.worker}"
        return TensorBoardWriter(folder) if folder else None

    def _end_step(self) -> None:
        """Queue the current step for writing."""
        if not self._in_step:
            return
        self._in_step = False
        if self.profiler is not None:
            self.profiler.end_step()
        if self._recorder is not None and self._saving:
            for name, (array, wall_time) in self._scalars.items():
                self._recorder.add_array(name, array, wall_time)
                self._record_membership(name, self._recorder)
            self._scalars.clear()
            self._recorder.end()
        self._saving = frozenset()

    def _record(self, name: str, tensor: Any) -> None:
        """Save what a tensor's collections require at the current step."""
        recorder = self._recorder
        if recorder is None or not self._saving:
            return
        plan = self._policy.plan(name, self._saving)
        if plan is None or not self._has_valid_name(name):
            return
        try:
            recorder.save(name, tensor, plan)
        except SMDebugTypeError as err:
            self._skip_tensor(name, err)
        else:
            self._record_membership(name, recorder)

    def _has_valid_name(self, name: str) -> bool:
        """Return whether the format supports a name; if not, skip its tensor with one warning."""
        if name in self._recorded:
            return True
        try:
            check_names(name)
        except SMDebugTypeError as err:
            self._skip_tensor(name, err)
            return False
        return True

    def _add_member(self, collection: str, name: str, *, include: bool = False) -> None:
        """Add a tensor to a collection, and record the collection if it is new.

        `include` saves the collection from now on.
        """
        if not self._has_valid_name(name):
            return
        is_new = self._policy.add_tensor(collection, name, include=include)
        if is_new and self._recorder is not None:
            self._recorder.add_collection(self.get_collection(collection))

    def _skip_tensor(self, name: object, err: SMDebugTypeError) -> None:
        self._warn_once(f"tensor {name!r}", f"Tensor {name!r} is not saved. {err}")

    def _record_membership(self, name: str, recorder: TrialRecorder) -> None:
        """Record a tensor as a member of its collections when it is first saved."""
        collections = self._policy.collections_of(name)
        if self._recorded.get(name) != collections:
            self._recorded[name] = collections
            for collection in collections:
                recorder.add_member(collection, name)

    def close(self) -> None:
        """Write all pending steps and mark the training job as ended; also called at exit."""
        atexit.unregister(self.close)
        if self.profiler is not None:
            self.profiler.close()
        try:
            with Contained(self._fail, reraise=self._raises):
                if self.is_of_this_process:
                    self._close()
        finally:
            self.is_off, self._recorder = True, None
        self._raise_background_error()

    def _close(self) -> None:
        try:
            if not self.is_off:
                self._finish()
        finally:
            if self._recorder is not None:
                # SageMaker's platform writes the end mark itself, after the last upload.
                end_job = ON_SAGEMAKER not in os.environ
                is_complete = self._recorder.close(end_job=end_job, timeout=CLOSE_TIMEOUT_S)
                self._log_summary(self._recorder, is_complete)

    def _finish(self) -> None:
        """End the current step, or save one more for scalars that no saved step included."""
        if not self._has_started:
            self._prepare()
        recorder = self._recorder
        for name in self._policy.empty():
            self._warn_once(
                f"collection {name!r}",
                f"Collection {name!r} is empty: it has no pattern, and no tensor was saved to it.",
            )
        if self._scalars and recorder is not None:
            self._ensure_step()
            if self.global_step > recorder.resumed_step:
                self._save_at_this_step(self._saving or frozenset({"default"}))
        self._end_step()

    def _log_summary(self, recorder: TrialRecorder, is_complete: bool) -> None:
        """Log what was saved, as a warning if steps were lost or the training had to wait."""
        is_good = is_complete and not recorder.dropped and recorder.blocked_s < LONG_WAIT_S
        self.logger.log(
            logging.INFO if is_good else logging.WARNING,
            "Saved %d steps to '%s', dropped %d; the training waited %.1f s for the disk.%s",
            *(recorder.saved, self._output.uri, recorder.dropped, recorder.blocked_s),
            "" if is_complete else f" The rest was not written within {CLOSE_TIMEOUT_S:.0f} s.",
        )

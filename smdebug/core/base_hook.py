"""BaseHook: counts steps, decides what is saved at each, and hands it to the writing thread."""

import atexit
import logging
import os
import time
from typing import Any, Final

from smdebug.core.collection import Collection
from smdebug.core.collection_manager import CollectionManager
from smdebug.core.decisions import Decisions
from smdebug.core.guard import Guarded
from smdebug.core.json_config import ON_SAGEMAKER
from smdebug.core.modes import ModeKeys
from smdebug.core.recording import Recording
from smdebug.core.tensor_access import NumpyAccess, TensorAccess, check_names
from smdebug.core.writer import refuse_what_is_there
from smdebug.exceptions import SMDebugTypeError
from smdebug.storage import StorageUnavailableError, TrialOutput

CLOSE_TIMEOUT_S: Final = 300.0
SAID_S: Final = 1.0  # a training that waited longer than that for the disk is told so
# How launchers tell a process its rank and how many there are: torchrun, Open MPI.
RANKS: Final = (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))


class BaseHook(Guarded):
    """What the hooks of all frameworks have in common.

    Parameters
    ----------
    output
        Where the trial is written.
    decisions
        What is saved when.
    rank, world_size
        Of this process; None: to be found out.
    all_workers
        Whether each worker writes, or that of rank 0 only.
    dry_run, resume, max_queue_bytes, drop, raises
        See `smdebug.core.hook.Hook`.
    """

    access: TensorAccess = NumpyAccess()

    def __init__(
        self,
        output: TrialOutput,
        decisions: Decisions,
        *,
        rank: int | None,
        world_size: int | None,
        all_workers: bool,
        dry_run: bool,
        resume: bool,
        max_queue_bytes: int,
        drop: bool,
        raises: bool,
    ) -> None:
        super().__init__(raises=raises)
        self.mode = ModeKeys.GLOBAL
        self.mode_steps: dict[ModeKeys, int] = {}
        self.global_step = -1
        self.dry_run = dry_run
        self.save_all_workers = all_workers
        self._output = output
        self._decisions = decisions
        self._ranks = (rank, world_size)
        self._resume = resume
        self._max_queue_bytes = max_queue_bytes
        self._drop = drop
        self._recording: Recording | None = None
        self._began = self._in_step = self._loaded = False
        self._step_mode = self.mode
        self._step_time = 0.0
        self._saving: frozenset[str] = frozenset()
        self._scalars: dict[str, tuple[Any, float]] = {}
        self._known: dict[str, tuple[str, ...]] = {}

    @property
    def collection_manager(self) -> CollectionManager:
        """The hook's collections."""
        return self._decisions.manager

    def get_collection(self, name: str) -> Collection:
        """Return a collection, made if it is not there; configure it before the first step."""
        return self.collection_manager.get(name)

    def get_collections(self) -> dict[str, Collection]:
        """Return all collections by name."""
        return self.collection_manager.get_collections()

    def _rank_and_size(self) -> tuple[int, int]:
        """Return the rank of this process, and how many there are."""
        for rank, size in RANKS:
            if rank in os.environ and size in os.environ:
                return int(os.environ[rank]), int(os.environ[size])
        return 0, 1

    @property
    def rank(self) -> int:
        """The rank of this process among those of the training job."""
        given = self._ranks[0]
        return self._rank_and_size()[0] if given is None else given

    @property
    def world_size(self) -> int:
        """The number of processes of the training job."""
        given = self._ranks[1]
        return self._rank_and_size()[1] if given is None else given

    @property
    def worker(self) -> str:
        """The name under which this process writes."""
        return f"worker_{self.rank}"

    @property
    def is_saving(self) -> bool:
        """Whether anything is saved at the step in hand: ask before computing what is costly."""
        return bool(self._saving) and not self._is_silent

    @property
    def _writes(self) -> bool:
        return not self.dry_run and (self.save_all_workers or self.rank == 0)

    def _refuse_what_is_there(self) -> None:
        """Raise `SMDebugRuntimeError` if no trial can be begun; who cannot be asked is no error."""
        try:
            refuse_what_is_there(self._output, self.worker)
        except StorageUnavailableError as err:
            self._fail(err)
            if self._raises:
                raise

    def _need_step(self) -> None:
        """Begin a step unless one is in hand."""
        if not self._in_step:
            self._begin_step()

    def _begin_step(self) -> None:
        """End the step in hand, count one more, and decide what is saved at it."""
        self._end_step()
        if not self._began:
            self._prepare()
        self.global_step += 1
        self.mode_steps[self.mode] = self.mode_steps.get(self.mode, -1) + 1
        self._in_step = True
        self._step_mode = self.mode
        self._step_time = time.time()
        self._saving = frozenset()
        self._save_at_this_step(self._collections_to_save())

    def _save_at_this_step(self, names: frozenset[str]) -> None:
        """Have collections saved at the step in hand."""
        if names and not self._saving and self._recording is not None:
            self._recording.steps.begin(
                self.global_step, self._step_mode, self._mode_step(), self._step_time
            )
        self._saving = names

    def _mode_step(self) -> int:
        """Return the step in hand within its mode."""
        if self._step_mode is ModeKeys.GLOBAL:
            return self.global_step
        return self.mode_steps[self._step_mode]

    def _collections_to_save(self) -> frozenset[str]:
        """Return the names of the collections that are saved at the step in hand."""
        recording = self._recording
        if recording is None or self.global_step <= recording.resumed_step:
            return frozenset()
        return self._decisions.saving(self._step_mode, self._mode_step())

    def _prepare(self) -> None:
        """Fix the configuration and open the trial, at the first step."""
        self._began = True
        self._decisions.prepare()
        if not self._writes:
            return
        self._recording = Recording(
            self._output,
            self.get_collections().values(),
            worker=self.worker,
            num_workers=self.world_size if self.save_all_workers else 1,
            resume=self._resume,
            access=self.access,
            max_queue_bytes=self._max_queue_bytes,
            drop=self._drop,
            on_error=self._fail_behind,
        )
        if not self._loaded:
            self.global_step = self._recording.resumed_step
            self.mode_steps.update(self._recording.resumed_mode_steps)

    def _end_step(self) -> None:
        """Hand the step in hand over to be written."""
        if not self._in_step:
            return
        self._in_step = False
        if self._recording is not None and self._saving:
            self._save_scalars(self._recording)
            self._recording.steps.end()
        self._saving = frozenset()

    def _save_scalars(self, recording: Recording) -> None:
        for name, (array, wall_time) in self._scalars.items():
            recording.steps.add_array(name, array, wall_time)
            self._introduce(name, recording)
        self._scalars.clear()

    def _record(self, name: str, tensor: Any) -> None:
        """Save of a tensor what the collections that it belongs to ask for at the step in hand."""
        recording = self._recording
        if recording is None or not self._saving:
            return
        plan = self._decisions.plan(name, self._saving)
        if plan is None or not self._can_name(name):
            return
        try:
            recording.save(name, tensor, plan)
        except SMDebugTypeError as err:
            self._leave_out(name, err)
        else:
            self._introduce(name, recording)

    def _can_name(self, name: str) -> bool:
        """Say whether the format can hold a name; if not, its tensor is left out, said once."""
        if name in self._known:
            return True
        try:
            check_names(name)
        except SMDebugTypeError as err:
            self._leave_out(name, err)
            return False
        return True

    def _make_member(self, collection: str, name: str, *, include: bool = False) -> None:
        """Make a tensor a member of a collection, and tell the trial of a collection that is new.

        With `include` the collection is saved from now on.
        """
        if not self._can_name(name):
            return
        is_new = self._decisions.add_tensor(collection, name, include=include)
        if is_new and self._recording is not None:
            self._recording.steps.add_collection(self.get_collection(collection))

    def _leave_out(self, name: object, err: SMDebugTypeError) -> None:
        self._warn_once(f"tensor {name!r}", f"Tensor {name!r} is not saved. {err}")

    def _introduce(self, name: str, recording: Recording) -> None:
        """Make a tensor a member of its collections when it is first saved as one of them."""
        collections = self._decisions.collections_of(name)
        if self._known.get(name) != collections:
            self._known[name] = collections
            for collection in collections:
                recording.steps.add_member(collection, name)

    def close(self) -> None:
        """Write what is outstanding, and mark the training job as ended; done at exit too."""
        atexit.unregister(self.close)
        try:
            if os.getpid() == self._pid:
                self._close()
        except Exception as err:
            self._fail(err)
            if self._raises:
                raise
        finally:
            self.is_off, self._recording = True, None
        self._raise_what_went_wrong_behind()

    def _close(self) -> None:
        try:
            if not self.is_off:
                self._finish()
        finally:
            if self._recording is not None:
                # SageMaker's platform writes the end mark itself, after the last upload.
                end_job = ON_SAGEMAKER not in os.environ
                done = self._recording.close(end_job=end_job, timeout=CLOSE_TIMEOUT_S)
                self._say_how_it_went(self._recording, done)

    def _finish(self) -> None:
        """End the step in hand, or one more for scalars that no saved step has taken."""
        if not self._began:
            self._prepare()
        recording = self._recording
        if self._scalars and recording is not None:
            self._need_step()
            if self.global_step > recording.resumed_step:
                self._save_at_this_step(self._saving or frozenset({"default"}))
        self._end_step()

    def _say_how_it_went(self, recording: Recording, done: bool) -> None:
        """Log what was saved; as a warning if not all was, or if the training had to wait."""
        steps = recording.steps
        well = done and not steps.dropped and recording.blocked_s < SAID_S
        self.logger.log(
            logging.INFO if well else logging.WARNING,
            "Saved %d steps to '%s', dropped %d; the training waited %.1f s for the disk.%s",
            *(steps.saved, self._output.uri, steps.dropped, recording.blocked_s),
            "" if done else f" The rest was not written within {CLOSE_TIMEOUT_S:.0f} s.",
        )

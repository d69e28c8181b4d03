"""TrialWriter: writes trials that this package and smdebug 1.0.x can read."""

import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, Self

import msgspec
from numpy.typing import ArrayLike

from rule_core.exceptions import SMDebugRuntimeError, SMDebugValueError
from rule_core.failures import OnError
from rule_core.format import paths
from rule_core.model.collection import Collection, parse_collections
from rule_core.modes import ModeKeys
from rule_core.saving.step_writer import StepWriter
from rule_core.storage.base import TrialOutput
from rule_core.storage.publish import publish
from rule_core.storage.uri import open_output

Reductions = Mapping[tuple[str, bool], ArrayLike]
OPERATIONS: Final = ("min", "max", "mean", "std", "variance", "sum", "prod", "l1", "l2", "median")


class TrialWriter:
    """Writes the tensors of one worker of a training job.

    Files appear under their names only when complete, and the index file of a step follows its
    event file. Concurrent readers therefore never see a partial step.

    Parameters
    ----------
    path
        Root of the trial: a local folder, created if missing; ``s3://bucket/prefix`` in an
        existing bucket; or a custom store.
    collections
        Collections, or a pattern or list of patterns by collection name.
    worker
        Name of this writing process, ``worker_<rank>`` by convention.
    num_workers
        Number of processes that write this trial.
    end_job
        Whether `close` marks the training job as ended. This ends all workers for readers, so
        only the last worker should do it.
    resume
        Whether to continue what this worker wrote to `path` before.

    Raises
    ------
    SMDebugRuntimeError
        If `path` contains a trial whose training job has ended, or one to which this worker has
        written, and `resume` is false.
    SMDebugValueError
        If `num_workers` is less than 1, or `worker` is not valid in file names.
    StorageUnavailableError
        If the store of `path` is unavailable.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as root:
    ...     with TrialWriter(root, collections={"losses": "loss"}) as writer:
    ...         tensors = {"loss": 0.7, "fc/weight": np.zeros((2, 3))}
    ...         writer.step(0, tensors, mode=ModeKeys.TRAIN)
    ...     sorted(os.listdir(root))
    ['collections', 'events', 'index', 'training_job_end.ts']
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | TrialOutput,
        *,
        collections: Iterable[Collection] | Mapping[str, str | list[str]] = (),
        worker: str = "worker_0",
        num_workers: int = 1,
        end_job: bool = True,
        resume: bool = False,
    ) -> None:
        self.output = open_output(path) if isinstance(path, (str, os.PathLike)) else path
        self.worker = worker
        self.num_workers = num_workers
        self.end_job = end_job
        if num_workers < 1:
            raise SMDebugValueError(f"The number of workers must be at least 1, got {num_workers}.")
        parsed = paths.parse_index_key(paths.index_key(0, worker))
        if parsed is None or parsed.worker != worker or paths.worker_of(worker) != worker:
            raise SMDebugValueError(
                f"The worker's name must be valid in file names, got {worker!r}."
            )
        if isinstance(collections, Mapping):
            collections = [Collection(name, regex) for name, regex in collections.items()]
        self.collections: dict[str, Collection] = {item.name: item for item in collections}
        self.last_step = -1
        self._modes_of_last: set[ModeKeys] = set()
        self.last_mode_steps: dict[ModeKeys, int] = {}
        if resume:
            self._resume()
        else:
            reject_existing_trial(self.output, worker)
        self.output.remove(paths.closed_key(worker))
        self._write_collections()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_to_collection(self, name: str, tensor_names: Iterable[str]) -> None:
        """Add tensors to a collection; call it before the step that first saves them."""
        self.add_members({name: tensor_names})

    def add_members(
        self, members: Mapping[str, Iterable[str]], new: Iterable[Collection] = ()
    ) -> None:
        """Add collections, then tensors to collections; see `add_to_collection`.

        Parameters
        ----------
        members
            Tensor names by collection name.
        new
            Collections to add; one that already exists is extended.
        """
        changed = False
        for collection in new:
            before = self.collections.get(collection.name)
            if before is not None:
                collection.absorb(before)
            self.collections[collection.name] = collection
            changed = changed or collection != before
        for name, tensor_names in members.items():
            collection = self.collections.setdefault(name, Collection(name))
            new_names = set(tensor_names) - collection.tensor_names
            collection.tensor_names |= new_names
            changed = changed or bool(new_names)
        if changed:
            self._write_collections()

    def step(
        self,
        step: int,
        tensors: Mapping[str, ArrayLike] | None = None,
        *,
        mode: ModeKeys = ModeKeys.GLOBAL,
        mode_step: int | None = None,
        reductions: Mapping[str, Reductions] | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        """Write one complete step.

        Parameters
        ----------
        step
            Global step, ``0 <= step < 10**12``: larger than the previous one, or the previous one
            in another mode than before, which is not GLOBAL.
        tensors
            Values by tensor name, of any shape; numbers and strings become shape ``(1,)``.
        mode, mode_step
            Mode, and the step within it; `step` by default.
        reductions
            Reductions by tensor name; ``{("mean", True): value}`` is the mean of the magnitudes.
        shapes
            Shapes by tensor name, for tensors whose values are not saved.

        Raises
        ------
        SMDebugValueError
            If a step is out of range, `step` does not increase within its mode, or a reduction is
            unknown.
        SMDebugTypeError
            If the format has no data type for a value.
        OSError
            If the file system or S3 rejects the write; the step does not exist then.
        """
        draft = self.begin(step, mode=mode, mode_step=mode_step)
        with OnError(draft.discard):
            for name, values in (reductions or {}).items():
                for (operation, absolute), value in values.items():
                    draft.add(_reduction_name(name, operation, absolute), value)
            for name, value in (tensors or {}).items():
                draft.add(name, value)
            for name, shape in (shapes or {}).items():
                draft.add_shape(name, shape)
            draft.commit()

    def begin(
        self, step: int, *, mode: ModeKeys = ModeKeys.GLOBAL, mode_step: int | None = None
    ) -> StepWriter:
        """Begin a step that is written tensor by tensor; see `step`."""
        step = _check_step(step)
        is_same = step == self.last_step
        if step < self.last_step or (is_same and not self._can_add(mode)):
            msg = (
                f"Steps of a worker must increase, got {step} after {self.last_step}. "
                "Readers process each step once, in ascending order."
            )
            if is_same:
                names = ", ".join(sorted(mode.name for mode in self._modes_of_last))
                msg += f" This step was written in mode {names}."
            raise SMDebugValueError(msg)
        mode_step = step if mode_step is None else _check_step(mode_step)
        part = paths.part_of(self.worker, mode.name) if is_same else self.worker
        on_commit = partial(self._record_commit, mode)
        return StepWriter(self.output, part, step, mode, mode_step, on_commit)

    def _can_add(self, mode: ModeKeys) -> bool:
        """Return whether the last step can be written in a further mode."""
        return self._modes_of_last.isdisjoint({mode, ModeKeys.GLOBAL}) and mode != ModeKeys.GLOBAL

    def _record_commit(self, mode: ModeKeys, step: int) -> None:
        if step > self.last_step:
            self.last_step = step
            self._modes_of_last.clear()
        self._modes_of_last.add(mode)

    def close(self) -> None:
        """Mark the training job as ended if `end_job` is set."""
        if self.end_job:
            publish(self.output, paths.END_OF_JOB)

    def close_worker(self) -> None:
        """Mark this worker as finished; the last worker marks the training job as ended.

        For readers, the end mark ends all workers.
        """
        publish(self.output, paths.closed_key(self.worker))
        closed = list(self.output.list_keys(paths.CLOSED))
        if len(closed) < self.num_workers:
            return
        try:
            publish(self.output, paths.END_OF_JOB)
        except OSError:  # another worker is publishing the same file
            if not _has_key(self.output, paths.END_OF_JOB):
                raise
        for key in closed:
            self.output.remove(key)

    def _write_collections(self) -> None:
        document = {
            "collections": {name: item.to_json_dict() for name, item in self.collections.items()},
            "_meta": {"num_workers": self.num_workers},
        }
        publish(self.output, paths.collections_key(self.worker), msgspec.json.encode(document))

    def _resume(self) -> None:
        """Load the members and steps that this worker wrote before."""
        for key in self.output.list_keys(paths.COLLECTIONS):
            if key == paths.collections_key(self.worker):
                before = parse_collections(self.output.read(key), key).collections
                for name, collection in before.items():
                    self.collections.setdefault(name, Collection(name)).absorb(collection)
        written = [*_steps(self.output, self.worker)]
        for (step, _), meta in zip(written, self._metas(key for _, key in written), strict=True):
            mode = ModeKeys[meta.mode]
            if step >= self.last_step:
                self._record_commit(mode, step)
            self.last_mode_steps[mode] = max(
                self.last_mode_steps.get(mode, -1), int(meta.mode_step)
            )
        self.output.remove(paths.END_OF_JOB)

    def _metas(self, keys: Iterable[str]) -> "list[_StepMetaJson]":
        parallel = self.output.costs.parallel
        if parallel == 1:
            return [*map(self._meta, keys)]
        with ThreadPoolExecutor(parallel) as readers:
            return [*readers.map(self._meta, keys)]

    def _meta(self, key: str) -> "_StepMetaJson":
        return msgspec.json.decode(self.output.read(key), type=_IndexJson).meta


class _StepMetaJson(msgspec.Struct):
    mode: str
    mode_step: int | str


class _IndexJson(msgspec.Struct):
    meta: _StepMetaJson


def reject_existing_trial(output: TrialOutput, worker: str) -> None:
    """Raise `SMDebugRuntimeError` if the output already contains a trial of this worker."""
    existing = None
    if _has_key(output, paths.END_OF_JOB):
        existing = "the trial of a training job that has ended"
    elif _has_key(output, paths.collections_key(worker)) or any(_steps(output, worker)):
        existing = f"a trial that {worker} has written to"
    if existing is not None:
        raise SMDebugRuntimeError(
            f"Folder '{output.uri}' holds {existing}. "
            "Choose another folder, remove this one, or pass resume=True to continue it."
        )


def _has_key(output: TrialOutput, key: str) -> bool:
    return key in output.list_keys(key)


def _steps(output: TrialOutput, worker: str) -> Iterator[tuple[int, str]]:
    """Yield the steps that a worker has written, with the keys of their index files."""
    for key in output.list_keys(paths.INDEX):
        parsed = paths.parse_index_key(key)
        if parsed is not None and paths.worker_of(parsed.worker) == worker:
            yield parsed.step, key


def _reduction_name(name: str, operation: str, absolute: bool) -> str:
    if operation not in OPERATIONS:
        raise SMDebugValueError(f"Reduction {operation!r} must be one of {', '.join(OPERATIONS)}.")
    return paths.reduction_record_name(name, operation, absolute)


def _check_step(step: int) -> int:
    """Convert a step of any integer type to int, if file names can represent it."""
    if not 0 <= step < paths.SORTABLE_STEPS:
        raise SMDebugValueError(f"A step must be >= 0 and < {paths.SORTABLE_STEPS}, got {step}.")
    return operator.index(step)

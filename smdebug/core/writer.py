"""TrialWriter: writes a trial that this package and smdebug 1.0.x read."""

import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Final, Self

import msgspec
from numpy.typing import ArrayLike

from smdebug.core import locations
from smdebug.core.collection import Collection, parse_collections
from smdebug.core.modes import ModeKeys
from smdebug.core.step_draft import StepDraft
from smdebug.exceptions import SMDebugRuntimeError, SMDebugValueError
from smdebug.storage import TrialOutput, open_output
from smdebug.storage.publishing import publish

Reductions = Mapping[tuple[str, bool], ArrayLike]
OPERATIONS: Final = ("min", "max", "mean", "std", "variance", "sum", "prod", "l1", "l2", "median")


class TrialWriter:
    """Write what one worker of a training job saves.

    Every file is complete before it gets its name, and the index file of a step comes after its
    event file: a reader beside it never sees half a step.

    Parameters
    ----------
    path
        Root of the trial: a local folder, made if it is not there; ``s3://bucket/prefix`` of a
        bucket that is there; or a store of one's own.
    collections
        Collections, or patterns (one, or a list) by the name of their collection.
    worker
        Name of this writing process, ``worker_<rank>`` by custom.
    num_workers
        Number of processes that write this trial.
    end_job
        Whether `close` marks the training job as ended: for readers that is the end of all
        workers, so let the last one do it.
    resume
        Whether to go on with what this worker wrote to `path` before.

    Raises
    ------
    SMDebugRuntimeError
        If `path` holds a trial whose training job has ended, or one that this worker has written
        to, and `resume` is not given.
    SMDebugValueError
        If `num_workers` is less than 1, or `worker` would be read as another name.
    StorageUnavailableError
        If it cannot be found out what `path` holds.

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
            msg = f"The number of workers must be at least 1, got {num_workers}."
            raise SMDebugValueError(msg)
        written = locations.parse_index_key(locations.index_key(0, worker))
        if written is None or written.worker != worker:
            msg = f"Files cannot carry a worker's name of this kind, got {worker!r}."
            raise SMDebugValueError(msg)
        if isinstance(collections, Mapping):
            collections = [Collection(name, regex) for name, regex in collections.items()]
        self.collections: dict[str, Collection] = {one.name: one for one in collections}
        self.last_step = -1
        self.last_mode_steps: dict[ModeKeys, int] = {}
        if resume:
            self._resume()
        else:
            refuse_what_is_there(self.output, worker)
        self.output.remove(locations.closed_key(worker))
        self._write_collections()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def add_to_collection(self, name: str, tensor_names: Iterable[str]) -> None:
        """Make tensors members of a collection; call it before the step that first saves them."""
        self.add_members({name: tensor_names})

    def add_members(
        self, members: Mapping[str, Iterable[str]], new: Iterable[Collection] = ()
    ) -> None:
        """Make collections known, then tensors members of collections; see `add_to_collection`.

        Parameters
        ----------
        members
            Tensor names by the names of collections.
        new
            Collections; one of a name that is there takes over what that holds.
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
            more = set(tensor_names) - collection.tensor_names
            collection.tensor_names |= more
            changed = changed or bool(more)
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
        """Write one step, whole.

        Parameters
        ----------
        step
            Global step, ``0 <= step < 10**12``, larger than the last one.
        tensors
            Values by tensor name, of any shape; numbers and strings become shape ``(1,)``.
        mode, mode_step
            Mode, and the step within it; by default the same number as `step`.
        reductions
            By tensor name: ``{("mean", True): value}`` for the mean of the magnitudes.
        shapes
            Shapes by tensor name, of tensors whose value is not saved.

        Raises
        ------
        SMDebugValueError
            If `step` or `mode_step` is out of range, `step` goes back, or a reduction is unknown.
        SMDebugTypeError
            If the format has no data type for a value.
        OSError
            If the file system, or S3, does not take it; the step is not there then.
        """
        draft = self.begin(step, mode=mode, mode_step=mode_step)
        try:
            for name, values in (reductions or {}).items():
                for (operation, absolute), value in values.items():
                    draft.add(_reduction_name(name, operation, absolute), value)
            for name, value in (tensors or {}).items():
                draft.add(name, value)
            for name, shape in (shapes or {}).items():
                draft.add_shape(name, shape)
            draft.commit()
        except BaseException:
            draft.discard()
            raise

    def begin(
        self, step: int, *, mode: ModeKeys = ModeKeys.GLOBAL, mode_step: int | None = None
    ) -> StepDraft:
        """Begin a step that is written tensor by tensor; see `step`."""
        step = _checked(step)
        if step <= self.last_step:
            msg = (
                f"Steps of a worker must grow, got {step} after {self.last_step}. "
                "Readers judge a step once, in the order of their numbers."
            )
            raise SMDebugValueError(msg)
        mode_step = step if mode_step is None else _checked(mode_step)
        return StepDraft(self.output, self.worker, step, mode, mode_step, self._committed)

    def _committed(self, step: int) -> None:
        self.last_step = step

    def close(self) -> None:
        """Mark the training job as ended, if this worker is the one to do it."""
        if self.end_job:
            publish(self.output, locations.END_OF_JOB)

    def leave(self) -> None:
        """Say that this worker has written all it had; the last one marks the job as ended.

        Readers take the end mark for the end of all workers.
        """
        publish(self.output, locations.closed_key(self.worker))
        closed = list(self.output.list_keys(locations.CLOSED))
        if len(closed) < self.num_workers:
            return
        try:
            publish(self.output, locations.END_OF_JOB)
        except OSError:  # the draft of another worker that came to the same end
            if not _holds(self.output, locations.END_OF_JOB):
                raise
        for key in closed:
            self.output.remove(key)

    def _write_collections(self) -> None:
        document = {
            "collections": {name: one.to_json_dict() for name, one in self.collections.items()},
            "_meta": {"num_workers": self.num_workers},
        }
        publish(self.output, locations.collections_key(self.worker), msgspec.json.encode(document))

    def _resume(self) -> None:
        """Take up members and steps that this worker wrote before."""
        for key in self.output.list_keys(locations.COLLECTIONS):
            if key == locations.collections_key(self.worker):
                before = parse_collections(self.output.read(key), key).collections
                for name, collection in before.items():
                    self.collections.setdefault(name, Collection(name)).absorb(collection)
        written = dict(_steps(self.output, self.worker))
        for step, meta in zip(written, self._metas(written.values()), strict=True):
            mode = ModeKeys[meta.mode]
            self.last_step = max(self.last_step, step)
            self.last_mode_steps[mode] = max(
                self.last_mode_steps.get(mode, -1), int(meta.mode_step)
            )
        self.output.remove(locations.END_OF_JOB)

    def _metas(self, keys: Iterable[str]) -> "list[_MetaJson]":
        parallel = self.output.costs.parallel
        if parallel == 1:
            return [*map(self._meta, keys)]
        with ThreadPoolExecutor(parallel) as readers:
            return [*readers.map(self._meta, keys)]

    def _meta(self, key: str) -> "_MetaJson":
        return msgspec.json.decode(self.output.read(key), type=_IndexJson).meta


class _MetaJson(msgspec.Struct):
    mode: str
    mode_step: int | str


class _IndexJson(msgspec.Struct):
    meta: _MetaJson


def refuse_what_is_there(output: TrialOutput, worker: str) -> None:
    """Raise `SMDebugRuntimeError` if a trial cannot be begun there."""
    what = None
    if _holds(output, locations.END_OF_JOB):
        what = "the trial of a training job that has ended"
    elif _holds(output, locations.collections_key(worker)) or any(_steps(output, worker)):
        what = f"a trial that {worker} has written to"
    if what is not None:
        msg = (
            f"Folder '{output.uri}' holds {what}. "
            "Give a folder of its own to each training job, or resume this one."
        )
        raise SMDebugRuntimeError(msg)


def _holds(output: TrialOutput, key: str) -> bool:
    return key in output.list_keys(key)


def _steps(output: TrialOutput, worker: str) -> Iterator[tuple[int, str]]:
    """Yield the steps that a worker has written, and the keys of their index files."""
    for key in output.list_keys(locations.INDEX):
        found = locations.parse_index_key(key)
        if found is not None and found.worker == worker:
            yield found.step, key


def _reduction_name(name: str, operation: str, absolute: bool) -> str:
    if operation not in OPERATIONS:
        msg = f"Reduction {operation!r} is none of {', '.join(OPERATIONS)}."
        raise SMDebugValueError(msg)
    return locations.reduction_record_name(name, operation, absolute)


def _checked(step: int) -> int:
    """Return a step (of any integer type) that the names of files can hold."""
    if not 0 <= step < locations.SORTABLE_STEPS:
        msg = f"A step must be >= 0 and < {locations.SORTABLE_STEPS}, got {step}."
        raise SMDebugValueError(msg)
    return operator.index(step)

"""TrialWriter: writes a trial that this package and smdebug 1.0.x read."""

import operator
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from smdebug.core import locations, tensor_proto, tfrecord
from smdebug.core.collection import Collection
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugRuntimeError, SMDebugValueError

Reductions = Mapping[tuple[str, bool], ArrayLike]
OPERATIONS: Final = ("min", "max", "mean", "std", "variance", "sum", "prod", "l1", "l2", "median")


class TrialWriter:
    """Write what one worker of a training job saves.

    Every file is complete before it gets its name, and the index file of a step comes after its
    event file: a reader beside it never sees half a step.

    Parameters
    ----------
    path
        Root of the trial, a local folder; made if it is not there.
    collections
        Collections, or patterns (one, or a list) by the name of their collection.
    worker
        Name of this writing process, ``worker_<rank>`` by custom.
    num_workers
        Number of processes that write this trial.
    end_job
        Whether `close` marks the training job as ended: for readers that is the end of all
        workers, so let the last one do it.

    Raises
    ------
    SMDebugRuntimeError
        If `path` holds a trial whose training job has ended.
    SMDebugValueError
        If `num_workers` is less than 1, or `worker` would be read as another name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     with TrialWriter(root, collections={"losses": "loss"}) as writer:
    ...         tensors = {"loss": 0.7, "fc/weight": np.zeros((2, 3))}
    ...         writer.step(0, tensors, mode=ModeKeys.TRAIN)
    ...     sorted(os.listdir(root))
    ['collections', 'events', 'index', 'training_job_end.ts']
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        collections: Iterable[Collection] | Mapping[str, str | list[str]] = (),
        worker: str = "worker_0",
        num_workers: int = 1,
        end_job: bool = True,
    ) -> None:
        self.root = Path(path).expanduser()
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
        if (self.root / locations.END_OF_JOB).exists():
            msg = (
                f"Folder '{self.root}' holds the trial of a training job that has ended. "
                "Give a folder of its own to each training job."
            )
            raise SMDebugRuntimeError(msg)
        if isinstance(collections, Mapping):
            collections = [Collection(name, regex) for name, regex in collections.items()]
        self.collections: dict[str, Collection] = {one.name: one for one in collections}
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
        collection = self.collections.setdefault(name, Collection(name))
        new = set(tensor_names) - collection.tensor_names
        if new:
            collection.tensor_names |= new
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
            Global step, ``0 <= step < 10**12``.
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
            If `step` or `mode_step` is out of range or a reduction is unknown.
        SMDebugTypeError
            If the format has no data type for a value.
        """
        step = _checked(step)
        mode_step = step if mode_step is None else _checked(mode_step)
        records, payload = [], []
        start, now = 0, time.time()
        for name, value in self._named_values(tensors or {}, reductions or {}):
            message = tensor_proto.encode_event(
                name, to_array(value), step=step, mode=mode, mode_step=mode_step, time=now
            )
            record = tfrecord.frame(message)
            payload.append({"tensorname": name, "start_idx": start, "length": len(record)})
            records.append(record)
            start += len(record)
        # smdebug 1.0.x loses the value of a tensor whose shape stands beside it.
        named = {
            name: shape for name, shape in (shapes or {}).items() if name not in (tensors or {})
        }
        if not records and not named:
            return
        meta: dict[str, Any] = {"mode": mode.name, "mode_step": mode_step}
        if records:
            meta["event_file_name"] = locations.event_key(step, self.worker)
            self._publish(meta["event_file_name"], records)
        document = {"meta": meta, "tensor_payload": payload, "shape_payload": _shapes(named)}
        self._publish(locations.index_key(step, self.worker), [msgspec.json.encode(document)])

    def close(self) -> None:
        """Mark the training job as ended, if this worker is the one to do it."""
        if self.end_job:
            self._publish(locations.END_OF_JOB, [])

    @staticmethod
    def _named_values(
        tensors: Mapping[str, ArrayLike], reductions: Mapping[str, Reductions]
    ) -> Iterable[tuple[str, ArrayLike]]:
        """Yield record names and values: of each tensor its reductions, then its value."""
        for tensor, values in reductions.items():
            for (operation, absolute), value in values.items():
                if operation not in OPERATIONS:
                    msg = f"Reduction {operation!r} is none of {', '.join(OPERATIONS)}."
                    raise SMDebugValueError(msg)
                yield locations.reduction_record_name(tensor, operation, absolute), value
        yield from tensors.items()

    def _write_collections(self) -> None:
        document = {
            "collections": {
                name: {
                    "name": name,
                    "include_regex": one.include_regex,
                    "tensor_names": sorted(one.tensor_names),
                    "reduction_config": one.reduction_config,
                    "save_config": one.save_config,
                    "save_histogram": one.save_histogram,
                }
                for name, one in self.collections.items()
            },
            "_meta": {"num_workers": self.num_workers},
        }
        self._publish(locations.collections_key(self.worker), [msgspec.json.encode(document)])

    def _publish(self, key: str, parts: list[bytes]) -> None:
        """Write a file beside its place, then give it its name."""
        final = self.root / key
        final.parent.mkdir(parents=True, exist_ok=True)
        draft = final.with_name(final.name + ".tmp")
        with draft.open("wb") as file:
            file.writelines(parts)
        draft.replace(final)


def to_array(value: ArrayLike) -> NDArray[np.generic]:
    """Return what is saved of a value: an array as it is, a number or string as shape ``(1,)``."""
    if isinstance(value, np.ndarray):
        return value
    return np.atleast_1d(np.asarray(value))


def _checked(step: int) -> int:
    """Return a step (of any integer type) that the names of files can hold."""
    if not 0 <= step < locations.SORTABLE_STEPS:
        msg = f"A step must be >= 0 and < {locations.SORTABLE_STEPS}, got {step}."
        raise SMDebugValueError(msg)
    return operator.index(step)


def _shapes(named: Mapping[str, tuple[int, ...]]) -> list[dict[str, Any]]:
    return [
        {
            "tensorname": name,
            "originalname": name,
            "shape": [operator.index(size) for size in shape],
        }
        for name, shape in named.items()
    ]

"""SavedCase: what a training saved, in memory, as an .npz file or as a trial."""

import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rule_core.exceptions import SMDebugError
from rule_core.format import paths
from rule_core.modes import ModeKeys
from rule_core.saving.trial_writer import OPERATIONS, TrialWriter
from rule_core.sources.names import NameTable
from rule_core.storage.base import StorageUnavailableError
from rule_core.storage.size_limit import check_file_size
from rule_runner.errors import ClientError, restated, translated, unreadable

# Collections that are named like the first part of their tensors' names.
_BY_PREFIX: Final = {
    name: name for name in ("activation_statistics", "attention", "fingerprints", "model", "router")
} | {"gradient": "gradients", "parameters": "parameters", "optimizer": "optimizer"}
_FORMS: Final = (
    "values/WORKER/MODE/STEP/TENSOR, reductions/WORKER/MODE/STEP/OPERATION/TENSOR, "
    "shapes/WORKER/MODE/STEP/TENSOR, mode_steps/WORKER/MODE or collections/NAME"
)
_TABLE: Final = NameTable()
_DAMAGED: Final = (ValueError, EOFError, AttributeError, MemoryError, zipfile.BadZipFile)


class CaseError(ClientError):
    """A saved case cannot be read, or cannot be written as a trial."""


class PartKey(NamedTuple):
    """What a worker saved of one mode at a step; sorted in the order in which it is written."""

    worker: str
    step: int
    mode: str


@dataclass(slots=True)
class SavedStep:
    """The records of one worker, step and mode.

    Attributes
    ----------
    records
        Values by record name: that of a tensor, or `paths.reduction_record_name`.
    mode_step
        The step within the mode; None counts them.
    """

    records: dict[str, NDArray[Any]] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    mode_step: int | None = None


@dataclass(slots=True)
class SavedCase:
    """The saved steps of a case, and the collections of its tensors by name."""

    steps: dict[PartKey, SavedStep] = field(default_factory=dict)
    collections: dict[str, set[str]] = field(default_factory=dict)

    def at(self, worker: str, step: int, mode: str) -> SavedStep:
        """Return what a worker saved of a mode at a step, to add to."""
        return self.steps.setdefault(PartKey(worker, step, mode), SavedStep())

    @property
    def tensor_names(self) -> set[str]:
        """The names of all tensors."""
        names: set[str] = set()
        for saved in self.steps.values():
            names |= saved.shapes.keys()
            for record in saved.records:
                reduction = paths.parse_reduction_name(record)
                names.add(record if reduction is None else reduction.tensor)
        return names

    def add(self, other: "SavedCase") -> None:
        """Add the steps and collections of another case."""
        for key, saved in other.steps.items():
            own = self.at(*key)
            own.records |= saved.records
            own.shapes |= saved.shapes
            own.mode_step = saved.mode_step if own.mode_step is None else own.mode_step
        for name, members in other.collections.items():
            self.collections.setdefault(name, set()).update(members)

    def write_trial(self, folder: Path, patterns: Mapping[str, list[str]]) -> None:
        """Write an ended trial.

        A tensor in none of `collections` is in the one that hooks or `NameTable` would give it.

        Parameters
        ----------
        patterns
            Patterns of further members by name of the collection.

        Raises
        ------
        CaseError
            If its steps cannot be written, such as one that was saved both in mode GLOBAL and in
            another mode.
        """
        members = {name: set(names) for name, names in self.collections.items()}
        placed: set[str] = set().union(*members.values())
        for name in self.tensor_names - placed:
            collection = usual_collection(name)
            if collection:
                members.setdefault(collection, set()).add(name)
        workers = sorted({key.worker for key in self.steps})
        with translated(CaseError, SMDebugError):
            for number, worker in enumerate(workers, 1):
                writer = TrialWriter(
                    folder,
                    collections=patterns,
                    worker=worker,
                    num_workers=len(workers),
                    end_job=number == len(workers),
                )
                with writer:
                    writer.add_members(members)
                    self._write_worker(writer, worker)

    def _write_worker(self, writer: TrialWriter, worker: str) -> None:
        counts: Counter[str] = Counter()
        for key in sorted(key for key in self.steps if key.worker == worker):
            saved = self.steps[key]
            mode = ModeKeys[key.mode]
            counted = key.step if mode is ModeKeys.GLOBAL else counts[key.mode]
            mode_step = counted if saved.mode_step is None else saved.mode_step
            counts[key.mode] += 1
            draft = writer.begin(key.step, mode=mode, mode_step=mode_step)
            for name, array in saved.records.items():
                draft.add(name, array)
            for name, shape in saved.shapes.items():
                draft.add_shape(name, shape)
            draft.commit()


def usual_collection(name: str) -> str:
    """Return the collection that a tensor's name suggests; "" for none.

    >>> [*map(usual_collection, ["loss", "gradient/fc.weight", "fc.bias", "optimizer/lr/0", "x"])]
    ['losses', 'gradients', 'biases', 'learning_rates', '']
    """
    head, slash, _ = name.partition("/")
    if slash and head == "gradient":
        return "gradients"
    collection = _TABLE(name).collection
    if collection:
        return collection
    if slash and head in _BY_PREFIX:
        return _BY_PREFIX[head]
    last = name.replace("/", ".").rpartition(".")[2]
    return "weights" if "weight" in last else "biases" if "bias" in last else ""


def save_npz(case: SavedCase, path: Path) -> None:
    """Write a case as an .npz file that plain numpy reads, without pickles.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    arrays: dict[str, Any] = {}
    mode_steps: dict[str, list[tuple[int, int]]] = {}
    for key, saved in sorted(case.steps.items()):
        place = f"{key.worker}/{key.mode}/{key.step}"
        for name, array in saved.records.items():
            reduction = paths.parse_reduction_name(name)
            if reduction is None:
                arrays[f"values/{place}/{name}"] = _plain(array)
            else:
                operation = "abs_" * reduction.absolute + reduction.operation
                arrays[f"reductions/{place}/{operation}/{reduction.tensor}"] = _plain(array)
        for name, shape in saved.shapes.items():
            arrays[f"shapes/{place}/{name}"] = np.array(shape, np.int64)
        if saved.mode_step is not None:
            mode_steps.setdefault(f"{key.worker}/{key.mode}", []).append(
                (key.step, saved.mode_step)
            )
    for part, pairs in mode_steps.items():
        arrays[f"mode_steps/{part}"] = np.array(pairs, np.int64)
    for name, members in sorted(case.collections.items()):
        arrays[f"collections/{name}"] = np.array(sorted(members), np.str_)
    with path.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in a data type of numpy's own: bfloat16 and the like become float32."""
    if array.dtype.kind == "O":
        return array.astype(np.str_)
    return array.astype(np.float32) if array.dtype.isbuiltin == 2 else array  # noqa: PLR2004 - numpy's number for types of other packages


def load_npz(path: Path) -> SavedCase:
    """Return the case in an .npz file.

    Raises
    ------
    CaseError
        If the file cannot be read, or holds something else.
    """
    subject = f"Case {str(path)!r}"
    with (
        restated(CaseError, *_DAMAGED, sentence=f"{subject} is not an .npz file without pickles."),
        translated(CaseError, StorageUnavailableError),
        unreadable(subject, CaseError, OSError),
        np.load(path, allow_pickle=False) as stored,
    ):
        nbytes = sum(member.file_size for member in stored.zip.infolist())
        check_file_size(str(path), nbytes)
        arrays = {name: stored[name] for name in stored.files}
    case = SavedCase()
    for key, array in arrays.items():
        problem = f"{subject} has the key {key!r}. A key is {_FORMS}."
        with restated(CaseError, ValueError, KeyError, TypeError, sentence=problem):
            _add(case, key.split("/"), array)
    return case


def _add(case: SavedCase, key: list[str], array: NDArray[Any]) -> None:
    """Add an array of an .npz file to a case; ValueError and KeyError mean a wrong key."""
    match key:
        case ["collections", *name]:
            case.collections["/".join(name)] = {str(member) for member in array.ravel()}
        case ["mode_steps", worker, mode]:
            for step, mode_step in array.tolist():
                case.at(worker, step, ModeKeys[mode].name).mode_step = mode_step
        case ["values", worker, mode, step, *name] if name:
            case.at(worker, int(step), ModeKeys[mode].name).records["/".join(name)] = array
        case ["shapes", worker, mode, step, *name] if name:
            shape = tuple(int(size) for size in array)
            case.at(worker, int(step), ModeKeys[mode].name).shapes["/".join(name)] = shape
        case ["reductions", worker, mode, step, operation, *name] if name:
            plain = operation.removeprefix("abs_")
            record = paths.reduction_record_name(
                "/".join(name), OPERATIONS[OPERATIONS.index(plain)], plain != operation
            )
            case.at(worker, int(step), ModeKeys[mode].name).records[record] = array
        case _:
            raise KeyError(key)


def members_of(collections: Mapping[str, Any], names: Iterable[str]) -> dict[str, set[str]]:
    """Return which of some tensors each collection of a trial holds; empty ones are left out."""
    tensors = [*names]
    members = {name: {*collection.members(tensors)} for name, collection in collections.items()}
    return {name: held for name, held in members.items() if held and name not in {"all", "default"}}

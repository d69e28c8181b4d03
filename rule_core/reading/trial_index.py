"""TrialIndex: the files and tensors of a trial, in any format, shared by all rules."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from rule_core.format.index_file import IndexFile
from rule_core.format.paths import worker_of
from rule_core.model.collection import Collection
from rule_core.modes import ModeKeys
from rule_core.reading.file_problems import TrialFileProblems
from rule_core.reading.saved_tensors import SavedTensors
from rule_core.storage.base import TrialStore


class TrialIndex(Protocol):
    """The known steps, tensors, workers and collections of one trial.

    All steps are global steps unless they are called mode steps. Nothing here waits: `refresh`
    looks for files once. `NativeIndex` is the index of saved trials, `SourceIndex` that of outputs
    of other tools.

    Attributes
    ----------
    range_steps
        ``(begin, end)``, half-open; None is unbounded. Other steps are not loaded.
    window
        The number of incomplete steps beyond which earlier ones are considered settled.
    is_remote
        Whether requests to the store are slow.
    may_resume
        Whether steps may be repeated in another segment.
    files
        Step -> part of the step -> index file.
    names, names_by_mode
        The steps of each tensor, in all modes and by mode.
    mode_steps
        The step of each mode step, by mode.
    workers
        The names of workers: those with readable collections files and, once the trial has ended,
        all that have written a step.
    described
        The workers with readable collections files.
    damaged_collections
        The number of damaged collections files.
    last_complete_step, settled_step
        The last step that is complete, and the last that was complete before files were listed.
    loaded_all_steps
        Whether the trial has ended and all its files are loaded.
    unrecognized
        Whether the folder held nothing known when it was opened: it may become a trial in any
        format.
    late_parts
        The steps of which a part was found after they were settled, in order.
    looked_at
        The time at which a query of a remote trial last looked for new files.
    """

    store: TrialStore
    range_steps: tuple[int | None, int | None] | None
    window: int
    is_remote: bool
    may_resume: bool
    files: Mapping[int, Mapping[str, IndexFile]]
    steps: Sequence[int]
    mode_steps: Mapping[ModeKeys, Mapping[int, int]]
    names: Mapping[str, Sequence[int]]
    names_by_mode: Mapping[ModeKeys, Mapping[str, Sequence[int]]]
    tensors: SavedTensors
    collections: dict[str, Collection]
    collections_version: int
    workers: list[str]
    described: list[str]
    num_workers: int
    damaged_collections: int
    last_complete_step: int
    settled_step: int
    loaded_all_steps: bool
    unrecognized: bool
    late_parts: dict[int, None]
    looked_at: float
    file_problems: TrialFileProblems

    @property
    def segments(self) -> Sequence[int]:
        """The first step of each segment, ascending; empty if there is no second one."""
        ...

    def has_files(self) -> bool:
        """Return whether the store has any file of the trial."""
        ...

    def has_ended(self) -> bool:
        """Return whether the training job has ended."""
        ...

    def refresh(self, whole: bool = False, *, ended: bool = False) -> bool:
        """Look for new files once; return whether there were any.

        Parameters
        ----------
        whole
            Whether to include settled steps, for late files.
        ended
            Whether the end mark was seen before, so that collections no longer change.
        """
        ...

    def finish(self) -> None:
        """Consider the loaded files complete, since the training job has ended."""
        ...

    def read_again(self, step: int) -> bool:
        """Retry the unreadable index files of a step; return whether another retry may help."""
        ...

    def lacks_collections(self) -> bool:
        """Return whether there are fewer collections files than workers."""
        ...

    def missing_collections(self) -> list[str]:
        """Return a text for each missing or damaged collections file."""
        ...

    def lost_files(self) -> int:
        """Return the number of index files that were not read because they arrived too late."""
        ...

    def settled(self, steps: Sequence[int]) -> list[int]:
        """Return those of known steps, ascending, for which no more files are expected."""
        ...

    def mode_step_at(self, step: int, mode: ModeKeys) -> int:
        """Return the mode step of a step."""
        ...

    def mode_step_pairs(
        self, mode: ModeKeys, horizon: int | None = None
    ) -> Iterable[tuple[int, int]]:
        """Return the mode step and step of the steps of a mode.

        Parameters
        ----------
        horizon
            Only steps up to this step, and of its segment. None: all mode steps; the last segment
            that has one counts.
        """
        ...

    def global_step_of(
        self, mode: ModeKeys, mode_step: int, horizon: int | None = None
    ) -> int | None:
        """Return the step of a mode step; for `horizon` see `mode_step_pairs`."""
        ...

    def first_of_mode(self, mode: ModeKeys, horizon: int | None = None) -> int | None:
        """Return the first step of a known mode, not before the segment of a horizon."""
        ...


def all_steps(index: TrialIndex) -> Sequence[int]:
    """Return the known steps, including those without a readable index file, ascending."""
    unread = index.file_problems.unread
    return sorted({*index.steps, *unread}) if unread else index.steps


def missing_workers(index: TrialIndex, step: int) -> list[str]:
    """Return the known workers that have not written a step, sorted."""
    return sorted(set(index.workers).difference(map(worker_of, index.files.get(step, ()))))

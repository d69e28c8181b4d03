"""NativeIndex: the files of a saved trial loaded so far, and the contents of its index files."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from rule_core.exceptions import TrialFileError
from rule_core.format import paths
from rule_core.format.index_file import IndexFile, IndexParser
from rule_core.format.paths import StepFile
from rule_core.model.collection import Collection, parse_collections
from rule_core.modes import ModeKeys
from rule_core.reading.file_problems import TrialFileProblems
from rule_core.reading.measuring.measurer import LEAST_KEYS, Measurer
from rule_core.reading.new_files import NewFiles, Read
from rule_core.reading.saved_steps import SavedSteps
from rule_core.reading.saved_tensors import SavedTensors
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError, TrialStore
from rule_core.storage.read_pool import read_each, read_pool

_COLLECTIONS: Final = paths.COLLECTIONS
_UNREADABLE: Final = (TrialFileError, ObjectNotFoundError, StorageUnavailableError)


class NativeIndex:
    """The index of a trial that hooks or writers have saved; implements `TrialIndex`.

    Parameters
    ----------
    store
        The store with the files.
    range_steps
        ``(begin, end)``, half-open; None is unbounded. Other steps are not loaded.
    window
        The number of incomplete steps beyond which the older half is considered settled.

    Attributes
    ----------
    measurer
        Parses many new index files somewhere else; None parses all of them here.
    """

    may_resume: bool = False
    segments: Sequence[int] = ()

    def __init__(
        self,
        store: TrialStore,
        range_steps: tuple[int | None, int | None] | None = None,
        window: int = 1000,
    ) -> None:
        self.store = store
        self.window = window
        self.range_steps = range_steps
        self._pool = read_pool(store)
        self.is_remote = self._pool is not None
        self._saved = saved = SavedSteps()
        self.files: Mapping[int, Mapping[str, IndexFile]] = saved.files
        self.steps: Sequence[int] = saved.steps
        self.mode_steps: Mapping[ModeKeys, Mapping[int, int]] = saved.mode_steps
        self.names: Mapping[str, Sequence[int]] = saved.names
        self.names_by_mode: Mapping[ModeKeys, Mapping[str, Sequence[int]]] = saved.names_by_mode
        self.tensors = SavedTensors(store, self._pool, saved.files, (saved.files, saved.steps))
        self.collections: dict[str, Collection] = {}
        self.collections_version = 0
        self.workers: list[str] = []
        self.described: list[str] = []
        self.num_workers = 0
        self.last_complete_step = self.settled_step = -1
        self.loaded_all_steps = False
        self.unrecognized = False
        self.looked_at = -math.inf
        self.file_problems = TrialFileProblems(store.uri)
        self.measurer: Measurer | None = None
        self._parser = IndexParser()
        self._new = NewFiles(store, self._pool, range_steps, self.files, self.file_problems)
        self._bad_collections = False
        self.damaged_collections = 0
        self.late_parts: dict[int, None] = {}
        # By worker, once one has written a second mode of a step.
        self._last_steps: dict[str, int] = {}

    def list_parts(self) -> list[StepFile]:
        """Return the step and worker of each index file that has not been read, by their names."""
        return [step_file for _, step_file in self._new.keys("")]

    def read_only(self, parts: Container[StepFile]) -> None:
        """Read no other index files than these."""
        self._new.only = parts

    def has_files(self) -> bool:
        """Return whether the store has any file of the trial."""
        return bool(self.workers or self.steps or next(iter(self.store.list_keys("")), ""))

    def has_ended(self) -> bool:
        """Return whether the training job has written its end mark."""
        return paths.END_OF_JOB in self.store.list_keys(paths.END_OF_JOB)

    def refresh(self, whole: bool = False, *, ended: bool = False) -> bool:
        """Look for new files once; see `TrialIndex`.

        A listing is not a snapshot: it may show a file and miss an older one. A step is therefore
        *settled* only if it was complete before a listing began.
        """
        self.tensors.failures.turn_to(None)
        settled = self.last_complete_step
        # Collections come first: the number of workers determines which steps are complete.
        changed = self._load_collections() if self.lacks_collections() else False
        names_before = len(self.names)
        changed |= self._load_index_files("" if whole else self._cursor())
        if len(self.names) > names_before and not ended:
            # A writer adds a new member to its collections file before it first saves it.
            self._load_collections()
        self.settled_step = max(self.settled_step, settled)
        if changed:
            self._move_window()
        return changed

    def finish(self) -> None:
        """Consider the loaded files complete, since the training job has ended."""
        self.loaded_all_steps = True
        self.last_complete_step = self.steps[-1] if self.steps else -1
        self.settled_step = self.last_complete_step
        for worker in self._without_collections():
            key = paths.collections_key(worker)
            if key not in self.file_problems.problems:
                self.file_problems.report(key, ObjectNotFoundError(key))
        self.workers = sorted(self._writers().union(self.workers))
        self.num_workers = max(self.num_workers, len(self.workers))

    def _without_collections(self) -> list[str]:
        """Return the workers with steps but without collections files."""
        if not self.lacks_collections():
            return []
        return sorted(self._writers().difference(self.described))

    def _writers(self) -> set[str]:
        """Return the workers with steps."""
        return {*map(paths.worker_of, set[str]().union(*self.files.values()))}

    def missing_collections(self) -> list[str]:
        """Return a text for each missing or damaged collections file."""
        keys = map(paths.collections_key, self._without_collections())
        problems = {
            key: text
            for key, text in self.file_problems.problems.items()
            if key.startswith(_COLLECTIONS)
        }
        return [*problems.values(), *(repr(key) for key in keys if key not in problems)]

    def lost_files(self) -> int:
        """Return the number of index files that were not read because they arrived too late."""
        listed = filter(self._new.parse_if_new, self.store.list_keys(paths.INDEX))
        return sum(key not in self.file_problems.problems for key in listed)

    def lacks_collections(self) -> bool:
        """Return whether there are fewer collections files than workers."""
        readable = len(self.described)
        return self._bad_collections or not readable or readable < self.num_workers

    def _cursor(self) -> str:
        """Return the key after which new index files appear; earlier ones are settled."""
        if self.settled_step < 0 or self.steps[-1] >= paths.SORTABLE_STEPS:
            return ""
        return f"{paths.index_shard(self.settled_step)}{self.settled_step:012d}"

    def _load_collections(self) -> bool:
        """Read the collections files of all workers and merge them."""
        merged: dict[str, Collection] = {}
        workers: set[str] = set()
        num_workers = 0
        self._bad_collections = False
        self.damaged_collections = 0
        names = {
            key: worker
            for key in self.store.list_keys(paths.COLLECTIONS)
            if (worker := paths.parse_collections_key(key)) is not None
        }
        for key, read in read_each(self.store, self._pool, names):
            try:
                file = parse_collections(read(), key)
            except _UNREADABLE as err:
                if self.is_remote and not getattr(err, "transient", True):
                    raise  # rules need them, and waiting does not help
                self._bad_collections = True
                self.damaged_collections += isinstance(err, TrialFileError)
                self.file_problems.report(key, err)
                continue
            self.file_problems.problems.pop(key, None)
            workers.add(names[key])
            num_workers = max(num_workers, file.num_workers)
            for name, collection in file.collections.items():
                if name in merged:
                    merged[name].absorb(collection)
                else:
                    merged[name] = collection
        if merged == self.collections and sorted(workers) == self.described:
            return False
        self.collections, self.described = merged, sorted(workers)
        self.workers = self.described
        self.collections_version += 1
        if num_workers != self.num_workers:
            self.num_workers = num_workers
            self._count_complete(self.steps)
        return True

    def _load_index_files(self, last_key: str) -> bool:
        """Read the new index files after `last_key`; return whether there were any.

        Raises
        ------
        StorageUnavailableError
            If none of them can be read, which is a problem of the store and not of the files.
        """
        changed, refused = False, None
        for key, step_file, read, file in self._new_index_files(last_key):
            try:
                changed |= self._load_index_file(key, step_file, read, file)
            except StorageUnavailableError as err:
                refused = err
        if refused is not None and not self.files and self.is_remote and not refused.transient:
            raise refused
        return changed

    def _new_index_files(
        self, last_key: str
    ) -> Iterator[tuple[str, StepFile, Read, IndexFile | None]]:
        """Yield the new index files after `last_key`, with what the measurer has parsed."""
        keys = [] if self.measurer is None else [*self._new.keys(last_key)]
        if self.measurer is None or len(keys) < LEAST_KEYS:
            for new in self._new.after(last_key):
                yield *new, None
            return
        for (key, step_file), file in zip(keys, self.measurer.parse(keys), strict=True):
            yield key, step_file, partial(self.store.read, key), file

    def _load_index_file(
        self, key: str, step_file: StepFile, read: Read, parsed: IndexFile | None = None
    ) -> bool:
        """Load one index file, unless it is parsed already; a bad one is read again next time.

        Raises
        ------
        StorageUnavailableError
            If the store cannot return it; the problem is recorded.
        """
        try:
            file = parsed or self._parser.parse(read(), key, step_file)
        except _UNREADABLE as err:
            self.file_problems.cannot_read(key, step_file, err)
            if isinstance(err, StorageUnavailableError):
                raise
            return False
        if self.file_problems.problems or self.file_problems.unread:
            self.file_problems.mended(key, step_file)
        if file.damaged:
            for name, reason in file.damaged.items():
                self.file_problems.report(f"{key}: {name}", reason)
        if not file.entries:
            self._new.ignored.add(key)
            return False
        parts = self._saved.add(file)
        if self._last_steps or paths.worker_of(step_file.worker) != step_file.worker:
            self._add_part(step_file)
        elif parts >= self.num_workers > 0 and step_file.step > self.last_complete_step:
            self.last_complete_step = step_file.step
        return True

    def _add_part(self, step_file: StepFile) -> None:
        """Count a part of a trial whose workers write several modes of a step.

        Whether another part of a worker follows is unknown until it begins its next step.
        """
        step, part = step_file
        worker = paths.worker_of(part)
        lasts = self._last_steps
        if not lasts:
            for earlier, parts in self.files.items():
                for name in map(paths.worker_of, parts):
                    lasts[name] = max(lasts.get(name, -1), earlier)
        lasts[worker] = max(lasts.get(worker, -1), step)
        if step <= self.settled_step and worker != part:
            self.late_parts[step] = None
        self._count_passed()

    def _count_passed(self) -> None:
        """Consider the steps complete that all workers have passed."""
        if 0 < self.num_workers <= len(self._last_steps):
            position = bisect_left(self.steps, min(self._last_steps.values()))
            if position > 0:
                self.last_complete_step = max(self.last_complete_step, self.steps[position - 1])

    def read_again(self, step: int) -> bool:
        """Retry the unreadable index files of a step; return whether another retry may help."""
        for worker, unread in list(self.file_problems.unread.get(step, {}).items()):
            with suppress(StorageUnavailableError):
                step_file, read = StepFile(step, worker), partial(self.store.read, unread.key)
                self._load_index_file(unread.key, step_file, read)
        return any(
            unread.is_transient for unread in self.file_problems.unread.get(step, {}).values()
        )

    def _count_complete(self, steps: Iterable[int]) -> None:
        """Update the last complete step."""
        if self._last_steps:
            self._count_passed()
        elif self.num_workers:
            complete = (step for step in steps if len(self.files[step]) >= self.num_workers)
            self.last_complete_step = max(self.last_complete_step, *complete, -1)

    def settled(self, steps: Sequence[int]) -> list[int]:
        """Return the settled ones of known steps, ascending."""
        position = (
            len(steps) if self.loaded_all_steps else bisect_right(steps, self.last_complete_step)
        )
        return [*steps[:position], *filter(self._has_all_workers, steps[position:])]

    def mode_step_at(self, step: int, mode: ModeKeys) -> int:
        """Return the mode step of a global step; see `TrialIndex`."""
        if mode is ModeKeys.GLOBAL:
            return step
        return min(file.mode_step for file in self.files[step].values() if file.mode is mode)

    def mode_step_pairs(
        self, mode: ModeKeys, horizon: int | None = None
    ) -> Iterable[tuple[int, int]]:
        """Return the mode step and global step of the steps of a mode; see `TrialIndex`."""
        pairs = self.mode_steps.get(mode, {}).items()
        return pairs if horizon is None else [pair for pair in pairs if pair[1] <= horizon]

    def global_step_of(
        self, mode: ModeKeys, mode_step: int, horizon: int | None = None
    ) -> int | None:
        """Return the global step of a mode step; see `TrialIndex`."""
        del horizon
        return self.mode_steps.get(mode, {}).get(mode_step)

    def first_of_mode(self, mode: ModeKeys, horizon: int | None = None) -> int | None:
        """Return the first global step of a mode; see `TrialIndex`."""
        del horizon
        return min(self.mode_steps[mode].values())

    def _has_all_workers(self, step: int) -> bool:
        """Return whether no worker can add a file to a step."""
        return not self._last_steps and len(self.files.get(step, ())) >= self.num_workers > 0

    def _move_window(self) -> None:
        """Stop waiting for workers when too many steps are incomplete."""
        first = bisect_right(self.steps, self.last_complete_step)
        while self.num_workers and len(self.steps) - first > self.window:
            first += max(self.window // 2, 1)
            self.last_complete_step = self.settled_step = self.steps[first - 1]

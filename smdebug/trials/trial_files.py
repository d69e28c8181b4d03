"""TrialFiles: which files of a trial have come, and what its index files say."""

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from smdebug.core import locations
from smdebug.core.collection import Collection, parse_collections
from smdebug.core.index import IndexFile, parse_index
from smdebug.core.modes import ModeKeys
from smdebug.core.read_pool import ReadPool, read_each
from smdebug.exceptions import TrialFileError
from smdebug.storage.protocol import (
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
)
from smdebug.trials.troubles import Troubles

_UNREADABLE: Final = (TrialFileError, ObjectNotFoundError, StorageUnavailableError)


class TrialFiles:
    """Known steps, tensors, workers and collections of one trial.

    Steps are global steps throughout. Nothing here waits: `refresh` looks once at what is there.

    Parameters
    ----------
    store
        Where the files are.
    range_steps
        ``(begin, end)``, half open; None is unbounded. Other steps are not loaded at all.
    window
        Number of incomplete steps beyond which the oldest half of them is taken as settled.

    Attributes
    ----------
    looked_at
        When a view of a remote trial last looked for new files because it was asked something.
    """

    def __init__(
        self,
        store: TrialStore,
        range_steps: tuple[int | None, int | None] | None = None,
        window: int = 1000,
    ) -> None:
        self.store = store
        parallel = store.costs.parallel
        self._pool = ReadPool[memoryview](parallel) if parallel > 1 else None
        self.range_steps = range_steps
        self.window = window
        self.files: dict[int, dict[str, IndexFile]] = {}
        self.steps: list[int] = []
        self.names: dict[str, list[int]] = {}
        self.mode_steps: dict[ModeKeys, dict[int, int]] = {}
        self.names_by_mode: dict[ModeKeys, dict[str, list[int]]] = {}
        self.collections: dict[str, Collection] = {}
        self.collections_version = 0
        self.workers: list[str] = []
        self.num_workers = 0
        self.last_complete_step = -1
        self.settled_step = -1
        self.loaded_all_steps = False
        self.looked_at = -math.inf
        self.troubles = Troubles(store.uri)
        self.problems = self.troubles.problems
        self.report = self.troubles.report
        self._ignored: set[str] = set()
        self._bad_collections = False

    @property
    def is_remote(self) -> bool:
        """Whether each request to the store takes its time."""
        return self._pool is not None

    def is_there(self) -> bool:
        """Say whether the store has any file of the trial."""
        return bool(self.workers or self.steps or next(iter(self.store.list_keys("")), ""))

    def has_ended(self) -> bool:
        """Say whether the training job has left its end mark."""
        return locations.END_OF_JOB in self.store.list_keys(locations.END_OF_JOB)

    def refresh(self, whole: bool = False) -> bool:
        """Look once for new files; say whether there were any.

        A listing is no snapshot: it may show a file and miss an older one. Therefore a step is
        *settled* only when it was complete before a listing began.

        Parameters
        ----------
        whole
            Look behind steps that are settled too, for files that came late.
        """
        settled = self.last_complete_step
        # Collections come first: how many workers there are decides what is complete.
        changed = self._load_collections() if self.lacks_collections() else False
        names_before = len(self.names)
        after = "" if whole else self._cursor()
        changed |= self._load_index_files(self.store.list_keys(locations.INDEX, start_after=after))
        if len(self.names) > names_before:
            # A writer names a new member of a collection before the step that first saves it.
            self._load_collections()
        self.settled_step = max(self.settled_step, settled)
        if changed:
            self._move_window()
        return changed

    def finish(self) -> None:
        """Take what is there as all there is: the training job has ended."""
        self.loaded_all_steps = True
        self.last_complete_step = self.steps[-1] if self.steps else -1
        self.settled_step = self.last_complete_step

    def lost_files(self) -> int:
        """Return how many index files are there that nobody has read: they came too late."""
        return sum(
            place.worker not in self.files.get(place.step, ())
            for key in self.store.list_keys(locations.INDEX)
            if key not in self._ignored
            and key not in self.problems
            and (place := locations.parse_index_key(key)) is not None
            and self._in_range(place.step)
        )

    def lacks_collections(self) -> bool:
        """Say whether fewer collections files are there than workers write."""
        return self._bad_collections or not self.workers or len(self.workers) < self.num_workers

    def _cursor(self) -> str:
        """Return the key behind which new index files are: older ones are settled."""
        if self.settled_step < 0 or self.steps[-1] >= locations.SORTABLE_STEPS:
            return ""
        return f"{locations.index_shard(self.settled_step)}{self.settled_step:012d}"

    def _load_collections(self) -> bool:
        """Read the collections files of all workers and merge them."""
        merged: dict[str, Collection] = {}
        workers: set[str] = set()
        num_workers = 0
        self._bad_collections = False
        names = {
            key: worker
            for key in self.store.list_keys(locations.COLLECTIONS)
            if (worker := locations.parse_collections_key(key)) is not None
        }
        for key, read in read_each(self.store, self._pool, names):
            try:
                found = parse_collections(read(), key)
            except _UNREADABLE as err:
                if self.is_remote and not getattr(err, "transient", True):
                    raise  # without them nothing can be judged, and waiting does not help
                self._bad_collections = True
                self.report(key, err)
                continue
            self.problems.pop(key, None)
            workers.add(names[key])
            num_workers = max(num_workers, found.num_workers)
            for name, collection in found.collections.items():
                if name in merged:
                    merged[name].absorb(collection)
                else:
                    merged[name] = collection
        if merged == self.collections and sorted(workers) == self.workers:
            return False
        self.collections, self.workers = merged, sorted(workers)
        self.collections_version += 1
        if num_workers != self.num_workers:
            self.num_workers = num_workers
            self._count_complete(self.steps)
        return True

    def _load_index_files(self, keys: Iterable[str]) -> bool:
        """Read the index files among `keys` that were not read yet; say whether there were any.

        Raises
        ------
        StorageUnavailableError
            If the store lets none of them be read: it is not theirs to be wrong.
        """
        changed, refused = False, None
        for key, read in read_each(self.store, self._pool, filter(self._is_new, keys)):
            try:
                changed |= self._load_index_file(key, read)
            except StorageUnavailableError as err:
                refused = err
        if refused is not None and not self.files and self.is_remote and not refused.transient:
            raise refused
        return changed

    def _is_new(self, key: str) -> bool:
        """Say whether a key is that of an index file that was not read yet."""
        if key in self._ignored or key.endswith(".tmp"):
            return False
        place = locations.parse_index_key(key)
        if place is None:
            self._ignored.add(key)
            self.report(key, "Its name is not <step>_<worker>.json.")
            return False
        return place.worker not in self.files.get(place.step, ()) and self._in_range(place.step)

    def _load_index_file(self, key: str, read: Callable[[], memoryview]) -> bool:
        """Take in one index file; a bad one is asked again next time.

        Raises
        ------
        StorageUnavailableError
            If the store does not give it, which is noted.
        """
        place = locations.parse_index_key(key)
        if place is None:
            return False
        try:
            found = parse_index(read(), key)
        except _UNREADABLE as err:
            self.troubles.cannot_read(key, place, err)
            if isinstance(err, StorageUnavailableError):
                raise
            return False
        self.troubles.mended(key, place)
        for name, reason in found.damaged.items():
            self.report(f"{key}: {name}", reason)
        if not found.entries:
            self._ignored.add(key)
            return False
        self._add(place.step, place.worker, found)
        return True

    def read_again(self, step: int) -> bool:
        """Try once more to read the index files of a step; say whether one may be read later."""
        for unread in list(self.troubles.unread.get(step, {}).values()):
            with suppress(StorageUnavailableError):
                self._load_index_file(unread.key, partial(self.store.read, unread.key))
        return any(unread.passes for unread in self.troubles.unread.get(step, {}).values())

    @property
    def all_steps(self) -> Sequence[int]:
        """The steps that are known, also those of which no index file can be read, ascending."""
        unread = self.troubles.unread
        return sorted({*self.steps, *unread}) if unread else self.steps

    def _in_range(self, step: int) -> bool:
        begin, end = self.range_steps or (None, None)
        return (begin is None or step >= begin) and (end is None or step < end)

    def _add(self, step: int, worker: str, found: IndexFile) -> None:
        """File what one worker saved at one step."""
        if step not in self.files:
            self.files[step] = {}
            _insert(self.steps, step)
        self.files[step][worker] = found
        if found.mode is not ModeKeys.GLOBAL:
            # Whatever the order of arrival: of several global steps the smallest counts.
            numbers = self.mode_steps.setdefault(found.mode, {})
            numbers[found.mode_step] = min(step, numbers.get(found.mode_step, step))
        of_mode = self.names_by_mode.setdefault(found.mode, {})
        for name in found.entries:
            _insert(self.names.setdefault(name, []), step)
            _insert(of_mode.setdefault(name, []), step)
        self._count_complete([step])

    def _count_complete(self, steps: Iterable[int]) -> None:
        """Move the last complete step on."""
        if self.num_workers:
            complete = (step for step in steps if len(self.files[step]) >= self.num_workers)
            self.last_complete_step = max(self.last_complete_step, *complete, -1)

    def _move_window(self) -> None:
        """Give up waiting for workers when too many steps are incomplete."""
        first = bisect_right(self.steps, self.last_complete_step)
        while self.num_workers and len(self.steps) - first > self.window:
            first += max(self.window // 2, 1)
            self.last_complete_step = self.settled_step = self.steps[first - 1]


def _insert(steps: list[int], step: int) -> None:
    """Insert into a sorted list, once; most steps come in order."""
    if not steps or steps[-1] < step:
        steps.append(step)
    elif steps[bisect_left(steps, step)] != step:
        insort(steps, step)

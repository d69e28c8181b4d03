"""TrialFiles: which files of a trial have come, and what its index files say."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from smdebug.core import locations
from smdebug.core.collection import Collection, parse_collections
from smdebug.core.index import IndexParser
from smdebug.core.locations import StepFile
from smdebug.core.read_pool import ReadPool, read_each
from smdebug.exceptions import TrialFileError
from smdebug.storage.protocol import (
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
)
from smdebug.trials.new_files import NewFiles, Read
from smdebug.trials.saved_steps import SavedSteps
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
        self._saved = saved = SavedSteps()
        self.files, self.steps, self.mode_steps = saved.files, saved.steps, saved.mode_steps
        self.names, self.names_by_mode = saved.names, saved.names_by_mode
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
        self._parser = IndexParser()
        self._new = NewFiles(store, self._pool, range_steps, self.files, self.troubles)
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
        changed |= self._load_index_files(after)
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
        listed = filter(self._new.place_if_new, self.store.list_keys(locations.INDEX))
        return sum(key not in self.problems for key in listed)

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

    def _load_index_files(self, after: str) -> bool:
        """Read the index files behind `after` that were not read yet; say if there were any.

        Raises
        ------
        StorageUnavailableError
            If the store lets none of them be read: it is not theirs to be wrong.
        """
        changed, refused = False, None
        for key, place, read in self._new.behind(after):
            try:
                changed |= self._load_index_file(key, place, read)
            except StorageUnavailableError as err:
                refused = err
        if refused is not None and not self.files and self.is_remote and not refused.transient:
            raise refused
        return changed

    def _load_index_file(self, key: str, place: StepFile, read: Read) -> bool:
        """Take in one index file; a bad one is asked again next time.

        Raises
        ------
        StorageUnavailableError
            If the store does not give it, which is noted.
        """
        try:
            found = self._parser.parse(read(), key, place)
        except _UNREADABLE as err:
            self.troubles.cannot_read(key, place, err)
            if isinstance(err, StorageUnavailableError):
                raise
            return False
        if self.problems or self.troubles.unread:
            self.troubles.mended(key, place)
        if found.damaged:
            for name, reason in found.damaged.items():
                self.report(f"{key}: {name}", reason)
        if not found.entries:
            self._new.ignored.add(key)
            return False
        workers = self._saved.add(found)
        if workers >= self.num_workers > 0 and place.step > self.last_complete_step:
            self.last_complete_step = place.step
        return True

    def read_again(self, step: int) -> bool:
        """Try once more to read the index files of a step; say whether one may be read later."""
        for worker, unread in list(self.troubles.unread.get(step, {}).items()):
            with suppress(StorageUnavailableError):
                place, read = StepFile(step, worker), partial(self.store.read, unread.key)
                self._load_index_file(unread.key, place, read)
        return any(unread.passes for unread in self.troubles.unread.get(step, {}).values())

    @property
    def all_steps(self) -> Sequence[int]:
        """The steps that are known, also those of which no index file can be read, ascending."""
        unread = self.troubles.unread
        return sorted({*self.steps, *unread}) if unread else self.steps

    def _count_complete(self, steps: Iterable[int]) -> None:
        """Move the last complete step on."""
        if self.num_workers:
            complete = (step for step in steps if len(self.files[step]) >= self.num_workers)
            self.last_complete_step = max(self.last_complete_step, *complete, -1)

    def settled(self, steps: Sequence[int]) -> list[int]:
        """Return those of some known steps, ascending, of which nothing more is expected."""
        at = len(steps) if self.loaded_all_steps else bisect_right(steps, self.last_complete_step)
        wanted = self.num_workers or math.inf
        return [*steps[:at], *(step for step in steps[at:] if len(self.files[step]) >= wanted)]

    def _move_window(self) -> None:
        """Give up waiting for workers when too many steps are incomplete."""
        first = bisect_right(self.steps, self.last_complete_step)
        while self.num_workers and len(self.steps) - first > self.window:
            first += max(self.window // 2, 1)
            self.last_complete_step = self.settled_step = self.steps[first - 1]

"""TrialIndex: all that is known of one trial's files, shared by every rule that looks at it."""

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from smdebug.core import locations
from smdebug.core.collection import Collection, parse_collections
from smdebug.core.event_reader import EventReader
from smdebug.core.index import IndexFile, Span, parse_index
from smdebug.core.logger import get_logger
from smdebug.core.modes import ModeKeys
from smdebug.core.reductions import compute
from smdebug.exceptions import TrialFileError
from smdebug.storage.protocol import ObjectNotFoundError, StorageUnavailableError, TrialStore

KEPT_REDUCTIONS: Final = 1 << 16
PROBLEMS_KEPT: Final = 1000

Array = NDArray[Any]


class TrialIndex:
    """Known steps, tensors, workers and collections of one trial, and its tensors' bytes.

    Steps are global steps throughout. Nothing here waits: `refresh` looks once at what is there.

    Parameters
    ----------
    store
        Where the files are.
    range_steps
        ``(begin, end)``, half open; None is unbounded. Other steps are not loaded at all.
    window
        Number of incomplete steps beyond which the oldest half of them is taken as settled.
    """

    def __init__(
        self,
        store: TrialStore,
        range_steps: tuple[int | None, int | None] | None = None,
        window: int = 1000,
    ) -> None:
        self.store = store
        self.range_steps = range_steps
        self.window = window
        self.reader = EventReader(store)
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
        self.problems: dict[str, str] = {}
        self._ignored: set[str] = set()
        self._bad_collections = False
        self._reductions: OrderedDict[tuple[str, int, str, str, bool], np.generic] = OrderedDict()

    # -- looking -----------------------------------------------------------------------------

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
        for key in self.store.list_keys(locations.INDEX, start_after=after):
            changed |= self._load_index_file(key)
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
        for key in self.store.list_keys(locations.COLLECTIONS):
            worker = locations.parse_collections_key(key)
            if worker is None:
                continue
            try:
                found = parse_collections(self.store.read(key), key)
            except (TrialFileError, ObjectNotFoundError, StorageUnavailableError) as err:
                self._bad_collections = True
                self.report(key, err)
                continue
            self.problems.pop(key, None)
            workers.add(worker)
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

    def _load_index_file(self, key: str) -> bool:
        """Read one index file that was not read yet; a bad one is asked again next time."""
        if key in self._ignored or key.endswith(".tmp"):
            return False
        place = locations.parse_index_key(key)
        if place is None:
            self._ignored.add(key)
            self.report(key, "Its name is not <step>_<worker>.json.")
            return False
        step, worker = place
        if worker in self.files.get(step, ()) or not self._in_range(step):
            return False
        try:
            found = parse_index(self.store.read(key), key)
        except (TrialFileError, ObjectNotFoundError, StorageUnavailableError) as err:
            self.report(key, err)
            return False
        self.problems.pop(key, None)
        for name, reason in found.damaged.items():
            self.report(f"{key}: {name}", reason)
        if not found.entries:
            self._ignored.add(key)
            return False
        self._add(step, worker, found)
        return True

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

    def report(self, key: str, reason: object) -> None:
        """Say once what is wrong with a file."""
        text = str(reason)
        if self.problems.get(key) != text:
            if len(self.problems) < PROBLEMS_KEPT:
                self.problems[key] = text
            get_logger().warning("Trial %r: %s", self.store.uri, f"{key!r}: {text}")

    # -- asking ------------------------------------------------------------------------------

    def mode_of(self, step: int) -> tuple[ModeKeys, int] | None:
        """Return mode and mode step of a global step; of workers that disagree the first's."""
        workers = self.files.get(step)
        if not workers:
            return None
        found = workers[min(workers)]
        return found.mode, found.mode_step

    def mode_step_at(self, step: int, mode: ModeKeys) -> int:
        """Return the step within `mode` that a global step is."""
        if mode is ModeKeys.GLOBAL:
            return step
        return min(one.mode_step for one in self.files[step].values() if one.mode is mode)

    def missing_workers(self, step: int) -> list[str]:
        """Return the workers known by name that have not written a step, sorted."""
        return sorted(set(self.workers) - set(self.files[step]))

    def workers_with(self, name: str, step: int, mode: ModeKeys) -> list[str]:
        """Return the workers that saved anything of a tensor at a global step, sorted."""
        return sorted(
            [
                worker
                for worker, found in self.files.get(step, {}).items()
                if name in found.entries and (mode is ModeKeys.GLOBAL or found.mode is mode)
            ]
        )

    def original_name(self, name: str, steps: Iterable[int]) -> str | None:
        """Return the framework's own name of a tensor, from the first shape saved at `steps`."""
        for step in steps:
            for worker in self.workers_with(name, step, ModeKeys.GLOBAL):
                found = self.files[step][worker].entries[name].original_name
                if found:
                    return found
        return None

    def is_settled(self, step: int) -> bool:
        """Say whether nothing more is expected of a known global step."""
        return (
            self.loaded_all_steps
            or step <= self.last_complete_step
            or len(self.files.get(step, ())) >= self.num_workers > 0
        )

    def tensor(self, file: IndexFile, span: Span) -> Array:
        """Return the tensor of one record, read-only and in place; see `EventReader.tensor`."""
        if file.event_key is None:  # the index reader refuses records without an event file
            raise ObjectNotFoundError(file.key)
        return self.reader.tensor(file.event_key, span)

    def reduction(
        self, name: str, step: int, worker: str, operation: str, absolute: bool
    ) -> np.generic:
        """Return a reduction computed from the saved value, and keep it for the other rules."""
        place = (name, step, worker, operation, absolute)
        known = self._reductions.get(place)
        if known is None:
            file = self.files[step][worker]
            span = file.entries[name].raw
            if span is None:
                raise ObjectNotFoundError(file.key)
            known = compute(self.tensor(file, span), operation, absolute)
            if len(self._reductions) >= KEPT_REDUCTIONS:
                self._reductions.popitem(last=False)
            self._reductions[place] = known
        return known


def _insert(steps: list[int], step: int) -> None:
    """Insert into a sorted list, once; most steps come in order."""
    if not steps or steps[-1] < step:
        steps.append(step)
    elif steps[bisect_left(steps, step)] != step:
        insort(steps, step)

"""NewFiles: the index files of a trial that were not read yet, found without asking twice."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from smdebug.core import locations
from smdebug.core.index import IndexFile
from smdebug.core.locations import StepFile
from smdebug.core.read_pool import ReadPool, read_each
from smdebug.storage.protocol import Folder, FolderStore, TrialStore
from smdebug.trials.troubles import Troubles

Read = Callable[[], memoryview | bytes]


class NewFiles:
    """Finds index files.

    Parameters
    ----------
    store, pool
        Where they are, and what reads them ahead of time, if that is of use.
    range_steps
        ``(begin, end)``, half open; None is unbounded. Files of other steps are passed over.
    known
        The files that were read, by step and worker; it grows.
    troubles
        Those that could not be read are found again.

    Attributes
    ----------
    ignored
        Keys that are never read again.
    """

    def __init__(
        self,
        store: TrialStore,
        pool: ReadPool[memoryview] | None,
        range_steps: tuple[int | None, int | None] | None,
        known: Mapping[int, Mapping[str, IndexFile]],
        troubles: Troubles,
    ) -> None:
        self._store = store
        self._pool = pool
        self._range = range_steps or (None, None)
        self._known = known
        self._troubles = troubles
        self.ignored: set[str] = set()
        self._taken: dict[str, int] = {}  # folders all of whose files were read: hash of the names

    def behind(self, after: str) -> Iterator[tuple[str, StepFile, Read]]:
        """Yield key, place and content of the new files with keys after `after`.

        The content is asked for, or passed over, before the next one is.
        """
        if isinstance(self._store, FolderStore):
            for folder in self._store.folders(locations.INDEX, start_after=after):
                yield from self._in_folder(folder)
            return
        places: dict[str, StepFile] = {}

        def new() -> Iterator[str]:
            for key in self._store.list_keys(locations.INDEX, start_after=after):
                place = self.place_if_new(key)
                if place is not None:
                    places[key] = place
                    yield key

        for key, read in read_each(self._store, self._pool, new()):
            yield key, places.pop(key), read

    def _in_folder(self, folder: Folder) -> Iterator[tuple[str, StepFile, Read]]:
        """Yield what is new in a folder; one that is as it was is not looked through."""
        names = hash(tuple(folder.names))
        if self._taken.get(folder.key) == names:
            return
        for name in folder.names:
            key = folder.key + name
            place = self.place_if_new(key)
            if place is not None:
                yield key, place, partial(folder.read, name)
        if not any(key.startswith(folder.key) for key in self._troubles.unread_keys()):
            self._taken[folder.key] = names

    def place_if_new(self, key: str) -> StepFile | None:
        """Return what the name of an index file says, if it was not read yet and is wanted."""
        if key in self.ignored or key.endswith(".tmp"):
            return None
        place = locations.parse_index_key(key)
        if place is None:
            self.ignored.add(key)
            self._troubles.report(key, "Its name is not <step>_<worker>.json.")
            return None
        known = self._known.get(place.step)
        if (known is not None and place.worker in known) or not self._wants(place.step):
            return None
        return place

    def _wants(self, step: int) -> bool:
        begin, end = self._range
        return (begin is None or step >= begin) and (end is None or step < end)

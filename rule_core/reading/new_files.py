"""NewFiles: finds the index files of a trial that have not been read yet."""

from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial

from rule_core.format import paths
from rule_core.format.index_file import IndexFile
from rule_core.format.paths import StepFile
from rule_core.reading.file_problems import TrialFileProblems
from rule_core.storage.base import Folder, FolderStore, TrialStore
from rule_core.storage.read_pool import ReadPool, read_each

Read = Callable[[], memoryview | bytes]


class NewFiles:
    """Finds index files.

    Parameters
    ----------
    store, pool
        The store, and the threads that prefetch the files if that is useful.
    range_steps
        ``(begin, end)``, half-open; None is unbounded. Files of other steps are skipped.
    files
        The growing collection of files already read, by step and worker.
    file_problems
        Files that could not be read are found again.

    Attributes
    ----------
    ignored
        Keys that are never read again.
    only
        The steps and workers to read; None: all.
    """

    def __init__(
        self,
        store: TrialStore,
        pool: ReadPool[memoryview] | None,
        range_steps: tuple[int | None, int | None] | None,
        files: Mapping[int, Mapping[str, IndexFile]],
        file_problems: TrialFileProblems,
    ) -> None:
        self._store = store
        self._pool = pool
        self._range = range_steps or (None, None)
        self._files = files
        self._file_problems = file_problems
        self.ignored: set[str] = set()
        self.only: Container[StepFile] | None = None
        self._read_folders: dict[str, int] = {}  # completely read folders: hash of the names

    def after(self, last_key: str) -> Iterator[tuple[str, StepFile, Read]]:
        """Yield key, step file and content of the new files with keys after `last_key`.

        Read or skip the content before advancing.
        """
        if isinstance(self._store, FolderStore):
            for folder in self._store.folders(paths.INDEX, start_after=last_key):
                yield from self._in_folder(folder)
            return
        step_files: dict[str, StepFile] = {}

        def new() -> Iterator[str]:
            for key, step_file in self.keys(last_key):
                step_files[key] = step_file
                yield key

        for key, read in read_each(self._store, self._pool, new()):
            yield key, step_files.pop(key), read

    def keys(self, last_key: str) -> Iterator[tuple[str, StepFile]]:
        """Yield key and step file of the new files with keys after `last_key`, without reading."""
        for key in self._store.list_keys(paths.INDEX, start_after=last_key):
            step_file = self.parse_if_new(key)
            if step_file is not None:
                yield key, step_file

    def _in_folder(self, folder: Folder) -> Iterator[tuple[str, StepFile, Read]]:
        """Yield the new files of a folder; an unchanged folder is skipped."""
        names = hash(tuple(folder.names))
        if self._read_folders.get(folder.key) == names:
            return
        for name in folder.names:
            key = folder.key + name
            step_file = self.parse_if_new(key)
            if step_file is not None:
                yield key, step_file, partial(folder.read, name)
        if not any(key.startswith(folder.key) for key in self._file_problems.unread_keys()):
            self._read_folders[folder.key] = names

    def parse_if_new(self, key: str) -> StepFile | None:
        """Return the step and worker of an index file that has not been read and is in range."""
        if key in self.ignored or key.endswith(".tmp"):
            return None
        step_file = paths.parse_index_key(key)
        if step_file is None:
            self.ignored.add(key)
            self._file_problems.report(key, "Its name is not <step>_<worker>.json.")
            return None
        read_workers = self._files.get(step_file.step)
        is_read = read_workers is not None and step_file.worker in read_workers
        return None if is_read or not self._wants(step_file) else step_file

    def _wants(self, step_file: StepFile) -> bool:
        begin, end = self._range
        step = step_file.step
        is_in_range = (begin is None or step >= begin) and (end is None or step < end)
        return is_in_range and (self.only is None or step_file in self.only)

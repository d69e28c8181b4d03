"""Readers of Python profiles: the files of Python profilers in a folder or below an S3 address."""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from rule_core.exceptions import SMDebugValueError, TrialFileError
from rule_core.format.paths import is_inside
from rule_core.logger import get_logger
from rule_core.profiler.files import constants
from rule_core.profiler.python_profiles.cprofile_file import MAX_BYTES
from rule_core.profiler.python_profiles.download_folder import DownloadFolder
from rule_core.profiler.python_profiles.span import StepPythonProfileStats
from rule_core.profiler.python_profiles.types import ProfileFolderError
from rule_core.storage.base import (
    ByteRange,
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
)
from rule_core.storage.local import LocalStore
from rule_core.storage.read_pool import ReadPool
from rule_core.storage.uri import is_s3, open_store

T = TypeVar("T")
FRAMEWORK: Final = "framework/"
PROFILERS: Final = {
    constants.CPROFILE_STATS_FILENAME: constants.CPROFILE_NAME,
    constants.PYINSTRUMENT_JSON_FILENAME: constants.PYINSTRUMENT_NAME,
    constants.PYINSTRUMENT_HTML_FILENAME: constants.PYINSTRUMENT_NAME,
}
# One byte more than the limit, so that readers notice files that exceed it.
READ_RANGE: Final = ByteRange(0, MAX_BYTES + 1)
LONGEST_NAME: Final = 255  # bytes, the limit of file systems
PROBLEMS_KEPT: Final = 1000
_PARTS: Final = 5  # framework, profiler, node, span, file: the last parts of a profile's path


class ProfileFile(NamedTuple):
    """A profile's key in its store, and the span that its path describes."""

    key: str
    stats: StepPythonProfileStats


class ProblemList:
    """The problems of up to `PROBLEMS_KEPT` files, each logged once.

    Attributes
    ----------
    texts
        A sentence for each file.
    """

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def add(self, name: str, reason: object) -> None:
        """Record and log the problem of a file."""
        text = str(reason)
        if self.texts.get(name) != text and len(self.texts) < PROBLEMS_KEPT:
            self.texts[name] = text
            get_logger("profiler").warning("Python profile %r is left out. %s", name, text)


def usable(names: Iterable[str], load: Callable[[str], T], problems: ProblemList) -> dict[str, T]:
    """Return the contents of the usable files among `names`.

    Parameters
    ----------
    load
        Returns the content of a file.
    problems
        Receives the unusable files.

    Raises
    ------
    TrialFileError, ObjectNotFoundError, StorageUnavailableError
        The error of the first file, if all files are unusable.
    """
    contents: dict[str, T] = {}
    first_error: Exception | None = None
    for name in names:
        try:
            contents[name] = load(name)
        except (TrialFileError, ObjectNotFoundError, StorageUnavailableError) as err:
            problems.add(name, err)
            first_error = first_error or err
    if first_error is not None and not contents:
        raise first_error
    return contents


def profile_files(
    store: TrialStore, root: str, problems: ProblemList, prefix: str = ""
) -> Iterator[ProfileFile]:
    """Yield the files of Python profilers in a store, in the order of their keys.

    The last five parts of a path are framework, profiler, node, span and file name. The file name
    identifies the profiler.

    Parameters
    ----------
    store, prefix
        Location of the files.
    root
        The store's root, which precedes the keys and may contain some of the five parts.
    problems
        Receives profiles whose span has an invalid name. Files with other names are ignored.
    """
    for key in store.list_keys(prefix):
        path = f"{root.rstrip('/')}/{key}"
        parts = path.split("/")[-_PARTS:]
        profiler = PROFILERS.get(parts[-1])
        if profiler is None or len(parts) < _PARTS or not _can_be_file(key):
            get_logger("profiler").debug("File %r is not a Python profile.", path)
            continue
        framework, _, node, span, _ = parts
        try:
            yield ProfileFile(key, StepPythonProfileStats(framework, profiler, node, span, path))
        except SMDebugValueError as err:
            problems.add(path, err)


def _can_be_file(key: str) -> bool:
    """Return whether a key can be a path below its root; S3 allows longer names than folders."""
    return is_inside(key) and all(
        len(part) <= LONGEST_NAME for part in os.fsencode(key).split(b"/")
    )


def in_order(profiles: Iterable[StepPythonProfileStats]) -> list[StepPythonProfileStats]:
    """Return profiles sorted by start, then by node."""
    return sorted(
        profiles, key=lambda profile: (profile.start_time_since_epoch_in_micros, profile.node_id)
    )


class PythonStatsReader:
    """Reads the files of Python profilers below a local folder.

    Parameters
    ----------
    profile_dir
        The folder.

    Attributes
    ----------
    problems
        The skipped files, with the reasons.
    """

    def __init__(self, profile_dir: str | os.PathLike[str]) -> None:
        self.profile_dir = os.path.abspath(Path(profile_dir).expanduser())  # noqa: PTH100 - links stay
        self.problems = ProblemList()

    def load_python_profile_stats(self) -> list[StepPythonProfileStats]:
        """Return the current files, by start and node."""
        raise NotImplementedError

    def read(self, stats_path: str) -> memoryview:
        """Return the bytes of a listed file, up to `READ_RANGE`.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If it no longer exists, or cannot be read; links are not followed.
        """
        key = os.path.relpath(stats_path, self.profile_dir)
        return LocalStore(self.profile_dir).read(key, READ_RANGE)


class LocalPythonStatsReader(PythonStatsReader):
    """Finds the profiles in a local folder.

    Parameters
    ----------
    profile_dir
        ``.../framework/<framework>/<profiler>``, or any folder above.

    Raises
    ------
    ProfileFolderError
        If it is not a folder.
    """

    def __init__(self, profile_dir: str | os.PathLike[str]) -> None:
        super().__init__(profile_dir)
        if not Path(self.profile_dir).is_dir():
            raise ProfileFolderError(
                f"{os.fspath(profile_dir)!r} is not an existing folder of Python profiles."
            )

    def load_python_profile_stats(self) -> list[StepPythonProfileStats]:
        """Return the files that are in the folder now; see `PythonStatsReader`."""
        files = profile_files(LocalStore(self.profile_dir), self.profile_dir, self.problems)
        return in_order(file.stats for file in files)


class S3PythonStatsReader(PythonStatsReader):
    """Downloads profiles from S3 to ``<profile_dir>/python_stats/<node>/<span>/<file>``.

    Earlier downloads that are no longer in S3 are removed. All other files in that folder are left
    unchanged.

    Parameters
    ----------
    profile_dir
        A local folder, created if missing.
    s3_path
        The address above ``framework``.
    profiler_name
        Name of the profiler; None downloads the profiles of all.

    Raises
    ------
    ProfileFolderError
        If `s3_path` is not an S3 address.
    """

    def __init__(
        self, profile_dir: str | os.PathLike[str], s3_path: str, profiler_name: str | None = None
    ) -> None:
        super().__init__(Path(profile_dir) / "python_stats")
        if not is_s3(s3_path):
            raise ProfileFolderError(
                f"s3_path must be an address such as s3://bucket/prefix, got {s3_path!r}."
            )
        self.store = open_store(s3_path)
        self._leaves = {
            leaf for leaf, profiler in PROFILERS.items() if profiler_name in {None, profiler}
        }

    def load_python_profile_stats(self) -> list[StepPythonProfileStats]:
        """Download the current profiles; see `PythonStatsReader`.

        Raises
        ------
        StorageUnavailableError
            If S3 is unavailable.
        ProfileFolderError
            If a file or link in the folder is in the way.
        """
        remote_files = self._remote_files()
        with DownloadFolder(Path(self.profile_dir)) as folder:
            folder.keep_only(remote_files, self._leaves)
            downloaded = []
            for name, content in self._contents(remote_files):
                folder.put(name, content)
                downloaded.append(self._downloaded(name, remote_files[name].stats))
        return in_order(downloaded)

    def _contents(self, remote_files: dict[str, ProfileFile]) -> Iterator[tuple[str, bytes]]:
        """Yield the names and contents of usable profiles; several are read in parallel."""
        pool: ReadPool[memoryview] = ReadPool(self.store.costs.parallel)
        names = list(remote_files)
        for start in range(0, len(names), pool.size):
            batch = names[start : start + pool.size]
            keys = [remote_files[name].key for name in batch]
            futures = [pool.submit(partial(self.store.read, key, READ_RANGE)) for key in keys]
            for name, future in zip(batch, futures, strict=True):
                path = remote_files[name].stats.stats_path
                try:
                    content = bytes(future.result())
                except ObjectNotFoundError as err:  # removed since it was listed
                    self.problems.add(path, err)
                    continue
                if len(content) <= MAX_BYTES:
                    yield name, content
                else:
                    self.problems.add(path, f"It is longer than {MAX_BYTES} bytes.")

    def _remote_files(self) -> dict[str, ProfileFile]:
        """Return the profiles in S3 by their names in the folder."""
        remote_files: dict[str, ProfileFile] = {}
        for file in profile_files(self.store, self.store.uri, self.problems, FRAMEWORK):
            parts = file.key.split("/")
            if len(parts) <= _PARTS or parts[-1] not in self._leaves:
                continue
            first = remote_files.setdefault("/".join(parts[-3:]), file)
            if first is not file:
                text = f"Its node and span are those of {first.stats.stats_path!r}."
                self.problems.add(file.stats.stats_path, text)
        return remote_files

    def _downloaded(self, name: str, remote: StepPythonProfileStats) -> StepPythonProfileStats:
        """Return a profile with the path of its download."""
        _, span, _ = name.split("/")
        path = f"{self.profile_dir}/{name}"
        return StepPythonProfileStats(
            remote.framework, remote.profiler_name, remote.node_id, span, path
        )

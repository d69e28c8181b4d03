"""Readers of Python profiles: which files a profiler left in a folder, or below an S3 address."""

import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from rule_core.exceptions import SMDebugValueError
from rule_core.format.paths import is_inside
from rule_core.logger import get_logger
from rule_core.profiler.constants import (
    CPROFILE_NAME,
    CPROFILE_STATS_FILENAME,
    PYINSTRUMENT_HTML_FILENAME,
    PYINSTRUMENT_JSON_FILENAME,
    PYINSTRUMENT_NAME,
)
from rule_core.profiler.python_profiles.cprofile_file import MAX_BYTES
from rule_core.profiler.python_profiles.download_folder import DownloadFolder
from rule_core.profiler.python_profiles.span import StepPythonProfileStats
from rule_core.profiler.python_profiles.types import ProfileFolderError
from rule_core.storage import ByteRange, ObjectNotFoundError, TrialStore, open_store
from rule_core.storage.local import LocalStore
from rule_core.storage.read_pool import ReadPool
from rule_core.storage.uri import is_s3

FRAMEWORK: Final = "framework/"
PROFILERS: Final = {
    CPROFILE_STATS_FILENAME: CPROFILE_NAME,
    PYINSTRUMENT_JSON_FILENAME: PYINSTRUMENT_NAME,
    PYINSTRUMENT_HTML_FILENAME: PYINSTRUMENT_NAME,
}
# One byte more than may be: who reads it sees that it is too long.
READ_RANGE: Final = ByteRange(0, MAX_BYTES + 1)
LONGEST_NAME: Final = 255  # bytes that file systems take
PROBLEMS_KEPT: Final = 1000
_PARTS: Final = 5  # framework, profiler, node, span, file: the end of a profile's path


class ProfileFile(NamedTuple):
    """A profile's key in its store, and what its path says."""

    key: str
    stats: StepPythonProfileStats


class ProblemList:
    """What is wrong with files, a sentence for each, said once in the log: `PROBLEMS_KEPT` of them.

    Attributes
    ----------
    texts
        The sentences, by file.
    """

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def add(self, name: str, reason: object) -> None:
        """Take note of what is wrong with a file."""
        text = str(reason)
        if self.texts.get(name) != text and len(self.texts) < PROBLEMS_KEPT:
            self.texts[name] = text
            get_logger("profiler").warning("Python profile %r is left out. %s", name, text)


def profile_files(
    store: TrialStore, root: str, problems: ProblemList, prefix: str = ""
) -> Iterator[ProfileFile]:
    """Yield the files of Python profilers in a store, in the order of their keys.

    The last five parts of a path are framework, profiler, node, span and file name; the profiler is
    told by the file's name.

    Parameters
    ----------
    store, prefix
        Where to look.
    root
        The store's root as it stands in front of the keys: it may hold some of the parts.
    problems
        Takes profiles whose span has no known name. Files of other names are nobody's business.
    """
    for key in store.list_keys(prefix):
        place = f"{root.rstrip('/')}/{key}"
        parts = place.split("/")[-_PARTS:]
        profiler = PROFILERS.get(parts[-1])
        if profiler is None or len(parts) < _PARTS or not _can_be_file(key):
            get_logger("profiler").debug("File %r is none of a Python profiler.", place)
            continue
        framework, _, node, span, _ = parts
        try:
            yield ProfileFile(key, StepPythonProfileStats(framework, profiler, node, span, place))
        except SMDebugValueError as err:
            problems.add(place, err)


def _can_be_file(key: str) -> bool:
    """Say whether a key stays below its root, and can be a path of files: S3 takes longer ones."""
    return is_inside(key) and all(
        len(part) <= LONGEST_NAME for part in os.fsencode(key).split(b"/")
    )


def in_order(profiles: Iterable[StepPythonProfileStats]) -> list[StepPythonProfileStats]:
    """Return profiles by the time at which they begin, and of one time by their nodes."""
    return sorted(profiles, key=lambda one: (one.start_time_since_epoch_in_micros, one.node_id))


class PythonStatsReader:
    """What knows the files of Python profilers below a folder of this machine.

    Parameters
    ----------
    profile_dir
        The folder.

    Attributes
    ----------
    problems
        Files that are left out, and why.
    """

    def __init__(self, profile_dir: str | os.PathLike[str]) -> None:
        self.profile_dir = os.path.abspath(Path(profile_dir).expanduser())  # noqa: PTH100 - links stay
        self.problems = ProblemList()

    def load_python_profile_stats(self) -> list[StepPythonProfileStats]:
        """Return what there is now, by start and node."""
        raise NotImplementedError

    def read(self, stats_path: str) -> memoryview:
        """Return the bytes of a file that was listed, at most `READ_RANGE`.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If it is gone, or cannot be read; links are not followed.
        """
        key = os.path.relpath(stats_path, self.profile_dir)
        return LocalStore(self.profile_dir).read(key, READ_RANGE)


class LocalPythonStatsReader(PythonStatsReader):
    """Finds profiles where they are.

    Parameters
    ----------
    profile_dir
        ``.../framework/<framework>/<profiler>``, or any folder above.

    Raises
    ------
    ProfileFolderError
        If it is no folder.
    """

    def __init__(self, profile_dir: str | os.PathLike[str]) -> None:
        super().__init__(profile_dir)
        if not Path(self.profile_dir).is_dir():
            msg = f"There is no folder of Python profiles at {os.fspath(profile_dir)!r}."
            raise ProfileFolderError(msg)

    def load_python_profile_stats(self) -> list[StepPythonProfileStats]:
        """Return what is in the folder now; see `PythonStatsReader`."""
        found = profile_files(LocalStore(self.profile_dir), self.profile_dir, self.problems)
        return in_order(one.stats for one in found)


class S3PythonStatsReader(PythonStatsReader):
    """Downloads profiles, to ``<profile_dir>/python_stats/<node>/<span>/<file>``.

    Whatever else is in that folder stays as it is; what an earlier download left there and is
    no longer in S3 is removed.

    Parameters
    ----------
    profile_dir
        A folder of this machine; made if it is not there.
    s3_path
        The address above ``framework``.
    profiler_name
        Of which profiler; of each by default.

    Raises
    ------
    ProfileFolderError
        If `s3_path` is no address of S3.
    """

    def __init__(
        self, profile_dir: str | os.PathLike[str], s3_path: str, profiler_name: str | None = None
    ) -> None:
        super().__init__(Path(profile_dir) / "python_stats")
        if not is_s3(s3_path):
            msg = f"s3_path must be an address such as s3://bucket/prefix, got {s3_path!r}."
            raise ProfileFolderError(msg)
        self.store = open_store(s3_path)
        self._leaves = {
            leaf for leaf, profiler in PROFILERS.items() if profiler_name in {None, profiler}
        }

    def load_python_profile_stats(self) -> list[StepPythonProfileStats]:
        """Download what there is now; see `PythonStatsReader`.

        Raises
        ------
        StorageUnavailableError
            If S3 cannot be asked.
        ProfileFolderError
            If something in the folder is in the way.
        """
        wanted = self._wanted()
        with DownloadFolder(Path(self.profile_dir)) as folder:
            folder.keep_only(wanted, self._leaves)
            done = []
            for name, content in self._contents(wanted):
                folder.put(name, content)
                done.append(self._downloaded(name, wanted[name].stats))
        return in_order(done)

    def _contents(self, wanted: dict[str, ProfileFile]) -> Iterator[tuple[str, bytes]]:
        """Yield what profiles hold, but for those that cannot be used; a few are read at once."""
        pool: ReadPool[memoryview] = ReadPool(self.store.costs.parallel)
        names = list(wanted)
        while names:
            some, names = names[: pool.size], names[pool.size :]
            keys = [wanted[name].key for name in some]
            flying = [pool.submit(partial(self.store.read, key, READ_RANGE)) for key in keys]
            for name, future in zip(some, flying, strict=True):
                try:
                    content = bytes(future.result())
                except ObjectNotFoundError as err:  # gone since it was listed
                    self.problems.add(wanted[name].stats.stats_path, err)
                    continue
                if len(content) <= MAX_BYTES:
                    yield name, content
                else:
                    text = f"It is longer than {MAX_BYTES} bytes."
                    self.problems.add(wanted[name].stats.stats_path, text)

    def _wanted(self) -> dict[str, ProfileFile]:
        """Return the profiles in S3 by the place that they get."""
        wanted: dict[str, ProfileFile] = {}
        for one in profile_files(self.store, self.store.uri, self.problems, FRAMEWORK):
            parts = one.key.split("/")
            if len(parts) <= _PARTS or parts[-1] not in self._leaves:
                continue
            first = wanted.setdefault("/".join(parts[-3:]), one)
            if first is not one:
                text = f"Its node and span are those of {first.stats.stats_path!r}."
                self.problems.add(one.stats.stats_path, text)
        return wanted

    def _downloaded(self, name: str, there: StepPythonProfileStats) -> StepPythonProfileStats:
        _, span, _ = name.split("/")
        path = f"{self.profile_dir}/{name}"
        return StepPythonProfileStats(
            there.framework, there.profiler_name, there.node_id, span, path
        )

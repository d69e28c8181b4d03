"""A summary of profiler data at one moment, without waiting."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from rule_core.profiler.python_profiles import reader
from rule_core.profiler.python_profiles.other_tools import tool_profiles
from rule_core.sources.address import address_of
from rule_core.storage.local import LocalStore
from rule_runner.commands.profile.trials import look, reading
from rule_runner.errors import TrialError

if TYPE_CHECKING:
    from rule_core.trials.profiler_trial import ProfilerTrial

WINDOW_US: Final = 60_000_000


class FilesReport(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one kind of one node.

    Attributes
    ----------
    kind
        ``system``, or the suffix of timeline names.
    begin_us, end_us
        Epoch microseconds from the names of the first and last file: the start of files with
        system metrics, the end of timelines.
    nbytes
        None if the store does not know it.
    """

    kind: str
    node: str
    files: int
    nbytes: int | None
    begin_us: int
    end_us: int


class PythonReport(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one Python profiler on one node."""

    node: str
    profiler: str
    files: int
    modes: list[str]


class ProfileReport(msgspec.Struct, frozen=True, kw_only=True):
    """A summary of profiler data: the object of ``--format json``.

    Attributes
    ----------
    formats
        What files of other tools the data come from; [] for those of a profiler.
    begin_us, end_us
        Epoch microseconds; 0 without data.
    checked
        Whether all data were read, so that `problems` is complete.
    """

    schema_version: int = 1
    name: str
    path: str
    ended: bool
    formats: list[str]
    nodes: list[str]
    begin_us: int
    end_us: int
    system: list[FilesReport]
    framework: list[FilesReport]
    python: list[PythonReport]
    checked: bool
    problems: list[str]


def overview(path: str, *, check: bool = False) -> ProfileReport:
    """Return a summary of the profiler data at a path or an address.

    Parameters
    ----------
    check
        Whether to read all data to find damaged files.

    Raises
    ------
    TrialError
        If the folder does not exist, holds no profiler data, or cannot be read.
    """
    trial = look(path)
    problems = reader.ProblemList()
    with reading():
        if check:
            _read_all(trial)
        is_profiled = trial.source.files.store.is_profiled
        python = [*(_python(trial, problems) if is_profiled else _of_other_tools(trial))]
    files = trial.source.files
    if not (files.system or files.traces or python or trial.job_finished()):
        raise TrialError(
            f"Folder {path!r} holds no profiler data: neither 'system/' nor 'framework/' has a "
            "file of a profiler, and there is no trace of torch.profiler, dump of a flight "
            "recorder, answer of Prometheus or profile of py-spy or scalene. Give the folder that "
            "holds them."
        )
    return ProfileReport(
        name=trial.name,
        path=address_of(path).canonical,
        ended=trial.job_finished(),
        formats=[each.label for each in files.store.formats],
        nodes=trial.nodes,
        begin_us=trial.first_timestamp,
        end_us=trial.newest_timestamp,
        system=[
            _report(trial, "system", node, [(file.start_us, file.key) for file in group])
            for node, group in sorted(files.system.items())
        ],
        framework=[
            _report(trial, kind, node, [(file.end_us, file.key) for file in group])
            for (kind, node), group in sorted(files.traces.items())
        ],
        python=python,
        checked=check,
        problems=[*trial.problems, *problems.texts.values()],
    )


def _report(
    trial: "ProfilerTrial", kind: str, node: str, files: list[tuple[int, str]]
) -> FilesReport:
    return FilesReport(
        kind=kind,
        node=node,
        files=len(files),
        nbytes=_size(trial, (key for _, key in files)),
        begin_us=files[0][0],
        end_us=files[-1][0],
    )


def _size(trial: "ProfilerTrial", keys: Iterable[str]) -> int | None:
    """Return the bytes of some files; None if the store does not know it."""
    store = trial.store
    if trial.source.files.store.converts or not isinstance(store, LocalStore):
        return None
    total = 0
    for key in keys:
        with suppress(OSError):  # removed meanwhile
            total += (store.root / key).stat().st_size
    return total


def _python(trial: "ProfilerTrial", problems: reader.ProblemList) -> Iterator[PythonReport]:
    """Yield the profiles of Python profilers below ``framework``."""
    store = trial.store
    root = os.path.abspath(store.root) if isinstance(store, LocalStore) else store.uri  # noqa: PTH100 - keeps links
    groups: dict[tuple[str, str], list[reader.ProfileFile]] = {}
    for file in reader.profile_files(store, root, problems, reader.FRAMEWORK):
        groups.setdefault((file.stats.node_id, file.stats.profiler_name), []).append(file)
    for (node, profiler), files in sorted(groups.items()):
        modes = Counter(file.stats.start_mode.name for file in files)
        yield PythonReport(node=node, profiler=profiler, files=len(files), modes=sorted(modes))


def _of_other_tools(trial: "ProfilerTrial") -> Iterator[PythonReport]:
    """Yield the profiles of other tools."""
    _, profiles = tool_profiles(trial.source.store)
    for tool, files in sorted(Counter(profile.tool for profile in profiles).items()):
        yield PythonReport(node="", profiler=tool, files=files, modes=[])


def _read_all(trial: "ProfilerTrial") -> None:
    """Read all data, minute by minute, so that the trial records problems of damaged files."""
    start = trial.next_timestamp(trial.first_timestamp)
    while start is not None and start <= trial.newest_timestamp:
        trial.system_samples(start, start + WINDOW_US)
        trial.framework_events(start, start + WINDOW_US)
        start = trial.next_timestamp(start + WINDOW_US)

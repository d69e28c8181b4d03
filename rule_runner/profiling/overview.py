"""What profiler data there are, looked at once and without waiting."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from rule_runner.errors import TrialError
from rule_runner.openings import real_path
from rule_runner.profiling.opening import look, reading
from smdebug.profiler.analysis.python_stats_reader import (
    FRAMEWORK,
    ProblemList,
    ProfileFile,
    profile_files,
)
from smdebug.storage.local import LocalStore

if TYPE_CHECKING:
    from smdebug.trials.profiler_trial import ProfilerTrial

SCHEMA_VERSION: Final = 1
WINDOW_US: Final = 60_000_000


class FilesReport(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one kind of one node.

    Attributes
    ----------
    kind
        ``system``, or how the names of timelines end.
    begin_us, end_us
        Epoch microseconds, as the names of the first and the last file say: of system metrics when
        a file begins, of timelines when it ends.
    nbytes
        None where the store does not tell.
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
    """What profiler data there are: the one object of ``--format json``.

    Attributes
    ----------
    begin_us, end_us
        Epoch microseconds; 0 without data.
    checked
        Whether all data were read, so that `problems` has all damages.
    """

    schema_version: int = SCHEMA_VERSION
    name: str
    path: str
    ended: bool
    nodes: list[str]
    begin_us: int
    end_us: int
    system: list[FilesReport]
    framework: list[FilesReport]
    python: list[PythonReport]
    checked: bool
    problems: list[str]


def overview(path: str, *, check: bool = False) -> ProfileReport:
    """Look once at the profiler data at a path or an address.

    Parameters
    ----------
    check
        Whether all of them are read, to see what is damaged.

    Raises
    ------
    TrialError
        If there is no folder, nothing of a profiler in it, or it cannot be read.
    """
    trial = look(path)
    problems = ProblemList()
    with reading():
        python = list(_python(trial, problems))
        if check:
            _read_all(trial)
    files = trial.source.files
    if not (files.system or files.traces or python or trial.job_finished()):
        msg = (
            f"Folder {path!r} holds no profiler data: neither 'system/' nor 'framework/' has a "
            "file of a profiler. Give the folder that holds both."
        )
        raise TrialError(msg)
    return ProfileReport(
        name=trial.name,
        path=real_path(path),
        ended=trial.job_finished(),
        nodes=trial.nodes,
        begin_us=trial.first_timestamp,
        end_us=trial.newest_timestamp,
        system=[
            _report(trial, "system", node, [(one.start_us, one.key) for one in own])
            for node, own in sorted(files.system.items())
        ],
        framework=[
            _report(trial, kind, node, [(one.end_us, one.key) for one in own])
            for (kind, node), own in sorted(files.traces.items())
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
    """Return the bytes of some files; None where the store does not tell."""
    store = trial.store
    if not isinstance(store, LocalStore):
        return None
    total = 0
    for key in keys:
        try:
            total += (store.root / key).stat().st_size
        except OSError:  # removed meanwhile
            continue
    return total


def _python(trial: "ProfilerTrial", problems: ProblemList) -> Iterator[PythonReport]:
    """Yield what Python profilers wrote below ``framework``."""
    store = trial.store
    root = os.path.abspath(store.root) if isinstance(store, LocalStore) else store.uri  # noqa: PTH100 - links stay
    groups: dict[tuple[str, str], list[ProfileFile]] = {}
    for one in profile_files(store, root, problems, FRAMEWORK):
        groups.setdefault((one.stats.node_id, one.stats.profiler_name), []).append(one)
    for (node, profiler), own in sorted(groups.items()):
        modes = Counter(one.stats.start_mode.name for one in own)
        yield PythonReport(node=node, profiler=profiler, files=len(own), modes=sorted(modes))


def _read_all(trial: "ProfilerTrial") -> None:
    """Read all data, minute by minute: what is damaged is among the trial's problems then."""
    at = trial.next_timestamp(trial.first_timestamp)
    while at is not None and at <= trial.newest_timestamp:
        trial.system_samples(at, at + WINDOW_US)
        trial.framework_events(at, at + WINDOW_US)
        at = trial.next_timestamp(at + WINDOW_US)

"""The contents of Python profiles: sums of cProfile tables, and frames of pyinstrument."""

import pstats
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from rule_core.exceptions import CorruptFileError, TrialFileError
from rule_core.profiler.files.constants import PYINSTRUMENT_JSON_FILENAME
from rule_core.profiler.python_profiles.cprofile_file import MAX_BYTES, parse_cprofile
from rule_core.profiler.python_profiles.reader import ProblemList
from rule_core.profiler.python_profiles.span import StepPythonProfileStats
from rule_core.profiler.python_profiles.stats import PyinstrumentStepStats
from rule_core.storage import ObjectNotFoundError, StorageUnavailableError

T = TypeVar("T")
Read = Callable[[StepPythonProfileStats], memoryview]
_JSON: Any = msgspec.json.Decoder(dict[str, Any])


def merged_cprofiles(
    profiles: Iterable[StepPythonProfileStats], read: Read, problems: ProblemList
) -> pstats.Stats:
    """Return the sum of several cProfile tables.

    Parameters
    ----------
    profiles
        Files of cProfile.
    read
        Returns the bytes of a file.
    problems
        Receives the unusable files.

    Raises
    ------
    TrialFileError, ObjectNotFoundError, StorageUnavailableError
        The error of the first file, if all files are unusable.
    """
    merged = pstats.Stats()
    for path, table in _usable(profiles, read, parse_cprofile, problems):
        stats = pstats.Stats()
        vars(stats).update(stats=table, files=[path])
        stats.get_top_level_stats()
        merged.add(stats)
    return merged


def pyinstrument_sessions(
    profiles: Iterable[StepPythonProfileStats], read: Read, problems: ProblemList
) -> list[PyinstrumentStepStats]:
    """Return the record of each span, in the order of the files.

    Parameters
    ----------
    profiles
        Files of pyinstrument: JSON files, and HTML files, which are not opened.
    read, problems
        See `merged_cprofiles`.

    Raises
    ------
    TrialFileError, ObjectNotFoundError, StorageUnavailableError
        The error of the first JSON file, if all JSON files are unusable.
    """
    files = list(profiles)
    documents = [file for file in files if _is_json(file)]
    frames = dict(_usable(documents, read, parse_pyinstrument, problems))
    spans: dict[str, PyinstrumentStepStats] = {}
    for file in files:
        folder = file.stats_path.rpartition("/")[0]
        span = spans.setdefault(folder, PyinstrumentStepStats(None, None))
        if _is_json(file):
            span.json_stats = frames.get(file.stats_path)
        else:
            span.html_file_path = file.stats_path
    return list(spans.values())


def _is_json(file: StepPythonProfileStats) -> bool:
    return file.stats_path.endswith(PYINSTRUMENT_JSON_FILENAME)


def parse_pyinstrument(name: str, data: bytes | memoryview) -> dict[str, Any]:
    """Return the content of a JSON file of pyinstrument.

    Raises
    ------
    CorruptFileError
        If it is not a JSON object, is nested too deeply or is too long.
    """
    if len(data) > MAX_BYTES:
        raise CorruptFileError(name, f"at most {MAX_BYTES} bytes", "more")
    try:
        content: dict[str, Any] = _JSON.decode(data)
    except ValueError as err:  # not JSON, or not UTF-8
        raise CorruptFileError(name, "a JSON object", str(err).rstrip(".")) from err
    except RecursionError as err:
        raise CorruptFileError(name, "a JSON object", "one that is nested too deeply") from err
    return content


def _usable(
    profiles: Iterable[StepPythonProfileStats],
    read: Read,
    parse: Callable[[str, memoryview], T],
    problems: ProblemList,
) -> list[tuple[str, T]]:
    """Return the contents of the usable files, with their paths."""
    contents = []
    first_error: Exception | None = None
    for profile in profiles:
        path = profile.stats_path
        try:
            contents.append((path, parse(path, read(profile))))
        except (TrialFileError, ObjectNotFoundError, StorageUnavailableError) as err:
            problems.add(path, err)
            first_error = first_error or err
    if first_error is not None and not contents:
        raise first_error
    return contents

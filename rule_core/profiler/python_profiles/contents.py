"""What is in the files of Python profilers: tables of cProfile added up, frames of pyinstrument."""

import pstats
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from rule_core.exceptions import CorruptFileError, TrialFileError
from rule_core.profiler.constants import PYINSTRUMENT_JSON_FILENAME
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
    """Return what cProfile recorded over several spans, added up.

    Parameters
    ----------
    profiles
        Files of cProfile.
    read
        Gives the bytes of one.
    problems
        Takes those that cannot be used.

    Raises
    ------
    TrialFileError, ObjectNotFoundError, StorageUnavailableError
        If there are files and none of them can be used: what is wrong with the first.
    """
    merged = pstats.Stats()
    for path, table in _usable(profiles, read, parse_cprofile, problems):
        one = pstats.Stats()
        vars(one).update(stats=table, files=[path])
        one.get_top_level_stats()
        merged.add(one)
    return merged


def pyinstrument_sessions(
    profiles: Iterable[StepPythonProfileStats], read: Read, problems: ProblemList
) -> list[PyinstrumentStepStats]:
    """Return what pyinstrument recorded, one for each span, in the order of the files.

    Parameters
    ----------
    profiles
        Files of pyinstrument: JSON and HTML, of which the latter are not opened.
    read, problems
        See `merged_cprofiles`.

    Raises
    ------
    TrialFileError, ObjectNotFoundError, StorageUnavailableError
        See `merged_cprofiles`; of the JSON files.
    """
    files = list(profiles)
    documents = [one for one in files if _is_json(one)]
    frames = dict(_usable(documents, read, parse_pyinstrument, problems))
    spans: dict[str, PyinstrumentStepStats] = {}
    for one in files:
        folder = one.stats_path.rpartition("/")[0]
        span = spans.setdefault(folder, PyinstrumentStepStats(None, None))
        if _is_json(one):
            span.json_stats = frames.get(one.stats_path)
        else:
            span.html_file_path = one.stats_path
    return list(spans.values())


def _is_json(one: StepPythonProfileStats) -> bool:
    return one.stats_path.endswith(PYINSTRUMENT_JSON_FILENAME)


def parse_pyinstrument(name: str, data: bytes | memoryview) -> dict[str, Any]:
    """Return what a JSON file of pyinstrument holds.

    Raises
    ------
    CorruptFileError
        If it is no JSON object, is nested too deeply or too long.
    """
    if len(data) > MAX_BYTES:
        raise CorruptFileError(name, f"at most {MAX_BYTES} bytes", "more")
    try:
        found: dict[str, Any] = _JSON.decode(data)
    except ValueError as err:  # no JSON, or no UTF-8 in it
        raise CorruptFileError(name, "a JSON object", str(err).rstrip(".")) from err
    except RecursionError as err:
        raise CorruptFileError(name, "a JSON object", "one that is nested too deeply") from err
    return found


def _usable(
    profiles: Iterable[StepPythonProfileStats],
    read: Read,
    parse: Callable[[str, memoryview], T],
    problems: ProblemList,
) -> list[tuple[str, T]]:
    """Return what is in the files that can be used, with their paths."""
    found = []
    first: Exception | None = None
    for one in profiles:
        path = one.stats_path
        try:
            found.append((path, parse(path, read(one))))
        except (TrialFileError, ObjectNotFoundError, StorageUnavailableError) as err:
            problems.add(path, err)
            first = first or err
    if first is not None and not found:
        raise first
    return found

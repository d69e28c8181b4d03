"""The contents of Python profiles: functions with their times, and pyinstrument records.

The tables of several files of cProfile are added up; the records of pyinstrument stay apart.
"""

import io
import pstats
import sys
from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

from rule_core.exceptions import CorruptFileError
from rule_core.optional_imports import data_frame
from rule_core.profiler.files.constants import PYINSTRUMENT_JSON_FILENAME
from rule_core.profiler.files.whole_text import decoded
from rule_core.profiler.python_profiles.cprofile_file import (
    MAX_BYTES,
    Callers,
    Function,
    Table,
    parse_cprofile,
)
from rule_core.profiler.python_profiles.reader import ProblemList, usable
from rule_core.profiler.python_profiles.span import StepPythonProfileStats
from rule_core.profiler.python_profiles.types import ProfileArgumentError

if TYPE_CHECKING:
    import pandas as pd

Read = Callable[[str], memoryview]
_COLUMNS: Final = [
    "function name",
    "# of primitive calls",
    "# of total calls",
    "total time",
    "cumulative time",
]


class Metrics(Enum):
    """Sort keys of functions; the values are those of `pstats`."""

    TOTAL_TIME = "tottime"  # seconds in the function itself
    CUMULATIVE_TIME = "cumtime"  # seconds in it and in its callees
    PRIMITIVE_CALLS = "pcalls"  # calls that are not recursive
    TOTAL_CALLS = "ncalls"


class cProfileFunctionStats:  # noqa: N801 - the documented name
    """One function of a profile, printed as a dictionary.

    Parameters
    ----------
    key
        File, line and name.
    value
        Primitive calls, all calls, own time, cumulative time (seconds), and its callers.

    Attributes
    ----------
    function_name
        ``file:line(name)``, or ``{name}`` for built-in functions.
    prim_calls, total_calls
        Numbers of non-recursive calls and of all calls.
    total_time, cumulative_time
        Seconds in the function itself, and including its callees.
    callers
        Names of the functions that call it.
    """

    def __init__(self, key: Function, value: tuple[int, int, float, float, Callers]) -> None:
        self.function_name = _name(key)
        self.prim_calls, self.total_calls, self.total_time, self.cumulative_time, callers = value
        self.callers = [_name(caller) for caller in callers]

    def as_row(self) -> dict[str, Any]:
        """Return the function as a table row."""
        calls = self.prim_calls, self.total_calls
        values = self.function_name, *calls, self.total_time, self.cumulative_time
        return dict(zip(_COLUMNS, values, strict=True))

    def __repr__(self) -> str:
        return repr(self.as_row())


def _name(key: Function) -> str:
    return str(pstats.func_std_string(key))  # type: ignore[attr-defined]  # typeshed lacks it


class cProfileStats:  # noqa: N801 - the documented name
    """The functions of one profile, or the sum of several.

    Parameters
    ----------
    ps
        The profile, for the methods of `pstats`.

    Attributes
    ----------
    function_stats_list
        The functions.
    """

    def __init__(self, ps: pstats.Stats) -> None:
        self.ps = ps
        table = cast("Table", vars(ps)["stats"])
        self.function_stats_list = [cProfileFunctionStats(*item) for item in table.items()]

    def print_top_n_functions(self, by: Metrics, n: int = 10) -> None:
        """Print the first functions to ``sys.stdout``.

        Parameters
        ----------
        by
            Sort key.
        n
            Number of functions.

        Raises
        ------
        ProfileArgumentError
            If `by` is not a `Metrics`, or `n` not an integer.
        """
        _check(by, n)
        printed: Any = io.StringIO()
        stream: Any = vars(self.ps)
        stream["stream"] = printed
        try:
            self.ps.sort_stats(by.value).print_stats(n)
        finally:
            stream["stream"] = sys.stdout
        sys.stdout.write(_printable(printed.getvalue()))

    print_top_n_function = print_top_n_functions  # the name in the documentation's example

    def get_function_stats(self) -> "pd.DataFrame":
        """Return a frame with a row for each function.

        Its columns are ``function name`` (text), ``# of primitive calls``, ``# of total calls``
        (integers), ``total time`` and ``cumulative time`` (seconds).
        """
        rows = [function.as_row() for function in self.function_stats_list]
        return data_frame(rows, columns=_COLUMNS)


def _check(by: object, n: object) -> None:
    if not isinstance(by, Metrics):
        raise ProfileArgumentError(f"by must be one of Metrics, got {by!r}.")
    if not isinstance(n, int):
        raise ProfileArgumentError(f"n must be a whole number, got {n!r}.")


def _printable(text: str) -> str:
    """Escape control characters except line breaks."""
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
        for char in text
    )


class PyinstrumentStepStats:
    """The pyinstrument record of one span.

    Parameters
    ----------
    html_file_path
        Path of its page, which is untrusted and not opened here; None if missing.
    json_stats
        Content of its JSON file; None if missing.
    """

    def __init__(self, html_file_path: str | None, json_stats: dict[str, Any] | None) -> None:
        self.html_file_path = html_file_path
        self.json_stats = json_stats


def merged_cprofiles(
    profiles: Iterable[StepPythonProfileStats], read: Read, problems: ProblemList
) -> pstats.Stats:
    """Return the sum of several cProfile tables.

    Parameters
    ----------
    profiles
        Files of cProfile.
    read
        Returns the bytes of a file by its path.
    problems
        Receives the unusable files.

    Raises
    ------
    TrialFileError, ObjectNotFoundError, StorageUnavailableError
        The error of the first file, if all files are unusable.
    """
    merged = pstats.Stats()
    paths = [profile.stats_path for profile in profiles]
    tables = usable(paths, lambda path: parse_cprofile(path, read(path)), problems)
    for path, table in tables.items():
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
    documents = [file.stats_path for file in files if _is_json(file)]
    frames = usable(documents, lambda path: parse_pyinstrument(path, read(path)), problems)
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
    return decoded(name, data, dict[str, Any], "a JSON object")

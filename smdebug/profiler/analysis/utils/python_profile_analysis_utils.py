"""What Python profiles hold: functions and their times, and what pyinstrument recorded."""

import io
import pstats
import sys
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

from smdebug.profiler.analysis.cprofile_file import Callers, Function, Table
from smdebug.profiler.analysis.extras import import_pandas
from smdebug.profiler.analysis.utils.python_profile_span import StepPythonProfileStats
from smdebug.profiler.python_profile_utils import (
    ProfileArgumentError,
    PythonProfileModes,
    StepPhase,
    str_to_python_profile_mode,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Metrics",
    "PyinstrumentStepStats",
    "PythonProfileModes",
    "StepPhase",
    "StepPythonProfileStats",
    "cProfileFunctionStats",
    "cProfileStats",
    "str_to_python_profile_mode",
]

_COLUMNS: Final = [
    "function name",
    "# of primitive calls",
    "# of total calls",
    "total time",
    "cumulative time",
]


class Metrics(Enum):
    """By what functions are sorted; the values are those that `pstats` knows."""

    TOTAL_TIME = "tottime"  # seconds in the function itself
    CUMULATIVE_TIME = "cumtime"  # seconds in it and in all that it calls
    PRIMITIVE_CALLS = "pcalls"  # calls that are not recursive
    TOTAL_CALLS = "ncalls"


class cProfileFunctionStats:  # noqa: N801 - the documented name
    """One function of a profile; it prints as a dictionary of its numbers.

    Parameters
    ----------
    key
        File, line and name.
    value
        Primitive calls, all calls, own time, cumulative time (seconds), and its callers.

    Attributes
    ----------
    function_name
        ``file:line(name)``; of what is built in, ``{name}``.
    prim_calls, total_calls
        Calls that are not recursive; all.
    total_time, cumulative_time
        Seconds in the function itself; in it and in all that it calls.
    callers
        Names of the functions that call it.
    """

    def __init__(self, key: Function, value: tuple[int, int, float, float, Callers]) -> None:
        self.function_name = _name(key)
        self.prim_calls, self.total_calls, self.total_time, self.cumulative_time, callers = value
        self.callers = [_name(caller) for caller in callers]

    def as_row(self) -> dict[str, Any]:
        """Return its name and numbers under the titles of a table's columns."""
        calls = self.prim_calls, self.total_calls
        values = self.function_name, *calls, self.total_time, self.cumulative_time
        return dict(zip(_COLUMNS, values, strict=True))

    def __repr__(self) -> str:
        return repr(self.as_row())


def _name(key: Function) -> str:
    return str(pstats.func_std_string(key))  # type: ignore[attr-defined]  # typeshed lacks it


class cProfileStats:  # noqa: N801 - the documented name
    """The functions of one profile, or of several added up.

    Parameters
    ----------
    ps
        All of it, for `pstats`' own methods.

    Attributes
    ----------
    function_stats_list
        The functions, one by one.
    """

    def __init__(self, ps: pstats.Stats) -> None:
        self.ps = ps
        table = cast("Table", vars(ps)["stats"])
        self.function_stats_list = [cProfileFunctionStats(*one) for one in table.items()]

    def print_top_n_functions(self, by: Metrics, n: int = 10) -> None:
        """Print the first functions to ``sys.stdout``.

        Parameters
        ----------
        by
            What they are sorted by.
        n
            How many.

        Raises
        ------
        ProfileArgumentError
            If `by` is none of `Metrics`, or `n` no whole number.
        """
        _check(by, n)
        printed: Any = io.StringIO()
        stream: Any = vars(self.ps)
        stream["stream"] = printed
        try:
            self.ps.sort_stats(by.value).print_stats(n)
        finally:
            stream["stream"] = sys.stdout
        sys.stdout.write(_harmless(printed.getvalue()))

    print_top_n_function = print_top_n_functions  # as the documents' example has it

    def get_function_stats(self) -> "pd.DataFrame":
        """Return a frame with a row for each function.

        Its columns are ``function name`` (text), ``# of primitive calls``, ``# of total calls``
        (whole numbers), ``total time`` and ``cumulative time`` (seconds).
        """
        rows = [one.as_row() for one in self.function_stats_list]
        frame: pd.DataFrame = import_pandas().DataFrame(rows, columns=_COLUMNS)
        return frame


def _check(by: object, n: object) -> None:
    if not isinstance(by, Metrics):
        msg = f"by must be one of Metrics, got {by!r}."
        raise ProfileArgumentError(msg)
    if not isinstance(n, int):
        msg = f"n must be a whole number, got {n!r}."
        raise ProfileArgumentError(msg)


def _harmless(text: str) -> str:
    """Return a text of lines without anything else that a terminal would obey."""
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
        for char in text
    )


class PyinstrumentStepStats:
    """What pyinstrument recorded over one span.

    Parameters
    ----------
    html_file_path
        Its page, which is a stranger's: nobody here opens it. None if there is none.
    json_stats
        What its JSON file holds; None if there is none.
    """

    def __init__(self, html_file_path: str | None, json_stats: dict[str, Any] | None) -> None:
        self.html_file_path = html_file_path
        self.json_stats = json_stats

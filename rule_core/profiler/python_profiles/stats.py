"""The contents of Python profiles: functions with their times, and pyinstrument records."""

import io
import pstats
import sys
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

from rule_core.optional_imports import data_frame
from rule_core.profiler.python_profiles.cprofile_file import Callers, Function, Table
from rule_core.profiler.python_profiles.types import ProfileArgumentError

if TYPE_CHECKING:
    import pandas as pd

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
        msg = f"by must be one of Metrics, got {by!r}."
        raise ProfileArgumentError(msg)
    if not isinstance(n, int):
        msg = f"n must be a whole number, got {n!r}."
        raise ProfileArgumentError(msg)


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

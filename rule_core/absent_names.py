"""absent_names: errors that name the replacement of a name that smdebug has and this lacks."""

from collections.abc import Callable, Mapping
from typing import Any


def absent_names(module: str, replacements: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the function `__getattr__` of a module that lacks some names of smdebug.

    Parameters
    ----------
    module
        Name of the module.
    replacements
        What to use instead, by name.

    Examples
    --------
    >>> absent_names("smdebug.core.writer", {"FileWriter": "TrialWriter"})("FileWriter")
    Traceback (most recent call last):
    ImportError: smdebug.core.writer.FileWriter is not offered: use TrialWriter.
    """

    def get(name: str) -> Any:
        if name in replacements:
            raise ImportError(f"{module}.{name} is not offered: use {replacements[name]}.")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return get


def setup_profiler_report(processing_job_arn: str, opt_out: bool = False) -> None:
    """Do nothing; smdebug tells AWS that a notebook of a profiler report was opened."""
    del processing_job_arn, opt_out

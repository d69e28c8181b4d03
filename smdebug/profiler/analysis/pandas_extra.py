"""import_pandas: pandas, which only those who make frames need."""

from typing import Any

from smdebug.exceptions import SMDebugRuntimeError


def import_pandas() -> Any:
    """Return pandas.

    Raises
    ------
    SMDebugRuntimeError
        If it is not installed.
    """
    try:
        import pandas as pd  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as err:
        msg = "Frames need pandas. Install it with pip install 'rule-runner[profiler]'."
        raise SMDebugRuntimeError(msg) from err
    return pd

"""The JSON file of a profiler rule's report, which notebooks and the profiler report read."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from smdebug.storage.local_output import LocalOutput
from smdebug.storage.publishing import publish

FOLDER: Final = "profiler-output/profiler-reports"


def write_report(output: Path, rule_name: str, report: Mapping[str, Any]) -> Path:
    """Write a rule's report below its output folder, whole or not at all; return the file's path.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    key = f"{FOLDER}/{rule_name}.json"
    text = json.dumps(plain(report), indent=1, allow_nan=False)
    publish(LocalOutput(output), key, text.encode())
    return output / key


def plain(value: Any) -> Any:
    """Return what JSON can hold: numpy's numbers as Python's, names of what is not finite.

    >>> plain({"a": np.float64(0.5), "b": (np.int32(1), float("nan")), 3: np.arange(2)})
    {'a': 0.5, 'b': [1, 'NaN'], '3': [0, 1]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    return value if isinstance(value, bool | int | float | str | None) else str(value)

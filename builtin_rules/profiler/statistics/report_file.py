"""Write the report of a profiler rule as JSON, for notebooks and the profiler report."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from smdebug.rules.extensions import LocalOutput, publish

OUTPUT_FOLDER: Final = "profiler-output"
FOLDER: Final = f"{OUTPUT_FOLDER}/profiler-reports"


def write_report(output: Path, rule_name: str, report: Mapping[str, Any]) -> Path:
    """Write the report of a rule atomically below an output folder, and return the path.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    key = f"{FOLDER}/{rule_name}.json"
    text = json.dumps(plain(report), indent=1, allow_nan=False)
    publish(LocalOutput(output), key, text.encode())
    return output / key


def plain(value: Any) -> Any:
    """Return a JSON-compatible value: Python numbers for numpy's, names for non-finite ones.

    >>> plain({"a": np.float64(0.5), "b": (np.int32(1), float("nan")), 3: np.arange(2)})
    {'a': 0.5, 'b': [1, 'NaN'], '3': [0, 1]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    return value if isinstance(value, bool | int | float | str | None) else str(value)

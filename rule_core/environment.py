"""number, size: read numeric settings from the environment."""

import math
import os
import re
from collections.abc import Mapping
from typing import Final

from rule_core.exceptions import SMDebugValueError

# SageMaker sets this variable in training jobs, and writes end marks itself.
ON_SAGEMAKER: Final = "TRAINING_JOB_NAME"

_SIZE: Final = re.compile(r"(\d+) ?(?:([KMGT])(i?)B?)?", re.IGNORECASE)
_POWERS: Final = " KMGT"


def number(name: str, default: float, unit: str, environ: Mapping[str, str] | None = None) -> float:
    """Read a number from the environment.

    Parameters
    ----------
    name
        The variable; a blank value counts as missing.
    default
        The result if the variable is missing.
    unit
        The unit in the plural, for the error message.
    environ
        The environment; by default that of the process.

    Raises
    ------
    SMDebugValueError
        If the value is not a finite number >= 0.
    """
    text = (os.environ if environ is None else environ).get(name, "").strip()
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise SMDebugValueError(
            f"The environment's {name} must be a number of {unit} >= 0, got {text!r}."
        )
    return value


def size(name: str, default: int, environ: Mapping[str, str] | None = None) -> int:
    """Read a number of bytes from the environment, such as ``7``, ``500MB`` or ``1 GiB``.

    Parameters
    ----------
    name
        The variable; a blank value counts as missing.
    default
        The result if the variable is missing.
    environ
        The environment; by default that of the process.

    Raises
    ------
    SMDebugValueError
        If the value is not a size.

    >>> size("X", 0, {"X": "500MB"}), size("X", 0, {"X": "1 GiB"}), size("X", 7, {})
    (500000000, 1073741824, 7)
    """
    text = (os.environ if environ is None else environ).get(name, "").strip()
    if not text:
        return default
    match = _SIZE.fullmatch(text)
    if match is None:
        raise SMDebugValueError(
            f"The environment's {name} must be a size such as 10GiB, got {text!r}."
        )
    digits, letter, binary = match.groups()
    power = _POWERS.index((letter or " ").upper())
    return int(digits) * int((1024 if binary else 1000) ** power)

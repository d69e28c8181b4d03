"""number: what the environment says of how long, how many or how far."""

import math
import os
from collections.abc import Mapping

from smdebug.exceptions import SMDebugValueError


def number(name: str, default: float, unit: str, environ: Mapping[str, str] | None = None) -> float:
    """Return a number of the environment.

    Parameters
    ----------
    name
        The variable; a blank one counts as none.
    default
        The number without it.
    unit
        What it counts, in the plural, for the error.
    environ
        Otherwise the environment of the process as it is now.

    Raises
    ------
    SMDebugValueError
        If it is no finite number >= 0.
    """
    text = (os.environ if environ is None else environ).get(name, "").strip()
    if not text:
        return default
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        msg = f"The environment's {name} must be a number of {unit} >= 0, got {text!r}."
        raise SMDebugValueError(msg)
    return found

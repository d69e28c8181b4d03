"""Durations as people write them: 90s, 30m, 12h, 7d, 8w."""

import re
from typing import Annotated, Final

from msgspec import Meta

_TEXT: Final = re.compile(r"([1-9][0-9]{0,8})([smhdw])")
# A text, which editors check by the schema.
Duration = Annotated[str, Meta(extra_json_schema={"pattern": f"^{_TEXT.pattern}$"})]
_EXAMPLES: Final = ("90s", "30m", "12h", "7d", "8w")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def seconds_of(text: str, units: str = "smhdw") -> int:
    """Return the seconds of a duration.

    Parameters
    ----------
    units
        The units that it may have.

    Examples
    --------
    >>> seconds_of("90s"), seconds_of("12h")
    (90, 43200)

    Raises
    ------
    ValueError
        If the text is no such duration.
    """
    match = _TEXT.fullmatch(text)
    if match is None or match[2] not in units:
        fitting = [example for example in _EXAMPLES if example[-1] in units]
        raise ValueError(
            f"must be a whole number with a unit, such as {', '.join(fitting[:-1])} or "
            f"{fitting[-1]}, got {text!r:.100}"
        )
    return int(match[1]) * _SECONDS[match[2]]

"""Values, times and records as JSON text that is valid UTF-8 and safe to print on a terminal."""

import hashlib
import json
import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import numpy as np

from rule_core.failures import text_of

TEXT_LIMIT: Final = 200  # characters of an object without a JSON representation

JsonScalar = str | int | float | bool | None

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def json_scalar(value: object) -> JsonScalar:
    """Return `value` as a JSON scalar.

    Numbers and arrays of one element become plain numbers; NaN and infinities become the strings
    ``NaN``, ``Infinity``, ``-Infinity``. Strings stay, and a tuple of strings is joined by commas.
    Anything else, and integers beyond 64 bits, becomes its text, cut to 200 characters.
    """
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.size == 1):
        value = _plain(value)
    match value:
        case None | bool():
            return value
        case str():
            return str(value)
        case tuple() if all(isinstance(item, str) for item in value):
            return ",".join(value)
        case int() if -(2**63) <= value < 2**64:
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else json.dumps(float(value))
        case _:
            return _short_text(value)


def _plain(value: Any) -> object:
    """Return the element of a numpy scalar or one-element array as a Python object."""
    plain = value.item()
    if isinstance(plain, np.complexfloating):  # complex longdouble
        return str(plain)
    return float(plain) if isinstance(plain, np.generic) else plain  # longdouble, small floats


def _short_text(value: object) -> str:
    text = text_of(value)
    return f"<{type(value).__name__}>" if text is None else text[:TEXT_LIMIT]


def text_or_none(value: object) -> str | None:
    """Return the text of `value`, or None if it is None."""
    if value is None:
        return None
    return str(value) if isinstance(value, str) else _short_text(value)


def rfc3339(moment: datetime) -> str:
    """Return an aware `moment` as RFC 3339 in UTC with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def dump_json(value: object, *, indent: int | None = None) -> str:
    """Return `value` as JSON that is valid UTF-8 and safe to print on a terminal.

    Lone surrogates become U+FFFD; control characters and characters that change the text
    direction are escaped. `value` holds no NaN or infinity.
    """
    text = json.dumps(
        msgspec.to_builtins(value), ensure_ascii=False, allow_nan=False, indent=indent
    )
    return _harmless(text)


def dump_numbers(value: object) -> str:
    """Return `value` as `dump_json` does, but compact, and much faster for many numbers."""
    try:
        text = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # a lone surrogate
        return dump_json(value)
    return _harmless(text)


def json_digest(values: Sequence[object], length: int | None = None) -> str:
    """Return the first hexadecimal digits of the SHA-256 of values as JSON; by default all."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:length]


def _harmless(text: str) -> str:
    if text.isprintable():
        return text
    text = _SURROGATE.sub("\ufffd", text)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)

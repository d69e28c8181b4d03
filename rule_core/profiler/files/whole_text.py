"""whole_text: an untrusted JSON document of limited size, decompressed if needed."""

import sys
from dataclasses import replace
from typing import Final, TypeVar

import msgspec

from rule_core.exceptions import CorruptFileError
from rule_core.profiler.files.chunks import LIMITS, TimelineFaultError, chunks
from rule_core.storage.base import TrialStore
from rule_core.storage.size_limit import check_file_size

T = TypeVar("T")
LARGEST_JSON_INTEGER: Final = (1 << 63) - 1
JSON_ENDINGS: Final = (".json", ".json.gz")
_PICKLES: Final = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))


def is_json_name(key: str) -> bool:
    """Return whether a file is JSON by its name.

    >>> is_json_name("rank0_trace.json"), is_json_name("metrics.csv")
    (True, False)
    """
    return key.endswith(JSON_ENDINGS)


def is_pickle(start: bytes) -> bool:
    r"""Return whether a file begins as a pickle.

    >>> is_pickle(b"\x80\x02}q"), is_pickle(b"{}")
    (True, False)
    """
    return start.startswith(_PICKLES)


def whole_text(store: TrialStore, key: str) -> bytes:
    """Return the text of a file, which may have as many bytes as `max_file_bytes` allows.

    Raises
    ------
    CorruptFileError
        If the file is damaged gzip data.
    StorageUnavailableError
        If the text is longer, or as `TrialStore.read` says.
    ObjectNotFoundError
        If the file does not exist.
    """
    text = bytearray()
    try:
        for piece in chunks(store, key, replace(LIMITS, total=sys.maxsize)):
            text += piece
            check_file_size(key, len(text))
    except TimelineFaultError as err:
        raise CorruptFileError(key, "JSON", f"a file that {err}") from err
    return bytes(text.removeprefix(b"\xef\xbb\xbf"))


def decoded(name: str, text: bytes | memoryview | msgspec.Raw, kind: type[T], what: str) -> T:
    """Decode JSON to a type.

    Parameters
    ----------
    name
        The file's name in messages.
    what
        What was expected, for the message.

    Raises
    ------
    CorruptFileError
        If it is no JSON, or of other types.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except ValueError as err:
        raise CorruptFileError(name, what, str(err).rstrip(".")) from err
    except RecursionError as err:
        raise CorruptFileError(name, what, "one that is nested too deeply") from err


def whole_number(value: object) -> int | None:
    """Return a number that is not negative, from JSON's numbers and texts; None for others.

    >>> whole_number(3), whole_number("3"), whole_number(-1), whole_number(True)
    (3, 3, None, None)
    """
    if isinstance(value, str) and value.isdecimal() and len(value) < len(str(LARGEST_JSON_INTEGER)):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value

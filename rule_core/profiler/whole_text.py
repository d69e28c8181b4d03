"""whole_text: an untrusted JSON document of limited size, decompressed if needed."""

from dataclasses import replace
from typing import Final, TypeVar

import msgspec

from rule_core.exceptions import CorruptFileError
from rule_core.profiler.traces.chunks import LIMITS, TimelineFaultError, chunks
from rule_core.storage.base import TrialStore

T = TypeVar("T")
JSON_ENDINGS: Final = (".json", ".json.gz")
MOST_BYTES: Final = 256 << 20
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


def whole_text(store: TrialStore, key: str, name: str = "", most: int = MOST_BYTES) -> bytes:
    """Return the text of a file.

    Parameters
    ----------
    name
        The file's name in messages; by default its key.
    most
        The largest number of bytes.

    Raises
    ------
    CorruptFileError
        If the text is longer, or the file is damaged gzip data.
    ObjectNotFoundError, StorageUnavailableError
        See `TrialStore.read`.
    """
    text = bytearray()
    limits = replace(LIMITS, total=most)
    try:
        for piece in chunks(store, key, limits):
            text += piece
    except TimelineFaultError as err:
        if len(text) + limits.chunk > most:
            problem = f"at most {most >> 20} MiB of text", "more"
        else:
            problem = "JSON", f"a file that {err}"
        raise CorruptFileError(name or key, *problem) from err
    return bytes(text.removeprefix(b"\xef\xbb\xbf"))


def decoded(name: str, text: bytes | msgspec.Raw, kind: type[T], what: str) -> T:
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

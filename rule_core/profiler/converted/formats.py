"""The formats of other tools that are converted, and how their files are told apart."""

from typing import Final

from rule_core.profiler.converted.format import ConvertedFormat
from rule_core.profiler.flight_recorder.format import FLIGHT_RECORDER
from rule_core.profiler.kineto.format import KINETO
from rule_core.profiler.prometheus.format import PROMETHEUS
from rule_core.profiler.traces.chunks import TimelineFaultError, unzipped_start
from rule_core.storage.base import (
    ByteRange,
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
)

FORMATS: Final[tuple[ConvertedFormat, ...]] = (KINETO, FLIGHT_RECORDER, PROMETHEUS)
SNIFFED: Final = 1 << 16  # bytes


def has_known_name(key: str) -> bool:
    """Return whether a file is of one of the formats by its name alone.

    >>> has_known_name("gpu-box_7.pt.trace.json"), has_known_name("answer.json")
    (True, False)
    """
    return any(each.has_name(key) for each in FORMATS)


def may_be_converted(key: str) -> bool:
    """Return whether a file of such a name may be of one of the formats.

    >>> may_be_converted("answer.json"), may_be_converted("train.py")
    (True, False)
    """
    return any(each.may_have_name(key) for each in FORMATS)


def recognize(store: TrialStore, key: str) -> ConvertedFormat | str:
    """Return the format of a file; or why it cannot be read, "" if it is of none of them.

    Raises
    ------
    StorageUnavailableError
        If the store does not answer for now.
    """
    try:
        start = bytes(store.read(key, ByteRange(0, SNIFFED)))
        text = unzipped_start(start, SNIFFED).removeprefix(b"\xef\xbb\xbf").lstrip()
    except ObjectNotFoundError:
        return ""
    except TimelineFaultError as err:
        return KINETO if KINETO.has_name(key) else f"It {err}."
    except StorageUnavailableError as err:
        if err.transient:
            raise
        return str(err)
    named = [each for each in FORMATS if each.may_have_name(key)]
    formats = (each for each in named if each.begins(text))
    reasons = (each.refusal(key, text) for each in named)
    reason = next(filter(None, reasons), "")
    return next(formats, None) or (KINETO if KINETO.has_name(key) and not reason else reason)

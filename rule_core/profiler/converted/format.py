"""The formats of other tools that are converted to profiler data, and how to tell them apart."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rule_core.profiler.files.chunks import TimelineFaultError, start_of_text
from rule_core.profiler.files.conversion import Converted, NumberedKey
from rule_core.profiler.files.file_problems import lasting_reason
from rule_core.profiler.files.whole_text import is_json_name
from rule_core.profiler.flight_recorder import conversion as flight_recorder
from rule_core.profiler.kineto import trace_names
from rule_core.profiler.kineto.conversion import convert_traces
from rule_core.profiler.prometheus import conversion as prometheus
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError, TrialStore


@dataclass(frozen=True, slots=True)
class ConvertedFormat:
    """A format whose files are converted to those of a profiler.

    Attributes
    ----------
    label
        The name of the files for users, in the plural.
    may_have_name
        Whether a file with such a key is worth looking into.
    begins
        Whether a text begins as the files of this format do.
    convert
        Converts files that are listed together for the first time; writes to the given folder.
        Raises `OSError` if it cannot, and what `read_each` raises.
    has_name
        Whether only files of this format have such a key; by default, no key is enough.
    refusal
        Why the file with such a key and beginning cannot be read; "" if this format has no reason.
    """

    label: str
    may_have_name: Callable[[str], bool]
    begins: Callable[[bytes], bool]
    convert: Callable[[TrialStore, Sequence[NumberedKey], Path], Iterator[Converted]]
    has_name: Callable[[str], bool] = lambda _: False
    refusal: Callable[[str, bytes], str] = lambda _, __: ""


KINETO: Final = ConvertedFormat(
    "traces of torch.profiler",
    is_json_name,
    trace_names.begins_as_trace,
    convert_traces,
    trace_names.is_trace_name,
    lambda _, start: trace_names.other_kind(start),
)
FLIGHT_RECORDER: Final = ConvertedFormat(
    "dumps of the flight recorder",
    flight_recorder.may_be_dump_name,
    flight_recorder.begins_as_dump,
    flight_recorder.convert_dumps,
    flight_recorder.is_dump_name,
    flight_recorder.pickle_refusal,
)
PROMETHEUS: Final = ConvertedFormat(
    "answers of Prometheus", is_json_name, prometheus.begins_as_answer, prometheus.convert_answers
)
FORMATS: Final = (KINETO, FLIGHT_RECORDER, PROMETHEUS)


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
        text = start_of_text(store, key)
    except ObjectNotFoundError:
        return ""
    except TimelineFaultError as err:
        return KINETO if KINETO.has_name(key) else f"It {err}."
    except StorageUnavailableError as err:
        return lasting_reason(err)
    named = [each for each in FORMATS if each.may_have_name(key)]
    formats = (each for each in named if each.begins(text))
    reasons = (each.refusal(key, text) for each in named)
    reason = next(filter(None, reasons), "")
    return next(formats, None) or (KINETO if KINETO.has_name(key) and not reason else reason)

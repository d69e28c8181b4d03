"""KinetoHeader: the metadata of a torch.profiler trace, outside its events."""

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from rule_core.profiler.files.whole_text import LARGEST_JSON_INTEGER, whole_number
from rule_core.profiler.traces.records import RecordReader

_MOST_DEVICES: Final = 1024


@dataclass(frozen=True, slots=True)
class KinetoHeader:
    """The used fields of the object that holds the events.

    Attributes
    ----------
    base_us
        Epoch microseconds of the trace's zero; 0 in traces whose times are since the epoch.
    rank
        The rank of the process in distributed training; None if it has none.
    gpu_memory
        The memory of each GPU in bytes, by its number.
    """

    base_us: float = 0
    rank: int | None = None
    gpu_memory: dict[int, int] = field(default_factory=dict)


def header_of(reader: RecordReader, rest: bytes) -> KinetoHeader:
    """Return the header of a trace whose events were read.

    Parameters
    ----------
    reader
        The reader of its events.
    rest
        The text that follows the last text that the reader has seen.
    """
    head = _decoded(reader.head.lstrip(b"\xef\xbb\xbf") + b"]}")
    tail = reader.tail.removeprefix(b"]").lstrip(b" \t\r\n,") + rest
    fields = {**head, **_decoded(b"{" + tail)}
    return KinetoHeader(
        _base_us(fields.get("baseTimeNanoseconds")),
        _rank(fields.get("distributedInfo")),
        _gpu_memory(fields.get("deviceProperties")),
    )


def _decoded(text: bytes) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _base_us(value: object) -> float:
    number = whole_number(value)
    if number is None or number > LARGEST_JSON_INTEGER:
        return 0
    return number // 1000 if number % 1000 == 0 else number / 1000


def _rank(value: object) -> int | None:
    return whole_number(value.get("rank")) if isinstance(value, dict) else None


def _gpu_memory(value: object) -> dict[int, int]:
    devices = value[:_MOST_DEVICES] if isinstance(value, list) else []
    memory: dict[int, int] = {}
    for device in filter(lambda entry: isinstance(entry, dict), devices):
        number, size = whole_number(device.get("id")), whole_number(device.get("totalGlobalMem"))
        if number is not None and size:
            memory[number] = size
    return memory

"""Names of Kineto traces: which files are traces, and which rank wrote one."""

import re
from typing import Final

from rule_core.format.marks import TRACES
from rule_core.storage.base import ByteRange, ObjectNotFoundError, TrialStore

_JSON_ENDINGS: Final = (".json", ".json.gz")
_SNIFFED: Final = 1 << 16  # bytes
_MARKS: Final = re.compile(rb'"(schemaVersion|deviceProperties|distributedInfo)"\s*:')
_RANK: Final = re.compile(r"(?:^|[^a-z])rank[-_.=]?(\d{1,6})(?!\d)", re.IGNORECASE)
_STAMP: Final = re.compile(r"(?:[._]\d{13,19})+$")
_OTHERS: Final = re.compile(r"[^A-Za-z0-9.-]+")
_LONGEST_NODE: Final = 100  # characters


def is_trace_name(key: str) -> bool:
    """Return whether a file has a name that only traces of torch.profiler have.

    >>> is_trace_name("tb/vm_7.1795495895445239187.pt.trace.json.gz"), is_trace_name("trace.json")
    (True, False)
    """
    return key.endswith(TRACES)


def is_json_name(key: str) -> bool:
    """Return whether a file may be a trace by its name.

    >>> is_json_name("rank0_trace.json"), is_json_name("metrics.csv")
    (True, False)
    """
    return key.endswith(_JSON_ENDINGS)


def is_trace(store: TrialStore, key: str) -> bool:
    """Return whether a JSON file of any name begins as a trace of torch.profiler does.

    Raises
    ------
    StorageUnavailableError
        If the file cannot be read.
    """
    from rule_core.profiler.traces.chunks import TimelineFaultError, unzipped_start

    try:
        text = unzipped_start(bytes(store.read(key, ByteRange(0, _SNIFFED))), _SNIFFED)
    except (ObjectNotFoundError, TimelineFaultError):
        return False
    return text.lstrip().startswith(b"{") and _MARKS.search(text) is not None


def rank_in(key: str) -> int | None:
    """Return the rank that a trace's name or folder contains; None if neither does.

    >>> rank_in("step_10/rank3_trace.json"), rank_in("rank-2/a.json"), rank_in("frank1.json")
    (3, 2, None)
    """
    for part in reversed(key.split("/")):
        match = _RANK.search(part)
        if match is not None:
            return int(match[1])
    return None


def node_of(key: str, rank: int | None) -> str:
    """Return the node of a trace: its rank, or else the worker that its name contains.

    >>> node_of("vm_7.1795495895445239187.pt.trace.json", 3)
    'rank-3'
    >>> node_of("tb/vm_7.1795495895445239187.pt.trace.json", None)
    'vm-7'
    """
    rank = rank_in(key) if rank is None else rank
    if rank is not None:
        return f"rank-{rank}"
    name = key.rpartition("/")[2]
    for ending in (*reversed(TRACES), *reversed(_JSON_ENDINGS)):
        name = name.removesuffix(ending)
    worker = _OTHERS.sub("-", _STAMP.sub("", name)).strip("-.")
    return worker[:_LONGEST_NODE] or "trace"

"""Names of Kineto traces: which files are traces, and which rank wrote one."""

import re
from typing import Final

from rule_core.format.marks import TRACES
from rule_core.profiler.whole_text import JSON_ENDINGS

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


def begins_as_trace(text: bytes) -> bool:
    """Return whether a text begins as a trace of torch.profiler does.

    >>> begins_as_trace(b'{"schemaVersion": 1,'), begins_as_trace(b"[]")
    (True, False)
    """
    return text.startswith(b"{") and _MARKS.search(text) is not None


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
    for ending in (*reversed(TRACES), *reversed(JSON_ENDINGS)):
        name = name.removesuffix(ending)
    return node_name(_STAMP.sub("", name)) or "trace"


def node_name(text: str) -> str:
    """Return a text as the name of a node, without what cannot be in names of files.

    >>> node_name("gpu box_7/a"), node_name("...")
    ('gpu-box-7-a', '')
    """
    return _OTHERS.sub("-", text).strip("-.")[:_LONGEST_NODE]

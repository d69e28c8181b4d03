"""Names of Kineto traces: which files are traces, and which rank wrote one.

`recorded_traces` finds those that a hook recorded beside its timelines.
"""

import re
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple

from rule_core.format.marks import TRACES
from rule_core.profiler.files.file_names import node_name, rank_in
from rule_core.profiler.files.whole_text import JSON_ENDINGS
from rule_core.storage.base import ObjectNotFoundError, TrialStore

FOLDERS: Final = ("kineto/", "framework/pytorch/kineto/")
MOST_RECORDEDS: Final = 10_000  # of each folder
_RECORDED: Final = re.compile(
    r".*/(\d{9,})/([^/]+)_(\d{10,19})_(\d{10,19})\.pt\.trace\.json(?:\.gz)?"
)
_HEADER: Final = re.compile(rb'"(?:schemaVersion|deviceProperties|distributedInfo)"\s*:')
_CATEGORY: Final = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|(?:gpu_)?user_annotation|(?:cuda|hip|xpu|mtia)_(?:runtime|driver)|'
    rb'kernel|gpu_mem(?:cpy|set)|python_function|Operator|Kernel|Mem(?:cpy|set)|Runtime)"'
)
_OTHER_KINDS: Final = MappingProxyType(
    {
        re.compile(rb"version https://git-lfs"): (
            "It is a pointer of Git LFS, not the file itself: run 'git lfs pull'."
        ),
        re.compile(rb'\{\s*"schema"\s*:\s*"\d[^"]*",.*"nodes"\s*:', re.DOTALL): (
            "It is an execution trace of PyTorch, which has no times: record with torch.profiler."
        ),
        re.compile(rb'\{\s*"rocprofiler-sdk-tool"'): (
            "It is output of rocprofv3, which is not read: record with torch.profiler."
        ),
        re.compile(rb'(?:\[|\{.*"traceEvents"\s*:\s*\[)\s*\{.*"ph"\s*:', re.DOTALL): (
            "It is a trace in Chrome's format without an event of torch.profiler at its beginning: "
            "traces of other tools are not read."
        ),
    }
)
_STAMP: Final = re.compile(r"(?:[._]\d{13,19})+$")


def is_trace_name(key: str) -> bool:
    """Return whether a file has a name that only traces of torch.profiler have.

    >>> is_trace_name("tb/vm_7.1795495895445239187.pt.trace.json.gz"), is_trace_name("trace.json")
    (True, False)
    """
    return key.endswith(TRACES)


def begins_as_trace(text: bytes) -> bool:
    """Return whether a text begins as a trace of torch.profiler does.

    The header may follow the events, so categories of events count as well.

    >>> begins_as_trace(b'{"schemaVersion": 1,'), begins_as_trace(b'[{"cat": "cpu_op"')
    (True, True)
    >>> begins_as_trace(b"[]")
    False
    """
    has_header = text.startswith(b"{") and _HEADER.search(text) is not None
    return has_header or (text.startswith((b"{", b"[")) and _CATEGORY.search(text) is not None)


def other_kind(text: bytes) -> str:
    """Return of which other kind of trace a text is, by its beginning; "" if of none.

    >>> other_kind(b'[{"ph": "X", "cat": "gc"}]').partition(":")[0]
    "It is a trace in Chrome's format without an event of torch.profiler at its beginning"
    """
    kinds = (kind for pattern, kind in _OTHER_KINDS.items() if pattern.match(text))
    return next(kinds, "")


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


class RecordedTrace(NamedTuple):
    """A trace of one step on one node; times are microseconds since the epoch."""

    start_us: int
    end_us: int
    step: int
    node: str
    key: str


def recorded_traces(store: TrialStore) -> list[RecordedTrace]:
    """Return the traces in a recording by their start, at most `MOST_RECORDEDS` of each folder.

    Raises
    ------
    StorageUnavailableError
        If the store is unavailable.
    """
    traces = []
    for folder in FOLDERS:
        try:
            for key in islice(store.list_keys(folder), MOST_RECORDEDS):
                if match := _RECORDED.fullmatch(key):
                    step, node, start, end = match.groups()
                    traces.append(RecordedTrace(int(start), int(end), int(step), node, key))
        except ObjectNotFoundError:
            continue
    return sorted(traces)

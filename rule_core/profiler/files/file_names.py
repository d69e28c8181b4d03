"""Parse the keys of profiler files: time, node and kind."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from rule_core.profiler.files import constants as names
from rule_core.profiler.files.time_units import SYSTEM_NAME, parse_metadata_name

SYSTEM: Final = "system/"
TRACES: Final = "framework/pevents/"
TF_TRACES: Final = "framework/tensorflow/detailed_profiling/"
END_MARKS: Final = ("system/training_job_end.ts", "framework/training_job_end.ts")
# Endings of timelines in `TRACES`; other files belong to other tools.
TIMELINES: Final = (
    names.PYTHONTIMELINE_SUFFIX,
    names.MODELTIMELINE_SUFFIX,
    names.HOROVODTIMELINE_SUFFIX,
    names.SMDATAPARALLELTIMELINE_SUFFIX,
)
_SYSTEM_KEY: Final = re.compile(SYSTEM_NAME)
_TRACE_KEY: Final = re.compile(
    rf"framework/pevents/(?:.*/)?(\d{{1,19}})_([^/_]+)_(?:[^/]*_)?({'|'.join(TIMELINES)})"
)
_NANOSECONDS: Final = 10**18  # larger stamps are nanoseconds, written by early versions
_RANK: Final = re.compile(r"(?:^|[^a-z])rank[-_.=]?(\d{1,6})(?!\d)", re.IGNORECASE)
_NOT_IN_NODES: Final = re.compile(r"[^A-Za-z0-9.-]+")
_LONGEST_NODE: Final = 100  # characters
_FOLDERS_ABOVE_TRACE: Final = 4  # plugins/profile/<date>/<file>


class SystemFile(NamedTuple):
    """A file of system metrics.

    Attributes
    ----------
    start_us
        Start of the data in epoch microseconds.
    node, key
        Node that wrote the file, and its key.
    """

    start_us: int
    node: str
    key: str


class TraceFile(NamedTuple):
    """A timeline of framework events.

    Attributes
    ----------
    end_us
        End of the last event in epoch microseconds.
    node
        Node and process that wrote it, as in the name.
    kind
        Ending of the name: one of `TIMELINES`, or that of TensorFlow's detailed profiles.
    key
        Its key.
    """

    end_us: int
    node: str
    kind: str
    key: str


def system_file(key: str) -> SystemFile | None:
    """Parse the key of a file of system metrics; None for other keys.

    >>> system_file("system/incremental/2020060500/1591160699.algo-1.json")[:2]
    (1591160699000000, 'algo-1')
    """
    match = _SYSTEM_KEY.fullmatch(key)
    return None if match is None else SystemFile(int(match[1]) * 1_000_000, match[2], key)


def trace_file(key: str) -> TraceFile | None:
    """Parse the key of a timeline; None for other keys and for TensorFlow's profiles.

    >>> trace_file("framework/pevents/20200702/1593673051472361_11-algo-1_model_timeline.json")[:3]
    (1593673051472361, '11-algo-1', 'model_timeline.json')
    """
    match = _TRACE_KEY.fullmatch(key)
    if match is None:
        return None
    stamp = int(match[1])
    return TraceFile(stamp // 1000 if stamp >= _NANOSECONDS else stamp, match[2], match[3], key)


def tf_trace_files(keys: Iterable[str]) -> Iterator[TraceFile]:
    """Yield TensorFlow's detailed profiles among keys, with the data of their ``.metadata`` files.

    Profiles without a ``.metadata`` file are skipped.
    """
    traces: list[str] = []
    marks: dict[str, list[tuple[str, int, int]]] = {}
    for key in keys:
        if key.endswith(names.TENSORBOARDTIMELINE_SUFFIX):
            traces.append(key)
        elif (mark := parse_metadata_name(key)) is not None:
            parts = key.split("/")
            for end in range(1, len(parts)):
                marks.setdefault("/".join(parts[:end]), []).append(mark)
    for key in traces:
        *folders, name = key.split("/")
        step = "/".join(folders[: 1 - _FOLDERS_ABOVE_TRACE])
        host = name.removesuffix(f".{names.TENSORBOARDTIMELINE_SUFFIX}")
        mark = min(marks.get(step, ()), key=lambda mark: not mark[0].endswith(host), default=None)
        if mark is not None:
            yield TraceFile(mark[2], mark[0], names.TENSORBOARDTIMELINE_SUFFIX, key)


def rank_in(key: str) -> int | None:
    """Return the rank that a trace's name or folder contains; None if neither does.

    >>> rank_in("step_10/rank3_trace.json"), rank_in("rank-2/a.json"), rank_in("frank1.json")
    (3, 2, None)
    """
    matches = map(_RANK.search, reversed(key.split("/")))
    return next((int(match[1]) for match in matches if match), None)


def node_name(text: str) -> str:
    """Return a text as the name of a node, without what cannot be in names of files.

    >>> node_name("gpu box_7/a"), node_name("...")
    ('gpu-box-7-a', '')
    """
    return _NOT_IN_NODES.sub("-", text).strip("-.")[:_LONGEST_NODE]

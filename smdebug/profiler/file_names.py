"""What the keys of the profiler's files say: from when, of which node, of which kind."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from smdebug.profiler import profiler_constants as names
from smdebug.profiler.utils import parse_metadata_name

SYSTEM: Final = "system/"
TRACES: Final = "framework/pevents/"
TF_TRACES: Final = "framework/tensorflow/detailed_profiling/"
END_MARKS: Final = ("system/training_job_end.ts", "framework/training_job_end.ts")
# Those that a writer leaves in `TRACES`; others are of foreign tools.
TIMELINES: Final = (
    names.PYTHONTIMELINE_SUFFIX,
    names.MODELTIMELINE_SUFFIX,
    names.HOROVODTIMELINE_SUFFIX,
    names.SMDATAPARALLELTIMELINE_SUFFIX,
)
_SYSTEM_KEY: Final = re.compile(r"system/.+/(\d{10})\.(algo-\d+)\.json")
_TRACE_KEY: Final = re.compile(
    rf"framework/pevents/(?:.*/)?(\d{{1,19}})_([^/_]+)_(?:[^/]*_)?({'|'.join(TIMELINES)})"
)
_NANOSECONDS: Final = 10**18  # from here on: early writers counted in those
_FOLDERS_ABOVE_TRACE: Final = 4  # plugins/profile/<date>/<file>


class SystemFile(NamedTuple):
    """A file of system metrics.

    Attributes
    ----------
    start_us
        Microseconds since the epoch at which its data begin.
    node, key
        Whose it is, and where it lies.
    """

    start_us: int
    node: str
    key: str


class TraceFile(NamedTuple):
    """A timeline of framework events.

    Attributes
    ----------
    end_us
        Microseconds since the epoch at which the last of its events ends.
    node
        Who wrote it: node and process, as the name has them.
    kind
        How its name ends: one of `TIMELINES`, or that of TensorFlow's detailed profiles.
    key
        Where it lies.
    """

    end_us: int
    node: str
    kind: str
    key: str


def system_file(key: str) -> SystemFile | None:
    """Return what the key of a file of system metrics says; None for any other.

    >>> system_file("system/incremental/2020060500/1591160699.algo-1.json")[:2]
    (1591160699000000, 'algo-1')
    """
    found = _SYSTEM_KEY.fullmatch(key)
    return None if found is None else SystemFile(int(found[1]) * 1_000_000, found[2], key)


def trace_file(key: str) -> TraceFile | None:
    """Return what the key of a timeline says; None for any other, and for TensorFlow's profiles.

    >>> trace_file("framework/pevents/20200702/1593673051472361_11-algo-1_model_timeline.json")[:3]
    (1593673051472361, '11-algo-1', 'model_timeline.json')
    """
    found = _TRACE_KEY.fullmatch(key)
    if found is None:
        return None
    stamp = int(found[1])
    return TraceFile(stamp // 1000 if stamp >= _NANOSECONDS else stamp, found[2], found[3], key)


def tf_trace_files(keys: Iterable[str]) -> Iterator[TraceFile]:
    """Yield TensorFlow's detailed profiles among keys, with what their ``.metadata`` files say.

    A profile whose file is not there (yet) is left out.
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
        mark = min(marks.get(step, ()), key=lambda one: not one[0].endswith(host), default=None)
        if mark is not None:
            yield TraceFile(mark[2], mark[0], names.TENSORBOARDTIMELINE_SUFFIX, key)

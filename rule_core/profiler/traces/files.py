"""events_of: the events of a framework timeline in a store."""

from collections.abc import Iterable, Iterator
from typing import Final

from rule_core.profiler.files import constants
from rule_core.profiler.files.chunks import LIMITS, TimelineLimits, chunks
from rule_core.profiler.files.file_names import TraceFile
from rule_core.profiler.files.file_problems import lasting_reason
from rule_core.profiler.files.time_units import node_id_of, tf_metadata
from rule_core.profiler.traces.assembler import Assembler, OpenEvents
from rule_core.profiler.traces.event import ProcessInfo, TraceEvent
from rule_core.profiler.traces.records import RecordReader
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError, TrialStore
from rule_core.storage.uri import open_store

TENSORFLOW: Final = "TFProfilerMetrics"
# In the order in which the events of several kinds are returned.
FILE_TYPES: Final = {
    constants.PYTHONTIMELINE_SUFFIX: "PythontimelineMetrics",
    constants.MODELTIMELINE_SUFFIX: "DetailedframeworkMetrics",
    constants.TENSORBOARDTIMELINE_SUFFIX: TENSORFLOW,
    constants.HOROVODTIMELINE_SUFFIX: "HorovodMetrics",
    constants.SMDATAPARALLELTIMELINE_SUFFIX: "SMDataParallelMetrics",
}
_ROOT: Final = "framework/"


def by_kind(files: Iterable[TraceFile]) -> list[TraceFile]:
    """Return timelines in the order of `FILE_TYPES`; those of one kind keep their order."""
    kinds = list(FILE_TYPES)
    return sorted(files, key=lambda file: kinds.index(file.kind))


def events_of(
    store: TrialStore,
    key: str,
    problems: list[str],
    *,
    file_type: str | None = None,
    marks: bool = False,
    processes: dict[str, ProcessInfo] | None = None,
    open_events: OpenEvents | None = None,
    limits: TimelineLimits = LIMITS,
) -> Iterator[TraceEvent]:
    """Stream the events of a timeline.

    Parameters
    ----------
    store, key
        Location of the timeline.
    problems
        Receives a sentence for each problem, none of which is fatal.
    file_type
        Type of the events; by default that of the timeline's name.
    marks, processes, open_events
        See `Assembler`.
    limits
        Limits for untrusted timelines.

    Raises
    ------
    StorageUnavailableError
        If the store is temporarily unavailable. A missing or unreadable file is a problem instead.
    """
    kinds = (kind for suffix, kind in FILE_TYPES.items() if key.endswith(suffix))
    kind = next(kinds, "") if file_type is None else file_type
    try:
        metadata = tf_metadata(store, key) if kind == TENSORFLOW else ("", 0, 0)
        if metadata is None:
            problems.append(f"Profile {key!r} has no .metadata file that names its time.")
            return
        assembler = Assembler(
            RecordReader(chunks(store, key, limits), limits),
            node_id=node_id_of(key),
            file_type=kind,
            start_us=metadata[1],
            marks=marks,
            processes=processes,
            open_events=open_events,
        )
        yield from assembler.parse(key, problems)
    except (ObjectNotFoundError, StorageUnavailableError) as err:
        problems.append(lasting_reason(err))


def locate(path: str) -> tuple[TrialStore, str]:
    """Return store and key of a timeline by its path or S3 address.

    >>> locate("/p/framework/pevents/2020/1_2_model_timeline.json")[1]
    'framework/pevents/2020/1_2_model_timeline.json'
    """
    index = path.rfind(f"/{_ROOT}")
    folder, key = (path[:index], path[index + 1 :]) if index >= 0 else path.rpartition("/")[::2]
    return open_store(folder or ("/" if path.startswith("/") else ".")), key

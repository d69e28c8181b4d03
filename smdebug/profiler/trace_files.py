"""events_of: the events of a framework timeline by its place, and what kind of file it is."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from smdebug.profiler.profiler_constants import (
    HOROVODTIMELINE_SUFFIX,
    MODELTIMELINE_SUFFIX,
    PYTHONTIMELINE_SUFFIX,
    SMDATAPARALLELTIMELINE_SUFFIX,
    TENSORBOARDTIMELINE_SUFFIX,
)
from smdebug.profiler.trace_assembly import OpenEvents
from smdebug.profiler.trace_bytes import LIMITS, Limits, chunks
from smdebug.profiler.trace_event import ProcessInfo, TraceEvent
from smdebug.profiler.trace_parsing import parse_trace
from smdebug.profiler.utils import tf_metadata
from smdebug.storage import (
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
    open_store,
)

TENSORFLOW: Final = "TFProfilerMetrics"
# In the order in which the events of several kinds are returned.
FILE_TYPES: Final = {
    PYTHONTIMELINE_SUFFIX: "PythontimelineMetrics",
    MODELTIMELINE_SUFFIX: "DetailedframeworkMetrics",
    TENSORBOARDTIMELINE_SUFFIX: TENSORFLOW,
    HOROVODTIMELINE_SUFFIX: "HorovodMetrics",
    SMDATAPARALLELTIMELINE_SUFFIX: "SMDataParallelMetrics",
}
_ROOT: Final = "framework/"


def file_type_of(key: str) -> str | None:
    """Return what kind of timeline a file is by its name; None if it is none.

    >>> file_type_of("framework/pevents/2020051923/1589930988000000_4487_pythontimeline.json")
    'PythontimelineMetrics'
    """
    kinds = (kind for suffix, kind in FILE_TYPES.items() if key.endswith(suffix))
    return next(kinds, None)


def node_id_of(key: str) -> str:
    """Return the node in a timeline's name; of a profile of TensorFlow its host.

    >>> node_id_of("pevents/2020051923/1589930988000000_4487_0000_pythontimeline.json")
    '4487'
    """
    name = key.rpartition("/")[2]
    if file_type_of(key) == TENSORFLOW:
        return name.partition(".")[0]
    return f"{name}_".split("_")[1]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A timeline's place in a store, and what its name tells."""

    store: TrialStore
    key: str
    file_type: str
    node_id: str

    def events(
        self,
        problems: list[str],
        *,
        marks: bool = False,
        processes: dict[str, ProcessInfo] | None = None,
        open_events: OpenEvents | None = None,
        limits: Limits = LIMITS,
    ) -> Iterator[TraceEvent]:
        """Yield the events of the file as it is read; see `parse_trace`.

        Raises
        ------
        StorageUnavailableError
            If the store cannot be asked now. A file that is gone, or that can never be read, is a
            problem.
        """
        try:
            start_us = self._start_us()
            if start_us is None:
                problems.append(f"Profile {self.key!r} has no .metadata file that names its time.")
                return
            yield from parse_trace(
                chunks(self.store, self.key, limits),
                node_id=self.node_id,
                file_type=self.file_type,
                source=self.key,
                start_us=start_us,
                problems=problems,
                marks=marks,
                processes=processes,
                open_events=open_events,
                limits=limits,
            )
        except ObjectNotFoundError as err:
            problems.append(str(err))
        except StorageUnavailableError as err:
            if err.transient:
                raise
            problems.append(str(err))

    def _start_us(self) -> int | None:
        if self.file_type != TENSORFLOW:
            return 0
        found = tf_metadata(self.store, self.key)
        return None if found is None else found[1]


def timeline_of(store: TrialStore, key: str, file_type: str | None = None) -> Timeline:
    """Return a timeline by its place; its kind is given, or said by its name."""
    kind = file_type_of(key) if file_type is None else file_type
    return Timeline(store, key, kind or "", node_id_of(key))


def events_of(
    store: TrialStore,
    key: str,
    problems: list[str],
    *,
    marks: bool = False,
    open_events: OpenEvents | None = None,
    limits: Limits = LIMITS,
) -> Iterator[TraceEvent]:
    """Yield the events of one timeline, of any kind, without holding the file in memory.

    Parameters
    ----------
    store, key
        Where it is.
    problems
        Takes a sentence for each damage: it is never fatal.
    marks, open_events, limits
        See `parse_trace`.

    Raises
    ------
    StorageUnavailableError
        If the store cannot be asked now.
    """
    timeline = timeline_of(store, key)
    return timeline.events(problems, marks=marks, open_events=open_events, limits=limits)


def located(path: str) -> tuple[TrialStore, str]:
    """Return store and key of a timeline by its path or S3 address.

    >>> located("/p/framework/pevents/2020/1_2_model_timeline.json")[1]
    'framework/pevents/2020/1_2_model_timeline.json'
    """
    at = path.rfind(f"/{_ROOT}")
    folder, key = (path[:at], path[at + 1 :]) if at >= 0 else path.rpartition("/")[::2]
    return open_store(folder or ("/" if path.startswith("/") else ".")), key

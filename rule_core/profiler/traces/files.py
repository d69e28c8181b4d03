"""events_of: the events of a framework timeline in a store."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rule_core.profiler.constants import (
    HOROVODTIMELINE_SUFFIX,
    MODELTIMELINE_SUFFIX,
    PYTHONTIMELINE_SUFFIX,
    SMDATAPARALLELTIMELINE_SUFFIX,
    TENSORBOARDTIMELINE_SUFFIX,
)
from rule_core.profiler.time_units import node_id_of, tf_metadata
from rule_core.profiler.traces.assembler import OpenEvents
from rule_core.profiler.traces.chunks import LIMITS, Limits, chunks
from rule_core.profiler.traces.event import ProcessInfo, TraceEvent
from rule_core.profiler.traces.parser import parse_trace
from rule_core.storage import ObjectNotFoundError, StorageUnavailableError, TrialStore, open_store

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
    """Return the type of a timeline by its name; None for other files.

    >>> file_type_of("framework/pevents/2020051923/1589930988000000_4487_pythontimeline.json")
    'PythontimelineMetrics'
    """
    kinds = (kind for suffix, kind in FILE_TYPES.items() if key.endswith(suffix))
    return next(kinds, None)


@dataclass(frozen=True, slots=True)
class Timeline:
    """A timeline in a store, with the node and type in its name."""

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
        """Stream the events of the file; see `parse_trace`.

        Raises
        ------
        StorageUnavailableError
            If the store is temporarily unavailable. A missing or unreadable file is a problem
            instead.
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
        metadata = tf_metadata(self.store, self.key)
        return None if metadata is None else metadata[1]


def timeline_of(store: TrialStore, key: str, file_type: str | None = None) -> Timeline:
    """Return a timeline; its type comes from its name by default."""
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
    """Stream the events of a timeline of any type.

    Parameters
    ----------
    store, key
        Location of the timeline.
    problems
        Receives a sentence for each problem, none of which is fatal.
    marks, open_events, limits
        See `parse_trace`.

    Raises
    ------
    StorageUnavailableError
        If the store is temporarily unavailable.
    """
    timeline = timeline_of(store, key)
    return timeline.events(problems, marks=marks, open_events=open_events, limits=limits)


def locate(path: str) -> tuple[TrialStore, str]:
    """Return store and key of a timeline by its path or S3 address.

    >>> locate("/p/framework/pevents/2020/1_2_model_timeline.json")[1]
    'framework/pevents/2020/1_2_model_timeline.json'
    """
    index = path.rfind(f"/{_ROOT}")
    folder, key = (path[:index], path[index + 1 :]) if index >= 0 else path.rpartition("/")[::2]
    return open_store(folder or ("/" if path.startswith("/") else ".")), key

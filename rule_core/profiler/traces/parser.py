"""parse_trace: the events of a framework timeline, streamed from its text."""

from collections.abc import Iterable, Iterator

from rule_core.logger import get_logger
from rule_core.profiler.traces.assembler import Assembler, OpenEvents
from rule_core.profiler.traces.chunks import LIMITS, Limits, TimelineFaultError
from rule_core.profiler.traces.event import ProcessInfo, TraceEvent
from rule_core.profiler.traces.records import RecordReader


def parse_trace(
    stream: Iterable[bytes],
    *,
    node_id: str,
    file_type: str,
    source: str = "",
    start_us: int = 0,
    problems: list[str] | None = None,
    marks: bool = False,
    processes: dict[str, ProcessInfo] | None = None,
    open_events: OpenEvents | None = None,
    limits: Limits = LIMITS,
) -> Iterator[TraceEvent]:
    """Stream the events of one timeline.

    Parameters
    ----------
    stream
        The text in pieces: an array of records, or an object with a list ``traceEvents``.
    node_id, file_type
        Node and file type of the events; ``11-algo-1`` becomes ``algo-1-11``.
    source
        Name of the timeline in messages.
    start_us
        Epoch microseconds of the file's zero, unless the file contains it.
    problems
        Receives a sentence for a fatal problem, and one for skipped records.
    marks
        Whether to yield instant events and counters too, with duration 0.
    processes, open_events
        Phases by name, and open ``B`` events, of the writer's earlier files.
    limits
        Limits for untrusted timelines.

    Yields
    ------
    TraceEvent
        Events in file order; a pair of ``B`` and ``E`` at the position of its ``E``.
    """
    reader = RecordReader(stream, limits)
    assembler = Assembler(
        reader,
        node_id=node_id,
        file_type=file_type,
        start_us=start_us,
        marks=marks,
        processes=processes,
        open_events=open_events,
        limits=limits,
    )
    messages = [] if problems is None else problems
    try:
        yield from assembler.events(reader.batches())
    except TimelineFaultError as err:
        messages.append(f"Timeline {source!r} {err}.")
    if reader.skipped:
        messages.append(
            f"Timeline {source!r} has {reader.skipped} records that are skipped, "
            f"the first because {reader.reason}."
        )
    if assembler.unpaired:
        get_logger("profiler").info(
            "Timeline %r has %d E events that did not begin in it.", source, assembler.unpaired
        )

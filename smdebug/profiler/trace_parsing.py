"""parse_trace: the events of a framework timeline, streamed from its text."""

from collections.abc import Iterable, Iterator

from smdebug.core.logger import get_logger
from smdebug.profiler.trace_assembly import Assembler, OpenEvents
from smdebug.profiler.trace_bytes import LIMITS, Limits, TimelineFaultError
from smdebug.profiler.trace_event import ProcessInfo, TraceEvent
from smdebug.profiler.trace_records import RecordReader


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
    """Yield the events of one timeline as its text comes: nothing of it is kept.

    Parameters
    ----------
    stream
        The text in pieces: an array of records, or an object with a list ``traceEvents``.
    node_id, file_type
        Of the events; ``11-algo-1`` becomes ``algo-1-11``.
    source
        How messages name the timeline.
    start_us
        Epoch microseconds of the file's zero, where the file itself names none.
    problems
        Takes a sentence for damage that ends the reading, and one for records that are skipped.
    marks
        Whether instant events and counters are yielded too, with duration 0.
    processes, open_events
        Phases by name, and ``B`` events without their ``E``, of the same writer's files so far.
    limits
        How much of the timeline is believed.

    Yields
    ------
    TraceEvent
        In the order of the file; a pair of ``B`` and ``E`` at the place of its ``E``.
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
    said = [] if problems is None else problems
    try:
        yield from assembler.events(reader.batches())
    except TimelineFaultError as err:
        said.append(f"Timeline {source!r} {err}.")
    if reader.skipped:
        said.append(
            f"Timeline {source!r} has {reader.skipped} records that are skipped, "
            f"the first because {reader.reason}."
        )
    if assembler.unpaired:
        get_logger("profiler").info(
            "Timeline %r has %d E events that did not begin in it.", source, assembler.unpaired
        )

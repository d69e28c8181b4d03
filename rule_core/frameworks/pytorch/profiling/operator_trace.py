"""records_of: the events of a model timeline in a trace of torch.profiler."""

import os
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from rule_core.profiler.files.constants import CONVERT_MICRO_TO_NS, MODELTIMELINE_SUFFIX
from rule_core.profiler.recording.timelines import TraceRecord

CPU_PHASE: Final = "cpu_functions"
GPU_PHASE: Final = "gpu_functions-dev:"
STEP_MARK: Final = "ProfilerStep#"
_CPU: Final = frozenset({"cpu_op", "user_annotation"})
_LAUNCHES: Final = frozenset({"cuda_runtime", "cuda_driver"})
_GPU: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})


class OperatorArgs(msgspec.Struct):
    """What is needed of an event's args: the device, and what launched it there."""

    device: int = 0
    correlation: int = -1


class OperatorEvent(msgspec.Struct):
    """An event of a trace, with times in microseconds since the trace's base time."""

    name: str = ""
    cat: str = ""
    ph: str = ""
    ts: float = 0.0
    dur: float = 0.0
    tid: int | str = 0
    args: msgspec.Raw = msgspec.Raw(b"{}")


class OperatorTrace(msgspec.Struct):
    """A trace as torch.profiler writes it."""

    base_ns: int = msgspec.field(name="baseTimeNanoseconds", default=0)
    events: list[OperatorEvent] = msgspec.field(name="traceEvents", default_factory=list)


_trace = msgspec.json.Decoder(OperatorTrace)
_args = msgspec.json.Decoder(OperatorArgs)


def records_of(content: bytes, mode_step: int, shift_us: int) -> Iterator[TraceRecord]:
    """Yield the operators on the CPU and the kernels on GPUs as events of the model timeline.

    Parameters
    ----------
    content
        The trace, JSON.
    mode_step
        The number of the step within its mode.
    shift_us
        Microseconds to add to all times.

    Raises
    ------
    msgspec.MsgspecError
        If the trace is damaged.
    """
    trace = _trace.decode(content)
    base_us = trace.base_ns // CONVERT_MICRO_TO_NS + shift_us
    threads = {
        _args.decode(event.args).correlation: event.tid
        for event in trace.events
        if event.cat in _LAUNCHES
    }
    step = {"step_num": str(mode_step)}
    for event in trace.events:
        if event.ph != "X":
            continue
        if event.cat in _CPU and not event.name.startswith(STEP_MARK):
            args = {"pid": os.getpid(), "tid": event.tid, "device": "cpu", **step}
            yield _record(CPU_PHASE, event, base_us, args)
        elif event.cat in _GPU:
            launch = _args.decode(event.args)
            thread = threads.get(launch.correlation, 0)
            args = {
                "pid": os.getpid(),
                "event_name": event.name,
                "device": launch.device,
                "start_cpu_thread": thread,
                **step,
            }
            yield _record(f"{GPU_PHASE}{launch.device}", event, base_us, args)


def _record(phase: str, event: OperatorEvent, base_us: int, args: dict[str, Any]) -> TraceRecord:
    start_us = base_us + round(event.ts)
    end_us = start_us + round(event.dur)
    return TraceRecord(MODELTIMELINE_SUFFIX, phase, event.name, start_us, end_us, args)

"""Writes Kineto traces as torch.profiler does, of trainings whose times are known exactly.

A step of a healthy training on one rank, in microseconds::

    host     | launches, LEAD before the kernels
    stream 7 | 10 kernels of 900, 10 apart; the last one is the optimizer's
    stream 20|           all-reduce of 2000 that ends with the ninth kernel, on all ranks at once

The faults change one thing of it each; see `Fault`.
"""

import gzip
import json
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final

BASE_NS: Final = 1_790_857_026_000_000_000
START_US: Final = 1_000.0
STEP_US: Final = 9_500
KERNELS: Final = 10
KERNEL_US: Final = 900.0
SMALL_KERNELS: Final = 560
GAP_US: Final = 10.0
LEAD_US: Final = 1_500.0
REDUCE_US: Final = 2_000.0
COMPUTE_STREAM: Final = 7
REDUCE_STREAM: Final = 20
GPU_MEMORY: Final = 80 * 2**30
MEMORY: Final = 8 * 2**30
LEAK: Final = 512 * 2**20
COMPUTE: Final = "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm>(Params)"
REDUCE: Final = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


class Fault(Enum):
    """What is wrong with a training.

    `HOST` halves the kernels, and launches each when the one before has ended for 480 us. `OVERLAP`
    shortens the kernels, and runs the all-reduce after them. `STRAGGLER` shortens those of all
    ranks but rank 1, for which the others wait. `SMALL` has 560 kernels of 5 us in place of each
    step's ten, 10 us apart. `MEMORY` keeps 512 MiB more after each step.
    """

    HOST = "host"
    OVERLAP = "overlap"
    STRAGGLER = "straggler"
    SMALL = "small"
    MEMORY = "memory"


class KinetoTrace:
    """The events of one rank; times are in microseconds after the base time."""

    def __init__(self, rank: int = 0, ranks: int = 1, *, base_ns: int = BASE_NS) -> None:
        self.rank = rank
        self.ranks = ranks
        self.base_ns = base_ns
        self.events: list[dict[str, Any]] = []
        self._correlation = 0

    def host(self, category: str, name: str, ts: float, dur: float, **args: Any) -> None:
        """Add an event of the process: ``cpu_op``, ``cuda_runtime``, ``user_annotation``."""
        self._add({"ph": "X", "cat": category, "name": name, "dur": dur}, 4000, 4000, ts, args)

    def kernel(
        self,
        name: str,
        ts: float,
        dur: float,
        stream: int,
        launch: float | None = None,
        **args: Any,
    ) -> None:
        """Add a kernel, and the call that launches it if its time is given."""
        self._correlation += 1
        link = {"correlation": self._correlation, "External id": self._correlation}
        if launch is not None:
            self.host("cuda_runtime", "cudaLaunchKernel", launch, 5.0, **link)
        record = {"ph": "X", "cat": "kernel", "name": name, "dur": dur}
        place = {"device": self.rank, "stream": stream, "context": 1}
        self._add(record, self.rank, stream, ts, {**place, **link, **args})

    def collective(self, ts: float, dur: float, launch: float) -> None:
        """Add an all-reduce of all ranks."""
        group = {"Collective name": "allreduce", "Process Group Name": "0"}
        group["Process Group Ranks"] = str(list(range(self.ranks)))
        self.kernel(REDUCE, ts, dur, REDUCE_STREAM, launch, **group)

    def memory(self, ts: float, allocated: int, reserved: int) -> None:
        """Add a sample of the memory allocator of the GPU."""
        args = {"Total Allocated": allocated, "Total Reserved": reserved, "Bytes": 512, "Addr": 1}
        device = {"Device Type": 1, "Device Id": self.rank}
        record = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]"}
        self._add(record, 4000, 4000, ts, {**args, **device})

    def step(self, number: int, ts: float, dur: float) -> None:
        """Add a step."""
        self.host("user_annotation", f"ProfilerStep#{number}", ts, dur)

    def _add(
        self, record: dict[str, Any], pid: int, tid: int, ts: float, args: dict[str, Any]
    ) -> None:
        self.events.append({**record, "pid": pid, "tid": tid, "ts": ts, "args": args})

    def document(self) -> dict[str, Any]:
        """Return the whole trace."""
        properties = {"name": "NVIDIA H100", "totalGlobalMem": GPU_MEMORY}
        info = {"backend": "nccl", "rank": self.rank, "world_size": self.ranks}
        return {
            "schemaVersion": 1,
            "deviceProperties": [{"id": number, **properties} for number in range(8)],
            **({"distributedInfo": info} if self.ranks > 1 else {}),
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": self.base_ns,
            "traceEvents": self.events,
            "traceName": f"rank{self.rank}.pt.trace.json",
        }

    def write(self, folder: Path, name: str | None = None) -> Path:
        """Write the trace, compressed if its name says so, and return its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (name or f"gpu-box_{4000 + self.rank}.{self.base_ns}.pt.trace.json")
        text = json.dumps(self.document(), indent=2).encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
        return path


def training(
    ranks: int = 1, steps: Sequence[int] = range(10, 18), fault: Fault | None = None
) -> list[KinetoTrace]:
    """Return the traces of a training's ranks."""
    traces = [KinetoTrace(rank, ranks) for rank in range(ranks)]
    for trace in traces:
        for index, number in enumerate(steps):
            _add_step(trace, index, number, fault)
    return traces


def write_training(
    folder: Path,
    ranks: int = 1,
    steps: Sequence[int] = range(10, 18),
    fault: Fault | None = None,
) -> list[Path]:
    """Write the traces of a training's ranks."""
    return [trace.write(folder) for trace in training(ranks, steps, fault)]


def _add_step(trace: KinetoTrace, index: int, number: int, fault: Fault | None) -> None:
    begin = START_US + index * float(STEP_US)
    trace.step(number, begin, STEP_US - 1.0)
    trace.host("cpu_op", "aten::linear", begin + 1, 500.0)
    start = begin + (20.0 if fault is Fault.HOST else LEAD_US)
    if fault is Fault.SMALL:
        for small in range(SMALL_KERNELS):
            trace.kernel(COMPUTE, start + 15 * small, 5.0, COMPUTE_STREAM, begin + small)
        ends = [start + 15.0 * SMALL_KERNELS]
    else:
        ends = _add_kernels(trace, start, fault)
    if trace.ranks > 1:
        _add_reduce(trace, start, ends, fault)
    kept = MEMORY + LEAK * index * (fault is Fault.MEMORY)
    trace.memory(begin + 100, kept + 2**30, kept + 4 * 2**30)
    trace.memory(begin + 9_000, kept, kept + 4 * 2**30)


def _add_kernels(trace: KinetoTrace, start: float, fault: Fault | None) -> list[float]:
    """Add the kernels of a step, and return their ends."""
    gap = 500.0 if fault is Fault.HOST else GAP_US
    is_short = fault is Fault.STRAGGLER and trace.rank != 1
    shares = {Fault.HOST: 1 / 2, Fault.OVERLAP: 5 / 6, Fault.STRAGGLER: 2 / 3 if is_short else 1.0}
    duration = KERNEL_US * (1.0 if fault is None else shares.get(fault, 1.0))
    ends: list[float] = []
    for _ in range(KERNELS):
        launch = start - 20 if fault is Fault.HOST else start - LEAD_US
        trace.kernel(COMPUTE, start, duration, COMPUTE_STREAM, launch)
        ends.append(start + duration)
        start = ends[-1] + gap
    return ends


def _add_reduce(trace: KinetoTrace, start: float, ends: list[float], fault: Fault | None) -> None:
    """Add the all-reduce of a step, which ends on all ranks at once."""
    if fault is Fault.OVERLAP:
        trace.collective(ends[-1], 1_300.0, start - LEAD_US)
        return
    if fault is Fault.STRAGGLER:
        end = start + KERNELS * (KERNEL_US + GAP_US) + 100
        trace.collective(ends[-1], end - ends[-1], start - LEAD_US)
        return
    end = ends[-2] if len(ends) > 1 else ends[-1]
    duration = REDUCE_US / 4 if fault is Fault.SMALL else REDUCE_US
    trace.collective(end - duration, duration, start - LEAD_US)

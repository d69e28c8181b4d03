"""Generated traces of torch.profiler: trainings on one to eight GPUs, with kernels and collectives.

A step of a rank launches its kernels, computes, and reduces the gradients with the other ranks. The
collective begins on each rank when that rank arrives, and ends on all at once. Times vary by a few
percent, from a fixed seed. `kineto_writer` has the exact format.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from kineto_writer import COMPUTE, COMPUTE_STREAM, KinetoTrace
from profile_jobs import GENERATED, faulty, healthy

START_US: Final = 1_000.0
MIB: Final = 2**20
LEAD_US: Final = 1_500.0
STRAGGLERS: Final = ((1, 2, 1.3), (0, 4, 1.5), (3, 4, 1.25), (5, 8, 2.0), (0, 2, 3.0))
HOST: Final = "A GPU that is idle between small kernels waits for their launches."


@dataclass(frozen=True, slots=True)
class Training:
    """What a training does in each step.

    Attributes
    ----------
    ranks, steps
        Numbers of GPUs and steps.
    kernels, kernel_us, gap_us
        Number and length of the kernels, and the pauses between them.
    late_us
        How long after the end of the kernel before each kernel is launched; negative: before it.
    pause_us
        A pause of the process between two steps, as for data.
    reduce_us, hidden
        Length of the collective, and the share of it that runs beside computation.
    slow_rank, slowdown
        A rank, and how many times as long its kernels take.
    slow_steps
        In which share of the steps it is slow.
    kept_mib, spike_mib
        Memory that each step keeps, and that each step takes for a moment.
    keeping_steps
        How many steps keep memory.
    small, small_us, small_steps
        Number and length of small kernels 8 us apart before the others, in the first steps.
    long_pause_us
        A pause of the process after half of the steps, as for a validation.
    """

    ranks: int = 1
    steps: int = 10
    kernels: int = 12
    kernel_us: float = 800.0
    gap_us: float = 5.0
    late_us: float = -500.0
    pause_us: float = 0.0
    reduce_us: float = 1500.0
    hidden: float = 0.9
    slow_rank: int = -1
    slowdown: float = 1.0
    slow_steps: float = 1.0
    kept_mib: float = 0.0
    keeping_steps: int = 1 << 30
    spike_mib: float = 200.0
    small: int = 0
    small_us: float = 5.0
    small_steps: int = 1 << 30
    long_pause_us: float = 0.0


def make(folder: Path, training: Training) -> None:
    """Write the traces of all ranks."""
    random = np.random.default_rng(3)
    traces = [KinetoTrace(rank, training.ranks) for rank in range(training.ranks)]
    begin = START_US
    for step in range(training.steps):
        ends = [
            _compute(trace, training, step, begin, float(random.normal(1.0, 0.01)))
            for trace in traces
        ]
        end = max(ends)
        if training.ranks > 1:
            arrivals = [last - training.hidden * training.reduce_us for last in ends]
            end = max(*ends, max(arrivals) + training.reduce_us)
            leave = max(arrivals) + training.reduce_us
            for trace, arrival in zip(traces, arrivals, strict=True):
                trace.collective(arrival, leave - arrival, begin)
        end += 50.0 + training.pause_us
        end += training.long_pause_us if step == training.steps // 2 else 0.0
        for trace in traces:
            trace.step(step + 10, begin, end - begin - 1.0)
        begin = end
    for trace in traces:
        trace.write(folder)


def _compute(
    trace: KinetoTrace, training: Training, step: int, begin: float, factor: float
) -> float:
    """Add the kernels and the memory of a step, and return the end of its last kernel."""
    is_slow = trace.rank == training.slow_rank and step < training.slow_steps * training.steps
    duration = training.kernel_us * factor * (training.slowdown if is_slow else 1.0)
    start = begin + 20.0
    last = begin - (LEAD_US if not training.pause_us else -training.pause_us / 2)
    for _ in range(training.small if step < training.small_steps else 0):
        trace.kernel(COMPUTE, start, training.small_us, COMPUTE_STREAM, start - 5.0)
        last = start + training.small_us
        start = last + 8.0
    for _ in range(training.kernels):
        launch = min(last + training.late_us, start - 5.0) if training.late_us < 0 else start - 5.0
        if training.late_us > 0:
            start = max(start, last + training.late_us)
            launch = start - 5.0
        # The process launches in its steps only.
        launch = max(launch, START_US + 1.0)
        trace.kernel(COMPUTE, start, duration, COMPUTE_STREAM, launch)
        last = start + duration
        start = last + training.gap_us
    used = int((4000 + training.kept_mib * min(step, training.keeping_steps)) * MIB)
    spike = used + int(training.spike_mib * MIB)
    for at, allocated in ((0.1, used), (0.5, spike), (0.9, used)):
        trace.memory(begin + at * (last - begin), allocated, spike + 1000 * MIB)
    return last


USUAL: Final = Training()
_HEALTHY: Final[Mapping[str, tuple[str, Training]]] = {
    **{
        f"trace_of_{ranks}_ranks": (
            f"{ranks} ranks that hide their communication.",
            replace(USUAL, ranks=ranks),
        )
        for ranks in (1, 2, 4, 8)
    },
    "trace_of_many_steps": ("Thirty steps of two ranks.", replace(USUAL, ranks=2, steps=30)),
    "trace_of_large_kernels": ("Few large kernels.", replace(USUAL, kernels=3, kernel_us=4000)),
    "trace_of_small_kernels_without_pauses": (
        "Small kernels from a graph, one after the other.",
        replace(USUAL, kernels=800, kernel_us=8, gap_us=0.5),
    ),
    "trace_of_some_small_kernels": (
        "Kernels of 30 microseconds with small pauses.",
        replace(USUAL, kernels=200, kernel_us=30, gap_us=2),
    ),
    "trace_with_half_hidden": (
        "Communication that is hidden by 60 %.",
        replace(USUAL, ranks=4, hidden=0.6),
    ),
    "trace_with_short_communication": (
        "Communication that is short and not hidden.",
        replace(USUAL, ranks=2, hidden=0.0, reduce_us=300),
    ),
    "trace_with_slightly_slower_rank": (
        "A rank that takes 3 % longer.",
        replace(USUAL, ranks=4, slow_rank=2, slowdown=1.03),
    ),
    "trace_with_one_slow_step": (
        "A rank that is slow in one step of ten.",
        replace(USUAL, ranks=4, slow_rank=1, slowdown=1.3, slow_steps=0.1),
    ),
    "trace_with_large_spikes": (
        "Memory that each step takes and frees.",
        replace(USUAL, spike_mib=20_000),
    ),
    "trace_with_tiny_growth": ("A list of losses that grows.", replace(USUAL, kept_mib=0.05)),
    "trace_with_short_pauses": (
        "A loader that lets the GPU wait for 5 %.",
        replace(USUAL, pause_us=400),
    ),
    "trace_with_late_but_quick_launches": (
        "Launches just before the kernel, with pauses of 3 %.",
        replace(USUAL, late_us=20, gap_us=25),
    ),
    "trace_with_rank_slower_by_2_percent": (
        "A rank of eight that takes 2 % longer.",
        replace(USUAL, ranks=8, slow_rank=5, slowdown=1.02),
    ),
    "trace_with_small_warm_up": (
        "A first step of 500 small kernels, before graphs are captured.",
        replace(USUAL, small=500, small_steps=1, steps=20),
    ),
    "trace_with_growth_that_levels_off": (
        "Memory that grows for four steps, while caches fill.",
        replace(USUAL, kept_mib=300, keeping_steps=4, steps=15),
    ),
    "trace_with_one_long_validation": (
        "A pause of 40 ms in 30 steps, for a validation on the processor.",
        replace(USUAL, steps=30, long_pause_us=40_000),
    ),
    "trace_with_some_exposed_communication": (
        "Long communication that is hidden by 70 %.",
        replace(USUAL, ranks=4, reduce_us=5000, hidden=0.7),
    ),
    "trace_of_graphs_of_small_kernels": (
        "Two ranks with small kernels that graphs launch without pauses.",
        replace(USUAL, ranks=2, kernels=600, kernel_us=9, gap_us=1),
    ),
}
_FAULTY: Final[Mapping[str, tuple[str, Training, str, Mapping[str, str]]]] = {
    **{
        f"trace_of_late_launches_on_{ranks}": (
            f"Launches that come late, on {ranks} ranks.",
            replace(USUAL, ranks=ranks, late_us=500, gap_us=500),
            "GPUIdleWaitsForHost",
            {},
        )
        for ranks in (1, 2, 4)
    },
    "trace_of_slow_loader": (
        "A loader for which the GPU waits a third of the time.",
        replace(USUAL, pause_us=5000),
        "GPUIdleWaitsForHost",
        {},
    ),
    "trace_of_very_slow_loader": (
        "A loader for which the GPU waits most of the time.",
        replace(USUAL, ranks=2, pause_us=20_000),
        "GPUIdleWaitsForHost",
        {},
    ),
    "trace_of_synchronizing_process": (
        "A process that waits for the result of each kernel.",
        replace(USUAL, late_us=300, gap_us=300, kernel_us=600),
        "GPUIdleWaitsForHost",
        {},
    ),
    **{
        f"trace_of_exposed_communication_on_{ranks}": (
            f"Communication of {ranks} ranks that nothing hides.",
            replace(USUAL, ranks=ranks, hidden=0.0, reduce_us=3000),
            "LowOverlap",
            {},
        )
        for ranks in (2, 4, 8)
    },
    "trace_of_long_communication": (
        "Communication as long as the computation, hidden by a fifth.",
        replace(USUAL, ranks=4, hidden=0.2, reduce_us=9000),
        "LowOverlap",
        {},
    ),
    "trace_of_barely_hidden_communication": (
        "Communication that is hidden by a third.",
        replace(USUAL, ranks=2, hidden=0.33, reduce_us=3500),
        "LowOverlap",
        {},
    ),
    **{
        f"trace_of_straggler_{rank}_of_{ranks}": (
            f"Rank {rank} of {ranks} takes {slowdown} times as long.",
            replace(USUAL, ranks=ranks, slow_rank=rank, slowdown=slowdown),
            "StragglerRank",
            {"LowOverlap": "Who waits in a collective computes nothing."},
        )
        for rank, ranks, slowdown in (
            (1, 2, 1.3),
            (0, 4, 1.5),
            (3, 4, 1.25),
            (5, 8, 2.0),
            (0, 2, 3.0),
        )
    },
    **{
        f"trace_of_kernels_of_{microseconds}_us": (
            f"Kernels of {microseconds} microseconds, with pauses of 8.",
            replace(USUAL, kernels=500, kernel_us=microseconds, gap_us=8, late_us=4),
            "SmallKernels",
            {"GPUIdleWaitsForHost": HOST},
        )
        for microseconds in (2, 4, 8)
    },
    "trace_of_small_kernels_on_two_ranks": (
        "Small kernels on two ranks.",
        replace(USUAL, ranks=2, kernels=400, kernel_us=5, gap_us=6, late_us=3),
        "SmallKernels",
        {"GPUIdleWaitsForHost": HOST, "LowOverlap": "There is little computation to hide it."},
    ),
    "trace_of_optimizer_without_fusion": (
        "An optimizer that runs 600 small kernels in each step.",
        replace(USUAL, kernels=6, small=600, small_us=3),
        "SmallKernels",
        {"GPUIdleWaitsForHost": HOST},
    ),
    "trace_of_loop_over_time": (
        "A loop over 300 points of time with two small kernels for each.",
        replace(USUAL, kernels=2, small=600, small_us=6),
        "SmallKernels",
        {"GPUIdleWaitsForHost": HOST},
    ),
    "trace_of_unhidden_shards": (
        "Shards that eight ranks fetch before they compute.",
        replace(USUAL, ranks=8, hidden=0.1, reduce_us=2500),
        "LowOverlap",
        {},
    ),
    **{
        f"trace_of_leak_of_{size}_mib": (
            f"Each step keeps {size} MiB.",
            replace(USUAL, kept_mib=size, ranks=ranks),
            "MemoryGrows",
            {},
        )
        for size, ranks in ((50, 1), (100, 2), (500, 1), (2000, 4))
    },
}

for _name, (_text, _training) in _HEALTHY.items():
    healthy(partial(make, training=_training), _name, _text, GENERATED)
for _name, (_text, _training, _rule, _may) in _FAULTY.items():
    faulty(partial(make, training=_training), _name, _text, GENERATED, (_rule,), _may)

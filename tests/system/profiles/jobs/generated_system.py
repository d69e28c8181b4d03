"""Generated samples of machines with GPUs: loads that a job may have, and those of a bottleneck.

All have the format of SageMaker's profiler: a sample of each series every half second, for 20
minutes, from a fixed seed.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from profile_jobs import GENERATED, faulty, healthy
from profiler_writer import END, Series, cpu, gpu, io_wait, memory, write, write_samples

COUNT: Final = 2400
Random = np.random.Generator
Load = Callable[[Random], Any]
LOW: Final = "Idle GPUs are underused GPUs."
SPARE: Final = "Processors, GPU and memory that wait have capacity to spare."


def steady(mean: float, spread: float = 3.0) -> Load:
    """Return a load around a mean, in percent."""
    return lambda random: np.clip(random.normal(mean, spread, COUNT), 0, 100)


def waves(low: float, high: float, period: int, share: float = 0.5) -> Load:
    """Return a load that is high for a share of each period of samples."""

    def load(random: Random) -> Any:
        is_high = np.arange(COUNT) % period < share * period
        return np.clip(np.where(is_high, high, low) + random.normal(0, 2, COUNT), 0, 100)

    return load


def ramp(start: float, end: float, samples: int = COUNT, at: int = 0) -> Load:
    """Return a load that rises from one value to another, and stays there."""

    def load(random: Random) -> Any:
        place = np.clip((np.arange(COUNT) - at) / samples, 0, 1)
        return np.clip(start + (end - start) * place + random.normal(0, 0.5, COUNT), 0, 100)

    return load


def make(
    folder: Path,
    cores: list[Load],
    gpus: list[Load],
    gpu_memory: list[Load],
    waits: list[Load],
    nodes: int = 1,
) -> None:
    """Write the samples of nodes with these loads."""
    kinds: tuple[tuple[Callable[..., Series], str, list[Load]], ...] = (
        (cpu, "cpu", cores),
        (io_wait, "cpu", waits),
        (gpu, "gpu", gpus),
        (memory, "gpu", gpu_memory),
    )
    random = np.random.default_rng(7)
    write_samples(
        folder,
        *(
            series(load(random), f"{name}{number}", node=f"algo-{node + 1}")
            for node in range(nodes)
            for series, name, loads in kinds
            for number, load in enumerate(loads)
        ),
    )
    write(folder, END)


def pause(at: int, samples: int, usual: float, paused: float) -> Load:
    """Return a load that has another value for some samples, once."""

    def load(random: Random) -> Any:
        index = np.arange(COUNT)
        is_paused = (at <= index) & (index < at + samples)
        return np.clip(np.where(is_paused, paused, usual) + random.normal(0, 1, COUNT), 0, 100)

    return load


BUSY: Final = steady(92)
GOOD: Final[Mapping[str, Any]] = {
    "cores": [steady(45), steady(40)],
    "gpus": [BUSY],
    "gpu_memory": [steady(80, 0.5)],
    "waits": [steady(2, 1), steady(2, 1)],
}

_HEALTHY: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "busy_gpu": ("A GPU that is busy throughout.", {}),
    "two_busy_gpus": (
        "Two GPUs with the same load.",
        {"gpus": [BUSY, BUSY], "gpu_memory": [steady(80, 0.5)] * 2},
    ),
    "eight_gpus": (
        "Eight GPUs with the same load.",
        {"gpus": [BUSY] * 8, "gpu_memory": [steady(70, 0.5)] * 8, "cores": [steady(50)] * 8},
    ),
    "two_nodes": ("Two nodes with a busy GPU each.", {"nodes": 2}),
    "full_memory": ("A GPU whose memory is nearly full.", {"gpu_memory": [steady(97, 0.3)]}),
    "little_memory": ("A small model that keeps its GPU busy.", {"gpu_memory": [steady(20, 0.5)]}),
    "busy_cores": (
        "Cores that prepare data all the time, and keep up.",
        {"cores": [steady(97, 1), steady(96, 1)]},
    ),
    "idle_cores": ("Cores that have little to do.", {"cores": [steady(5, 1), steady(4, 1)]}),
    "memory_rises_at_the_start": (
        "Memory that is allocated in the first minutes.",
        {"gpu_memory": [ramp(10, 85, 300)]},
    ),
    "memory_rises_slowly": (
        "A cache that grows by a fifth of the memory in 20 minutes.",
        {"gpu_memory": [ramp(60, 80)]},
    ),
    "waits_now_and_then": (
        "Waits for the disk for a tenth of the time, while the GPU has data.",
        {"waits": [waves(1, 60, 100, 0.1), steady(2, 1)]},
    ),
    "breathing_gpu": ("A GPU between 75 and 95 %.", {"gpus": [waves(75, 95, 20)]}),
    "short_pauses": (
        "A GPU that pauses for 2 % of the time, for checkpoints.",
        {"gpus": [waves(0, 93, 500, 0.98)]},
    ),
    "slightly_different_gpus": (
        "Two GPUs whose loads differ by two points.",
        {"gpus": [steady(93, 1), steady(91, 1)], "gpu_memory": [steady(80, 0.5)] * 2},
    ),
    "gpu_above_three_quarters": (
        "A GPU that is busy for 77 % of the time.",
        {"gpus": [steady(77)]},
    ),
    "one_validation_on_the_processor": (
        "One validation of 30 seconds, for which the GPU waits.",
        {"gpus": [pause(1700, 60, 91, 2)]},
    ),
    "one_slow_validation": (
        "One validation of two minutes with the GPU at 40 %.",
        {"gpus": [pause(1500, 240, 92, 40)]},
    ),
    "memory_rises_by_a_third": (
        "A validation that takes a third of the memory more.",
        {"gpu_memory": [ramp(45, 78, 4, 1500)]},
    ),
    "memory_levels_off": (
        "A cache that fills within a minute, and stays.",
        {"gpu_memory": [ramp(40, 90, 120, 1200)]},
    ),
    "eight_gpus_of_two_kinds": (
        "Eight GPUs, half of which need 3 % less time.",
        {
            "gpus": [steady(94, 1), steady(91, 1)] * 4,
            "gpu_memory": [steady(70, 0.5)] * 8,
            "cores": [steady(50)] * 8,
        },
    ),
    "gpus_that_breathe": (
        "Four GPUs with the same swings of load.",
        {"gpus": [waves(80, 96, 30)] * 4, "gpu_memory": [steady(80, 0.5)] * 4},
    ),
    "cores_that_wait_for_checkpoints": (
        "Waits for the disk for 8 % of the time, in which the GPU pauses for a second.",
        {"waits": [waves(1, 85, 150, 0.08)] * 2, "gpus": [waves(94, 3, 150, 2 / 150)]},
    ),
}
_FAULTY: Final[Mapping[str, tuple[str, Mapping[str, Any], tuple[str, ...], Mapping[str, str]]]] = {
    "cores_hold_up_the_gpu": (
        "Cores at their limit, and a GPU that waits for them.",
        {"cores": [steady(97, 1), steady(97, 1)], "gpus": [steady(4, 1)]},
        ("CPUBottleneck", "LowGPUUtilization"),
        {},
    ),
    "one_core_holds_up_the_gpu": (
        "One core that decodes, and a GPU that waits for it.",
        {"cores": [steady(99, 0.5), steady(3, 1)], "gpus": [steady(3, 1)]},
        ("CPUBottleneck", "LowGPUUtilization"),
        {"BatchSize": SPARE},
    ),
    "cores_hold_up_the_gpu_most_of_the_time": (
        "A GPU that waits for cores for 70 % of the time.",
        {"cores": [steady(96, 1), steady(96, 1)], "gpus": [waves(2, 90, 20, 0.3)]},
        ("CPUBottleneck", "LowGPUUtilization"),
        {},
    ),
    "disk_holds_up_the_gpu": (
        "Cores that wait for the disk, and a GPU that waits for them.",
        {"waits": [steady(80), steady(75)], "gpus": [steady(4, 1)], "cores": [steady(10)] * 2},
        ("IOBottleneck", "LowGPUUtilization"),
        {"BatchSize": SPARE},
    ),
    "disk_holds_up_the_gpu_most_of_the_time": (
        "A GPU that waits for the disk for 65 % of the time.",
        {"waits": [steady(70), steady(70)], "gpus": [waves(2, 90, 40, 0.35)]},
        ("IOBottleneck", "LowGPUUtilization"),
        {},
    ),
    "one_node_waits_for_the_disk": (
        "Two nodes that wait for a shared disk.",
        {"waits": [steady(75), steady(75)], "gpus": [steady(5, 1)], "nodes": 2},
        ("IOBottleneck", "LowGPUUtilization"),
        {},
    ),
    "underused_gpu": (
        "A GPU at a third of its capacity.",
        {"gpus": [steady(33)]},
        ("LowGPUUtilization",),
        {"BatchSize": SPARE},
    ),
    "idle_gpu": (
        "A GPU that nobody uses.",
        {"gpus": [steady(0, 0.2)], "gpu_memory": [steady(2, 0.2)], "cores": [steady(20)] * 2},
        ("LowGPUUtilization", "BatchSize"),
        {},
    ),
    "fluctuating_gpu": (
        "A GPU that is busy and idle in turn.",
        {"gpus": [waves(1, 95, 20)]},
        ("LowGPUUtilization",),
        {},
    ),
    "one_of_two_gpus": (
        "Two GPUs, of which one is used.",
        {"gpus": [BUSY, steady(1, 0.5)], "gpu_memory": [steady(80, 0.5), steady(3, 0.2)]},
        ("LoadBalancing", "LowGPUUtilization"),
        {"BatchSize": SPARE},
    ),
    "first_gpu_does_more": (
        "Four GPUs, of which the first does more than the others.",
        {"gpus": [steady(96, 1), *[steady(76, 1)] * 3], "gpu_memory": [steady(80, 0.5)] * 4},
        ("LoadBalancing",),
        {},
    ),
    "gpus_in_turn": (
        "Two GPUs, of which one is always busy and one is for half of the time.",
        {"gpus": [BUSY, waves(40, 90, 30)], "gpu_memory": [steady(80, 0.5)] * 2},
        ("LoadBalancing",),
        {},
    ),
    "small_batches": (
        "Batches so small that everything has capacity to spare.",
        {"gpus": [steady(30)], "gpu_memory": [steady(10, 0.5)], "cores": [steady(20)] * 2},
        ("BatchSize", "LowGPUUtilization"),
        {},
    ),
    "half_a_batch": (
        "Half of the batch that would fit.",
        {"gpus": [steady(55)], "gpu_memory": [steady(45, 0.5)], "cores": [steady(30)] * 2},
        ("BatchSize", "LowGPUUtilization"),
        {},
    ),
    "memory_jumps": (
        "Memory that jumps from a third to nearly all after ten minutes.",
        {"gpu_memory": [ramp(30, 95, 4, 1300)]},
        ("GPUMemoryIncrease",),
        {},
    ),
    "memory_jumps_for_an_evaluation": (
        "An evaluation that takes most of the memory.",
        {"gpu_memory": [ramp(20, 90, 2, 2000)]},
        ("GPUMemoryIncrease",),
        {},
    ),
    "second_model_in_memory": (
        "The memory of one of four GPUs is filled by a second model.",
        {"gpus": [BUSY] * 4, "gpu_memory": [*[steady(30, 0.5)] * 3, ramp(30, 92, 3, 1500)]},
        ("GPUMemoryIncrease",),
        {},
    ),
    "memory_jumps_on_two_nodes": (
        "Memory that jumps on two nodes when the batches become longer.",
        {"gpu_memory": [ramp(35, 96, 3, 1800)], "nodes": 2},
        ("GPUMemoryIncrease",),
        {},
    ),
    "memory_triples": (
        "Memory that triples when a validation keeps its graphs.",
        {"gpu_memory": [ramp(28, 88, 5, 1150)]},
        ("GPUMemoryIncrease",),
        {},
    ),
    "batch_of_one": (
        "A batch of one sample on a large GPU.",
        {"gpus": [steady(12)], "gpu_memory": [steady(6, 0.5)], "cores": [steady(15)] * 2},
        ("BatchSize", "LowGPUUtilization"),
        {},
    ),
    "small_batches_on_eight_gpus": (
        "A batch for one GPU that is split over eight.",
        {
            "gpus": [steady(35)] * 8,
            "gpu_memory": [steady(15, 0.5)] * 8,
            "cores": [steady(30)] * 8,
        },
        ("BatchSize", "LowGPUUtilization"),
        {},
    ),
    "small_batches_on_two_nodes": (
        "Small batches on two nodes.",
        {"gpus": [steady(48)], "gpu_memory": [steady(22, 0.5)], "cores": [steady(35)], "nodes": 2},
        ("BatchSize", "LowGPUUtilization"),
        {},
    ),
    "large_batches_that_wait": (
        "Large batches that fill the memory, and a GPU that is used by half.",
        {"gpus": [steady(52)], "gpu_memory": [steady(93, 0.5)]},
        ("LowGPUUtilization",),
        {},
    ),
    "cores_limit_the_batches": (
        "Cores at 85 %, and a GPU that is used by half: larger batches would not help.",
        {
            "gpus": [steady(50)],
            "gpu_memory": [steady(40, 0.5)],
            "cores": [steady(85, 2), steady(84, 2)],
        },
        ("LowGPUUtilization",),
        {},
    ),
    "one_core_of_eight_decodes": (
        "One of eight cores decodes for a GPU that waits for it.",
        {
            "cores": [steady(99, 0.5), *[steady(8, 1)] * 7],
            "waits": [steady(2, 1)] * 8,
            "gpus": [waves(3, 88, 40, 0.3)],
        },
        ("CPUBottleneck", "LowGPUUtilization"),
        {},
    ),
    "cores_hold_up_four_gpus": (
        "Cores at their limit, and four GPUs that wait for them.",
        {
            "cores": [steady(98, 0.5)] * 4,
            "gpus": [waves(2, 95, 25, 0.4)] * 4,
            "gpu_memory": [steady(80, 0.5)] * 4,
        },
        ("CPUBottleneck", "LowGPUUtilization"),
        {},
    ),
    "cores_hold_up_the_gpu_for_a_third": (
        "A GPU that waits for cores for a third of the time, less than is tolerated.",
        {"cores": [steady(97, 1), steady(96, 1)], "gpus": [waves(92, 3, 30, 0.33)]},
        ("LowGPUUtilization",),
        {},
    ),
    "small_files_hold_up_the_gpu": (
        "Small files on a network disk, for which the GPU waits most of the time.",
        {"waits": [steady(66), steady(68)], "gpus": [waves(1, 85, 30, 0.4)]},
        ("IOBottleneck", "LowGPUUtilization"),
        {},
    ),
    "checkpoints_hold_up_the_gpu": (
        "Checkpoints that are written for 60 % of the time, while the GPU pauses.",
        {"waits": [waves(2, 85, 200, 0.6)] * 2, "gpus": [waves(93, 3, 200, 0.6)]},
        ("IOBottleneck", "LowGPUUtilization"),
        {},
    ),
    "one_reader_holds_up_two_gpus": (
        "One process that reads for two GPUs.",
        {
            "waits": [steady(88), steady(1, 0.5)],
            "gpus": [steady(5, 1)] * 2,
            "gpu_memory": [steady(75, 0.5)] * 2,
        },
        ("IOBottleneck", "LowGPUUtilization"),
        {},
    ),
    "disk_holds_up_the_gpu_for_a_third": (
        "A GPU that waits for the disk for a third of the time, less than is tolerated.",
        {"waits": [waves(2, 80, 30, 0.33)] * 2, "gpus": [waves(93, 3, 30, 0.33)]},
        ("LowGPUUtilization",),
        {},
    ),
    "one_of_eight_gpus_is_slow": (
        "Eight GPUs, seven of which wait for the slowest at each step.",
        {
            "gpus": [*[steady(74, 2)] * 7, steady(97, 0.5)],
            "gpu_memory": [steady(80, 0.5)] * 8,
            "cores": [steady(40)] * 8,
        },
        ("LoadBalancing",),
        {},
    ),
    "stages_of_a_pipeline": (
        "Four stages of a pipeline with different work.",
        {
            "gpus": [steady(97, 0.5), steady(76, 1), steady(85, 1), steady(91, 1)],
            "gpu_memory": [steady(80, 0.5)] * 4,
        },
        ("LoadBalancing",),
        {},
    ),
    "one_idle_gpu_on_each_node": (
        "Two nodes that leave their second GPU idle.",
        {
            "gpus": [BUSY, steady(0, 0.2)],
            "gpu_memory": [steady(80, 0.5), steady(2, 0.2)],
            "nodes": 2,
        },
        ("LoadBalancing", "LowGPUUtilization"),
        {"BatchSize": SPARE},
    ),
}

for _name, (_text, _changes) in _HEALTHY.items():
    healthy(partial(make, **{**GOOD, **_changes}), _name, _text, GENERATED)
for _name, (_text, _changes, _fires, _may) in _FAULTY.items():
    faulty(partial(make, **{**GOOD, **_changes}), _name, _text, GENERATED, _fires, _may)

"""Rules about traces measure what Holistic Trace Analysis does.

`hta_numbers.json` has what it says of each job of the suite whose trace is generated; see
`benchmarks/detection/hta_numbers.py`. Where `RULE_RUNNER_HTA_PYTHON` names a Python that has it, it
is asked again.

Times of profiles are microseconds since 1970 in double precision, in steps of a quarter. Sums over
hundreds of kernels differ by some of them from those of times since the start of a trace.
"""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from comparing_hta import TABLE, asked_hta, traced_jobs, write_traces
from kineto_writer import COMPUTE, REDUCE

from builtin_rules.profiler.statistics.samples import Device
from builtin_rules.profiler.traces.gpu_idle_waits_for_host import GPUIdleWaitsForHost
from builtin_rules.profiler.traces.kernels import COMMUNICATES, COMPUTES, Kernels, kernels_by_gpu
from builtin_rules.profiler.traces.low_overlap import LowOverlap
from builtin_rules.profiler.traces.straggler_rank import StragglerRank
from rule_core.trials.profiler_trial import ProfilerTrial
from smdebug.profiler.trace_event_file_parser import TraceEvent

EVER = 1 << 53
TOLERATED_US = 0.05  # for each kernel
NUMBERS: Mapping[str, Any] = json.loads(TABLE.read_text())
SAMPLE = (
    "trace_of_1_ranks",
    "trace_with_half_hidden",
    "trace_of_late_launches_on_2",
    "trace_of_straggler_1_of_2",
    "trace_of_optimizer_without_fusion",
)


def kernels_of(events: list[TraceEvent], gpu: Device, stream: str | None = None) -> Kernels:
    """Return the kernels of a GPU, or of one of its streams."""
    chosen = [
        event
        for event in events
        if stream is None or str((event.event_args or {}).get("stream", stream)) == stream
    ]
    [kernels] = kernels_by_gpu(chosen)[gpu]
    return kernels


def compare(folder: Path, expected: Mapping[str, Any]) -> None:
    """Require the numbers of Holistic Trace Analysis."""
    trial = ProfilerTrial("job", folder)
    events = [*trial.framework_events(0, EVER)]
    steps = {
        int((event.event_args or {})["step_num"])
        for event in events
        if event.event_phase.startswith("Step:")
    }
    assert sorted(steps) == expected["steps"]
    reports = {}
    for rule in (GPUIdleWaitsForHost(trial), LowOverlap(trial), StragglerRank(trial)):
        rule.invoke_at_step(0)
        reports[rule.rule_name] = rule.report["Details"]
    for rank, numbers in expected["ranks"].items():
        name = f"rank-{rank}" if len(expected["ranks"]) > 1 else str(events[0].node_id)
        gpu = Device(name, f"gpu{rank}")
        kernels = kernels_of(events, gpu)
        near = partial(pytest.approx, abs=1 + TOLERATED_US * len(kernels.kinds))
        compare_kernels(kernels, numbers, near)
        for stream, wait in numbers["host_wait"].items():
            assert kernels_of(events, gpu, stream).waits_for_host == near(wait)
        measured = reports["GPUIdleWaitsForHost"][name][gpu.name]
        assert measured["idle"] / 100 * numbers["span"] == near(numbers["idle"])
        # A GPU waits while no stream has work; a stream also waits while another one works.
        most = max(numbers["host_wait"].values(), default=0.0)
        assert measured["host_wait"] <= 100 * most / numbers["span"] + 0.3
        if len({*streams_of(events, gpu)}) == 1:
            assert measured["host_wait"] == pytest.approx(100 * most / numbers["span"], abs=0.3)
        if numbers["overlap"] is not None:
            overlap = reports["LowOverlap"][name][gpu.name]["overlap"]
            assert overlap == pytest.approx(numbers["overlap"], abs=0.02)
    compare_stragglers(reports["StragglerRank"], expected)


def streams_of(events: list[TraceEvent], gpu: Device) -> list[Any]:
    """Return the streams on which a GPU has kernels."""
    return [
        (event.event_args or {}).get("stream")
        for event in events
        if event.node_id == gpu.node and event.event_phase.startswith("gpu_functions-dev:")
    ]


def compare_kernels(kernels: Kernels, numbers: Mapping[str, Any], near: Any) -> None:
    """Require the temporal breakdown and the kernel breakdown of a rank."""
    assert kernels.idle == near(numbers["idle"])
    assert kernels.span == near(numbers["span"])
    for kind, name in ((COMPUTES, COMPUTE), (COMMUNICATES, REDUCE)):
        intervals = kernels.of_kind(kind)
        sums = float((intervals[:, 1] - intervals[:, 0]).sum())
        assert sums == near(numbers["kernels"].get(name.partition("(")[0], 0.0))


def compare_stragglers(shares: Mapping[str, float], expected: Mapping[str, Any]) -> None:
    """Require the same rank where one is much later than the others.

    Holistic Trace Analysis always names a rank, also if all are late in turn.
    """
    awaited = {name: share for name, share in shares.items() if name != "last_timestamp"}
    if awaited and max(awaited.values()) > 10:
        assert max(awaited, key=awaited.__getitem__) == f"rank-{expected['straggler']}"


def test_the_table_has_all_jobs() -> None:
    assert [*NUMBERS] == traced_jobs()


@pytest.mark.parametrize(
    "name",
    [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.nightly) for name in NUMBERS],
)
def test_rules_measure_the_same(name: str, tmp_path: Path) -> None:
    [folder] = write_traces(tmp_path, [name])
    compare(folder, NUMBERS[name])


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_the_table_is_what_it_says(tmp_path: Path) -> None:
    assert asked_hta(write_traces(tmp_path, traced_jobs())) == NUMBERS

"""Kernels of traces: idle time, waits for the process and overlap, as Holistic Trace Analysis has.

The expected numbers were computed by HolisticTraceAnalysis 0.5.0 on the same traces, with
``include_last_profiler_step=True``: temporal breakdown, idle time breakdown of stream 7, and
overlap of communication and computation, all of rank 0.
"""

from pathlib import Path

import numpy as np
import pytest
from kineto_writer import COMPUTE_STREAM, Fault, KinetoTrace, write_training

from builtin_rules.profiler.statistics.samples import Device
from builtin_rules.profiler.traces.kernels import (
    COMMUNICATES,
    COMPUTES,
    Kernels,
    common,
    kernels_by_gpu,
    total,
)
from rule_core.trials.profiler_trial import ProfilerTrial

EVER = 1 << 53
GPU = Device("rank-0", "gpu0")


def kernels_of(folder: Path, fault: Fault | None, stream: int | None = None) -> Kernels:
    write_training(folder, 2, fault=fault)
    events = [
        event
        for event in ProfilerTrial("job", folder).framework_events(0, EVER)
        if stream is None or (event.event_args or {}).get("stream") in {stream, None}
    ]
    [kernels] = kernels_by_gpu(events)[GPU]
    return kernels


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", COMMUNICATES),
        ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>", COMMUNICATES),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>", COMMUNICATES),
        ("tensorrt_llm::kernels::oneShotAllReduceKernel<float>", COMMUNICATES),
        ("void deep_ep::intranode::dispatch<8, 768>", COMMUNICATES),
        ("nvshmemi_transfer_rma", COMMUNICATES),
        ("mscclKernel_Sum_half_LL", COMMUNICATES),
        ("AllToAllKernel", COMMUNICATES),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>", COMPUTES),
        ("void at::native::_scatter_gather_elementwise_kernel", COMPUTES),
        ("triton_poi_fused_all_gather_into_tensor_wait_tensor_0", COMPUTES),
        ("smallReduceKernel", COMPUTES),
    ],
)
def test_kernels_that_communicate_without_nccl_do_not_count_as_computation(
    tmp_path: Path, name: str, kind: int
) -> None:
    trace = KinetoTrace()
    trace.kernel(name, 10.0, 5.0, COMPUTE_STREAM)
    trace.write(tmp_path)
    events = ProfilerTrial("job", tmp_path).framework_events(0, EVER)
    [[kernels]] = kernels_by_gpu(events).values()
    assert kernels.kinds.tolist() == [kind]


@pytest.mark.parametrize(
    ("fault", "idle", "compute", "span"),
    [
        (None, 3430.0, 72000.0, 75590.0),
        (Fault.HOST, 31500.0, 36000.0, 75500.0),
        (Fault.OVERLAP, 4990.0, 60000.0, 75390.0),
        (Fault.STRAGGLER, 2820.0, 48000.0, 75700.0),
        (Fault.SMALL, 49820.0, 22400.0, 74900.0),
    ],
)
def test_the_temporal_breakdown(
    tmp_path: Path, fault: Fault | None, idle: float, compute: float, span: float
) -> None:
    kernels = kernels_of(tmp_path, fault)
    assert (kernels.idle, kernels.span) == (idle, span)
    assert total(kernels.of_kind(COMPUTES)) == compute


@pytest.mark.parametrize(
    ("fault", "host_wait"),
    [
        (None, 0.0),
        (Fault.HOST, 39500.0),
        (Fault.OVERLAP, 13370.0),
        (Fault.STRAGGLER, 23870.0),
        (Fault.SMALL, 0.0),
    ],
)
def test_the_waits_of_a_stream_for_the_host(
    tmp_path: Path, fault: Fault | None, host_wait: float
) -> None:
    assert kernels_of(tmp_path, fault, COMPUTE_STREAM).waits_for_host == host_wait


@pytest.mark.parametrize(
    ("fault", "percent"),
    [
        (None, 99.0),
        (Fault.HOST, 50.0),
        (Fault.OVERLAP, 0.0),
        (Fault.STRAGGLER, 0.0),
        (Fault.SMALL, 33.0),
    ],
)
def test_the_overlap_of_communication_and_computation(
    tmp_path: Path, fault: Fault | None, percent: float
) -> None:
    kernels = kernels_of(tmp_path, fault)
    communication = kernels.of_kind(COMMUNICATES)
    hidden = common(communication, kernels.of_kind(COMPUTES))
    assert 100 * hidden / total(communication) == percent


def test_times_in_common_are_those_of_a_line_of_microseconds() -> None:
    random = np.random.default_rng(3)
    for _ in range(30):
        sets = [np.sort(random.integers(0, 50, (6, 2)).astype(float), axis=1) for _ in range(2)]
        lines = np.zeros((2, 50), bool)
        for line, intervals in zip(lines, sets, strict=True):
            for start, end in intervals.astype(int):
                line[start:end] = True
        assert common(*sets) == (lines[0] & lines[1]).sum()


def test_a_gap_with_an_unknown_launch_is_no_wait_for_the_process() -> None:
    intervals = np.array([[0.0, 10.0], [2.0, 4.0], [20.0, 30.0], [40.0, 50.0]])
    launches = np.array([np.nan, np.nan, 15.0, np.nan])
    kernels = Kernels(intervals, launches, np.zeros(4, np.int8))
    assert (kernels.idle, kernels.waits_for_host, kernels.span) == (20.0, 10.0, 50.0)

"""The model timeline of a trace with operators, and kernels that they launch on GPUs."""

import json
import os
from typing import Any

import msgspec
import pytest

pytest.importorskip("torch", reason="torch is not installed.")

from rule_core.frameworks.pytorch.profiling.operator_trace import records_of


def event(name: str, cat: str, ts: float, dur: float, tid: Any = 7, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 3, "tid": tid, "ts": ts, "dur": dur} | {
        "args": args
    }


TRACE = {
    "schemaVersion": 1,
    "baseTimeNanoseconds": 1_700_000_000_000_000_000,
    "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 0, "tid": "x", "args": {"name": "python"}},
        event("ProfilerStep#4", "user_annotation", 1, 90),
        event("aten::mm", "cpu_op", 10.4, 20.2),
        event("cudaLaunchKernel", "cuda_runtime", 12, 3, tid=8, correlation=5),
        event("gemm", "kernel", 40.6, 7, tid=0, correlation=5, device=1, stream=7),
        event("Memcpy HtoD", "gpu_memcpy", 50, 1, tid=0, correlation=6, device=0),
        {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 5, "ts": 40, "pid": 1, "tid": 7},
    ],
}


def test_operators_and_kernels() -> None:
    records = list(records_of(json.dumps(TRACE).encode(), mode_step=4, shift_us=-3))
    base, pid = 1_700_000_000_000_000 - 3, os.getpid()
    gpu = {"pid": pid, "step_num": "4"}
    assert [record[1:] for record in records] == [
        (
            *("cpu_functions", "aten::mm", base + 10, base + 30),
            {"pid": pid, "tid": 7, "device": "cpu", "step_num": "4"},
        ),
        (
            *("gpu_functions-dev:1", "gemm", base + 41, base + 48),
            {**gpu, "event_name": "gemm", "device": 1, "start_cpu_thread": 8},
        ),
        (
            *("gpu_functions-dev:0", "Memcpy HtoD", base + 50, base + 51),
            {**gpu, "event_name": "Memcpy HtoD", "device": 0, "start_cpu_thread": 0},
        ),
    ]
    assert {record.suffix for record in records} == {"model_timeline.json"}


@pytest.mark.parametrize("content", [b"", b'{"traceEvents": [', b'{"traceEvents": [{"ts": "x"}]}'])
def test_damaged_traces(content: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        list(records_of(content, mode_step=0, shift_us=0))

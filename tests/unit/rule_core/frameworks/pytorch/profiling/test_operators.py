"""Operators of detailed steps: traces, the model timeline, and profiles of the script itself."""

import errno
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed.")

from recorded_profiles import events
from torch.profiler import ProfilerActivity, profile, schedule
from torch_profiles import model, profiled, steps

from rule_core.exceptions import SMDebugError
from rule_core.frameworks.pytorch.profiling import operators

Log = pytest.LogCaptureFixture
CPU, STEP = "cpu_functions", "Step:ModeKeys.GLOBAL"
PREPARE = "_prepare_trace"
OTHER = "the script uses torch.profiler itself"


def detailed(start: int, count: int) -> dict[str, Any]:
    return {"DetailedProfilingConfig": {"StartStep": start, "NumSteps": count}}


def profile_of_cpu(**options: Any) -> Any:
    return profile(activities=[ProfilerActivity.CPU], **options)


def traces(folder: Path) -> list[Path]:
    return sorted((folder / "profile").rglob("*.pt.trace.json.gz"))


def profiled_steps(folder: Path) -> list[int]:
    return [int(path.parent.name) for path in traces(folder)]


def test_steps_in_the_range_have_a_trace_each(tmp_path: Path) -> None:
    module = model()
    hook = profiled(tmp_path, module, **detailed(2, 2))
    steps(module, 6)
    hook.close()
    paths = traces(tmp_path)
    assert [path.relative_to(tmp_path / "profile").parts[0] for path in paths] == ["kineto"] * 2
    for path, step in zip(paths, (2, 3), strict=True):
        trace = json.loads(gzip.decompress(path.read_bytes()))
        names = [event["name"] for event in trace["traceEvents"]]
        assert f"ProfilerStep#{step}" in names
        assert "aten::addmm" in names
        start_us, end_us = map(int, path.name.split(".")[0].split("_")[-2:])
        recorded = [event for event in events(tmp_path, STEP) if event.start_time == start_us]
        assert [(event.event_args or {})["step_num"] for event in recorded] == [str(step)]
        assert recorded[0].end_time <= end_us


def test_operators_lie_in_their_steps(tmp_path: Path) -> None:
    module = model()
    hook = profiled(tmp_path, module, **detailed(2, 1))
    steps(module, 4)
    hook.close()
    step = events(tmp_path, STEP)[2]
    products = [event for event in events(tmp_path, CPU) if event.event_name == "aten::addmm"]
    assert len(products) == 2
    for event in products:
        assert event.file_type == "DetailedframeworkMetrics"
        assert (event.event_args or {})["device"] == "cpu"
        # The clocks of PyTorch and of the recording differ by parts of a millisecond.
        assert step.start_time - 1000 <= event.start_time <= event.end_time <= step.end_time + 1000


def test_the_first_step_and_the_last_can_be_profiled(tmp_path: Path) -> None:
    module = model()
    hook = profiled(tmp_path, module, **detailed(0, 100))
    steps(module, 2)
    hook.close()
    assert profiled_steps(tmp_path) == [0, 1]


def test_a_range_that_never_comes_leaves_nothing(tmp_path: Path) -> None:
    module, prepare = model(), vars(torch.autograd.profiler.profile)[PREPARE]
    hook = profiled(tmp_path, module, **detailed(2, 1))
    steps(module, 2)  # the profile is warmed up
    hook.close()
    assert profiled_steps(tmp_path) == []
    assert vars(torch.autograd.profiler.profile)[PREPARE] is prepare
    with profile_of_cpu() as own:
        torch.ones(1)
    assert own.events()


def test_traces_may_lie_inside_of_the_folder_of_the_framework(tmp_path: Path) -> None:
    module = model()
    hook = profiled(tmp_path, module, KinetoInside="true", **detailed(0, 1))
    steps(module, 1)
    hook.close()
    folder = tmp_path / "profile" / "framework" / "pytorch" / "kineto"
    assert [folder in path.parents for path in traces(tmp_path)] == [True]


def test_steps_are_left_to_a_profile_that_begins_in_them(tmp_path: Path, caplog: Log) -> None:
    module = model()
    hook = profiled(tmp_path, module, **detailed(1, 3))
    steps(module, 2)
    with profile_of_cpu() as own:
        steps(module, 1)
    steps(module, 2)
    hook.close()
    assert "aten::addmm" in {event.name for event in own.events()}
    assert caplog.text.count(OTHER) == 1
    assert profiled_steps(tmp_path) == [3]


def test_steps_inside_of_another_profile_are_left_to_it(tmp_path: Path, caplog: Log) -> None:
    module = model()
    with profile_of_cpu() as own:  # before the hook knows of it
        hook = profiled(tmp_path, module, **detailed(1, 1))
        steps(module, 3)
        hook.close()
    assert sum(event.name == "aten::addmm" for event in own.events()) == 6
    assert OTHER in caplog.text
    assert traces(tmp_path) == []


def test_a_profile_of_the_script_that_is_warmed_up_is_not_disturbed(tmp_path: Path) -> None:
    module, counts = model(), []
    plan = schedule(wait=0, warmup=2, active=1, repeat=1)
    with profile_of_cpu(
        schedule=plan, on_trace_ready=lambda done: counts.append(len(done.events()))
    ) as own:
        hook = profiled(tmp_path, module, **detailed(1, 1))
        steps(module, 4, lambda step: step and own.step())
        hook.close()
    assert len(counts) == 1
    assert counts[0] > 0
    assert traces(tmp_path) == []


def test_steps_are_skipped_while_many_wait_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Log
) -> None:
    monkeypatch.setattr(operators, "MOST_WAITING", 1)
    module = model()
    hook = profiled(tmp_path, module, **detailed(0, 50))
    assert hook.profiler is not None
    monkeypatch.setattr(hook.profiler, "write_later", lambda _: None)
    steps(module, 4)
    hook.close()
    assert "Operators of some steps are not profiled: 1 steps wait to be written." in caplog.text


def test_an_error_ends_profiling_at_the_next_step(tmp_path: Path, caplog: Log) -> None:
    module = model()
    hook = profiled(tmp_path, module, **detailed(0, 50))
    steps(module, 1)
    assert hook.profiler is not None
    hook.profiler.run(_fail)
    assert "The profiler is off for the rest of the training job" in caplog.text
    assert torch.autograd._profiler_enabled()
    steps(module, 1)
    assert not torch.autograd._profiler_enabled()
    hook.close()
    assert traces(tmp_path) == []


def _fail() -> None:
    raise SMDebugError


def test_a_full_disk_ends_profiling_and_not_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Log
) -> None:
    module = model()
    hook = profiled(tmp_path, module, **detailed(0, 2))
    monkeypatch.setattr(operators, "publish", _full)
    steps(module, 3)
    hook.close()
    assert caplog.text.count("The profiler is off for the rest of the training job: OSError") == 1


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")

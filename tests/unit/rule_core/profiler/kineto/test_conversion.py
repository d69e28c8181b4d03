"""What a trace becomes: steps, events, the use of GPUs, and problems with bad ones."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from kineto_writer import BASE_NS, GPU_MEMORY, KinetoTrace, training, write_training

from rule_core.profiler.files.chunks import TimelineLimits
from rule_core.profiler.files.conversion import Converted, NumberedKey
from rule_core.profiler.kineto.conversion import convert_trace
from rule_core.profiler.rule_helpers.framework_times import FrameworkTimes
from rule_core.storage.local import LocalStore
from rule_core.trials.profiler_trial import ProfilerTrial

BASE_US = BASE_NS // 1000
END_US = BASE_US + 10_000_000


def opened(path: Path) -> ProfilerTrial:
    trial = ProfilerTrial("job", path)
    assert trial.loaded_all_steps or not trial.first_timestamp
    return trial


def converted(path: Path, **limits: int) -> Converted:
    work = path.parent / "work"
    work.mkdir(exist_ok=True)
    numbered = NumberedKey(1, path.name)
    return convert_trace(LocalStore(path.parent), numbered, work, TimelineLimits(**limits))


def written(folder: Path, document: Any, name: str = "rank3.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(document))
    return path


def spoiled(**record: Any) -> dict[str, Any]:
    """Return a trace with one good operator and a record."""
    trace = KinetoTrace()
    trace.host("cpu_op", "aten::add", 10.0, 5.0)
    trace.events.append({**trace.events[0], **record})
    return trace.document()


def test_steps_events_and_samples_are_those_of_the_file(tmp_path: Path) -> None:
    [path] = write_training(tmp_path)
    records = json.loads(path.read_text())["traceEvents"]
    trial = opened(tmp_path)
    events = trial.framework_events(0, END_US)
    steps = [event for event in events if event.event_name == "Step:ModeKeys.GLOBAL"]
    assert [event.event_args for event in steps] == [
        {"step_num": str(number), "trace": 1} for number in range(10, 18)
    ]
    assert [event.start_time for event in steps] == [
        BASE_US + 1_000 + 9_500 * at for at in range(8)
    ]
    kernels = [event for event in events if event.event_phase == "gpu_functions-dev:0"]
    assert sum(event.duration for event in kernels) == sum(
        record["dur"] for record in records if record.get("cat") == "kernel"
    )
    assert {event.node_id for event in events} == {"gpu-box-4000"}


@pytest.mark.parametrize("fraction_us", [0, 300_000, 590_000])
def test_the_start_of_a_trace_is_not_rounded_down_to_a_second(
    tmp_path: Path, fraction_us: int
) -> None:
    trace = KinetoTrace(base_ns=BASE_NS + 1000 * fraction_us)
    for number in range(8):
        trace.step(number, 100_000.0 * number, 100_000.0)
        trace.kernel("gemm", 100_000.0 * number, 90_000.0, 7)
    trace.write(tmp_path)
    trial = opened(tmp_path)
    assert trial.first_timestamp == BASE_US + fraction_us
    times = FrameworkTimes(trial.first_timestamp)
    times.add(trial.framework_events(0, END_US))
    assert times.details()["phase"] == {"Step:ModeKeys.GLOBAL": 100.0}


def test_the_gpu_is_busy_while_a_kernel_runs(tmp_path: Path) -> None:
    trace = KinetoTrace(rank=2, ranks=4)
    trace.kernel("a", 0.0, 30_000.0, 7)
    trace.kernel("b", 20_000.0, 40_000.0, 8)
    trace.kernel("c", 150_000.0, 20_000.0, 7)
    trace.memory(100.0, 0, GPU_MEMORY // 4)
    trace.memory(200.0, 0, GPU_MEMORY // 2)
    trace.write(tmp_path)
    trial = opened(tmp_path)
    samples = trial.system_samples(0, END_US)
    use = samples.of(dimension="GPUUtilization", node="rank-2")
    assert use.value.tolist() == pytest.approx([60.0, 100 * 20 / 70])
    assert (use.time_us - BASE_US).tolist() == [100_000, 200_000]
    assert samples.of(dimension="GPUMemoryUtilization").value.tolist() == [50.0]
    assert {key.name for key in samples.keys} == {"gpu2"}


def test_a_compressed_trace_and_one_that_names_its_zero_last_are_equal(tmp_path: Path) -> None:
    [trace] = training()
    document = trace.document()
    late = {
        name: document[name] for name in ("schemaVersion", "traceEvents", "baseTimeNanoseconds")
    }
    trace.write(tmp_path / "a", "w.pt.trace.json.gz")
    (tmp_path / "b").mkdir()
    written(tmp_path / "b", {**late, "deviceProperties": document["deviceProperties"]}, "w.json")
    first, second = (opened(tmp_path / name) for name in "ab")
    assert first.first_timestamp == second.first_timestamp >= BASE_US
    for trial in (first, second):
        assert trial.problems == []
    events = [list(map(repr, trial.framework_events(0, END_US))) for trial in (first, second)]
    assert events[0] == events[1]


def test_old_traces_have_other_categories_and_times_since_the_epoch(tmp_path: Path) -> None:
    step = {"ph": "X", "cat": "Operator", "name": "ProfilerStep#3", "pid": 1, "tid": 1}
    kernel = {"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": 7, "args": {"device": 0}}
    events = [{**step, "ts": BASE_US, "dur": 90}, {**kernel, "ts": BASE_US + 10, "dur": 50}]
    written(tmp_path, {"schemaVersion": 1, "traceEvents": events})
    found = opened(tmp_path).framework_events(0, END_US)
    assert [(event.event_name, event.start_time) for event in found] == [
        ("k", BASE_US + 10),
        ("Step:ModeKeys.GLOBAL", BASE_US),
    ]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"dur": -1.0}, "it lasts -1.0 us"),
        ({"dur": None}, "it lasts None us"),
        ({"ts": None}, "its time is None us"),
        ({"ts": 1e300}, "its time is 1e+300 us"),
        ({"ts": "soon"}, "it cannot be decoded"),
        ({"args": []}, "it cannot be decoded"),
        ({"cat": "kernel", "pid": "GPU", "args": {"device": -1}}, "it does not name its GPU"),
    ],
)
def test_bad_records_are_counted_and_the_others_read(
    tmp_path: Path, record: dict[str, Any], reason: str
) -> None:
    trace = converted(written(tmp_path, spoiled(**record)))
    assert trace.lost == 1
    assert f"It has 1 records that are skipped, the first because {reason}" in trace.problems[0]
    assert len(trace.files) == 1


@pytest.mark.parametrize(
    "record",
    [{"ph": "s"}, {"ph": "f", "bp": "e"}, {"cat": "Trace", "pid": "Spans"}, {"cat": "ac2g"}],
)
def test_flows_and_spans_are_ignored(tmp_path: Path, record: dict[str, Any]) -> None:
    trace = converted(written(tmp_path, spoiled(**record)))
    assert (trace.lost, trace.problems, len(trace.files)) == (0, [], 1)


@pytest.mark.parametrize("name", ["a.pt.trace.json", "a.pt.trace.json.gz"])
def test_a_trace_that_is_cut_off_is_read_up_to_there(tmp_path: Path, name: str) -> None:
    [trace] = training()
    path = trace.write(tmp_path, name)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    trial = opened(tmp_path)
    assert 20 < len(trial.framework_events(0, END_US)) < 200
    assert len(trial.problems) == 1
    assert "cut off" in trial.problems[0] or "truncated gzip" in trial.problems[0]


def test_a_gzip_bomb_is_not_read_to_its_end(tmp_path: Path) -> None:
    text = b'{"schemaVersion": 1, "traceEvents": [' + b" " * 3_000_000 + b"]}"
    path = tmp_path / "a.pt.trace.json.gz"
    path.write_bytes(gzip.compress(text))
    trace = converted(path, swelling=10, unsuspected=1 << 20)
    assert trace.files == {}
    assert "expands to more than 10 times its size" in trace.problems[0]


def test_a_trace_without_a_time_ends_when_its_file_was_written(tmp_path: Path) -> None:
    path = written(tmp_path, {**spoiled(), "baseTimeNanoseconds": "never"})
    trace = converted(path)
    [key] = trace.files
    assert int(key.split("/")[-1].split("_")[0]) == pytest.approx(path.stat().st_mtime * 1e6, abs=2)
    assert trace.problems[0].startswith("It does not say when it was recorded: it counts as ")


def test_times_of_more_than_a_day_do_not_fill_the_memory(tmp_path: Path) -> None:
    trace = KinetoTrace()
    trace.kernel("a", 0.0, 1.0, 7)
    trace.kernel("b", 1e12, 1.0, 7)
    path = trace.write(tmp_path)
    assert "span more than a day" in converted(path).problems[0]


def test_a_trace_of_minutes_has_a_timeline_for_each(tmp_path: Path) -> None:
    trace = KinetoTrace()
    for minute in range(5):
        trace.host("cpu_op", f"op {minute}", minute * 60e6 + 10.0, 5.0)
        trace.step(minute, minute * 60e6, 100.0)
    trace.write(tmp_path)
    trial = opened(tmp_path)
    assert sorted(map(len, trial.source.files.traces.values())) == [5, 5]
    names = [event.event_name for event in trial.framework_events(0, BASE_US + 10**9)]
    assert names[::2] == [f"op {minute}" for minute in range(5)]
    later = trial.framework_events(BASE_US + 180_000_000, BASE_US + 240_000_000)
    assert [event.event_name for event in later] == ["op 3", "Step:ModeKeys.GLOBAL"]


# Versions of PyTorch differ in the fields beside the events, and in the categories of events.
VERSIONS: list[dict[str, Any]] = [
    {"schemaVersion": 1, "baseTimeNanoseconds": 0},  # times since the epoch
    {"schemaVersion": 1, "baseTimeNanoseconds": BASE_NS, "with_flops": 1, "trace_id": "4B"},
    {"schemaVersion": 1, "baseTimeNanoseconds": BASE_NS, "hip_driver_version": 70},
    {"schemaVersion": 2, "baseTimeNanoseconds": BASE_NS, "distributedInfo": None},
]


@pytest.mark.parametrize("fields", VERSIONS)
def test_fields_and_categories_that_are_not_known_are_ignored(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    base = 0 if fields["baseTimeNanoseconds"] else BASE_US
    common = {"ph": "X", "pid": 7, "tid": "stream 7", "dur": 50.25}
    events = [
        {**common, "cat": "user_annotation", "name": "ProfilerStep#3", "ts": base + 0.125},
        {**common, "cat": "gpu_user_annotation", "name": "ProfilerStep#3", "ts": base + 1},
        {**common, "cat": "kernel", "name": "k", "ts": base + 10.5, "args": {"device": "0"}},
        {**common, "cat": "overhead", "name": "Lazy", "ts": base + 20},
        {**common, "cat": "python_function", "name": "f", "ts": base + 21},
        {**common, "cat": "privateuse1_runtime", "name": "launch", "ts": base + 22},
        {"ph": "C", "pid": 7, "name": "Memory", "ts": base + 30, "args": {"bytes": 1}},
    ]
    written(tmp_path, {**fields, "traceEvents": events})
    trial = opened(tmp_path)
    assert trial.problems == []
    found = [event.event_name for event in trial.framework_events(0, END_US)]
    assert found == ["Step:ModeKeys.GLOBAL", "k"]
    assert len(trial.system_samples(0, END_US)) == 1


@pytest.mark.nightly
def test_512_ranks_are_512_nodes(tmp_path: Path) -> None:
    write_training(tmp_path, 512, steps=range(2))
    trial = opened(tmp_path)
    assert len(trial.nodes) == 512
    assert trial.problems == []
    steps = [
        event for event in trial.framework_events(0, END_US) if event.event_name.startswith("Step:")
    ]
    assert len(steps) == 1024

"""Readers of system metrics under their documented names, in a folder and in S3."""

from pathlib import Path

import profiler_writer as writer
import pytest
import recorded
import s3_objects
import timeline_writer
from profiler_writer import BEGIN_S, BEGIN_US, MINUTE_US

from rule_core.exceptions import SMDebugNotImplementedError, SMDebugValueError
from rule_core.modes import ModeKeys
from rule_core.profiler.files.time_units import TimeUnits
from rule_core.profiler.readers.system_reader import SystemMetricsReader
from rule_core.storage.base import ObjectNotFoundError
from rule_core.trials.create_trial import create_trial
from smdebug.profiler import (
    LocalSystemMetricsReader,
    MetricsReaderBase,
    ProfilerSystemEvents,
    S3NumpySystemMetricsReader,
    S3SystemMetricsReader,
)

REAL = recorded.shared_folder() / "profiler" / "test_traces"
real = pytest.mark.skipif(not REAL.exists(), reason=recorded.MISSING)
S = 1_000_000


def job(minutes: int = 3) -> dict[str, bytes]:
    seconds = range(60 * minutes)
    return writer.files(
        writer.cpu(seconds, every_s=1.0), writer.gpu(seconds, every_s=1.0, node="algo-2")
    )


def values(reader: SystemMetricsReader, *range_: float, **more: str) -> list[float]:
    return [one.value for one in reader.get_events(*range_, **more)]  # type: ignore[arg-type] # of units


def test_times_of_files(tmp_path: Path) -> None:
    reader = LocalSystemMetricsReader(tmp_path / "later")
    assert reader.get_current_time_range_for_event_query() == (0, 0)
    assert reader.get_events(0, 10**17) == []
    writer.write(tmp_path / "later", job() | {"system/incremental/notes.json": b"{}"})
    reader.refresh_event_file_list()
    first, last = BEGIN_US, BEGIN_US + 2 * MINUTE_US
    assert reader.get_timestamp_of_first_available_file() == first
    assert reader.get_timestamp_of_latest_available_file() == last
    assert reader.get_current_time_range_for_event_query() == (first, last)
    assert isinstance(reader, MetricsReaderBase)


@pytest.mark.parametrize("cached", [False, True])
def test_events_of_a_range_of_time_in_any_unit(tmp_path: Path, cached: bool) -> None:
    writer.write(tmp_path, job())
    reader = LocalSystemMetricsReader(tmp_path, use_in_memory_cache=cached)
    expected = [5.0, 6.0, 7.0, 5.0, 6.0, 7.0]
    for unit, scale in (
        (TimeUnits.SECONDS, 1),
        (TimeUnits.MILLISECONDS, 10**3),
        (TimeUnits.MICROSECONDS, 10**6),
        (TimeUnits.NANOSECONDS, 10**9),
    ):
        start, end = (BEGIN_S + 5) * scale, (BEGIN_S + 7) * scale
        found = reader.get_events(start, end, unit)
        assert [one.value for one in found] == expected
    assert [one.node_id for one in found] == ["algo-1"] * 3 + ["algo-2"] * 3
    start, end = BEGIN_US + 5 * S, BEGIN_US + 7 * S
    assert [one.type for one in reader.get_events(start, end, event_type="gpu")] == ["gpu"] * 3
    assert reader.get_events(start, end, event_type="gp") == []
    suffixes = ["algo-2.json"]
    assert len(reader.get_events(start, end, file_suffix_filter=suffixes)) == 3
    assert len(reader.samples(start, end)) == 4


def test_new_files_are_found_when_the_range_may_reach_them(tmp_path: Path) -> None:
    files = job(10)
    old = {key: content for key, content in files.items() if f"{BEGIN_S + 300}" > key.split("/")[3]}
    writer.write(tmp_path, old)
    reader = LocalSystemMetricsReader(tmp_path)
    writer.write(tmp_path, files)
    assert values(reader, BEGIN_US, BEGIN_US) == [0.0, 0.0]
    before = reader.get_timestamp_of_latest_available_file()
    assert len(reader.samples(BEGIN_US + 7 * MINUTE_US, BEGIN_US + 8 * MINUTE_US)) == 120
    assert reader.get_timestamp_of_latest_available_file() > before


def test_events_of_steps(tmp_path: Path) -> None:
    writer.write(tmp_path, job())
    steps = [timeline_writer.step(at, at * 10 * S, 9 * S) for at in range(10)]
    late = [
        timeline_writer.step(1, 100 * S, 5 * S, mode="EVAL"),
        timeline_writer.step(2, 110 * S, S),
    ]
    timeline_writer.write(tmp_path, [*steps, *late], start_us=BEGIN_US)
    reader = LocalSystemMetricsReader(tmp_path)
    found = reader.get_events_by_step(1, 3, event_type="cpu", mode=ModeKeys.TRAIN)
    assert [one.value for one in found] == list(range(10, 30))
    found = reader.get_events_by_step(1, 2, event_type="cpu", mode=ModeKeys.EVAL)
    assert found[0].value == 100.0
    assert reader.get_events_by_step(70, 80) == []
    assert len(reader.get_events_by_step(1, 3, file_suffix_filter=["algo-2.json"])) == 20


@pytest.mark.parametrize(("text", "minutes"), [("0", 2), ("60000000", 4)])
def test_the_environment_sets_the_time_buffer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, minutes: int
) -> None:
    monkeypatch.setenv("TIME_BUFFER_MICROSECONDS", text)
    writer.write(tmp_path, job(10))
    reader = LocalSystemMetricsReader(tmp_path)
    for key in list(reader.files.system):
        if key == "algo-2":
            del reader.files.system[key]
    assert len(reader.files.system_between(BEGIN_US + 4 * MINUTE_US, BEGIN_US + 5 * MINUTE_US)) == (
        minutes
    )
    assert len(values(reader, BEGIN_US + 4 * MINUTE_US, BEGIN_US + 5 * MINUTE_US)) == 61


def test_in_s3_it_is_the_same(aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAILING_DURATION_MICROSECONDS", "60000000")
    s3_objects.make_bucket(aws_endpoint)
    files = job()
    cut = max(files)
    files[cut] = files[cut][:-5]
    s3_objects.put(aws_endpoint, "job/", files)
    reader = S3SystemMetricsReader("s3://bucket/job")
    assert values(reader, BEGIN_US + 59 * S, BEGIN_US + 60 * S) == [59.0, 59.0, 60.0, 60.0]
    s3_objects.put(aws_endpoint, "job/", job(4))
    assert len(values(reader, 0, BEGIN_US + 4 * MINUTE_US)) == 480
    steps = [timeline_writer.step(at, at * 10 * S, 9 * S) for at in range(5)]
    timeline = timeline_writer.text(timeline_writer.records(steps, BEGIN_US)).encode()
    key = timeline_writer.key(BEGIN_US + 49 * S)
    s3_objects.put(aws_endpoint, "job/", {key: timeline, **writer.END})
    trial = create_trial("s3://bucket/job", profiler=True, output_dir=None)
    assert len(trial.system_samples(trial.first_timestamp, trial.settled_timestamp)) == 480
    assert len(trial.framework_events(trial.first_timestamp, trial.settled_timestamp)) == 5
    assert (trial.name, trial.loaded_all_steps, trial.problems) == ("job", True, [])


def test_what_is_no_address_of_s3_is_an_error(tmp_path: Path) -> None:
    match = r"^S3SystemMetricsReader requires an address such as s3://bucket/prefix, got '/.*'\.$"
    with pytest.raises(SMDebugValueError, match=match):
        S3SystemMetricsReader(str(tmp_path))


def test_the_bulk_reader_says_what_to_use() -> None:
    match = r"^S3NumpySystemMetricsReader is not supported\. Use the arrays that "
    with pytest.raises(SMDebugNotImplementedError, match=match):
        S3NumpySystemMetricsReader("s3://b/p", use_in_memory_cache=False)


def test_the_parser_of_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    parser = ProfilerSystemEvents()
    path = tmp_path / "1591160699.algo-1.json"
    path.write_bytes(writer.line(1, 100.5) + b"nothing\n" + writer.line(2, 200.5, kind="gpu"))
    parser.read_events_from_file(str(path))
    assert "1 of 3 lines are no system metrics" in caplog.text
    one = {"Type": "cpu", "Dimension": "Memory", "Value": 3, "NodeId": "n", "Timestamp": 300}
    parser.read_events_from_json_data([one])
    assert [(each.value, each.name) for each in parser.get_all_events()] == [
        *((1.0, "cpu0"), (2.0, "cpu0"), (3, None)),
    ]
    found = parser.get_events_within_time_range(100.5, 200, TimeUnits.SECONDS)
    assert [each.timestamp for each in found] == [100.5]
    found = parser.get_events_within_time_range(0, 300 * S, event_type="gpu")
    assert [each.timestamp for each in found] == [200.5]
    parser.clear_events()
    assert parser.get_all_events() == []
    del one["NodeId"]
    with pytest.raises(KeyError, match="NodeId"):
        parser.read_event_from_dict(one)
    with pytest.raises(ObjectNotFoundError, match="does not exist"):
        parser.read_events_from_file(str(tmp_path / "none.json"))


@real
def test_files_of_a_real_job() -> None:
    reader = LocalSystemMetricsReader(REAL)
    assert reader.get_current_time_range_for_event_query() == (1591160699000000, 1591748160000000)
    assert len(reader.get_events(0, 10**16)) == 78
    found = reader.get_events(1591160699, 1591160800, TimeUnits.SECONDS)
    assert [(one.name, one.dimension, one.value, one.timestamp) for one in found] == [
        ("cpu0", "CPUUtilization", 4.76, 1591160699.4570894),
        ("cpu1", "CPUUtilization", 5.3, 1591160799.5570894),
    ]
    # The first file goes on long after its minute.
    late = reader.get_events(1591170000, 1591171000, TimeUnits.SECONDS)
    assert [(one.name, one.value) for one in late] == [("gpu1", 47.76)]


@real
def test_a_trial_of_a_real_job() -> None:
    trial = create_trial(REAL, profiler=True, output_dir=None)
    assert (trial.first_timestamp, trial.nodes) == (1589930989663519, ["algo-1"])
    assert trial.newest_timestamp == 1591748160000000
    assert len(trial.get_framework_metrics(0, 10**16)) == 4
    assert trial.problems == []

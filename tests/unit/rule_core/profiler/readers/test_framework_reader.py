"""Framework events by time and by step, from a folder and from S3."""

from pathlib import Path

import pytest
import s3_objects
import timeline_writer as tw

from rule_core.exceptions import SMDebugValueError
from rule_core.modes import ModeKeys
from rule_core.profiler.files.time_units import TimeUnits, get_node_id_from_tracefilename
from rule_core.profiler.readers.framework_reader import (
    LocalAlgorithmMetricsReader,
    S3AlgorithmMetricsReader,
)
from rule_core.profiler.traces.legacy_parsers import TraceEventParser

ZERO = tw.START_US
MINUTE = 60_000_000
ALWAYS = (0, 2 * ZERO)


def job(root: Path) -> Path:
    """Write a job: three steps of training and one of evaluation, ten minutes apart."""
    for number in range(3):
        tw.write(root, [tw.step(number, 10 * number * MINUTE, 9 * MINUTE)])
    tw.write(root, [tw.step(0, 30 * MINUTE, MINUTE, "EVAL")])
    model = [tw.Event("Forward", "fc", MINUTE, 5), tw.Event("Forward", "conv", 11 * MINUTE, 5)]
    tw.write(root, model, node="12-algo-2", kind=tw.MODEL)
    return root


def found(reader: LocalAlgorithmMetricsReader | S3AlgorithmMetricsReader, *how: float) -> list[str]:
    return [one.event_name.rpartition(".")[2] for one in reader.get_events(*how)]


@pytest.mark.parametrize(
    "node",
    [
        *("11-algo-1", "905-b88ab1bb8259", "11-gpu-box", "worker", "my-algo-7", "algo-7", "4487"),
        *("7-ip-10-0-0-1.ec2.internal", "11-algo-2-algo-3", "12345-my_host"),
    ],
)
def test_the_node_in_a_name_is_that_of_the_events(tmp_path: Path, node: str) -> None:
    path = tw.write(tmp_path, [tw.step(0, 0, 5)], node=node)
    (event,) = LocalAlgorithmMetricsReader(tmp_path).get_events(*ALWAYS)
    assert event.node_id == get_node_id_from_tracefilename(str(path))


def test_the_node_in_the_name_of_a_file_outside_of_a_job_is_that_of_its_events(
    tmp_path: Path,
) -> None:
    path = tw.write(tmp_path / "job", [tw.step(0, 0, 5)], node="11-algo-1")
    alone = path.rename(tmp_path / path.name)
    parser = TraceEventParser()
    parser.read_events_from_file(str(alone))
    (event,) = parser.get_all_events()
    assert event.node_id == get_node_id_from_tracefilename(str(alone)) == "algo-1-11"


@pytest.mark.parametrize("cached", [False, True])
def test_events_of_a_range_come_kind_by_kind(tmp_path: Path, cached: bool) -> None:
    reader = LocalAlgorithmMetricsReader(job(tmp_path), use_in_memory_cache=cached)
    for _ in range(2):
        assert found(reader, *ALWAYS) == ["TRAIN", "TRAIN", "TRAIN", "EVAL", "fc", "conv"]
        assert found(reader, ZERO, ZERO + MINUTE) == ["TRAIN", "fc"]
    assert reader.file_problems.problems == {}


def test_ranges_have_units_and_events_types_and_files_suffixes(tmp_path: Path) -> None:
    reader = LocalAlgorithmMetricsReader(str(job(tmp_path)))
    begin, end = ZERO // 10**6, ZERO // 10**6 + 60
    seconds = reader.get_events(begin, end, TimeUnits.SECONDS)
    assert [one.start_time - ZERO for one in seconds] == [0, MINUTE]
    typed = reader.get_events(*ALWAYS, event_type="Forward")
    assert [one.event_name for one in typed] == ["fc", "conv"]
    of_model = reader.get_events(*ALWAYS, file_suffix_filter=[tw.MODEL])
    assert of_model[0].file_type == "DetailedframeworkMetrics"
    assert len(of_model) == 2


def test_only_files_near_the_range_are_read(tmp_path: Path) -> None:
    job(tmp_path)
    far = tw.write(tmp_path, [tw.step(9, 300 * MINUTE, 5)])
    tw.write(tmp_path, [tw.step(8, 200 * MINUTE, 5)])
    far.write_text("junk")
    reader = LocalAlgorithmMetricsReader(tmp_path)
    assert found(reader, ZERO, ZERO + MINUTE) == ["TRAIN", "fc"]
    assert reader.file_problems.problems == {}
    assert "TRAIN" in found(reader, *ALWAYS)
    assert found(reader, *ALWAYS)
    key = str(far.relative_to(tmp_path))
    said = "is not a JSON array of trace events: it begins with b'junk'"
    assert reader.file_problems.problems == {key: f"Timeline {key!r} {said}."}


@pytest.mark.parametrize(
    ("start", "end", "mode", "starts"),
    [
        pytest.param(1, 2, None, [10, 11], id="a-step"),
        pytest.param(2, 3, ModeKeys.TRAIN, [20], id="the-last-step"),
        pytest.param(0, 1, ModeKeys.EVAL, [30], id="of-evaluation"),
        pytest.param(5, 9, None, [], id="unknown"),
    ],
)
def test_events_of_steps(
    tmp_path: Path, start: int, end: int, mode: ModeKeys | None, starts: list[int]
) -> None:
    reader = LocalAlgorithmMetricsReader(job(tmp_path))
    events = reader.get_events_by_step(start, end, mode=mode)
    assert [(one.start_time - ZERO) // MINUTE for one in events] == starts


def test_the_files_tell_the_range_of_time(tmp_path: Path) -> None:
    reader = LocalAlgorithmMetricsReader(tmp_path / "job")
    assert reader.get_current_time_range_for_event_query() == (0, 0)
    job(tmp_path / "job")
    tw.write_text(tmp_path / "job", "framework/pytorch/pyinstrument/n/s/python_stats.json", "{}")
    reader.refresh_event_file_list()
    expected = (ZERO + 9 * MINUTE, ZERO + 31 * MINUTE)
    assert reader.get_current_time_range_for_event_query() == expected


def test_new_files_are_found_by_asking(tmp_path: Path) -> None:
    reader = LocalAlgorithmMetricsReader(tmp_path)
    assert found(reader, *ALWAYS) == []
    job(tmp_path)
    assert len(found(reader, *ALWAYS)) == 6


@pytest.mark.parametrize("cached", [False, True])
def test_what_begins_in_one_file_ends_in_the_next(tmp_path: Path, cached: bool) -> None:
    zero = tw.meta(0, start_time_since_epoch_in_micros=ZERO)
    records = [
        {"name": "reduce", "ph": "B", "pid": 1, "ts": 10},
        {"ph": "E", "pid": 1, "ts": 90},
        {"name": "other", "ph": "B", "pid": 1, "ts": 91},
    ]
    for record in records:
        name = tw.key(ZERO + record["ts"], kind=tw.HOROVOD)
        tw.write_text(tmp_path, name, tw.text([zero, record]))
    reader = LocalAlgorithmMetricsReader(tmp_path, cached)
    assert found(reader, *ALWAYS) == ["reduce"]
    last = tw.text([zero, {"ph": "E", "pid": 1, "ts": 95}])
    tw.write_text(tmp_path, tw.key(ZERO + 95, kind=tw.HOROVOD), last)
    assert found(reader, *ALWAYS) == ["reduce", "other"]


def test_events_in_s3_are_those_of_the_folder(aws_endpoint: str, tmp_path: Path) -> None:
    s3_objects.make_bucket(aws_endpoint)
    paths = [path for path in job(tmp_path).rglob("*") if path.is_file()]
    content = {str(path.relative_to(tmp_path)): path.read_bytes() for path in paths}
    s3_objects.put(aws_endpoint, "job/", content)
    reader = S3AlgorithmMetricsReader("s3://bucket/job")
    assert found(reader, *ALWAYS) == found(LocalAlgorithmMetricsReader(tmp_path), *ALWAYS)
    with pytest.raises(SMDebugValueError, match="such as s3://bucket/prefix, got '/job'"):
        S3AlgorithmMetricsReader("/job")

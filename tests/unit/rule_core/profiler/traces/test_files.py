"""Timelines as files, and their parsers: names, types, zeros; what is damaged, and real ones."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import timeline_writer as tw
from memory_store import MemoryStore
from recorded import MISSING, shared_folder

from rule_core.profiler.files.time_units import TimeUnits
from rule_core.profiler.traces.files import events_of, locate
from rule_core.profiler.traces.legacy_parsers import (
    HorovodProfilerEvents,
    SMDataParallelProfilerEvents,
    SMProfilerEvents,
    TensorboardProfilerEvents,
)
from rule_core.storage.base import StorageUnavailableError
from rule_core.storage.local import LocalStore

ZERO = tw.START_US
PROFILER = shared_folder() / "profiler"
MERGED = "merge_traces/framework/pevents/2020071317"


# -- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "file_type"),
    [
        (tw.PYTHON, "PythontimelineMetrics"),
        (tw.MODEL, "DetailedframeworkMetrics"),
        (tw.HOROVOD, "HorovodMetrics"),
        (tw.SMDATAPARALLEL, "SMDataParallelMetrics"),
    ],
)
def test_a_files_name_tells_its_type_and_node(tmp_path: Path, kind: str, file_type: str) -> None:
    tw.write(tmp_path, [tw.step(0, 0, 5)], kind=kind)
    problems: list[str] = []
    key = tw.key(ZERO + 5, kind=kind)
    (event,) = events_of(LocalStore(tmp_path), key, problems)
    assert (event.file_type, event.node_id, problems) == (file_type, "algo-1-11", [])


def test_profiles_of_tensorflow_count_from_the_name_of_their_metadata(tmp_path: Path) -> None:
    records = [
        tw.meta(1, name="/host:CPU"),
        {"name": "op", "ph": "X", "ts": 0.5, "dur": 1, "pid": 1},
    ]
    path = tw.write_tensorflow(tmp_path, records)
    store, key = locate(str(path))
    problems: list[str] = []
    (event,) = events_of(store, key, problems)
    assert (event.start_time, event.node_id, event.file_type, problems) == (
        ZERO + 0.5,
        "algo-1",
        "TFProfilerMetrics",
        [],
    )
    next(path.parents[3].glob("*.metadata")).unlink()
    assert list(events_of(store, key, problems)) == []
    assert problems == [f"Profile {key!r} has no .metadata file that names its time."]


def test_damage_of_a_file_is_a_sentence(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    key = tw.key(ZERO)
    text = tw.text(tw.records([tw.step(0, 0, 5), tw.step(1, 5, 5)]))
    tw.write_text(tmp_path, key, text[:-20])
    problems: list[str] = []
    assert len(list(events_of(store, key, problems))) == 1
    list(events_of(store, "framework/pevents/gone_1_pythontimeline.json", problems))
    link = "framework/link_1_pythontimeline.json"
    (tmp_path / link).symlink_to(tmp_path / key)
    list(events_of(store, link, problems))
    assert problems == [
        f"Timeline {key!r} is cut off.",
        "File 'framework/pevents/gone_1_pythontimeline.json' does not exist.",
        f"Cannot read {link!r}: links inside a trial are not followed.",
    ]


def test_a_store_that_cannot_be_asked_now_is_no_empty_file() -> None:
    class Away(MemoryStore):
        def read(self, key: str, byte_range: Any = None) -> memoryview:
            raise StorageUnavailableError(key, f"no answer to {byte_range}", transient=True)

    with pytest.raises(StorageUnavailableError, match="no answer"):
        list(events_of(Away({}), "a_1_pythontimeline.json", []))


# -- parsers ----------------------------------------------------------------------------------


def test_a_parser_keeps_the_events_of_its_files(tmp_path: Path) -> None:
    parser = SMProfilerEvents()
    parser.read_events_from_file(str(tw.write(tmp_path, [tw.step(1, 50, 10), tw.step(0, 0, 90)])))
    other = [tw.Event("Step:ModeKeys.TRAIN", "x", 20, 5)]
    parser.read_events_from_file(str(tw.write(tmp_path, other, node="12-algo-2")))
    assert [one.start_time - ZERO for one in parser.get_all_events()] == [50, 0, 20]
    assert [one.start_time - ZERO for one in parser.get_events_start_time_sorted()] == [0, 20, 50]
    assert [one.end_time - ZERO for one in parser.get_events_end_time_sorted()] == [25, 60, 90]
    assert [process.name for process in parser.get_processes().values()] == ["Step:ModeKeys.TRAIN"]
    threads = parser.get_process_info(1).threads.values()
    assert [thread.thread_name for thread in threads] == ["algo-1-11_0", "algo-2-12_0"]
    parser.clear_events()
    assert parser.get_all_events() == []


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [(0, 9, []), (10, 10, ["a"]), (19, 20, ["a"]), (20, 30, ["a", "b"]), (41, 99, [])],
)
def test_events_overlap_a_range_if_they_touch_it(start: int, end: int, found: list[str]) -> None:
    parser = SMProfilerEvents()
    records = [
        {"name": "a", "ph": "X", "ts": 10, "dur": 10, "pid": 1},
        {"name": "b", "ph": "X", "ts": 30, "dur": 10, "pid": 1},
    ]
    parser.read_events_from_json_data(records, "n")
    assert found == [one.event_name for one in parser.get_events_within_time_range(start, end)]
    seconds = parser.get_events_within_time_range(start / 1e6, end / 1e6, TimeUnits.SECONDS)
    moments = [datetime.fromtimestamp(time / 1e6, UTC) for time in (start, end)]
    assert found == [one.event_name for one in seconds]
    assert found == [one.event_name for one in parser.get_events_within_range(*moments)]


def test_events_are_chosen_by_name_or_phase() -> None:
    parser = SMProfilerEvents()
    parser.read_events_from_json_data(
        tw.records([tw.Event("Forward", "fc", 0, 1), tw.Event("Backward", "fc2", 0, 1)]), "n"
    )
    always = (0, 2 * ZERO)
    for wanted in ["fc", "Forward"]:
        found = parser.get_events_within_time_range(*always, event_type=wanted)
        assert [one.event_name for one in found] == ["fc"]


def test_decoded_records_that_are_none_are_problems() -> None:
    parser = SMProfilerEvents()
    parser.read_events_from_json_data([{"ph": 5}, {"ph": "s"}], "n")
    assert parser.get_all_events() == []
    reason = "it is no record: Expected `str`, got `int` - at `$.ph`"
    assert parser.problems == [f"1 records are skipped, the first because {reason}."]


def test_raw_timelines_of_horovod_and_smdataparallel(tmp_path: Path) -> None:
    raw = (
        '[\n{"ph": "B", "name": "ALLREDUCE", "ts": 5, "pid": 1},\n{"ph": "E", "ts": 7, "pid": 1},\n'
    )
    path = tw.write_text(tmp_path, "raw_horovod_timeline.json", raw)
    for parser in [HorovodProfilerEvents(), SMDataParallelProfilerEvents()]:
        parser.read_events_from_file(str(path))
        assert [
            (one.event_name, one.start_time, one.end_time) for one in parser.get_all_events()
        ] == [("ALLREDUCE", 5, 7)]
        assert parser.problems == []
    assert HorovodProfilerEvents().type == "HorovodMetrics"


def test_marked_operations_of_tensorflow(tmp_path: Path) -> None:
    def op(name: str, args: tw.Json | None = None) -> tw.Json:
        return {"name": name, "ph": "X", "ts": 1, "dur": 2, "pid": 1, "args": args}

    path = tw.write_tensorflow(
        tmp_path,
        [op("aws_marker-ForwardPass/a", {"x": 1}), op("aws_marker-Else/b", {"x": 1}), op("c")],
    )
    assert TensorboardProfilerEvents().get_training_info(str(path)) == {
        "ForwardPass": [["aws_marker-ForwardPass/a", ZERO + 1, 2]],
        "ComputeGradient": [],
        "ApplyGradient": [],
    }


@pytest.mark.skipif(not PROFILER.exists(), reason=MISSING)
@pytest.mark.parametrize(
    ("name", "events"),
    [
        ("1589314018481947000_1234-testhost_model_timeline.json", 49),
        ("horovod_timeline_small.json", 21),
        (f"{MERGED}/1594662624558411_905-b88ab1bb8259_model_timeline.json", 661),
        (f"{MERGED}/1594662624718694_905-b88ab1bb8259_pythontimeline.json", 40),
    ],
)
def test_timelines_of_real_training_jobs(name: str, events: int) -> None:
    problems: list[str] = []
    store, key = locate(str(PROFILER / name))
    assert (len(list(events_of(store, key, problems))), problems) == (events, [])

"""What keys of the profiler's files say, and which are those of foreign tools."""

import pytest

from rule_core.profiler.files import time_units
from rule_core.profiler.files.file_names import (
    SystemFile,
    TraceFile,
    system_file,
    tf_trace_files,
    trace_file,
)

PEVENTS = "framework/pevents/2020070206/"


@pytest.mark.parametrize(
    "key",
    [
        "system/1591160699.algo-1.json",  # no folder between
        "system/incremental/159116069.algo-1.json",
        "system/incremental/15911606990.algo-1.json",
        "system/incremental/1591160699..json",
        "system/incremental/1591160699.json",
        "system/incremental/1591160699.algo-1.json.corrupt",
        "system/incremental/1591160699.algo-1.json.tmp",
        "system/incremental/1591160699xalgo-1.json",
        "system/incremental/notes.json",
        "other/system/x/1591160699.algo-1.json",
        "system/training_job_end.ts",
    ],
)
def test_other_files_below_system_are_of_foreign_tools(key: str) -> None:
    assert system_file(key) is None


@pytest.mark.parametrize(
    "node", ["algo-x", "node-1", "gpu-box", "ip-10-0-0-1.ec2.internal", "my_host", "1", "é"]
)
def test_system_files_of_any_node_are_read(node: str) -> None:
    key = f"system/incremental/2020060500/1591160699.{node}.json"
    assert system_file(key) == SystemFile(1591160699000000, node, key)
    path = f"/opt/{key}"
    assert time_units.validate_system_profiler_file(path)
    assert time_units.get_node_id_from_system_profiler_filename(path) == node


def test_system_files_lie_in_any_folder() -> None:
    for folder in ("incremental", "incremental/2020060500", "x/y/z"):
        key = f"system/{folder}/1591160699.algo-12.json"
        assert system_file(key) == SystemFile(1591160699000000, "algo-12", key)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("1589930988000000_4487_0000_pythontimeline.json", ("4487", "pythontimeline.json")),
        ("1589930988000000_11-algo-1_model_timeline.json", ("11-algo-1", "model_timeline.json")),
        (
            "1589930988000000_88359-8c.ant.amazon.com_horovod_timeline.json",
            ("88359-8c.ant.amazon.com", "horovod_timeline.json"),
        ),
        (
            "1589930988000000_1-algo-1_smdataparallel_timeline.json",
            ("1-algo-1", "smdataparallel_timeline.json"),
        ),
    ],
)
@pytest.mark.parametrize("folder", [PEVENTS, "framework/pevents/"])
def test_names_of_timelines(folder: str, name: str, expected: tuple[str, str]) -> None:
    found = trace_file(folder + name)
    assert found == TraceFile(1589930988000000, *expected, folder + name)


def test_nanoseconds_in_a_name_become_microseconds() -> None:
    found = trace_file(f"{PEVENTS}1589314018481947000_1234-testhost_model_timeline.json")
    assert found is not None
    assert (found.end_us, found.node) == (1589314018481947, "1234-testhost")


@pytest.mark.parametrize(
    "key",
    [
        "framework/pytorch/pyinstrument/n/s/python_stats.json",
        f"{PEVENTS}notes_of_mine.json",
        f"{PEVENTS}x_1_model_timeline.json",
        f"{PEVENTS}1_model_timeline.json",
        f"{PEVENTS}1_2_model_timeline.json.tmp",
        f"{PEVENTS}1_2_merged_timeline.json",
        "framework/1-algo-1_pythontimeline.json.tmp",
        "1594662614815222_905_merged_timeline.json",
    ],
)
def test_other_files_below_framework_are_of_foreign_tools(key: str) -> None:
    assert trace_file(key) is None


STEP = "framework/tensorflow/detailed_profiling/2020/000000005"
TRACE = f"{STEP}/plugins/profile/2020_01_01/algo-2.trace.json.gz"


def test_detailed_profiles_have_the_time_of_their_metadata() -> None:
    mark = f"{STEP}/11-algo-2_1600000000000000_1600000001000000.metadata"
    kind = "trace.json.gz"
    expected = [TraceFile(1600000001000000, "11-algo-2", kind, TRACE)]
    assert list(tf_trace_files([mark, TRACE])) == expected
    deeper = mark.replace("/11-", "/deeper/11-")
    other = mark.replace("algo-2_16", "algo-1_15")
    assert list(tf_trace_files([other, deeper, TRACE])) == expected


def test_detailed_profiles_without_metadata_are_left_out() -> None:
    elsewhere = f"{STEP[:-1]}6/1-algo-2_1_2.metadata"
    bad = f"{STEP}/1-algo-2_x_2.metadata"
    assert list(tf_trace_files([TRACE, elsewhere, bad, f"{STEP}/notes"])) == []

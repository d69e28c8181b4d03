"""System metrics on the disk: whole minutes, which the readers return."""

import json
import os
from pathlib import Path

import pytest
import s3_objects

from rule_core.profiler.recording.sampler.readings import MetricValue
from rule_core.profiler.recording.sampler.system_files import END_MARK, SystemFiles
from rule_core.storage.uri import open_store
from rule_core.trials.profiler_trial import ProfilerTrial

MINUTE_US = 60_000_000
START_US = 1_700_000_040_000_000
ROW = MetricValue("cpu", "cpu0", "CPUUtilization", 12.345678)


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.json") if path.name != "nodes.json")


def values(folder: Path | str) -> list[tuple[int, float]]:
    trial = ProfilerTrial("job", str(folder))
    trial.refresh()
    samples = trial.system_samples(0, 2 * START_US)
    return list(zip(samples.time_us.tolist(), samples.value.tolist(), strict=True))


def test_a_minute_is_visible_when_it_is_over(tmp_path: Path) -> None:
    files = SystemFiles(str(tmp_path), 1)
    files.add(START_US, [ROW])
    files.add(START_US + 500_000, [ROW])
    assert visible(tmp_path) == []
    files.add(START_US + MINUTE_US, [ROW])
    assert visible(tmp_path) == ["1700000040.algo-1.json"]
    files.end()
    assert visible(tmp_path) == ["1700000040.algo-1.json", "1700000100.algo-1.json"]
    assert (tmp_path / END_MARK).exists()
    assert values(tmp_path) == [(START_US + offset, 12.3457) for offset in (0, 500_000, MINUTE_US)]


def test_the_name_has_the_time_of_the_first_sample(tmp_path: Path) -> None:
    files = SystemFiles(str(tmp_path), 1)
    for offset_s in (37, 59, 60, 61):
        files.add(START_US + 1_000_000 * offset_s, [ROW])
    files.close()
    assert visible(tmp_path) == ["1700000077.algo-1.json", "1700000100.algo-1.json"]


def test_a_line_is_as_the_platform_writes_it(tmp_path: Path) -> None:
    files = SystemFiles(str(tmp_path), 2)
    files.add(START_US, [ROW])
    files.close()
    (path,) = tmp_path.rglob("*.algo-2.json")
    assert json.loads(path.read_text()) == {
        "Type": "cpu",
        "Name": "cpu0",
        "Dimension": "CPUUtilization",
        "Value": 12.3457,
        "NodeId": "algo-2",
        "Timestamp": START_US / 1e6,
    }
    assert not (tmp_path / END_MARK).exists()


@pytest.mark.parametrize("cut", [0, 5])
def test_the_draft_of_a_killed_sampler_is_completed(tmp_path: Path, cut: int) -> None:
    killed = SystemFiles(str(tmp_path), 1)
    killed.add(START_US, [ROW])
    killed.add(START_US + 500_000, [ROW])
    (draft,) = tmp_path.rglob("*.tmp")
    draft.write_bytes(draft.read_bytes()[: len(draft.read_bytes()) - cut])
    again = SystemFiles(str(tmp_path), 1)
    again.add(START_US + 1_000_000, [ROW])
    again.close()
    times = [time_us - START_US for time_us, _ in values(tmp_path)]
    assert times == ([0, 500_000, 1_000_000] if not cut else [0, 1_000_000])
    os.close(killed._file)


def test_nodes_have_files_and_names_of_their_own(tmp_path: Path) -> None:
    for node, host in ((1, "a"), (2, "b")):
        files = SystemFiles(str(tmp_path), node)
        files.name_node(host)
        files.add(START_US, [ROW])
        files.close()
    assert json.loads((tmp_path / "system" / "nodes.json").read_text()) == {
        "algo-1": "a",
        "algo-2": "b",
    }
    assert len(visible(tmp_path)) == 2


@pytest.mark.parametrize("text", ["[]", "{", ""])
def test_broken_names_of_nodes_are_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / "system").mkdir()
    path = tmp_path / "system" / "nodes.json"
    path.write_text(text)
    SystemFiles(str(tmp_path), 1).name_node("a")
    assert json.loads(path.read_text()) == {"algo-1": "a"}


def test_an_earlier_end_is_forgotten(tmp_path: Path) -> None:
    SystemFiles(str(tmp_path), 1).end()
    SystemFiles(str(tmp_path), 1).remove_end_mark()
    assert not (tmp_path / END_MARK).exists()


def test_a_recording_in_s3(aws_endpoint: str) -> None:
    s3_objects.make_bucket(aws_endpoint)
    files = SystemFiles("s3://bucket/profile", 1)
    files.name_node("a")
    files.add(START_US, [ROW])
    files.end()
    files.discard_staging()
    assert values("s3://bucket/profile") == [(START_US, 12.3457)]
    keys = sorted(open_store("s3://bucket/profile").list_keys("system/"))
    assert keys == [
        "system/incremental/2023111422/1700000040.algo-1.json",
        "system/nodes.json",
        END_MARK,
    ]

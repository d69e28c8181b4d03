"""Merged timelines: what is in them, where they are written, and what is never left behind."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import s3_objects
import timeline_writer as tw
from recorded import MISSING, shared_folder

from rule_core.analysis.frames.merge_timelines import MergedTimeline, MergeUnit, merge_timelines
from rule_core.exceptions import SMDebugValueError
from rule_core.modes import ModeKeys
from rule_core.profiler.readers.merge import TimelineMerge

ZERO = tw.START_US
ALL = (0, 2 * ZERO)
PROFILER = shared_folder() / "profiler"


def job(root: Path, system: Sequence[tuple[float, str, float]] = ()) -> Path:
    """Write a job of two nodes: three steps, with samples of (seconds after zero, GPU, percent)."""
    steps = [tw.step(n, 1000 * n, 900) for n in range(3)]
    tw.write(root, [*steps, tw.step(0, 5000, 500, "EVAL")])
    tw.write(root, [tw.Event("Forward", "fc", 1100, 10)], node="12-algo-2", kind=tw.MODEL)
    lines: dict[str, str] = {}
    for at, gpu, value in system:
        name = f"system/incremental/2020091312/{ZERO // 10**6 + int(at)}.algo-1.json"
        sample = {"Type": "gpu", "Name": gpu, "Dimension": "GPUUtilization", "Value": value}
        line = {**sample, "NodeId": "algo-1", "Timestamp": ZERO / 1e6 + at}
        lines[name] = lines.get(name, "") + json.dumps(line) + "\n"
    for name, text in lines.items():
        tw.write_text(root, name, text)
    return root


def events(path: str | Path) -> list[dict[str, Any]]:
    return [one for one in json.loads(Path(path).read_text()) if one["ph"] != "M"]


def starts(path: str | Path) -> list[tuple[str, float]]:
    return [(one["name"].rpartition(".")[2], one["ts"] - ZERO) for one in events(path)]


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_a_merged_timeline_holds_the_events_of_all_nodes_by_their_start(tmp_path: Path) -> None:
    path = MergedTimeline(str(job(tmp_path))).merge_timeline(*ALL)
    assert starts(path) == [
        ("TRAIN", 0), ("TRAIN", 1000), ("fc", 1100), ("TRAIN", 2000), ("EVAL", 5000)
    ]  # fmt: skip
    assert Path(path).parent == tmp_path
    assert Path(path).name.startswith(f"{2 * ZERO}_")
    assert path.endswith("_merged_timeline.json")


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        pytest.param(901, 999, [], id="between"),
        pytest.param(900, 1000, [0, 1000], id="touching"),
        pytest.param(1105.5, 1106, [1000, 1100], id="inside"),
    ],
)
def test_only_events_that_overlap_the_range_are_merged(
    tmp_path: Path, start: float, end: float, expected: list[float]
) -> None:
    merged = MergedTimeline(str(job(tmp_path)), output_directory=str(tmp_path / "out"))
    path = merged.merge_timeline(ZERO + start, ZERO + end)
    assert [ts for _, ts in starts(path)] == expected
    assert path.startswith(str(tmp_path / "out"))


@pytest.mark.parametrize("unit", [MergeUnit.STEP, "step"])
def test_bounds_may_be_steps(tmp_path: Path, unit: MergeUnit | str) -> None:
    merged = MergedTimeline(str(job(tmp_path)))
    assert starts(merged.merge_timeline(1, 2, unit)) == [("TRAIN", 1000), ("fc", 1100)]
    evaluated = merged.merge_timeline(0, 1, unit, mode=ModeKeys.EVAL)
    assert starts(evaluated) == [("EVAL", 5000)]


def test_only_files_with_a_suffix_are_merged(tmp_path: Path) -> None:
    merged = MergedTimeline(str(job(tmp_path)), [tw.MODEL])
    assert starts(merged.merge_timeline(*ALL)) == [("fc", 1100)]


SYSTEM = [(0.0, "gpu0", 99.0), (60.0, "gpu0", 10.0), (60.01, "gpu1", 90.0)]


def test_system_metrics_are_counters_and_marks(tmp_path: Path) -> None:
    merged = MergedTimeline(str(job(tmp_path, SYSTEM)))
    found = events(merged.merge_timeline(ZERO, ZERO + 60_010_000))
    counted = [(one["ts"] - ZERO, one["args"]["value"]) for one in found if one["ph"] == "C"]
    assert counted == [(0, 99.0), (60_000_000, 10.0), (60_010_000, 90.0)]
    (mark,) = (one for one in found if one["ph"] == "i")
    assert (mark["name"], mark["ts"] - ZERO) == ("sys_metrics_bottlenecks", 60_000_000)
    assert mark["args"] == {
        "gpu0_GPUUtilization_algo-1": 10.0,
        "gpu1_GPUUtilization_algo-1": 90.0,
    }


@pytest.mark.parametrize("nothing", [None, {}])
def test_without_a_filter_there_are_no_system_metrics(
    tmp_path: Path, nothing: dict[str, Any] | None
) -> None:
    path = MergedTimeline(str(job(tmp_path, SYSTEM))).merge_timeline(*ALL, MergeUnit.TIME, nothing)
    assert {one["ph"] for one in events(path)} == {"X"}


def test_no_events_are_an_empty_trace(tmp_path: Path) -> None:
    path = MergedTimeline(str(tmp_path)).merge_timeline(*ALL)
    assert events(path) == []


def test_a_file_that_was_opened_is_written(tmp_path: Path) -> None:
    merged = MergedTimeline(str(job(tmp_path / "job")))
    merged.open(str(tmp_path / "mine.json"))
    assert not (tmp_path / "mine.json").exists()
    assert merged.merge_timeline(*ALL) == str(tmp_path / "mine.json")
    assert len(events(tmp_path / "mine.json")) == 5
    merged.close()


def test_damage_is_reported_and_the_rest_is_merged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = tw.key(ZERO + 7000, node="13-algo-3")
    text = tw.text(tw.records([tw.step(8, 50, 1), tw.step(9, 100, 1)]))
    tw.write_text(job(tmp_path), key, text[:-30])
    tw.write_text(tmp_path, "system/x/1600000000.algo-1.json", "junk\n")
    tw.write_text(tmp_path, "system/training_job_end.ts", "")
    merged = MergedTimeline(str(tmp_path))
    found = starts(merged.merge_timeline(*ALL))
    assert ("TRAIN", 50) in found
    assert len(found) == 6
    first, second = merged.problems
    assert first == f"Timeline {key!r} is cut off."
    assert "1600000000.algo-1.json" in second
    assert first in caplog.text


def test_pairs_are_merged_across_the_files_of_a_writer(tmp_path: Path) -> None:
    zero = tw.meta(0, start_time_since_epoch_in_micros=ZERO)
    begin = {"name": "reduce", "ph": "B", "pid": 1, "ts": 10}
    tw.write_text(tmp_path, tw.key(ZERO + 20, kind=tw.HOROVOD), tw.text([zero, begin]))
    end = {"ph": "E", "pid": 1, "ts": 90}
    tw.write_text(tmp_path, tw.key(ZERO + 95, kind=tw.HOROVOD), tw.text([zero, end]))
    (event,) = events(MergedTimeline(str(tmp_path)).merge_timeline(*ALL))
    assert (event["name"], event["dur"]) == ("reduce", 80)


# -- merge_timelines --------------------------------------------------------------------------


def test_all_is_merged_into_a_file_elsewhere(tmp_path: Path) -> None:
    root = job(tmp_path / "job", SYSTEM)
    before = files(root)
    found = merge_timelines(str(root), tmp_path / "new" / "trace.json")
    assert (found.path, found.events, found.problems) == (
        str(tmp_path / "new" / "trace.json"),
        5 + len(SYSTEM) + 1,
        [],
    )
    assert Counter(one["ph"] for one in events(found.path)) == {"X": 5, "C": 3, "i": 1}
    assert files(root) == before


def test_a_range_may_be_open_at_one_end(tmp_path: Path) -> None:
    root, out = str(job(tmp_path / "job")), tmp_path / "trace.json"
    assert merge_timelines(root, out, start=ZERO + 2000).events == 2
    assert merge_timelines(root, out, end=ZERO + 999).events == 1
    assert merge_timelines(root, out, 1, unit="step", mode=ModeKeys.TRAIN).events == 3
    assert merge_timelines(root, out, file_suffix_filter=[tw.MODEL], system_metrics=False)[1] == 1


@pytest.mark.parametrize(
    ("output", "unit", "said"),
    [
        pytest.param("t.json", "time", "Nothing to merge: no events of that range in '.*/none'."),
        pytest.param("t.json", "day", "The unit of a merged timeline must be 'time' or 'step'"),
        pytest.param("folder/", "time", "A merged timeline needs the name of a file, got '.*/'."),
    ],
)
def test_nothing_is_written_when_nothing_can_be(
    tmp_path: Path, output: str, unit: str, said: str
) -> None:
    with pytest.raises(SMDebugValueError, match=said):
        merge_timelines(str(tmp_path / "none"), f"{tmp_path}/{output}", unit=unit)
    assert files(tmp_path) == set()


def test_a_merge_that_fails_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, out = str(job(tmp_path)), tmp_path / "trace.json"
    merge_timelines(root, out)
    before, content = files(tmp_path), out.read_bytes()

    def fail(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(TimelineMerge, "merge", fail)
    for merging in [
        lambda: merge_timelines(root, out),
        lambda: MergedTimeline(root).merge_timeline(*ALL),
    ]:
        with pytest.raises(OSError, match="No space left"):
            merging()
    assert (files(tmp_path), out.read_bytes()) == (before, content)


def test_a_merge_of_s3_into_s3(aws_endpoint: str, tmp_path: Path) -> None:
    s3_objects.make_bucket(aws_endpoint)
    root = job(tmp_path, SYSTEM)
    content = {name: (root / name).read_bytes() for name in files(root)}
    s3_objects.put(aws_endpoint, "job/", content)
    path = MergedTimeline("s3://bucket/job").merge_timeline(*ALL)
    local = merge_timelines(str(root), tmp_path / "trace.json")
    assert path.startswith("s3://bucket/job/")
    assert s3_objects.content(aws_endpoint, path.removeprefix("s3://bucket/")) == {
        "": Path(local.path).read_bytes()
    }


@pytest.mark.skipif(not PROFILER.exists(), reason=MISSING)
def test_real_timelines_are_merged(tmp_path: Path) -> None:
    merged = MergedTimeline(str(PROFILER / "merge_traces"), output_directory=str(tmp_path))
    found = json.loads(Path(merged.merge_timeline(*ALL)).read_text())
    phases = {one["args"]["name"]: one["pid"] for one in found if one["name"] == "process_name"}
    assert (len([one for one in found if one["ph"] == "X"]), merged.problems) == (702, [])
    assert phases["Step:ModeKeys.TRAIN"] == 1
    assert phases["DataIterator"] == 30000

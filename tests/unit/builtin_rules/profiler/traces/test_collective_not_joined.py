"""CollectiveNotJoined over dumps: healthy trainings, each fault, and what is not judged."""

from pathlib import Path
from typing import Any

import pytest
from fake_profiler_trial import FakeProfilerTrial, Windows, judge_windows
from flight_recorder_writer import Dump, training, write_all

from builtin_rules.profiler.traces.collective_not_joined import (
    BEHIND,
    GOES_ON,
    NO_COLLECTIVES,
    CollectiveNotJoined,
)
from rule_core.trials.profiler_trial import ProfilerTrial


def judged(folder: Path, **parameters: Any) -> Windows:
    events = ProfilerTrial("job", folder).framework_events(0, 1 << 53)
    trial = FakeProfilerTrial(events=events)
    trial.first_timestamp = int(events[0].end_time)
    trial.newest_timestamp = int(events[-1].end_time)
    return judge_windows(CollectiveNotJoined, trial, **parameters)


def found(folder: Path, **parameters: Any) -> list[tuple[str | None, float]]:
    findings = judged(folder, **parameters).findings
    return [(finding.worker, finding.measured) for finding in findings]


@pytest.mark.parametrize("ranks", [1, 2, 64])
def test_a_training_whose_ranks_joined_everything_is_healthy(tmp_path: Path, ranks: int) -> None:
    write_all(tmp_path, training(ranks))
    windows = judged(tmp_path)
    assert (windows.met, windows.skipped) == ([], {})
    assert windows.report["Datapoints"] == 6 * ranks


def test_the_rank_that_did_not_join_is_named(tmp_path: Path) -> None:
    dumps = training(ranks=4)
    for dump in dumps:
        if dump.rank != 2:
            dump.join("broadcast", completes=False)
            dump.convert(tmp_path)
    dumps[2].write(tmp_path)
    windows = judged(tmp_path)
    [finding] = windows.findings
    assert (finding.worker, finding.measured) == ("rank-2", 1)
    assert finding.note == (
        "It did not join collective 7 of process group '0' (default_pg) (broadcast of 8,192 "
        "elements of Float), which ranks 0, 1, 3 began at /job/train.py:42(step)."
    )
    assert windows.report["Details"]["rank-2"] == {"process group '0' (default_pg)": {BEHIND: 1}}


@pytest.mark.parametrize(("behind", "met"), [(0, [0]), (1, [0]), (2, []), (3, [])])
def test_the_boundary_of_what_is_tolerated(tmp_path: Path, behind: int, met: list[int]) -> None:
    dumps = training(ranks=2)
    for _ in range(2):
        dumps[0].join()
    write_all(tmp_path, dumps)
    assert judged(tmp_path, behind=behind).met == met


def test_a_rank_that_skips_one_differs_from_there_on_and_is_behind(tmp_path: Path) -> None:
    dumps = [Dump(rank, 3) for rank in range(3)]
    for size in range(1, 6):
        for dump in dumps:
            if (dump.rank, size) != (1, 3):
                dump.join(sizes=[[size]])
    write_all(tmp_path, dumps)
    windows = judged(tmp_path)
    assert [(each.worker, each.measured) for each in windows.findings] == [
        ("rank-1", 1),
        ("rank-1", 2),
    ]
    assert windows.findings[1].note == (
        "Collective 3 of process group '0' (default_pg) is all_reduce of 4 elements of Float on "
        "rank 1, and all_reduce of 3 elements of Float on ranks 0, 2."
    )


def test_a_rank_without_a_dump_is_named(tmp_path: Path) -> None:
    write_all(tmp_path, [dump for dump in training(ranks=3) if dump.rank != 1])
    assert found(tmp_path) == [("rank-1", 1)]


def test_ranks_are_compared_within_their_groups(tmp_path: Path) -> None:
    pairs = {"1": [0, 2], "2": [1, 3]}
    dumps = [Dump(rank, 4, pairs) for rank in range(4)]
    for dump in dumps:
        group = "1" if dump.rank in pairs["1"] else "2"
        for _ in range(dump.rank % 2 + 1):
            dump.join("all_gather", group=group)
    write_all(tmp_path / "healthy", dumps)
    assert found(tmp_path / "healthy") == []
    dumps[0].join(group="1")
    write_all(tmp_path / "faulty", dumps)
    assert found(tmp_path / "faulty") == [("rank-2", 1)]


def test_what_the_recorder_has_overwritten_is_not_missed(tmp_path: Path) -> None:
    dumps = training(ranks=2, collectives=9)
    del dumps[1].entries[:5]
    write_all(tmp_path, dumps)
    assert found(tmp_path) == []


def test_only_the_last_window_is_judged(tmp_path: Path) -> None:
    dumps = training(ranks=2, collectives=12)
    dumps[0].join()
    write_all(tmp_path, dumps)
    windows = judged(tmp_path, scan_interval_us=100_000)
    assert windows.skipped == {0: GOES_ON}
    assert windows.met == [1]


def test_dumps_without_process_groups_are_not_judged(tmp_path: Path) -> None:
    dump = Dump(0, 1)
    dump.groups = {}
    dump.write(tmp_path)
    assert judged(tmp_path).skipped == {0: NO_COLLECTIVES}

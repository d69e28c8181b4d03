"""Dumps as timelines of their ranks, and what is wrong with bad ones."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from flight_recorder_writer import BEGAN_NS, EVERY_NS, TAKES_NS, Dump, training, write_all

from rule_core.trials.profiler_trial import ProfilerTrial

BEGAN_US = BEGAN_NS // 1000
END_US = BEGAN_US * 2


def events_of(trial: ProfilerTrial) -> list[dict[str, Any]]:
    return [
        {"phase": event.event_phase, "name": event.event_name, **(event.event_args or {})}
        for event in trial.framework_events(0, END_US)
    ]


def test_a_collective_is_an_event_of_its_rank(tmp_path: Path) -> None:
    write_all(tmp_path, training(ranks=2, collectives=3))
    trial = ProfilerTrial("job", tmp_path)
    assert trial.nodes == ["rank-0", "rank-1"]
    assert trial.has_flight_recorder_dumps
    assert not trial.has_torch_traces
    assert trial.loaded_all_steps
    events = trial.framework_events(0, END_US)
    first = events[0]
    assert (first.event_name, first.node_id) == ("nccl:all_reduce", "rank-0")
    assert (first.start_time, first.duration) == (BEGAN_US, TAKES_NS / 1000)
    assert first.event_args is not None
    assert first.event_args["input_elements"] == 8192
    assert first.event_args["ranks"] == "0,1"
    phases = Counter(event.event_phase for event in events)
    assert phases == {"collectives": 6, "process_groups": 2}


def test_a_converted_pickle_has_the_line_that_called(tmp_path: Path) -> None:
    [dump] = training(ranks=1, collectives=1)
    dump.convert(tmp_path)
    [event, _] = events_of(ProfilerTrial("job", tmp_path))
    assert event["location"] == "/job/train.py:42(step)"


def test_a_pending_collective_lasts_to_the_end_of_its_dump(tmp_path: Path) -> None:
    dump = Dump(0, 2)
    dump.join(completes=False)
    dump.join()
    dump.write(tmp_path)
    durations = {
        (event.event_args or {}).get("seq"): event.duration
        for event in ProfilerTrial("job", tmp_path).framework_events(0, END_US)
    }
    assert durations[1] == (EVERY_NS + TAKES_NS) / 1000


def test_a_dump_without_entries_has_its_process_groups(tmp_path: Path) -> None:
    Dump(3, 4).write(tmp_path)
    trial = ProfilerTrial("job", tmp_path)
    assert trial.nodes == ["rank-3"]
    [event] = events_of(trial)
    assert (event["phase"], event["joined"], event["ranks"]) == ("process_groups", 0, "0-3")


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("dump.json", {}, "Its name does not end with a rank"),
        ("a/nccl_trace_rank_0.json", {}, "Rank 0 has another dump"),
        ("rank_1.json", {"version": "1.5"}, "It has version '1.5' of the format"),
        ("rank_1.json", {"entries": [{}]}, "It has 1 entries that are skipped, the first because"),
        ("rank_1.json", {"entries": 7}, "expected a dump of torch.distributed's flight recorder"),
    ],
)
def test_a_bad_dump_is_named_and_the_others_are_read(
    tmp_path: Path, name: str, change: dict[str, Any], problem: str
) -> None:
    write_all(tmp_path, training(ranks=1))
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**Dump(1, 2).document(), **change}))
    trial = ProfilerTrial("job", tmp_path)
    problems = [text for text in trial.problems if problem in text]
    assert len(problems) == len(trial.problems) == 1
    assert "rank-0" in trial.nodes


@pytest.mark.parametrize("time_ns", [0, -1, 1e30])
def test_an_implausible_time_costs_its_entry(tmp_path: Path, time_ns: float) -> None:
    dump = Dump(0, 1)
    dump.join()
    dump.join(time_created_ns=time_ns)
    dump.write(tmp_path)
    trial = ProfilerTrial("job", tmp_path)
    assert "its time is implausible" in trial.problems[0]
    assert [event["phase"] for event in events_of(trial)] == ["collectives", "process_groups"]

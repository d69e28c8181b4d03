"""Outbox: on disk before anything else, nothing twice, cursors that can be lost."""

import json
from pathlib import Path
from typing import Any

import pytest
import told
from told import WAY, news

from rule_runner.errors import OutputError
from rule_runner.notify.event import RuleState
from rule_runner.notify.outbox import Outbox, read_events
from rule_runner.results.status import RuleStatus


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "out"


def test_the_same_news_is_not_told_twice(folder: Path) -> None:
    with Outbox(folder) as outbox:
        assert outbox.publish(news(WAY[0], outbox))
        assert not outbox.publish(news(WAY[0], outbox))
    with Outbox(folder) as outbox:
        assert outbox.next_sequence == 2
        assert not outbox.publish(news(WAY[0], outbox))
        assert outbox.publish(news(WAY[1], outbox))
    events = lines(folder / "events.jsonl")
    assert [event["detail"]["EventSequence"] for event in events] == [1, 2]


def test_where_rules_stood_is_known_again(folder: Path) -> None:
    with Outbox(folder) as outbox:
        outbox.publish(told.told(ended=True))
        now = outbox.published, outbox.published_end
    with Outbox(folder) as outbox:
        assert (outbox.published, outbox.published_end) == now
    met = RuleState(
        "LossCheck",
        RuleStatus.ISSUES_FOUND,
        told.MET.details,
        steps_evaluated=51,
        last_step=500,
        lag_s=1.25,
    )
    going = RuleState("Overfit", RuleStatus.IN_PROGRESS)
    assert now == ({"LossCheck": met, "Overfit": going}, True)


def test_events_of_an_older_version_are_understood(folder: Path) -> None:
    event = told.told()
    for rule in event["detail"]["DebugRuleEvaluationStatuses"]:
        for name in ("StepsEvaluated", "LastStep", "EvaluationLagSeconds"):
            rule.pop(name, None)
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text(json.dumps(event) + "\n")
    with Outbox(folder) as outbox:
        state = outbox.published["LossCheck"]
    assert (state.steps_evaluated, state.last_step, state.lag_s) == (0, None, 0.0)


def test_the_size_is_what_is_on_disk_for_good(folder: Path) -> None:
    path = folder / "events.jsonl"
    with Outbox(folder) as outbox:
        assert outbox.size == 0
        outbox.publish(news(WAY[0], outbox))
        assert outbox.size == path.stat().st_size > 0
    with Outbox(folder) as outbox:
        assert outbox.size == path.stat().st_size


def test_torn_events_are_reported_again_and_none_is_lost(folder: Path) -> None:
    with Outbox(folder) as outbox:
        for status in WAY:
            outbox.publish(news(status, outbox))
    path = folder / "events.jsonl"
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for cut in [*range(last, len(whole), 9), len(whole) - 1, len(whole)]:
        path.write_bytes(whole[:cut])
        with Outbox(folder) as outbox:
            for status in WAY:
                outbox.publish(news(status, outbox))
        assert whole == path.read_bytes()


def test_an_outbox_that_is_not_ours_is_named(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text('{"detail": {}}\n')
    with pytest.raises(OutputError, match=r"events.jsonl' has an unexpected line"):
        Outbox(folder)


# --- reading


@pytest.fixture
def three(folder: Path) -> Path:
    with Outbox(folder) as outbox:
        for status in WAY:
            outbox.publish(news(status, outbox))
    return folder / "events.jsonl"


def sequences(path: Path, *limits: int) -> list[int]:
    found: list[Any] = [event["detail"] for _, event in read_events(path, *limits)]
    return [detail["EventSequence"] for detail in found]


def test_events_are_read_from_a_line_to_a_line(three: Path) -> None:
    first, second, third = [end for end, _ in read_events(three)]
    assert third == three.stat().st_size
    assert sequences(three) == [1, 2, 3]
    assert sequences(three, first) == [2, 3]
    assert sequences(three, first, second) == [2]
    assert sequences(three, first, third - 1) == [2]
    assert sequences(three, third) == []


@pytest.mark.parametrize("start", [-5, 0, 3, 10**9])
def test_a_start_that_makes_no_sense_is_the_beginning(three: Path, start: int) -> None:
    assert sequences(three, start) == [1, 2, 3]


def test_a_line_that_is_being_written_is_left(three: Path) -> None:
    with three.open("ab") as stream:
        stream.write(b'{"id": "4')
    assert sequences(three) == [1, 2, 3]


def test_what_is_no_event_is_named(three: Path) -> None:
    with three.open("ab") as stream:
        stream.write(b"garbage\n")
    with pytest.raises(OutputError, match=r"has a line that is not an event, got b'garbage"):
        sequences(three)

"""Converted timelines: one for each minute, of which few are open at once."""

from contextlib import closing
from pathlib import Path

import pytest

from rule_core.profiler.traces.files import events_of
from rule_core.profiler.traces.records import NotUsedError
from rule_core.profiler.traces.timeline_files import MINUTE_US, ConvertedTimelines
from rule_core.storage.local import LocalStore

ZERO = 1_790_857_026_000_000


def test_events_are_in_the_timeline_of_the_minute_in_which_they_end(tmp_path: Path) -> None:
    with closing(ConvertedTimelines(tmp_path / "a")) as timelines:
        for _ in range(2):
            for minute in range(40):  # more than are open at once
                timelines.add("cpu", f"in {minute}", (minute - 0.5) * MINUTE_US, MINUTE_US, 1, {})
        assert timelines.count == 80
        files = list(timelines.finish(ZERO))
    assert [last for _, last in files] == [(minute + 0.5) * MINUTE_US for minute in range(40)]
    problems: list[str] = []
    for minute, (path, last) in enumerate(files):
        events = list(events_of(LocalStore(tmp_path), path.name, problems))
        assert [event.event_name for event in events] == [f"in {minute}"] * 2
        assert [event.end_time for event in events] == [ZERO + last] * 2
        assert {event.event_phase for event in events} == {"cpu"}
    assert problems == []


def test_minutes_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rule_core.profiler.traces.timeline_files._MOST_MINUTES", 3)
    with closing(ConvertedTimelines(tmp_path / "a")) as timelines:
        for minute in range(3):
            timelines.add("cpu", "op", minute * MINUTE_US, 1, 1, {})
        with pytest.raises(NotUsedError, match="there are events in more than 3 minutes"):
            timelines.add("cpu", "op", 5 * MINUTE_US, 1, 1, {})
        timelines.add("cpu", "op", 0, 1, 1, {})
        assert len(list(timelines.finish(ZERO))) == 3

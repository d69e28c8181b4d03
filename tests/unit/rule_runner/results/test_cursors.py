"""Cursors: what sinks have taken of the events of an output folder; they can be lost."""

from pathlib import Path

import pytest
from told import WAY, news

from rule_runner.notify.outbox import Outbox, read_events
from rule_runner.results.cursors import Cursor, feeds_sinks, undelivered_events


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "out"


@pytest.mark.parametrize("content", ["", "x", "-5", "\xb2"])
def test_a_cursor_that_makes_no_sense_is_the_beginning(folder: Path, content: str) -> None:
    Outbox(folder).close()
    (folder / ".sagemaker-ignore" / "cursor-list").write_text(content)
    assert Cursor(folder, "list").read() == 0


def test_a_cursor_tells_whose_events_are_sent(folder: Path) -> None:
    Outbox(folder).close()
    assert not feeds_sinks(folder)
    assert Cursor(folder, "list").read() == 0
    Cursor(folder, "list").write(7)
    assert (Cursor(folder, "list").read(), feeds_sinks(folder)) == (7, True)


def test_events_that_no_sink_took_or_one_refused_are_undelivered(folder: Path) -> None:
    three = folder / "events.jsonl"
    with Outbox(folder) as outbox:
        for status in WAY:
            outbox.publish(news(status, outbox))
    assert undelivered_events(folder) == 0  # without sinks
    (_, second) = [position for position, _ in read_events(three)][:2]
    Cursor(folder, "queue").write(second)
    Cursor(folder, "list").write(three.stat().st_size)
    assert undelivered_events(folder) == 1
    Cursor(folder, "queue").write(three.stat().st_size)
    assert undelivered_events(folder) == 0
    (folder / "dead-letters.jsonl").write_text("{}\n{}\n")
    assert undelivered_events(folder) == 2
    assert undelivered_events(folder / "gone") == 0

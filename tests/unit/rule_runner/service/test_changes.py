"""Changes: what event streams are told, and when."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from served import add, rule
from structlog.testing import capture_logs

from rule_runner.errors import OutputError
from rule_runner.index.database import NewTrial, WatchDatabase
from rule_runner.index.reader import IndexReader
from rule_runner.service.changes import (
    END,
    LONGEST_PAUSE_S,
    MOST_CHANGES,
    MOST_WAITING,
    Changes,
    StreamEvent,
)

LOOK_S = 0.01
FAILURES = 12  # until pauses are the longest


def taken(queue: "asyncio.Queue[StreamEvent]") -> list[tuple[str, str]]:
    """Return the events that wait."""
    events = []
    while not queue.empty():
        event = queue.get_nowait()
        events.append((event.type, event.data))
    return events


async def until(queue: "asyncio.Queue[StreamEvent]", kinds: Sequence[str]) -> list[str]:
    """Return the types of the events up to those that are waited for."""
    seen: list[str] = []
    async with asyncio.timeout(10):
        while not set(kinds) <= set(seen):
            seen.append((await queue.get()).type)
    return seen


def test_streams_hear_of_trials_findings_and_data(tmp_path: Path) -> None:
    path = tmp_path / "watch.sqlite"

    async def check(index: WatchDatabase) -> None:
        changes = Changes(lambda: IndexReader(path), LOOK_S)
        async with changes.running(), changes.stream() as queue:
            assert taken(queue) == [("reload", "{}")]
            index.set_rules(1, [rule(outcome="IssuesFound", last_step=220)])
            assert await until(queue, ["series"]) == ["trial", "finding", "series"]
            index.set_rules(1, [rule(outcome="IssuesFound", last_step=240)])
            assert await until(queue, ["series"]) == ["trial", "series"]
            back = {"counted_severity": None, "recovered_at": 240, "last_step": 240}
            index.set_rules(1, [rule(outcome="IssuesFound", **back)])
            assert await until(queue, ["series"]) == ["trial", "series"]
            index.set_rules(1, [rule(outcome="IssuesFound", last_step=260)])
            assert await until(queue, ["series"]) == ["trial", "finding", "series"]
            index.update(1, state="running")
            await until(queue, ["series"])
            index.set_rules(1, [])
            assert await until(queue, ["trial"]) == ["trial"]
            index.set_rules(1, [rule(outcome="IssuesFound")])
            assert await until(queue, ["series"]) == ["trial", "finding", "series"]
            changes.end()
            assert (await queue.get()).type == END
        assert len(changes) == 0

    with WatchDatabase(path) as index:
        add(index, "/runs/a", [rule()])
        asyncio.run(check(index))


def test_too_many_changes_are_told_as_one(tmp_path: Path) -> None:
    path = tmp_path / "watch.sqlite"

    async def check(index: WatchDatabase) -> None:
        changes = Changes(lambda: IndexReader(path), LOOK_S)
        async with changes.running(), changes.stream() as queue:
            await until(queue, ["reload"])
            trials = [
                NewTrial(f"/runs/{number}", "/runs", True, False, f"/out/{number}")
                for number in range(MOST_CHANGES + 1)
            ]
            index.add(trials, 0.0)
            assert await until(queue, ["reload"]) == ["reload"]
            index.remove(1)
            assert await until(queue, ["reload"]) == ["reload"]

    with WatchDatabase(path) as index:
        asyncio.run(check(index))


def test_a_stream_that_takes_nothing_is_told_to_reload(tmp_path: Path) -> None:
    path = tmp_path / "watch.sqlite"

    async def check(index: WatchDatabase) -> None:
        changes = Changes(lambda: IndexReader(path), LOOK_S)
        async with changes.running(), changes.stream() as slow, changes.stream() as quick:
            await until(slow, ["reload"])
            await until(quick, ["reload"])
            for _ in range(MOST_WAITING):
                slow.put_nowait(StreamEvent("trial"))
            add(index, "/runs/a")
            assert await until(quick, ["trial"]) == ["trial"]
            assert [kind for kind, _ in taken(slow)] == ["reload"]

    with WatchDatabase(path) as index:
        asyncio.run(check(index))


def test_a_stream_continues_after_the_revision_of_another_or_of_a_list(tmp_path: Path) -> None:
    path = tmp_path / "watch.sqlite"

    async def check(index: WatchDatabase) -> None:
        changes = Changes(lambda: IndexReader(path), LOOK_S)
        async with changes.stream() as queue:
            reload = queue.get_nowait()
            assert reload.id == changes.revision(index)
        index.set_rules(1, [rule(outcome="IssuesFound")])
        async with changes.stream(last_id=reload.id or "") as queue:
            events = [queue.get_nowait() for _ in range(queue.qsize())]
        assert [event.type for event in events] == ["trial", "finding", "series"]
        assert [event.id for event in events] == [None, None, changes.revision(index)]
        async with changes.stream(last_id=changes.revision(index)) as queue:
            assert taken(queue) == []
        index.remove(1)
        other = Changes(lambda: IndexReader(path), LOOK_S)
        for last_id in (reload.id or "", "1", "x", other.revision(index), "-".join("9" * 40)):
            async with changes.stream(last_id=last_id) as queue:
                assert taken(queue) == [("reload", "{}")]

    with WatchDatabase(path) as index:
        add(index, "/runs/a", [rule()])
        asyncio.run(check(index))


def test_a_finding_that_is_written_while_the_index_is_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "watch.sqlite"

    async def check(index: WatchDatabase) -> None:
        class Reader(IndexReader):
            def issues(self) -> dict[int, dict[str, int | None]]:
                index.set_rules(1, [rule(outcome="IssuesFound")])
                return super().issues()

        changes = Changes(lambda: Reader(path), LOOK_S)
        async with changes.running(), changes.stream() as queue:
            seen = await until(queue, ["series"])
            assert seen == ["reload", "trial", "finding", "series"]

    with WatchDatabase(path) as index:
        add(index, "/runs/a", [rule()])
        asyncio.run(check(index))


def test_an_index_in_place_of_another_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "watch.sqlite"

    async def check() -> None:
        changes = Changes(lambda: IndexReader(path), LOOK_S)
        with WatchDatabase(path) as index:
            add(index, "/runs/a")
            async with changes.stream():
                pass
            revision = changes.revision(index)
        with WatchDatabase.empty(path) as index:
            for name in "bcd":  # more changes than the other one had
                add(index, f"/runs/{name}")
            async with changes.running(), changes.stream() as queue:
                assert taken(queue) == [("reload", "{}")]
            async with changes.stream(last_id=revision) as queue:
                assert taken(queue) == [("reload", "{}")]

    asyncio.run(check())


@pytest.mark.parametrize("error", [OutputError("The database is gone."), RuntimeError("defect")])
def test_streams_end_when_the_index_cannot_be_followed_and_begin_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    path = tmp_path / "watch.sqlite"
    errors: list[Exception] = []
    pauses: list[float] = []
    sleep = asyncio.sleep

    def open_index() -> IndexReader:
        if errors:
            raise errors.pop()
        return IndexReader(path)

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(LOOK_S)

    async def check() -> None:
        changes = Changes(open_index, LOOK_S)
        async with changes.running(), changes.stream() as queue:
            errors.extend([error] * FAILURES)
            assert await until(queue, [END]) == ["reload", END]
            assert changes.failure
            assert "defect" not in changes.failure or "log" in changes.failure
            with pytest.raises(OutputError):
                async with changes.stream():
                    pass
            while changes.failure:
                await sleep(LOOK_S)
            async with changes.stream() as again:
                assert taken(again) == [("reload", "{}")]
        assert len(changes) == 0

    monkeypatch.setattr(asyncio, "sleep", pause)
    with WatchDatabase(path), capture_logs() as logs:
        asyncio.run(check())
    assert [log["event"] for log in logs] == ["index_not_followed", "index_followed_again"]
    longer = [seconds for seconds in pauses if seconds > LOOK_S]
    doubled = [LOOK_S * 2**count for count in range(1, FAILURES + 1)]
    assert longer == [min(seconds, LONGEST_PAUSE_S) for seconds in doubled]


def test_an_index_that_nobody_follows_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "watch.sqlite"
    opened: list[int] = []

    def open_index() -> IndexReader:
        opened.append(1)
        return IndexReader(path)

    async def check() -> None:
        changes = Changes(open_index, LOOK_S)
        async with changes.running():
            async with changes.stream():
                pass
            before = len(opened)
            await asyncio.sleep(5 * LOOK_S)
            assert len(opened) == before

    with WatchDatabase(path):
        asyncio.run(check())

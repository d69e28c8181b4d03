"""Changes: what event streams are told, and when."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from served import add, rule

from rule_runner.errors import OutputError
from rule_runner.fleet.watch.database import NewTrial, WatchDatabase
from rule_runner.fleet.watch.index_reader import IndexReader
from rule_runner.service.changes import END, MOST_CHANGES, MOST_WAITING, Changes, StreamEvent

LOOK_S = 0.01


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
            assert await until(queue, ["reload"]) == ["reload"]
            await asyncio.sleep(10 * LOOK_S)
            assert taken(queue) == []
            index.set_rules(1, [rule(outcome="IssuesFound", last_step=220)])
            assert await until(queue, ["series"]) == ["trial", "finding", "series"]
            index.set_rules(1, [rule(outcome="IssuesFound", last_step=240)])
            assert await until(queue, ["series"]) == ["trial", "series"]
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
                slow.put_nowait(StreamEvent("trial", "{}", 0))
            add(index, "/runs/a")
            assert await until(quick, ["trial"]) == ["trial"]
            assert [kind for kind, _ in taken(slow)] == ["reload"]

    with WatchDatabase(path) as index:
        asyncio.run(check(index))


def test_an_index_that_is_gone_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "watch.sqlite"
    calls: list[int] = []

    def open_index() -> IndexReader:
        calls.append(1)
        if len(calls) < 3:
            msg = "The database is gone."
            raise OutputError(msg)
        return IndexReader(path)

    async def check(index: WatchDatabase) -> None:
        changes = Changes(open_index, LOOK_S)
        async with changes.running(), changes.stream() as queue:
            assert await until(queue, ["reload"]) == ["reload"]
            assert len(calls) == 3
            add(index, "/runs/a")
            assert await until(queue, ["trial"]) == ["trial"]
        before = len(calls)
        await asyncio.sleep(5 * LOOK_S)
        assert len(calls) == before, "The index is read although nobody listens."

    with WatchDatabase(path) as index:
        asyncio.run(check(index))

"""Event streams that open while findings are written: none is lost, however a client begins."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from served import add, listening, rule, service

from rule_runner.index.database import WatchDatabase
from rule_runner.service.application import build_application
from rule_runner.service.changes import Changes

PATIENCE_S: Final = 600.0  # 200 streams take a minute on two busy cores
LOOK_S: Final = 0.01
WAITED_SHARE: Final = 0.3
RULES: Final = [f"rule-{number}" for number in range(10)]

Finding = tuple[int, str, int]  # trial, rule, step


class Event(NamedTuple):
    type: str
    data: str
    id: str


class Writer:
    """Writes findings to an index, each of another rule job."""

    def __init__(self, index: WatchDatabase, findings: int) -> None:
        self._index = index
        self._steps: dict[int, dict[str, int]] = {}
        self.left = [(1 + number // len(RULES), number % len(RULES)) for number in range(findings)]
        self.written: set[Finding] = set()
        for trial in range(1, 1 + findings // len(RULES)):
            add(index, f"/runs/{trial}")

    def write(self, step: int) -> None:
        trial, number = self.left.pop()
        steps = self._steps.setdefault(trial, {})
        steps[RULES[number]] = step
        with self._index.transaction():
            records = [rule(name, "IssuesFound", step=at) for name, at in steps.items()]
            self._index.set_rules(trial, records)
        self.written.add((trial, RULES[number], step))


class Follower:
    """A client that follows the stream until it has seen all findings."""

    def __init__(self, address: str, kind: str) -> None:
        self._host, _, self._port = address.partition(":")
        self._kind = kind
        self._last_id = ""
        self.seen: set[Finding] = set()
        self.is_open = asyncio.Event()

    @asynccontextmanager
    async def _answer(self, path: str, *headers: str) -> AsyncIterator[asyncio.StreamReader]:
        """Send a request, and return the body of its answer."""
        reader, writer = await asyncio.open_connection(self._host, self._port)
        lines = [f"GET {path} HTTP/1.1", f"Host: {self._host}", *headers, "", ""]
        writer.write("\r\n".join(lines).encode())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            yield reader
        finally:
            writer.close()

    async def _list(self) -> None:
        async with self._answer("/api/v1/trials?limit=1000", "Connection: close") as reader:
            page = json.loads(await reader.read())
        self._last_id = page["revision"]
        self.seen |= {
            (trial["id"], item["name"], item["step"])
            for trial in page["trials"]
            for item in trial["rules"]
        }

    async def follow(self, written: set[Finding], ended: asyncio.Event) -> None:
        """Open the stream, in the way of its kind, until all that was written is seen."""
        if self._kind == "lists before":
            await self._list()
        if self._kind == "comes back":
            async with self._events() as events:
                async for event in events:
                    await self._take(event)
                    if self._last_id:
                        break
        async with self._events() as events:
            async for event in events:
                await self._take(event)
                if ended.is_set() and self.seen >= written:
                    return

    @asynccontextmanager
    async def _events(self) -> AsyncIterator[AsyncIterator[Event]]:
        header = f"Last-Event-ID: {self._last_id}"
        async with self._answer("/api/v1/events", *[header] * bool(self._last_id)) as reader:
            yield _events(reader)

    async def _take(self, event: Event) -> None:
        self.is_open.set()
        self._last_id = event.id or self._last_id
        if event.type == "reload":
            await self._list()
        elif event.type == "finding":
            data = json.loads(event.data)
            self.seen.add((data["trial"], data["rule"], data["step"]))


async def _events(reader: asyncio.StreamReader) -> AsyncIterator[Event]:
    """Yield the events of a stream; the sizes of chunks are lines without a colon."""
    fields: dict[str, str] = {}
    while line := await reader.readline():
        name, colon, value = line.decode().strip().partition(": ")
        if colon:
            fields[name] = value
        elif not name and "event" in fields:
            yield Event(fields["event"], fields["data"], fields.get("id", ""))
            fields = {}


async def follow_all(address: str, writer: Writer, streams: int, seed: int) -> list[Follower]:
    """Write all findings and open streams in random order; return the clients at their end."""
    kinds = ["lists on reload", "lists before", "comes back"]
    followers = [Follower(address, kinds[number % 3]) for number in range(streams)]
    ended = asyncio.Event()
    count = len(writer.left)
    order: list[Follower | None] = [*followers, *[None] * (count - 1)]
    drawn = random.Random(seed)
    drawn.shuffle(order)
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        for step, follower in enumerate(order):
            if follower is None:
                await asyncio.to_thread(writer.write, step)
            else:
                tasks.create_task(follower.follow(writer.written, ended))
                if drawn.random() < WAITED_SHARE:  # else writes go on while it is opened
                    await follower.is_open.wait()
        ended.set()
        writer.write(len(order))
    return followers


@pytest.mark.parametrize(
    ("streams", "findings"), [(20, 100), pytest.param(200, 1000, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_findings_around_the_opening_of_streams_reach_each_of_them(
    tmp_path: Path, streams: int, findings: int, seed: int
) -> None:
    with WatchDatabase(tmp_path / "watch.sqlite") as index:
        writer = Writer(index, findings)
        own = service(index.path)
        vars(own)["changes"] = Changes(own.index, LOOK_S)
        with listening(build_application(own)) as address:
            followers = asyncio.run(follow_all(address, writer, streams, seed))
    assert len(writer.written) == findings
    assert all(follower.seen >= writer.written for follower in followers)

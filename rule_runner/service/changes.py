"""Changes: looks at the index once for all event streams, and tells each what has changed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple

import msgspec
from starlette.concurrency import run_in_threadpool

from rule_runner.errors import OutputError
from rule_runner.fleet.watch.index_reader import IndexReader
from rule_runner.fleet.watch.records import RuleRecord, TrialRecord
from rule_runner.logs import get_logger
from rule_runner.results.status import Outcome

_log: Final = get_logger(__name__)
LOOK_S: Final = 0.5
MOST_CHANGES: Final = 200  # trials; a page that hears of more reads all anew
END: Final = "end"  # of a stream
MOST_WAITING: Final = 500  # events of a stream that its client has not taken


class StreamEvent(NamedTuple):
    """An event of a stream: its type, its data as JSON, and the revision of the index."""

    type: str
    data: str
    revision: int


class Changes:
    """Tells event streams what has changed in the index.

    The index is read only while there are streams.

    Parameters
    ----------
    open_index
        Opens the index, which may be gone.
    """

    def __init__(self, open_index: Callable[[], IndexReader], look_s: float = LOOK_S) -> None:
        self._open_index = open_index
        self._look_s = look_s
        self._streams: set[asyncio.Queue[StreamEvent]] = set()
        self._revision = -1
        self._removals = 0
        self._issues: dict[int, dict[str, int | None]] = {}  # steps by rule job, by trial

    def __len__(self) -> int:
        return len(self._streams)

    def end(self) -> None:
        """End all streams; call it in their event loop."""
        for queue in self._streams:
            _empty(queue)
            queue.put_nowait(StreamEvent(END, "", self._revision))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look for changes inside the block."""
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    @asynccontextmanager
    async def stream(self) -> AsyncIterator["asyncio.Queue[StreamEvent]"]:
        """Return the events from now on; a queue that is full becomes one event ``reload``."""
        queue: asyncio.Queue[StreamEvent] = asyncio.Queue(MOST_WAITING)
        self._streams.add(queue)
        try:
            yield queue
        finally:
            self._streams.discard(queue)

    async def _run(self) -> None:
        while True:
            if self._streams:
                try:
                    events = await run_in_threadpool(self._look)
                except OutputError:
                    self._revision = -1
                else:
                    self._tell(events)
            else:
                self._revision = -1
            await asyncio.sleep(self._look_s)

    def _look(self) -> list[StreamEvent]:
        """Return the events since the last look; before the first, anything may have changed."""
        with self._open_index() as index:
            changes = index.changes_since(max(self._revision, 0), MOST_CHANGES + 1)
            before, self._revision = self._revision, changes.revision
            removals, self._removals = self._removals, changes.removals
            too_many = len(changes.trials) > MOST_CHANGES
            is_first = before < 0
            if is_first or too_many or changes.revision < before or changes.removals != removals:
                self._issues = _by_trial(index.issues())
                return [StreamEvent("reload", "{}", changes.revision)]
            rules = index.rules_of_trials(trial.id for trial in changes.trials)
        return [event for trial in changes.trials for event in self._events(trial, rules[trial.id])]

    def _events(self, trial: TrialRecord, rules: list[RuleRecord]) -> Iterator[StreamEvent]:
        """Yield the events of a trial that has changed."""

        def event(kind: str, **data: object) -> StreamEvent:
            return StreamEvent(kind, msgspec.json.encode(data).decode(), self._revision)

        yield event(
            "trial",
            id=trial.id,
            state=trial.state,
            outcome=trial.outcome,
            changed_at=trial.changed_at,
        )
        before = self._issues.pop(trial.id, {})
        issues = [rule for rule in rules if rule.outcome == Outcome.ISSUES_FOUND]
        if issues:
            self._issues[trial.id] = {rule.name: rule.step for rule in issues}
        for rule in issues:
            if rule.name not in before or before[rule.name] != rule.step:
                yield event(
                    "finding",
                    trial=trial.id,
                    rule=rule.name,
                    severity=rule.severity,
                    step=rule.step,
                    at=trial.changed_at,
                )
        steps = [rule.last_step for rule in rules if rule.last_step is not None]
        if steps:
            yield event("series", id=trial.id, last_step=max(steps))

    def _tell(self, events: list[StreamEvent]) -> None:
        for queue in self._streams:
            if queue.qsize() + len(events) > MOST_WAITING:
                _empty(queue)
                queue.put_nowait(StreamEvent("reload", "{}", self._revision))
                continue
            for event in events:
                queue.put_nowait(event)


def _by_trial(issues: Mapping[tuple[int, str], int | None]) -> dict[int, dict[str, int | None]]:
    """Return the step of each issue by rule job, by trial."""
    by_trial: dict[int, dict[str, int | None]] = {}
    for (trial, name), step in issues.items():
        by_trial.setdefault(trial, {})[name] = step
    return by_trial


def _empty(queue: "asyncio.Queue[StreamEvent]") -> None:
    while not queue.empty():
        queue.get_nowait()

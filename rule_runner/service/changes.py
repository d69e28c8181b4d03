"""Changes: reads the index once for all event streams and reports the changes to each."""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple, TypeAlias

import msgspec
from starlette.concurrency import run_in_threadpool

from rule_core.clock import pause_after
from rule_core.failures import Contained
from rule_runner.errors import OutputError, RuleRunnerError
from rule_runner.index.reader import IndexReader
from rule_runner.index.records import RuleRecord, TrialRecord
from rule_runner.logs import get_logger
from rule_runner.results.status import Outcome

_log: Final = get_logger(__name__)
LOOK_S: Final = 0.5
LONGEST_PAUSE_S: Final = 8.0  # between two looks that fail
MOST_CHANGES: Final = 200  # trials; a page that hears of more reads all anew
END: Final = "end"  # of a stream
MOST_WAITING: Final = 500  # events of a stream that its client has not taken
_DEFECT: Final = "The index cannot be followed because of a defect; the log has the details."

_Steps: TypeAlias = Mapping[str, int | None]  # of issues, by rule job


class StreamEvent(NamedTuple):
    """An event of a stream: its type, its data as JSON, and the revision that it completes."""

    type: str
    data: str = "{}"
    id: str | None = None


class _State(NamedTuple):
    """A state of the index: its revision, and its issues by trial."""

    removals: int
    revision: int
    issues: Mapping[int, _Steps]


StreamQueue: TypeAlias = "asyncio.Queue[StreamEvent]"


class Changes:
    """Tells event streams what has changed in the index.

    The index is read only while there are streams, and after a failure.

    Parameters
    ----------
    open_index
        Opens the index, which may be gone.

    Attributes
    ----------
    failure
        Why the index cannot be followed, in a sentence; "" if it can. Meanwhile no stream is open.
    """

    def __init__(self, open_index: Callable[[], IndexReader], look_s: float = LOOK_S) -> None:
        self._open_index = open_index
        self._look_s = look_s
        self._lock = asyncio.Lock()  # of the state and the streams
        self._state = _State(-1, 0, {})  # of no index
        self._streams: set[StreamQueue] = set()
        self._owners: dict[StreamQueue, str] = {}  # also of streams that are about to begin
        self._key = secrets.token_hex(4)  # in revisions, which a restart of the machine may repeat
        self.failure = ""

    def __len__(self) -> int:
        return len(self._owners)

    def count(self, owner: str) -> int:
        """Return the number of streams of an owner."""
        return [*self._owners.values()].count(owner)

    def revision(self, index: IndexReader) -> str:
        """Return the present revision of the index, from which a stream can continue."""
        changes = index.changes_since(0, limit=0)
        return self._id(changes.removals, changes.revision)

    def end(self) -> None:
        """End all streams; call it in their event loop."""
        for queue in self._owners:
            _empty(queue)
            queue.put_nowait(StreamEvent(END))

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
    async def stream(self, owner: str = "", last_id: str = "") -> AsyncIterator[StreamQueue]:
        """Return the events from now on; a queue that is full becomes one event ``reload``.

        The first events are those after revision `last_id`, or ``reload`` if it is unknown.

        Raises
        ------
        OutputError
            If the index cannot be read.
        """
        queue: StreamQueue = asyncio.Queue(MOST_WAITING)
        self._owners[queue] = owner
        try:
            async with self._lock:
                if not self.failure:
                    await self._advance(queue, last_id)
                if self.failure:
                    raise OutputError(self.failure)
            yield queue
        finally:
            self._streams.discard(queue)
            del self._owners[queue]

    async def _run(self) -> None:
        failures = 0
        while True:
            if self._streams or self.failure:
                async with self._lock:
                    await self._advance()
            failures = failures + 1 if self.failure else 0
            await asyncio.sleep(pause_after(failures + 1, self._look_s, LONGEST_PAUSE_S))

    async def _advance(self, new: "StreamQueue | None" = None, last_id: str = "") -> None:
        """Look for changes, and send them to all streams; add a new stream after `last_id`."""
        with Contained(self._fail):
            self._state, events = await run_in_threadpool(self._look, self._state)
            for queue in self._streams:
                _put(queue, events)
            if self.failure:
                _log.info("index_followed_again")
            self.failure = ""
            if new is not None:
                _put(new, await self._missed(last_id))
                self._streams.add(new)

    def _fail(self, err: Exception) -> None:
        """Log a failure once, and end all streams, which would be silent otherwise."""
        is_defect = not isinstance(err, RuleRunnerError)
        failure = _DEFECT if is_defect else str(err)
        if failure != self.failure:
            _log.error("index_not_followed", reason=str(err), exc_info=err if is_defect else None)
        self.failure = failure
        self.end()

    async def _missed(self, last_id: str) -> list[StreamEvent]:
        """Return the events after a revision; ``reload`` if it is unknown."""
        match = re.fullmatch(rf"{self._key}-([0-9]{{1,18}})-([0-9]{{1,18}})", last_id)
        if match is None:
            return [StreamEvent("reload", id=self._id(*self._state[:2]))]
        since = _State(int(match[1]), int(match[2]), {})
        _, events = await run_in_threadpool(self._look, since)
        return events

    def _look(self, since: _State) -> tuple[_State, list[StreamEvent]]:
        """Return the present state, and the events since another one."""
        with self._open_index() as index, index.snapshot():
            changes = index.changes_since(since.revision, MOST_CHANGES + 1)
            too_many = len(changes.trials) > MOST_CHANGES
            is_reset = changes.removals != since.removals or changes.revision < since.revision
            revision = self._id(changes.removals, changes.revision)
            if is_reset or too_many:
                state = _State(changes.removals, changes.revision, index.issues())
                return state, [StreamEvent("reload", id=revision)]
            rules = index.rules_of_trials(trial.id for trial in changes.trials)
        events: list[StreamEvent] = []
        for trial in changes.trials:
            events += _events(trial, rules[trial.id], since.issues.get(trial.id, {}))
        if events:  # a client that has the last one has them all
            events[-1] = events[-1]._replace(id=revision)
        steps = {
            trial_id: {job.name: job.step for job in jobs if job.verdict == Outcome.ISSUES_FOUND}
            for trial_id, jobs in rules.items()
        }
        return _State(changes.removals, changes.revision, {**since.issues, **steps}), events

    def _id(self, removals: int, revision: int) -> str:
        return f"{self._key}-{removals}-{revision}"


def _events(trial: TrialRecord, rules: list[RuleRecord], before: _Steps) -> Iterator[StreamEvent]:
    """Yield the events of a trial that has changed, with the issues that it had before."""

    def event(kind: str, **data: object) -> StreamEvent:
        return StreamEvent(kind, msgspec.json.encode(data).decode())

    yield event(
        "trial",
        id=trial.id,
        state=trial.state,
        outcome=trial.outcome,
        changed_at=trial.changed_at,
    )
    for rule in rules:
        is_issue = rule.verdict == Outcome.ISSUES_FOUND
        if is_issue and (rule.name, rule.step) not in before.items():
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


def _put(queue: StreamQueue, events: Sequence[StreamEvent]) -> None:
    """Queue events; if they are too many, ``reload`` in place of all that wait."""
    if queue.qsize() + len(events) > MOST_WAITING:
        _empty(queue)
        events = [StreamEvent("reload", id=events[-1].id)]
    for event in events:
        queue.put_nowait(event)


def _empty(queue: StreamQueue) -> None:
    while not queue.empty():
        queue.get_nowait()

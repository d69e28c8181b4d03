"""Fleet: runs containers side by side, hears them, and ends them when it is time."""

import signal
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from types import FrameType
from typing import Final

import structlog

from rule_runner.containers.engine import Engine, RunningContainer
from rule_runner.containers.errors import EngineError, EngineLostError
from rule_runner.containers.plan import ContainerPlan
from smdebug.core.clock import Clock, SystemClock

_log: Final = structlog.get_logger()
GRACE_S: Final = 10.0  # between being asked to stop and being killed
LATE_S: Final = 10.0  # an evaluation ends by itself so long after its own time limit
BEAT_S: Final = 0.2  # a signal that another thread was given does not wake the one that waits
DEAF_S: Final = 30.0  # an engine that has not killed within this is lost

# Takes stdout and stderr of a container as they come, by its name.
Hearing = Callable[[str, bytes | None, bytes | None], None]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a container ended.

    Attributes
    ----------
    code
        Exit code; None if it never started or the engine was lost.
    signalled
        The signal that this process got while it ran.
    timed_out
        Whether it did not end by itself at its time limit.
    killed
        Whether it was killed by us.
    out_of_memory
        Whether a process in it was killed for want of memory.
    lost
        What was said when the engine went away.
    """

    code: int | None = None
    signalled: int | None = None
    timed_out: bool = False
    killed: bool = False
    out_of_memory: bool = False
    lost: str = ""


@dataclass(slots=True)
class _Live:
    """A running container, and what becomes of it at `at` (in the clock's seconds)."""

    container: RunningContainer
    at: float
    signalled: int | None = None
    timed_out: bool = False
    stopping: bool = False
    killed: bool = False


@dataclass(frozen=True, slots=True)
class _Ended:
    name: str
    code: int | None
    lost: str = ""


class Fleet:
    """Runs containers, at most `abreast` at a time.

    At a first SIGINT, SIGTERM or SIGHUP all of them are told to stop, with SIGTERM, and no more are
    started; they are killed after `GRACE_S`, or at a second signal.

    Parameters
    ----------
    hear
        Called from a thread of each container.
    limit
        Seconds that an evaluation may take by its own account; infinite without one.
    """

    def __init__(
        self,
        engine: Engine,
        hear: Hearing,
        *,
        abreast: int = 1,
        limit: float = float("inf"),
        clock: Clock | None = None,
    ) -> None:
        self._engine = engine
        self._hear = hear
        self._abreast = abreast
        self._limit = limit
        self._clock = clock or SystemClock()
        self._events: SimpleQueue[_Ended | signal.Signals] = SimpleQueue()
        self._live: dict[str, _Live] = {}
        self._endings: dict[str, Ending] = {}
        self._signalled: int | None = None

    def run(self, plans: Mapping[str, ContainerPlan]) -> dict[str, Ending]:
        """Run the containers and remove them; return how each ended, by its name.

        Raises
        ------
        EngineError
            If one cannot be started.
        """
        todo = deque(plans.items())
        with self._signals():
            try:
                while todo or self._live:
                    while todo and len(self._live) < self._abreast and self._signalled is None:
                        self._start(*todo.popleft())
                    if self._live:
                        self._await_event()
                    elif self._signalled is not None:
                        break
            finally:
                for one in self._live.values():
                    one.container.remove()
        never = Ending(signalled=self._signalled)
        return {name: self._endings.get(name, never) for name in plans}

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Make events of signals inside the block."""

        def handle(number: int, frame: FrameType | None) -> None:
            del frame
            self._events.put(signal.Signals(number))

        handled = [signal.SIGTERM, signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup leaves it
            handled.append(signal.SIGHUP)
        before = {one: signal.signal(one, handle) for one in handled}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def _start(self, name: str, plan: ContainerPlan) -> None:
        container = self._engine.create(plan)
        self._live[name] = _Live(container, self._clock.monotonic() + self._limit + LATE_S)
        container.start()
        _log.info(
            "container_started",
            container=container.name,
            image=plan.image,
            network=plan.network,
            mounts=[f"{one.folder}{':rw' if one.writable else ''}" for one in plan.mounts],
        )
        Thread(target=self._follow, args=(name, container), daemon=True).start()

    def _follow(self, name: str, container: RunningContainer) -> None:
        """Hear a container until it ends, and tell that it has; runs in a thread of its own."""
        try:
            for out, err in container.output():
                self._hear(name, out, err)
            ended = _Ended(name, container.wait())
        except EngineLostError as err:
            ended = _Ended(name, None, str(err))
        except Exception as err:  # noqa: BLE001 - whatever it is, the container is not heard of more
            ended = _Ended(name, None, repr(err))
        self._events.put(ended)

    def _await_event(self) -> None:
        """Wait for what happens next, and do what follows from it."""
        left = min(one.at for one in self._live.values()) - self._clock.monotonic()
        try:
            event = self._events.get(timeout=max(0.0, min(left, BEAT_S)))
        except Empty:
            for name, one in [*self._live.items()]:
                if one.at <= self._clock.monotonic():
                    self._overdue(name, one)
            return
        if isinstance(event, _Ended):
            self._ended(event)
            return
        again = self._signalled is not None
        self._signalled = self._signalled or int(event)
        for one in self._live.values():
            one.signalled = self._signalled
            self._kill(one) if again else self._stop(one)

    def _overdue(self, name: str, one: _Live) -> None:
        """Take the next step with a container that does not end."""
        if one.killed:
            self._ended(_Ended(name, None, "It does not end a container that it was to kill."))
        elif one.stopping:
            self._kill(one)
        else:
            one.timed_out = True
            self._stop(one)

    def _stop(self, one: _Live) -> None:
        one.stopping = True
        one.at = self._clock.monotonic() + GRACE_S
        one.container.signal(signal.SIGTERM)

    def _kill(self, one: _Live) -> None:
        one.stopping = one.killed = True
        one.at = self._clock.monotonic() + DEAF_S
        one.container.signal(signal.SIGKILL)

    def _ended(self, event: _Ended) -> None:
        """Take note of how a container ended, and remove it."""
        one = self._live.pop(event.name, None)
        if one is None:
            return
        lost, memory = event.lost, False
        try:
            memory = not lost and one.container.out_of_memory()
        except EngineLostError as err:
            lost = str(err)
        if not lost:
            one.container.remove()
        self._endings[event.name] = Ending(
            event.code, one.signalled, one.timed_out, one.killed, memory, lost
        )


def failure(endings: Mapping[str, Ending]) -> EngineError | None:
    """Return the error that the engine was lost, if it was."""
    lost = next((one.lost for one in endings.values() if one.lost), "")
    if not lost:
        return None
    return EngineLostError(
        f"The engine went away while a container ran: {lost} Start it, look for the container "
        "with 'docker ps --all --filter label=rule-runner.output', and evaluate again."
    )

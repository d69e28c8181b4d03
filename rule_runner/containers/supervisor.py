"""ContainerSupervisor: runs containers in parallel, reads their output, and stops them in time."""

import signal
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

from rule_core.clock import Clock, SystemClock
from rule_runner.containers.docker_engine import Engine, RunningContainer
from rule_runner.containers.errors import EngineError, EngineLostError
from rule_runner.containers.plan import ContainerPlan
from rule_runner.engine.stop_requests import HANDLED, signals_to
from rule_runner.logs import get_logger

_log: Final = get_logger(__name__)
GRACE_S: Final = 10.0  # between SIGTERM and SIGKILL
LATE_S: Final = 10.0  # an evaluation may end by itself so long after its time limit
POLL_S: Final = 0.2  # a signal handled by another thread does not wake the waiting one
KILL_TIMEOUT_S: Final = 30.0  # after that the engine counts as lost

# Receives the name of a container, and parts of its stdout and stderr.
OutputHandler = Callable[[str, bytes | None, bytes | None], None]


@dataclass(frozen=True, slots=True)
class ContainerExit:
    """The end of a container.

    Attributes
    ----------
    code
        Exit code; None if it never started or the engine was lost.
    signalled
        The signal that this process received while it ran.
    timed_out
        Whether it exceeded its time limit.
    killed
        Whether the supervisor killed it.
    out_of_memory
        Whether a process in it was killed because it ran out of memory.
    lost
        The error that lost the engine.
    """

    code: int | None = None
    signalled: int | None = None
    timed_out: bool = False
    killed: bool = False
    out_of_memory: bool = False
    lost: str = ""


@dataclass(slots=True)
class _Running:
    """A running container; `deadline` is the time of the next measure, in the clock's seconds."""

    container: RunningContainer
    deadline: float
    timed_out: bool = False
    stopping: bool = False
    killed: bool = False


class ContainerSupervisor:
    """Runs containers, at most `abreast` at a time.

    At the first SIGINT, SIGTERM or SIGHUP all of them get SIGTERM, and no more are started; they
    are killed after `GRACE_S`, or at the second signal.

    Parameters
    ----------
    hear
        Called in a separate thread for each container.
    limit
        Time limit of an evaluation in seconds; infinite by default.
    """

    def __init__(
        self,
        engine: Engine,
        hear: OutputHandler,
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
        self._events: SimpleQueue[tuple[str, ContainerExit] | signal.Signals] = SimpleQueue()
        self._running: dict[str, _Running] = {}
        self._endings: dict[str, ContainerExit] = {}
        self._signalled: int | None = None

    def run(self, plans: Mapping[str, ContainerPlan]) -> dict[str, ContainerExit]:
        """Run the containers and remove them; return the end of each by name.

        Raises
        ------
        EngineError
            If running cannot be started.
        """
        todo = deque(plans.items())
        handled = list(HANDLED)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it
            handled.append(signal.SIGHUP)
        with signals_to(lambda number: self._events.put(signal.Signals(number)), handled):
            try:
                while todo or self._running:
                    while todo and len(self._running) < self._abreast and self._signalled is None:
                        self._start(*todo.popleft())
                    if self._running:
                        self._await_event()
                    elif self._signalled is not None:
                        break
            finally:
                for running in self._running.values():
                    running.container.remove()
        never = ContainerExit(signalled=self._signalled)
        return {name: self._endings.get(name, never) for name in plans}

    def _start(self, name: str, plan: ContainerPlan) -> None:
        container = self._engine.create(plan)
        self._running[name] = _Running(container, self._clock.monotonic() + self._limit + LATE_S)
        container.start()
        _log.info(
            "container_started",
            container=container.name,
            image=plan.image,
            network=plan.network,
            mounts=[f"{mount.folder}{':rw' if mount.writable else ''}" for mount in plan.mounts],
        )
        Thread(target=self._follow, args=(name, container), daemon=True).start()

    def _follow(self, name: str, container: RunningContainer) -> None:
        """Read the output of a container, then put its end into the queue; runs in a thread."""
        ending = ContainerExit(lost="Its output could not be followed.")
        try:
            for out, err in container.output():
                self._hear(name, out, err)
            ending = ContainerExit(container.wait())
        except EngineLostError as lost:
            ending = ContainerExit(lost=str(lost))
        finally:
            self._events.put((name, ending))

    def _await_event(self) -> None:
        """Wait for the next event or deadline, and handle it."""
        remaining_s = (
            min(running.deadline for running in self._running.values()) - self._clock.monotonic()
        )
        try:
            event = self._events.get(timeout=max(0.0, min(remaining_s, POLL_S)))
        except Empty:
            for name, running in [*self._running.items()]:
                if running.deadline <= self._clock.monotonic():
                    self._overdue(name, running)
            return
        if isinstance(event, tuple):
            self._ended(*event)
            return
        is_second = self._signalled is not None
        self._signalled = self._signalled or int(event)
        for running in self._running.values():
            self._kill(running) if is_second else self._stop(running)

    def _overdue(self, name: str, running: _Running) -> None:
        """Take the next measure against a container that does not end."""
        if running.killed:
            self._ended(name, ContainerExit(lost="It did not kill a container."))
        elif running.stopping:
            self._kill(running)
        else:
            running.timed_out = True
            self._stop(running)

    def _stop(self, running: _Running) -> None:
        running.stopping = True
        running.deadline = self._clock.monotonic() + GRACE_S
        running.container.signal(signal.SIGTERM)

    def _kill(self, running: _Running) -> None:
        running.stopping = running.killed = True
        running.deadline = self._clock.monotonic() + KILL_TIMEOUT_S
        running.container.signal(signal.SIGKILL)

    def _ended(self, name: str, ending: ContainerExit) -> None:
        """Record the end of a container, and remove it."""
        running = self._running.pop(name, None)
        if running is None:
            return
        lost, memory = ending.lost, False
        try:
            memory = not lost and running.container.out_of_memory()
        except EngineLostError as err:
            lost = str(err)
        if not lost:
            running.container.remove()
        self._endings[name] = ContainerExit(
            ending.code, self._signalled, running.timed_out, running.killed, memory, lost
        )


def failure(endings: Mapping[str, ContainerExit]) -> EngineError | None:
    """Return the error about a lost engine, if any."""
    lost = next((ending.lost for ending in endings.values() if ending.lost), "")
    if not lost:
        return None
    return EngineLostError(
        f"The connection to the engine was lost while a container ran: {lost} Start the engine, "
        "look for the container with 'docker ps --all --filter label=rule-runner.output', and "
        "evaluate again."
    )

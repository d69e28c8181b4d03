"""Containers side by side: how they are heard, stopped, killed and removed; without an engine."""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, cast

import pytest

from rule_runner.containers import supervisor as container_fleet
from rule_runner.containers.errors import EngineError, EngineLostError
from rule_runner.containers.options import Mount
from rule_runner.containers.plan import Account, ContainerPlan
from rule_runner.containers.supervisor import ContainerExit, ContainerSupervisor, failure

if TYPE_CHECKING:
    from rule_runner.containers.docker_engine import Engine

TERM, KILL = int(signal.SIGTERM), int(signal.SIGKILL)


@dataclass
class Contained:
    """Stands for a container: `does` is what runs in it, and returns its exit code."""

    does: "Callable[[Contained], int]"
    name: str = "contained"
    signals: list[int] = field(default_factory=list)
    told: Event = field(default_factory=Event)
    killed: Event = field(default_factory=Event)
    removed: int = 0
    memory: bool = False

    def start(self) -> None:
        pass

    def output(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        yield b"out", None
        yield None, b"err"

    def wait(self) -> int:
        return self.does(self)

    def signal(self, number: int) -> None:
        self.signals.append(int(number))
        (self.killed if number == signal.SIGKILL else self.told).set()
        self.told.set()

    def out_of_memory(self) -> bool:
        return self.memory

    def remove(self) -> None:
        self.removed += 1


@dataclass
class Containers:
    """Stands for an engine: hands out containers in their order."""

    made: list[Contained]
    created: list[ContainerPlan] = field(default_factory=list)

    def create(self, plan: ContainerPlan) -> Contained:
        self.created.append(plan)
        return self.made[len(self.created) - 1]


PLAN = ContainerPlan(
    image="i",
    arguments=(),
    mounts=(Mount(Path("/out"), True),),
    environment={},
    network="none",
    memory=1,
    cpus=1.0,
    pids=1,
    account=Account("1:1"),
    output="/out",
)


def run(
    *containers: Contained, abreast: int = 1, limit: float = float("inf")
) -> tuple[dict[str, ContainerExit], list[tuple[str, bytes | None, bytes | None]], int]:
    """Return endings, what was heard, and how many containers were created."""
    heard: list[tuple[str, bytes | None, bytes | None]] = []
    engine = Containers([*containers])
    fleet = ContainerSupervisor(
        cast("Engine", engine), lambda *what: heard.append(what), abreast=abreast, limit=limit
    )
    plans = {str(number): PLAN for number in range(len(containers))}
    return fleet.run(plans), heard, len(engine.created)


def ends_with(code: int) -> Contained:
    return Contained(lambda _: code)


def obedient(container: Contained) -> int:
    """Continue until stopped, after interrupting this process."""
    os.kill(os.getpid(), signal.SIGINT)
    container.told.wait()
    return 143


def stubborn(container: Contained) -> int:
    """Go on until killed."""
    os.kill(os.getpid(), signal.SIGTERM)
    container.killed.wait()
    return 137


def test_a_container_is_heard_and_removed() -> None:
    one = ends_with(10)
    endings, heard, _ = run(one)
    assert endings == {"0": ContainerExit(10)}
    assert heard == [("0", b"out", None), ("0", None, b"err")]
    assert (one.removed, one.signals) == (1, [])


def test_that_memory_ran_out_is_reported() -> None:
    one = ends_with(137)
    one.memory = True
    assert run(one)[0] == {"0": ContainerExit(137, out_of_memory=True)}


def test_no_more_than_the_bound_run_at_a_time() -> None:
    alive: list[int] = []
    most: list[int] = []

    def live(container: Contained) -> int:
        del container
        alive.append(1)
        most.append(len(alive))
        alive.pop()
        return 0

    endings, _, created = run(*(Contained(live) for _ in range(5)), abreast=2)
    assert (len(endings), created, max(most) <= 2) == (5, 5, True)


def test_a_signal_stops_what_runs_and_starts_no_more() -> None:
    one, never = Contained(obedient), ends_with(0)
    endings, _, created = run(one, never)
    assert endings == {"0": ContainerExit(143, signalled=2), "1": ContainerExit(None, signalled=2)}
    assert (one.signals, one.removed, created) == ([TERM], 1, 1)


def handlers() -> list[object]:
    return [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]


def test_handlers_of_signals_are_put_back() -> None:
    before = handlers()
    run(Contained(obedient))
    assert handlers() == before


@pytest.mark.parametrize(
    ("handler", "stays"), [(signal.SIG_IGN, True), (signal.SIG_DFL, False)], ids=["nohup", "not"]
)
def test_a_terminal_that_goes_away_stops_containers_unless_that_is_ignored(
    handler: signal.Handlers, stays: bool
) -> None:
    def look(container: Contained) -> int:
        del container
        return int(signal.getsignal(signal.SIGHUP) is handler)

    before = signal.signal(signal.SIGHUP, handler)
    try:
        assert run(Contained(look))[0] == {"0": ContainerExit(int(stays))}
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_container_that_does_not_stop_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_fleet, "GRACE_S", 0.0)
    one = Contained(stubborn)
    assert run(one)[0] == {"0": ContainerExit(137, signalled=15, killed=True)}
    assert (one.signals, one.removed) == ([TERM, KILL], 1)


def test_a_second_signal_kills() -> None:
    def twice(container: Contained) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        container.told.wait()
        os.kill(os.getpid(), signal.SIGINT)
        container.killed.wait()
        return 137

    one = Contained(twice)
    assert run(one)[0] == {"0": ContainerExit(137, signalled=2, killed=True)}
    assert one.signals == [TERM, KILL]


def test_a_container_is_stopped_when_it_is_over_its_time_limit() -> None:
    def late(container: Contained) -> int:
        container.told.wait()
        return 143

    limit = -container_fleet.LATE_S
    assert run(Contained(late), limit=limit)[0] == {"0": ContainerExit(143, timed_out=True)}


def test_an_engine_that_does_not_even_kill_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_fleet, "GRACE_S", 0.0)
    monkeypatch.setattr(container_fleet, "KILL_TIMEOUT_S", 0.0)
    never = Event()

    def deaf(container: Contained) -> int:
        del container
        never.wait()
        return 0

    one = Contained(deaf)
    try:
        endings, _, _ = run(one, limit=-container_fleet.LATE_S)
    finally:
        never.set()
    assert failure(endings) is not None
    assert one.signals == [TERM, KILL]


def test_an_engine_that_goes_away_is_reported() -> None:
    def lose(container: Contained) -> int:
        del container
        msg = "No such file."
        raise EngineLostError(msg)

    one = Contained(lose)
    endings, _, _ = run(one)
    assert endings == {"0": ContainerExit(None, lost="No such file.")}
    assert one.removed == 0
    with pytest.raises(
        EngineError,
        match=r"^The connection to the engine was lost .*: No such file\. Start the engine",
    ):
        raise failure(endings) or AssertionError


def test_an_engine_that_answered_is_not_lost() -> None:
    assert failure({"0": ContainerExit(1)}) is None


def test_containers_are_removed_when_one_cannot_start() -> None:
    class Refused(Contained):
        def start(self) -> None:
            msg = "No."
            raise EngineError(msg)

    one, other = Contained(stubborn), Refused(lambda _: 0)
    one.does = lambda container: int(container.killed.wait()) and 0
    try:
        with pytest.raises(EngineError, match=r"^No\.$"):
            run(one, other, abreast=2)
    finally:
        one.killed.set()
    assert (one.removed, other.removed) == (1, 1)

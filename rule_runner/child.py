"""A rule in a process of its own: if it takes too long for a step, it is ended, and only it."""

import logging
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, Final, TypeVar

import msgspec

from rule_runner.errors import ClientError
from rule_runner.invocation import Begun, Did, Invocation, Invoker
from rule_runner.logs import LEVELS, configure
from rule_runner.nursery import GoneError, Nursery
from rule_runner.results import evidence
from smdebug.rules.evidence import Finding, Measured, Quantity

T = TypeVar("T")
_START_LIMIT_S: Final = 60.0
# What a rule's process says is decoded as this and nothing else: a rule may write what it likes.
_REFUSED_OR_BEGUN: Final = msgspec.msgpack.Decoder(str | Begun)
_DID: Final = msgspec.msgpack.Decoder(Invocation | None)


class ChildProcess:
    """Judges steps with a rule in a process of its own.

    Parameters
    ----------
    name
        Name of the rule, for messages.
    make
        Called in the new process, with `argument`, to make the rule: a function of a module.
    nursery
        Begins the process, and says how long one step may take.
    """

    def __init__(
        self, name: str, make: Callable[[Any], Invoker], argument: object, nursery: Nursery
    ) -> None:
        self._name = name
        self._limit = nursery.limit
        self._ended: Invocation | None = None
        self._ward = nursery.begin()
        self._ward.ask((_verbosity(), make, argument))

    def begin(self) -> Begun:
        """Wait until the rule was made; see `Invoker`."""
        limit = None if self._limit is None else max(self._limit, _START_LIMIT_S)
        answer = self._answer(_REFUSED_OR_BEGUN, limit, "before the first step")
        if isinstance(answer, Begun):
            return answer
        self.close()
        raise ClientError(answer if isinstance(answer, str) else answer.reason)

    def judge(self, step: int) -> Invocation:
        """Judge a global step; see `Invoker`."""
        return self._ask("judge", step, f"at step {step}") or Invocation(Did.SKIPPED)

    def wait(self, step: int) -> Invocation | None:
        """Judge that nothing has come after a step; see `Invoker`."""
        return self._ask("wait", step, f"waiting after step {step}")

    def finish(self, step: int) -> Invocation:
        """Let the rule do what is left; see `Invoker`."""
        return self._ask("finish", step, "after the last step") or Invocation(Did.SKIPPED)

    def _ask(self, verb: str, step: int, where: str) -> Invocation | None:
        """Return what came of a call of the rule; of one that has ended, how it did."""
        if self._ended is None:
            self._ward.ask((verb, step))
            return self._answer(_DID, self._limit, where)
        return self._ended

    def _answer(
        self, decoder: msgspec.msgpack.Decoder[T], limit: float | None, where: str
    ) -> T | Invocation:
        """Return the rule's answer, or what went wrong."""
        rule = f"Rule {self._name!r}"
        try:
            return decoder.decode(self._ward.answer(limit))
        except TimeoutError:
            reason = f"{rule} took longer than {limit:g} s {where}."
        except GoneError as gone:
            reason = f"{rule} {_how(gone.code)} {where}."
        except msgspec.DecodeError:
            reason = f"{rule} wrote into its connection to the runner {where}."
        self.close()
        self._ended = Invocation(Did.FAILED, reason, ends=True, seconds=limit or 0.0)
        return self._ended

    def close(self) -> None:
        """End the process, and all that it started."""
        self._ward.close()


def _how(code: int | None) -> str:
    """Return what a rule did that is there no more."""
    if code is None:
        return "broke its connection to the runner"
    if code == -signal.SIGKILL:
        return "was ended by SIGKILL, perhaps because memory was short,"
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended its process with exit code {code}"


def _verbosity() -> int:
    """Return how much this process logs, as `configure` takes it."""
    level = logging.getLogger().level
    return max((one for one, at in LEVELS.items() if at >= level), default=min(LEVELS))


def serve(connection: Connection) -> None:
    """Answer step after step until the other end is closed: what a rule's process does."""
    with suppress(EOFError):
        verbosity, make, argument = connection.recv()
        configure(verbosity)
        try:
            invoker = make(argument)
        except ClientError as err:
            _send(connection, _clean(str(err)))
            return
        _send(connection, _plain_beginning(invoker.begin()))
        while True:
            verb, step = connection.recv()
            answer = getattr(invoker, verb)(step)
            _send(connection, answer and _plain(answer))


def _send(connection: Connection, answer: object) -> None:
    """Send an answer, once what the rule has printed is out."""
    with suppress(OSError, ValueError):  # the rule may have closed it
        sys.stdout.flush()
    try:
        content = msgspec.msgpack.encode(answer)
    except OverflowError:
        reason = "The rule reported a step of more than 64 bits."
        content = msgspec.msgpack.encode(Invocation(Did.FAILED, reason, ends=True))
    connection.send_bytes(content)


def _plain_beginning(begun: Begun) -> Begun:
    """Return what is known of a rule as any process understands it."""
    quantities = tuple(
        Quantity(_clean(one.name), _clean(one.label), one.worse, bool(one.log))
        for one in begun.quantities
    )
    return Begun(tuple(map(_clean, begun.notes)), quantities)


def _plain(invocation: Invocation) -> Invocation:
    """Return what came of a call as any process understands it."""
    return replace(
        invocation,
        reason=_clean(invocation.reason),
        findings=tuple(map(_plain_finding, invocation.findings)),
        missed=tuple(map(_clean, invocation.missed)),
        notes=tuple(map(_clean, invocation.notes)),
        measurements=tuple(map(_plain_points, invocation.measurements)),
    )


def _plain_finding(finding: Finding) -> Finding:
    one = evidence(finding)
    return Finding(
        one.step,
        _text(one.tensor),
        _text(one.worker),
        _value(one.measured),
        _value(one.limit),
        _text(one.note),
    )


def _plain_points(one: Measured) -> Measured:
    points = [
        ((_text(tensor), _text(worker)), value, met) for (tensor, worker), value, met in one.points
    ]
    return replace(one, quantity=_clean(one.quantity), points=points)


def _value(value: object) -> object:
    return _clean(value) if isinstance(value, str) else value


def _text(name: object) -> str | None:
    return None if name is None else _clean(name)


def _clean(name: object) -> str:
    """Return a text without lone surrogates, which no encoding has."""
    return str(name).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

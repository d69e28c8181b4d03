"""A rule in a process of its own: if it takes too long for a step, it is ended, and only it."""

import logging
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Final

from rule_runner.errors import ClientError
from rule_runner.invocation import Did, Invocation, Invoker
from rule_runner.logs import LEVELS, configure
from rule_runner.results import json_scalar

if TYPE_CHECKING:
    from smdebug.rules import Finding, Measurement

# A fresh interpreter: a fork would copy locks that other threads hold.
_CONTEXT: Final = multiprocessing.get_context("spawn")
_START_LIMIT_S: Final = 60.0
READY: Final = "ready"


class ChildProcess:
    """Judges steps with a rule in a process of its own.

    Parameters
    ----------
    name
        Name of the rule, for messages.
    make
        Called in the new process, with `argument`, to make the rule: a function of a module.
    limit
        Seconds that one step may take.

    Raises
    ------
    ClientError
        If the rule cannot be made.
    """

    def __init__(
        self, name: str, make: Callable[[Any], Invoker], argument: object, limit: float
    ) -> None:
        self._name = name
        self._limit = limit
        self._connection, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(
            target=_serve, args=(theirs, _verbosity(), make, argument), daemon=True
        )
        self._process.start()
        theirs.close()
        answer = self._ask(None, max(limit, _START_LIMIT_S), "before the first step")
        if answer != READY:
            self.close()
            raise ClientError(answer.reason if isinstance(answer, Invocation) else str(answer))

    def judge(self, step: int) -> Invocation:
        """Judge a global step; see `Invoker`."""
        answer = self._ask(("judge", step), self._limit, f"at step {step}")
        return answer if isinstance(answer, Invocation) else _failed(answer)

    def wait(self, step: int) -> Invocation | None:
        """Judge that nothing has come after a step; see `Invoker`."""
        answer = self._ask(("wait", step), self._limit, f"waiting after step {step}")
        return answer if isinstance(answer, Invocation | None) else _failed(answer)

    def finish(self, step: int) -> Invocation:
        """Let the rule do what is left; see `Invoker`."""
        answer = self._ask(("finish", step), self._limit, "after the last step")
        return answer if isinstance(answer, Invocation) else _failed(answer)

    def _ask(self, question: tuple[str, int] | None, limit: float, where: str) -> object:
        """Return the child's answer, or what went wrong."""
        try:
            if question is not None:
                self._connection.send(question)
            if self._connection.poll(limit):
                return self._connection.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            reason = f"Rule {self._name!r} ended its process {where} with exit code {code}."
        else:
            reason = f"Rule {self._name!r} took longer than {limit:g} s {where}."
        self.close()
        return Invocation(Did.FAILED, reason, ends=True, seconds=limit)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._connection.close()


def _verbosity() -> int:
    """Return how much this process logs, as `configure` takes it."""
    level = logging.getLogger().level
    return max((one for one, at in LEVELS.items() if at >= level), default=min(LEVELS))


def _serve(
    connection: Connection, verbosity: int, make: Callable[[Any], Invoker], argument: object
) -> None:
    """Answer step after step until the other end is closed; stdout carries results only."""
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    configure(verbosity)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        invoker = make(argument)
    except ClientError as err:
        connection.send(str(err))
        return
    connection.send(READY)
    with suppress(EOFError):
        while True:
            verb, step = connection.recv()
            answer = getattr(invoker, verb)(step)
            if answer is not None:
                answer = replace(
                    answer,
                    findings=tuple(map(_plain, answer.findings)),
                    measurements=tuple(map(_plain_point, answer.measurements)),
                )
            connection.send(answer)


def _end_with_parent() -> None:
    """End this process with the one that started it, even in the middle of a step."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _failed(answer: object) -> Invocation:
    return Invocation(Did.FAILED, str(answer), ends=True)


def _plain_point(one: "Measurement") -> "Measurement":
    """Return a measurement whose names any process understands."""
    return replace(
        one, quantity=str(one.quantity), tensor=_text(one.tensor), worker=_text(one.worker)
    )


def _text(name: object) -> str | None:
    return None if name is None else str(name)


def _plain(finding: "Finding") -> "Finding":
    """Return a finding whose values any process understands."""
    return replace(
        finding,
        tensor=_text(finding.tensor),
        worker=_text(finding.worker),
        measured=json_scalar(finding.measured),
        limit=json_scalar(finding.limit),
        note=_text(finding.note),
    )

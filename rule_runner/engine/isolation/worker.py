"""Runs one rule in a worker process, which can be killed alone if a step takes too long."""

import logging
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, Final, TypeVar

import msgspec

from rule_core.model.segments import step_text
from rule_core.rules.evidence import Finding, Measured, Quantity
from rule_runner.engine.invocation import InvocationOutcome, InvocationResult, Invoker, RuleInfo
from rule_runner.engine.isolation.fork_server import ForkServer, GoneError
from rule_runner.errors import ClientError
from rule_runner.logs import LEVELS, configure, is_json
from rule_runner.results.schema import evidence

T = TypeVar("T")
_START_LIMIT_S: Final = 60.0
# Answers are decoded as these types only, because a rule may write anything into its connection.
_ERROR_OR_INFO: Final = msgspec.msgpack.Decoder(str | RuleInfo)
_RESULT: Final = msgspec.msgpack.Decoder(InvocationResult | None)


class ProcessInvoker:
    """Judges steps with a rule in a worker process.

    Parameters
    ----------
    name
        Name of the rule, for messages.
    make
        Function of a module, called in the worker with `argument` to construct the rule.
    fork_server
        Starts the worker and holds the time limit of a step.
    """

    def __init__(
        self, name: str, make: Callable[[Any], Invoker], argument: object, fork_server: ForkServer
    ) -> None:
        self._name = name
        self._limit = fork_server.limit
        self._ended: InvocationResult | None = None
        self._worker = fork_server.begin()
        self._worker.ask((_verbosity(), is_json(), make, argument))

    def begin(self) -> RuleInfo:
        """Wait until the rule is constructed; see `Invoker`."""
        limit = None if self._limit is None else max(self._limit, _START_LIMIT_S)
        answer = self._answer(_ERROR_OR_INFO, limit, "before the first step")
        if isinstance(answer, RuleInfo):
            return answer
        self.close()
        raise ClientError(answer if isinstance(answer, str) else answer.reason)

    def judge(self, step: int) -> InvocationResult:
        """Judge a global step; see `Invoker`."""
        return self._ask("judge", step, f"at step {step_text(step)}") or InvocationResult(
            InvocationOutcome.SKIPPED
        )

    def wait(self, step: int) -> InvocationResult | None:
        """Judge that no data has followed a step; see `Invoker`."""
        return self._ask("wait", step, f"waiting after step {step_text(step)}")

    def finish(self, step: int) -> InvocationResult:
        """Let the rule finish; see `Invoker`."""
        return self._ask("finish", step, "after the last step") or InvocationResult(
            InvocationOutcome.SKIPPED
        )

    def _ask(self, verb: str, step: int, where: str) -> InvocationResult | None:
        """Call the rule and return the result; of an ended worker, return how it ended."""
        if self._ended is None:
            self._worker.ask((verb, step))
            return self._answer(_RESULT, self._limit, where)
        return self._ended

    def _answer(
        self, decoder: msgspec.msgpack.Decoder[T], limit: float | None, where: str
    ) -> T | InvocationResult:
        """Return the answer of the worker, or a failure if there is none."""
        rule = f"Rule {self._name!r}"
        try:
            return decoder.decode(self._worker.answer(limit))
        except TimeoutError:
            reason = f"{rule} took longer than {limit:g} s {where}."
        except GoneError as err:
            reason = f"{rule} {describe_end(err.code)} {where}."
        except msgspec.DecodeError:
            reason = f"{rule} wrote into its connection to the runner {where}."
        self.close()
        self._ended = InvocationResult(
            InvocationOutcome.FAILED, reason, ends=True, seconds=limit or 0.0
        )
        return self._ended

    def close(self) -> None:
        """Kill the worker and all that it started."""
        self._worker.close()


def describe_end(code: int | None) -> str:
    """Return how a worker ended, as the predicate of a sentence."""
    if code is None:
        return "broke its connection to the runner"
    if code == -signal.SIGKILL:
        return "was ended by SIGKILL, perhaps because memory was short,"
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended its process with exit code {code}"


def _verbosity() -> int:
    """Return the verbosity of the log of this process, as `configure` takes it."""
    current = logging.getLogger().level
    return max(
        (verbosity for verbosity, level in LEVELS.items() if level >= current), default=min(LEVELS)
    )


def answer_requests(connection: Connection) -> None:
    """Construct a rule and answer requests until the other end of the connection is closed."""
    with suppress(EOFError):
        verbosity, as_json, make, argument = connection.recv()
        configure(verbosity, as_json=as_json)
        try:
            invoker = make(argument)
        except ClientError as err:
            _send(connection, _clean(str(err)))
            return
        _send(connection, _plain_info(invoker.begin()))
        while True:
            verb, step = connection.recv()
            answer = getattr(invoker, verb)(step)
            _send(connection, answer and _plain(answer))


def _send(connection: Connection, answer: object) -> None:
    """Flush the output of the rule, then send an answer."""
    with suppress(OSError, ValueError):  # the rule may have closed it
        sys.stdout.flush()
    try:
        content = msgspec.msgpack.encode(answer)
    except OverflowError:
        reason = "The rule reported a step of more than 64 bits."
        content = msgspec.msgpack.encode(
            InvocationResult(InvocationOutcome.FAILED, reason, ends=True)
        )
    connection.send_bytes(content)


def _plain_info(rule_info: RuleInfo) -> RuleInfo:
    """Return a description of a rule without objects of the rule's own types."""
    quantities = tuple(
        Quantity(_clean(quantity.name), _clean(quantity.label), quantity.worse, bool(quantity.log))
        for quantity in rule_info.quantities
    )
    return RuleInfo(tuple(map(_clean, rule_info.notes)), quantities)


def _plain(invocation: InvocationResult) -> InvocationResult:
    """Return a result without objects of the rule's own types."""
    return replace(
        invocation,
        reason=_clean(invocation.reason),
        findings=tuple(map(_plain_finding, invocation.findings)),
        missed=tuple(map(_clean, invocation.missed)),
        notes=tuple(map(_clean, invocation.notes)),
        measurements=tuple(map(_plain_points, invocation.measurements)),
    )


def _plain_finding(finding: Finding) -> Finding:
    plain = evidence(finding)
    return Finding(
        plain.global_step,
        _text(plain.tensor),
        _text(plain.worker),
        _value(plain.measured),
        _value(plain.limit),
        _text(plain.note),
        finding.severity,
        _text(finding.quantity),
        None if finding.recovered_at is None else plain.global_step,
    )


def _plain_points(measured: Measured) -> Measured:
    points = [
        ((_text(tensor), _text(worker)), value, met)
        for (tensor, worker), value, met in measured.points
    ]
    return replace(measured, quantity=_clean(measured.quantity), points=points)


def _value(value: object) -> object:
    return _clean(value) if isinstance(value, str) else value


def _text(name: object) -> str | None:
    return None if name is None else _clean(name)


def _clean(name: object) -> str:
    """Return a text without lone surrogates, which cannot be encoded."""
    return str(name).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

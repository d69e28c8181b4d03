"""What a rule's process says is made of what any process understands."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from rule_runner.engine.invocation import InvocationOutcome, InvocationResult, Invoker, RuleInfo
from rule_runner.engine.isolation.worker import answer_requests
from rule_runner.errors import ClientError
from smdebug.rules.extensions import Finding, Measured, Quantity, Severity


class Pipe:
    """The other process's end of a connection, in this process."""

    def __init__(self, *questions: Any) -> None:
        self.questions = list(questions)
        self.sent: list[Any] = []

    def recv(self) -> Any:
        if not self.questions:
            raise EOFError
        return self.questions.pop(0)

    def send_bytes(self, answer: bytes) -> None:
        self.sent.append(answer)


class Answers:
    """An invoker with odd findings."""

    def begin(self) -> RuleInfo:
        return RuleInfo(("n\ud800",), (Quantity("q\ud800", "l", log=1),))  # type: ignore[arg-type]

    def judge(self, step: int) -> InvocationResult:
        odd = Finding(step, Path("t"), 7, np.float32(1), object, Path("n"))  # type: ignore[arg-type]
        series: Any = (Path("t"), 7)
        point = Measured(step, "q", 2.0, [(series, float("nan"), False)])
        back = Finding(step, "v", severity=Severity.NOTE, recovered_at=step)
        return InvocationResult(
            InvocationOutcome.MET, findings=(Finding(step), odd, back), measurements=(point,)
        )

    def wait(self, step: int) -> None:
        assert step == 4

    def finish(self, step: int) -> InvocationResult:
        assert step == 4
        return InvocationResult(InvocationOutcome.CLEAR, "r\ud800")

    def close(self) -> None:
        raise NotImplementedError


def refuse(_: object) -> Invoker:
    msg = "Rule 'X' cannot be."
    raise ClientError(msg)


@pytest.fixture
def _same_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rule_runner.engine.isolation.worker.configure", lambda *_, **__: None)


@pytest.mark.usefixtures("_same_process")
def test_answers_are_made_of_what_any_process_understands() -> None:
    pipe = Pipe((0, False, lambda _: Answers(), None), ("judge", 4), ("wait", 4), ("finish", 4))
    answer_requests(pipe)  # type: ignore[arg-type]
    begun = msgspec.msgpack.decode(pipe.sent[0], type=RuleInfo)
    answer, waited, finished = (
        msgspec.msgpack.decode(one, type=InvocationResult | None) for one in pipe.sent[1:]
    )
    assert begun == RuleInfo(("n\ufffd",), (Quantity("q\ufffd", "l", log=True),))
    assert (waited, finished) == (None, InvocationResult(InvocationOutcome.CLEAR, "r\ufffd"))
    (point,) = answer.measurements
    ((series, value, met),) = point.points
    assert (point.quantity, str(value), point.limit) == ("q", "nan", 2.0)
    assert (series, met) == (("t", "7"), False)
    assert answer.findings == (
        Finding(4),
        Finding(4, "t", "7", 1.0, "<class 'object'>", "n"),
        Finding(4, "v", severity=Severity.NOTE, recovered_at=4),
    )


@pytest.mark.usefixtures("_same_process")
def test_rule_that_cannot_be_made_is_reported_instead() -> None:
    pipe = Pipe((0, False, refuse, None), ("judge", 4))
    answer_requests(pipe)  # type: ignore[arg-type]
    assert pipe.sent == [msgspec.msgpack.encode("Rule 'X' cannot be.")]

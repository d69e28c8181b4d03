"""A rule in a process of its own: slow, dying or refusing, it costs nobody else anything."""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import evaluating
import numpy as np
import pytest
import rawtrial
from evaluating import configured

from rule_runner.binding import bind
from rule_runner.child import ChildProcess, _end_with_parent, _serve, _verbosity
from rule_runner.config import RuleJobConfig
from rule_runner.errors import ClientError
from rule_runner.invocation import Did, Invocation, Invoker
from rule_runner.loader import load_source
from rule_runner.logs import configure
from rule_runner.openings import make_invoker, open_trial
from rule_runner.runner import Runner
from smdebug.rules import Finding, Measurement

RULE = """
import os, signal, threading, numpy
from smdebug.rules import Rule

class Behaves(Rule):
    def __init__(self, base_trial, other_trials=None, action_str="", how="well"):
        super().__init__(base_trial, action_str, other_trials)
        self.how = how
        if how == "refuses":
            raise ValueError("not today")
        if how == "leaves-early":
            os._exit(4)

    def invoke_at_step(self, step):
        if step == 1 and self.how == "hangs":
            threading.Event().wait()
        if step == 1 and self.how == "leaves":
            os._exit(3)
        if step == 1 and self.how == "is-killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "waits":
            return self.measured(step, "step", step, 9, met=False)
        if step == 1 and self.how == "raises":
            print("hello", flush=True)
            raise KeyError("conv1")
        loss = self.base_trial.tensor("loss").value(step)
        if self.how == "finds":
            return self.found(step, tensor="loss", measured=numpy.float32(loss[0]), limit=Odd())
        return False

    def invoke_while_waiting(self, step):
        return self.how == "waits" and self.found(step, note="waited")

    def invoke_at_end(self, step):
        if self.how == "leaves-last":
            os._exit(5)

class Odd:
    def __str__(self):
        return "odd"
"""


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    steps = {step: {"loss": np.float32([step])} for step in range(3)}
    return rawtrial.write(tmp_path / "trial", evaluating.trial(steps, {"losses": ["loss"]}))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "behaves.py"
    path.write_text(RULE)
    return path


def job(source: Path, how: str, name: str = "Behaves") -> RuleJobConfig:
    return RuleJobConfig(name, load_source(source, "Behaves"), {"how": how})


def invoker(source: Path, trial: Path, how: str, limit: float = 60) -> Invoker:
    config = job(source, how)
    bound = bind(config.loaded, config.parameters)
    return make_invoker(config, bound, [open_trial(str(trial))], limit)


def judged(made: Invoker, *steps: int) -> Iterator[Invocation]:
    with closing(made):
        for step in steps:
            yield made.judge(step)


def test_it_judges_like_a_rule_in_this_process(source: Path, trial: Path) -> None:
    (found,) = judged(invoker(source, trial, "finds"), 2)
    (evidence,) = found.findings
    assert found.did is Did.MET
    assert (evidence.step, evidence.tensor, evidence.measured, evidence.limit) == (
        2,
        "loss",
        2.0,
        "odd",
    )
    assert type(evidence.measured) is float


def test_rule_that_hangs_is_ended(source: Path, trial: Path) -> None:
    # Another process needs longer than this to import numpy: that is not charged to a step.
    made = invoker(source, trial, "hangs", limit=0.5)
    first, second = judged(made, 0, 1)
    assert first.did is Did.CLEAR
    assert (second.did, second.ends, second.reason) == (
        Did.FAILED,
        True,
        "Rule 'Behaves' took longer than 0.5 s at step 1.",
    )


@pytest.mark.parametrize(
    ("how", "code"),
    [pytest.param("leaves", 3, id="exit"), pytest.param("is-killed", -9, id="kill")],
)
def test_rule_that_ends_its_process(source: Path, trial: Path, how: str, code: int) -> None:
    made = invoker(source, trial, how)
    _, found = judged(made, 0, 1)
    made.close()
    assert (found.did, found.ends, found.reason) == (
        Did.FAILED,
        True,
        f"Rule 'Behaves' ended its process at step 1 with exit code {code}.",
    )


def test_it_waits_and_finishes_as_in_this_process(source: Path, trial: Path) -> None:
    made = invoker(source, trial, "waits")
    with closing(made):
        judged_0, waited, finished = made.judge(0), made.wait(0), made.finish(0)
    assert [one.measured for one in judged_0.measurements] == [0.0]
    assert waited is not None
    assert (waited.did, [one.note for one in waited.findings]) == (Did.MET, ["waited"])
    assert finished.did is Did.SKIPPED  # nothing failed


def test_rule_that_ends_its_process_at_the_end(source: Path, trial: Path) -> None:
    made = invoker(source, trial, "leaves-last")
    found = made.finish(0)
    waited = made.wait(0)
    assert (found.did, found.reason) == (
        Did.FAILED,
        "Rule 'Behaves' ended its process after the last step with exit code 5.",
    )
    assert waited is not None
    assert waited.did is Did.FAILED


def test_rule_that_prints_and_raises_leaves_stdout_to_the_results(
    source: Path,
    trial: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluating.restore_logging(monkeypatch)
    configure(1)
    _, found = judged(invoker(source, trial, "raises"), 0, 1)
    assert (found.did, found.reason) == (
        Did.FAILED,
        "Rule 'Behaves' raised KeyError at step 1: 'conv1'.",
    )
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("hello\n")
    assert '"event": "rule_failed"' in err


@pytest.mark.parametrize(
    ("level", "expected"),
    [(logging.ERROR, -1), (logging.WARNING, 0), (logging.INFO, 1), (0, 2), (logging.CRITICAL, -1)],
)
def test_other_process_logs_as_much_as_this_one(
    monkeypatch: pytest.MonkeyPatch, level: int, expected: int
) -> None:
    monkeypatch.setattr(logging.getLogger(), "level", level)
    assert _verbosity() == expected


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ("refuses", r"^Rule 'Behaves' raised ValueError while it was constructed: not today\.$"),
        (
            "leaves-early",
            r"^Rule 'Behaves' ended its process before the first step with exit code 4\.$",
        ),
    ],
)
def test_rule_that_cannot_be_made(source: Path, trial: Path, how: str, match: str) -> None:
    with pytest.raises(ClientError, match=match):
        invoker(source, trial, how)


def test_start_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rule_runner.child._START_LIMIT_S", 0.2)
    with pytest.raises(ClientError, match=r"^Rule 'X' took longer than 0\.2 s before the first"):
        ChildProcess("X", time.sleep, 1000, 0.1)  # noqa: TID251 - likewise


def test_it_ends_with_the_process_that_started_it(source: Path, trial: Path) -> None:
    read, write = os.pipe()
    pid = os.fork()
    if not pid:  # the starter: leaves without a word
        os.close(read)
        made = invoker(source, trial, "hangs")
        os.write(write, b"%d\n" % made._process.pid)  # type: ignore[attr-defined]
        os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with os.fdopen(read) as stream:
        child = int(stream.readline())
    for _ in range(1000):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
            return
        time.sleep(0.01)  # noqa: TID251 - another process is waited for
    pytest.fail("the rule's process lives on")


def test_runner_gives_each_rule_a_process_of_its_own(
    tmp_path: Path, source: Path, trial: Path
) -> None:
    jobs = [job(source, how, how) for how in ("leaves", "finds")]
    config = configured(tmp_path / "out", jobs, str(trial), rule_timeout=30.0)
    found = Runner(config).run()
    assert [(one.outcome, one.coverage.judged) for one in found.result.rules] == [
        ("Error", 1),
        ("IssuesFound", 1),
    ]


class Pipe:
    """The other process's end of a pipe, in this process."""

    def __init__(self, *questions: tuple[str, int]) -> None:
        self.questions = list(questions)
        self.sent: list[Any] = []

    def recv(self) -> tuple[str, int]:
        if not self.questions:
            raise EOFError
        return self.questions.pop(0)

    def send(self, answer: Any) -> None:
        self.sent.append(answer)


class Answers:
    """An invoker with odd findings."""

    def judge(self, step: int) -> Invocation:
        odd = Finding(step, Path("t"), 7, np.float32(1), object, Path("n"))  # type: ignore[arg-type]
        point = Measurement(step, "q", 1.0, 2.0, Path("t"), 7)  # type: ignore[arg-type]
        return Invocation(Did.MET, findings=(Finding(step), odd), measurements=(point,))

    def wait(self, step: int) -> None:
        assert step == 4

    def finish(self, step: int) -> Invocation:
        assert step == 4
        return Invocation(Did.CLEAR)

    def close(self) -> None:
        raise NotImplementedError


def refuse(_: object) -> Invoker:
    msg = "Rule 'X' cannot be."
    raise ClientError(msg)


@pytest.fixture
def _same_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("os.dup2", "configure", "_end_with_parent"):
        monkeypatch.setattr(f"rule_runner.child.{name}", lambda *_: None)
    monkeypatch.setattr("rule_runner.child.sys", SimpleNamespace(stderr=Pipes(), stdout=Pipes()))


class Pipes:
    def fileno(self) -> int:
        return -1


@pytest.mark.usefixtures("_same_process")
def test_answers_are_made_of_what_any_process_understands() -> None:
    pipe = Pipe(("judge", 4), ("wait", 4), ("finish", 4))
    _serve(pipe, 0, lambda _: Answers(), None)  # type: ignore[arg-type]
    ready, answer, waited, finished = pipe.sent
    assert (ready, waited, finished) == ("ready", None, Invocation(Did.CLEAR))
    assert answer.measurements == (Measurement(4, "q", 1.0, 2.0, "t", "7"),)
    assert answer.findings == (
        Finding(4),
        Finding(4, "t", "7", 1.0, "<class 'object'>", "n"),
    )


@pytest.mark.usefixtures("_same_process")
def test_rule_that_cannot_be_made_is_said_instead() -> None:
    pipe = Pipe(("judge", 4))
    _serve(pipe, 0, refuse, None)  # type: ignore[arg-type]
    assert pipe.sent == ["Rule 'X' cannot be."]


@pytest.mark.parametrize("has_parent", [True, False])
def test_it_waits_for_its_parent_and_leaves(
    monkeypatch: pytest.MonkeyPatch, has_parent: bool
) -> None:
    joined: list[str] = []
    parent = SimpleNamespace(join=lambda: joined.append("joined")) if has_parent else None
    monkeypatch.setattr("rule_runner.child.multiprocessing.parent_process", lambda: parent)
    monkeypatch.setattr("rule_runner.child.os._exit", lambda code: joined.append(f"left {code}"))
    _end_with_parent()
    assert joined == ["joined", "left 1"][not has_parent :]


def test_answer_of_another_kind_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ChildProcess.__new__(ChildProcess)
    monkeypatch.setattr(made, "_limit", 1.0, raising=False)
    monkeypatch.setattr(made, "_ask", lambda *_: "odd")
    assert made.judge(4) == Invocation(Did.FAILED, "odd", ends=True)

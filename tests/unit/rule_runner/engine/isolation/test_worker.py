"""A rule in a process of its own answers as in this one, and what it sends is checked."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import evaluating
import msgspec
import numpy as np
import pytest
import rawtrial
from evaluating import configured

from rule_runner.config.defaults import Isolation
from rule_runner.config.model import RuleJobConfig
from rule_runner.engine.invocation import InvocationOutcome, InvocationResult, Invoker
from rule_runner.engine.invoker_factory import make_invoker
from rule_runner.engine.isolation.fork_server import ForkServer, WorkerHandle
from rule_runner.engine.isolation.worker import ProcessInvoker, _verbosity
from rule_runner.engine.runner import Runner
from rule_runner.errors import ClientError, RuleSourceError
from rule_runner.loading.loader import load_from
from rule_runner.loading.parameters import bind
from rule_runner.loading.trials import open_trial
from rule_runner.logs import configure

RULE = """
import os, numpy
from smdebug.rules import Rule
from smdebug.rules.extensions import Quantity

class Behaves(Rule):
    QUANTITIES = (Quantity("step", "number of the step", log=True),)

    def __init__(self, base_trial, other_trials=None, action_str="", how="well"):
        super().__init__(base_trial, action_str, other_trials)
        self.how = how
        if how == "refuses":
            raise ValueError("not today \\ud800")
        if how == "leaves-early":
            os._exit(4)

    def invoke_at_step(self, step):
        if step == 1 and self.how == "leaves":
            os._exit(3)
        if self.how == "waits":
            return self.measured(step, "step", step, 9, met=False)
        if step == 1 and self.how == "raises":
            print("hello")
            raise KeyError("conv1")
        if self.how == "far":
            return self.found(1 << 70)
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


Begin = Callable[[str], Invoker]


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


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    with closing(ForkServer(60.0)) as found:
        yield found


def job(source: Path, how: str, name: str = "Behaves") -> RuleJobConfig:
    return RuleJobConfig(name, load_from(str(source), "Behaves", run=False), {"how": how})


@pytest.fixture
def begun(source: Path, trial: Path, fork_server: ForkServer) -> Begin:
    """Begin the rule in a process of its own, and wait until it is there."""

    def begin(how: str) -> Invoker:
        config = job(source, how)
        bound = bind(config.loaded, config.parameters)
        made = make_invoker(config, bound, [open_trial(str(trial))], fork_server)
        made.begin()
        return made

    return begin


def judged(made: Invoker, *steps: int) -> Iterator[InvocationResult]:
    with closing(made):
        for step in steps:
            yield made.judge(step)


def test_it_judges_like_a_rule_in_this_process(begun: Begin) -> None:
    (found,) = judged(begun("finds"), 2)
    (evidence,) = found.findings
    assert found.did is InvocationOutcome.MET
    assert (evidence.step, evidence.tensor, evidence.measured, evidence.limit) == (
        2,
        "loss",
        2.0,
        "odd",
    )
    assert type(evidence.measured) is float


def test_how_it_ended_is_reported_once_and_for_all(begun: Begin) -> None:
    made = begun("leaves")
    _, found = judged(made, 0, 1)
    made.close()
    reason = "Rule 'Behaves' ended its process with exit code 3 at step 1."
    assert (found.did, found.ends, found.reason) == (InvocationOutcome.FAILED, True, reason)
    assert [made.judge(2), made.wait(2), made.finish(2)] == [found] * 3


def test_it_waits_and_finishes_as_in_this_process(begun: Begin) -> None:
    made = begun("waits")
    with closing(made):
        judged_0, waited, finished = made.judge(0), made.wait(0), made.finish(0)
    assert [one.points for one in judged_0.measurements] == [[((None, None), 0.0, False)]]
    assert waited is not None
    assert (waited.did, [one.note for one in waited.findings]) == (
        InvocationOutcome.MET,
        ["waited"],
    )
    assert finished.did is InvocationOutcome.SKIPPED  # nothing failed


def test_rule_that_does_not_care_for_waiting(begun: Begin) -> None:
    with closing(begun("well")) as made:
        assert made.judge(0).did is InvocationOutcome.CLEAR
        assert made.wait(0).did is InvocationOutcome.SKIPPED  # type: ignore[union-attr]  # this rule has an answer


def test_rule_that_ends_its_process_at_the_end(begun: Begin) -> None:
    (found,) = [begun("leaves-last").finish(0)]
    reason = "Rule 'Behaves' ended its process with exit code 5 after the last step."
    assert (found.did, found.reason) == (InvocationOutcome.FAILED, reason)


def test_rule_that_prints_and_raises_leaves_stdout_to_the_results(
    source: Path,
    trial: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    configure(1, as_json=True)
    config = job(source, "raises")
    with closing(ForkServer()) as own:  # whose stderr is what this test sees
        bound = bind(config.loaded, config.parameters)
        made = make_invoker(config, bound, [open_trial(str(trial))], own)
        made.begin()
        _, found = judged(made, 0, 1)
    assert (found.did, found.reason) == (
        InvocationOutcome.FAILED,
        "Rule 'Behaves' raised KeyError at step 1: 'conv1'.",
    )
    out, err = capfd.readouterr()
    assert out == ""
    assert "hello\n" in err
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
        (
            "refuses",
            r"^Rule 'Behaves' raised ValueError while it was constructed: not today \ufffd\.$",
        ),
        (
            "leaves-early",
            r"^Rule 'Behaves' ended its process with exit code 4 before the first step\.$",
        ),
    ],
)
def test_rule_that_cannot_be_made(begun: Begin, how: str, match: str) -> None:
    with pytest.raises(ClientError, match=match):
        begun(how)


def test_rule_without_a_file_cannot_have_a_process(trial: Path, fork_server: ForkServer) -> None:
    config = evaluating.rule_job(type("Here", (evaluating.Rule,), {}))
    bound = bind(config.loaded, {})
    with pytest.raises(RuleSourceError, match=r"^Rule 'Here' has no file that a separate process"):
        make_invoker(config, bound, [open_trial(str(trial))], fork_server)


def test_start_that_takes_too_long(
    monkeypatch: pytest.MonkeyPatch, fork_server: ForkServer
) -> None:
    monkeypatch.setattr("rule_runner.engine.isolation.worker._START_LIMIT_S", 0.2)
    monkeypatch.setattr(fork_server, "limit", 0.1)
    sleep: Any = time.sleep  # noqa: TID251 - in another process
    made = ProcessInvoker("X", sleep, 1000, fork_server)
    with pytest.raises(ClientError, match=r"^Rule 'X' took longer than 0\.2 s before the first"):
        made.begin()


def test_parameters_are_checked_where_the_rule_is_made(
    tmp_path: Path, source: Path, trial: Path
) -> None:
    loaded = load_from(str(source), "Behaves", run=False)
    jobs = [RuleJobConfig("a", loaded, {"how": "finds", "hwo": "x"}), job(source, "refuses", "b")]
    config = configured(tmp_path / "out", jobs, str(trial), isolate=Isolation.PROCESS)
    first, second = Runner(config).run().result.rules
    assert (first.outcome, first.notes) == (
        "IssuesFound",
        ["Rule 'Behaves' has no parameter 'hwo': left out. Did you mean 'how'?"],
    )
    assert (second.outcome, second.status_details) == (
        "Error",
        "ClientError: Rule 'Behaves' raised ValueError while it was constructed: not today \ufffd.",
    )


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


def test_step_that_no_message_holds(begun: Begin) -> None:
    (found,) = judged(begun("far"), 0)
    reason = "The rule reported a step of more than 64 bits."
    assert (found.did, found.reason) == (InvocationOutcome.FAILED, reason)


def refuse(_: object) -> Invoker:
    msg = "Rule 'X' cannot be."
    raise ClientError(msg)


@pytest.mark.parametrize(
    "answer", [b"", b"junk", msgspec.msgpack.encode(InvocationOutcome.MET.value)]
)
def test_answer_of_another_kind_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, fork_server: ForkServer, answer: bytes
) -> None:
    made = ProcessInvoker("X", refuse, None, fork_server)
    monkeypatch.setattr(WorkerHandle, "answer", lambda *_: answer)
    reason = "Rule 'X' wrote into its connection to the runner at step 4."
    assert made.judge(4) == InvocationResult(
        InvocationOutcome.FAILED, reason, ends=True, seconds=60.0
    )

"""Evaluations over S3 whose objects fail for good: how long they wait, and what they say."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faulty_s3
import numpy as np
import pytest
import rawtrial
import s3_objects
from evaluating import END, Script, WoundClock, configured, rule_job
from faulty_s3 import SLOW_DOWN, Fault, FaultyS3

from rule_core.clock import SystemClock
from rule_runner.engine.observer import Observer
from rule_runner.engine.outcome import EvaluationOutcome, exit_code
from rule_runner.engine.runner import Runner
from rule_runner.engine.stop_requests import Signals
from rule_runner.errors import TrialError
from smdebug.rules import Rule
from smdebug.rules.rule import Rule as AnyRule

STEPS = range(6)
BAD_STEP = 2
BAD = rawtrial.event_key(BAD_STEP)
DEADLINE_S = 3.0
OPENING = 3  # requests that find out what an address holds
# In tests of --timeout and signals, stores wait for longer than the time limit of a test.


class Reads(Rule):
    """Reads every tensor of a step, and goes on when one cannot be read."""

    def invoke_at_step(self, step: int) -> bool:
        unread = []
        for name in self.base_trial.tensor_names(step=step):
            try:
                self.base_trial.tensor(name).value(step)
            except Exception as err:  # noqa: BLE001 - as rules in the wild do
                unread.append(err)
        if unread:
            raise unread[0]
        return False


class LooksBack(Reads):
    """Reads the steps before, too."""

    def invoke_at_step(self, step: int) -> bool:
        for before in range(step + 1):
            super().invoke_at_step(before)
        return False


@pytest.fixture
def server(aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyS3]:
    """Return an S3 with an ended trial of 10 tensors and 6 steps."""
    s3_objects.make_bucket(aws_endpoint)
    files = {END: b"", rawtrial.collections_key(): rawtrial.collections({"losses": ["loss"]})}
    for step in STEPS:
        values = {f"loss/{number}": np.full(8, step, "f4") for number in range(10)}
        files |= rawtrial.step_files(step, values)
    s3_objects.put(aws_endpoint, "runs/a/", files)
    monkeypatch.setenv("RULE_RUNNER_S3_DEADLINE", str(DEADLINE_S))
    with faulty_s3.serving(aws_endpoint) as found:
        monkeypatch.setenv("AWS_ENDPOINT_URL", found.endpoint)
        yield found


def evaluated(
    output: Path, rules: int = 12, kind: type[AnyRule] = Reads, **more: Any
) -> EvaluationOutcome:
    jobs = [rule_job(kind, f"rule-{number}") for number in range(rules)]
    with Signals() as signals:
        return Runner(configured(output, jobs, "s3://bucket/runs/a", **more), signals=signals).run()


def asked_for(server: FaultyS3, key: str) -> int:
    return sum(key in path for _, path, _ in server.asked)


FAULTS = [
    pytest.param(SLOW_DOWN, "SlowDown", id="throttled"),
    pytest.param(faulty_s3.torn(20), "truncated", id="truncated"),
    pytest.param(faulty_s3.shortened(20), "damaged in transit", id="short"),
    pytest.param(faulty_s3.says(403, "RequestTimeTooSkewed"), "RequestTimeTooSkewed", id="skewed"),
    pytest.param(
        faulty_s3.answers(200, b"<?xml version='1.0'?>\n<Error><Code>InternalError</Code></Error>"),
        "InternalError",
        id="error-after-200",
    ),
]


@pytest.mark.parametrize(("fault", "reason"), FAULTS)
def test_object_that_stays_unreadable_costs_one_deadline_for_all_tensors_and_rules(
    server: FaultyS3, tmp_path: Path, fault: Fault, reason: str
) -> None:
    server.always[BAD] = fault
    found = evaluated(tmp_path)
    assert asked_for(server, BAD) <= 25  # 120 reads with a deadline each would ask more often
    for rule in found.result.rules:
        assert (rule.outcome, rule.coverage.judged) == ("NoIssuesFound", 5)
        assert rule.coverage.skipped == {"TensorDamaged": 1}
        (note,) = rule.notes
        assert note.startswith("Step 2 of worker 'worker_0' is unreadable. ")
        assert BAD in note
        assert reason in note


def test_object_that_stays_throttled_is_asked_for_once_a_step_by_rules_that_look_back(
    server: FaultyS3, tmp_path: Path
) -> None:
    server.always[BAD] = SLOW_DOWN
    found = evaluated(tmp_path, kind=LooksBack)
    assert asked_for(server, BAD) <= 25
    assert {rule.coverage.judged for rule in found.result.rules} == {2}


@pytest.mark.parametrize(
    "key", [rawtrial.index_key(2), rawtrial.collections_key(), "list-type=2"], ids=str
)
@pytest.mark.parametrize("fault", [SLOW_DOWN, faulty_s3.hangs], ids=["throttled", "hangs"])
def test_timeout_bounds_the_wait_for_any_object(
    server: FaultyS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, fault: Fault
) -> None:
    monkeypatch.setenv("RULE_RUNNER_S3_DEADLINE", "600")

    def then_fails(handler: faulty_s3.Handler) -> None:
        server.always[key] = fault  # the requests before find that the trial exists
        faulty_s3.passes(handler)

    opening = [faulty_s3.passes] * OPENING
    server.due = [*opening, then_fails]
    found = evaluated(tmp_path, rules=2, timeout=1.0)
    assert exit_code(found, fail_on=None) == 124
    for rule in found.result.rules:
        assert (rule.status_details or "").startswith("Stopped after 1 s (--timeout).")


class AheadClock(SystemClock):
    """The clock of the machine, which can be set ahead."""

    ahead_s = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_s


@pytest.mark.parametrize("isolated", [False, True], ids=["here", "in-a-process"])
@pytest.mark.parametrize("fault", [SLOW_DOWN, faulty_s3.hangs], ids=["throttled", "hangs"])
def test_timeout_bounds_the_wait_for_an_event_file(
    server: FaultyS3,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
    isolated: bool,
) -> None:
    monkeypatch.setenv("RULE_RUNNER_S3_DEADLINE", "6000")  # by the same clock
    clock = AheadClock()

    def leaves_a_second(handler: faulty_s3.Handler) -> None:
        clock.ahead_s = 599.0
        fault(handler)

    server.always[BAD] = leaves_a_second
    rules = [rule_job("ExplodingTensor", f"rule-{number}") for number in range(3)]
    options = {"timeout": 600.0} | ({"rule_timeout": 6000.0} if isolated else {})
    config = configured(tmp_path, rules, "s3://bucket/runs/a", **options)
    found = Runner(config, clock=clock).run()
    assert asked_for(server, BAD)
    assert exit_code(found, fail_on=None) == 124


def test_sigterm_ends_the_wait_for_an_object(
    server: FaultyS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RULE_RUNNER_S3_DEADLINE", "600")

    is_read = threading.Event()  # by a rule; the object is also read ahead

    class Announces(Reads):
        def invoke_at_step(self, step: int) -> bool:
            if step == BAD_STEP:
                is_read.set()
            return super().invoke_at_step(step)

    def stops(handler: faulty_s3.Handler) -> None:
        if is_read.is_set():
            server.always[BAD] = SLOW_DOWN
            os.kill(os.getpid(), signal.SIGTERM)
        SLOW_DOWN(handler)

    server.always[BAD] = stops
    found = evaluated(tmp_path, kind=Announces)
    assert exit_code(found, fail_on=None) == 143
    unreadable, *_ = found.result.rules[0].notes
    assert BAD in unreadable


def test_trial_that_does_not_answer_within_the_timeout_is_a_sentence(
    server: FaultyS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RULE_RUNNER_S3_DEADLINE", "600")
    server.always["list-type=2"] = faulty_s3.hangs
    text = r"^Trial .* cannot be read\. The evaluation ended before its storage responded\.$"
    with pytest.raises(TrialError, match=text):
        evaluated(tmp_path, timeout=0.5)


@pytest.mark.parametrize(("wait", "most"), [("1", 4), ("300", 1)])
def test_store_that_says_when_to_come_back_is_left_alone_until_then(
    server: FaultyS3, tmp_path: Path, wait: str, most: int
) -> None:
    server.always[BAD] = faulty_s3.says(503, "SlowDown", Retry_After=wait)
    found = evaluated(tmp_path, rules=1)
    assert asked_for(server, BAD) <= 2 * most  # read ahead, and when it was needed
    (rule,) = found.result.rules
    assert rule.coverage.judged == 5
    assert ("after 300 s" in rule.notes[0]) == (wait == "300")


@pytest.mark.parametrize("mode", ["standard", "legacy", "adaptive"])
def test_retries_that_boto_is_configured_for_are_not_made_besides_ours(
    server: FaultyS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "10")
    monkeypatch.setenv("AWS_RETRY_MODE", mode)
    server.always[BAD] = SLOW_DOWN
    evaluated(tmp_path, rules=1)
    assert asked_for(server, BAD) <= 25


def test_object_that_comes_back_is_read_at_the_next_step(server: FaultyS3, tmp_path: Path) -> None:
    config = configured(tmp_path, [LooksBack, Reads], "s3://bucket/runs/a")
    server.always[BAD] = SLOW_DOWN

    class Mends(Observer):
        def progress(self, judged: int, known: int) -> None:
            del known
            if judged == BAD_STEP + 1:
                server.always.clear()

    found = Runner(config, observer=Mends()).run()
    assert [rule.coverage.judged for rule in found.result.rules] == [5, 5]


@pytest.mark.parametrize("ended", [True, False])
def test_collections_file_that_is_listed_and_answers_404_is_named(
    server: FaultyS3, aws_endpoint: str, tmp_path: Path, ended: bool
) -> None:
    key = rawtrial.collections_key()
    if not ended:
        s3_objects.client(aws_endpoint).delete_object(Bucket="bucket", Key=f"runs/a/{END}")
    server.always[key] = faulty_s3.says(404, "NoSuchKey")
    heard: list[str] = []

    class Hears(Observer):
        def waiting(self, text: str, seconds: float) -> None:
            del seconds
            heard.append(text)

    script = Script(WoundClock())
    config = configured(tmp_path, [Reads], "s3://bucket/runs/a", idle_timeout=60.0)
    runner = Runner(config, clock=script.clock, waiter=script, observer=Hears())
    (rule,) = runner.run().result.rules
    assert f"{key}: File {key!r} does not exist." in rule.notes
    assert rule.outcome == ("NoIssuesFound" if ended else "Stopped")
    assert bool(heard) is not ended
    assert all(f"(found 0 of 1; File {key!r} does not exist.)" in text for text in heard)

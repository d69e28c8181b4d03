"""The one way into the engine: what holds for every evaluation, whoever asks for it."""

import signal
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import rawtrial
from evaluating import END, configured, rule_job

from rule_runner.engine.evaluate import evaluate
from rule_runner.engine.stop_requests import Signals
from rule_runner.errors import UsageError
from rule_runner.results.acknowledgements import (
    Acknowledgement,
    AcknowledgementKind,
    append_acknowledgement,
)
from smdebug.rules import Rule


class StopsItself(Rule):
    def invoke_at_step(self, _: int) -> bool:
        if not callable(signal.getsignal(signal.SIGTERM)):
            return True
        signal.raise_signal(signal.SIGTERM)
        return False


@pytest.fixture
def trial(tmp_path: Path) -> str:
    files = {rawtrial.collections_key(): rawtrial.collections({"losses": ["loss"]}), END: b""}
    for step in range(2):
        files |= rawtrial.step_files(step, {"loss": np.zeros(3, "f4")})
    rawtrial.write(tmp_path / "trial", files)
    return str(tmp_path / "trial")


def test_findings_are_marked_as_people_acknowledged_them(trial: str, tmp_path: Path) -> None:
    rule = rule_job("AllZero", parameters={"collection_names": "losses"})
    config = configured(tmp_path / "out", [rule], trial)
    (before,) = evaluate(config).result.rules
    assert (before.outcome, before.severity) == ("IssuesFound", "warning")
    muted = Acknowledgement(
        kind=AcknowledgementKind.MUTED,
        who="me",
        reason="known",
        at=datetime.now(UTC),
        rule="AllZero",
    )
    append_acknowledgement(tmp_path / "out", muted)
    (after,) = evaluate(config).result.rules
    assert (after.acknowledgement, after.severity) == (muted, None)


def test_signals_are_handled_only_if_the_caller_handles_them(trial: str, tmp_path: Path) -> None:
    (left_alone,) = evaluate(configured(tmp_path / "a", [StopsItself], trial)).result.rules
    assert left_alone.outcome == "IssuesFound"
    with Signals() as signals:
        outcome = evaluate(configured(tmp_path / "b", [StopsItself], trial), signals=signals)
    assert outcome.result.rules[0].outcome == "Stopped"


def test_an_executor_that_does_not_exist_is_named(trial: str, tmp_path: Path) -> None:
    config = configured(tmp_path / "out", [StopsItself], trial, measure_on="none")
    with pytest.raises(UsageError, match=r"An executor is local"):
        evaluate(config)

"""Runner: how much a rule sees of the trials that it compares with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evaluating
import jsonschema  # type: ignore[import-untyped] # it comes without types
import numpy as np
import pytest
import saved
from evaluating import Script, WoundClock, configured, runner
from memory_store import MemoryStore

from rule_runner.engine.rule_job import CUT_OFF
from rule_runner.results.schema import RULE_SCHEMA, OtherTrial, RuleResult
from smdebug.exceptions import TensorUnavailableForStep
from smdebug.rules import Rule

CUT = [OtherTrial("/other", whole=False)]
NOTE = CUT_OFF.format(path="/other")


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


def losses(count: int, *, ended: bool = True) -> dict[str, bytes]:
    steps = {step: {"loss": np.float32([step])} for step in range(count)}
    return evaluating.trial(steps, {"losses": ["loss"]}, ended=ended)


@pytest.fixture
def rule() -> Any:
    class Best(Rule):
        """Records the steps that each trial shows, and the lowest loss of the other one."""

        seen: dict[int, tuple[int, int]] = {}

        def invoke_at_step(self, step: int) -> bool:
            (other,) = self.other_trials
            loss = other.tensor("loss")
            assert max(loss.value(each)[0] for each in loss.steps()) == other.steps()[-1]
            with pytest.raises(TensorUnavailableForStep):
                self.base_trial.tensor("loss").value(step + 1)
            self.seen[step] = (len(self.base_trial.steps()), len(other.steps()))
            return False

    return Best


def evaluated(
    output: Path,
    rule: type[Rule],
    base: dict[str, bytes],
    other: dict[str, bytes],
    *later: Callable[[], object],
    **more: Any,
) -> RuleResult:
    config = configured(output, [rule], "/base", other_trials=("/other",), **more)
    stores = {"/base": MemoryStore(base), "/other": MemoryStore(other)}
    (result,) = runner(config, stores, Script(WoundClock(), later)).run().result.rules
    jsonschema.validate(saved.result(output), json.loads(RULE_SCHEMA.read_text()))
    return result


def test_all_steps_of_a_finished_trial_are_seen_at_step_0(tmp_path: Path, rule: Any) -> None:
    result = evaluated(tmp_path, rule, losses(3), losses(10))
    assert rule.seen == {0: (1, 10), 1: (2, 10), 2: (3, 10)}
    assert (result.other_trials, result.notes) == ([OtherTrial("/other", whole=True)], [])


def test_a_growing_trial_is_cut_off_at_the_judged_step_though_it_ends(
    tmp_path: Path, rule: Any
) -> None:
    other = losses(2, ended=False)
    result = evaluated(tmp_path, rule, losses(4), other, lambda: other.update(losses(10)))
    assert rule.seen == {step: (step + 1, step + 1) for step in range(4)}
    assert (result.outcome, result.other_trials, result.notes) == ("NoIssuesFound", CUT, [NOTE])


def test_a_resumed_evaluation_sees_as_much_as_before(tmp_path: Path, rule: Any) -> None:
    base = losses(2, ended=False)
    first = evaluated(tmp_path, rule, base, losses(3, ended=False), idle_timeout=1.0)
    assert (first.status, first.other_trials) == ("Stopped", CUT)
    rule.seen.clear()
    result = evaluated(tmp_path, rule, losses(4), losses(10))
    assert rule.seen == {step: (step + 1, step + 1) for step in range(4)}
    assert (result.outcome, result.other_trials, result.notes) == ("NoIssuesFound", CUT, [NOTE])


def test_how_much_is_seen_is_on_disk_before_the_first_step(tmp_path: Path) -> None:
    class Looks(Rule):
        def invoke_at_step(self, step: int) -> bool:
            assert saved.result(tmp_path)["other_trials"] == [{"path": "/other", "whole": True}]
            return bool(self.base_trial.tensor("loss").value(step)[0] < 0)

    assert evaluated(tmp_path, Looks, losses(1), losses(10)).outcome == "NoIssuesFound"

"""BroadcastTargets: its cases in broadcast_targets.rules.yaml, and modes."""

from pathlib import Path

import numpy as np
import pytest
from judging import judge, save

from builtin_rules import BroadcastTargets
from rule_runner.commands.rule_tests import run_rule_tests
from rule_runner.config.defaults import Isolation
from smdebug.core.modes import ModeKeys


def test_the_cases_pass() -> None:
    cases = str(Path(__file__).with_name("broadcast_targets.rules.yaml"))
    assert run_rule_tests([cases], None, Isolation.NONE, update=False) == 0


@pytest.mark.parametrize(
    ("mode", "met"),
    [
        pytest.param(ModeKeys.TRAIN, [0], id="training"),
        pytest.param(ModeKeys.EVAL, [], id="evaluation"),
    ],
)
def test_evaluations_do_not_count(mode: ModeKeys, met: list[int], tmp_path: Path) -> None:
    root = save(tmp_path, {0: {"targets/broadcast": np.int64(1)}}, modes={0: mode})
    assert judge(BroadcastTargets, root, patience=1).met == met

"""ParametersWithoutOptimizer: its cases, and the sentences of its findings."""

from pathlib import Path

import numpy as np
import pytest
from judging import judge, save

from builtin_rules import ParametersWithoutOptimizer
from rule_runner.commands.rule_tests import run_rule_tests
from rule_runner.config.defaults import Isolation

BEGIN = "Parameters with gradients in no optimizer: 2. "


def test_the_cases_pass() -> None:
    cases = str(Path(__file__).with_name("parameters_without_optimizer.rules.yaml"))
    assert run_rule_tests([cases], None, Isolation.NONE, update=False) == 0


@pytest.mark.parametrize(
    ("trained", "replaced", "flag", "reason"),
    [
        pytest.param(0, 3, 1, "The optimizers hold none that get gradients.", id="none"),
        pytest.param(4, 3, 1, "The optimizers still hold replaced ones: 3.", id="replaced"),
        pytest.param(4, 0, 2, "They were frozen at an earlier update.", id="unfrozen"),
    ],
)
def test_a_finding_says_why(
    trained: int, replaced: int, flag: int, reason: str, tmp_path: Path
) -> None:
    numbers = {"trained_parameters": trained, "replaced_parameters": replaced}
    numbers |= {"not_held/Net_a": flag, "not_held/Net_b": flag}
    tensors = {f"optimizer/{name}": np.uint8(number) for name, number in numbers.items()}
    findings = judge(ParametersWithoutOptimizer, save(tmp_path, {0: tensors}), patience=1).findings
    assert [(one.tensor, one.note) for one in findings] == [
        ("optimizer/not_held/Net_a", BEGIN + reason)
    ]

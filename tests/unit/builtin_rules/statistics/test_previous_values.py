"""Earlier steps: of many tensors at once as of each."""

from itertools import islice
from pathlib import Path

import pytest
from judging import opened, save

from builtin_rules.statistics.previous_values import ComparableSteps, earlier_steps, latest_steps
from builtin_rules.statistics.tensor_selection import saved_tensor
from rule_core.trials.snapshot_view import snapshot
from smdebug.core.modes import ModeKeys
from smdebug.trials import Trial

STEPS = range(9)
NAMES = ["always", "even", "late", "of worker_1"]


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    modes = {step: ModeKeys.EVAL if step % 4 == 3 else ModeKeys.TRAIN for step in STEPS}
    for worker in ("worker_0", "worker_1"):
        there = {
            "always": STEPS,
            "even": range(0, 9, 2),
            "late": range(5, 9) if worker == "worker_0" else STEPS,
            "of worker_1": STEPS if worker == "worker_1" else [],
        }
        steps = {step: {name: step for name in NAMES if step in there[name]} for step in STEPS}
        save(tmp_path, steps, modes=modes, worker=worker, num_workers=2)
    return opened(tmp_path)


@pytest.mark.parametrize("count", [1, 3, 20])
def test_steps_of_many_tensors_are_those_of_each(count: int, trial: Trial) -> None:
    alone: list[list[int]] = []
    for step in STEPS:
        with snapshot([trial], step):
            keys = trial.saved_by(step, NAMES)
            for comparable in (None, ComparableSteps(trial, step)):
                found = latest_steps(trial, step, keys, comparable, count)
                each = {
                    key: [*islice(earlier_steps(saved_tensor(trial, key), step, comparable), count)]
                    for key in keys
                }
                assert found == each
                alone += each.values()
    assert {len(steps) for steps in alone} >= {1, min(count, 4)}

"""Selected tensors: many are measured at once as one by one."""

from pathlib import Path

import numpy as np
import pytest
from judging import opened, save

from builtin_rules.statistics.tensor_selection import (
    numbers,
    reduction,
    saved_reductions,
    saved_tensor,
    shapes,
    statistic,
    statistics,
    value_shape,
    variances,
)
from rule_core.model.array_difference import ChangeNorms
from rule_core.trials.snapshot_view import snapshot
from smdebug.core.reductions import Reduction
from smdebug.rules.extensions import StreamingStatistic
from smdebug.trials import Trial


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    for worker in ("worker_0", "worker_1"):
        names = ["loss", "fc.weight", "text", "grows"] + ["own"] * (worker == "worker_1")
        steps = {
            step: {name: np.full((2, 2), step + len(name) * len(worker)) for name in names}
            | {"text": np.array(["a"]), "grows": np.ones(1 + step)}
            for step in range(3)
        }
        save(tmp_path, steps, worker=worker, num_workers=2)
    return opened(tmp_path)


@pytest.mark.parametrize(("measure", "back"), [(Reduction("l2"), 0), (ChangeNorms(), 1)])
def test_many_are_measured_at_once_as_one_by_one(
    measure: StreamingStatistic, back: int, trial: Trial
) -> None:
    names = ["fc.weight", "grows", "loss", "own", "text"]
    for step in range(back, 3):
        with snapshot([trial], step):
            before = step - back if back else None
            saved = trial.saved_by(step, names)
            results = statistics(trial, step, saved, measure, before)
            each = {
                key: statistic(saved_tensor(trial, key), step, measure, before) for key in saved
            }
            assert len(each) == 9
            assert [*results.items()] == [item for item in each.items() if item[1] is not None]
            unknown = {"text", "grows"} if back else {"text"}
            assert {name for name, _ in saved.keys() - results.keys()} == unknown


def test_many_shapes_and_variances_are_those_of_each(trial: Trial) -> None:
    names = ["fc.weight", "grows", "loss", "own", "text"]
    for step in range(3):
        with snapshot([trial], step):
            saved = trial.saved_by(step, names)
            found = shapes(trial, step, saved)
            spreads = variances(trial, step, saved, found)
            each = {key: value_shape(saved_tensor(trial, key), step) for key in saved}
        assert [*found.items()] == [*each.items()]
        several = {"fc.weight", "loss", "own", *["grows"] * (step > 0)}
        assert spreads == {key: 0.0 for key in saved if key[0] in several}


def test_a_saved_deviation_takes_the_place_of_the_variance(tmp_path: Path) -> None:
    deviation, variance, mean = ("std", False), ("variance", False), ("mean", False)
    reduced = {
        "std": {deviation: 3.0},
        "both": {deviation: 3.0, variance: 2.0},
        "mean": {mean: 1.0},
    }
    save(tmp_path, {0: {"std": np.ones(4), "number": np.ones(1)}}, reductions={0: reduced})
    trial = opened(tmp_path)
    saved = trial.saved_by(0, ["both", "mean", "number", "std"])
    spreads = variances(trial, 0, saved, shapes(trial, 0, saved))
    assert {name: spread for (name, _), spread in spreads.items()} == {"both": 2.0, "std": 9.0}


def test_a_worker_has_nothing_of_what_only_another_saved(trial: Trial) -> None:
    saved = saved_tensor(trial, ("own", "worker_0"))
    assert numbers(saved, 1) is reduction(saved, 1, "mean") is value_shape(saved, 1) is None
    assert statistic(saved, 1, Reduction("l2")) is None
    assert saved_reductions(saved, 1) == {}

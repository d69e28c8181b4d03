"""Selected tensors: many are measured at once as one by one."""

from pathlib import Path

import numpy as np
import pytest
from judging import opened, save

from builtin_rules.statistics.array_difference import CHANGE
from builtin_rules.statistics.tensor_selection import saved_tensors, statistic, statistics
from rule_core.trials.refresh import snapshot
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


@pytest.mark.parametrize(("measure", "back"), [(Reduction("l2"), 0), (CHANGE, 1)])
def test_many_are_measured_at_once_as_one_by_one(
    measure: StreamingStatistic, back: int, trial: Trial
) -> None:
    names = ["fc.weight", "grows", "loss", "own", "text"]
    for step in range(back, 3):
        with snapshot([trial], step):
            tensors = [*saved_tensors(trial, step, names)]
            before = step - back if back else None
            results = statistics(trial, step, tensors, measure, before)
            assert results == [statistic(saved, step, measure, before) for saved in tensors]
            assert len(results) == 9
            unknown = {"text", "grows"} if back else {"text"}
            assert {
                saved.name for saved, result in zip(tensors, results, strict=True) if result is None
            } == unknown

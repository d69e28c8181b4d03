"""number_series: all numbers of a tensor, over every resume of a run."""

from pathlib import Path

import numpy as np
from list_source import ListSource, source_index, source_trial

from rule_core.modes import ModeKeys
from rule_core.saving.trial_writer import TrialWriter
from rule_core.trials.create_trial import create_trial
from rule_core.trials.number_series import number_series
from rule_core.trials.snapshot_view import snapshot
from rule_core.trials.trial import Trial


def trial_of(*rows: tuple[int, dict[str, float]]) -> Trial:
    index = source_index(ListSource(*rows))
    index.refresh()
    index.finish()
    return source_trial(index)


def test_a_resume_replaces_the_rows_that_it_repeats() -> None:
    first = [(step, {"loss": 10.0 + step}) for step in range(6)]
    second = [(step, {"loss": 20.0 + step}) for step in range(4, 8)]
    (series,) = number_series(trial_of(*first, *second), ["loss", "absent"])
    assert (series.name, series.mode) == ("loss", ModeKeys.TRAIN)
    assert series.steps.tolist() == [*range(8)]
    assert series.values.tolist() == [10.0, 11.0, 12.0, 13.0, 24.0, 25.0, 26.0, 27.0]


def test_a_run_that_began_anew_replaces_the_first() -> None:
    first = [(step, {"loss": 1.0}) for step in range(6)]
    second = [(step, {"loss": 2.0}) for step in range(4)]
    (series,) = number_series(trial_of(*first, *second), ["loss"])
    assert series.values.tolist() == [2.0] * 4


def test_modes_are_apart_and_later_steps_hidden() -> None:
    trial = trial_of(*((step, {"loss": 1.0, "val_loss": 2.0}) for step in range(5)))
    with snapshot(trial, 2):
        series = [*number_series(trial, ["val_loss", "loss"])]
    assert [(each.name, each.mode.name, len(each.steps)) for each in series] == [
        ("loss", "TRAIN", 3),
        ("val_loss", "EVAL", 3),
    ]


def test_numbers_of_saved_tensors_are_read_without_arrays(tmp_path: Path) -> None:
    with TrialWriter(tmp_path, collections={"losses": "loss"}) as writer:
        for step in range(3):
            writer.step(step, {"loss": np.float32(step), "weights": np.ones(2)})
    trial = create_trial(str(tmp_path))
    series = [*number_series(trial, ["loss", "weights"])]
    assert [(each.name, each.steps.tolist(), each.values.tolist()) for each in series] == [
        ("loss", [0, 1, 2], [0.0, 1.0, 2.0])
    ]

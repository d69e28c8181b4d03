"""SourceTensors: the rows of sources, and the numbers in them."""

import math
from collections import Counter

import numpy as np
import pytest
from list_source import ListSource, source_index, source_trial

from rule_core.modes import ModeKeys
from rule_core.reading.source_index import SourceIndex
from rule_core.reading.source_record import SourceRecord
from rule_core.trials.snapshot_view import snapshot

TRAIN, EVAL, GLOBAL = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.GLOBAL


class Histograms(ListSource):
    """Rows of numbers, and reductions of a tensor at step 1."""

    def read_new(self, record: SourceRecord) -> bool:
        if not record.lanes:
            record.summary("weight", 1, {("min", False): -1.0})
        return super().read_new(record)


def loaded(*sources: ListSource, modes: dict[int, ModeKeys] | None = None) -> SourceIndex:
    index = source_index(*sources, modes=modes or {})
    index.refresh()
    index.finish()
    return index


@pytest.fixture
def two_modes() -> SourceIndex:
    train = ListSource((0, {"loss": 4.0}), (1, {"loss": 2.0, "lr": 0.5}), (2, {"loss": math.nan}))
    return loaded(train, ListSource((1, {"loss": 3.0})), modes={1: EVAL})


def test_numbers_of_a_mode_and_a_worker(two_modes: SourceIndex) -> None:
    trial = source_trial(two_modes)
    assert [trial.scalar("loss", 1, mode) for mode in (TRAIN, EVAL, GLOBAL)] == [2.0, 3.0, None]
    assert [trial.scalar("lr", 1, mode) for mode in (TRAIN, EVAL, GLOBAL)] == [0.5, None, 0.5]
    keys = [*trial.saved_by(1, ["loss"])]
    assert [trial.scalar(name, 1, GLOBAL, worker) for name, worker in keys] == [2.0, 3.0]
    assert trial.scalar("loss", 1, GLOBAL, "worker_1") is None
    assert trial.scalar("loss", 7, GLOBAL) is trial.scalar("accuracy", 1, GLOBAL) is None
    assert trial.scalars(1) == {"lr": 0.5}
    assert trial.scalars(0) == {"loss": 4.0}
    assert trial.scalars(7) == {}


def test_each_number_is_a_read(two_modes: SourceIndex) -> None:
    trial = source_trial(two_modes)
    for query, reads in (
        (lambda: trial.scalar("loss", 0, GLOBAL), 1),
        (lambda: trial.scalar("lr", 0, GLOBAL), 0),
        (lambda: trial.scalars(1), 1),
    ):
        before = trial.reads
        query()
        assert trial.reads - before == reads


def test_numbers_are_those_of_the_values(two_modes: SourceIndex) -> None:
    trial = source_trial(two_modes)
    for name, step in (("loss", 0), ("lr", 1), ("loss", 2)):
        value = trial.tensor(name).value(step)[0]
        assert trial.scalar(name, step, GLOBAL) == pytest.approx(value, rel=0, nan_ok=True)


def test_later_numbers_are_hidden(two_modes: SourceIndex) -> None:
    trial = source_trial(two_modes)
    with snapshot([trial], 0):
        assert trial.scalar("loss", 1, TRAIN) is trial.scalar("lr", 1, GLOBAL) is None
        assert trial.scalars(1) == {}
        assert trial.scalar("loss", 0, TRAIN) == 4.0


def test_reductions_are_no_numbers() -> None:
    trial = source_trial(loaded(Histograms((1, {"loss": 1.0}), (2, {"loss": 1.0}))))
    assert trial.scalar("weight", 1, GLOBAL) is None
    assert trial.scalars(1) == {"loss": 1.0}


def test_a_row_that_grows_is_read_again() -> None:
    source = ListSource((0, {"loss": 1.0}), (1, {"loss": 1.0}))
    index = source_index(source)
    index.refresh()
    trial = source_trial(index)
    assert trial.scalars(1) == {"loss": 1.0}
    assert trial.modes_at(2) == {}
    source.rows += [(1, {"lr": 0.5}), (2, {"eval_loss": 2.0})]
    index.refresh()
    assert trial.scalars(1) == {"loss": 1.0, "lr": 0.5}
    assert trial.modes_at(2) == {EVAL: 2}
    assert trial.tensor_names(step=2) == ["eval_loss"]


def test_steps_are_counted_by_their_modes(two_modes: SourceIndex) -> None:
    steps = np.asarray([*two_modes.steps], np.int64)
    counted = {kind: count for kind, count in two_modes.kinds(steps).items() if count}
    by_step = Counter(
        "+".join(sorted(mode.name for mode in two_modes.tensors.modes_at(step)))
        for step in two_modes.steps
    )
    assert counted == by_step == {"TRAIN": 2, "EVAL+TRAIN": 1}
    assert sum(two_modes.kinds(steps[:0]).values()) == 0

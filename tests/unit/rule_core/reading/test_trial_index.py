"""TrialIndex: a saved trial and a run in another format answer alike."""

import math
from typing import Any

import numpy as np
import pytest
import rawtrial
from evaluating import END
from list_source import ListSource, source_index
from memory_store import MemoryStore

from rule_core.model.reductions import Reduction
from rule_core.modes import ModeKeys
from rule_core.reading.native_index import NativeIndex
from rule_core.reading.source_index import SourceIndex
from rule_core.reading.trial_index import TrialIndex, all_steps, missing_workers
from rule_core.storage.base import ObjectNotFoundError

STEPS = (0, 2, 5)


def native() -> TrialIndex:
    files = {rawtrial.collections_key("worker_0"): rawtrial.collections({"losses": ["loss"]}, 1)}
    for step in STEPS:
        values = {"loss": np.float64([step])}
        files |= rawtrial.step_files(step, values, mode="TRAIN", mode_step=step)
    return NativeIndex(MemoryStore(files | {END: b""}))


def source() -> TrialIndex:
    return source_index(ListSource(*((step, {"loss": step}) for step in STEPS), ended=True))


@pytest.fixture(params=[native, source])
def index(request: pytest.FixtureRequest) -> Any:
    opened: TrialIndex = request.param()
    assert opened.refresh()
    return opened


def test_neither_index_inherits() -> None:
    assert [kind.__mro__ for kind in (NativeIndex, SourceIndex)] == [
        (NativeIndex, object),
        (SourceIndex, object),
    ]


def test_an_index_has_all_that_the_protocol_names(index: TrialIndex) -> None:
    names = {*TrialIndex.__annotations__, *vars(TrialIndex)}
    assert [name for name in names if name[0] != "_" and not hasattr(index, name)] == []


def test_steps_are_settled_in_order(index: TrialIndex) -> None:
    assert [*index.steps] == [*all_steps(index)] == [*STEPS]
    assert index.settled(STEPS[:2]) == [0, 2]
    assert index.has_files()
    assert index.has_ended()
    index.finish()
    assert (index.settled([5]), index.loaded_all_steps, index.settled_step) == ([5], True, 5)
    assert (index.lost_files(), index.missing_collections(), index.read_again(2)) == (0, [], False)


def test_mode_steps_are_those_of_the_training(index: TrialIndex) -> None:
    assert index.tensors.modes_at(2) == {ModeKeys.TRAIN: 2}
    assert index.tensors.modes_at(3) == {}
    assert [index.mode_step_at(5, mode) for mode in (ModeKeys.TRAIN, ModeKeys.GLOBAL)] == [5, 5]
    assert [*index.mode_step_pairs(ModeKeys.TRAIN, 2)] == [(0, 0), (2, 2)]
    assert [*index.mode_step_pairs(ModeKeys.EVAL)] == []
    assert [index.global_step_of(ModeKeys.TRAIN, step) for step in (2, 3)] == [2, None]
    assert (index.first_of_mode(ModeKeys.TRAIN), [*index.segments]) == (0, [])


def test_tensors_are_read_and_measured(index: TrialIndex) -> None:
    tensors = index.tensors
    assert tensors.names_at(2, ModeKeys.TRAIN) == ("loss",)
    assert tensors.names_at(2, ModeKeys.EVAL) == ()
    (part,) = tensors.parts_with("loss", 5, ModeKeys.TRAIN)
    assert (tensors.value("loss", 5, part), tensors.value("loss", 5, part).shape) == ([5], (1,))
    assert not tensors.value("loss", 5, part).flags.writeable
    assert tensors.measure("loss", 5, part, Reduction("max")) == 5
    assert math.isfinite(tensors.wall_time(5, part, index.files[5][part].first_record))
    assert not tensors.lacks_event_file(5, part)
    with pytest.raises((KeyError, ObjectNotFoundError)):
        tensors.value("other", 5, part)
    assert missing_workers(index, 5) == []

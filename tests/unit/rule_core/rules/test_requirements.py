"""RequiredTensors: what a rule cannot do without, of one trial or several."""

import numpy as np
import pytest
import rawtrial
from evaluating import END, WoundClock
from memory_store import MemoryStore

from rule_core.exceptions import StepUnavailable, TensorUnavailable, TensorUnavailableForStep
from rule_core.reading.native_index import NativeIndex
from rule_core.rules.requirements import RequiredTensors
from rule_core.trials.trial import Trial


def trial(*, reductions_only: bool = False) -> Trial:
    files = {rawtrial.collections_key(): rawtrial.collections({}), END: b""}
    name = "smdebug/reductions/mean/w" if reductions_only else "w"
    for step in (0, 5):
        values = {name: np.float32([1]), "b1": np.float32([1])}
        files |= rawtrial.step_files(step, values | ({"b2": np.float32([1])} if step else {}))
    index = NativeIndex(MemoryStore(files))
    index.refresh()
    index.finish()
    return Trial("t", "/t", index, WoundClock())


def test_what_was_added_is_there() -> None:
    required = RequiredTensors(trial())
    required.add("w", [0, 5])
    required.add("b", [5], should_match_regex=True)
    required.fetch()
    assert list(required.get_names()) == ["w", "b1", "b2"]
    assert required.get_tensor_steps("w") == [0, 5]


def test_reductions_are_enough() -> None:
    required = RequiredTensors(trial(reductions_only=True))
    required.add("w", [0])
    required.fetch()


def test_step_without_the_tensor() -> None:
    required = RequiredTensors(trial())
    required.add("b2", [0])
    with pytest.raises(TensorUnavailableForStep, match="'b2' has no value at step 0"):
        required.fetch()


def test_step_that_was_never_saved() -> None:
    required = RequiredTensors(trial())
    required.add("w", [3])
    with pytest.raises(StepUnavailable):
        required.fetch()


def test_unknown_names() -> None:
    required = RequiredTensors(trial())
    with pytest.raises(TensorUnavailable):
        required.add("x", [0])
    required.add("x", [0], should_match_regex=True)
    assert list(required.get()) == []
    with pytest.raises(KeyError):
        required.get_tensor_steps("w")


def test_callers_lists_stay_theirs() -> None:
    required = RequiredTensors(trial())
    steps = [5]
    required.add("b", steps, should_match_regex=True)
    required.add("b1", [0])
    assert steps == [5]
    assert required.get_tensor_steps("b2") == [5]
    required.get_tensor_steps("b1").append(9)
    assert required.get_tensor_steps("b1") == [5, 0]


def test_trials_are_kept_apart_even_if_they_are_equal() -> None:
    base, other, stranger = trial(), trial(reductions_only=True), trial()
    required = RequiredTensors(base, [other])
    required.add("w", [0], trial=other)
    required.fetch()
    assert (list(required.get_names()), list(required.get_names(other))) == ([], ["w"])
    with pytest.raises(KeyError):
        required.add("w", [0], trial=stranger)
    required.clear()
    assert list(required.get_names(other)) == []

"""Trials and tensors as the programming model documents them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import documented_trial as documented
import numpy as np
import pytest
from documented_trial import BY_NUMPY, EVAL_GLOBAL, EVAL_STEPS, NAMES, REDUCTIONS, TRAIN_STEPS

import smdebug as smd
from smdebug import exceptions, modes
from smdebug.core.collection import Collection
from smdebug.core.modes import ModeKeys
from smdebug.core.tensor import StepState, Tensor
from smdebug.trials import LocalTrial, Trial, create_trial

# -- create_trial ---------------------------------------------------------------------------------


def test_a_local_path_is_a_local_trial(ended: Trial, documented_path: Path) -> None:
    assert isinstance(ended, LocalTrial)
    assert (ended.path, ended.name) == (str(documented_path), "resnet_training_run")


def test_the_name_defaults_to_the_basename(documented_path: Path) -> None:
    assert create_trial(path=str(documented_path)).name == "resnet"


@pytest.mark.parametrize(
    ("range_steps", "steps"),
    [
        ((10, None), [10, 11]),
        ((None, 2), [0, 1]),
        ((4, 6), [4, 5]),
        (None, list(range(12))),
    ],
    ids=repr,
)
def test_range_steps(documented_path: Path, range_steps: Any, steps: list[int]) -> None:
    trial = create_trial(path=str(documented_path), name="resnet_training", range_steps=range_steps)
    assert trial.steps() == steps


def test_a_path_shows_its_three_folders(documented_path: Path) -> None:
    assert {"collections", "events", "index"} <= {path.name for path in documented_path.iterdir()}


# -- trial ----------------------------------------------------------------------------------------

TENSOR_NAMES: dict[str, tuple[Callable[[Trial], list[str]], list[str]]] = {
    "()": (lambda trial: trial.tensor_names(), NAMES),
    "(step=10, mode=modes.TRAIN)": (
        lambda trial: trial.tensor_names(step=8, mode=modes.TRAIN),
        ["gradient/fc_weight", "loss", "relu_output", "weight"],
    ),
    "(regex='relu')": (lambda trial: trial.tensor_names(regex="relu"), ["relu_output"]),
    "(collection='gradients')": (
        lambda trial: trial.tensor_names(collection="gradients"),
        ["gradient/fc_weight"],
    ),
    "(step=10, mode=modes.TRAIN, regex='softmax')": (
        lambda trial: trial.tensor_names(step=1, mode=modes.EVAL, regex="softmax"),
        ["softmax_output"],
    ),
    "(step)": (lambda trial: trial.tensor_names(3), ["loss", "softmax_output"]),
    "(step, mode)": (
        lambda trial: trial.tensor_names(0, modes.EVAL),
        ["loss", "softmax_output"],
    ),
    "(step, mode, regex)": (
        lambda trial: trial.tensor_names(0, modes.TRAIN, "relu"),
        ["relu_output"],
    ),
    "(step, mode, None, collection)": (
        lambda trial: trial.tensor_names(0, modes.TRAIN, None, "losses"),
        ["loss"],
    ),
    "(mode=modes.EVAL)": (
        lambda trial: trial.tensor_names(mode=modes.EVAL),
        ["loss", "softmax_output"],
    ),
    "(mode=smd.modes.GLOBAL)": (lambda trial: trial.tensor_names(mode=smd.modes.GLOBAL), NAMES),
    "(mode=smd.modes.PREDICT)": (lambda trial: trial.tensor_names(mode=modes.PREDICT), []),
    "(regex=[...])": (
        lambda trial: trial.tensor_names(regex=["relu", "soft"]),
        ["relu_output", "softmax_output"],
    ),
    "(collection=Collection)": (
        lambda trial: trial.tensor_names(collection=trial.collection("named")),
        ["softmax_output"],
    ),
    "(step=3, collection=...)": (
        lambda trial: trial.tensor_names(step=3, collection="relu"),
        [],
    ),
}


@pytest.mark.parametrize("call", TENSOR_NAMES)
def test_tensor_names(ended: Trial, call: str) -> None:
    ask, names = TENSOR_NAMES[call]
    assert ask(ended) == names


def test_only_one_of_regex_and_collection(ended: Trial) -> None:
    with pytest.raises(ValueError, match="regex or by collection"):
        ended.tensor_names(regex="a", collection="losses")


def test_tensor(ended: Trial) -> None:
    result = ended.tensor(tname="loss")
    assert type(result) is Tensor
    assert result.name == "loss"


def test_has_tensor(ended: Trial) -> None:
    assert ended.has_tensor(tname="loss") is True
    assert ended.has_tensor("lost") is False


@pytest.mark.parametrize(
    ("mode", "steps"),
    [
        (None, list(range(12))),
        (modes.GLOBAL, list(range(12))),
        (modes.TRAIN, TRAIN_STEPS),
        (modes.EVAL, EVAL_STEPS),
        (modes.PREDICT, []),
    ],
)
def test_steps_of_a_mode(ended: Trial, mode: ModeKeys | None, steps: list[int]) -> None:
    assert ended.steps(mode=mode) == steps


def test_steps_without_a_mode_are_those_of_all(ended: Trial) -> None:
    assert ended.steps() == list(range(12))


def test_modes(ended: Trial) -> None:
    assert list(ended.modes()) == [modes.TRAIN, modes.EVAL]


@pytest.mark.parametrize("step", range(12))
def test_mode_and_mode_step_and_back(ended: Trial, step: int) -> None:
    mode = modes.EVAL if step in EVAL_GLOBAL else modes.TRAIN
    mode_step = step // 4 if step in EVAL_GLOBAL else step - step // 4
    assert ended.mode(global_step=step) is mode
    assert ended.mode_step(global_step=step) == mode_step
    assert ended.global_step(mode=mode, mode_step=mode_step) == step


def test_workers(workers: Trial, ended: Trial) -> None:
    assert workers.workers() == ["worker_0", "worker_1"]
    assert ended.workers() == ["worker_0"]


def test_collections(ended: Trial) -> None:
    result = ended.collections()
    assert {"losses", "gradients", "relu", "named"} <= set(result)
    assert all(isinstance(collection, Collection) for collection in result.values())


def test_collection(ended: Trial) -> None:
    result = ended.collection(coll_name="losses")
    assert isinstance(result, Collection)
    assert (result.name, result.include_regex) == ("losses", ["loss"])


@pytest.mark.parametrize(
    ("steps", "mode"),
    [([0, 11], modes.GLOBAL), ([8], modes.TRAIN), ([0, 1, 2], modes.EVAL), ([], modes.GLOBAL)],
)
def test_wait_for_steps_that_are_there(ended: Trial, steps: list[int], mode: ModeKeys) -> None:
    assert ended.wait_for_steps(required_steps=steps, mode=mode) is None  # type: ignore[func-returns-value]  # documented


def test_wait_for_a_step_after_the_end(ended: Trial) -> None:
    with pytest.raises(exceptions.NoMoreData):
        ended.wait_for_steps([12])


def test_wait_for_a_step_that_was_not_saved(documented_path: Path) -> None:
    trial = create_trial(str(documented_path), range_steps=(4, None))
    with pytest.raises(exceptions.StepUnavailable):
        trial.wait_for_steps([2])


def test_states_of_steps(ended: Trial, workers: Trial) -> None:
    assert ended.has_passed_step(step=3) is StepState.AVAILABLE
    assert ended.has_passed_step(3, mode=modes.EVAL) is StepState.UNAVAILABLE
    assert workers.has_passed_step(9) is StepState.NOT_YET_AVAILABLE
    assert [state.name for state in StepState] == ["UNAVAILABLE", "AVAILABLE", "NOT_YET_AVAILABLE"]


# -- tensor ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "mode", "steps"),
    [
        ("loss", modes.GLOBAL, list(range(12))),
        ("loss", modes.TRAIN, TRAIN_STEPS),
        ("loss", modes.EVAL, EVAL_STEPS),
        ("softmax_output", modes.GLOBAL, EVAL_GLOBAL),
        ("softmax_output", modes.TRAIN, []),
        ("softmax_output", modes.EVAL, EVAL_STEPS),
        ("weight", modes.TRAIN, TRAIN_STEPS),
        ("weight", modes.PREDICT, []),
    ],
)
def test_steps_of_a_tensor(ended: Trial, name: str, mode: ModeKeys, steps: list[int]) -> None:
    assert ended.tensor(name).steps(mode=mode) == steps


def test_incomplete_steps_of_a_tensor(workers: Trial) -> None:
    assert workers.tensor("w").steps() == [0, 1, 2]
    assert workers.tensor("w").steps(show_incomplete_steps=True) == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["loss", "relu_output", "gradient/fc_weight"])
@pytest.mark.parametrize("step", [0, 5, 10])
def test_value(ended: Trial, name: str, step: int) -> None:
    result = ended.tensor(name).value(step)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, documented.value(name, step))


def test_value_of_a_mode(ended: Trial) -> None:
    result = ended.tensor("softmax_output").value(step_num=2, mode=modes.EVAL)
    np.testing.assert_array_equal(result, documented.value("softmax_output", 11))


@pytest.mark.parametrize("rank", [0, 1])
def test_value_of_a_worker(workers: Trial, rank: int) -> None:
    assert workers.tensor("w").value(2, worker=f"worker_{rank}").tolist() == [20 + rank] * 2


def test_values(ended: Trial, workers: Trial) -> None:
    result = ended.tensor("loss").values(mode=modes.EVAL)
    assert {step: float(value[0]) for step, value in result.items()} == pytest.approx(
        {step: 1 / (place + 1) for step, place in zip(EVAL_STEPS, EVAL_GLOBAL, strict=True)}
    )
    of_worker = workers.tensor("w").values(worker="worker_1")
    assert {step: value[0] for step, value in of_worker.items()} == {0: 1, 1: 11, 2: 21}


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction_that_was_saved(ended: Trial, name: str, absolute: bool) -> None:
    result = ended.tensor("weight").reduction_value(4, name, abs=absolute)
    values = documented.value("weight", 4)
    assert (float(result), result[0]) == pytest.approx(
        (float(BY_NUMPY[name](np.abs(values) if absolute else values)),) * 2, rel=1e-6
    )


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("name", [*REDUCTIONS, "median"])
def test_reduction_of_a_saved_value(ended: Trial, name: str, absolute: bool) -> None:
    tensor = ended.tensor("relu_output")
    result = tensor.reduction_value(
        step_num=2, reduction_name=name, mode=modes.TRAIN, worker=None, abs=absolute
    )
    values = documented.value("relu_output", 2)
    assert (float(result), result[0]) == pytest.approx(
        (float(BY_NUMPY[name](np.abs(values) if absolute else values)),) * 2, rel=1e-5
    )
    assert type(result) is type(ended.tensor("weight").reduction_value(2, "min"))


def test_neither_reduction_nor_value(ended: Trial) -> None:
    with pytest.raises(exceptions.TensorUnavailableForStep):
        ended.tensor("weight").reduction_value(0, "median")


def test_reduction_values_are_those_that_were_saved(ended: Trial) -> None:
    result = ended.tensor("weight").reduction_values(step_num=0, mode=modes.TRAIN)
    assert set(result) == {(name, absolute) for name in REDUCTIONS for absolute in (False, True)}
    assert all(np.size(value) == 1 for value in result.values())
    assert ended.tensor("loss").reduction_values(0) == {}


def test_workers_of_a_tensor(workers: Trial) -> None:
    assert workers.tensor("w").workers(step_num=1) == ["worker_0", "worker_1"]
    assert workers.tensor("of_1").workers(1, mode=modes.GLOBAL) == ["worker_1"]


@pytest.mark.parametrize(
    ("step", "n", "mode", "steps"),
    [
        (11, 3, modes.GLOBAL, [9, 10, 11]),
        (1, 5, modes.GLOBAL, [0, 1]),
        (8, 2, modes.TRAIN, [7, 8]),
        (2, 9, modes.EVAL, [0, 1, 2]),
        (5, 1, modes.EVAL, [2]),
        (0, 2, modes.PREDICT, []),
    ],
)
def test_prev_steps(ended: Trial, step: int, n: int, mode: ModeKeys, steps: list[int]) -> None:
    assert ended.tensor("loss").prev_steps(step, n, mode=mode) == steps


def test_shape_and_shapes(ended: Trial) -> None:
    assert ended.tensor("relu_output").shape(0) == (2, 3)
    assert ended.tensor("softmax_output").shapes(mode=modes.EVAL) == dict.fromkeys(
        EVAL_STEPS, (2, 3)
    )

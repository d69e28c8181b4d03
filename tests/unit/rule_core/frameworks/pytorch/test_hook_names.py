"""Names, steps, modes and values of what a PyTorch hook saves are those of the training itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_models import (
    LABELS,
    Net,
    array,
    assert_same,
    computed,
    hook,
    images,
    net,
    nn,
    opened,
    read,
    rows,
    small,
)

import smdebug.pytorch as smd

torch = pytest.importorskip("torch", reason="torch is not installed.")
LOSS = "CrossEntropyLoss_output_0"


def step_of(model: Any, loss: Any, optimizer: Any, step: int) -> Any:
    optimizer.zero_grad()
    result = loss(model(images(step)), LABELS)
    if model.training:
        result.backward()
        optimizer.step()
    return result


def plain_run(steps: int, evaluated: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    """Return by step what the training computes without a hook."""
    model, found = net(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    torch.manual_seed(7)
    for step in range(steps):
        model.train(step not in evaluated)
        state = torch.get_rng_state()
        found.append(computed(model, images(step), LABELS))
        torch.set_rng_state(state)
        step_of(model, nn.CrossEntropyLoss(), optimizer, step)
    return found


def watched_run(root: Path, steps: int, evaluated: tuple[int, ...] = (), **options: Any) -> Any:
    """Train as `plain_run` does, with a hook, and return the trial."""
    model, loss = net(), nn.CrossEntropyLoss()
    watching = hook(root, **options)
    watching.register_module(model)
    watching.register_loss(loss)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    torch.manual_seed(7)
    for step in range(steps):
        model.train(step not in evaluated)
        watching.set_mode(smd.modes.EVAL if step in evaluated else smd.modes.TRAIN)
        step_of(model, loss, optimizer, step)
    return opened(watching)


def test_everything_is_saved_with_the_values_that_torch_computed(tmp_path: Path) -> None:
    expected = plain_run(3)
    trial = watched_run(tmp_path, 3, save_all=True)
    assert trial.steps() == [0, 1, 2]
    for step in range(3):
        assert_same(expected[step], read(trial, step))
    assert {"relu_output_0", "relu_output_1", "lstm_output_2"} <= set(trial.tensor_names())


def test_modes_count_their_own_steps_and_evaluation_has_no_gradients(tmp_path: Path) -> None:
    evaluated = (2, 3)
    expected = plain_run(6, evaluated)
    trial = watched_run(tmp_path, 6, evaluated, save_all=True)
    assert trial.steps(smd.modes.TRAIN) == [0, 1, 2, 3]
    assert trial.steps(smd.modes.EVAL) == [0, 1]
    assert [trial.global_step(smd.modes.EVAL, step) for step in (0, 1)] == [2, 3]
    for step, values in enumerate(expected):
        kept = {
            name: value
            for name, value in values.items()
            if step not in evaluated or not name.startswith("gradient/")
        }
        assert_same(kept, read(trial, step))


def test_only_losses_are_saved_by_default(tmp_path: Path) -> None:
    trial = watched_run(tmp_path, 2)
    assert trial.tensor_names() == [LOSS]
    assert trial.tensor_names(collection="losses") == [LOSS]
    expected = [float(values[LOSS]) for values in plain_run(2)]
    assert [float(trial.tensor(LOSS).value(step)) for step in range(2)] == expected


@pytest.mark.parametrize(
    ("options", "names"),
    [
        pytest.param({"include_regex": "^head_out"}, ["head_output_0"], id="a pattern"),
        pytest.param(
            {"include_regex": ["relu_output", r"^blocks\.1_"]},
            ["blocks.1_input_0", "blocks.1_output_0", "relu_output_0", "relu_output_1"],
            id="patterns",
        ),
        pytest.param(
            {"include_collections": ["biases"]},
            [
                *("Net_blocks.0.fc.bias", "Net_blocks.1.fc.bias", "Net_conv.bias"),
                *("Net_head.bias", "Net_lstm.bias_hh_l0", "Net_lstm.bias_ih_l0"),
            ],
            id="biases",
        ),
        pytest.param(
            {"include_collections": ["gradients"], "include_regex": "^Net_(in|out)put"},
            [
                *("Net_input_0", "Net_output_0"),
                *(f"gradient/Net_{name}" for name, _ in Net().named_parameters()),
            ],
            id="gradients and the model's own",
        ),
    ],
)
def test_what_is_asked_for_is_saved_besides_the_losses(
    tmp_path: Path, options: dict[str, Any], names: list[str]
) -> None:
    trial = watched_run(tmp_path, 2, **options)
    assert trial.tensor_names() == sorted([*names, LOSS])
    for step, values in enumerate(plain_run(2)):
        assert_same({name: values[name] for name in (*names, LOSS)}, read(trial, step))


def test_a_collection_of_a_modules_tensors(tmp_path: Path) -> None:
    model, watching = net(), hook(tmp_path)
    collection = smd.Collection("mine")
    collection.add_module_tensors(model.blocks[1], inputs=True, outputs=False)
    collection.add_module_tensors(model.head)
    watching.add_collection(collection)
    watching.register_module(model)
    torch.manual_seed(7)
    model(images(0))
    trial = opened(watching)
    names = ["blocks.1_input_0", "head_output_0"]
    assert trial.tensor_names(collection="mine") == names
    assert_same({name: plain_run(1)[0][name] for name in names}, read(trial, 0))


def test_a_collection_of_modules_of_a_second_model(tmp_path: Path) -> None:
    first, second, watching = small(0), small(1), hook(tmp_path)
    output = second[:2](torch.ones(1, 4))
    watching.register_module(first)
    watching.register_module(second)
    collection = watching.get_collection("mine")
    collection.add_module_tensors(second[1])
    collection.add_module_tensors(second, inputs=True, outputs=False)
    watching.add_collection(collection)
    second(first(rows(0)).new_ones(1, 4))
    expected = {
        "Sequential:1_input_0": np.ones((1, 4), np.float32),
        "Sequential:1.1_output_0": array(output),
    }
    assert_same(expected, read(opened(watching), 0))


def test_a_module_in_a_collection_that_no_model_has(tmp_path: Path) -> None:
    watching = hook(tmp_path)
    watching.get_collection("mine").add_module_tensors(nn.Linear(1, 2))
    watching.register_module(model := small())
    with pytest.raises(
        TypeError, match=r"'mine' names a module that no registered model contains, "
    ):
        model(rows(0))


def test_values_are_those_of_the_moment(tmp_path: Path) -> None:
    """Neither the optimizer nor operations in place change what was saved."""

    class InPlace(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.act = nn.Linear(4, 4), nn.ReLU(inplace=True)

        def forward(self, x: Any) -> Any:
            return self.act(self.fc(x)).mul_(0)

    torch.manual_seed(0)
    model, watching, x = InPlace(), hook(tmp_path, save_all=True), rows(0)
    watching.register_module(model)
    weight, before = array(model.fc.weight), array(model.fc(x))
    with torch.no_grad():
        output = model(x)
        x.fill_(9)
        model.fc.weight.fill_(9)
    assert array(output).any() is np.False_
    found = read(opened(watching), 0)
    np.testing.assert_array_equal(found["InPlace_fc.weight"], weight)
    np.testing.assert_array_equal(found["InPlace_input_0"], array(rows(0)))
    np.testing.assert_array_equal(found["act_input_0"], before)
    np.testing.assert_array_equal(found["act_output_0"], np.maximum(before, 0))

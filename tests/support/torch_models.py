"""Small PyTorch models, hooks that save every step of them, and what PyTorch itself computes.

Imported by tests for PyTorch only: without it they are skipped right here, before `smdebug.pytorch`
asks for it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed.")

import smdebug.pytorch as smd
from smdebug.trials import Trial, create_trial

torch.set_num_threads(1)  # what is computed here is small

nn = torch.nn
ALWAYS = smd.SaveConfig(save_interval=1)
LABELS = torch.tensor([0, 1, 2, 0])
Arrays = dict[str, "np.ndarray[Any, Any]"]


class Block(nn.Module):
    """A layer and its activation."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.act = nn.ReLU()

    def forward(self, x: Any) -> Any:
        return self.act(self.fc(x))


class Net(nn.Module):
    """One of each: a convolution, an activation used twice, nested blocks, an LSTM, dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.relu = nn.ReLU()
        self.blocks = nn.Sequential(Block(), Block())
        self.drop = nn.Dropout(0.25)
        self.head = nn.Linear(8, 3)
        self.lstm = nn.LSTM(8, 8, batch_first=True)

    def forward(self, x: Any) -> Any:
        x = self.relu(self.conv(x)).mean(1).flatten(1)
        x, _ = self.lstm(x[:, None])
        x = self.blocks(self.relu(x[:, 0]))
        return self.head(self.drop(x))


def net(seed: int = 0) -> Any:
    """Return a seeded `Net`."""
    torch.manual_seed(seed)
    return Net()


def small(seed: int = 0) -> Any:
    """Return two seeded layers with an activation between them."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3))


def images(step: int) -> Any:
    """Return a step's batch of images."""
    return torch.randn(4, 1, 6, 4, generator=torch.Generator().manual_seed(step))


def rows(step: int) -> Any:
    """Return a step's batch for `small`."""
    return torch.randn(4, 4, generator=torch.Generator().manual_seed(step))


def hook(root: Path, **options: Any) -> Any:
    """Return a hook that saves at every step and raises, by default."""
    return smd.Hook(root, **{"save_config": ALWAYS, "on_error": "raise"} | options)


def opened(of: Any) -> Trial:
    """Close a hook and open its trial without any waiting."""
    of.close()
    return create_trial(of.out_dir, timeout=0)


def read(trial: Trial, step: int, names: Iterable[str] | None = None) -> Arrays:
    """Return the values saved at a step by name."""
    names = trial.tensor_names(step=step) if names is None else names
    return {name: trial.tensor(name).value(step) for name in names}


def array(tensor: Any) -> "np.ndarray[Any, Any]":
    """Return a copy of a tensor's elements; of bfloat16 as float32."""
    plain = tensor.detach().to_dense() if tensor.layout is not torch.strided else tensor.detach()
    return (plain.float() if plain.dtype is torch.bfloat16 else plain).clone().numpy()


def assert_same(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> None:
    """Compare names, types, shapes and values bit for bit, NaN equal to NaN."""
    assert sorted(expected) == sorted(actual)
    for name, value in expected.items():
        assert (name, value.dtype, value.shape) == (name, actual[name].dtype, actual[name].shape)
        np.testing.assert_array_equal(value, actual[name], err_msg=name)


def computed(model: Any, x: Any, labels: Any) -> Arrays:
    """Return all that one forward and backward of a `Net` and its loss compute, by tensor name.

    Its modules are called one by one; gradients are those of `torch.autograd.grad`.
    """
    name = type(model).__name__
    arrays = {f"{name}_{key}": array(parameter) for key, parameter in model.named_parameters()}

    def call(key: str, module: Any, value: Any, at: int = 0) -> Any:
        arrays[f"{key}_input_{at}"] = array(value)
        result = module(value)
        outputs = result if isinstance(result, tuple) else (result,)
        flat = [outputs[0], *(outputs[1] if len(outputs) > 1 else ())]
        arrays.update({f"{key}_output_{at + i}": array(tensor) for i, tensor in enumerate(flat)})
        return outputs[0]

    value = call("relu", model.relu, call("conv", model.conv, x))
    value = call("lstm", model.lstm, value.mean(1).flatten(1)[:, None])
    value = call("relu", model.relu, value[:, 0], 1)
    arrays["blocks_input_0"] = array(value)
    for at, block in enumerate(model.blocks):
        key = f"blocks.{at}"
        arrays[f"{key}_input_0"] = array(value)
        value = call(f"{key}.act", block.act, call(f"{key}.fc", block.fc, value))
        arrays[f"{key}_output_0"] = array(value)
    arrays["blocks_output_0"] = array(value)
    output = call("head", model.head, call("drop", model.drop, value))
    loss = nn.functional.cross_entropy(output, labels)
    arrays |= {f"{name}_input_0": array(x), f"{name}_output_0": array(output)}
    arrays |= {"CrossEntropyLoss_input_0": array(output), "CrossEntropyLoss_input_1": array(labels)}
    arrays["CrossEntropyLoss_output_0"] = array(loss)
    return arrays | gradients(model, loss)


def gradients(model: Any, loss: Any) -> Arrays:
    """Return what a backward of a loss gives each parameter that it reaches, by tensor name."""
    name = type(model).__name__
    parameters = {
        key: parameter for key, parameter in model.named_parameters() if parameter.requires_grad
    }
    computed = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    return {
        f"gradient/{name}_{key}": array(gradient)
        for key, gradient in zip(parameters, computed, strict=True)
        if gradient is not None
    }


def trained(model: Any, batches: Iterable[Any], *, watched: Any = None) -> Arrays:
    """Train a model, with a hook or none, and return its weights."""
    loss = nn.CrossEntropyLoss()
    if watched is not None:
        watched.register_module(model)
        watched.register_loss(loss)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for x in batches:
        optimizer.zero_grad()
        loss(model(x), LABELS).backward()
        optimizer.step()
    return {name: array(tensor) for name, tensor in model.state_dict().items()}

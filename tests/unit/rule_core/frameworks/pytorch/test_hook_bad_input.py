"""What a PyTorch hook cannot save is left out and said once; the training goes on."""

import logging
import pickle
from pathlib import Path
from typing import Any

import pytest
from torch_models import array, assert_same, gradients, hook, nn, opened, read, rows, small

import smdebug.pytorch as smd

torch = pytest.importorskip("torch", reason="torch is not installed.")
REDUCED = smd.ReductionConfig(reductions=["min", "mean"], save_shape=True)


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


class Devices(nn.Module):
    """A layer on this host, and one on a device whose tensors cannot be read."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.here, self.there = nn.Linear(4, 4), nn.Linear(4, 2, device="meta")

    def forward(self, x: Any) -> Any:
        x = self.here(x)
        self.there(x.to("meta"))
        return x


@pytest.mark.parametrize("config", [None, REDUCED], ids=["values", "reductions"])
def test_a_device_that_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, config: Any
) -> None:
    model, watching = Devices(), hook(tmp_path, save_all=True, reduction_config=config)
    watching.register_module(model)
    for step in range(2):
        model(rows(step)).sum().backward()
    trial = opened(watching)
    unread = ["Devices_there.weight", "Devices_there.bias", "there_input_0", "there_output_0"]
    assert messages(caplog) == [
        f"Tensor {name!r} is not saved. It is on device 'meta', where tensors have no elements."
        for name in unread
    ]
    assert trial.steps() == [0, 1]
    assert {"here_output_0", "gradient/Devices_here.bias"} <= set(trial.tensor_names())
    if config is None:
        assert not set(unread) & set(trial.tensor_names())
        expected = {"here_output_0": array(model.here(rows(1)))}
        assert_same(expected, read(trial, 1, expected))


class Passing(nn.Module):
    """Returns its input."""

    def forward(self, x: Any) -> Any:
        return x


NESTED = "Nested tensors have no shape that the trial format supports."


@pytest.mark.filterwarnings("ignore:.*nested tensors:UserWarning")
@pytest.mark.parametrize("config", [None, REDUCED], ids=["values", "reductions"])
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
def test_nested_tensors(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, layout: Any, config: Any
) -> None:
    model, watching = Passing(), hook(tmp_path, save_all=True, reduction_config=config)
    watching.register_module(model)
    for _ in range(2):
        model([torch.nested.nested_tensor([rows(0), rows(0)[:2]], layout=layout), rows(0)])
    trial = opened(watching)
    assert messages(caplog) == [
        f"Tensor 'Passing_{side}_0' is not saved. {NESTED}" for side in ("input", "output")
    ]
    assert trial.tensor_names() == ["Passing_input_1", "Passing_output_1"]


@pytest.mark.parametrize("asked", [{"save_all": True}, {"include_collections": ["relu_output"]}])
def test_a_module_whose_name_no_file_can_hold(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, asked: Any
) -> None:
    model = nn.ModuleDict({"\ud800": nn.ReLU(), "fine": nn.ReLU()})
    model.forward = lambda x: model["fine"](model["\ud800"](x))
    watching = hook(tmp_path, **asked)
    watching.register_module(model)
    for _ in range(2):
        model(rows(0))
    trial = opened(watching)
    assert "Tensor '\\ud800_output_0' is not saved. Names must be text that UTF-8 can encode" in (
        "\n".join(messages(caplog))
    )
    assert len(set(messages(caplog))) == len(messages(caplog))
    assert trial.tensor_names(regex="relu|fine_output|\ud800") == ["fine_output_0"]
    assert trial.steps() == [0, 1]


INSIDE = "Inside torch.func it represents values that are not computed one by one."


@pytest.mark.parametrize("config", [None, REDUCED], ids=["values", "reductions"])
def test_a_model_inside_transformations(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, config: Any
) -> None:
    model, watching = small(), hook(tmp_path, save_all=True, reduction_config=config)
    watching.register_module(model)
    weights = {name: one.detach() for name, one in model.named_parameters()}

    def loss(weights: Any, x: Any) -> Any:
        return torch.func.functional_call(model, weights, (x,)).square().sum()

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, rows(0))
    model(rows(0)).square().sum().backward()
    for name, one in model.named_parameters():
        torch.testing.assert_close(each[name].sum(0), one.grad)
    trial = opened(watching)
    assert set(messages(caplog)) == {
        f"Tensor '{name}_{side}_0' is not saved. {INSIDE}"
        for name in ("Sequential", "0", "1", "2")
        for side in ("input", "output")
    }
    assert len(messages(caplog)) == 8
    assert not watching._with_gradient
    assert "Sequential_output_0" in trial.tensor_names(step=1)


def test_a_sparse_tensor_that_is_too_large(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model, watching = Passing(), hook(tmp_path, save_all=True)
    watching.register_module(model)
    options = {"size": (1 << 40,), "check_invariants": True}
    model((torch.sparse_coo_tensor([[3]], [1.0], **options), rows(0)))
    assert opened(watching).tensor_names() == ["Passing_input_1", "Passing_output_1"]
    assert messages(caplog)[0] == (
        "Tensor 'Passing_input_0' is not saved. As a dense tensor, the sparse tensor would take "
        "more than 268435456 bytes."
    )


class Refusing(torch.Tensor):
    """A subclass with rules of its own."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.detach:
            msg = "detach is not for this tensor\nand more"
            raise NotImplementedError(msg)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_a_subclass_that_refuses(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model, watching = Passing(), hook(tmp_path, save_all=True)
    watching.register_module(model)
    for _ in range(2):
        model(rows(0).as_subclass(Refusing))
    assert opened(watching).tensor_names() == []
    assert messages(caplog) == [
        f"Tensor 'Passing_{side}_0' is not saved. detach is not for this tensor."
        for side in ("input", "output")
    ]


@pytest.mark.parametrize("strict", [True, False])
def test_a_watched_model_is_exported(tmp_path: Path, strict: bool) -> None:
    model, watching = small(), hook(tmp_path, save_all=True)
    watching.register_module(model)
    model(rows(0))
    program = torch.export.export(model, (rows(0),), strict=strict)
    torch.testing.assert_close(program.module()(rows(1)), model.forward(rows(1)))
    model(rows(1))
    trial = opened(watching)
    assert trial.steps() == [0, 1]
    assert "relu" in str(program.graph)


@pytest.mark.filterwarnings("ignore:`torch.jit.trace:DeprecationWarning")
def test_a_watched_model_is_traced(tmp_path: Path) -> None:
    model, watching = small(), hook(tmp_path, save_all=True)
    watching.register_module(model)
    traced = torch.jit.trace(model, rows(0), check_trace=False)
    torch.testing.assert_close(traced(rows(1)), model.forward(rows(1)))
    model(rows(1))
    assert opened(watching).steps() == [0]


def scripted(model: Any) -> Any:
    return torch.jit.script(model)


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
def test_a_model_of_torchscript_is_refused(tmp_path: Path) -> None:
    watching = hook(tmp_path)
    text = (
        r"(?s)A model must be a .*Module, got .* TorchScript takes no hooks: train the plain one\."
    )
    with pytest.raises(TypeError, match=text):
        watching.register_module(scripted(small()))
    with pytest.raises(TypeError, match=text.replace("model", "loss")):
        watching.register_loss(scripted(nn.MSELoss()))


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
def test_a_part_of_torchscript_is_not_watched(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = nn.Sequential(scripted(small()), nn.Linear(3, 2))
    expected = gradients(model, model(rows(0)).sum())
    watching = hook(tmp_path, save_all=True)
    watching.register_module(model)
    model(rows(0)).sum().backward()
    trial = opened(watching)
    assert_same(expected, read(trial, 0, trial.tensor_names(collection="gradients")))
    assert trial.tensor_names(regex="^[^Sg].*put") == ["1_input_0", "1_output_0"]
    text = "Inputs and outputs of 4 of its modules are not seen, since they run in compiled code;"
    assert messages(caplog) == [f"{text} the first of them is '0'."]


def test_integers_and_text_among_the_inputs_are_passed_over(tmp_path: Path) -> None:
    model, watching = Passing(), hook(tmp_path, save_all=True)
    watching.register_module(model)
    model([1, "text", None, {"a": object(), "b": rows(0)}, {3}])
    assert opened(watching).tensor_names() == ["Passing_input_b", "Passing_output_b"]


def test_a_tensor_of_no_elements_is_left_out(tmp_path: Path) -> None:
    model, watching = Passing(), hook(tmp_path, save_all=True)
    watching.register_module(model)
    model([torch.empty(0, 3), rows(0)])
    assert opened(watching).tensor_names() == ["Passing_input_1", "Passing_output_1"]


def test_a_saved_model_needs_nothing_of_ours_to_be_loaded(tmp_path: Path) -> None:
    model, watching = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), hook(tmp_path, save_all=True)
    watching.register_module(model)
    model(rows(0))
    data = pickle.dumps(model)
    assert b"smdebug" not in data
    copy = pickle.loads(data)
    torch.testing.assert_close(copy(rows(0)), model(rows(0)))
    watching.close()
    assert opened(watching).steps() == [0, 1]

"""A PyTorch hook changes nothing: not the weights, not the copies, not what comes after it."""

import copy
import gc
import io
import logging
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_models import (
    LABELS,
    Net,
    array,
    assert_same,
    hook,
    images,
    net,
    nn,
    opened,
    rows,
    small,
    trained,
)

import smdebug.pytorch as smd
from rule_core.frameworks.pytorch.torch_access import TorchAccess

torch = pytest.importorskip("torch", reason="torch is not installed.")
BATCHES = [images(step) for step in range(4)]
REDUCED = smd.ReductionConfig(reductions=["min", "max", "mean", "std"], norms=["l2"])


@pytest.mark.parametrize("config", [None, REDUCED], ids=["values", "reductions"])
def test_weights_and_random_numbers_are_those_of_a_training_without_it(
    tmp_path: Path, config: Any
) -> None:
    plain = trained(net(), BATCHES)
    state = torch.get_rng_state()
    watching = hook(tmp_path, save_all=True, reduction_config=config)
    assert_same(plain, trained(net(), BATCHES, watched=watching))
    assert torch.equal(torch.get_rng_state(), state)
    assert opened(watching).steps() == [0, 1, 2, 3]


@pytest.mark.parametrize("method", ["copy", "reduce", "nbytes"])
def test_an_error_in_the_hook_is_logged_once_and_changes_no_weight(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    method: str,
) -> None:
    plain = trained(net(), BATCHES)

    def broken(*_: object) -> None:
        msg = "broken"
        raise LookupError(msg)

    monkeypatch.setattr(TorchAccess, method, broken)
    config = REDUCED if method == "reduce" else None
    options = {"save_all": True, "reduction_config": config}
    watching = hook(tmp_path / "on", on_error="disable", **options)
    with caplog.at_level(logging.ERROR):
        assert_same(plain, trained(net(), BATCHES, watched=watching))
    assert [one.getMessage() for one in caplog.records] == [
        "The hook is off for the rest of the training job: LookupError: broken"
    ]
    assert watching.is_off
    with pytest.raises(LookupError, match="broken"):
        trained(net(), BATCHES, watched=hook(tmp_path / "raise", **options))


def hooks_of(model: Any) -> list[Any]:
    """Return all that is hooked to a model's modules and parameters."""
    found = [
        one
        for module in model.modules()
        for hooks in (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)
        for one in hooks.values()
    ]
    return found + [
        one
        for parameter in model.parameters()
        for one in (parameter._backward_hooks or {}).values()
    ]


def test_nothing_is_left_behind_by_a_closed_hook(tmp_path: Path) -> None:
    model, loss = net(), nn.CrossEntropyLoss()
    with hook(tmp_path, save_all=True) as watching:
        watching.register_module(model)
        watching.register_loss(loss)
        loss(model(images(0)), LABELS).backward()
        assert len(hooks_of(model)) > 30
    assert hooks_of(model) == hooks_of(loss) == []
    model(images(1))
    assert opened(watching).steps() == [0]


@pytest.mark.parametrize("options", [{}, {"save_all": True}, {"preset": "auto"}])
def test_a_closed_hook_keeps_no_model_alive(tmp_path: Path, options: dict[str, Any]) -> None:
    model = net()
    trained(model, BATCHES, watched=(watching := hook(tmp_path, **options)))
    watching.close()
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None


def test_a_copy_of_a_model_is_not_watched(tmp_path: Path) -> None:
    model, watching = small(), hook(tmp_path, save_all=True)
    watching.register_module(model)
    average = torch.optim.swa_utils.AveragedModel(model)
    outputs = []
    for step in range(2):
        outputs.append(model(rows(step)))
        outputs[-1].sum().backward()
        copies = (copy.deepcopy(model), average)
        for one in copies:
            assert torch.equal(one(rows(5)), model.forward(rows(5))) or one is average
            one(rows(5)).sum().backward()
        average.update_parameters(model)
    trial = opened(watching)
    assert trial.steps() == [0, 1]
    for step, output in enumerate(outputs):
        np.testing.assert_array_equal(
            trial.tensor("Sequential_output_0").value(step), array(output)
        )


def test_a_copy_can_be_watched_by_itself(tmp_path: Path) -> None:
    model, watching = small(), hook(tmp_path / "1")
    watching.register_module(model)
    twin = copy.deepcopy(model)
    other = hook(tmp_path / "2", save_all=True)
    other.register_module(twin)
    twin(rows(0))
    assert opened(other).steps() == [0]
    assert opened(watching).steps() == []


def test_a_watched_model_can_be_saved_and_loaded(tmp_path: Path) -> None:
    model, watching = net(), hook(tmp_path, save_all=True)
    watching.register_module(model)
    model(images(0)).sum().backward()
    for whole in (False, True):
        file = io.BytesIO()
        torch.save(model if whole else model.state_dict(), file)
        file.seek(0)
        loaded = torch.load(file, weights_only=not whole)
        restored = loaded if whole else Net()
        restored.load_state_dict(model.state_dict() if whole else loaded)
        restored(images(1))
        for name, one in restored.state_dict().items():
            assert torch.equal(one, model.state_dict()[name])
    assert opened(watching).steps() == [0]


def test_a_hook_of_the_user_that_raises(tmp_path: Path) -> None:
    model, watching = small(), hook(tmp_path, save_all=True)
    watching.register_module(model)

    def bad(*_: object) -> None:
        msg = "the user's own"
        raise ValueError(msg)

    handle = model[1].register_forward_hook(bad)
    with pytest.raises(ValueError, match="the user's own"):
        model(rows(0))
    handle.remove()
    model(rows(1))
    trial = opened(watching)
    assert trial.steps() == [0, 1]
    assert "2_output_0" not in trial.tensor_names(step=0)
    assert "2_output_0" in trial.tensor_names(step=1)


class Rows(torch.utils.data.Dataset):
    """Ten batches."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> Any:
        return rows(index)


# Forking beside threads of PyTorch's own is what its loaders do.
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork")
def test_workers_that_load_data(tmp_path: Path) -> None:
    model, watching = small(), hook(tmp_path, save_all=True)
    watching.register_module(model)
    model(rows(0))  # the writing thread is there before the workers are forked off
    loader = torch.utils.data.DataLoader(
        Rows(), batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=60
    )
    for batch in loader:
        model(batch).sum().backward()
    trial = opened(watching)
    assert trial.steps() == list(range(11))
    for step in range(10):
        found = trial.tensor("Sequential_input_0").value(step + 1)
        np.testing.assert_array_equal(found, array(rows(step)))


def test_a_hook_without_a_registered_model(tmp_path: Path) -> None:
    watching = hook(tmp_path)
    assert smd.get_hook() is watching
    assert opened(watching).steps() == []
    smd.del_hook()
    assert smd.get_hook() is None

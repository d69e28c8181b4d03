"""Gradients that a PyTorch hook saves are those of each step's own backward."""

from pathlib import Path
from typing import Any

import pytest
from torch_models import array, assert_same, gradients, hook, nn, opened, read, rows, small

import smdebug.pytorch as smd

torch = pytest.importorskip("torch", reason="torch is not installed.")
checkpoint = torch.utils.checkpoint.checkpoint


def saved(trial: Any, step: int) -> dict[str, Any]:
    """Return the gradients saved at a step."""
    return read(trial, step, trial.tensor_names(step=step, collection="gradients"))


def of_gradients(root: Path, model: Any, **options: Any) -> Any:
    """Return a hook that saves the gradients of a model."""
    watching = hook(root, include_collections=["gradients"], **options)
    watching.register_module(model)
    return watching


def test_each_step_has_its_own_gradient_while_they_accumulate(tmp_path: Path) -> None:
    model = small()
    expected = [gradients(model, model(rows(step)).square().sum()) for step in range(3)]
    watching = of_gradients(tmp_path, model)
    for step in range(3):
        model(rows(step)).square().sum().backward()
    trial = opened(watching)
    for step in range(3):
        assert_same(expected[step], saved(trial, step))
    total = sum(one["gradient/Sequential_2.bias"] for one in expected)
    assert array(model[2].bias.grad) == pytest.approx(total)


def test_the_last_of_two_backwards_in_a_step(tmp_path: Path) -> None:
    model = small()
    output = model(rows(0))
    expected = gradients(model, output.square().sum())
    watching = of_gradients(tmp_path, model)
    output = model(rows(0))
    output.sum().backward(retain_graph=True)
    output.square().sum().backward()
    assert_same(expected, saved(opened(watching), 0))


def test_a_frozen_parameter_has_none_until_it_is_trained(tmp_path: Path) -> None:
    model = small()
    model[0].requires_grad_(requires_grad=False)
    watching = of_gradients(tmp_path, model)
    expected = []
    for step in range(3):
        model[0].requires_grad_(requires_grad=step == 1)
        loss = model(rows(step)).square().sum()
        expected.append(gradients(model, loss))
        loss = model(rows(step)).square().sum()
        loss.backward()
    trial = opened(watching)
    assert [len(one) for one in expected] == [2, 4, 2]
    for step, values in enumerate(expected):
        assert_same(values, saved(trial, 2 * step + 1))


def test_parameters_that_are_all_frozen_at_first(tmp_path: Path) -> None:
    model = small().requires_grad_(requires_grad=False)
    watching = of_gradients(tmp_path, model)
    model(rows(0))
    model.requires_grad_(requires_grad=True)
    model(rows(0)).sum().backward()
    expected = {f"gradient/Sequential_{n}": array(p.grad) for n, p in model.named_parameters()}
    assert_same(expected, saved(opened(watching), 1))


def test_a_layer_that_is_added_during_the_training(tmp_path: Path) -> None:
    model = small()
    watching = of_gradients(tmp_path, model, include_regex=r"Sequential_.*weight")
    model(rows(0)).sum().backward()
    model.append(nn.Linear(3, 2))
    model(rows(1)).sum().backward()
    trial = opened(watching)
    expected = {
        "gradient/Sequential_3.bias": array(model[3].bias.grad),
        "Sequential_3.weight": array(model[3].weight),
    }
    assert_same(expected, read(trial, 1, expected))
    assert not [name for name in trial.tensor_names(step=0) if "_3" in name]


def test_parameters_that_are_made_by_the_first_forward(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU())
    watching = hook(tmp_path, save_all=True)
    watching.register_module(model)
    for _ in range(2):
        model.zero_grad()
        model(rows(0)).sum().backward()
    trial = opened(watching)
    assert "Sequential_0.weight" not in trial.tensor_names(step=0)
    expected = {
        "Sequential_0.weight": array(model[0].weight),
        "gradient/Sequential_0.weight": array(model[0].weight.grad),
    }
    assert_same(expected, read(trial, 1, expected))


class Tied(nn.Module):
    """Two layers of one weight, and a module that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.twice = nn.Linear(4, 4)
        self.again = self.twice

    def forward(self, x: Any) -> Any:
        return self.again(self.twice(self.second(self.first(x))))


def test_tied_weights_and_shared_modules_have_one_name_and_the_whole_gradient(
    tmp_path: Path,
) -> None:
    model = Tied()
    watching = hook(tmp_path, save_all=True)
    watching.register_module(model)
    model(rows(0)).square().sum().backward()
    trial = opened(watching)
    expected = {f"gradient/Tied_{n}": array(p.grad) for n, p in model.named_parameters()}
    assert sorted(expected) == [
        f"gradient/Tied_{name}" for name in ("first.weight", "twice.bias", "twice.weight")
    ]
    assert_same(expected, saved(trial, 0))
    assert trial.tensor_names(collection="weights") == ["Tied_first.weight", "Tied_twice.weight"]
    outputs = trial.tensor_names(regex="^[^T].*output")
    assert outputs == ["first_output_0", "second_output_0", "twice_output_0", "twice_output_1"]


def test_a_module_inside_two_others_is_watched_once(tmp_path: Path) -> None:
    torch.manual_seed(0)
    shared = nn.Linear(4, 4)
    model = nn.Sequential(nn.Sequential(shared), nn.Sequential(shared))
    watching = hook(tmp_path, save_all=True)
    watching.register_module(model)
    model(rows(0)).sum().backward()
    trial = opened(watching)
    once = shared(rows(0))
    expected = {"0.0_output_0": array(once), "0.0_output_1": array(shared(once))}
    expected["gradient/Sequential_0.0.weight"] = array(shared.weight.grad)
    assert_same(expected, read(trial, 0, expected))
    assert not trial.tensor_names(regex=r"1\.0")


class Saving(nn.Module):
    """Computes a part again in the backward, to save memory."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head = small(), nn.Linear(3, 1)
        self.reentrant = reentrant

    def forward(self, x: Any) -> Any:
        return self.head(checkpoint(self.body, x, use_reentrant=self.reentrant))


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_is_computed_again_is_not_counted_again(tmp_path: Path, reentrant: bool) -> None:
    model = Saving(reentrant)
    watching = hook(tmp_path, save_all=True)
    watching.register_module(model)
    for step in range(2):
        model.zero_grad()
        model(rows(step).requires_grad_()).sum().backward()
    trial = opened(watching)
    assert trial.steps() == [0, 1]
    assert not trial.tensor_names(regex="put_1$")
    expected = {f"gradient/Saving_{n}": array(p.grad) for n, p in model.named_parameters()}
    assert_same(expected, saved(trial, 1))
    assert_same({"body_output_0": array(model.body(rows(1)))}, read(trial, 1, ["body_output_0"]))


def test_a_whole_model_that_is_computed_again_is_one_step(tmp_path: Path) -> None:
    model = small()
    watching = of_gradients(tmp_path, model)
    checkpoint(model, rows(0), use_reentrant=False).sum().backward()
    trial = opened(watching)
    assert trial.steps() == [0]
    expected = {f"gradient/Sequential_{n}": array(p.grad) for n, p in model.named_parameters()}
    assert_same(expected, saved(trial, 0))


@pytest.mark.parametrize("without", [torch.no_grad, torch.inference_mode])
def test_evaluation_without_gradients(tmp_path: Path, without: Any) -> None:
    model = small()
    watching = hook(tmp_path, save_all=True)
    watching.register_module(model)
    watching.set_mode(smd.modes.EVAL)
    with without():
        output = model(rows(0))
    watching.set_mode(smd.modes.TRAIN)
    model(rows(1)).sum().backward()
    trial = opened(watching)
    assert trial.tensor_names(step=0, collection="gradients") == []
    assert len(trial.tensor_names(step=1, collection="gradients")) == 4
    assert_same({"Sequential_output_0": array(output)}, read(trial, 0, ["Sequential_output_0"]))


def test_sparse_gradients(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(5, 3, sparse=True))
    watching = of_gradients(tmp_path, model)
    model(torch.tensor([[1, 2, 2]])).square().sum().backward()
    assert model[0].weight.grad.is_sparse
    expected = {"gradient/Sequential_0.weight": array(model[0].weight.grad)}
    assert_same(expected, saved(opened(watching), 0))


def test_weights_that_are_replaced_in_each_step_are_not_kept(tmp_path: Path) -> None:
    model = small()
    watching = of_gradients(tmp_path, model)
    expected = []
    for step in range(4):
        fast = {name: one * 2 for name, one in model.named_parameters()}
        loss = torch.func.functional_call(model, fast, (rows(step),)).square().sum()
        found = torch.autograd.grad(loss, list(fast.values()), retain_graph=True)
        expected.append(
            {f"gradient/Sequential_{n}": array(g) for n, g in zip(fast, found, strict=True)}
        )
        loss.backward()
        del loss
    assert len(watching._with_gradient) == 4
    trial = opened(watching)
    for step in range(4):
        assert_same(expected[step], saved(trial, step))


def test_gradients_of_several_models(tmp_path: Path) -> None:
    maker, judge = nn.Sequential(nn.Linear(4, 4)), small(1)
    watching = of_gradients(tmp_path, maker)
    watching.register_module(judge)
    judge(maker(rows(0))).square().sum().backward()
    expected = {f"gradient/Sequential_{n}": array(p.grad) for n, p in maker.named_parameters()}
    expected |= {f"gradient/Sequential:1_{n}": array(p.grad) for n, p in judge.named_parameters()}
    assert_same(expected, saved(opened(watching), 0))

"""What the hook saves of parameters that no optimizer holds, and what the rule says of it."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judging import judge

from torch_models import ALWAYS, LABELS, nn, opened, rows, small, torch  # isort: skip
from torch.nn import functional

import smdebug.pytorch as smd
from builtin_rules import ParametersWithoutOptimizer

STEPS = 6
Learn = Callable[[int], Any]


def adapted(model: Any) -> None:
    """Freeze a model, and put a trainable layer before its last one."""
    model.requires_grad_(False)
    model[1] = nn.Sequential(nn.Linear(4, 4), nn.ReLU())


def updated(model: Any, *optimizers: Any, x: Any = None) -> Learn:
    """Return a function that lets optimizers update a model at a step."""

    def learn(step: int) -> None:
        model.zero_grad()
        functional.cross_entropy(model(rows(step) if x is None else x), LABELS).backward()
        for optimizer in optimizers:
            optimizer.step()

    return learn


def sgd(parameters: Any) -> Any:
    return torch.optim.SGD([*parameters], 0.1)


def adapters_too_late(model: Any) -> Learn:
    optimizer = sgd(model.parameters())
    adapted(model)
    return updated(model, optimizer)


def copied(model: Any) -> Learn:
    return updated(model, sgd(copy.deepcopy(model).parameters()))


def head_replaced(model: Any) -> Learn:
    optimizer = sgd(model.parameters())
    model[2] = nn.Linear(4, 3)
    return updated(model, optimizer)


def kept_head_replaced_later(model: Any) -> Learn:
    optimizer, earlier = sgd(model.parameters()), []

    def learn(step: int) -> None:
        if step == 1:
            earlier.append(model[2])
            optimizer.zero_grad()
            model[2] = nn.Linear(4, 3)
        updated(model, optimizer)(step)

    return learn


def unfrozen(model: Any) -> Learn:
    model[0].requires_grad_(False)
    optimizer = sgd(model[2].parameters())

    def learn(step: int) -> None:
        model.requires_grad_(step > 0)
        model[2].requires_grad_(True)
        updated(model, optimizer)(step)

    return learn


FAULTS = {
    "adapters": (adapters_too_late, 0, 0, {"1.0.weight": 1, "1.0.bias": 1}),
    "copy": (copied, 0, 4, {"0.weight": 1, "0.bias": 1, "2.weight": 1, "2.bias": 1}),
    "head": (head_replaced, 2, 2, {"2.weight": 1, "2.bias": 1}),
    "kept-head": (kept_head_replaced_later, 2, 2, {"2.weight": 1, "2.bias": 1}),
    "unfrozen": (unfrozen, 2, 0, {"0.weight": 2, "0.bias": 2}),
}


def adapters_in_time(model: Any) -> Learn:
    adapted(model)
    return updated(model, sgd(item for item in model.parameters() if item.requires_grad))


def with_frozen_layers(model: Any) -> Learn:
    model[0].requires_grad_(False)
    return updated(model, sgd(model.parameters()))


def adapters_by_hand(model: Any) -> Learn:
    learn = adapters_too_late(model)

    def learn_and_update(step: int) -> None:
        learn(step)
        for parameter in model[1].parameters():
            parameter.data.sub_(parameter.grad)

    return learn_and_update


def adapters_wait(model: Any) -> Learn:
    learn = adapters_too_late(model)
    optimizer = sgd(model[1].parameters())

    def learn_and_wait(step: int) -> None:
        learn(step)
        if step == STEPS - 1:
            optimizer.step()

    return learn_and_wait


def head_alone(model: Any) -> Learn:
    return updated(model, sgd(model[2].parameters()))


def in_turn(model: Any) -> Learn:
    optimizers = [sgd(model[index].parameters()) for index in (0, 2)]
    return lambda step: updated(model, optimizers[step % 2])(step)


def by_hand_now_and_then(model: Any) -> Learn:
    optimizer = sgd(model[2].parameters())

    def learn(step: int) -> None:
        updated(model, optimizer)(step)
        if step % 2 == 0:
            with torch.no_grad():
                for parameter in model[0].parameters():
                    parameter.sub_(parameter.grad)

    return learn


def master_copies(model: Any) -> Learn:
    masters = [nn.Parameter(item.detach().double()) for item in model.parameters()]
    optimizer = sgd(masters)

    def learn(step: int) -> None:
        updated(model)(step)
        for master, parameter in zip(masters, model.parameters(), strict=True):
            master.grad = parameter.grad.double()
        optimizer.step()
        for master, parameter in zip(masters, model.parameters(), strict=True):
            parameter.data.copy_(master.data)

    return learn


def inputs_made(model: Any) -> Learn:
    x = nn.Parameter(rows(0))
    return updated(model, sgd([x]), x=x)


def another_optimizer_after_unfreezing(model: Any) -> Learn:
    optimizers = [sgd(model[2].parameters())]
    model[0].requires_grad_(False)

    def learn(step: int) -> None:
        if step == 2:
            model.requires_grad_(True)
            optimizers[:] = [sgd(model.parameters())]
        updated(model, *optimizers)(step)

    return learn


def replaced_and_added(model: Any) -> Learn:
    optimizer = sgd(model.parameters())
    model[2] = nn.Linear(4, 3)
    optimizer.add_param_group({"params": [*model[2].parameters()]})
    return updated(model, optimizer)


def average_kept(model: Any) -> Learn:
    average, learn = copy.deepcopy(model), head_and_stem(model)

    def learn_and_average(step: int) -> None:
        learn(step)
        for smooth, parameter in zip(average.parameters(), model.parameters(), strict=True):
            smooth.data.lerp_(parameter.data, 0.5)

    return learn_and_average


def head_and_stem(model: Any) -> Learn:
    return updated(model, sgd(model[0].parameters()), sgd(model[2].parameters()))


def accumulated(model: Any) -> Learn:
    optimizer = sgd(model.parameters())

    def learn(step: int) -> None:
        functional.cross_entropy(model(rows(step)), LABELS).backward()
        if step % 2:
            optimizer.step()
            optimizer.zero_grad()

    return learn


def scaled(model: Any) -> Learn:
    optimizer = sgd(model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)

    def learn(step: int) -> None:
        optimizer.zero_grad()
        scaler.scale(functional.cross_entropy(model(rows(step)), LABELS)).backward()
        scaler.step(optimizer)
        scaler.update()

    return learn


def tied(model: Any) -> Learn:
    model[2] = nn.Linear(4, 4)
    model[2].weight = model[0].weight
    return updated(model, sgd(model.parameters()))


def a_layer_skipped(model: Any) -> Learn:
    optimizer = sgd(model.parameters())

    def learn(step: int) -> None:
        optimizer.zero_grad()
        x = rows(step) if step % 2 else model[0](rows(step))
        functional.cross_entropy(model[2](x) + 0 * model(rows(0)).detach(), LABELS).backward()
        optimizer.step()

    return learn


HEALTHY = {
    "adapters": adapters_in_time,
    "frozen-layers-held": with_frozen_layers,
    "adapters-by-hand": adapters_by_hand,
    "adapters-wait": adapters_wait,
    "head-alone": head_alone,
    "in-turn": in_turn,
    "by-hand": by_hand_now_and_then,
    "master-copies": master_copies,
    "inputs": inputs_made,
    "another-optimizer": another_optimizer_after_unfreezing,
    "added-group": replaced_and_added,
    "average": average_kept,
    "two-optimizers": head_and_stem,
    "accumulated": accumulated,
    "scaled": scaled,
    "tied": tied,
    "unused-layers": a_layer_skipped,
}


def saved(root: Path, wired: Callable[[Any], Learn]) -> Any:
    """Train a model and return the trial with what is saved of optimizers."""
    model = small()
    learn = wired(model)
    with smd.Hook(
        root, include_collections=["optimizer"], save_config=ALWAYS, on_error="raise"
    ) as watching:
        watching.register_module(model)
        for step in range(STEPS):
            learn(step)
    return opened(watching)


@pytest.mark.parametrize(
    ("wired", "trained", "replaced", "flags"),
    [pytest.param(*case, id=name) for name, case in FAULTS.items()],
)
def test_parameters_in_no_optimizer_are_saved(
    wired: Callable[[Any], Learn],
    trained: int,
    replaced: int,
    flags: dict[str, int],
    tmp_path: Path,
) -> None:
    trial = saved(tmp_path, wired)
    last = STEPS - 1
    held = "optimizer/not_held/Sequential_"
    names = trial.tensor_names(step=last, regex=held)
    assert trial.tensor("optimizer/trained_parameters").value(last) == trained
    assert trial.tensor("optimizer/replaced_parameters").value(last) == replaced
    assert {name.removeprefix(held): trial.tensor(name).value(last) for name in names} == flags
    assert {*names} <= {*trial.tensor_names(collection="optimizer")}
    assert judge(ParametersWithoutOptimizer, tmp_path).met


@pytest.mark.parametrize("wired", [pytest.param(wired, id=name) for name, wired in HEALTHY.items()])
def test_healthy_optimizers(wired: Callable[[Any], Learn], tmp_path: Path) -> None:
    trial = saved(tmp_path, wired)
    assert trial.has_tensor("optimizer/trained_parameters")
    assert judge(ParametersWithoutOptimizer, tmp_path, patience=1).met == []

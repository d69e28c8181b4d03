"""What the hook measures of optimizers: rates, norms before and after clipping, scales, updates."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torch_models import ALWAYS, LABELS, nn, opened, rows, small, torch  # isort: skip
from torch import distributed
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.optim import optimizer as torch_optimizer
from torch.testing._internal.distributed import fake_pg

import smdebug.pytorch as smd
from smdebug.trials import create_trial


def train(
    watching: Any, model: Any, optimizer: Any, steps: int = 3, clip: float = 0.0
) -> list[Any]:
    """Train; return the norms of all gradients at each step."""
    criterion, norms = nn.CrossEntropyLoss(), []
    watching.register_module(model)
    for step in range(steps):
        optimizer.zero_grad()
        criterion(model(rows(step)), LABELS).backward()
        gradients = [parameter.grad.flatten() for parameter in model.parameters()]
        norms.append(float(torch.cat(gradients).norm()))
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return norms


def values(trial: Any, name: str) -> list[float]:
    """Return a scalar at each of its steps."""
    return [float(trial.tensor(name).value(step)) for step in trial.tensor(name).steps()]


def llm(root: Path, **options: Any) -> Any:
    """Return a hook with the preset."""
    options = {"preset": "llm", "save_config": ALWAYS, "on_error": "raise", **options}
    return smd.Hook(root, **options)


def test_norm_before_and_after_clipping(tmp_path: Path) -> None:
    model = small()
    watching = llm(tmp_path)
    norms = train(watching, model, torch.optim.SGD(model.parameters(), 0.5), clip=0.125)
    trial = opened(watching)
    np.testing.assert_allclose(values(trial, "optimizer/grad_norm"), norms, rtol=1e-5)
    np.testing.assert_allclose(values(trial, "optimizer/grad_norm_clipped"), 0.125, rtol=1e-4)
    assert values(trial, "optimizer/lr/0") == [0.5] * 3
    assert trial.tensor_names(collection="gradient_norms") == ["optimizer/grad_norm"]


def test_close_restores_what_was_patched(tmp_path: Path) -> None:
    functions = [nn.utils.clip_grad_norm_, nn.utils.clip_grad._clip_grads_with_norm_]
    scaling = [torch.amp.GradScaler.scale, torch.amp.GradScaler.update]
    hooks = len(torch_optimizer._global_optimizer_pre_hooks)
    watching = llm(tmp_path)
    watching.register_module(small())
    assert nn.utils.clip_grad._clip_grads_with_norm_ is not functions[1]
    watching.close()
    assert [nn.utils.clip_grad_norm_, nn.utils.clip_grad._clip_grads_with_norm_] == functions
    assert [torch.amp.GradScaler.scale, torch.amp.GradScaler.update] == scaling
    assert len(torch_optimizer._global_optimizer_pre_hooks) == hooks


def test_tensors_without_values_are_left_out(tmp_path: Path) -> None:
    with torch.device("meta"):
        model = small()
    watching = llm(tmp_path)
    watching.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    for step in range(2):
        model(rows(step).to("meta")).sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    names = opened(watching).tensor_names()
    assert "optimizer/lr/0" in names
    assert not [name for name in names if "norm" in name or "statistics" in name]


def test_norms_of_the_update(tmp_path: Path) -> None:
    model = small()
    before = model[0].weight.detach().clone()
    watching = llm(tmp_path)
    train(watching, model, torch.optim.SGD(model.parameters(), 0.5), steps=1)
    update, norm = opened(watching).tensor("optimizer/update_norm/Sequential_0.weight").value(0)
    assert norm == pytest.approx(float(before.norm()))
    assert update == pytest.approx(float((model[0].weight.detach() - before).norm()), rel=1e-5)
    assert opened(watching).tensor_names(collection="weights") == []


def test_several_optimizers_and_groups_are_numbered_on(tmp_path: Path) -> None:
    model, other = small(), small(1)
    watching = smd.Hook(tmp_path, save_config=ALWAYS, on_error="raise")
    groups = [
        {"params": [layer.weight], "lr": rate}
        for layer, rate in ((model[0], 0.25), (model[2], 0.5))
    ]
    first, second = torch.optim.SGD(groups), torch.optim.SGD(other.parameters(), 0.125)
    watching.register_optimizer(first)
    watching.register_optimizer(second)
    watching.register_module(model)
    (model(rows(0)).square().sum() + other(rows(0)).square().sum()).backward()
    first.step()
    second.step()
    trial = opened(watching)
    assert [values(trial, f"optimizer/lr/{index}") for index in range(3)] == [
        [0.25],
        [0.5],
        [0.125],
    ]
    assert trial.tensor_names(collection="gradient_norms") == [
        "optimizer/1/grad_norm",
        "optimizer/grad_norm",
    ]
    assert not [name for name in trial.tensor_names() if "update_norm" in name]


def test_without_a_preset_an_optimizer_adds_nothing(tmp_path: Path) -> None:
    model = small()
    watching = smd.Hook(tmp_path, save_config=ALWAYS, save_all=True)
    train(watching, model, torch.optim.SGD(model.parameters(), 0.5), steps=1)
    assert not [name for name in opened(watching).tensor_names() if name.startswith("optimizer")]


def test_scaler_that_skips_an_update(tmp_path: Path) -> None:
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    watching = llm(tmp_path)
    watching.register_module(model)
    norms = []
    for factor in (1.0, float("inf"), 1.0):
        optimizer.zero_grad()
        scaler.scale(model(rows(0)).square().mean() * factor).backward()
        scaler.unscale_(optimizer)
        gradients = [parameter.grad.flatten() for parameter in model.parameters()]
        norms.append(float(torch.cat(gradients).norm()))
        scaler.step(optimizer)
        scaler.update()
    trial = opened(watching)
    assert values(trial, "optimizer/loss_scale") == [1024.0, 1024.0, 512.0]
    assert values(trial, "optimizer/skipped") == [0, 1, 0]
    assert trial.tensor("optimizer/grad_norm").steps() == [0, 2]
    np.testing.assert_allclose(
        values(trial, "optimizer/grad_norm"), [norms[0], norms[2]], rtol=1e-5
    )


def test_accumulated_gradients(tmp_path: Path) -> None:
    """An update between saved steps is saved with the next one."""
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    watching = llm(tmp_path, save_config=smd.SaveConfig(save_interval=3))
    watching.register_module(model)
    for step in range(13):
        model(rows(step)).square().sum().backward()
        if step % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    trial = opened(watching)
    # Updates at 3, 7 and 11; step 0 has none, step 3 its own, 9 and 12 those before them.
    assert trial.tensor("optimizer/grad_norm").steps() == [3, 9, 12]
    assert trial.tensor("optimizer/lr/0").steps() == [3, 9, 12]


def test_closure_that_computes_the_gradients(tmp_path: Path) -> None:
    model = small()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
    watching = llm(tmp_path)
    watching.register_module(model)
    norms: list[float] = []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model(rows(0)).square().sum()
        loss.backward()
        norms.append(float(torch.cat([item.grad.flatten() for item in model.parameters()]).norm()))
        return loss

    optimizer.step(closure)
    assert values(opened(watching), "optimizer/grad_norm") == [pytest.approx(norms[0], rel=1e-5)]


@pytest.mark.parametrize(
    ("dtype", "rate", "expected"),
    [
        pytest.param(torch.bfloat16, 1e-6, 1.0, id="rounded-away"),
        pytest.param(torch.bfloat16, 1.0, 0.0, id="large"),
        pytest.param(torch.float32, 1e-6, None, id="float32"),
    ],
)
def test_elements_of_short_parameters_that_an_update_does_not_change(
    dtype: Any, rate: float, expected: float | None, tmp_path: Path
) -> None:
    model = nn.Linear(4, 4, bias=False).to(dtype)
    nn.init.ones_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), rate)
    watching = llm(tmp_path)
    watching.register_module(model)
    model(torch.ones(2, 4, dtype=dtype)).sum().backward()
    optimizer.step()
    trial = opened(watching)
    name = "optimizer/unchanged_share/Linear_weight"
    assert trial.has_tensor(name) is (expected is not None)
    if expected is not None:
        assert trial.tensor(name).value(0) == expected


def test_short_parameters_without_a_pull_and_with_sparse_gradients(tmp_path: Path) -> None:
    embedding = nn.Embedding(10, 4, sparse=True)
    model = nn.Sequential(embedding, nn.Flatten(), nn.Linear(8, 4), nn.Linear(4, 2))
    nn.init.zeros_(model.to(torch.bfloat16)[3].weight)  # nothing reaches the layers before it
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    watching = llm(tmp_path)
    watching.register_module(model)
    model(torch.tensor([[1, 2]])).sum().backward()
    optimizer.step()
    trial = opened(watching)
    assert trial.tensor("optimizer/unchanged_share/Sequential_2.weight").value(0) == 0
    assert trial.has_tensor("optimizer/update_norm/Sequential_0.weight")
    assert not trial.has_tensor("optimizer/unchanged_share/Sequential_0.weight")


def test_sparse_frozen_and_missing_gradients(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Embedding(10, 4, sparse=True), nn.Flatten(), nn.Linear(8, 2))
    model[2].bias.requires_grad_(requires_grad=False)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    watching = llm(tmp_path)
    watching.register_module(model)
    optimizer.step()  # no gradient at all
    model(torch.tensor([[1, 1]])).sum().backward()
    expected = torch.cat(
        [model[0].weight.grad.to_dense().flatten(), model[2].weight.grad.flatten()]
    )
    optimizer.step()
    trial = opened(watching)
    found = values(trial, "optimizer/grad_norm")
    assert found == [pytest.approx(float(expected.norm()), rel=1e-5)]
    assert trial.tensor("parameters/requires_grad/Sequential_2.bias").value(0) == 0
    assert trial.tensor("parameters/requires_grad/Sequential_2.weight").value(0) == 1


def loop(order: str, optimizer: Any, model: Any, each: int = 1) -> None:
    """Train for 6 batches: `z` zeroes, `Z` in place, `f` goes forward, `b` back, `s` updates."""
    for step in range(6):
        for letter in order:
            if letter in "zZ" and step % each == 0:
                optimizer.zero_grad(set_to_none=letter == "z")
            elif letter == "f":
                loss = model(rows(step)).square().sum()
            elif letter == "g":
                torch.autograd.grad(loss, model.parameters(), retain_graph=True)
            elif letter == "b":
                loss.backward()
            elif letter == "s" and step % each == each - 1:
                optimizer.step()


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize(
    ("order", "each", "steps", "is_stale"),
    [
        ("fbs", 1, [1, 2, 3, 4, 5], True),
        ("fbs", 2, [2, 4], True),
        ("zfbs", 1, [1, 2, 3, 4, 5], False),
        ("fZbs", 1, [1, 2, 3, 4, 5], False),
        ("fgzbs", 1, [1, 2, 3, 4, 5], False),
        ("fbsz", 1, [1, 2, 3, 4, 5], False),
        ("Zfbs", 3, [3], False),
    ],
)
def test_gradients_that_an_update_has_left(
    kind: str, order: str, each: int, steps: list[int], is_stale: bool, tmp_path: Path
) -> None:
    model = small()
    watching = llm(tmp_path)
    watching.register_module(model)
    loop(order, getattr(torch.optim, kind)(model.parameters(), 0.001), model, each)
    trial = opened(watching)
    name = "optimizer/stale_grad_norm"
    assert trial.tensor(name).steps() == steps
    assert all((value > 0) is is_stale for value in values(trial, name))
    assert name in trial.tensor_names(collection="optimizer")
    assert not any(parameter._post_accumulate_grad_hooks for parameter in model.parameters())


def test_gradients_that_an_adversary_has_left_are_not_measured(tmp_path: Path) -> None:
    generator, discriminator = nn.Linear(4, 4), small(1)
    watching = llm(tmp_path)
    watching.register_module(discriminator)
    one, other = (torch.optim.Adam(net.parameters()) for net in (discriminator, generator))
    for step in range(4):
        one.zero_grad()
        discriminator(rows(step)).sum().backward()
        discriminator(generator(rows(step)).detach()).square().sum().backward()
        one.step()
        other.zero_grad()
        discriminator(generator(rows(step))).sum().backward()
        other.step()
    # Nothing is known of the generator's optimizer before its first update.
    assert opened(watching).tensor("optimizer/stale_grad_norm").steps() == [2]


@pytest.mark.parametrize("is_cleared", [True, False])
def test_gradients_that_a_closure_has_left(is_cleared: bool, tmp_path: Path) -> None:
    model = small()
    optimizer = torch.optim.LBFGS(model.parameters(), 0.001, max_iter=2)
    watching = llm(tmp_path)
    watching.register_module(model)

    def closure() -> Any:
        if is_cleared:
            optimizer.zero_grad()
        loss = model(rows(0)).square().sum()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    left = values(opened(watching), "optimizer/stale_grad_norm")
    assert [value == 0 for value in left] == [is_cleared] * 2


@pytest.fixture
def _two_workers() -> Iterator[None]:
    distributed.init_process_group("fake", store=fake_pg.FakeStore(), rank=0, world_size=2)
    yield
    distributed.destroy_process_group()


@pytest.mark.usefixtures("_two_workers")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("clip", [0.0, 0.125])
def test_shards_need_no_operation_of_the_other_worker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, clip: float
) -> None:
    def operations(root: Path | None) -> dict[Any, int]:
        model = fully_shard(small())
        optimizer = torch.optim.SGD(model.parameters(), 0.5)
        watching = llm(root) if root else None
        if watching:
            watching.register_module(model)
        with CommDebugMode() as counted:
            model(rows(0)).square().sum().backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            if watching:
                watching.close()
        return dict(counted.get_comm_counts())

    alone = operations(None)
    assert operations(tmp_path) == alone
    assert sum(alone.values()) > 1
    names = create_trial(tmp_path).tensor_names(collection="gradient_norms")
    assert names == (["optimizer/grad_norm"] if clip else [])
    assert ("The gradient norm is not saved" in caplog.text) == (not clip)
    marked = create_trial(tmp_path).tensor_names(regex="^parameters/is_sharded/.*weight$")
    assert len(marked) == sum(isinstance(module, nn.Linear) for module in small().modules())


def test_gradient_norms_come_with_skipped_updates_but_no_norms_of_updates(tmp_path: Path) -> None:
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    scaler = torch.amp.GradScaler("cpu")
    watching = smd.Hook(
        tmp_path,
        on_error="raise",
        collections=[smd.Collection("gradient_norms", save_config=ALWAYS)],
        include_collections=["gradient_norms"],
    )
    watching.register_module(model)
    scaler.scale(model(rows(0)).square().mean()).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    scaler.step(optimizer)
    scaler.update()
    trial = opened(watching)
    measured = ["optimizer/grad_norm", "optimizer/grad_norm_clipped", "optimizer/skipped"]
    assert trial.tensor_names() == measured
    assert trial.tensor_names(collection="optimizer") == measured[1:]

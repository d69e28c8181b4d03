"""Under automatic mixed precision gradients are saved as they would be without a loss scale."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_models import array, assert_same, gradients, hook, opened, read, rows, small

from rule_core.frameworks.pytorch.loss_scaling import LossScaling

torch = pytest.importorskip("torch", reason="torch is not installed.")
STEPS = 3


def scaler(**options: Any) -> Any:
    return torch.amp.GradScaler("cpu", **{"init_scale": 2.0**10, "growth_interval": 1} | options)


def loss_of(model: Any, step: int, dtype: Any) -> Any:
    with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
        return model(rows(step)).float().square().sum()


def trained(root: Path, dtype: Any, scaling: Any, early: bool) -> tuple[Any, list[dict[str, Any]]]:
    """Train under mixed precision; return the trial and the gradients without a scale."""
    model, expected = small(), []
    made = scaling() if early else None
    watching = hook(root, include_collections=["gradients"])
    watching.register_module(model)
    made = made or scaling()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for step in range(STEPS):
        twin = small()
        twin.load_state_dict(model.state_dict())
        expected.append(gradients(twin, loss_of(twin, step, dtype)))
        optimizer.zero_grad()
        made.scale(loss_of(model, step, dtype)).backward()
        made.step(optimizer)
        made.update()
    return opened(watching), expected


@pytest.mark.parametrize("early", [True, False], ids=["before the hook", "after the hook"])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(None, 0), (torch.bfloat16, 1e-2), (torch.float16, 1e-2)], ids=str
)
def test_gradients_are_unscaled(tmp_path: Path, dtype: Any, tolerance: float, early: bool) -> None:
    trial, expected = trained(tmp_path, dtype, scaler, early)
    for step in range(STEPS):
        found = read(trial, step)
        assert sorted(found) == sorted(expected[step])
        for name, value in expected[step].items():
            assert value.any()
            np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=tolerance / 10)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast_without_a_scaler(tmp_path: Path, dtype: Any) -> None:
    model = small()
    watching = hook(tmp_path, save_all=True)
    watching.register_module(model)
    with torch.autocast("cpu", dtype=dtype):
        output = model(rows(0))
    output.float().sum().backward()
    found = read(opened(watching), 0)
    wide = torch.float32 if dtype is torch.bfloat16 else dtype
    expected = {
        "Sequential_output_0": array(output.to(wide)),
        "Sequential_0.weight": array(model[0].weight),
        "gradient/Sequential_0.weight": array(model[0].weight.grad),
    }
    assert output.dtype is dtype
    assert_same(expected, {name: found[name] for name in expected})


def test_a_scaler_that_is_off_changes_nothing(tmp_path: Path) -> None:
    trial, expected = trained(tmp_path, None, lambda: scaler(enabled=False), early=True)
    for step in range(STEPS):
        assert_same(expected[step], read(trial, step))


class Doubling:
    """A scaler of another library."""

    def get_scale(self) -> float:
        return 8.0


def test_a_scaler_of_another_class_is_named(tmp_path: Path) -> None:
    model = small()
    watching = hook(tmp_path, include_collections=["gradients"])
    watching.register_module(model)
    watching.register_scaler(Doubling())
    expected = gradients(model, loss_of(model, 0, None))
    (loss_of(model, 0, None) * 8).backward()
    assert_same(expected, read(opened(watching), 1))


def test_only_the_steps_that_scale_are_unscaled(tmp_path: Path) -> None:
    model, scaling = small(), scaler()
    expected = gradients(model, loss_of(model, 0, None))
    watching = hook(tmp_path, include_collections=["gradients"])
    watching.register_module(model)
    scaling.scale(loss_of(model, 0, None)).backward()
    loss_of(model, 0, None).backward()
    trial = opened(watching)
    assert_same(expected, read(trial, 0))
    assert_same(expected, read(trial, 1))


def test_a_scale_that_changes_within_a_step(tmp_path: Path) -> None:
    model, scaling = small(), scaler()
    expected = gradients(model, loss_of(model, 0, None))
    watching = hook(tmp_path, include_collections=["gradients"])
    watching.register_module(model)
    loss = loss_of(model, 0, None)
    scaling.scale(loss).backward(retain_graph=True)
    scaling.update(2.0**5)
    scaling.scale(loss).backward()
    assert_same(expected, read(opened(watching), 0))


def test_gradients_that_overflow_are_saved_as_they_are(tmp_path: Path) -> None:
    model, scaling = small(), scaler(init_scale=float(2**127))
    watching = hook(tmp_path, include_collections=["gradients"])
    watching.register_module(model)
    scaling.scale(loss_of(model, 0, None) * 1e6).backward()
    found = read(opened(watching), 0)["gradient/Sequential_2.bias"]
    assert not np.isfinite(found).any()


def test_the_method_is_watched_only_as_long_as_a_hook_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_watching", "_patches"):  # without those of other tests
        monkeypatch.setattr(LossScaling, name, [])
    plain = torch.amp.GradScaler.scale
    first, second = hook(tmp_path / "1"), hook(tmp_path / "2")
    assert torch.amp.GradScaler.scale is plain
    first.register_module(small())
    second.register_module(small())
    assert torch.amp.GradScaler.scale is not plain
    first.close()
    first.close()
    assert torch.amp.GradScaler.scale is not plain
    second.close()
    assert torch.amp.GradScaler.scale is plain

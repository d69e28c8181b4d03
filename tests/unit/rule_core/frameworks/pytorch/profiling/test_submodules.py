"""Times of the modules inside of models: in detailed steps only, and without any trace of them."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed.")

from recorded_profiles import events
from torch.utils.checkpoint import checkpoint
from torch_profiles import model, profiled, steps

FORWARD, BACKWARD = "Forward-SubModuleInternal", "Backward-SubModuleInternal"
DETAILED = {"DetailedProfilingConfig": {"StartStep": 1, "NumSteps": 1}}


def names(folder: Path, phase: str) -> list[str]:
    return [event.event_name for event in events(folder, phase)]


def callbacks(module: Any) -> int:
    return sum(
        len(hooks)
        for each in module.modules()
        for hooks in (each._forward_hooks, each._forward_pre_hooks, each._backward_hooks)
    ) + sum(len(parameter._backward_hooks or ()) for parameter in module.parameters())


def test_modules_have_events_in_detailed_steps(tmp_path: Path) -> None:
    module = model()
    hook = profiled(tmp_path, module, **DETAILED)
    steps(module, 4)
    hook.close()
    assert names(tmp_path, FORWARD) == ["0", "1", "2"]
    assert names(tmp_path, BACKWARD) == ["2", "1", "0"]
    outer = {event.event_phase: event for event in events(tmp_path)[::-1]}
    assert outer["Forward"].event_args == outer["Forward"].event_args


def test_nothing_is_left_after_the_range(tmp_path: Path) -> None:
    module = model()
    hook = profiled(tmp_path, module, **DETAILED)
    before = callbacks(module)
    counts: list[int] = []
    steps(module, 5, lambda _: counts.append(callbacks(module)))
    # In the step after the range they are removed at its beginning.
    assert counts[:2] == counts[3:] == [before] * 2
    assert counts[2] > before
    hook.close()
    assert callbacks(module) == 0


def test_inplace_operations_and_recomputed_modules(tmp_path: Path) -> None:
    inside = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(inplace=True))

    class Recomputing(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = inside

        def forward(self, x: Any) -> Any:
            return checkpoint(self.inside, x, use_reentrant=False)

    module = Recomputing()
    hook = profiled(tmp_path, module, **DETAILED)
    steps(module, 3)
    hook.close()
    assert Counter(names(tmp_path, FORWARD)) == {"inside": 1, "inside.0": 1, "inside.1": 1}
    assert "inside" in names(tmp_path, BACKWARD)


def test_the_trained_weights_are_the_same_to_the_bit(tmp_path: Path) -> None:
    plain, module = model(), model()
    steps(plain, 4)
    hook = profiled(tmp_path, module, **DETAILED)
    steps(module, 4)
    hook.close()
    pairs = zip(plain.parameters(), module.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_an_error_in_a_forward_reaches_the_training(tmp_path: Path) -> None:
    module = model()
    hook = profiled(tmp_path, module, **DETAILED)
    steps(module, 1)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        module(torch.ones(1, 5))
    module(torch.ones(1, 4))
    hook.close()

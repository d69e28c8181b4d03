"""Phases of PyTorch's steps: forward, backward and update, without any change of the training."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed.")

from rule_core.frameworks.pytorch.profiling import step_phases
from rule_core.modes import ModeKeys
from rule_core.profiler.traces.event import TraceEvent
from rule_core.trials.profiler_trial import ProfilerTrial
from smdebug.pytorch import Hook

STEPS = 5
STEP = "Step:ModeKeys.TRAIN"
BACKWARD = "Backward(post-forward)"


def model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


def train(module: Any, hook: Hook | None = None, *, steps: int = STEPS) -> list[Any]:
    """Train a model with momentum; return its parameters."""
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        if hook is not None:
            hook.set_mode(ModeKeys.TRAIN)
        optimizer.zero_grad()
        module(torch.randn(3, 4, generator=generator)).square().mean().backward()
        optimizer.step()
        if hook is not None:
            hook.set_mode(ModeKeys.EVAL)
        with torch.no_grad():
            module(torch.ones(1, 4))
    return [parameter.detach().clone() for parameter in module.parameters()]


def profiled(folder: Path, **options: Any) -> Hook:
    config = {"ProfilingParameters": {"LocalPath": str(folder / "profile")}}
    return Hook(folder / "trial", profiler_config=config, on_error="raise", **options)


def events(folder: Path) -> list[TraceEvent]:
    trial = ProfilerTrial("job", str(folder / "profile"))
    trial.refresh()
    return trial.framework_events(0, 1 << 60)


def test_phases_lie_in_their_steps_one_after_the_other(tmp_path: Path) -> None:
    hook, module = profiled(tmp_path), model()
    hook.register_module(module)
    train(module, hook)
    hook.close()
    found = events(tmp_path)
    assert Counter(event.event_phase for event in found) == {
        STEP: STEPS,
        "Step:ModeKeys.EVAL": STEPS,
        "Forward": 2 * STEPS,
        BACKWARD: STEPS,
        "Optimizer": STEPS,
    }
    for step in (event for event in found if event.event_phase == STEP):
        inside = [
            event
            for event in sorted(found, key=lambda event: event.start_time)
            if step.start_time <= event.start_time <= step.end_time and event is not step
        ]
        assert [event.event_phase for event in inside] == ["Forward", BACKWARD, "Optimizer"]
        ends = [event.end_time for event in inside]
        assert ends == sorted(ends)
        assert ends[-1] == step.end_time


def test_the_trained_weights_are_the_same_to_the_bit(tmp_path: Path) -> None:
    plain = train(model())
    hook, module = profiled(tmp_path), model()
    hook.register_module(module)
    with_profiler = train(module, hook)
    hook.close()
    assert all(torch.equal(a, b) for a, b in zip(plain, with_profiler, strict=True))


def test_nothing_is_left_in_the_model_and_the_optimizers(tmp_path: Path) -> None:
    hook, module = profiled(tmp_path), model()
    hook.register_module(module)
    train(module, hook)
    hook.close()
    count = len(events(tmp_path))
    train(module)
    assert len(events(tmp_path)) == count
    assert not module._forward_hooks
    assert not module._forward_pre_hooks
    assert torch.autograd._engine_run_backward is torch.autograd.graph._engine_run_backward


@pytest.mark.parametrize("is_reentrant", [True, False])
def test_a_recomputed_forward_is_part_of_the_backward(tmp_path: Path, is_reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    hook, module = profiled(tmp_path), model()
    hook.register_module(module)
    x = torch.ones(3, 4, requires_grad=True)
    done: list[int] = []  # us, after the backward of the module
    x.register_hook(lambda _: done.append(hook.profiler.now_us()))
    for _ in range(2):
        checkpoint(module, x, use_reentrant=is_reentrant).sum().backward()
    hook.close()
    found = events(tmp_path)
    assert sum(event.event_phase == "Forward" for event in found) == 2
    backwards = [event for event in found if event.event_phase == BACKWARD]
    for event, done_us in zip(backwards, done, strict=True):
        assert event.start_time < done_us <= event.end_time


def test_gradient_accumulation_has_one_backward_a_step(tmp_path: Path) -> None:
    hook, module = profiled(tmp_path), model()
    hook.register_module(module)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for step in range(4):
        module(torch.ones(3, 4)).sum().backward()
        if step % 2:
            optimizer.step()
    hook.close()
    counts = Counter(event.event_phase for event in events(tmp_path))
    assert (counts[BACKWARD], counts["Optimizer"]) == (4, 2)


def test_outputs_without_gradients_have_no_backward(tmp_path: Path) -> None:
    hook = profiled(tmp_path)
    module = torch.nn.Identity()
    hook.register_module(module)
    module({"a": torch.ones(1), "b": None})
    module(None)
    hook.close()
    counts = Counter(event.event_phase for event in events(tmp_path))
    assert (counts["Forward"], counts[BACKWARD]) == (2, 0)


def test_derivatives_in_the_forward_are_no_backward(tmp_path: Path) -> None:
    class Field(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            [force] = torch.autograd.grad(x.square().sum(), x, create_graph=True)
            return force

    hook, module = profiled(tmp_path), Field()
    hook.register_module(module)
    for _ in range(2):
        module(torch.ones(3, requires_grad=True)).sum().backward()
    hook.close()
    assert Counter(event.event_phase for event in events(tmp_path))[BACKWARD] == 2


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_steps_have_all_phases(tmp_path: Path) -> None:
    hook, module = profiled(tmp_path), model()
    hook.register_module(module)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    @torch.compile(backend="eager")
    def step() -> None:
        module(torch.ones(3, 4)).sum().backward()
        optimizer.step()

    for _ in range(2):
        step()
    hook.close()
    counts = Counter(event.event_phase for event in events(tmp_path))
    assert (counts["Forward"], counts[BACKWARD], counts["Optimizer"]) == (2, 2, 2)


def test_a_backward_that_fails_ends_and_its_error_is_raised(tmp_path: Path) -> None:
    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(_: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(*_: Any) -> Any:
            raise ArithmeticError

    hook, module = profiled(tmp_path), model()
    hook.register_module(module)
    output = module(torch.ones(3, 4))
    with pytest.raises(ArithmeticError):
        Failing.apply(output).sum().backward()
    failed_us = hook.profiler.now_us()
    output.sum().backward()
    hook.close()
    failed, repeated = (event for event in events(tmp_path) if event.event_phase == BACKWARD)
    assert failed.end_time <= failed_us <= repeated.start_time


def test_a_pytorch_without_the_function_trains_without_backwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(step_phases, "_RUN", "run_in_another_way")
    caplog.set_level("DEBUG", "smdebug.hook")
    plain = train(model())
    hook, module = profiled(tmp_path), model()
    hook.register_module(module)
    trained = train(module, hook)
    hook.close()
    assert all(torch.equal(a, b) for a, b in zip(plain, trained, strict=True))
    assert not hasattr(torch.autograd, "run_in_another_way")
    counts = Counter(event.event_phase for event in events(tmp_path))
    assert (counts["Forward"], counts[BACKWARD], counts["Optimizer"]) == (2 * STEPS, 0, STEPS)
    messages = [record.message for record in caplog.records if "Backwards" in record.message]
    assert messages == ["Backwards are not timed: PyTorch has no run_in_another_way."]


def test_a_later_patch_of_another_library_stays_and_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Restored after the test, whatever it leaves.
    monkeypatch.setattr(torch.autograd, "_engine_run_backward", torch.autograd._engine_run_backward)
    hook, module = profiled(tmp_path), model()
    hook.register_module(module)
    inner, calls = torch.autograd._engine_run_backward, 0

    def counting(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        return inner(*args, **kwargs)

    torch.autograd._engine_run_backward = counting
    train(module, hook)
    hook.close()
    assert torch.autograd._engine_run_backward is counting
    before = len(events(tmp_path))
    train(module)
    assert calls == 2 * STEPS
    assert len(events(tmp_path)) == before
    torch.autograd._engine_run_backward = inner  # as that library does at its end
    train(module)
    assert (calls, len(events(tmp_path))) == (2 * STEPS, before)

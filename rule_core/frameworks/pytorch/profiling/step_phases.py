"""StepPhases: times the forward, the backward and the updates of a PyTorch training."""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch.optim import optimizer as torch_optimizer

from rule_core.frameworks.pytorch import modules
from rule_core.frameworks.pytorch.callback import Callback
from rule_core.frameworks.pytorch.patches import Patch, remove_all
from rule_core.logger import get_logger
from rule_core.profiler.recording.recorder import BACKWARD, FORWARD, OPTIMIZER, ProfilerRecorder

_RUN: Final = "_engine_run_backward"  # private in PyTorch


class StepPhases:
    """Passes the phases of steps to a recorder.

    The forward is a call of the model. The backward is a run of PyTorch's engine for gradients
    after it, even one that fails; a PyTorch that runs the engine in another way has no backwards.
    An update is a call of `step` of any optimizer, without the backwards in a closure that it
    calls.

    Parameters
    ----------
    recorder
        Receives the phases.
    """

    def __init__(self, recorder: ProfilerRecorder) -> None:
        self._recorder = recorder
        self._is_updating = False
        self._is_after_forward = False
        self._patch: Patch | None = None
        if _RUN in vars(torch.autograd):
            self._patch = Patch(torch.autograd, _RUN, self._timing_backward)
        else:
            get_logger("hook").debug("Backwards are not timed: PyTorch has no %s.", _RUN)
        self._handles: list[Any] = [
            torch_optimizer.register_optimizer_step_pre_hook(Callback(self._before_update)),
            torch_optimizer.register_optimizer_step_post_hook(Callback(self._after_update)),
        ]

    def watch(self, module: Any) -> None:
        """Time the forward and the backward of a model."""
        self._handles += [
            module.register_forward_pre_hook(Callback(self._before_forward)),
            module.register_forward_hook(Callback(self._after_forward)),
        ]

    def close(self) -> None:
        """Remove all callbacks, and restore PyTorch's function unless others have patched it."""
        if self._patch is not None:
            self._patch.restore()
        remove_all(self._handles)

    def _before_forward(self, *_: Any) -> None:
        if not modules.in_backward():
            self._is_after_forward = False
            self._recorder.begin(FORWARD)

    def _after_forward(self, *_: Any) -> None:
        if not modules.in_backward():
            self._recorder.end(FORWARD)
            self._is_after_forward = True

    def _timing_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        before, after = Callback(self._before_backward), Callback(self._after_backward)

        def run_backward(*args: Any, **kwargs: Any) -> Any:
            before()
            try:
                return original(*args, **kwargs)
            finally:
                after()

        return run_backward

    def _before_backward(self) -> None:
        is_inside = modules.in_backward() or torch.compiler.is_compiling()
        if self._is_after_forward and not is_inside:
            self._recorder.begin(BACKWARD)

    def _after_backward(self) -> None:
        if self._is_after_forward and not modules.in_backward():
            self._recorder.end(BACKWARD)
            if self._is_updating:
                self._recorder.begin(OPTIMIZER, is_anew=True)

    def _before_update(self, *_: Any) -> None:
        self._is_updating = True
        self._recorder.begin(OPTIMIZER)

    def _after_update(self, *_: Any) -> None:
        self._is_updating = False
        self._recorder.end(OPTIMIZER)

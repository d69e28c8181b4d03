"""StepPhases: times the forward, the backward and the updates of a PyTorch training."""

from operator import attrgetter
from typing import Any, Final

import torch
from torch.optim import optimizer as torch_optimizer

from rule_core.frameworks.pytorch import modules
from rule_core.frameworks.pytorch.callback import Callback
from rule_core.profiler.recording.recorder import BACKWARD, FORWARD, OPTIMIZER, ProfilerRecorder

# The engine that runs a backward; it calls functions once the whole backward is done.
_engine: Final = attrgetter("_execution_engine")(torch.autograd.Variable)


class StepPhases:
    """Passes the phases of steps to a recorder.

    The forward is a call of the model. The backward lasts from the gradient of the model's output
    to the end of the engine's run. An update is a call of `step` of any optimizer, without the
    backwards in a closure that it calls.

    Parameters
    ----------
    recorder
        Receives the phases.
    """

    def __init__(self, recorder: ProfilerRecorder) -> None:
        self._recorder = recorder
        self._is_updating = False
        self._handles: list[Any] = [
            torch_optimizer.register_optimizer_step_pre_hook(self._before_update),
            torch_optimizer.register_optimizer_step_post_hook(self._after_update),
        ]

    def watch(self, module: Any) -> None:
        """Time the forward and the backward of a model."""
        self._handles += [
            module.register_forward_pre_hook(Callback(self._before_forward)),
            module.register_forward_hook(Callback(self._after_forward)),
        ]

    def close(self) -> None:
        """Remove all callbacks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _before_forward(self, *_: Any) -> None:
        if not modules.in_backward():
            self._recorder.begin(FORWARD)

    def _after_forward(self, _: Any, __: Any, output: Any) -> None:
        if modules.in_backward():
            return
        self._recorder.end(FORWARD)
        if self._recorder.is_recording:
            tensors = (tensor for _, tensor in modules.tensors_in(output))
            differentiable = next((tensor for tensor in tensors if tensor.requires_grad), None)
            if differentiable is not None:
                differentiable.register_hook(self._begin_backward)

    def _begin_backward(self, _: Any) -> None:
        self._recorder.begin(BACKWARD)
        _engine.queue_callback(self._end_backward)

    def _end_backward(self) -> None:
        self._recorder.end(BACKWARD)
        if self._is_updating:
            self._recorder.begin(OPTIMIZER, is_anew=True)

    def _before_update(self, *_: Any) -> None:
        self._is_updating = True
        self._recorder.begin(OPTIMIZER)

    def _after_update(self, *_: Any) -> None:
        self._is_updating = False
        self._recorder.end(OPTIMIZER)

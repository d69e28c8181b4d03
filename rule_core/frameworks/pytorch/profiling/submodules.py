"""SubmoduleTimes: times the forward and the backward of the modules inside of models."""

from typing import Any, Final

from rule_core.frameworks.pytorch import modules
from rule_core.frameworks.pytorch.callback import Callback
from rule_core.frameworks.pytorch.patches import remove_all
from rule_core.profiler.recording.recorder import ProfilerRecorder

FORWARD_INSIDE: Final = "Forward-SubModuleInternal"
BACKWARD_INSIDE: Final = "Backward-SubModuleInternal"


class SubmoduleTimes:
    """Passes the calls of the modules inside of models to a recorder, while it is told to.

    The backward of a module lasts from the gradient of its output to that of its input or, if its
    input needs none, to that of the last of its parameters.

    Parameters
    ----------
    recorder
        Receives the events.
    """

    def __init__(self, recorder: ProfilerRecorder) -> None:
        self._recorder = recorder
        self._models: list[Any] = []
        self._handles: list[Any] = []
        self._parameter_handles: list[Any] = []  # of the current step

    def add(self, model: Any) -> None:
        """Add a model to those that can be watched."""
        self._models.append(model)

    def watch(self) -> None:
        """Watch the modules in a step; those in compiled code cannot be watched."""
        remove_all(self._parameter_handles)
        if self._handles:
            return
        for model in self._models:
            is_hidden = modules.is_compiled(model)
            for named, is_visible in modules.submodules(modules.unwrapped(model), hidden=is_hidden):
                if is_visible:
                    self._watch(named.name, named.module)

    def unwatch(self) -> None:
        """Remove all callbacks."""
        remove_all(self._handles)
        remove_all(self._parameter_handles)

    def _watch(self, name: str, module: Any) -> None:
        starts: list[int] = []  # of calls that have not returned

        def before(*_: Any) -> None:
            if not modules.in_backward():
                starts.append(self._recorder.now_us())

        def after(_: Any, inputs: Any, output: Any) -> None:
            if starts and not modules.in_backward():
                self._recorder.add_event(FORWARD_INSIDE, name, starts.pop(), {})
                self._recorder.run(self._watch_backward, name, module, inputs, output)

        self._handles += [
            module.register_forward_pre_hook(Callback(before)),
            module.register_forward_hook(Callback(after)),
        ]

    def _watch_backward(self, name: str, module: Any, inputs: Any, output: Any) -> None:
        output_tensor, input_tensor = _differentiable(output), _differentiable(inputs)
        if output_tensor is None or output_tensor is input_tensor:
            return
        starts: list[int] = []
        last = [input_tensor] if input_tensor is not None else _parameters(module)
        remaining = len(last)

        def end(_: Any) -> None:
            nonlocal remaining
            remaining -= 1
            if starts and not remaining:
                self._recorder.add_event(BACKWARD_INSIDE, name, starts[0], {})

        output_tensor.register_hook(lambda _: starts.append(self._recorder.now_us()))
        handles = [tensor.register_hook(end) for tensor in last]
        if input_tensor is None:  # parameters outlive the step
            self._parameter_handles += handles


def _parameters(module: Any) -> list[Any]:
    """Return the parameters of a module that get gradients."""
    return [
        parameter
        for parameter in module.parameters()
        if parameter.requires_grad and not modules.is_placeholder(parameter)
    ]


def _differentiable(value: Any) -> Any:
    """Return the first tensor that needs a gradient; None without one."""
    tensors = (tensor for _, tensor in modules.tensors_in(value))
    return next((tensor for tensor in tensors if tensor.requires_grad), None)

"""DebuggerCallback: saves tensors of a Hugging Face `Trainer` as a trial."""

from typing import Any, Final

from transformers import TrainerCallback

from rule_core.frameworks.pytorch.callback import Callback
from rule_core.frameworks.pytorch.hooked_callback import HookedCallback
from rule_core.frameworks.pytorch.patches import remove_all
from rule_core.modes import ModeKeys

STATE: Final = "smdebug"  # key of the step counts in the trainer's state


class DebuggerCallback(HookedCallback, TrainerCallback):
    """Save tensors of a model with the names of `smdebug.pytorch.Hook`.

    A step is one forward call of the model. With gradient accumulation, a step of the trainer has
    several, each with the gradients of its own backward. The mode is TRAIN while the model is in
    training mode, and EVAL otherwise, because the trainer does not distinguish prediction from
    evaluation.

    Inputs and outputs have the names of their arguments, ``<Class>_input_input_ids`` and
    ``<Class>_output_logits``; ``<Class>_output_loss`` is in collection ``losses``. Values
    logged by the trainer are saved as ``scalar/<name>``. Checkpoints contain the step counts.

    Parameters
    ----------
    hook
        The `out_dir`, or a hook, closed by its owner or at exit, which also saves evaluations after
        the training. By default, a hook is created when training begins and closed when it ends;
        further trainings continue the trial.
    out_dir, **options
        Arguments of the created hook, see `smdebug.pytorch.Hook`; ``resume=True`` continues from
        a checkpoint in the folder of its trial. Without a `save_config`, every tenth step and the
        losses of the first 100 steps are saved.

    Raises
    ------
    SMDebugValueError
        If both a hook and options are passed.

    Examples
    --------
    >>> callback = DebuggerCallback("runs/mine")  # doctest: +SKIP
    >>> Trainer(model, arguments, train_dataset=data, callbacks=[callback])  # doctest: +SKIP
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, *, model: Any, **_: Any) -> None:  # noqa: ARG002 - the trainer's signature
        """Open the trial, and watch the model."""
        self._open()
        hook = self.hook
        if hook is None:
            return
        self.load_state_dict(state.stateful_callbacks.get(STATE, {}))
        if not self._is_new(model):
            return

        def set_mode(module: Any, _: Any) -> None:
            hook.set_mode(ModeKeys.TRAIN if module.training else ModeKeys.EVAL)

        hook.register_module(model)
        remove_all(self._handles)
        # Called before the hook's own, which begins the step.
        self._handles = [model.register_forward_pre_hook(Callback(set_mode), prepend=True)]

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002 - the trainer's signature
        """Store the step counts for checkpoints."""
        state.stateful_callbacks[STATE] = self.state_dict()

    on_evaluate = on_step_end

    def on_log(
        self,
        args: Any,  # noqa: ARG002 - the trainer's signature
        state: Any,  # noqa: ARG002 - the trainer's signature
        control: Any,  # noqa: ARG002 - the trainer's signature
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Save the logged numbers."""
        self._save_scalars(logs or {})

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002 - the trainer's signature
        """End the trial, and stop watching the model."""
        self._close()
        if self.hook is not None and self.hook.is_off:
            remove_all(self._handles)

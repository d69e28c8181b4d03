"""DebuggerCallback: saves what a Hugging Face `Trainer` trains and evaluates as a trial."""

import os
from typing import Any, Final

from transformers import TrainerCallback

from smdebug.core.modes import ModeKeys
from smdebug.pytorch import Hook
from smdebug.pytorch.callback import Callback
from smdebug.pytorch.trainer_hook import TrainerHook

STATE: Final = "smdebug"  # where the trainer's own state holds the counts of steps


class DebuggerCallback(TrainerCallback):
    """Save tensors of a model by the names of `smdebug.pytorch.Hook`.

    A step is one forward call of the model, as everywhere: with gradient accumulation the trainer's
    step has as many of them, each with the gradients of its own backward. The mode is TRAIN while
    the model is in training mode, and EVAL otherwise: the trainer does not tell predicting from
    evaluating before it is over.

    Inputs and outputs have the names of their arguments, ``<Class>_input_input_ids`` and
    ``<Class>_output_logits``; ``<Class>_output_loss`` is in collection ``losses``. What the trainer
    logs is saved as ``scalar/<name>``. Its checkpoints hold the counts of steps.

    Parameters
    ----------
    hook
        A hook, to be closed by its owner or when Python exits: what the trainer evaluates after
        training is saved too. By default one is made when training begins and closed when it ends;
        training once more goes on with the trial.
    out_dir, **options
        Arguments of the hook that is made, see `smdebug.pytorch.Hook`; ``resume=True`` to go on
        from a checkpoint in the folder of its trial.

    Raises
    ------
    SMDebugValueError
        If a hook and options are given.

    Examples
    --------
    >>> callback = DebuggerCallback(out_dir="runs/mine", save_all=True)  # doctest: +SKIP
    >>> Trainer(model, arguments, train_dataset=data, callbacks=[callback])  # doctest: +SKIP
    """

    def __init__(
        self,
        hook: Hook | None = None,
        out_dir: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        self._keeper = TrainerHook(hook, out_dir, options)
        self._handles: list[Any] = []

    @property
    def hook(self) -> Hook | None:
        """The hook; None before it is made."""
        return self._keeper.hook

    def on_train_begin(self, args: Any, state: Any, control: Any, *, model: Any, **_: Any) -> None:  # noqa: ARG002 - the trainer's signature
        """Open the trial, and watch the model."""
        self._keeper.open()
        hook = self.hook
        if hook is None:
            return
        self._keeper.load_state_dict(state.stateful_callbacks.get(STATE, {}))
        if not self._keeper.is_new(model):
            return

        def set_mode(module: Any, _: Any) -> None:
            hook.set_mode(ModeKeys.TRAIN if module.training else ModeKeys.EVAL)

        hook.register_module(model)
        self._remove()
        # Called before the hook's own, which begins the step.
        self._handles.append(model.register_forward_pre_hook(Callback(set_mode), prepend=True))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002 - the trainer's signature
        """Leave the counts of steps where checkpoints take them from."""
        state.stateful_callbacks[STATE] = self._keeper.state_dict()

    on_evaluate = on_step_end

    def on_log(
        self,
        args: Any,  # noqa: ARG002 - the trainer's signature
        state: Any,  # noqa: ARG002 - the trainer's signature
        control: Any,  # noqa: ARG002 - the trainer's signature
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Save the numbers among what is logged."""
        self._keeper.save_scalars(logs or {})

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002 - the trainer's signature
        """End the trial, and leave the model as it was."""
        self._keeper.close()
        if self.hook is not None and self.hook.is_off:
            self._remove()

    def _remove(self) -> None:
        while self._handles:
            self._handles.pop().remove()

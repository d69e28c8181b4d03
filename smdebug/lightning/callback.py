"""DebuggerCallback: saves what Lightning trains, validates, tests and predicts as one trial."""

import os
from collections.abc import Mapping
from typing import Any

import torch

from smdebug.core.modes import ModeKeys
from smdebug.pytorch import Hook
from smdebug.pytorch.trainer_hook import LOSS, TrainerHook

try:
    from lightning.pytorch import Callback
except ModuleNotFoundError:  # the older name of the same package
    from pytorch_lightning import Callback


class DebuggerCallback(Callback):
    """Save tensors of a `LightningModule` by the names of `smdebug.pytorch.Hook`.

    A step is one batch, of whichever phase: TRAIN for training, EVAL for validating and testing,
    PREDICT for predicting; the batches of the sanity check are none. With gradient accumulation a
    step's gradients are those of its batch: of its loss divided by the number of batches.

    The loss that `training_step`, `validation_step` or `test_step` returns is saved as
    ``loss_output_0``, those of loss modules by their class, and what is logged as
    ``scalar/<name>``. The module's own inputs and outputs are there if it is called as a function;
    under DDP and FSDP, which call it with the batch, so are that and the loss. A checkpoint holds
    the counts of steps.

    Parameters
    ----------
    hook
        A hook, to be closed by its owner or when Python exits: `fit` and what follows are saved
        by it. By default one is made by each of `fit`, `validate`, `test` and `predict`, and
        closed at the end or by an error; the later ones go on with the trial of the first.
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
    >>> Trainer(callbacks=[callback]).fit(module, batches)  # doctest: +SKIP
    """

    def __init__(
        self,
        hook: Hook | None = None,
        out_dir: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        self._keeper = TrainerHook(hook, out_dir, options)
        self._stage = ""
        self._logged: dict[str, tuple[Any, ...]] = {}

    @property
    def hook(self) -> Hook | None:
        """The hook; None before it is made."""
        return self._keeper.hook

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:  # noqa: ARG002 - Lightning's signature
        """Open the trial."""
        self._stage, self._logged = stage, {}
        self._keeper.open()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:  # noqa: ARG002 - Lightning's signature
        """End the trial."""
        self._keeper.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002 - Lightning's signature
        """End the trial."""
        self._keeper.close()

    def state_dict(self) -> dict[str, Any]:
        """Return the counts of steps."""
        return self._keeper.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up the counts of steps; only training goes on from a checkpoint."""
        if self._stage == "fit":
            self._keeper.load_state_dict(state_dict)

    def _begin(self, trainer: Any, module: Any, mode: ModeKeys) -> None:
        """Begin a step."""
        hook = self.hook
        if hook is None or trainer.sanity_checking:
            return
        if self._keeper.is_new(module):
            hook.register_module(module, counts_steps=False)
            for one in module.modules():
                if isinstance(one, torch.nn.modules.loss._Loss):  # noqa: SLF001 - the base of all losses
                    hook.register_loss(one)
        hook.set_mode(mode)
        hook.begin_step()

    def _save(self, trainer: Any, outputs: Any, divisor: int = 1) -> None:
        """Save the loss that a step returned, and what it logged."""
        if self.hook is None or not self.hook.is_saving or trainer.sanity_checking:
            return
        loss = outputs.get(LOSS) if isinstance(outputs, Mapping) else outputs
        if isinstance(loss, torch.Tensor):
            self.hook.record_tensor_value(LOSS, loss if divisor == 1 else loss * divisor)
        self._save_logged(trainer)

    def _save_logged(self, trainer: Any, *_: Any) -> None:
        """Save what was logged since the last time, under the names that loggers get."""
        if trainer.sanity_checking:
            return
        logged = {name: (one.data_ptr(), one) for name, one in trainer.logged_metrics.items()}
        # What was not logged again is in the same place.
        new = {
            name: one
            for name, (place, one) in logged.items()
            if place != self._logged.get(name, (None,))[0]
        }
        self._logged = logged
        self._keeper.save_scalars(new)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        """Begin a step."""
        self._begin(trainer, pl_module, ModeKeys.TRAIN)

    def on_validation_batch_start(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        """Begin a step."""
        self._begin(trainer, pl_module, ModeKeys.EVAL)

    on_test_batch_start = on_validation_batch_start

    def on_predict_batch_start(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        """Begin a step."""
        self._begin(trainer, pl_module, ModeKeys.PREDICT)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, *_: Any) -> None:
        """Save the loss that the step returned, and what it logged."""
        # Lightning has divided it, where it does the backward itself.
        automatic = pl_module.automatic_optimization
        self._save(trainer, outputs, trainer.accumulate_grad_batches if automatic else 1)

    def on_validation_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, *_: Any) -> None:  # noqa: ARG002 - Lightning's signature
        """Save the loss that the step returned, and what it logged."""
        self._save(trainer, outputs)

    on_test_batch_end = on_validation_batch_end

    # The values of a whole epoch are there once Lightning has computed them, on every worker.
    on_train_epoch_start = on_train_end = on_validation_end = on_test_end = _save_logged

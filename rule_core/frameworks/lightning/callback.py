"""DebuggerCallback: saves tensors of Lightning trainings as one trial."""

from collections.abc import Mapping
from typing import Any

import torch

from rule_core.frameworks.pytorch.hooked_callback import LOSS, HookedCallback
from rule_core.modes import ModeKeys
from rule_core.profiler.recording.recorder import BACKWARD, FORWARD, OPTIMIZER

try:
    from lightning.pytorch import Callback
except ModuleNotFoundError:  # the older name of the same package
    from pytorch_lightning import Callback


class DebuggerCallback(HookedCallback, Callback):
    """Save tensors of a `LightningModule` with the names of `smdebug.pytorch.Hook`.

    A step is one batch of any phase: mode TRAIN for training, EVAL for validation and test, and
    PREDICT for prediction. Batches of the sanity check are not steps. With gradient accumulation, a
    step's gradients are those of its batch: of its loss divided by the number of batches.

    The loss that `training_step`, `validation_step` or `test_step` returns is saved as
    ``loss_output_0``, outputs of loss modules by their class, and logged values as
    ``scalar/<name>``. The inputs and outputs of the module itself are saved if it is called as a
    function; under DDP and FSDP, which call it with the batch, these are the batch and the loss.
    Checkpoints contain the step counts.

    Parameters
    ----------
    hook
        The `out_dir`, or a hook, closed by its owner or at exit, which saves `fit` and everything
        after it. By default, each of `fit`, `validate`, `test` and `predict` creates a hook, and
        closes it at the end or after an error; later ones continue the trial of the first.
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
    >>> Trainer(callbacks=[callback]).fit(module, batches)  # doctest: +SKIP
    """

    _stage = ""
    _logged: Mapping[str, tuple[Any, ...]] = {}

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:  # noqa: ARG002 - Lightning's signature
        """Open the trial."""
        self._stage, self._logged = stage, {}
        self._open()

    def teardown(self, *_: Any, **__: Any) -> None:
        """End the trial."""
        self._close()

    on_exception = teardown

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the step counts; only training continues from a checkpoint."""
        if self._stage == "fit":
            super().load_state_dict(state_dict)

    def _begin(self, trainer: Any, module: Any, mode: ModeKeys, batch: Any) -> None:
        """Begin a step."""
        hook = self.hook
        if hook is None or trainer.sanity_checking:
            return
        if self._is_new(module):
            hook.register_module(module, counts_steps=False, times_forward=False)
            for submodule in module.modules():
                if isinstance(submodule, torch.nn.modules.loss._Loss):  # noqa: SLF001 - the base of all losses
                    hook.register_loss(submodule)
        hook.set_mode(mode)
        hook.begin_step()
        self._begin_phase(FORWARD)
        hook.record_batch(batch)

    def _begin_phase(self, phase: str, *, is_anew: bool = False) -> None:
        if self.hook is not None and self.hook.profiler is not None:
            self.hook.profiler.begin(phase, is_anew=is_anew)

    def _end_phase(self, phase: str) -> None:
        if self.hook is not None and self.hook.profiler is not None:
            self.hook.profiler.end(phase)

    def _save(self, trainer: Any, outputs: Any, divisor: int = 1) -> None:
        """Save the loss and the logged values of a step."""
        if self.hook is None or not self.hook.is_saving or trainer.sanity_checking:
            return
        loss = outputs.get(LOSS) if isinstance(outputs, Mapping) else outputs
        if isinstance(loss, torch.Tensor):
            self.hook.record_tensor_value(LOSS, loss if divisor == 1 else loss * divisor)
        self._save_logged(trainer)

    def _save_logged(self, trainer: Any, *_: Any) -> None:
        """Save the values logged since the last call, under the names that loggers use."""
        if trainer.sanity_checking:
            return
        logged = {name: (value.data_ptr(), value) for name, value in trainer.logged_metrics.items()}
        # Values that were not logged again have the same address.
        new = {
            name: value
            for name, (address, value) in logged.items()
            if address != self._logged.get(name, (None,))[0]
        }
        self._logged = logged
        self._save_scalars(new)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, *_: Any) -> None:
        """Begin a step."""
        self._begin(trainer, pl_module, ModeKeys.TRAIN, batch)

    def on_validation_batch_start(self, trainer: Any, pl_module: Any, batch: Any, *_: Any) -> None:
        """Begin a step."""
        self._begin(trainer, pl_module, ModeKeys.EVAL, batch)

    on_test_batch_start = on_validation_batch_start

    def on_predict_batch_start(self, trainer: Any, pl_module: Any, batch: Any, *_: Any) -> None:
        """Begin a step."""
        self._begin(trainer, pl_module, ModeKeys.PREDICT, batch)

    def on_before_backward(self, *_: Any) -> None:
        """End the forward, and begin the backward."""
        self._end_phase(FORWARD)
        self._begin_phase(BACKWARD)

    def on_after_backward(self, *_: Any) -> None:
        """End the backward."""
        self._end_phase(BACKWARD)

    def on_before_optimizer_step(self, *_: Any) -> None:
        """Begin the update, which Lightning calls with the forward and the backward inside."""
        self._begin_phase(OPTIMIZER, is_anew=True)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, *_: Any) -> None:
        """Save the loss and the logged values of the step."""
        # With automatic optimization, Lightning has divided the loss.
        automatic = pl_module.automatic_optimization
        self._save(trainer, outputs, trainer.accumulate_grad_batches if automatic else 1)

    def on_validation_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, *_: Any) -> None:  # noqa: ARG002 - Lightning's signature
        """Save the loss and the logged values of the step."""
        self._end_phase(FORWARD)
        self._save(trainer, outputs)

    on_test_batch_end = on_validation_batch_end

    def on_predict_batch_end(self, *_: Any) -> None:
        """End the forward."""
        self._end_phase(FORWARD)

    # Values of a whole epoch exist once Lightning has computed them on every worker.
    on_train_epoch_start = on_train_end = on_validation_end = on_test_end = _save_logged

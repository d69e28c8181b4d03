"""HookedCallback: a trainer's callback with a hook, passed in or created for each training."""

import os
from collections.abc import Mapping
from typing import Any, Final

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.frameworks.pytorch.hook import Hook
from rule_core.saving.presets import with_frequent_steps

LOSS: Final = "loss"


class HookedCallback:
    """Base class of callbacks; manages the hook.

    A hook passed in stays open; a hook created here is closed.

    Parameters
    ----------
    hook
        A hook, or the `out_dir` of a hook that is created in `_open`, in the training process.
    out_dir, **options
        Arguments of the created hook, which saves every tenth step and the losses of the first 100
        steps without a `save_config`.

    Attributes
    ----------
    hook
        The hook; None before it is created.

    Raises
    ------
    SMDebugValueError
        If both a hook and options are passed.
    SMDebugTypeError
        If `hook` is neither a hook nor a folder, or a folder beside `out_dir`.
    """

    def __init__(
        self,
        hook: Hook | str | os.PathLike[str] | None = None,
        out_dir: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        if isinstance(hook, str | os.PathLike) and out_dir is None:
            hook, out_dir = None, hook
        if not isinstance(hook, Hook | None):
            msg = f"Argument 'hook' must be a smdebug.pytorch.Hook, got {hook!r}."
            raise SMDebugTypeError(msg)
        if hook is not None and (options or out_dir is not None):
            names = sorted([*options, *(["out_dir"] if out_dir is not None else [])])
            raise SMDebugValueError(
                f"A hook has its options already, got {', '.join(names)}. Give them to the hook."
            )
        self.hook = hook
        self._creates_hook = hook is None
        self._options = with_frequent_steps({"out_dir": out_dir, **options})
        self._model: Any = None
        self._handles: list[Any] = []  # of callbacks at the model

    def _open(self) -> None:
        """Create the hook unless one was passed in; a second hook continues the trial."""
        if not self._creates_hook:
            return
        if self.hook is not None:
            self._close()
            self._options["resume"] = True
        self.hook, self._model = Hook(**self._options), None
        self.hook.watch_optimizers()

    def _close(self) -> None:
        """End the trial, or only the current step of a hook passed in."""
        if self.hook is not None:
            (self.hook.close if self._creates_hook else self.hook.flush)()

    def _is_new(self, model: Any) -> bool:
        """Return whether a model is new, so that it must be registered."""
        is_new, self._model = model is not self._model, model
        return is_new

    def _save_scalars(self, values: Mapping[str, Any]) -> None:
        """Save the numbers among the values."""
        for name, value in values.items():
            if self.hook is not None and hasattr(value, "__float__"):
                self.hook.save_scalar(name, value)

    def state_dict(self) -> dict[str, Any]:
        """Return the step counts."""
        return {} if self.hook is None else self.hook.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore step counts, unless the hook has started."""
        if state and self.hook is not None and self.hook.global_step < 0:
            self.hook.load_state_dict(state)

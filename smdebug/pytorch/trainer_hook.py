"""TrainerHook: the hook of a trainer's callback, given or made for as long as it trains."""

import os
from collections.abc import Mapping
from typing import Any, Final

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.pytorch.hook import Hook

LOSS: Final = "loss"


class TrainerHook:
    """Whoever makes a hook closes it: a given one is left open, one of our own ends its trial.

    Parameters
    ----------
    hook
        A hook; None: one is made when it is opened, in the process that trains.
    out_dir, options
        Arguments of the hook that is made.

    Raises
    ------
    SMDebugValueError
        If both are given.
    SMDebugTypeError
        If `hook` is none.
    """

    def __init__(
        self,
        hook: Any,
        out_dir: str | os.PathLike[str] | None,
        options: Mapping[str, Any],
    ) -> None:
        if hook is not None and not isinstance(hook, Hook):
            msg = f"Argument 'hook' must be a smdebug.pytorch.Hook, got {hook!r}."
            raise SMDebugTypeError(msg)
        if hook is not None and (options or out_dir is not None):
            given = sorted([*options, *(["out_dir"] if out_dir is not None else [])])
            msg = f"A hook has its options already, got {', '.join(given)}. Give them to the hook."
            raise SMDebugValueError(msg)
        self.hook: Hook | None = hook
        self._is_ours = hook is None
        self._options = {"out_dir": out_dir, **options}
        self._model: Any = None

    def open(self) -> None:
        """Make the hook, unless one was given; the second one goes on with the trial."""
        if not self._is_ours:
            return
        if self.hook is not None:
            self.close()
            self._options["resume"] = True
        self.hook, self._model = Hook(**self._options), None

    def close(self) -> None:
        """End the trial, or the step in hand if the hook was given."""
        if self.hook is not None:
            (self.hook.close if self._is_ours else self.hook.flush)()

    def is_new(self, model: Any) -> bool:
        """Say, once for each model, whether the hook is still to be told of it."""
        is_new, self._model = model is not self._model, model
        return is_new

    def save_scalars(self, values: Mapping[str, Any]) -> None:
        """Save those of the values that are numbers."""
        for name, value in values.items():
            if self.hook is not None and hasattr(value, "__float__"):
                self.hook.save_scalar(name, value)

    def state_dict(self) -> dict[str, Any]:
        """Return the counts of steps."""
        return {} if self.hook is None else self.hook.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up counts of steps, unless the hook has begun to count."""
        if state and self.hook is not None and self.hook.global_step < 0:
            self.hook.load_state_dict(state)

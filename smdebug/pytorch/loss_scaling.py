"""LossScaling: the factor by which automatic mixed precision scaled the loss of a step."""

import functools
from typing import Any, ClassVar

import torch


class LossScaling:
    """Notices when a loss is scaled, so that gradients can be saved as they would be without.

    `torch.amp.GradScaler.scale` is asked for through a thin wrapper while any instance watches: a
    scaler tells nobody that it exists. Scalers of other classes can be given to `use`.
    """

    _watching: ClassVar[list["LossScaling"]] = []
    _original: ClassVar[Any] = None

    def __init__(self) -> None:
        self._in_use: Any = None
        self._given: Any = None
        self._inverse: float | None = None

    def use(self, scaler: Any) -> None:
        """Take a scaler of any class with `get_scale` for the one of every step."""
        self._given = scaler

    def begin_step(self) -> None:
        """Forget the scaler of the step before."""
        self._in_use = self._inverse = None

    def inverse(self) -> float:
        """Return what a gradient of this step is to be multiplied by; 1.0 if nothing was scaled."""
        if self._inverse is None:
            # Asked once for all gradients of a backward: it may be on another device.
            scaler = self._in_use or self._given
            scale = 1.0 if scaler is None else float(scaler.get_scale())
            self._inverse = 1.0 / scale if scale else 1.0
        return self._inverse

    def see(self, scaler: Any) -> None:
        """Take note that a loss was scaled."""
        self._in_use, self._inverse = scaler, None

    def watch(self) -> None:
        """Begin to notice."""
        if self in LossScaling._watching:
            return
        if not LossScaling._watching:
            LossScaling._original = original = torch.amp.GradScaler.scale

            @functools.wraps(original)
            def scale(scaler: Any, outputs: Any) -> Any:
                if scaler.is_enabled():
                    for one in LossScaling._watching:
                        one.see(scaler)
                return original(scaler, outputs)

            torch.amp.GradScaler.scale = scale
        LossScaling._watching.append(self)

    def unwatch(self) -> None:
        """Stop noticing, and leave no trace."""
        if self in LossScaling._watching:
            LossScaling._watching.remove(self)
            if not LossScaling._watching:
                torch.amp.GradScaler.scale = LossScaling._original

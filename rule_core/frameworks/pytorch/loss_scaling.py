"""LossScaling: the loss scale of automatic mixed precision at a step."""

import functools
from typing import Any, ClassVar

import torch


class LossScaling:
    """Detects scaled losses, so that gradients can be saved unscaled.

    While any instance watches, `torch.amp.GradScaler.scale` is patched, because scalers cannot be
    found otherwise. Scalers of other classes can be passed to `use`.
    """

    _watching: ClassVar[list["LossScaling"]] = []
    _original: ClassVar[Any] = None

    def __init__(self) -> None:
        self._in_use: Any = None
        self._registered: Any = None
        self._inverse: float | None = None

    def use(self, scaler: Any) -> None:
        """Use a scaler of any class with `get_scale` at every step."""
        self._registered = scaler

    def begin_step(self) -> None:
        """Reset the scaler of the previous step."""
        self._in_use = self._inverse = None

    def inverse(self) -> float:
        """Return the factor that unscales gradients of this step; 1.0 without scaling."""
        if self._inverse is None:
            # Read once per backward: the scale may be on another device.
            scaler = self._in_use or self._registered
            scale = 1.0 if scaler is None else float(scaler.get_scale())
            self._inverse = 1.0 / scale if scale else 1.0
        return self._inverse

    def record_scaler(self, scaler: Any) -> None:
        """Record that a loss was scaled."""
        self._in_use, self._inverse = scaler, None

    def watch(self) -> None:
        """Start watching."""
        if self in LossScaling._watching:
            return
        if not LossScaling._watching:
            LossScaling._original = original = torch.amp.GradScaler.scale

            @functools.wraps(original)
            def scale(scaler: Any, outputs: Any) -> Any:
                if scaler.is_enabled():
                    for watcher in LossScaling._watching:
                        watcher.record_scaler(scaler)
                return original(scaler, outputs)

            torch.amp.GradScaler.scale = scale
        LossScaling._watching.append(self)

    def unwatch(self) -> None:
        """Stop watching and restore `torch.amp.GradScaler.scale`."""
        if self in LossScaling._watching:
            LossScaling._watching.remove(self)
            if not LossScaling._watching:
                torch.amp.GradScaler.scale = LossScaling._original
